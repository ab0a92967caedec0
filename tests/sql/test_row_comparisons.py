"""Comparisons of rows, which are true, false or unknown: over nulls as in SQLite, and without as in DuckDB.

DuckDB takes null for a value in rows, which is not what the standard says. Catches: a row that is false where it is
unknown, a later value that decides though an earlier one is null, and pages that leave a row out.
"""

from __future__ import annotations

import sqlite3
from itertools import product
from random import Random
from typing import Any

import pytest

import lftj
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")
pytest.importorskip("duckdb")

TABLE = "create table t (k int primary key, a int, b int, c int, x int not null, y int not null, z int not null)"
ROWS = [
    ("(a, b)", "(x, y)"),
    ("(x, b)", "(1, null)"),
    ("(a, b)", "(b, c)"),
    ("(a, x, c)", "(z, y, b)"),
    ("(x, y, z)", "(z, x, 2)"),
    ("(x, y)", "(y, 1)"),
]
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def three() -> tuple[lftj.Database, Any, sqlite3.Connection]:
    """One table in all of them."""
    random = Random(3)
    picks = (*[(None, 1, 2)] * 3, *[(1, 2)] * 3)
    rows = [(k, *map(random.choice, picks)) for k in range(120)]
    db, duck, lite = lftj.Database(), duckdb_database(), sqlite3.connect(":memory:")
    db.sql(TABLE)
    db.load("t", rows)
    for other in (duck, lite):
        other.execute(TABLE)
        other.executemany("insert into t values (?, ?, ?, ?, ?, ?, ?)", rows)
    return db, duck, lite


@pytest.mark.parametrize(("sides", "op"), list(product(ROWS, OPERATORS)))
def test_rows_are_compared(
    three: tuple[lftj.Database, Any, sqlite3.Connection], sides: tuple[str, str], op: str
) -> None:
    db, duck, lite = three
    said = f"{sides[0]} {op} {sides[1]}"
    values = f"select k, {said}, not ({said}), ({said}) is null from t order by k"
    expected = [
        (k, *(None if value is None else bool(value) for value in rest)) for k, *rest in lite.execute(values).fetchall()
    ]
    assert list(map(tuple, db.sql(values))) == expected
    assert list(map(tuple, db.sql(f"select k from t where {said} order by k"))) == [
        (k,) for k, true, *_ in expected if true
    ]
    if not set("abc") & set(said):  # nothing is null
        assert duck.execute(values).fetchall() == expected


def test_pages_have_each_row_once() -> None:
    """By parameters, of which each page has others."""
    db = lftj.Database()
    db.sql("create table p (day int not null, id int not null, primary key (day, id))")
    rows = sorted((k % 5, k) for k in range(40))
    db.load("p", rows)
    found, last = [], (-1, -1)
    while page := list(
        map(
            tuple,
            db.sql(
                "select day, id from p where (day, id) > ($day, $id) order by day, id limit 7", day=last[0], id=last[1]
            ),
        )
    ):
        found += page
        last = page[-1]
    assert found == rows
