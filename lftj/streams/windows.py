"""Tumbling and hopping windows: rows with the start and the end of the windows that their time is in.

    tumbling, size 10     [0, 10)  [10, 20)  [20, 30)  ...                     a row is in one
    hopping, size 10      [-5, 5)  [0, 10)   [5, 15)   [10, 20)  ...           every 5: a row is in two

Windows begin at `offset` and `every` apart from there, in both directions; a window holds its start and not its end. A
window is two more columns of the row, so the operator is linear (DBSP, section 7.6.1 builds windows from filters, which
are), and what is made of a window is a group-by of these columns. Where `size` is no multiple of `every`, rows are in
different numbers of windows; where it is smaller, some are in none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lftj.errors import EvaluationError
from lftj.streams.operators import Narrowed, Room, TickByTick
from lftj.streams.zsets import ZSet

# Times below this in magnitude, with a window's length below it, stay within 64 bits.
FAR = 1 << 61


class WindowRangeError(EvaluationError, OverflowError):
    """A window that begins or ends beyond the integers of a column."""

    __str__ = EvaluationError.__str__

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a window of `{name}` is beyond 64 bits",
            why="its start and its end are columns, which hold integers of 64 bits; the step was not made",
            remedy="filter rows with such times first",
        )


@dataclass(frozen=True)
class Windows(TickByTick):
    """Each row once per window that its time is in, with the window's start and end as last columns."""

    symbol: ClassVar[str] = "windows"
    column: int
    size: int
    every: int
    offset: int
    name: str

    @property
    def label(self) -> str:
        """How long, and how far apart."""
        return f"windows {self.size:,}" + (f" every {self.every:,}" if self.every != self.size else "")

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """What is wanted, the time, and both ends."""
        (arity,) = arities
        reads = tuple(sorted({self.column, *(column for column in wanted if column < arity)}))
        made = replace(self, column=reads.index(self.column))
        return Narrowed(made, (*reads, arity, arity + 1), (reads,))

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set: at most size / every rows for each, rounded up."""
        times = zset.rows[self.column]
        if not len(zset):
            return ZSet.zero(len(zset.rows) + 2)
        if int(times.min()) < -FAR or int(times.max()) > FAR or max(self.size, self.every) > FAR:
            return self._exactly(zset)
        last = times - (times - self.offset) % self.every
        if self.size == self.every:
            return ZSet(np.vstack([zset.rows, last, last + self.size]), zset.weights, normal=zset.is_normal)
        most = -(-self.size // self.every)
        # Per row the windows from the first to the last, so that rows in order stay so.
        starts = last[:, None] - self.every * np.arange(most - 1, -1, -1)
        held = starts + self.size > times[:, None]
        which = np.nonzero(held)[0]
        made = starts[held]
        rows = np.empty((len(zset.rows) + 2, len(which)), np.int64)
        np.take(zset.rows, which, axis=1, out=rows[:-2])
        rows[-2], rows[-1] = made, made + self.size
        return ZSet(rows, zset.weights[which], normal=zset.is_normal)

    def _exactly(self, zset: ZSet) -> ZSet:
        """The same where int64 could wrap: by Python's integers, row by row."""
        rows, weights, zset = [], [], zset.normal()
        for row, weight in zip(zset.rows.T.tolist(), zset.weights.tolist(), strict=True):
            time = row[self.column]
            start = time - (time - self.offset) % self.every
            while start + self.size > time:
                if start < -(1 << 63) or start + self.size >= 1 << 63:
                    raise WindowRangeError(self.name)
                rows.append([*row, start, start + self.size])
                weights.append(weight)
                start -= self.every
        made = np.array(rows, np.int64).reshape(len(rows), len(zset.rows) + 2).T
        return ZSet(np.ascontiguousarray(made), np.array(weights, np.int64))
