"""Sources, options and files that are refused as a whole, each on its full text."""

# ruff: noqa: E501 - messages are compared on their full text

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lftj.errors import DataError, Error
from lftj.io.file import File, MissingFileError, UnreadableFileError

E2 = "src:number dst:number"
EDGE = "edge(src:number, dst:number)"
KINDS = (
    "  why: it is neither a file nor something with rows or columns\n"
    "  do: give a path, an open file, a DataFrame, an Arrow stream, a numpy array, a dict of columns, or rows as tuples or dicts"
)
KNOWN = "known are .csv, .tsv, .txt, .facts, .json, .ndjson (each also .gz or .zst), .parquet, .arrow, .feather or .ipc"


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (5, {}, f"rows cannot be read from an int\n{KINDS}"),
        (None, {}, f"rows cannot be read from None\n{KINDS}"),
        (b"1,2", {}, f"rows cannot be read from bytes\n{KINDS}"),
        (
            [],
            {"on_error": "skip"},
            "`on_error` cannot be 'skip'\n  why: a source with bad rows is refused, or they are kept apart\n"
            '  do: give `on_error="raise"` or `on_error="quarantine"`',
        ),
        (
            [(1, 2)],
            {"delimiter": ","},
            "delimiter= is for text files; the source is a list\n"
            "  why: it says how text is cut into fields, and here there is no text\n"
            "  do: leave delimiter= out",
        ),
        (
            [(1, 2)],
            {"header": True},
            "header= is for text files; the source is a list\n"
            "  why: it says how text is cut into fields, and here there is no text\n"
            "  do: leave header= out",
        ),
        (
            [(1, 2)],
            {"quoting": False},
            "quoting= is for text files; the source is a list\n"
            "  why: it says how text is cut into fields, and here there is no text\n"
            "  do: leave quoting= out",
        ),
        (
            [],
            {"columns": [0, 1]},
            "columns= is a list, not a dict\n"
            "  why: it says for every column of the relation which one of the source it is\n"
            "  do: write columns={'src': 0, 'dst': 1}",
        ),
        (
            [],
            {"columns": {"src": 0}},
            f"columns= says nothing about `dst` of {EDGE}\n  why: it replaces all matching by name and position\n"
            "  do: add `dst` to columns=",
        ),
        (
            [],
            {"columns": {"src": 0, "dest": 1}},
            f"columns= names `dest`, which is no column of {EDGE}\n"
            "  why: it says for every column of the relation which one of the source it is\n"
            "  do: did you mean `dst`?",
        ),
        (
            [],
            {"columns": {"src": 0, "w": 1}},
            f"columns= names `w`, which is no column of {EDGE}\n"
            "  why: it says for every column of the relation which one of the source it is\n"
            "  do: choose from `src`, `dst`",
        ),
        (
            [],
            {"columns": {"src": 0, "dst": None}},
            "columns= gives None for `dst`\n"
            "  why: a column of the source is known by its position or by its name\n"
            "  do: give a position (an int, from 0) or a column name (a str)",
        ),
        (
            [],
            {"columns": {"src": True, "dst": 0}},
            "columns= gives True for `src`\n"
            "  why: a column of the source is known by its position or by its name\n"
            "  do: give a position (an int, from 0) or a column name (a str)",
        ),
        (
            [(1, 2)],
            {"columns": {"src": "a", "dst": 0}},
            "list: columns= asks for `a` as `src`, but the source has no column names\n"
            "  why: nothing in it says how its columns are called\n"
            "  do: give positions (from 0)",
        ),
        (
            [(1, 2)],
            {"columns": {"src": 0, "dst": 2}},
            "list: columns= asks for position 2 as `dst`, but the source has 2 columns\n"
            "  why: positions count the columns of the source from 0\n"
            "  do: give a position from 0 to 1",
        ),
        (
            [(1,)],
            {"columns": {"src": -1, "dst": 0}},
            "list: columns= asks for position -1 as `src`, but the source has 1 column\n"
            "  why: positions count the columns of the source from 0\n"
            "  do: give a position from 0 to 0",
        ),
        (
            pa.table({"src": [1], "w": [2]}),
            {},
            f"Table: the columns `src`, `w` match those of {EDGE} only in part\n  why: it is not clear whether names or positions count\n"
            "  do: say which is which: columns={'src': 0, 'dst': 1}",
        ),
        (
            [],
            {"extra": "ignore"},
            "`extra` cannot be 'ignore'\n"
            "  why: columns that the relation does not have are passed over, or refused\n"
            '  do: give `extra="note"` or `extra="error"`',
        ),
        (
            pa.table({"src": [1], "dst": [2], "w": [3]}),
            {"extra": "error"},
            f"Table: the source has 3 columns (`src`, `dst`, `w`), {EDGE} takes 2\n"
            '  why: all columns of the relation are there by name, and extra="error" refuses others\n'
            "  do: pick the columns: columns={'src': 'src', 'dst': 'dst'}",
        ),
        (
            pa.table({str(i): [i] for i in range(20)}),
            {},
            "Table: the source has 20 columns (`0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `9`, `10`, `11`, ... (20 in all)), "
            f"{EDGE} takes 2\n"
            "  why: columns are matched by position where the names differ, so there must be as many\n"
            f"  do: pick the columns: columns={{'src': 0, 'dst': 1}}",
        ),
        (
            pa.table({"a": [1], "b": [2]}),
            {"columns": {"src": "a", "dst": "c"}},
            "Table: columns= asks for `c` as `dst`, but the source has no such column\n  why: its columns are `a`, `b`\n"
            "  do: choose from `a`, `b`",
        ),
        (
            pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
            {"columns": {"src": "a", "dst": 1}},
            "Table: columns= asks for `a` as `src`, but the source has 2 columns of that name\n"
            "  why: its columns are `a`, `a`\n"
            "  do: give the position (from 0)",
        ),
    ],
)
def test_sources_and_options(reader, source, options, message):
    assert reader.refusal(source, E2, error=DataError, **options) == message


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "e.csv",
            "1,2,3\n",
            {},
            f"e.csv: the source has 3 columns, {EDGE} takes 2\n"
            "  why: columns are matched by position where the names differ, so there must be as many\n"
            f"  do: pick the columns: columns={{'src': 0, 'dst': 1}}",
        ),
        (
            "e.csv",
            "dst,w,src\n1,2,3\n",
            {"extra": "error"},
            f"e.csv: the source has 3 columns (`dst`, `w`, `src`), {EDGE} takes 2\n"
            '  why: all columns of the relation are there by name, and extra="error" refuses others\n'
            "  do: pick the columns: columns={'src': 'src', 'dst': 'dst'}",
        ),
        (
            "e.tsv",
            "1,2\n3,4\n",
            {},
            f"e.tsv:1: the lines have 1 field, {EDGE} takes 2\n  why: the delimiter is '\\t', the first line '1,2'\n"
            "  do: give the right delimiter= or declare fewer columns",
        ),
        (
            "e.csv",
            "src,w\n1,2\n",
            {"header": True},
            f"e.csv: the columns `src`, `w` match those of {EDGE} only in part\n  why: it is not clear whether names or positions count\n"
            "  do: say which is which: columns={'src': 0, 'dst': 1}",
        ),
        (
            "e.csv",
            "from,to\n1,2\n",
            {"columns": {"src": "from", "dst": "too"}},
            "e.csv: columns= asks for `too` as `dst`, but the source has no such column\n  why: its columns are `from`, `to`\n"
            "  do: did you mean `to`?",
        ),
        (
            "e.csv",
            "a,b\n",
            {"columns": {"src": "a", "dst": "b"}, "header": False},
            "e.csv: columns= picks by name, but header=False says that there are no names\n"
            "  why: names are looked up in the header\n"
            "  do: give positions (from 0)",
        ),
        (
            "e.csv",
            "1,2\n",
            {"delimiter": ""},
            "e.csv: '' cannot be a delimiter\n"
            "  why: a delimiter stands between two fields of one line, and cannot be what ends a line or quotes a field\n"
            "  do: give a character or a text without line ends",
        ),
        (
            "e.csv",
            "1,2\n",
            {"delimiter": '"', "quoting": True},
            "e.csv: '\"' cannot be a delimiter\n"
            "  why: a delimiter stands between two fields of one line, and cannot be what ends a line or quotes a field\n"
            "  do: give a character or a text without line ends and quotes",
        ),
        (
            "e.csv",
            "1,2\n".encode("utf-16"),
            {},
            "e.csv: the file is UTF-16 text\n  why: text files are read as UTF-8\n  do: convert the file to UTF-8",
        ),
        (
            "e.csv",
            gzip.compress(b"1,2\n", mtime=0),
            {},
            "e.csv: the text begins like a .gz file\n"
            "  why: e.csv tells no compression, so it is read as text\n"
            "  do: name it e.csv.gz, or decompress it",
        ),
        (
            "e.csv.gz",
            b"1,2\n",
            {},
            "e.csv.gz: the file cannot be read as gzip\n  why: zlib inflate failed: incorrect header check\n"
            "  do: make or fetch the file again",
        ),
        (
            "e.tsv.gz",
            gzip.compress(os.urandom(5000))[:-100],
            {},
            "e.tsv.gz: the file cannot be read as gzip\n  why: Truncated compressed stream\n  do: make or fetch the file again",
        ),
        (
            "e.tsv.zst",
            pa.compress(b"1\t2\n" * 1000, "zstd", asbytes=True)[:-4],
            {},
            "e.tsv.zst: the file cannot be read as Zstandard\n  why: Truncated compressed stream\n  do: make or fetch the file again",
        ),
        (
            "e.parquet",
            b"",
            {},
            "e.parquet: the file cannot be read as parquet\n  why: Parquet file size is 0 bytes\n  do: make or fetch the file again",
        ),
        (
            "e.arrow",
            b"ARROW1xxxxxx",
            {},
            "e.arrow: the file cannot be read as arrow\n  why: File is too small: 12\n  do: make or fetch the file again",
        ),
        (
            "e.parquet",
            b"",
            {"delimiter": ","},
            "e.parquet: delimiter= does not apply to a parquet file\n"
            "  why: the columns of a parquet file are not told apart by a character\n"
            "  do: leave delimiter= out",
        ),
        (
            "e.arrow",
            b"",
            {"header": True},
            "e.arrow: header= does not apply to an arrow file\n"
            "  why: an arrow file says itself what its columns are\n"
            "  do: leave header= out",
        ),
        (
            "e.parquet.gz",
            b"",
            {},
            "e.parquet.gz: a parquet file inside .gz is not read\n"
            "  why: a compressed file of this format could not be read from its end, where its columns are listed\n"
            "  do: decompress it; parquet compresses its columns itself",
        ),
        (
            "e.xlsx",
            b"",
            {},
            f"e.xlsx: the extension '.xlsx' tells no format\n  why: {KNOWN}\n  do: rename the file, give format=, or delimiter= to read it as text",
        ),
        (
            "edges",
            b"",
            {},
            f"edges: a name without extension tells no format\n  why: {KNOWN}\n"
            "  do: rename the file, give format=, or delimiter= to read it as text",
        ),
    ],
)
def test_files(reader, name, content, options, message):
    reader.file(name, content)
    assert reader.refusal(name, E2, **options) == message


