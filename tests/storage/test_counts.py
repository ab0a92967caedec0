"""Counting rows in, and few rows that go and come, beside sets and dictionaries of Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from scantree.check import check_arena
from scantree.consolidate import count_in, net_few
from scantree.memory import Arena
from scantree.sort import FEW
from scantree.version import Store

Row = tuple[int, ...]


def array_of(rows: list[Row], keys: int) -> npt.NDArray[np.int64]:
    """Rows as int64[keys, n]."""
    return np.array(rows, np.int64).reshape(len(rows), keys).T.copy()


@given(data=st.data(), keys=st.integers(0, 3), most=st.sampled_from([3, FEW + 40]))
def test_rows_are_counted_in(data: st.DataObject, keys: int, most: int) -> None:
    """Repeats within a batch, counts that end at 0, rows that were never there; few rows, and more than few."""
    arena = Arena()
    version = Store(arena, keys, 1, page_rows=4, dir_rows=2).empty()
    counts: Counter[Row] = Counter()
    row = st.tuples(*[st.integers(0, 6 if most < FEW else 50)] * keys)
    for _ in range(4):
        rows = data.draw(st.lists(row, max_size=5))
        if most >= FEW:
            rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
            rows += [tuple(made) for made in rng.integers(0, 50, (most, keys)).tolist()]
        before = counts.copy()
        weights = [data.draw(st.sampled_from([1, 2, -1])) if most < FEW else 1 for _ in rows]
        for i, one in enumerate(rows):
            if counts[one] + weights[i] < 0:
                weights[i] = 0
            counts[one] += weights[i]
        found = count_in(version, array_of(rows, keys), np.array(weights, np.int64))
        distinct = sorted(set(rows))
        assert [tuple(one) for one in found.rows[:-1].T.tolist()] == distinct
        assert found.rows[-1].tolist() == [counts[one] for one in distinct]
        assert found.before.tolist() == [before[one] for one in distinct]
        gone = [((*one, before[one]), -1) for one in distinct if before[one] and before[one] != counts[one]]
        come = [((*one, counts[one]), 1) for one in distinct if counts[one] and before[one] != counts[one]]
        changed, kinds = found.changes()
        assert list(zip(map(tuple, changed.T.tolist()), kinds.tolist(), strict=True)) == sorted(gone + come)
        version = found.version
        held = version.columns()
        assert {tuple(key): count for *key, count in held.T.tolist()} == {k: n for k, n in counts.items() if n}
    check_arena(arena, [version])


@given(
    gone=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2))),
    come=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2))),
)
def test_few_rows_that_go_and_come(gone: list[Row], come: list[Row]) -> None:
    """In key order with their signs, or None where a row is there twice."""
    found = net_few(array_of(gone + come, 2), len(gone))
    if len({*gone, *come}) < len(gone) + len(come):
        assert found is None
        return
    assert found is not None
    expected = sorted([(row, -1) for row in gone] + [(row, 1) for row in come])
    assert list(zip(map(tuple, found[0].T.tolist()), found[1].tolist(), strict=True)) == expected
