"""What the planner knows of relations: exact of small ones, of large ones from a part of their pages.

Catches: prefixes that are counted twice where directory pages meet, keys of many rows that a sample misses, estimates
beyond what there is.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.plan import statistics
from lftj.plan.statistics import Statistics
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
