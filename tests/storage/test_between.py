"""Rows under a prefix and in an interval of the next key, against loops over sorted rows.

Catches: intervals that overlap, that are empty, that begin before the first row or end at the end of a page, a full
buffer in the middle of one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import Arena, Store

KEYS = 3
MOST, LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
rows = st.lists(st.tuples(*[st.integers(0, 5)] * KEYS, st.integers(-9, 9)), max_size=60)
bounds = st.integers(-1, 6) | st.sampled_from((int(LEAST), int(MOST)))


@given(rows, st.integers(0, KEYS - 1), st.data(), st.integers(0, 2), st.sampled_from((2, 4)))
def test_rows_between(
    given_rows: list[tuple[int, ...]], k: int, data: st.DataObject, first: int, page_rows: int
) -> None:
    found = {row[:KEYS]: row for row in given_rows}
    known = [found[key] for key in sorted(found)]
    store = Store(Arena(), KEYS, 1, page_rows=page_rows, dir_rows=2)
    version = store.build(list(np.array(given_rows, np.int64).reshape(-1, KEYS + 1).T))
    lows = sorted(data.draw(st.lists(st.tuples(*[st.integers(-1, 6)] * k, bounds), max_size=6)))
    highs = data.draw(st.lists(bounds, min_size=len(lows), max_size=len(lows)))
    got, which = version.between(
        np.array(lows, np.int64).reshape(len(lows), k + 1).T, np.array(highs, np.int64), first=first
    )
    expected = []
    for j, (low, high) in enumerate(zip(lows, highs, strict=True)):
        under = [row for row in known if row[:k] == low[:k] and low[k] <= row[k] <= high]
        expected += [(*row, j) for row in (under[:first] if first else under)]
    assert [(*row, j) for row, j in zip(got.T.tolist(), which.tolist(), strict=True)] == expected


def test_many_rows_of_one_interval() -> None:
    store = Store(Arena(), 2, 1, page_rows=4, dir_rows=4)
    n = 1000
    version = store.build([np.zeros(n, np.int64), np.arange(n), np.ones(n, np.int64)])
    got, which = version.between(np.array([[0, 0], [5, 100]]), np.array([n, 900]))
    assert got[1].tolist() == [*range(5, n), *range(100, 901)]
    assert np.bincount(which).tolist() == [n - 5, 801]


def test_more_keys_than_there_are() -> None:
    version = Store(Arena(), 1).empty()
    with pytest.raises(ValueError, match="at most 1 key columns"):
        version.between(np.zeros((2, 1), np.int64), np.zeros(1, np.int64))
