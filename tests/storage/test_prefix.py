"""Rows under prefixes, and pairs that share one, against loops over sorted rows.

Catches: a run of equal prefixes that goes over the end of a page, a buffer that is full at the end of a run.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import Arena, Store
from scantree.version import Version

KEYS = 3
rows = st.lists(st.tuples(*[st.integers(0, 3)] * KEYS, st.integers(-9, 9)), max_size=40)


def made(given_rows: list[tuple[int, ...]], page_rows: int = 2) -> tuple[Version, list[tuple[int, ...]]]:
    """A version with one value column, and its rows."""
    found = {row[:KEYS]: row for row in given_rows}
    columns = np.array(given_rows, np.int64).reshape(-1, KEYS + 1).T
    store = Store(Arena(), KEYS, 1, page_rows=page_rows, dir_rows=2)
    return store.build(list(columns)), [found[key] for key in sorted(found)]


@given(rows, st.data(), st.sampled_from((2, 4)))
def test_rows_under(given_rows: list[tuple[int, ...]], data: st.DataObject, page_rows: int) -> None:
    version, known = made(given_rows, page_rows)
    k = data.draw(st.integers(0, KEYS))
    asked = data.draw(st.lists(st.tuples(*[st.integers(-1, 4)] * k), max_size=6))
    found = version.rows_under(np.array(asked, np.int64).reshape(len(asked), k).T)
    expected = [row for prefix in asked for row in known if row[:k] == prefix]
    assert found.shape == (KEYS + 1, len(expected))
    assert [tuple(row) for row in found.T.tolist()] == expected


@given(rows, st.data())
def test_pairs(given_rows: list[tuple[int, ...]], data: st.DataObject) -> None:
    version, known = made(given_rows)
    k = data.draw(st.integers(0, KEYS))
    asked = data.draw(st.lists(st.tuples(*[st.integers(-1, 4)] * k), max_size=6))

    def first(wanted: set[tuple[int, ...]]) -> list[tuple[int, ...]] | None:
        pairs = [[a, b] for a, b in pairwise(known) if a[:k] == b[:k] and a[:k] in wanted]
        return pairs[0] if pairs else None

    pair = version.pair(k)
    expected = first({row[:k] for row in known})
    assert (None if pair is None else [tuple(row) for row in pair.T.tolist()]) == expected
    among = version.pair(k, np.array(asked, np.int64).reshape(len(asked), k).T)
    candidates = [found for prefix in asked if (found := first({prefix})) is not None]
    assert (None if among is None else [tuple(row) for row in among.T.tolist()]) == (
        candidates[0] if candidates else None
    )


@given(rows, st.data(), st.sampled_from(((0,), (0, 2), (0, 1, 3), (0, 3))))
def test_pairs_among_rows_that_begin_alike(given_rows: list[tuple[int, ...]], data: st.DataObject, key: tuple) -> None:
    version, known = made(given_rows)
    k = 2 if key == (0, 1, 3) else 1
    asked = sorted(data.draw(st.lists(st.tuples(*[st.integers(-1, 4)] * KEYS), max_size=6)))
    begins = {row[:k] for row in asked}
    pairs = [
        {a, b}
        for i, a in enumerate(known)
        for b in known[i + 1 :]
        if a[:k] in begins and [a[c] for c in key] == [b[c] for c in key]
    ]
    most = data.draw(st.sampled_from((0, 3, 10**6)))
    rows = np.array(asked, np.int64).reshape(len(asked), KEYS).T
    found, pair = version.pair_nearby(rows, k, key, most)
    steps = sum(n * (n + 1) // 2 for begin in begins if (n := sum(row[:k] == begin for row in known)))
    assert found or steps > most
    if pair is not None:
        assert {tuple(row) for row in pair.T.tolist()} in pairs
    elif found:
        assert pairs == []


def test_more_rows_than_prefixes() -> None:
    """The buffer is one row per prefix at first."""
    store = Store(Arena(), 2, page_rows=4, dir_rows=2)
    version = store.build([np.repeat(np.arange(3), 700), np.arange(2100)])
    assert version.rows_under(np.array([[1]])).tolist() == [[1] * 700, list(range(700, 1400))]
    assert version.rows_under(np.empty((0, 1), np.int64)).shape == (2, 2100)


def test_too_many_keys() -> None:
    version = Store(Arena(), 2).empty()
    with pytest.raises(ValueError, match=r"an array of at most 2 key columns expected, got shape \(3, 1\)"):
        version.rows_under(np.zeros((3, 1), np.int64))
