"""Rows with names (dicts, dataclasses, named tuples), JSON in both forms, open files and URLs.

Catches: values under the wrong column, a row dropped without a word, a line of JSON that is taken for another, a file
that is half loaded, a format that is guessed.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import gzip
import io
import json
import sqlite3
import sys
import warnings
from collections import ChainMap, OrderedDict, namedtuple
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import DataError, DataWarning
from lftj.io import json_text, rows
from lftj.io.rejects import BadRowsError
from tests.conftest import examples

EDGE = ".decl edge(src:number, dst:symbol)"
KEEP = ', or keep the good rows with on_error="quarantine"'


@dataclasses.dataclass
class Link:
    dst: str
    src: int


class Arc(NamedTuple):
    dst: str
    src: int


Pair = namedtuple("Pair", "a b")


def loaded(source: Any, program: str = EDGE, **options: Any) -> list[tuple[Any, ...]]:
    db = lftj.Database(program)
    db.load("edge", source, **options)
    return list(db["edge"])


# --- rows with names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        [{"dst": "x", "src": 1}, {"src": 2, "dst": "y"}],
        ({"dst": d, "src": s} for s, d in ((1, "x"), (2, "y"))),
        [OrderedDict(dst="x", src=1), ChainMap({"src": 2}, {"dst": "y"})],
        [Link("x", 1), Link("y", 2)],
        [Arc("x", 1), Arc("y", 2)],
        (Pair(1, "x"), Pair(2, "y")),  # none of the names: by position, as columns of a frame
    ],
    ids=["dicts", "generator", "mappings", "dataclasses", "named tuples", "other names"],
)
def test_rows_are_matched_by_name(source: Any) -> None:
    assert loaded(source) == [(1, "x"), (2, "y")]


def test_the_same_in_transactions() -> None:
    db = lftj.Database(EDGE)
    with db.transaction() as tx:
        tx.insert("edge", [{"dst": "x", "src": 1}, {"dst": "y", "src": 2}])
        tx.insert("edge", [Link("z", 3)])
        tx.erase("edge", [Arc("x", 1)])
    assert list(db["edge"]) == [(2, "y"), (3, "z")]


def test_columns_says_which_is_which() -> None:
    columns = {"src": "a", "dst": "b"}
    assert loaded([{"b": "x", "a": 1}], columns=columns) == [(1, "x")]
    assert loaded([Pair(b="x", a=1)], columns=columns) == [(1, "x")]
    assert loaded(
        [{"b": "x", "a": 1}], "edge(x, y) :- p(x, y).  .decl p(x:number, y:symbol)", columns={"x": "a", "y": "b"}
    ) == [(1, "x")]


@pytest.mark.parametrize("chunk", [2, 65_536])
def test_other_keys_are_passed_over_with_a_note(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK_ROWS", chunk)
    source = [{"src": 1, "dst": "x"}, {"src": 2, "dst": "y"}, {"late": 0, "src": 3, "dst": "z"}]
    with pytest.warns(DataWarning, match="list: columns passed over: `late`"):
        assert loaded(source) == [(1, "x"), (2, "y"), (3, "z")]
    with pytest.raises(lftj.DataError, match="3 columns"):
        loaded(source, extra="error")
    with pytest.warns(DataWarning, match="`weight`"):
        assert loaded([namedtuple("W", "weight dst src")(7, "x", 1)]) == [(1, "x")]


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ([{"src": 1, "dst": "x"}, {"src": 2}], 1, "{'src': 2} has no `dst`"),
        ([{"src": 1, "dst": "x"}, (2, "y")], 1, "(2, 'y') is a tuple, not a mapping as the first row is"),
        ([Link("x", 1), {"src": 1, "dst": "x"}], 1, "{'src': 1, 'dst': 'x'} is a dict, not a Link as the first row is"),
        ([Arc("x", 1), ("y", 2)], 1, "('y', 2) is a tuple, not an Arc as the first row is"),
        ([{"src": "1", "dst": "x"}], 0, "column `src` of `edge`: '1' is a str, not a number"),
        ([{"src": 1, "dst": None}], 0, "column `dst` of `edge`: null is not a value"),
        ([(1, "x"), {"src": 2, "dst": "y"}], 1, "{'src': 2, 'dst': 'y'} is not a row"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 65_536])
def test_bad_rows(source: Any, line: int, reason: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK_ROWS", chunk)
    with pytest.raises(BadRowsError) as caught:
        loaded(source)
    assert caught.value.where == f"list, row {line} (from 0)"
    assert caught.value.what == f"1 bad row: {reason}"
    db = lftj.Database(EDGE)
    rejects = db.load("edge", source, on_error="quarantine")
    assert [(reject.line, reject.reason) for reject in rejects or ()] == [(line, reason)]
    assert len(db["edge"]) == len(source) - 1


@pytest.mark.parametrize(
    ("source", "program", "message"),
    [
        (
            [{"from": 1, "to": "x"}],
            EDGE,
            "list: the rows have no `src`, `dst`, but `from`, `to`\n"
            "  why: rows with names are matched by them with the columns of edge(src:number, dst:symbol)\n"
            "  do: say which is which: columns={'src': 'from', 'dst': 'to'}",
        ),
        (
            [{"src": 1}],
            EDGE,
            "list: the rows have no `dst`, but `src`\n"
            "  why: rows with names are matched by them with the columns of edge(src:number, dst:symbol)\n"
            "  do: give each row a value by each of these names",
        ),
        (
            [{"to": "x", "src": 1}],
            EDGE,
            "list: the rows have no `dst`, but `to`, `src`\n"
            "  why: rows with names are matched by them with the columns of edge(src:number, dst:symbol)\n"
            "  do: say which is which: columns={'src': 'src', 'dst': 'to'}",
        ),
        (
            [{}],
            EDGE,
            "list: the rows have no `src`, `dst`\n"
            "  why: rows with names are matched by them with the columns of edge(src:number, dst:symbol)\n"
            "  do: give each row a value by each of these names",
        ),
        (
            [{"x": 1}],
            ".decl p(x:number)  edge(x) :- p(x).",
            "list: the rows have names (`x`), and `edge` is not declared\n"
            "  why: its columns have the names of a rule's variables, by which no data is matched\n"
            "  do: declare it, or say which is which: columns={'x': 'x'}",
        ),
    ],
)
def test_names_that_do_not_fit(source: Any, program: str, message: str) -> None:
    with pytest.raises(lftj.DataError) as caught:
        loaded(source, program)
    assert str(caught.value) == message


def test_rows_without_columns_and_of_other_libraries() -> None:
    assert loaded([{}], ".decl edge()") == [()]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        assert loaded(connection.execute("select 1 as dst, 'x' as src")) == [(1, "x")]  # sequences: by position


# --- JSON -------------------------------------------------------------------------------------------------------------

FOUR = ".decl edge(n:number, u:unsigned, x:float, s:symbol)"
texts = st.text(max_size=4) | st.sampled_from(["\n", "\\", '"', "}\n{", "\u2028", "é"])
values = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1),
    st.floats(allow_nan=False).map(lambda x: x + 0.0),
    texts.filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)),
)


@examples(60, 8)
@given(st.lists(values, max_size=6), st.sampled_from(["object", "array", "written"]), st.booleans(), st.data())
def test_json_is_read_back(made: list[Any], form: str, lines: bool, data: Any) -> None:
    names = ["n", "u", "x", "s"]
    given = [list(row) if form == "array" else dict(zip(names, row, strict=True)) for row in made]
    if form == "written":
        db = lftj.Database(FOUR)
        db.load("edge", made)
        sink = io.BytesIO()
        from lftj.io.write import write

        schema, columns, symbols, n = db["edge"]._held()
        write(schema, columns, symbols, sink, format="ndjson" if lines else "json", rows=n)
        text = sink.getvalue().decode()
    elif lines:
        end = data.draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
        text = "".join(json.dumps(row, ensure_ascii=data.draw(st.booleans())) + end for row in given)
    else:
        text = json.dumps(given, indent=data.draw(st.sampled_from([None, 1])))
    assert loaded(io.StringIO(text), FOUR, format="ndjson" if lines else "json") == loaded(made, FOUR)


TYPED = ".decl edge(t:timestamp, d:decimal(18,4), x:float?, y:bytes, s:symbol?)"


def test_texts_in_json_are_values_of_the_types_that_it_does_not_have() -> None:
    line = '{"t": "2024-05-31T12:30:00Z", "d": 12345678901234.5678, "x": 0.1, "y": "00ff", "s": ""}\n'
    other = '{"t": "2024-05-31 12:30", "d": "-1.5", "x": null, "y": "", "s": null}\n'
    noon = dt.datetime(2024, 5, 31, 12, 30)
    rows = [(noon, Decimal("-1.5"), None, b"", None), (noon, Decimal("12345678901234.5678"), 0.1, b"\0\xff", "")]
    assert loaded(io.StringIO(line + other), TYPED, format="ndjson") == rows
    assert loaded(io.StringIO(f"[{line},{other}]"), TYPED, format="json") == rows
    for old, new, reason in (
        ("12:30:00Z", "25:00", "'2024-05-31T25:00' is no time of the calendar"),
        ("5678,", "56789,", "Decimal('12345678901234.56789') has more than 4 digits behind the point"),
        ('"00ff"', '"0"', "'0' is not bytes"),
        ('"00ff"', "0", "0 is an int, not"),
    ):
        with pytest.raises(DataError) as info:
            loaded(io.StringIO(other + line.replace(old, new)), TYPED, format="ndjson")
        assert str(info.value).startswith("StringIO:2: 1 bad row: column ")
        assert reason in str(info.value)


@pytest.mark.parametrize(
    "text", ["1e400", "-1e400", "1E+999999", "-12.5e99999999999999999999", "1" + "0" * 309 + ".0"], ids=lambda t: t[:30]
)
@pytest.mark.parametrize("types", ["x:float", "x:float?", "x:float, d:decimal(5,2)?"])
@pytest.mark.parametrize("format", ["json", "ndjson"])
def test_a_number_of_json_beyond_the_floats_is_no_infinity(text: str, types: str, format: str) -> None:
    """Python's reader gives inf for it, as for `Infinity`; with digits, an exponent that no Decimal has raised."""
    rows = [[number, *([None] if "d:" in types else [])] for number in ("NUMBER", float("inf"), 1e308)]
    source = "".join(f"{json.dumps(row)}\n" for row in rows) if format == "ndjson" else json.dumps(rows)
    db = lftj.Database(f".decl edge({types})")
    rejects = db.load("edge", io.StringIO(source.replace('"NUMBER"', text)), format=format, on_error="quarantine")
    assert [row[0] for row in db["edge"]] == [1e308, float("inf")]
    assert rejects is not None
    (reject,) = rejects
    assert str(reject).endswith("does not fit into float")
    assert "inf" not in str(reject)


