"""The forms in which rows leave: each holds the same rows, names and types, and is read back to the same relation.

Catches: a form without names, rows in another order or lost, a file that appears half written, a delta whose signs are
those of other rows, a table of DuckDB that is replaced though nobody asked.
"""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj import streams
from lftj.errors import MissingPackageError
from lftj.results import tabular
from tests.conftest import examples

PROGRAM = ".decl p(s:symbol, n:number, u:unsigned, x:float)  q(n, s) :- p(s, n, _, _)."
ROWS = [
    ("", -(2**63), 2**64 - 1, -float("inf")),
    ('a "b", c', 0, 0, 0.1),
    ("line\nend\ttab", 2**63 - 1, 7, 1e-300),
    ("é\x00", 5, 1, 5.0),
]
NAMES = ["s", "n", "u", "x"]


def database(rows: list[tuple[Any, ...]] = ROWS) -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("p", rows)
    return db


FORMS = {
    "arrow": lambda t: t.to_arrow(),
    "arrow, short": lambda t: t.arrow(),
    "pandas": lambda t: t.to_pandas(),
    "pandas, short": lambda t: t.df(),
    "polars": lambda t: t.to_polars(),
    "polars, short": lambda t: t.pl(),
    "numpy": lambda t: t.to_numpy(),
    "numpy, short": lambda t: t.numpy(),
    "pa.table": pa.table,
    "pl.DataFrame": pl.DataFrame,
    "pd.DataFrame": pd.DataFrame,
    "duckdb": lambda t: duckdb.sql("select * from t").to_arrow_table(),
}


def names_of(table: Any) -> list[str]:
    if isinstance(table, np.ndarray):
        return list(table.dtype.names)
    return list(table.column_names if isinstance(table, pa.Table) else table.columns)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", ["relation", "query", "snapshot"])
def test_every_form_has_the_names_and_the_rows(form: str, what: str) -> None:
    db = database()
    given = {"relation": db["p"], "query": db.query("p(s, n, u, x)"), "snapshot": db.snapshot()["p"]}[what]
    made = FORMS[form](given)
    assert names_of(made) == NAMES
    other = lftj.Database(PROGRAM)
    other.load("p", made)
    assert list(other["p"]) == ROWS
    if isinstance(made, pa.Table):
        assert made.schema.types == [pa.string(), pa.int64(), pa.uint64(), pa.float64()]


def test_rows_are_tuples_whatever_pandas_makes_of_them() -> None:
    rows = list(database()["p"])
    assert rows == ROWS
    assert repr(rows) == repr(ROWS)
    assert {*map(hash, rows)} == {*map(hash, ROWS)}
    assert all(type(row) is tuple for row in pickle.loads(pickle.dumps(rows)))
    db = lftj.Database(".decl e(a:number, b:number)  .decl r(b:number, a:number)  e(1, 2).")
    with db.transaction() as tx:
        tx.insert("r", list(db["e"]))  # plain rows, by position
    assert list(db["r"]) == [(1, 2)]


def test_files_are_read_back(tmp_path: Path) -> None:
    db = database()
    for name in ("p.csv", "p.csv.gz", "p.csv.zst", "p.data"):
        db["p"].to_csv(tmp_path / name)
    db["p"].to_parquet(tmp_path / "p.parquet")
    db.query("p(s, n, u, x)").to_parquet(str(tmp_path / "q.parquet"))
    for name in ("p.csv", "p.csv.gz", "p.csv.zst", "p.parquet", "q.parquet"):
        other = lftj.Database(PROGRAM)
        other.load("p", tmp_path / name)
        assert list(other["p"]) == ROWS, name
    first = (tmp_path / "p.csv").read_bytes()
    assert first.startswith(b"s,n,u,x\n")
    assert gzip.decompress((tmp_path / "p.csv.gz").read_bytes()) == (tmp_path / "p.data").read_bytes() == first
    assert pyarrow.parquet.read_schema(tmp_path / "p.parquet").names == NAMES
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "p.csv", "p.csv.gz", "p.csv.zst", "p.data", "p.parquet", "q.parquet",
    ]  # fmt: skip


