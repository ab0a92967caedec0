"""Columns beyond those of a relation, and the columns of a relation that nobody declared.

Catches: a frame refused though all names match, a column passed over without a word or more than once, columns matched
by the names of a rule's variables, a row of data taken for a header because of these.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import lftj
from lftj.errors import DataWarning

COLUMNS = {"w": [7, 8], "dst": [2, 3], "note": ["a", "b"], "src": [1, 2]}
NOTE = (
    "{}: columns passed over: `w`, `note`\n"
    "  why: e(src:number, dst:number) has no such columns, and all of its own are there by name\n"
    '  do: pick the columns with columns=, or refuse such sources with extra="error"'
)


def sources(folder: Path) -> dict[str, Any]:
    table = pa.table(COLUMNS)
    pyarrow.parquet.write_table(table, folder / "e.parquet")
    with pa.OSFile(str(folder / "e.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    pd.DataFrame(COLUMNS).to_csv(folder / "e.csv", index=False)
    structured = np.array(list(zip(*COLUMNS.values(), strict=True)), "i8,i8,U1,i8")
    structured.dtype.names = tuple(COLUMNS)
    return {
        "DataFrame": pd.DataFrame(COLUMNS),
        "polars": pl.DataFrame(COLUMNS),
        "Table": table,
        "dict": COLUMNS,
        "numpy array": structured,
        **{name: str(folder / name) for name in ("e.parquet", "e.arrow", "e.csv")},
    }


@pytest.mark.parametrize(
    "kind", ["DataFrame", "polars", "Table", "dict", "numpy array", "e.parquet", "e.arrow", "e.csv"]
)
def test_extra_columns_are_passed_over_with_a_note(kind: str, tmp_path: Path) -> None:
    source = sources(tmp_path)[kind]
    db = lftj.Database(".decl e(src:number, dst:number)")
    with pytest.warns(DataWarning) as told:
        db.load("e", source)
    name = {"polars": "DataFrame"}.get(kind, source if isinstance(source, str) else kind)
    assert [str(warning.message) for warning in told] == [NOTE.format(name)]
    assert told[0].filename == __file__
    assert list(db["e"]) == [(1, 2), (2, 3)]
    with pytest.raises(lftj.DataError, match="4 columns"):
        db.load("e", source, extra="error")
    with db.transaction() as tx:
        for extra in ("insert", "erase"):
            with pytest.warns(DataWarning, match="columns passed over") as told:
                getattr(tx, extra)("e", source)
            assert told[0].filename == __file__
        with pytest.raises(lftj.DataError, match="4 columns"):
            tx.erase("e", source, extra="error")
    assert list(db["e"]) == []


def test_a_refusal_of_extra_columns_says_what_refused_them() -> None:
    """It said that the names differ; and of a name that is there twice, to pick the column by it."""
    db = lftj.Database(".decl e(src:number, dst:number)")
    with pytest.raises(lftj.DataError) as caught:
        db.load("e", [{"src": 1, "dst": 2, "w": 3}], extra="error")
    assert caught.value.why == 'all columns of the relation are there by name, and extra="error" refuses others'
    twice = pd.DataFrame([[1, 2, 3]], columns=["src", "dst", "src"])
    with pytest.raises(lftj.DataError, match="where the names differ") as caught:
        db.load("e", twice)
    assert caught.value.remedy == "pick the columns: columns={'src': 0, 'dst': 1}"
    db.load("e", twice, columns={"src": 0, "dst": 1})
    assert list(db["e"]) == [(1, 2)]


def test_the_note_is_one_for_several_files(tmp_path: Path) -> None:
    sources(tmp_path)
    db = lftj.Database(".decl e(src:number, dst:number)")
    with pytest.warns(DataWarning) as told:
        db.load("e", [str(tmp_path / "e.csv"), str(tmp_path / "e.parquet")])
    assert len(told) == 1
    assert "`w`, `note` (and so in 1 more)" in str(told[0].message)


def test_columns_that_are_named_are_no_extra(tmp_path: Path) -> None:
    db = lftj.Database(".decl e(src:number, dst:number)  .decl u()")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db.load("e", COLUMNS, columns={"src": "src", "dst": "w"})
        with pytest.raises(lftj.DataError, match="3 columns"):  # positions say nothing about a third column
            db.load("e", {"a": [1], "b": [2], "c": [3]})
        with pytest.raises(lftj.DataError, match="3 columns"):  # one of the names is missing
            db.load("e", {"src": [1], "b": [2], "c": [3]})
        with pytest.raises(lftj.DataError, match="3 columns"):  # which `src`?
            db.load("e", pa.table([[1], [2], [3]], names=["src", "src", "dst"]))
        with pytest.raises(lftj.DataError, match="1 column"):
            db.load("u", {"a": [1]})
    assert list(db["e"]) == [(1, 7), (2, 8)]


UNDECLARED = ".decl q(t:symbol)\np(x, y) :- q(x), q(y)."


def test_names_of_variables_match_no_data(tmp_path: Path) -> None:
    """A rule's variables may be renamed; what a frame means must not depend on it."""
    db = lftj.Database(UNDECLARED)
    assert list(db["p"].columns) == ["x", "y"]
    db.load("p", pd.DataFrame({"a": ["1"], "b": ["2"]}))
    db.load("p", pd.DataFrame({"x": ["3"], "y": ["4"]}))
    with pytest.raises(lftj.DataError) as caught:
        db.load("p", pd.DataFrame({"y": ["5"], "x": ["6"]}))
    assert str(caught.value) == (
        "DataFrame: the columns `y`, `x` are those of p(x:symbol, y:symbol) in another order\n"
        "  why: `p` is not declared: its columns have the names of a rule's variables\n"
        "  do: declare it, or say which is which: columns={'x': 'x', 'y': 'y'}"
    )
    db.load("p", pd.DataFrame({"y": ["5"], "x": ["6"]}), columns={"x": "x", "y": "y"})
    with pytest.raises(lftj.DataError, match="3 columns"):
        db.load("p", {"x": ["1"], "y": ["2"], "z": ["3"]})
    assert list(db["p"]) == [("1", "2"), ("3", "4"), ("6", "5")]


def test_a_first_line_of_variables_is_no_header_unless_said(tmp_path: Path) -> None:
    db, path = lftj.Database(UNDECLARED), tmp_path / "p.csv"
    path.write_text("y,x\na,b\n")
    with pytest.raises(lftj.DataError) as caught:
        db.load("p", path)
    assert str(caught.value) == (
        f"{path}:1: the first line may be a header or a row of p(x:symbol, y:symbol)\n"
        "  why: `p` is not declared: its columns have the names of a rule's variables\n"
        "  do: say header=True or header=False, or declare it"
    )
    db.load("p", path, header=False)
    assert list(db["p"]) == [("a", "b"), ("y", "x")]
