"""Totals: counts, sums and means of all rows with a key, kept by adding and taking away.

All of them are linear in the rows, so that a change of the rows is a change of the totals of its keys:

    kept per key     the sum of all weights; per total the sum of weights of its rows, and of weight times value,
                     all in one table, which a step looks up and changes once; sums of floats have tables of their own

A key has a row of totals while the sum of its weights is not zero. Integer sums are exact and refused beyond 64 bits;
sums of floats are those of `math.fsum`, whatever came and went (accumulators.py).
They are made for weights below 2**31: beyond, a sum or mean is refused, a count is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.accumulators import MOST, Accumulators, Folding, Sums, carried, sums_of
from lftj.streams.operators import PER_KEY, Operator, Room, Tick, Value, zset_of
from lftj.streams.zsets import SAFE, WeightOverflowError, ZSet, added, check_sum
from lftj.values.codes import decode_float, encode_float
from scantree.version import Store

Rows = npt.NDArray[np.int64]


class Total(NamedTuple):
    """One total: `op` "count", "sum" or "mean" of `column` (of type `operand`).

    `where`: a column that says which rows count, 1 or 0; -1: all.
    """

    op: str
    column: int
    operand: str
    where: int


class TotalsState(NamedTuple):
    """The accumulators of all keys: weights and, in further columns, all totals but those of floats; then of these.

    `most`: no count is beyond it: the magnitudes of all weights that ever came.
    """

    weights: Accumulators
    totals: tuple[Accumulators, ...]
    most: float = 0.0


class Placed(NamedTuple):
    """A total, how it is folded, and where its values begin in the table of all keys; -1: it has one of its own."""

    total: Total
    folding: Folding
    first: int

    @property
    def words(self) -> slice:
        """Its columns of values in the table of all keys."""
        return slice(self.first, self.first + self.folding.words)


@dataclass(frozen=True)
class Totals(Operator):
    """A row (key..., totals...) for each key."""

    symbol: ClassVar[str] = "totals"
    law: ClassVar[str] = PER_KEY
    key: tuple[int, ...]
    totals: tuple[Total, ...]
    text: str = ""

    @property
    def label(self) -> str:
        """What it computes."""
        return f"totals {self.text}"

    @property
    def width(self) -> int:
        """The key and the totals."""
        return len(self.key) + len(self.totals)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Add up the whole value."""
        return self.of(zset_of(values[0]), tick.room), None

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set."""
        zset = zset.normal()
        if not len(zset):
            return ZSet.zero(self.width)
        change = TotalsChange(self)
        return change.made(change.start(room), zset)[1]

    def changes(self) -> tuple[Operator, None]:
        """The operator of its changes, which reads no integral."""
        return TotalsChange(self), None


@dataclass(frozen=True)
class TotalsChange(Operator):
    """How totals change by a change of the rows."""

    symbol: ClassVar[str] = "totalsΔ"
    of: Totals

    @property
    def label(self) -> str:
        """What it computes."""
        return f"totalsΔ {self.of.text}"

    def start(self, room: Room) -> TotalsState:
        """Nothing."""
        places, k = self._placed(), len(self.of.key)
        width = 1 + sum(p.folding.words for p in places if p.first > 0)
        store = Store(room.arena, k, width, page_rows=room.page_rows, dir_rows=room.dir_rows)
        return TotalsState(
            Accumulators(Folding("count", k, ""), store.empty(), None),
            tuple(self._none(p.folding, room) for p in places if p.first < 0),
        )

    def _placed(self) -> list[Placed]:
        """Where each total is kept: a plain count is the sum of all weights, which is the first value of a key."""
        places, first = [], 1
        for total in self.of.totals:
            folding = Folding(total.op, len(self.of.key), "" if total.op == "count" else total.operand)
            if total.op == "count" and total.where < 0:
                places.append(Placed(total, folding, 0))
            elif folding.operand == "float":
                places.append(Placed(total, folding, -1))
            else:
                places.append(Placed(total, folding, first))
                first += folding.words
        return places

    def step(self, state: TotalsState, values: Sequence[Value], tick: Tick) -> tuple[Value, TotalsState]:
        """Add the change to the totals of its keys."""
        delta = zset_of(values[0]).normal()
        if not len(delta):
            return ZSet.zero(self.of.width), state
        before, after, following = self.made(state, delta)
        return after.plus(before.negated()).normal(), following

    def _none(self, folding: Folding, room: Room) -> Accumulators:
        none = np.empty((folding.width, 0), np.int64)
        sums = sums_of(folding, none, np.empty(0, np.int64))
        return Accumulators.of(room.arena, folding, sums, page_rows=room.page_rows, dir_rows=room.dir_rows)

    def made(self, state: TotalsState, delta: ZSet) -> tuple[ZSet, ZSet, TotalsState]:
        """(the rows of the keys of a change, not empty, before it, and after it; the totals after it)."""
        check_sum(delta.weights)
        groups, places = delta.rows[list(self.of.key)], self._placed()
        sums = [self._sums(place, groups, delta) for place in places]
        weights = sums_of(state.weights.folding, groups, delta.weights)
        keys, table = weights.groups, state.weights.table
        more = [weights.values, *(s.values for place, s in zip(places, sums, strict=True) if place.first > 0)]
        before = table.values_of(keys)
        after = before + np.vstack(more)
        for place in places:
            if place.first > 0:
                after[place.words] = carried(place.folding, after[place.words])
        following = state.weights.moved(weights, after)
        most = state.most + float(np.abs(delta.weights.astype(np.float64)).sum())
        if most >= SAFE:
            _check_counts(before, after)
        there = before[0] != 0, after[0] != 0
        parts: list[list[Rows]] = [[np.compress(held, keys, axis=1)] for held in there]
        own, totals = iter(state.totals), []
        for place, added_to in zip(places, sums, strict=True):
            if place.first < 0:
                was = next(own)
                values = was.values(added_to)
                now = was.moved(added_to, values[1])
                totals.append(now)
            else:
                was = now = Accumulators(place.folding, table, None)
                values = before[place.words], after[place.words]
            if most >= SAFE:
                _check_counts(*values)
            for part, held, of, at in zip(parts, there, values, (was, now), strict=True):
                part.append(self._results(at, part[0], of if held.all() else np.compress(held, of, axis=1)))
        rows = [ZSet(np.ascontiguousarray(np.vstack(part)), np.ones(part[0].shape[1], np.int64)) for part in parts]
        return rows[0], rows[1], TotalsState(following, tuple(totals), most)

    def _sums(self, place: Placed, groups: Rows, delta: ZSet) -> Sums:
        """What a change adds to a total: something for each of its keys, nothing where no row counts."""
        total, weights = place.total, delta.weights
        if total.where >= 0:
            weights = weights * (delta.rows[total.where] != 0)
        if total.op != "count" and np.abs(weights.astype(np.float64)).sum() >= MOST:
            raise WeightOverflowError
        rows = groups if total.op == "count" else np.vstack([groups, delta.rows[total.column]])
        return sums_of(place.folding, rows, weights)

    def _results(self, accumulators: Accumulators, keys: Rows, values: Rows) -> Rows:
        """The results of keys with their values in the table."""
        op, owed = accumulators.folding.op, values[0] < 0
        nothing = op == "mean" and bool((values[0] == 0).any())
        if op != "count" and owed.any():
            # More was taken away than was there. A mean has the sum of that sign, divided by how many they are.
            values = values.copy()
            values[0] = np.where(owed, -values[0], values[0])
        if accumulators.folding.operand == "float":
            # An inf that is owed is a -inf.
            inf, negative = values[1], values[2]
            values = np.stack(
                [values[0], np.maximum(inf, 0) - np.minimum(negative, 0), np.maximum(negative, 0) - np.minimum(inf, 0)]
            )
        codes, without = (values[0], None) if nothing else accumulators.results(keys, values)
        if op == "mean" and owed.any() and not nothing:
            codes = np.where(owed, encode_float(-decode_float(codes)), codes)
        if nothing or (without is not None and without.any()):
            raise EvaluationError(
                f"a {op} has no value for some key",
                why="it is beyond its type, or a mean of nothing, or adds inf and -inf; the step was not made",
                remedy="make the column a float, or leave such rows out",
            )
        return codes


def _check_counts(before: Rows, after: Rows) -> None:
    """`WeightOverflowError` if a count, the first of the values of each key, left int64 on its way."""
    added(before[0], after[0] - before[0])
