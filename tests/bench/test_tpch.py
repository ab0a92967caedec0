"""TPC-H's tables and queries: every query answers over the tables generated here, keys are keys and references hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.tpch_made import made
from bench.tpch_queries import QUERIES, TABLES

duckdb = pytest.importorskip("duckdb")

REFERENCES = (
    ("nation", "n_regionkey", "region", "r_regionkey"),
    ("supplier", "s_nationkey", "nation", "n_nationkey"),
    ("customer", "c_nationkey", "nation", "n_nationkey"),
    ("orders", "o_custkey", "customer", "c_custkey"),
    ("lineitem", "l_orderkey", "orders", "o_orderkey"),
    ("lineitem", "l_partkey, l_suppkey", "partsupp", "ps_partkey, ps_suppkey"),
    ("partsupp", "ps_partkey", "part", "p_partkey"),
    ("partsupp", "ps_suppkey", "supplier", "s_suppkey"),
)


@pytest.fixture(scope="module")
def loaded() -> Any:
    """The tables at scale 0.001 in DuckDB, which refuses two rows with one key."""
    connection = duckdb.connect()
    for name, table in made(0.001).items():
        connection.execute(TABLES[name])
        connection.register("rows", table)
        connection.execute(f"insert into {name} select * from rows")
        connection.unregister("rows")
    return connection


@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: query.name)
def test_every_query_answers(loaded: Any, query: Any) -> None:
    rows = loaded.execute(query.body).fetchall()
    assert rows
    assert all(value is not None for row in rows for value in row)
    assert set(loaded.execute(query.text).fetchall()) <= set(rows)


def test_references_hold(loaded: Any) -> None:
    for table, columns, to, keys in REFERENCES:
        missing = f"select {columns} from {table} except select {keys} from {to}"
        assert loaded.execute(missing).fetchall() == [], (table, columns)


def test_the_same_seed_gives_the_same_rows() -> None:
    first, again, other = made(0.001), made(0.001), made(0.001, seed=33)
    assert all(first[name].equals(again[name]) for name in TABLES)
    assert not first["lineitem"].equals(other["lineitem"])
    assert np.array_equal([first[name].num_rows for name in ("part", "customer", "orders")], [200, 150, 1_500])