def test_a_number_of_json_too_small_for_a_decimal_is_not_0() -> None:
    for text in ("1e-400", "1e-2000000", "-1e-99999999999999999999"):
        with pytest.raises(DataError, match="has more than 4 digits behind the point"):
            loaded(io.StringIO(f'[{{"d": {text}}}]'), ".decl edge(d:decimal(18,4))", format="json")


def test_files_of_json(tmp_path: Path) -> None:
    lines = '{"src": 1, "dst": "x"}\n\n  {"dst": "y", "src": 2, "note": {"deep": [1]}}  \n'
    (tmp_path / "e.ndjson").write_text(lines)
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "e.json").write_bytes(b'\xef\xbb\xbf[[1, "x"], [2, "y"]]')
    (tmp_path / "none.ndjson").write_text("\n")
    (tmp_path / "none.json").write_text("[]")
    for name in ("e.ndjson", "e.jsonl.gz"):
        with pytest.warns(DataWarning, match="`note`"):
            assert loaded(tmp_path / name) == [(1, "x"), (2, "y")]
    assert loaded(tmp_path / "e.json") == [(1, "x"), (2, "y")]
    assert loaded([tmp_path / "none.ndjson", tmp_path / "none.json"]) == []
    db = lftj.Database(EDGE + '.input edge(filename="e.json")  out(d) :- edge(_, d).  .output out(filename="o.ndjson")')
    db.read_inputs(tmp_path)
    db.write_outputs(tmp_path)
    assert (tmp_path / "o.ndjson").read_text() == '{"d": "x"}\n{"d": "y"}\n'