def test_a_header_of_other_names_says_what_to_do(reader):
    reader.file("e.csv", "from,to\n1,2\n")
    assert reader.refusal("e.csv", E2) == (
        "e.csv:1: 1 bad row: column `src` of `edge`: 'from' is not a number\n"
        "  why: a number is an integer from -9223372036854775808 to 9223372036854775807: digits, an optional '-', nothing else\n"
        "  do: correct the value or declare the column `symbol`; if line 1 is a header, say header=True, "
        'or keep the good rows with on_error="quarantine"'
    )


def test_what_is_proposed_for_a_header_with_a_name_twice_works(reader):
    """The name was proposed for the column, and refused because two columns have it."""
    reader.file("e.csv", "src,dst,src\n1,2,3\n")
    assert reader.refusal("e.csv", E2) == (
        "e.csv:1: the first line names `src`, `dst`, but not `src` once\n"
        f"  why: it may be a header that does not fit {EDGE}, or a row\n"
        "  do: if it is a row, say header=False; else say which column is which, as in columns={'src': 0, 'dst': 'dst'}"
    )
    assert reader.rows("e.csv", E2, columns={"src": 0, "dst": "dst"}) == [(1, 2)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "edge.csv",
            "edge.csv: no such file\n"
            "  why: a source must be there when it is loaded; nothing was\n"
            "  do: did you mean 'edges.csv'?",
        ),
        (
            "other.tsv",
            "other.tsv: no such file\n"
            "  why: a source must be there when it is loaded; nothing was\n"
            "  do: check the name; relative paths start at the working directory",
        ),
        (
            "no/such.csv",
            "no/such.csv: no such file\n"
            "  why: a source must be there when it is loaded; nothing was\n"
            "  do: check the folder: 'no' does not exist",
        ),
        (
            ["Ann", "Bo"],
            "Ann: no such file\n"
            "  why: a source must be there when it is loaded; nothing was\n"
            "  do: check the name; relative paths start at the working directory; "
            "if it is a value, give rows as tuples: [('Ann',)]",
        ),
        (
            "x*.csv",
            "x*.csv: no file matches the pattern\n"
            "  why: a pattern that matches nothing would load nothing, and look like a success\n"
            "  do: check the folder and the extension",
        ),
        (
            "folder",
            "folder: this is a folder\n"
            "  why: rows are read from files, and it is not said which of them\n"
            "  do: name its files: 'folder/*.csv', for one",
        ),
        (
            ["edges.csv", "gone.csv"],
            "gone.csv: no such file\n"
            "  why: a source must be there when it is loaded; nothing was\n"
            "  do: check the name; relative paths start at the working directory",
        ),
    ],
)
def test_missing_files(reader, name, message):
    reader.file("edges.csv", "1,2\n")
    os.mkdir("folder")
    assert reader.refusal(name, E2, error=FileNotFoundError) == message
    assert reader.refusal(name, E2, error=MissingFileError) == message


