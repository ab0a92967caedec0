"""Totals: counts, sums and means of all rows with a key, kept by adding and taking away.

All of them are linear in the rows, so that a change of the rows is a change of the totals of its keys:

    kept per key     the sum of all weights; per total the sum of weights of its rows, and of weight times value

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
from lftj.evaluate.accumulators import MOST, Accumulators, Folding, Sums, sums_of
from lftj.streams.by_key import starts_of
from lftj.streams.operators import PER_KEY, Operator, Room, Tick, Value, zset_of
from lftj.streams.zsets import SAFE, WeightOverflowError, ZSet, added, check_sum
from lftj.values.codes import decode_float, encode_float

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
    """The accumulators of all keys: of the weights, then one for each total.

    `most`: no count is beyond it: the magnitudes of all weights that ever came.
    """

    weights: Accumulators
    totals: tuple[Accumulators, ...]
    most: float = 0.0


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
        change = TotalsChange(self)
        after = change.added(change.start(room), zset)
        return change.rows(after, change.keys(zset))

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
        return TotalsState(
            self._none("count", "", room), tuple(self._none(t.op, t.operand, room) for t in self.of.totals)
        )

    def step(self, state: TotalsState, values: Sequence[Value], tick: Tick) -> tuple[Value, TotalsState]:
        """Add the change to the totals of its keys."""
        delta = zset_of(values[0]).normal()
        if not len(delta):
            return ZSet.zero(self.of.width), state
        after, keys = self.added(state, delta), self.keys(delta)
        if after.most >= SAFE:
            self._check_counts(state, after, keys)
        return self.rows(after, keys).plus(self.rows(state, keys).negated()).normal(), after

    def _check_counts(self, before: TotalsState, after: TotalsState, keys: Rows) -> None:
        """`WeightOverflowError` if a count left int64 between two states."""
        for old, new in zip((before.weights, *before.totals), (after.weights, *after.totals), strict=True):
            was, now = old.table.values_of(keys)[0], new.table.values_of(keys)[0]
            added(was, now - was)

    def _none(self, op: str, operand: str, room: Room) -> Accumulators:
        folding = Folding(op, len(self.of.key), "" if op == "count" else operand)
        none = np.empty((folding.width, 0), np.int64)
        sums = sums_of(folding, none, none[0] if len(none) else np.empty(0, np.int64))
        return Accumulators.of(room.arena, folding, sums, page_rows=room.page_rows, dir_rows=room.dir_rows)

    def keys(self, zset: ZSet) -> Rows:
        """The distinct keys of rows, in order."""
        rows = zset.rows[list(self.of.key)]
        if not len(rows):
            return rows[:, :1]
        rows = rows[:, np.lexsort(rows[::-1])]
        return np.ascontiguousarray(rows[:, starts_of(rows)]) if rows.shape[1] else rows

    def added(self, state: TotalsState, delta: ZSet) -> TotalsState:
        """The totals after a change."""
        check_sum(delta.weights)
        groups = delta.rows[list(self.of.key)]
        made = []
        for total, accumulators in zip(self.of.totals, state.totals, strict=True):
            rows = groups if total.op == "count" else np.vstack([groups, delta.rows[total.column]])
            weights = delta.weights
            if total.where >= 0:
                counted = delta.rows[total.where] != 0
                rows, weights = np.compress(counted, rows, axis=1), weights[counted]
            made.append(_plus(accumulators, rows, weights))
        most = state.most + float(np.abs(delta.weights.astype(np.float64)).sum())
        return TotalsState(_plus(state.weights, groups, delta.weights), tuple(made), most)

    def rows(self, state: TotalsState, keys: Rows) -> ZSet:
        """The rows of those of `keys` int64[k, m] that have one."""
        there = state.weights.table.values_of(keys)[0] != 0
        keys = np.compress(there, keys, axis=1)
        columns = [self._results(accumulators, keys) for accumulators in state.totals]
        rows = np.vstack([keys, *columns]) if columns else keys
        return ZSet(np.ascontiguousarray(rows), np.ones(keys.shape[1], np.int64))

    def _results(self, accumulators: Accumulators, keys: Rows) -> Rows:
        values = accumulators.table.values_of(keys)
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


def _plus(accumulators: Accumulators, rows: Rows, weights: Rows) -> Accumulators:
    """The accumulators after rows with weights of either sign are added."""
    if accumulators.folding.op != "count" and np.abs(weights.astype(np.float64)).sum() >= MOST:
        raise WeightOverflowError
    sums: Sums = sums_of(accumulators.folding, np.ascontiguousarray(rows), weights)
    return accumulators.updated(sums)
