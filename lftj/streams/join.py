"""Joins: pairs of rows that agree in a key; weights multiply.

A join is bilinear (DBSP, theorem 3.4). Its sides may be Z-sets, or integrals in an order that begins with the key: the
rows of the Z-set then seek theirs in the pages of the integral, at O(log n) each, and what does not match is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lftj.streams.integral import Integral, Order, key_first
from lftj.streams.operators import BILINEAR, Narrowed, Operator, Tick, Value
from lftj.streams.zsets import ZSet, multiplied
from scantree.consolidate import runs_of

Rows = npt.NDArray[np.int64]
LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Join(Operator):
    """Rows of two streams whose key columns are equal, pair by pair.

    `keys`: the key columns of the left and of the right stream · `out`: where each column of a joined row comes from,
    (LEFT or RIGHT, column) · `arities` of the sides.
    """

    symbol: ClassVar[str] = "⋈"
    law: ClassVar[str] = BILINEAR
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    out: tuple[tuple[int, int], ...]
    arities: tuple[int, int]

    def order(self, side: int) -> Order:
        """The order that an integral of a side is kept in, so that the other side can seek in it."""
        return key_first(self.keys[side], self.arities[side])

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Join what came in."""
        return self.joined(values[LEFT], values[RIGHT]), None

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed | None:
        """The keys, and what is wanted of either side. A join of another kind may look at more: it needs all."""
        return self.narrowed_plainly(wanted) if type(self) is Join else None

    def narrowed_plainly(self, wanted: tuple[int, ...]) -> Narrowed:
        """The plain join of the same keys, with what is wanted of either side."""
        out = tuple(self.out[i] for i in wanted)
        reads = tuple(
            tuple(sorted({*self.keys[side], *(column for of, column in out if of == side)})) for side in (LEFT, RIGHT)
        )
        left, right = (tuple(reads[side].index(column) for column in self.keys[side]) for side in (LEFT, RIGHT))
        made = tuple((side, reads[side].index(column)) for side, column in out)
        return Narrowed(Join((left, right), made, (len(reads[LEFT]), len(reads[RIGHT]))), wanted, reads)

    def joined(self, left: Value, right: Value) -> ZSet:
        """The join of two values."""
        # A row that is there n times, as after a projection, would be joined n times: in a chain of joins n**k times.
        left, right = (value.normal() if isinstance(value, ZSet) else value for value in (left, right))
        if not len(left) or not len(right):
            return ZSet.zero(len(self.out))
        # An integral in another order, which a user joined as it is, cannot be sought in.
        if isinstance(left, Integral) and left.order != self.order(LEFT):
            left = left.zset()
        if isinstance(right, Integral) and right.order != self.order(RIGHT):
            right = right.zset()
        if isinstance(left, Integral) and isinstance(right, Integral):
            if len(left) < len(right):
                left = left.zset()
            else:
                right = right.zset()
        if isinstance(left, Integral):
            assert isinstance(right, ZSet)
            found, _ = self.seek(right, left, RIGHT)
            return found
        found, _ = self.seek(left, right, LEFT)
        return found

    def seek(self, small: ZSet, large: Value, side: int) -> tuple[ZSet, Rows]:
        """(the join of `small`, which is the stream `side`, with `large`; which row of `small` each comes from)."""
        rows, order, starts = runs_of(small.rows[list(self.keys[side])]) if self.keys[side] else _one_run(small)
        at = np.arange(len(small)) if order is None else order
        if isinstance(large, Integral):
            matches, group = large.under(np.ascontiguousarray(rows[:, starts]))
        else:
            matches, group = _under(large, self.keys[1 - side], rows[:, starts])
        ends = np.append(starts[1:], len(small))
        # Per row of `small`, in order of its key: the run of rows that match.
        lo, hi = (np.searchsorted(group, np.arange(len(starts)), which) for which in ("left", "right"))
        runs = np.repeat(np.arange(len(starts)), ends - starts)
        counts = (hi - lo)[runs]
        mine = np.repeat(np.arange(len(small)), counts)
        theirs = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(lo[runs], counts)
        mine = at[mine]
        parts = ((small, mine), (matches, theirs)) if side == LEFT else ((matches, theirs), (small, mine))
        out = np.empty((len(self.out), len(mine)), np.int64)
        for i, (part, column) in enumerate(self.out):
            zset, chosen = parts[part]
            np.take(zset.rows[column], chosen, out=out[i])
        return ZSet(out, multiplied(small.weights[mine], matches.weights[theirs])), mine


def _one_run(small: ZSet) -> tuple[Rows, None, Rows]:
    """A key without columns: all rows agree in it."""
    return np.empty((0, len(small)), np.int64), None, np.zeros(1, np.int64)


def _under(zset: ZSet, key: tuple[int, ...], keys: Rows) -> tuple[ZSet, Rows]:
    """(the rows of a Z-set whose key is one of `keys` int64[k, m], in their order; which each has)."""
    if not key:
        return zset, np.zeros(len(zset), np.int64)
    m = keys.shape[1]
    own = zset.rows[list(key)]
    if len(key) == 1:
        number = np.searchsorted(keys[0], own[0])
        number[number == m] = 0
        there = keys[0][number] == own[0]
    else:
        both, order, starts = runs_of(np.concatenate([keys, own], axis=1))
        run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, both.shape[1])))
        names = np.empty(len(run), np.int64)
        names[np.arange(len(run)) if order is None else order] = run
        asked = np.full(len(starts), -1, np.int64)
        asked[names[:m]] = np.arange(m)
        number = asked[names[m:]]
        there = number >= 0
    chosen = np.flatnonzero(there)
    chosen = chosen[np.argsort(number[chosen], kind="stable")]
    return ZSet(np.take(zset.rows, chosen, axis=1), zset.weights[chosen]), number[chosen]