def test_a_file_without_permission(reader, monkeypatch):
    """As root every file can be read, so the refusal of the system is played."""
    reader.file("e.csv", "1,2\n")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(File, "open", refuse)
    assert reader.refusal("e.csv", E2, error=UnreadableFileError) == (
        "e.csv: no permission to read the file\n"
        "  why: the operating system does not let this user open it\n"
        "  do: change its permissions, or those of its folder"
    )


def test_a_folder_that_may_not_be_looked_into(reader, monkeypatch):
    """As root every folder can be looked into, so the refusal of the system is played."""

    def refuse(self, **_):
        raise PermissionError(13, "Permission denied")

    for name in ("closed/e.csv", "closed/*.csv"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "stat", refuse)
            message = reader.refusal(name, E2, error=UnreadableFileError)
        assert message == (
            f"{name}: no permission to read the file\n"
            "  why: the operating system does not let this user open it\n"
            "  do: change its permissions, or those of its folder"
        )


def test_a_text_in_the_place_of_a_name_may_be_longer_than_names_are(reader):
    name = "1,2 " * 100
    assert reader.refusal(name, E2, error=MissingFileError) == (
        f"{name}: no such file\n"
        "  why: a source must be there when it is loaded; nothing was\n"
        f"  do: check the name; relative paths start at the working directory; if it is a value, give rows as tuples: [({name!r},)]"
    )


