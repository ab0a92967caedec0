"""The change that rows come to which go and come, against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.store import change as module
from lftj.store.change import ERASED, INSERTED, Change, change_of_rows
from scantree import sort

Row = tuple[int, ...]
Sides = tuple[int, list[list[Row]], list[list[Row]]]


@st.composite
def sides(draw: st.DrawFn) -> Sides:
    """An arity, and chunks of rows that go and that come: in any order, some of them in both and some twice."""
    arity = draw(st.integers(0, 3))
    row = st.tuples(*[st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1])] * arity)
    chunks = st.lists(st.lists(row, max_size=8), max_size=3)
    return arity, draw(chunks), draw(chunks)


def array(arity: int, rows: list[Row]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), arity).T.copy()


@pytest.mark.parametrize("few", [0, 4, 512])
@given(sides())
def test_rows_that_go_and_come_are_the_difference_of_sets(few: int, given_: Sides) -> None:
    arity, gone, come = given_
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "FEW", few)
        patch.setattr(module, "FEW", few)
        found = change_of_rows(arity, *([array(arity, rows) for rows in chunks] for chunks in (gone, come)))
    went, came = ({row for rows in chunks for row in rows} for chunks in (gone, come))
    expected = sorted([*((row, ERASED) for row in went - came), *((row, INSERTED) for row in came - went)])
    assert [*zip(map(tuple, found.rows.T.tolist()), found.kinds.tolist(), strict=True)] == expected
    assert found.rows.flags.c_contiguous
    assert found.rows.shape == (arity, len(expected))


def test_rows_none_of_which_is_there_are_no_change() -> None:
    assert change_of_rows(2, [], []) is Change.none(2)
