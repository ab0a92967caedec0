"""Integrals: the sum of a stream so far, in pages, in the order that somebody seeks in.

`I(s)` at a tick is the sum of the values of `s` up to that tick (DBSP, section 2.3). It is kept as a scantree version
whose keys are the columns, permuted by an *order*, and whose value is the weight; the next integral shares all pages
that the tick did not touch, so that the integral of the tick before, `z^-1(I(s))`, costs nothing, and a step that fails
leaves no trace. A column may be kept in another order than that of its codes (`arranged`).

    order    ((1, ASCENDING), (0, DESCENDING))     column 1 of the stream first, then column 0, the greatest first

Costs, n rows, m of them new: `plus` O(m log n) and the touched pages, `weights_of` and `under` O(log n) per key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.streams.zsets import ZSet, added
from scantree.memory import Arena
from scantree.version import Rows, Store, Version

# The ways of a column, which add up. `NULL_FIRST`: its greatest code stands for null, which is to come first.
ASCENDING, DESCENDING, NULL_FIRST = 0, 1, 2
Order = tuple[tuple[int, int], ...]


def arranged(codes: Rows, way: int) -> Rows:
    """Numbers that compare as the codes do in the order of a way."""
    if way & NULL_FIRST:
        codes = codes + 1  # the greatest becomes the least
    return ~codes if way & DESCENDING else codes


def _codes(stored: Rows, way: int) -> Rows:
    """The codes that are `arranged`."""
    if way & DESCENDING:
        stored = ~stored
    return stored - 1 if way & NULL_FIRST else stored


def ascending(columns: Sequence[int]) -> Order:
    """The order of these columns, each from the least."""
    return tuple((column, ASCENDING) for column in columns)


def key_first(key: Sequence[int], arity: int) -> Order:
    """The order of all columns of a stream in which those of a key come first."""
    return ascending([*key, *(c for c in range(arity) if c not in key)])


class Integral:
    """The sum of a stream up to some tick. Immutable: `plus` makes the next one."""

    __slots__ = ("_last", "order", "version")

    def __init__(self, version: Version, order: Order) -> None:
        self.version, self.order = version, order
        # What `weights_of` was last asked for, and its answer: `distinct` asks for rows that are then added.
        self._last: tuple[Rows, Rows] | None = None

    @classmethod
    def zero(cls, arena: Arena, order: Order, *, page_rows: int, dir_rows: int) -> Integral:
        """The integral of a stream that had no rows yet."""
        store = Store(arena, len(order), 1, page_rows=page_rows, dir_rows=dir_rows)
        return cls(store.empty(), order)

    def __len__(self) -> int:
        return len(self.version)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same integral: of one that nothing was added to, the next is itself."""
        return isinstance(other, Integral) and self.version is other.version

    __hash__ = None  # type: ignore[assignment]

    def plus(self, delta: ZSet) -> Integral:
        """The integral after a tick. `WeightOverflowError` if a weight leaves int64."""
        delta = delta.normal()
        if not len(delta):
            return self
        rows = self._ordered(delta.rows)
        last = self._last
        before = last[1] if last is not None and last[0] is delta.rows else self.version.values_of(rows)[0]
        after = added(before, delta.weights)
        ops = np.where(after != 0, 1, -1).astype(np.int8)
        version, _ = self.version.update(np.concatenate([rows, after[None, :]]), ops)
        return Integral(version, self.order)

    def weights_of(self, rows: Rows) -> Rows:
        """The weight of each of `rows` int64[arity, m], 0 of those that are not there."""
        weights: Rows = self.version.values_of(self._ordered(rows))[0]
        self._last = rows, weights
        return weights

    def zset(self) -> ZSet:
        """All of it. O(n)."""
        return self._given(self.version.columns())

    def under(self, prefixes: Rows, *, first: int = 0) -> tuple[ZSet, Rows]:
        """(the rows that begin with one of the prefixes int64[k, m], which prefix each does) by the first k columns.

        Prefixes are distinct and in order. In the integral's order under each; `first`: at most so many rows of each
        that have a positive weight, and no others.
        """
        rows, which = self.version.matches(self._ordered(prefixes, len(prefixes)), first=first)
        return self._given(rows), which

    def between(self, lows: Rows, highs: Rows, *, first: int = 0) -> tuple[ZSet, Rows]:
        """(the rows of a prefix with the next column in a closed interval, which interval each is in).

        `lows` int64[k + 1, m] in order: the first k columns and the least value of the next, all ascending; `highs`
        int64[m]: its greatest. `first`: at most so many rows of each.
        """
        rows, which = self.version.between(lows, highs, first=first)
        return self._given(rows), which

    def split(self, bound: int) -> tuple[ZSet, Integral]:
        """(the rows whose first column, ascending, is below `bound`, the integral of the others). O(log n + rows)."""
        stored, version = below(self.version, bound)
        return self._given(stored), self if version is self.version else Integral(version, self.order)

    def memory(self) -> int:
        """Bytes of its pages."""
        return self.version.memory()

    def _ordered(self, rows: Rows, k: int | None = None) -> Rows:
        """Rows of the stream (or their first k columns in this order) as they are stored."""
        order = self.order[:k]
        if k is not None:
            stored = np.ascontiguousarray(rows)
        elif [column for column, _ in order] == list(range(len(rows))):
            stored = rows
        else:
            stored = rows[[column for column, _ in order]]
        if any(way for _, way in order):
            return np.stack([arranged(codes, way) for codes, (_, way) in zip(stored, order, strict=True)])
        return stored

    def _given(self, stored: Rows) -> ZSet:
        """Stored rows, with their weights, as rows of the stream."""
        rows = np.empty((len(self.order), stored.shape[1]), np.int64)
        for i, (column, way) in enumerate(self.order):
            rows[column] = _codes(stored[i], way)
        in_order = all(part == (i, ASCENDING) for i, part in enumerate(self.order))
        return ZSet(rows, np.ascontiguousarray(stored[len(self.order)]), normal=in_order)


def below(version: Version, bound: int) -> tuple[Rows, Version]:
    """(the rows int64[cols, n] whose first column is below `bound`, the version without them)."""
    upto = version.seek([bound]) if len(version) else version.begin()
    rows = version.columns(version.begin(), upto)
    if not rows.shape[1]:
        return rows, version
    return rows, version.update(rows, np.full(rows.shape[1], -1, np.int8))[0]
