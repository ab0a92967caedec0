"""Files written: their exact bytes, and that a reader never sees half of one."""

# ruff: noqa: E501 - messages are compared on their full text

from __future__ import annotations

import gzip
import io
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lftj.errors import DataError
from lftj.io.write import UnwritableFileError, write
from lftj.io.write_text import UnwritableTextError
from lftj.values.gate import encode_row
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable

SCHEMA = Schema(
    "r", (Column("id", "number"), Column("big", "unsigned"), Column("x", "float"), Column("name", "symbol"))
)
ROWS = [(-(2**63), 2**64 - 1, 0.1, "a b"), (0, 0, 1.0, ""), (7, 7, float("-inf"), "NA")]


def columns_of(rows, schema, symbols):
    codes = [encode_row(row, schema, symbols) for row in rows]
    return [np.array([row[i] for row in codes], np.int64) for i in range(schema.arity)]


def written(rows, schema=SCHEMA, **options):
    symbols, stream = SymbolTable(), io.BytesIO()
    write(schema, columns_of(rows, schema, symbols), symbols, stream, rows=len(rows), **options)
    return stream.getvalue().decode()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


SOUFFLE = "-9223372036854775808\t18446744073709551615\t0.1\ta b\n0\t0\t1\t\n7\t7\t-inf\tNA\n"


def test_text_is_souffles_by_default():
    assert written(ROWS) == SOUFFLE
    assert written(ROWS, headers=True) == "id\tbig\tx\tname\n" + SOUFFLE
    assert written([]) == ""
    assert written([], headers=True) == "id\tbig\tx\tname\n"
    assert written(ROWS, delimiter=",") == SOUFFLE.replace("\t", ",")
    assert written(ROWS, delimiter="::") == SOUFFLE.replace("\t", "::")


TEXT = Schema("t", (Column("a", "symbol"), Column("b", "symbol")))


def test_quotes_where_rfc4180_needs_them():
    rows = [('q"q', "x"), ("a,b", "line\nend"), ("\r", "tab\t")]
    assert written(rows, TEXT, delimiter=",") == '"q""q",x\n"a,b","line\nend"\n"\r",tab\t\n'
    assert written([("a\tb", '"')], TEXT, rfc4180=True) == '"a\tb"\t""""\n'


def test_quotes_are_data_without_it():
    assert written([('"a"', 'b"')], TEXT) == '"a"\tb"\n'
    assert written([('"a"', 'b"')], TEXT, delimiter=",", rfc4180=False) == '"a",b"\n'


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "a\rb"])
def test_a_symbol_that_no_reader_could_tell_is_refused(text):
    with pytest.raises(UnwritableTextError) as caught:
        written([("x", text)], TEXT)
    assert str(caught.value) == (
        f"the stream: column `b` of `t`: {text!r} holds the delimiter '\\t' or a line end\n"
        "  why: without quotes no reader could tell it from two fields or rows\n"
        "  do: write with rfc4180=True, or to .parquet"
    )


def test_the_start_of_a_longer_delimiter_needs_quotes_too():
    assert written([("a:", "b:"), (":a", "b")], TEXT, delimiter="::", rfc4180=True) == '"a:"::"b:"\n:a::b\n'


def test_a_delimiter_that_numbers_are_written_with():
    assert written([("a", "b")], TEXT, delimiter="0") == "a0b\n"
    with pytest.raises(DataError) as caught:
        written(ROWS, delimiter="0")
    assert str(caught.value) == (
        "the stream: '0' cannot be a delimiter of numbers\n"
        "  why: numbers are written with the same characters\n  do: give another delimiter="
    )


def test_a_header_that_needs_quotes():
    schema = Schema("t", (Column("a,b", "number"),))
    assert written([(1,)], schema, delimiter=",", headers=True) == '"a,b"\n1\n'
    with pytest.raises(UnwritableTextError):
        written([(1,)], schema, delimiter=",", headers=True, rfc4180=False)


def test_arity_zero():
    assert written([()], Schema("flag", ())) == "()\n"
    assert written([()], Schema("flag", ()), headers=True) == "()\n"
    assert written([], Schema("flag", ())) == ""


def test_chunks(monkeypatch):
    whole = written(ROWS * 10, headers=True)
    monkeypatch.setattr("lftj.io.write_text.CHUNK_ROWS", 4)
    assert written(ROWS * 10, headers=True) == whole


def save(name, rows=ROWS, schema=SCHEMA, **options):
    symbols = SymbolTable()
    write(schema, columns_of(rows, schema, symbols), symbols, name, rows=len(rows), **options)