def test_streams_and_options_of_text(tmp_path: Path) -> None:
    db = lftj.Database('.decl e(a:number, b:symbol)  e(1, "x"). e(2, "y;").')
    text, file = io.BytesIO(), io.BytesIO()
    db["e"].to_csv(text, header=False)
    db["e"].to_parquet(file)
    assert text.getvalue() == b"1,x\n2,y;\n"
    assert pyarrow.parquet.read_table(io.BytesIO(file.getvalue())).to_pydict() == {"a": [1, 2], "b": ["x", "y;"]}
    db["e"].to_csv(tmp_path / "e.tsv")
    assert (tmp_path / "e.tsv").read_text() == "a\tb\n1\tx\n2\ty;\n"
    db["e"].to_csv(tmp_path / "e", delimiter=";", quoting=True)
    assert (tmp_path / "e").read_text() == 'a;b\n1;x\n2;"y;"\n'
    with pytest.raises(lftj.DataError, match="holds the delimiter ';' or a line end"):
        db["e"].to_csv(tmp_path / "f", delimiter=";", quoting=False)
    with pytest.raises(lftj.DataError) as caught:
        db["e"].to_csv(io.StringIO())
    assert str(caught.value) == (
        "rows cannot be written to a StringIO\n"
        "  why: files are written as bytes\n"
        '  do: give a path, or a binary stream such as `open(name, "wb")` or `sys.stdout.buffer`'
    )
    with pytest.raises(lftj.DataError, match="does not exist"):
        db["e"].to_parquet(tmp_path / "no" / "e.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "e.tsv"]


def test_no_rows_and_no_columns(tmp_path: Path) -> None:
    db = lftj.Database(".decl e(a:number, b:symbol)  .decl yes()  yes().")
    for form in ("arrow", "pa.table", "pl.DataFrame", "pandas", "duckdb"):
        made = FORMS[form](db["e"])
        assert (names_of(made), len(made)) == (["a", "b"], 0)
    db["e"].to_csv(tmp_path / "e.csv")
    assert (tmp_path / "e.csv").read_text() == "a,b\n"
    assert len(db["yes"].to_arrow()) == 1
    assert db["yes"].to_numpy().shape == (1, 0)
    with pytest.raises(lftj.DataError, match="holds no rows without columns"):
        db["yes"].to_parquet(io.BytesIO())


def test_duckdb_tables() -> None:
    db = database()
    with duckdb.connect() as connection:
        db["p"].to_duckdb(connection, 'a "table"')
        shown = connection.sql('select n, u from "a ""table""" order by n').fetchall()
        assert shown == sorted(row[1:3] for row in ROWS)
        with pytest.raises(duckdb.CatalogException):
            db["q"].to_duckdb(connection, 'a "table"')
        db["q"].to_duckdb(connection, 'a "table"', replace=True)
        assert connection.sql('describe "a ""table"""').fetchall()[0][0] == "n"
        assert len(connection.sql("show tables").fetchall()) == 1  # nothing else is left behind
        with pytest.raises(lftj.DataError, match="`name` cannot be 5"):
            db["q"].to_duckdb(connection, 5)  # type: ignore[arg-type]
    with pytest.raises(lftj.DataError, match=r"give `duckdb\.connect\(\)`"):
        db["p"].to_duckdb("shop.db", "p")


def test_duckdb_has_no_table_without_columns() -> None:
    db = lftj.Database(".decl yes()  yes().")
    with duckdb.connect() as connection:
        with pytest.raises(lftj.DataError, match="holds no rows without columns"):
            db["yes"].to_duckdb(connection, "yes")
        assert not connection.sql("show tables").fetchall()


@examples(40, 5)
@given(st.data())
def test_deltas_take_one_database_to_another(data: st.DataObject) -> None:
    """What a delta says as a table, replayed row by row, makes the old rows the new ones."""
    rows = st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "z", ""]))
    db = lftj.Database(".decl e(a:number, b:symbol)")
    db.load("e", data.draw(st.lists(rows)))
    before = set(db["e"])
    with db.transaction() as tx:
        tx.insert("e", data.draw(st.lists(rows)))
        tx.erase("e", data.draw(st.lists(rows)))
    delta = tx.delta["e"]
    for made in (delta.to_arrow().to_pylist(), delta.to_pandas().to_dict("records"), delta.to_polars().to_dicts()):
        after = set(before)
        for row in made:
            assert list(row) == ["a", "b", "_op"]
            (after.add if row["_op"] == 1 else after.remove)((row["a"], row["b"]))
        assert after == set(db["e"])
    signs = [row["_op"] for row in delta.to_arrow().to_pylist()]
    assert signs == sorted(signs)
    assert pa.table(delta).equals(delta.to_arrow())


def test_a_column_of_that_name_is_kept_apart() -> None:
    db = lftj.Database(".decl e(_op:number)  .decl yes()")
    with db.transaction() as tx:
        tx.insert("e", [(7,)])
        tx.insert("yes", [()])
    assert tx.delta["e"].to_arrow().to_pydict() == {"_op": [7], "__op": [1]}
    assert tx.delta["yes"].to_arrow().to_pydict() == {"_op": [1]}


def test_deltas_of_streams_have_weights() -> None:
    z = streams.zset([("b", 1), ("a", 2)], [2, -1])
    assert z.to_arrow().to_pylist() == [
        {"c0": "a", "c1": 2, "_weight": -1},
        {"c0": "b", "c1": 1, "_weight": 2},
    ]
    assert z.to_pandas()["_weight"].tolist() == pl.DataFrame(z)["_weight"].to_list() == [-1, 2]


@pytest.mark.parametrize(("package", "give"), [("pandas", lambda t: t.df()), ("polars", lambda t: t.pl())])
def test_a_package_that_is_not_installed(package: str, give: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "find_spec", lambda name: None)
    db = lftj.Database("e(1).")
    with pytest.raises(MissingPackageError) as caught:
        give(db["e"])
    assert str(caught.value).splitlines() == [
        f"a frame of {package} needs the package {package}, which is not installed",
        f"  why: lftj makes and reads such frames, and is installed without {package}",
        f"  do: pip install {package}; or give an Arrow table or an array, by `to_arrow()` or `to_numpy()`",
    ]
