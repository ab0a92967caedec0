"""Bags: relations whose last column, a number, is how often the row of the others is there.

A batch of copies has rows int64[arity, n] whose last column says how many copies come (positive) or go (negative), in
the order in which that is to happen. More copies than there are cannot go: what is left of a row is never less than
none. A row of which no copy is left is not in the relation.

For one row, with c copies before and changes d1, d2, ... of prefix sums S1, S2, ...: after each change there are
max(0, c + d) copies, so at the end S + max(c, -min S), a walk that is reflected at 0. So all rows are counted at
once, in O(n log n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.values.codes import NUMBER_MAX
from scantree.sort import sorting
from scantree.version import Rows, Version

Column = npt.NDArray[np.int64]


class _Totals(NamedTuple):
    """Distinct `rows` int64[arity - 1, m], in key order; the `sums` of their changes, and the `least` prefix sums."""

    rows: Rows
    sums: Column
    least: Column


def with_copies(rows: Rows, size: int, copies: int | npt.NDArray[np.int64] | npt.NDArray[np.int8]) -> Rows:
    """Rows int64[arity - 1, size] with a last column of `copies`."""
    made = np.empty((len(rows) + 1, size), np.int64)
    made[:-1], made[-1] = rows, copies
    return made


def counted(rows: Rows) -> Rows:
    """The rows of an empty bag to which copies, all of them positive, came: int64[arity, m], in key order."""
    totals = _totals(rows)
    return np.concatenate([totals.rows, totals.sums[None]])


def recount(facts: Version, rows: Rows) -> tuple[Rows, Rows]:
    """(the rows that go, the rows that come) when a batch of copies changes `facts`, each distinct and in key order."""
    if rows.shape[1] == 1:
        old = facts.rows_under(rows[:-1])
        copies = int(rows[-1, 0])
        if old.shape[1]:
            copies = max(0, _in_range(int(old[-1, 0]) + copies))
            if copies == old[-1, 0]:
                return old[:, :0], old[:, :0]
        new = rows.copy()
        new[-1] = copies
        return old, new if copies > 0 else new[:, :0]
    totals = _totals(rows)
    before = copies_of(facts, totals.rows)
    beyond = np.flatnonzero(totals.sums > NUMBER_MAX - before)[:1]
    for at in beyond:
        _in_range(int(before[at]) + int(totals.sums[at]))
    after = totals.sums + np.maximum(before, -totals.least)
    changed = after != before
    gone, come = changed & (before > 0), changed & (after > 0)
    return (
        np.concatenate([np.compress(gone, totals.rows, axis=1), before[None, gone]]),
        np.concatenate([np.compress(come, totals.rows, axis=1), after[None, come]]),
    )


def walked(before: Column, changes: Column, starts: Column) -> tuple[Column, Column]:
    """(the copies before each change, those after it): int64[n] each, of changes of at most one copy.

    `changes` int64[n] are in runs of equal rows, which begin at `starts`; `before`: the copies of each run at first.
    """
    if not len(changes):
        return changes, changes
    n, run = len(changes), np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(changes))))
    running = np.cumsum(changes)
    sums = running - (running[starts] - changes[starts])[run]
    # Each run lies below the one before it, so that one minimum serves all.
    apart = run * (2 * n + 1)
    least = np.minimum.accumulate(sums - apart) + apart
    after = sums + np.maximum(before[run], -least)
    earlier = np.empty_like(after)
    earlier[1:] = after[:-1]
    earlier[starts] = before
    return earlier, after


def missing(facts: Version, rows: Rows) -> Column | None:
    """The first row, int64[arity - 1], of which a batch of copies would take more than there are; None if none."""
    totals = _totals(rows)
    short = copies_of(facts, totals.rows) + totals.least < 0
    return totals.rows[:, int(np.argmax(short))] if short.any() else None


def copies_of(facts: Version, rows: Rows) -> Column:
    """How many copies of each of the distinct `rows` int64[arity - 1, m], in key order, there are."""
    before = np.zeros(rows.shape[1], np.int64)
    if len(facts):
        held, which = facts.matches(rows)
        before[which] = held[-1]
    return before


def _totals(rows: Rows) -> _Totals:
    keys, copies, n = rows[:-1], rows[-1], rows.shape[1]
    if n == 0 or len(keys) == 0:
        ends = np.arange(min(n, 1)) + n - 1
    else:
        order, _ = sorting(keys)
        keys, copies = keys.take(order, axis=1), copies[order]
        ends = np.append(np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)), n - 1)
    begins = np.concatenate([ends[:1] * 0, ends[:-1] + 1])
    if not len(ends):
        return _Totals(np.ascontiguousarray(keys[:, ends]), copies, copies)
    many = np.abs(copies)
    high, low = (np.add.reduceat(part, begins) for part in (many >> 32, many & 0xFFFFFFFF))
    top = int((high + (low >> 32)).argmax())
    _in_range((int(high[top]) << 32) + int(low[top]))
    # All together may wrap around, and the differences from where a row begins all the same be right.
    running = np.cumsum(copies)
    running -= np.repeat(running[begins] - copies[begins], ends - begins + 1)
    least = np.minimum.reduceat(running, begins)
    return _Totals(np.ascontiguousarray(keys[:, ends]), running[ends], np.minimum(least, 0))


def _in_range(copies: int) -> int:
    if copies > NUMBER_MAX:
        raise EvaluationError(
            "a row would be there more often than a number can say",
            why="the copies of a row are counted in 64 bits; nothing was changed",
            remedy="give the table a primary key, or its rows a column that tells them apart",
        )
    return copies
