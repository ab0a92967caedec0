"""What the planner knows of relations: exact of small ones, of large ones from a part of their pages.

Catches: prefixes that are counted twice where directory pages meet, keys of many rows that a sample misses, estimates
beyond what there is.
"""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.plan import statistics
from lftj.plan.statistics import Statistics
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema
from scantree.memory import Arena
from tests.conftest import JIT


def relation(rows: list[tuple[int, ...]]) -> object:
    db = lftj.Database._sized(".decl r(x:number, y:number, z:number)", page_rows=4, directory_rows=2)
    db.load("r", rows)
    stored = db._relations["r"]
    for order in permutations(range(3)):
        stored.order(order)
    return stored


def distinct(rows: list[tuple[int, ...]], columns: frozenset[int]) -> int:
    return len({tuple(row[c] for c in sorted(columns)) for row in rows})


SETS = [frozenset(columns) for columns in ({0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2})]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 40)), max_size=60))
def test_prefixes_of_key_orders_are_counted(rows: list[tuple[int, ...]]) -> None:
    found = Statistics(relation(rows))  # type: ignore[arg-type]
    assert {columns: found.distinct(columns) for columns in SETS} == {s: max(1, distinct(rows, s)) for s in SETS}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 40)), min_size=8, max_size=60))
def test_of_a_part_of_the_pages_nothing_is_beyond_what_there_is(rows: list[tuple[int, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "PROFILED", 4)
        found = Statistics(relation(rows))  # type: ignore[arg-type]
        for columns in SETS:
            assert 1 <= found.distinct(columns) <= len(set(rows))
        assert found.distinct(frozenset({0, 1, 2})) == len(set(rows))


def test_a_part_of_the_pages_tells_about_as_much_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    n = 20_000 if JIT else 2_000
    rows = list(zip(*(rng.integers(0, most, n).tolist() for most in (3, n // 8, 10 * n)), strict=True))
    monkeypatch.setattr(statistics, "PROFILED", n // 16)
    found = Statistics(relation(rows))  # type: ignore[arg-type]
    for columns in SETS:
        assert found.distinct(columns) == pytest.approx(distinct(rows, columns), rel=0.25), columns


def test_what_is_known_of_a_large_relation_outlives_small_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "LARGE", 100)
    db = lftj.Database(".decl r(x:number, y:number)")
    db.load("r", [(i % 20, i) for i in range(1000)])
    column, first = frozenset({0}), db._relations["r"].statistics
    assert first.distinct(column) == 20
    counted: list[object] = []
    monkeypatch.setattr(Statistics, "_profile", lambda *args: counted.append(args))
    for i in range(4):
        with db.transaction() as tx:
            tx.insert("r", [(100 + i, 0), (200 + i, 0)])
        found = db._relations["r"].statistics
        assert (found.rows, found.changed, found.distinct(column)) == (1002 + 2 * i, 2 + 2 * i, 20)
        assert found.distinct(frozenset({0, 1})) == found.rows
    assert counted == []
    with db.transaction() as tx:
        tx.insert("r", [(300 + i, 0) for i in range(4)])
    found = db._relations["r"].statistics
    assert found.changed == 0  # more than a hundredth: it is counted again
    found.distinct(column)
    assert len(counted) == 1


def test_what_is_known_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = relation([(i % 3, i % 7, i) for i in range(40)])
    found = stored.statistics  # type: ignore[attr-defined]
    distinct_of = {columns: found.distinct(columns) for columns in SETS}
    noted = json.loads(json.dumps(stored.noted_statistics(counted=False)))  # type: ignore[attr-defined]
    monkeypatch.setattr(statistics, "prefix_counts", None)
    again = Statistics.of_noted(stored, noted)  # type: ignore[arg-type]
    assert {columns: again.distinct(columns) for columns in SETS} == distinct_of


def test_a_sample_is_of_rows_that_are_there() -> None:
    """Of a bag whose rows wait unsorted, equal ones become one: the sample was of as many rows as came."""
    schema = Schema("t", (Column("a", "number"), Column("copies", "number")), functional=True, bag=True)
    rows = np.array([[i % 4, 1] for i in range(400)]).T
    stored = StoredRelation(schema, Arena())
    stored = stored.successor(stored.as_they_come(rows, repeats=True))
    assert len(stored) == 400
    assert [stored.statistics.part_below(0, key) for key in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]