def test_a_name_that_begins_as_that_of_a_user(reader):
    """pathlib fails where there is none: a file may be called so."""
    reader.file("~$book.csv", "1,2\n")
    assert reader.rows("~$book.csv", E2) == [(1, 2)]
    assert reader.refusal("~nobody-of-this-name/e.csv", E2, error=MissingFileError).endswith(
        "do: check the folder: '~nobody-of-this-name' does not exist"
    )


def test_corrupt_pages_of_a_parquet_file(reader):
    data = pa.table({"src": range(100000), "dst": range(100000)})
    pq.write_table(data, "e.parquet", compression="zstd", write_page_checksum=True)
    content = bytearray(Path("e.parquet").read_bytes())
    content[1000:2000] = b"\xff" * 1000
    Path("e.parquet").write_bytes(content)
    message = reader.refusal("e.parquet", E2, error=OSError)
    assert message.startswith("e.parquet: the file cannot be read as parquet\n  why: ")


def test_every_error_is_of_the_family(reader):
    for error in (MissingFileError, UnreadableFileError):
        made = error("what", where="w", why="y", remedy="r")
        assert isinstance(made, (Error, DataError, ValueError, OSError))
        assert (made.what, made.where, made.why, made.remedy, str(made)) == (
            "what",
            "w",
            "y",
            "r",
            "w: what\n  why: y\n  do: r",
        )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "a,b\nc,d\n"),
        ("e.csv", "src,dst\r\nж,ö\r\nщ,上\r\n"),
        ("e.tsv", "ab\tc"),
        ("e.ndjson", '{"src": "a", "dst": "b"}\n'),
        ("e.json", '[["a", "b"]]'),
        ("e.csv", "a,b"),
        ("e.json", "[]"),
    ],
)
def test_utf16_without_a_mark_is_refused(reader, encoding, name, text):
    """It is valid UTF-8 with zeros: of bytes in the other order texts with zeros were loaded, without a word."""
    reader.file(name, text.encode(encoding))
    assert reader.refusal(name, "src:symbol dst:symbol") == (
        f"{name}: the file is UTF-16 text\n  why: text files are read as UTF-8\n  do: convert the file to UTF-8"
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["ab", "a\n", "ab\n", "a\r\n", "abc"])
def test_utf16_of_a_few_characters_is_refused(reader, encoding, text):
    """Texts with zeros were loaded from files below 8 bytes."""
    reader.file("e.csv", text.encode(encoding))
    assert reader.refusal("e.csv", "x:symbol").startswith("e.csv: the file is UTF-16 text\n")


@pytest.mark.parametrize(
    "text", ["\0a,b\n", "a,b\0\n", "a\0,b\n", "\0a,\0b\n", "a,b\0\nc\0,d\n", "\0\0a,b\n\0,c\n", "上,\0\n"]
)
def test_zeros_are_data(reader, text):
    reader.file("e.csv", text)
    rows = [tuple(line.split(",")) for line in text.splitlines()]
    assert reader.rows("e.csv", "src:symbol dst:symbol") == rows
