"""A new format of files is one entry of the table: found, read, written, named in messages, used by directives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import pytest

import lftj
from lftj.io.content import Content
from lftj.io.convert import list_part
from lftj.io.file import File, FormatError
from lftj.io.formats import FORMATS, Format, known_extensions, known_formats
from lftj.io.read_options import ReadOptions
from lftj.io.staging import Staging
from lftj.io.write import write
from lftj.values.gate import to_rows


def read_json(file: File, staging: Staging, options: ReadOptions) -> None:
    with file.reading(), file.open() as stream:
        columns = json.loads(stream.read())
    positions = staging.pick(options.columns, list(columns), len(columns), file.name)
    held = [list(columns.values())[at] for at in positions]
    parts = [list_part(values, column.type) for values, column in zip(held, staging.schema.columns, strict=True)]
    staging.add(file.name, parts, range(len(held[0])))


def write_json(content: Content, sink: IO[bytes]) -> None:
    rows = to_rows(content.schema, content.columns, content.symbols, rows=content.rows)
    sink.write(json.dumps(dict(zip(content.schema.names, zip(*rows, strict=True), strict=True))).encode())


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(FORMATS, "grid", Format("grid", {".grid": ""}, read_json, write_json))
    monkeypatch.chdir(tmp_path)


def test_it_is_read_and_written_back() -> None:
    Path("e.grid").write_text('{"dst": ["x", "y"], "src": [1, 2]}')
    db = lftj.Database(".decl edge(src:number, dst:symbol)")
    db.load("edge", "*.grid")
    relation = db["edge"]
    assert list(relation) == [(1, "x"), (2, "y")]
    write(relation._schema, relation._sorted, relation._symbols, "out.grid")
    assert json.loads(Path("out.grid").read_text()) == {"src": [1, 2], "dst": ["x", "y"]}
    with db.transaction() as tx:
        tx.erase("edge", "out.grid", columns={"src": "src", "dst": 1})
    assert list(db["edge"]) == []


def test_directives_use_it() -> None:
    Path("edge.grid").write_text('{"src": [3], "dst": ["z"]}')
    db = lftj.Database("""
        .decl edge(src:number, dst:symbol)
        .input edge(filename="edge.grid")
        back(y, x) :- edge(x, y).
        .output back(filename="back.grid")
    """)
    db.read_inputs(".")
    db.write_outputs(".")
    assert json.loads(Path("back.grid").read_text()) == {"y": ["z"], "x": [3]}


def test_options_of_text_do_not_apply() -> None:
    Path("e.grid").write_text('{"src": [1]}')
    db = lftj.Database(".decl e(src:number)")
    with pytest.raises(lftj.DataError, match="header= does not apply to a grid file"):
        db.load("e", "e.grid", header=True)
    with pytest.raises(lftj.DataError, match="delimiter= does not apply to a grid file"):
        db.load("e", "e.grid", delimiter=",")
    Path("e.grid.gz").write_bytes(b"")
    with pytest.raises(FormatError, match=r"a grid file inside \.gz is not read"):
        db.load("e", "e.grid.gz")


def test_messages_list_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_extensions() == (
        ".csv, .tsv, .txt, .facts, .json, .ndjson (each also .gz or .zst), .parquet, .arrow, .feather, .ipc or .grid"
    )
    assert known_formats() == "text, json, ndjson, parquet, arrow and grid"
    Path("e.grid").write_text("{}")
    monkeypatch.delitem(FORMATS, "grid")
    with pytest.raises(FormatError, match=r"the extension '\.grid' tells no format") as error:
        lftj.Database(".decl e(src:number)").load("e", "e.grid")
    assert error.value.why == (
        "known are .csv, .tsv, .txt, .facts, .json, .ndjson (each also .gz or .zst), .parquet, .arrow, .feather or .ipc"
    )


def test_a_file_of_it_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: File, staging: Staging, options: ReadOptions) -> None:
        with file.reading():
            raise OSError("no such magic")

    monkeypatch.setitem(FORMATS, "grid", Format("grid", {".grid": ""}, broken, write_json))
    Path("e.grid").write_text("{")
    with pytest.raises(lftj.DataError, match="the file cannot be read as grid"):
        lftj.Database(".decl e(src:number)").load("e", "e.grid")
