"""Functions that act on the rows of each key alone: top-k, lag and lead, and what aggregates are made of.

    f(z)        for each key, some rows made of the rows of z with that key
    change      f of the integral after a tick less f of the integral before it, of the keys that changed at the tick

The rows of a key are read in an order of the function's own, from integrals that are kept in that order. A function
that needs the first rows only says so, and then a change costs O(log n) per key however many rows the key has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from lftj.streams.integral import Integral, Order, arranged
from lftj.streams.operators import PER_KEY, Operator, Room, Tick, TickByTick, Value, zset_of
from lftj.streams.zsets import ZSet
from scantree.consolidate import runs_of
from scantree.sort import sorting

Rows = npt.NDArray[np.int64]


class KeyFunction(Protocol):
    """A function of the rows of each key.

    `key`: the columns of the key · `order`: of all columns, those of the key first · `first`: how many rows of positive
    weight it needs of each key, in that order; 0: all rows · `width`: columns of what it makes · `symbol`: its name.
    """

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the key."""

    @property
    def first(self) -> int:
        """How many rows it needs of a key."""

    @property
    def symbol(self) -> str:
        """Its name."""

    @property
    def order(self) -> Order:
        """The order in which it reads."""

    @property
    def width(self) -> int:
        """Columns of a row that it makes."""

    def made(self, zset: ZSet, starts: Rows, room: Room) -> ZSet:
        """What it makes of rows in its order; those of a key begin at each of `starts`."""


@dataclass(frozen=True)
class ByKey(TickByTick):
    """A function by key, tick by tick."""

    symbol: ClassVar[str] = "by key"
    law: ClassVar[str] = PER_KEY
    function: KeyFunction

    @property
    def label(self) -> str:
        """The function."""
        return self.function.symbol

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the key."""
        return self.function.key

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set."""
        zset = zset.normal()
        if self.function.first:
            zset = zset.kept(zset.weights > 0)
        if not len(zset):
            return ZSet.zero(self.function.width)
        ordered = zset
        if len(zset.rows):  # else there is one row at most
            keys = np.stack([arranged(zset.rows[column], way) for column, way in self.function.order])
            order, _ = sorting(keys)
            ordered = ZSet(np.take(zset.rows, order, axis=1), zset.weights[order])
        return self.function.made(ordered, starts_of(ordered.rows[list(self.key)]), room)

    def changes(self) -> tuple[Operator, Order]:
        """The operator of its changes, and the order of the integrals that this reads."""
        return ByKeyChange(self.function), self.function.order


@dataclass(frozen=True)
class ByKeyChange(Operator):
    """How a function by key changes: of the change at a tick, and of the integrals before and after it.

    `sought`: the columns of the key as the integrals have them first; (): as the function names them.
    """

    symbol: ClassVar[str] = "Δ"
    function: KeyFunction
    sought: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """The function's change."""
        return f"{self.function.symbol}{self.symbol}"

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Look at the keys that change."""
        delta, before, after = zset_of(values[0]), values[1], values[2]
        assert isinstance(before, Integral)
        assert isinstance(after, Integral)
        if not len(delta):
            return ZSet.zero(self.function.width), None
        keys = distinct_keys(delta.rows[list(self.sought or self.function.key)])
        was, now = (self._of(integral, keys, tick.room) for integral in (before, after))
        return now.plus(was.negated()).normal(), None

    def _of(self, integral: Integral, keys: Rows, room: Room) -> ZSet:
        rows, which = integral.under(keys, first=self.function.first)
        if not len(rows):
            return ZSet.zero(self.function.width)
        starts = np.flatnonzero(np.append(True, which[1:] != which[:-1]))
        return self.function.made(rows, starts, room)


def starts_of(keys: Rows) -> Rows:
    """Where each run of equal keys int64[k, n > 0] begins."""
    first = np.ones(keys.shape[1], np.bool_)
    first[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return np.flatnonzero(first)


def distinct_keys(keys: Rows) -> Rows:
    """Distinct keys int64[k, m], in order."""
    if not len(keys):
        return keys[:, :1]
    rows, _, starts = runs_of(np.ascontiguousarray(keys))
    return np.ascontiguousarray(rows[:, starts])