def test_extensions_tell_the_format():
    comma = SOUFFLE.replace("\t", ",")
    for name, content in (("r.csv", comma), ("r.tsv", SOUFFLE), ("r.facts", SOUFFLE), ("r.txt", SOUFFLE)):
        save(name)
        assert Path(name).read_text() == content
    save("r.csv", delimiter="\t")
    assert Path("r.csv").read_text() == SOUFFLE
    save("noextension", delimiter="\t")
    assert Path("noextension").read_text() == SOUFFLE
    save("data.out", format="text")
    assert Path("data.out").read_text() == SOUFFLE
    save("r.tsv.gz")
    save("r.tsv", compress=True)
    assert (
        gzip.decompress(Path("r.tsv.gz").read_bytes())
        == gzip.decompress(Path("r.tsv").read_bytes())
        == SOUFFLE.encode()
    )
    save("r.tsv.zst")
    assert pa.input_stream("r.tsv.zst", compression="zstd").read() == SOUFFLE.encode()
    save("r.parquet")
    assert [tuple(row.values()) for row in pq.read_table("r.parquet").to_pylist()] == ROWS
    for name in ("r.arrow", "r.feather", "r.ipc"):
        save(name)
        with pa.ipc.open_file(name) as opened:
            assert [tuple(row.values()) for row in opened.read_all().to_pylist()] == ROWS


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("r.xlsx", {}, "r.xlsx: the name 'r.xlsx' tells no format\n  why: known are .csv, .tsv, .txt, .facts, .json, .ndjson (each also .gz or "
         ".zst), .parquet, .arrow, .feather or .ipc\n  do: rename the target, or give format= or delimiter="),
        ("r.csv", {"format": "xls"}, "r.csv: format='xls' is unknown\n  why: formats are text, json, ndjson, parquet and arrow\n  do: give another format="),
        ("r.parquet", {"delimiter": ","}, "r.parquet: delimiter= does not apply to a parquet file\n"
        "  why: a parquet file is written in one form\n"
        "  do: leave delimiter= out"),
        ("r.arrow", {"headers": True}, "r.arrow: headers= does not apply to an arrow file\n"
        "  why: an arrow file is written in one form\n"
        "  do: leave headers= out"),
        ("r.arrow", {"rfc4180": False}, "r.arrow: rfc4180= does not apply to an arrow file\n"
        "  why: an arrow file is written in one form\n"
        "  do: leave rfc4180= out"),
        ("r.parquet", {"compress": True}, "r.parquet: compress= does not apply to a parquet file\n"
        "  why: a parquet file is written in one form\n"
        "  do: leave compress= out"),
        ("r.parquet.gz", {}, "r.parquet.gz: a parquet file is not compressed as a whole\n"
        "  why: the name ends in '.gz', and a parquet file is written in one form\n"
        "  do: give a name without '.gz'"),
        ("r.csv", {"delimiter": "\n"}, "{here}/r.csv: '\\n' cannot be a delimiter\n"
        "  why: a delimiter stands between two fields of one line, and cannot be what ends a line or quotes a field\n"
        "  do: give a character or a text without line ends"),
    ],
)  # fmt: skip
def test_refusals(name, options, message):
    with pytest.raises(DataError) as caught:
        save(name, **options)
    assert str(caught.value).replace(os.getcwd(), "{here}") in (message, message.replace("{here}/", ""))
    assert os.listdir() == []


def test_parquet_holds_no_arity_zero():
    with pytest.raises(DataError) as caught:
        save("f.parquet", [()], Schema("flag", ()))
    assert str(caught.value) == (
        "f.parquet: a parquet file holds no rows without columns\n"
        "  why: its rows are the values of its columns\n"
        "  do: write a relation of arity 0 as text"
    )


def test_a_missing_folder():
    with pytest.raises(UnwritableFileError) as caught:
        save("no/r.csv")
    assert str(caught.value) == (
        f"{os.getcwd()}/no/r.csv: the file cannot be written\n  why: the folder '{os.getcwd()}/no' does not exist\n"
        "  do: check the folder and its permissions"
    )
    assert isinstance(caught.value, OSError)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs file permissions that bind")
def test_a_folder_that_may_not_be_looked_into(tmp_path):
    tmp_path.chmod(0)
    for target in (tmp_path / "r.csv", tmp_path / "sub" / "r.csv"):
        with pytest.raises(UnwritableFileError) as caught:
            write(SCHEMA, columns_of(ROWS, SCHEMA, SymbolTable()), SymbolTable(), target, rows=len(ROWS))
        assert str(caught.value) == (
            f"{target}: the file cannot be written\n"
            "  why: Permission denied\n"
            "  do: check the folder and its permissions"
        )
    tmp_path.chmod(0o700)


def test_a_name_that_begins_as_that_of_a_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    symbols = SymbolTable()
    columns = columns_of(ROWS, SCHEMA, symbols)
    write(SCHEMA, columns, symbols, "~nobody-of-this-name.csv", rows=len(ROWS))
    assert os.listdir() == ["~nobody-of-this-name.csv"]
    with pytest.raises(UnwritableFileError, match="File name too long"):
        write(SCHEMA, columns, symbols, "n" * 300 + ".csv", rows=len(ROWS))


def test_a_folder_as_target():
    os.mkdir("r.csv")
    with pytest.raises(UnwritableFileError) as caught:
        save("r.csv")
    assert str(caught.value) == (
        f"{os.getcwd()}/r.csv: the file cannot be written\n  why: Is a directory\n  do: check the folder and its permissions"
    )
    assert os.listdir() == ["r.csv"]


@pytest.mark.parametrize("name", ["r.tsv", "r.tsv.gz"])
def test_a_failed_write_leaves_the_old_file(monkeypatch, name):
    monkeypatch.setattr("lftj.io.write_text.CHUNK_ROWS", 1)
    Path(name).write_text("old")
    with pytest.raises(UnwritableTextError):
        save(name, [("good", "x"), ("bad\n", "x")], TEXT)
    assert Path(name).read_text() == "old"
    assert os.listdir() == [name]


def test_a_link_is_followed():
    Path("real.tsv").write_text("old")
    os.symlink("real.tsv", "link.tsv")
    save("link.tsv")
    assert Path("link.tsv").is_symlink()
    assert Path("real.tsv").read_text() == SOUFFLE


def test_a_pipe_is_written_straight():
    os.mkfifo("pipe.tsv")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe.tsv").read_text()))
    reader.start()
    save("pipe.tsv")
    reader.join()
    assert got == [SOUFFLE]
    assert os.listdir() == ["pipe.tsv"]
