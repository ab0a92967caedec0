"""Joins of streams in time: pairs of rows that agree in a key, with times that are near, and lookups.

    interval join   pairs with low <= right time - left time <= high: bilinear, like any join (theorem 3.4)
    lookup          each change of the left stream with what the right one holds when it comes (section 7.6): T of
                    DBSP, which keeps nothing of the left stream

An integral that an interval join seeks in is in the order (key, time): a row seeks the first time that is near enough,
and the rows that match are its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lftj.streams.clocks import shifted
from lftj.streams.integral import Integral, Order, key_first
from lftj.streams.join import LEFT, RIGHT, Join
from lftj.streams.operators import DEFINITION, Narrowed, Value
from lftj.streams.zsets import ZSet, multiplied
from scantree.sort import sorting

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class IntervalJoin(Join):
    """A join whose pairs are near in time. `times`: a column of each side; `within`: (low, high), right less left."""

    symbol: ClassVar[str] = "⋈t"
    times: tuple[int, int] = (0, 0)
    within: tuple[int, int] = (0, 0)

    def order(self, side: int) -> Order:
        """The order that an integral of a side is kept in: key, time, the rest."""
        return key_first((*self.keys[side], self.times[side]), self.arities[side])

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """The keys, the times, and what is wanted of either side."""
        # As a join that is asked for the times, too: they are last among what it is asked for.
        asked = replace(
            self, out=(*(self.out[i] for i in wanted), (LEFT, self.times[LEFT]), (RIGHT, self.times[RIGHT]))
        )
        plain = asked.narrowed_plainly(tuple(range(len(asked.out))))
        assert isinstance(plain.operator, Join)
        join = plain.operator
        *out, left, right = join.out
        times = left[1], right[1]
        return Narrowed(
            replace(self, keys=join.keys, out=tuple(out), arities=join.arities, times=times), wanted, plain.reads
        )

    def seek(self, small: ZSet, large: Value, side: int) -> tuple[ZSet, Rows]:
        """As of a join: (the join of `small`, which is the stream `side`, with `large`; the row of `small` of each)."""
        if not isinstance(large, Integral):
            return self._filtered(small, large, side)
        rows = np.ascontiguousarray(small.rows[[*self.keys[side], self.times[side]]])
        order, _ = sorting(rows)
        rows = np.take(rows, order, axis=1)
        low, high = self.within if side == LEFT else (-self.within[1], -self.within[0])
        highs = shifted(rows[-1], high)
        rows[-1] = shifted(rows[-1], low)
        # Where both ends are beyond 64 bits on one side, they are clamped to one time that may exist: no pair is.
        none = _beyond(small.rows[self.times[side]][order], low, high)
        matches, which = large.between(rows, np.where(none, np.int64(np.iinfo(np.int64).min), highs))
        if none.any():
            matches, which = matches.kept(~none[which]), which[~none[which]]
        mine = order[which]
        theirs = np.arange(len(which))
        parts = ((small, mine), (matches, theirs)) if side == LEFT else ((matches, theirs), (small, mine))
        out = np.empty((len(self.out), len(mine)), np.int64)
        for i, (part, column) in enumerate(self.out):
            zset, chosen = parts[part]
            np.take(zset.rows[column], chosen, out=out[i])
        return ZSet(out, multiplied(small.weights[mine], matches.weights)), mine

    def _filtered(self, small: ZSet, large: ZSet, side: int) -> tuple[ZSet, Rows]:
        """Of two Z-sets: the pairs that agree in the key, and of these the near ones."""
        width = len(self.out)
        plain = Join(self.keys, (*self.out, (LEFT, self.times[LEFT]), (RIGHT, self.times[RIGHT])), self.arities)
        pairs, mine = plain.seek(small, large, side)
        left, right = pairs.rows[width], pairs.rows[width + 1]
        near = (right >= shifted(left, self.within[0])) & (right <= shifted(left, self.within[1]))
        near &= ~_beyond(left, *self.within)
        return ZSet(np.compress(near, pairs.rows[:width], axis=1), pairs.weights[near]), mine[near]


def _beyond(times: Rows, low: int, high: int) -> npt.NDArray[np.bool_]:
    """Whether the interval of each time lies beyond 64 bits as a whole."""
    found = np.zeros(len(times), np.bool_)
    if low > 0:
        found |= times > np.iinfo(np.int64).max - low
    if high < 0:
        found |= times < np.iinfo(np.int64).min - high
    return found


@dataclass(frozen=True)
class Lookup(Join):
    """Changes of the left stream, joined with the value of the right one at their tick."""

    symbol: ClassVar[str] = "lookup"
    law: ClassVar[str] = DEFINITION

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """As a join."""
        plain = self.narrowed_plainly(wanted)
        assert isinstance(plain.operator, Join)
        join = plain.operator
        return plain._replace(operator=Lookup(join.keys, join.out, join.arities))

    @property
    def sought(self) -> tuple[Order | None, ...]:
        """The orders that its inputs are integrated in."""
        return None, self.order(RIGHT)


def led_by(join: Join, side: int, column: int) -> Join:
    """The same join, whose key begins with a key column of a side."""
    at = join.keys[side].index(column)
    left, right = ((keys[at], *keys[:at], *keys[at + 1 :]) for keys in join.keys)
    return replace(join, keys=(left, right))
