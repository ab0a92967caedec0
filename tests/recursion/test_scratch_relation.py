"""What changed rows are written on: the same pages again while there are few rows, pages of their own for many.

Catches: a key order or statistics of the rows before; rows that are still read overwritten by others.
"""

from __future__ import annotations

import numpy as np
import pytest

import lftj
from lftj.recursion.component_joins import ScratchRelation


@pytest.mark.parametrize("rounds", [False, True])
def test_few_rows_take_no_new_pages(rounds: bool) -> None:
    db = lftj.Database._sized(page_rows=4, directory_rows=2)
    arena = db._evaluator.arena
    scratch = ScratchRelation(db._evaluator, 2, rounds=rounds)

    def rows(*first: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.array([first, [-x for x in first], [1] * len(first)][: 2 + rounds], np.int64)

    few = scratch.holding(rows(1, 2, 3))
    assert few.order((1, 0)).columns().tolist() == [[-3, -2, -1], [3, 2, 1]]
    used = arena.used
    again = scratch.holding(rows(5, 7))
    assert again is few
    assert arena.used <= used
    assert again.content.columns()[:2].tolist() == [[5, 7], [-5, -7]]
    assert again.order((1, 0)).columns().tolist() == [[-7, -5], [7, 5]]
    assert again.statistics.rows == 2
    many = scratch.holding(rows(*range(9)))
    assert many is not few
    for first in (11, 12):
        assert scratch.holding(rows(first)) is few
        assert len(few) == 1
    assert many.content.columns()[0].tolist() == list(range(9))
    assert len(scratch.holding(rows())) == 0
    assert len(few) == 1
