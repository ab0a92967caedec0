"""Tree surgery: the branches that a change of rows brings and takes, against the two tries written out as sets.

Catches: a branch told of twice or by the wrong row, one that other rows still hold, a prefix looked for on the wrong
side of a page boundary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from scantree.memory import Arena
from scantree.surgery import surgeries
from scantree.version import Store

MIN, MAX = -(2**63), 2**63 - 1
Row = tuple[int, ...]
Branch = tuple[int, ...]


def branches(rows: set[Row]) -> set[Branch]:
    """Every branch of the trie of some rows: their prefixes."""
    return {row[: level + 1] for row in rows for level in range(len(row))}


def told(old: set[Row], new: set[Row], arity: int, page_rows: int = 2) -> tuple[list[tuple[str, Branch]], Any, Any]:
    """The surgeries that lead from `old` to `new`, row by row: a row's branches are erased from the leaf up.

    They are inserted from the top down. And the range of each column of the change.
    """
    store = Store(Arena(), arity, page_rows=page_rows, dir_rows=2)

    def columns(rows: set[Row]) -> Any:
        return np.array(sorted(rows), np.int64).reshape(len(rows), arity).T

    first = store.build(list(columns(old)))
    changed = columns(old ^ new)
    ops = np.array([1 if tuple(row) in new else -1 for row in changed.T.tolist()], np.int8)
    second, _ = first.update(changed, ops)
    delta = first.delta(second)
    assert delta.rows.tolist() == changed.tolist()
    rows, kinds = np.ascontiguousarray(delta.rows), delta.kinds
    tops, low, high = np.full(len(kinds), 99), np.empty(arity, np.int64), np.empty(arity, np.int64)
    surgeries(store.arena.space.mem, first.root, second.root, store.shape, rows, kinds, tops, low, high)
    found: list[tuple[str, Branch]] = []
    for row, kind, top in zip(rows.T.tolist(), kinds.tolist(), tops.tolist(), strict=True):
        levels = range(top, arity) if kind > 0 else range(arity - 1, top - 1, -1)
        found += [("INSERT" if kind > 0 else "ERASE", tuple(row[: level + 1])) for level in levels]
    return found, low.tolist(), high.tolist()


def test_the_example_of_the_paper() -> None:
    """arXiv 1303.5313, section 4.2.1: four changed rows are seven surgeries."""
    version_1 = {(0, 30, 80), (0, 30, 81), (1, 35, 60), (1, 35, 61), (3, 40, 90), (3, 50, 91), (3, 50, 92)}
    version_2 = {(0, 30, 80), (1, 35, 60), (1, 35, 61), (3, 50, 91), (4, 60, 71)}
    found, low, high = told(version_1, version_2, 3)
    assert found == [
        ("ERASE", (0, 30, 81)),
        ("ERASE", (3, 40, 90)),
        ("ERASE", (3, 40)),
        ("ERASE", (3, 50, 92)),
        ("INSERT", (4,)),
        ("INSERT", (4, 60)),
        ("INSERT", (4, 60, 71)),
    ]
    assert (low, high) == ([0, 30, 71], [4, 60, 92])


KEYS = st.one_of(st.integers(0, 3), st.sampled_from((MIN, MAX, MAX - 1)))


@st.composite
def changes(draw: Any) -> tuple[int, set[Row], set[Row], int]:
    arity = draw(st.integers(1, 4))
    rows = st.sets(st.tuples(*[KEYS] * arity), max_size=25)
    return arity, draw(rows), draw(rows), draw(st.sampled_from((2, 4)))


@given(changes())
@example((2, {(0, 0)}, {(0, 1)}, 2))  # a branch that an erased row leaves and an inserted one keeps
@example((2, {(0, 0), (0, 1)}, set(), 2))
@example((3, set(), {(0, 0, 0), (0, 0, 1), (0, 1, 0)}, 2))
def test_surgeries_are_the_difference_of_the_tries(case: tuple[int, set[Row], set[Row], int]) -> None:
    arity, old, new, page_rows = case
    if old == new:
        return
    found, low, high = told(old, new, arity, page_rows)
    inserted = [branch for kind, branch in found if kind == "INSERT"]
    erased = [branch for kind, branch in found if kind == "ERASE"]
    # Each branch once: but the leaf of a changed row is a surgery in any case, for no row is in both versions.
    assert len(set(inserted)) == len(inserted)
    assert len(set(erased)) == len(erased)
    assert set(inserted) == branches(new) - branches(old)
    assert set(erased) == branches(old) - branches(new)
    changed = list(zip(*(old ^ new), strict=True))
    assert low == [min(column) for column in changed]
    assert high == [max(column) for column in changed]


@given(st.sets(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60), st.data())
def test_one_row(rows: set[Row], data: Any) -> None:
    """The usual change: one row, among many pages."""
    row = data.draw(st.one_of(st.sampled_from(sorted(rows)), st.tuples(st.integers(0, 31), st.integers(0, 31))))
    found, _, _ = told(rows, rows ^ {row}, 2)
    alone = not any(other[0] == row[0] for other in rows - {row})
    assert len(found) == 1 + alone
    assert {branch for _, branch in found} == ({row, row[:1]} if alone else {row})
