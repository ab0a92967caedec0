"""Consolidation: equal rows become one row, with the sum of their weights.

    rows      3 1 3 1 2         ->   1 2 3
    weights   1 1 1 -1 2             0 2 2

The rows of an input may come in any order and any number of times; the result is sorted and distinct. A sum of zero is
kept: the caller decides what it means.

`count_in` consolidates rows with those that were counted before, which are in a version; `net_few` puts few rows that
go and come in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel
from scantree.cursor import find_rows
from scantree.sort import FEW, count_chunks, order_few, order_of, sorting
from scantree.version import Version

Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]


def consolidated(rows: Rows, weights: Rows) -> tuple[Rows, Rows]:
    """(distinct rows in order, the sums of the weights of each); `weights` int64[m] or int64[k, m]."""
    m = rows.shape[1]
    if len(rows) == 0:
        return rows[:, : min(m, 1)], weights.sum(axis=-1, keepdims=True)[..., : min(m, 1)]
    rows, order, starts = runs_of(rows)
    if order is not None:
        weights = np.take(weights, order, axis=-1)
    return rows[:, starts], np.add.reduceat(weights, starts, axis=-1) if m else weights


def counted(chunks: list[Rows]) -> Rows:
    """The distinct rows of all `chunks` int64[k, n] in order, each with how often it is there: int64[k + 1, m].

    The list is emptied.
    """
    found = count_chunks(chunks) if len(chunks[0]) else None
    if found is not None:
        return found
    rows = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
    chunks.clear()
    distinct, counts = consolidated(rows, np.ones(rows.shape[1], np.int64))
    return np.concatenate([distinct, counts[None, :]])


def runs_of(rows: Rows) -> tuple[Rows, Rows | None, Rows]:
    """(the rows int64[1.., m] in order, what put them so or None if they were, where each run of equal rows begins)."""
    order, state = None, order_of(rows)
    repeats = state == 1
    if state == 0:
        order, repeats = sorting(rows)
        rows = rows.take(order, axis=1)
    first = np.ones(rows.shape[1], np.bool_)
    if repeats:
        first[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return rows, order, np.flatnonzero(first)


def numbered(rows: Rows) -> tuple[Rows, Rows]:
    """(the distinct rows of `rows` int64[1.., m] in order, the number among them of each int64[m])."""
    m = rows.shape[1]
    if m <= 1:
        return rows, np.zeros(m, np.int64)
    ordered, order, starts = runs_of(np.ascontiguousarray(rows))
    first = np.zeros(m, np.int64)
    first[starts[1:]] = 1
    numbers = np.cumsum(first)
    if order is not None:
        numbers[order] = numbers.copy()
    return ordered[:, starts], numbers


@kernel
def _net_few(given, gone, order, rows, kinds):
    """`given` int64[k, n] to `rows` in key order, `kinds` -1 for the first `gone`, else 1. Whether some are equal."""
    repeats = order_few(given, order)
    for j in range(len(order)):
        kinds[j] = -1 if order[j] < gone else 1
        for c in range(len(given)):
            rows[c, j] = given[c, order[j]]
    return repeats


def net_few(rows: Rows, gone: int) -> tuple[Rows, Kinds] | None:
    """Few rows int64[k, n] in key order, with -1 for the first `gone`, and 1 for the others; None if some are equal."""
    n = rows.shape[1]
    made, kinds = np.empty(rows.shape, np.int64), np.empty(n, np.int8)
    return None if _net_few(rows, gone, np.empty(n, np.int64), made, kinds) else (made, kinds)


@kernel
def _count_in(mem, root, shape, rows, weights, order, few, ordered, found, held, given, before, ops):
    """What counts `rows` int64[k, m] in, with their `weights`; how many distinct ones there are.

    `order`: they are in key order so, or, where they are `few`, it is to be found. Written: `given` int64[k + 1, m],
    the distinct rows in key order, each with its count then; `before`: its count until now; `ops`: 1, or -1 if the
    count is 0 then. Scratch: `ordered` int64[k, m], `found` bool[m], `held` int64[1, m].
    """
    k, m = rows.shape
    if few:
        order_few(rows, order)
    for j in range(m):
        for c in range(k):
            ordered[c, j] = rows[c, order[j]]
    find_rows(mem, root, shape, ordered, found, held)
    n = 0
    for j in range(m):
        same = n > 0
        for c in range(k):
            same &= n > 0 and ordered[c, j] == given[c, n - 1]
        if not same:
            for c in range(k):
                given[c, n] = ordered[c, j]
            given[k, n] = before[n] = held[0, j]
            n += 1
        given[k, n - 1] += weights[order[j]]
        ops[n - 1] = 1 if given[k, n - 1] != 0 else -1
    return n


@kernel
def _changes(counted, before, rows, kinds):
    """To `rows` and `kinds`, what `Counted.changes` gives; how many there are. `counted` int64[k + 1, n]."""
    k, m = len(counted) - 1, 0
    for j in range(len(before)):
        was, now = before[j], counted[k, j]
        for side in range(2 if was != now else 0):
            # Of one key the lesser row is the first.
            comes = (side == 1) == (was < now)
            count = now if comes else was
            if count > 0:
                for c in range(k):
                    rows[c, m] = counted[c, j]
                rows[k, m], kinds[m] = count, 1 if comes else -1
                m += 1
    return m


class Counted(NamedTuple):
    """`version`: the next one · `rows` int64[k + 1, n]: what was counted in, with its counts · `before`: until then."""

    version: Version
    rows: Rows
    before: Rows

    def changes(self) -> tuple[Rows, Kinds]:
        """The rows (key..., count) that go and come int64[k + 1, m], in order, with -1 or 1; a count of 0 is none."""
        most = 2 * len(self.before)
        rows, kinds = np.empty((len(self.rows), most), np.int64), np.empty(most, np.int8)
        m = int(_changes(self.rows, self.before, rows, kinds))
        return (rows, kinds) if m == most else (np.ascontiguousarray(rows[:, :m]), kinds[:m])


def count_in(version: Version, rows: Rows, weights: Rows) -> Counted:
    """Add `weights` int64[m] to the counts of `rows` int64[k, m], in any order, with repeats.

    A count is the one value of the version's rows; a row with a count of 0 is not there.
    """
    k, m = rows.shape
    few = m < FEW
    order = np.empty(m, np.int64) if few else sorting(rows)[0]
    scratch = np.empty((k, m), np.int64), np.empty(m, np.bool_), np.empty((1, m), np.int64)
    given, before, ops = np.empty((k + 1, m), np.int64), np.empty(m, np.int64), np.empty(m, np.int8)
    store = version.store
    mem = store.arena.space.mem
    n = _count_in(mem, version.root, store.shape, rows, weights, order, few, *scratch, given, before, ops)
    store.arena.touched += m
    if n < m:
        given, before, ops = np.ascontiguousarray(given[:, :n]), before[:n], ops[:n]
    return Counted(version.update(given, ops, in_order=True)[0], given, before)