@pytest.mark.parametrize("chunk", [1, 2, 50_000])
@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"src": 1, "dst": "x"}\n{"src": 2, "dst": \n', 2, "is not JSON: Expecting value at column 18"),
        ('{"src": 1, "dst": "x"}\n{"src": 2, "dst": "y"} {}\n', 2, "is not JSON: Extra data at column 24"),
        ('[1, "x"]\n\n[2, "y"], [3, "z"]\n', 3, "is not JSON: Extra data at column 9"),
        ('[1, "x"]\n[2,\n "y"]\n[1, "x"], [1, "x"]\n', 2, "is not JSON: Expecting value at column 4"),
        ('[1, "x"]\n[[1]\n[2]]\n[1, "x"], [1, "x"]\n', 2, "is not JSON: Expecting ',' delimiter at column 5"),
        ('[1, "x"]\n[1]\n', 2, "[1] has 1 value where 2 are due"),
        ('[1, "x"]\n5\n', 2, "5 is not a row"),
        ('[1, "x"]\n{"src": 1, "dst": "x"}\n', 2, "{'src': 1, 'dst': 'x'} is not a row"),
        ('{"src": 1.0, "dst": "x"}\n', 1, "column `src` of `edge`: 1.0 is a float, not a number"),
        ('{"src": true, "dst": "x"}\n', 1, "column `src` of `edge`: True is a bool, not a number"),
        (
            '{"src": 9223372036854775808, "dst": "x"}\n',
            1,
            "`edge`: 9223372036854775808 does not fit into number",
        ),
        ('{"src": 1, "dst": "\\ud800"}\n', 1, "column `dst` of `edge`: '\\ud800' is not valid unicode"),
        ("[" * 100_000 + "\n", 1, "is not JSON"),
    ],
)
def test_bad_lines_of_json(
    text: str, line: int, reason: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_text, "CHUNK_ROWS", chunk)
    path = tmp_path / "e.ndjson"
    path.write_text(text)
    with pytest.raises(BadRowsError) as caught:
        loaded(path)
    assert caught.value.where == f"{path}:{line}"
    assert reason in caught.value.what


