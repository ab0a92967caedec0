"""Functions by key that follow an order: the first rows, and the neighbours of a row.

    TopK        the first k rows of each key
    Neighbour   each row with a column of the row so many places before or after it (lag and lead)

Rows are ordered by columns, each ascending or descending, then by all others, so that the result is one. Texts that
are named are ordered as texts, for which all rows of a key are read; other texts by their codes: as they first came.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lftj.evaluate.group_scan import folded_rows
from lftj.language.clause import Value
from lftj.streams.by_key import starts_of
from lftj.streams.integral import ASCENDING, NULL_FIRST, Order, arranged, ascending
from lftj.streams.operators import Columns, Room
from lftj.streams.zsets import ZSet, are_small
from lftj.values.codes import KEY_MAX
from lftj.values.type_table import in_dictionary, is_nullable, type_of

Rows = npt.NDArray[np.int64]


def from_null(type_: str) -> int:
    """The way of a column from its least value, before which null comes."""
    return NULL_FIRST if is_nullable(type_) and type_of(type_).null == KEY_MAX else ASCENDING


@dataclass(frozen=True)
class Ranking:
    """Rows by key, in an order. `by`: (column, way), first things first; `columns` of the stream."""

    key: tuple[int, ...]
    by: Order
    columns: Columns

    @property
    def order(self) -> Order:
        """The key, then what rows are ordered by, then the rest."""
        named = [*ascending(self.key), *((c, way) for c, way in self.by if c not in self.key)]
        known = {c for c, _ in named}
        return (*named, *((c, from_null(column.type)) for c, column in enumerate(self.columns) if c not in known))

    @property
    def of_texts(self) -> bool:
        """Whether codes are not in the order of the values."""
        return any(in_dictionary(self.columns[c].type) for c, _ in self.by)

    def in_order(self, zset: ZSet, starts: Rows, room: Room) -> ZSet:
        """Rows of keys in the order of the values, where that is another than that of the codes."""
        if not self.of_texts:
            return zset
        named = {column for column, _ in self.by}
        keys = [np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(zset))))]
        for column, way in self.order[len(self.key) :]:
            codes = zset.rows[column]
            ordered = room.symbols.order(codes, self.columns[column].type) if column in named else codes
            keys.append(arranged(ordered, way))
        order = np.lexsort(keys[::-1])
        return ZSet(np.take(zset.rows, order, axis=1), zset.weights[order])


@dataclass(frozen=True)
class Ranked:
    """A function of the rows of each key in the order of a ranking."""

    ranking: Ranking

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the key."""
        return self.ranking.key

    @property
    def order(self) -> Order:
        """The order in which it reads."""
        return self.ranking.order


@dataclass(frozen=True)
class TopK(Ranked):
    """The first `count` rows of each key; a row of weight w stands for w rows. `once`: as a set.

    `numbered`: with the place of the row, from 1, as a last column; rows that stand for several have the first place.
    """

    count: int
    once: bool = False
    numbered: bool = False
    symbol: str = "top"

    @property
    def first(self) -> int:
        """How many rows it needs of a key."""
        return 0 if self.ranking.of_texts else self.count

    @property
    def width(self) -> int:
        """The columns of the stream, and the place."""
        return len(self.ranking.columns) + self.numbered

    def made(self, zset: ZSet, starts: Rows, room: Room) -> ZSet:
        """The first rows of each key."""
        if self.first == 0:
            zset = self.ranking.in_order(zset, starts, room)
            zset = zset.kept(zset.weights > 0)
            if not len(zset):
                return ZSet.zero(self.width)
            starts = starts_of(zset.rows[list(self.key)])
        weights = np.ones(len(zset), np.int64) if self.once else np.minimum(zset.weights, self.count)
        # Sums that are beyond 64 bits are beyond the count, too, but would wrap.
        exact = weights if are_small(weights) else weights.astype(object)
        before = np.cumsum(exact) - exact
        before -= np.repeat(before[starts], np.diff(np.append(starts, len(zset))))
        before = np.minimum(before, self.count).astype(np.int64)
        weights = np.minimum(weights, self.count - before)
        rows = np.vstack([zset.rows, before + 1]) if self.numbered else zset.rows
        return ZSet(rows, weights).kept(weights > 0)


@dataclass(frozen=True)
class Neighbour(Ranked):
    """Each row with column `column` of the row `offset` places before it (after it, if negative), `fill` without one.

    A row of weight n is one place, and not n: all its copies have the neighbour of this place, which is another row.
    """

    column: int
    offset: int
    fill: Value
    symbol: str = "lag"
    first: int = 0

    @property
    def width(self) -> int:
        """The columns of the stream, and the neighbour's."""
        return len(self.ranking.columns) + 1

    def made(self, zset: ZSet, starts: Rows, room: Room) -> ZSet:
        """The rows with their neighbours."""
        zset = self.ranking.in_order(zset, starts, room)
        zset = zset.kept(zset.weights > 0)
        n = len(zset)
        if not n:
            return ZSet.zero(self.width)
        starts = starts_of(zset.rows[list(self.key)])
        group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))
        at = np.arange(n) - self.offset
        inside = np.clip(at, 0, n - 1)
        there = (at >= 0) & (at < n) & (group[inside] == group)
        value = self.fill.value
        code = room.symbols.intern_value(value, self.fill.type)
        found = np.where(there, zset.rows[self.column][inside], code)
        return ZSet(np.vstack([zset.rows, found]), zset.weights)


@dataclass(frozen=True)
class QuantileByKey(Ranked):
    """The quantile `symbol` of the values of each key: (key..., quantile).

    The ranking is by the value, whose column is `column` · `times`: the column that says how often it counts; -1: as
    often as the weight of its row says.
    """

    column: int
    symbol: str
    times: int = -1
    first: int = 0

    @property
    def width(self) -> int:
        """The key and the quantile."""
        return len(self.key) + 1

    def made(self, zset: ZSet, starts: Rows, room: Room) -> ZSet:
        """The quantile of each key."""
        zset = zset.kept(zset.weights > 0)
        times = zset.weights if self.times < 0 else zset.rows[self.times]
        rows = np.vstack([zset.rows[[*self.key, self.column]], times])
        made = folded_rows(self.symbol, rows, len(self.key), self.ranking.columns[self.column].type, room.symbols)
        return ZSet(made, np.ones(made.shape[1], np.int64))


@dataclass(frozen=True)
class Joined(Ranked):
    """The texts of column `column` of each key, one after the other in the order of the rows: a row (key..., text)."""

    column: int
    symbol: str = "cat"
    first: int = 0

    @property
    def width(self) -> int:
        """The key and the text."""
        return len(self.key) + 1

    def made(self, zset: ZSet, starts: Rows, room: Room) -> ZSet:
        """The texts of each key, joined."""
        zset = self.ranking.in_order(zset, starts, room)
        zset = zset.kept(zset.weights > 0)
        if not len(zset):
            return ZSet.zero(self.width)
        starts = starts_of(zset.rows[list(self.key)])
        texts = room.symbols.decode(zset.rows[self.column]).to_pylist()
        ends = np.append(starts[1:], len(zset)).tolist()
        joined = ["".join(texts[lo:hi]) for lo, hi in zip(starts.tolist(), ends, strict=True)]
        rows = np.vstack([zset.rows[list(self.key)][:, starts], room.symbols.intern(joined)])
        return ZSet(rows, np.ones(len(starts), np.int64))
