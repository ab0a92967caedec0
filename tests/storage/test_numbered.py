"""Distinct rows and their numbers: what sorting a set of tuples gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scantree.consolidate import numbered

VALUES = st.sampled_from((0, 1, 2, -5, 2**63 - 1, -(2**63)))


@given(st.integers(1, 3).flatmap(lambda k: st.lists(st.tuples(*[VALUES] * k), max_size=12).map(lambda rows: (k, rows))))
def test_numbers_are_positions_among_the_distinct(drawn: tuple[int, list[tuple[int, ...]]]) -> None:
    k, rows = drawn
    distinct, numbers = numbered(np.array(rows, np.int64).reshape(len(rows), k).T)
    assert [tuple(row) for row in distinct.T.tolist()] == sorted(set(rows))
    assert [tuple(row) for row in distinct.T[numbers].tolist()] == rows