@pytest.mark.parametrize("other", ['{"src": 1, "dst": "x"}', '{"src": 1, "dst": ":)", "at": "12:00\\":"}'])
@pytest.mark.parametrize(
    ("row", "name"),
    [
        ('{"src": 1, "src": 2, "dst": "x"}', "src"),
        ('{"src": 1, "dst": "x", "dst" : "x"}', "dst"),
        ('{"dst": ":", "src": 1, "s\\u0072c": 2}', "src"),
        ('{"src": 1, "dst": "x", "more": {"dst": 1}, "src": 1}', "src"),
    ],
)
def test_an_object_of_json_that_has_a_column_twice_is_a_bad_row(
    row: str, name: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last value was taken without a word."""
    lines, array = tmp_path / "e.ndjson", tmp_path / "e.json"
    lines.write_text(f"{other}\n\n{row}\n")
    array.write_text(f"[{other}, {row}]")
    with pytest.raises(BadRowsError) as caught:
        loaded(lines)
    assert caught.value.where == f"{lines}:3"
    assert caught.value.what == f"1 bad row: {row!r} has `{name}` twice"
    assert caught.value.why == "a row has one value by each name"
    with pytest.raises(BadRowsError) as caught:
        loaded(array)
    assert caught.value.where == f"{array}, row 1 (from 0)"
    assert caught.value.what.endswith(f" has `{name}` twice")
    for path in (lines, array):
        db = lftj.Database(EDGE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # of columns that are passed over
            db.load("edge", path, on_error="quarantine")
        assert [source for source, _ in db["edge"]] == [1]


def test_what_no_column_reads_may_be_twice_in_an_object_of_json(tmp_path: Path) -> None:
    """An object within an object, which is gone before the next is made, is not taken for it."""
    path = tmp_path / "e.ndjson"
    path.write_text('{"src": 1, "dst": "x", "note": {"src": 1, "src": 2}, "note": 3}\n{"src": 2, "dst": "y"}\n')
    with pytest.warns(DataWarning, match="note"):
        assert loaded(path) == [(1, "x"), (2, "y")]


def test_a_line_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "e.ndjson").write_bytes(b'{"src": 1, "dst": "x"}\n{"src": 1, "dst": "\xff"}\n')
    with pytest.raises(BadRowsError, match=r"e\.ndjson:2: 1 bad row: .* is not UTF-8 text"):
        loaded(tmp_path / "e.ndjson")
    (tmp_path / "g.ndjson").write_bytes(gzip.compress(b"[1]"))
    with pytest.raises(lftj.DataError, match=r"the text begins like a \.gz file"):
        loaded(tmp_path / "g.ndjson")


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ('{"src": 1}', "the file is not an array of rows", "it holds one object"),
        ("[1, 2]\n[3, 4]", "the file is not JSON", "line 2, column 1: Extra data"),
        ("[[1, 2],", "the file is not JSON", "line 1, column 9: Expecting value"),
        ("", "the file is not JSON", "line 1, column 1: Expecting value"),
    ],
)
def test_json_that_is_no_array(text: str, what: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(lftj.DataError) as caught:
        loaded(tmp_path / "e.json")
    assert str(caught.value) == (
        f"{tmp_path / 'e.json'}: {what}\n  why: {why}\n"
        '  do: write an array of objects or arrays; name a file with a row per line .ndjson, or give format="ndjson"'
    )


# --- open files -------------------------------------------------------------------------------------------------------


def test_open_files(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("dst,src\nx,1\n")
    for mode in ("r", "rb"):
        with open(tmp_path / "e.csv", mode) as file:
            assert loaded(file) == [(1, "x")]
            assert not file.closed
    with gzip.open(tmp_path / "e.csv.gz", "wt") as out:
        out.write("1,x\n")
    for mode in ("rt", "rb"):  # its name says what it has taken off already
        with gzip.open(tmp_path / "e.csv.gz", mode) as packed:
            assert loaded(packed) == [(1, "x")]
        with gzip.open(tmp_path / "e.csv.gz", mode) as packed:
            assert loaded(packed, format="csv") == [(1, "x")]
    with open(tmp_path / "e.csv.gz", "rb") as packed:
        assert loaded(packed) == [(1, "x")]
    assert loaded(io.StringIO("1\tx\n"), format="tsv") == [(1, "x")]
    assert loaded(io.BytesIO(b"1;x\n"), delimiter=";") == [(1, "x")]
    assert loaded([io.BytesIO(b"1,x\n"), tmp_path / "e.csv"], format="csv") == [(1, "x")]
    table = pa.table({"src": [1], "dst": ["x"]})
    for name, writer in (("parquet", pa.parquet.write_table), ("arrow", None)):
        sink = io.BytesIO()
        if writer:
            writer(table, sink)
        else:
            with pa.ipc.new_file(sink, table.schema) as made:
                made.write_table(table)
        sink.seek(0)
        assert loaded(sink) == [(1, "x")], name
    text = io.StringIO("a line before\n1,x\n")
    text.readline()
    assert loaded(text, format="csv") == [(1, "x")]


def test_open_files_that_do_not_say_what_they_are() -> None:
    with pytest.raises(lftj.DataError) as caught:
        loaded(io.StringIO("1,x\n"))
    assert str(caught.value) == (
        "StringIO: nothing tells the format of the open file\n"
        "  why: it has no name with a known extension\n"
        '  do: give format="csv", or another: tsv, json, ndjson, parquet, arrow'
    )
    closed = io.StringIO("1,x\n")
    closed.close()
    with pytest.raises(lftj.DataError, match="StringIO: the open file cannot be read"):
        loaded(closed, format="csv")
    with pytest.raises(lftj.DataError, match="format= is for files; the source is a list"):
        loaded([(1, "x")], format="csv")
    with pytest.raises(lftj.DataError, match="format='xls' is unknown"):
        loaded(io.StringIO(""), format="xls")


def test_format_overrides_a_name(tmp_path: Path) -> None:
    (tmp_path / "e.data").write_text("1,x\n")
    assert loaded(tmp_path / "e.data", format="csv") == [(1, "x")]
    (tmp_path / "e.txt").write_text('{"src": 1, "dst": "x"}\n')
    assert loaded(tmp_path / "e.txt", format="ndjson") == [(1, "x")]
    (tmp_path / "e.bin").write_bytes(gzip.compress(b"1,x\n"))
    assert loaded(tmp_path / "e.bin", format="csv.gz") == [(1, "x")]


# --- headers ----------------------------------------------------------------------------------------------------------


def test_a_first_line_that_fits_in_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("name,city\nAnn,Bonn\n")
    db = lftj.Database(".decl p(name:symbol, town:symbol)")
    with pytest.raises(lftj.DataError) as caught:
        db.load("p", path)
    assert str(caught.value) == (
        f"{path}:1: the first line names `name`, but not `town` once\n"
        "  why: it may be a header that does not fit p(name:symbol, town:symbol), or a row\n"
        "  do: if it is a row, say header=False; else say which column is which, as in "
        "columns={'name': 'name', 'town': 'city'}"
    )
    db.load("p", path, columns={"name": "name", "town": "city"})
    assert list(db["p"]) == [("Ann", "Bonn")]
    db.load("p", path, header=False)
    assert ("name", "city") in db["p"]


def test_a_first_line_with_a_name_as_a_text_elsewhere_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("1\tid\n2\tb\n")
    db = lftj.Database(".decl p(id:number, of:symbol)")
    db.load("p", path)
    assert list(db["p"]) == [(1, "id"), (2, "b")]


# --- URLs -------------------------------------------------------------------------------------------------------------


def test_urls() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/facts/a.csv", b"1,x\n")
    memory.pipe("/facts/b.csv", b"2,y\n")
    memory.pipe("/facts/c.ndjson.gz", gzip.compress(b'{"src": 3, "dst": "z"}\n'))
    try:
        assert loaded("memory://facts/a.csv") == [(1, "x")]
        assert loaded("memory://facts/*.csv") == [(1, "x"), (2, "y")]
        assert loaded(["memory://facts/b.csv", "memory://facts/c.ndjson.gz"]) == [(2, "y"), (3, "z")]
        with memory.open("/facts/a.csv") as file:
            assert loaded(file, format="csv") == [(1, "x")]
        with pytest.raises(lftj.DataError) as caught:
            loaded("memory://facts/d.csv")
        assert str(caught.value) == (
            "memory://facts/d.csv: no such file\n"
            "  why: a source must be there when it is loaded; nothing was\n"
            "  do: check the URL"
        )
        with pytest.raises(lftj.DataError, match="no file matches the pattern"):
            loaded("memory://facts/*.tsv")
        with pytest.raises(lftj.DataError, match=r"nothere://x/e\.csv: the file cannot be fetched"):
            loaded("nothere://x/e.csv")
        memory.pipe("/facts/bad.csv", b"1,x\nz,y\n")
        with pytest.raises(BadRowsError, match=r"memory://facts/bad\.csv:2: "):
            loaded("memory://facts/bad.csv")
    finally:
        memory.rm("/facts", recursive=True)


def test_urls_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(lftj.DataError) as caught:
        loaded("s3://bucket/e.csv")
    assert str(caught.value) == (
        "s3://bucket/e.csv: this is a URL, and fsspec is not installed\n"
        "  why: files that are not on this machine are fetched by fsspec\n"
        "  do: pip install fsspec, and the package of the store (s3fs, gcsfs, adlfs, aiohttp, ...)"
    )
