"""TPC-H's tables and queries: every query answers over the tables generated here, keys are keys and references hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench import tpch_data
from bench.tpch_made import made
from bench.tpch_queries import QUERIES, TABLES
from bench.tpch_stream import Stream

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


# -- the stream --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stream() -> Stream:
    return Stream(made(0.001))


def keys_of(name: str, table: Any) -> list[tuple[Any, ...]]:
    width = 2 if name == "partsupp" else 1
    columns = ["l_orderkey", "l_linenumber"] if name == "lineitem" else table.column_names[:width]
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


@pytest.mark.parametrize("size", [1, 100])
def test_what_a_row_refers_to_is_there(stream: Stream, size: int) -> None:
    there: dict[str, set[Any]] = {name: set() for name in TABLES}

    def refers(name: str, block: Any) -> bool:
        return all(
            set(zip(*(block[c].to_pylist() for c in columns.split(", ")), strict=True)) <= there[to]
            for table, columns, to, _ in REFERENCES
            if table == name
        )

    count = 0
    parts = (("inserts", 100_000), ("deletes", 1_000))
    for blocks in (blocks for part, limit in parts for blocks in stream.batches(part, size, limit)):
        for name, sign, block in blocks:
            keys = set(keys_of(name, block))
            assert len(keys) == block.num_rows
            count += len(keys)
            if sign > 0:
                assert refers(name, block)
                assert not keys & there[name]
                there[name] |= keys
            else:
                assert keys <= there[name]
                there[name] -= keys
    assert count == min(len(stream), stream.inserts + 1_000)
    left = stream.contents(count)
    assert {name: set(keys_of(name, table)) for name, table in left.items()} == there


def test_tables_come_side_by_side_and_orders_go_with_their_lines(stream: Stream) -> None:
    half = stream.contents(stream.inserts // 2)
    assert all(half[name].num_rows > 0 for name in TABLES)
    assert all(half[name].num_rows < stream.tables[name].num_rows for name in ("orders", "lineitem", "customer"))
    middle, end = stream.contents(stream.inserts), stream.contents(len(stream))
    assert middle["orders"].num_rows == end["orders"].num_rows == 1_350
    gone = set(keys_of("orders", middle["orders"])) - set(keys_of("orders", end["orders"]))
    assert gone == set(keys_of("orders", stream.tables["orders"].slice(0, 150)))
    assert not gone & set(zip(end["lineitem"]["l_orderkey"].to_pylist()))


def test_batches_have_the_size_asked_for(stream: Stream) -> None:
    sizes = [sum(rows.num_rows for _, _, rows in blocks) for blocks in stream.batches("inserts", 1_000)]
    assert set(sizes[:-1]) == {1_000}
    assert sum(sizes) == stream.inserts


# -- where tables come from --------------------------------------------------------------------------------------------


def test_without_the_generator_tables_are_made_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable(scale: float, where: Path) -> None:
        raise tpch_data.Unavailable("no network")

    monkeypatch.setattr(tpch_data, "CACHE", tmp_path)
    monkeypatch.setattr(tpch_data, "_generate", unavailable)
    assert tpch_data.tables(0.001)["lineitem"].equals(made(0.001)["lineitem"])
    assert tpch_data.source(0.001) == "made"
    assert "no network" in capsys.readouterr().err


def test_tables_that_were_generated_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = made(0.001, seed=5)

    def generate(scale: float, where: Path) -> None:
        where.mkdir()
        for name, table in given.items():
            pq.write_table(table, where / f"{name}.parquet")

    monkeypatch.setattr(tpch_data, "CACHE", tmp_path)
    monkeypatch.setattr(tpch_data, "_generate", generate)
    assert all(table.equals(given[name]) for name, table in tpch_data.tables(0.001).items())
    monkeypatch.setattr(tpch_data, "_generate", None)  # the second time nothing is generated
    assert list(tpch_data.tables(0.001)) == list(TABLES)
    assert tpch_data.source(0.001) == "dbgen"


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(tpch_data.Unavailable, match="no such thing"):
        tpch_data._run(sys.executable, "-c", "raise SystemExit('no such thing')")
    with pytest.raises(tpch_data.Unavailable, match="not-there"):
        tpch_data._run("/not-there")
