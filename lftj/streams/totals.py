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
    """The accumulators of all keys: of the weights, then one for each total (that of a plain count: the weights').

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
        weights = self._none("count", "", room)
        return TotalsState(
            weights, tuple(weights if _plain(t) else self._none(t.op, t.operand, room) for t in self.of.totals)
        )

    def step(self, state: TotalsState, values: Sequence[Value], tick: Tick) -> tuple[Value, TotalsState]:
        """Add the change to the totals of its keys."""
        delta = zset_of(values[0]).normal()
        if not len(delta):
            return ZSet.zero(self.of.width), state
        before, after, following = self.made(state, delta)
        return after.plus(before.negated()).normal(), following

    def _none(self, op: str, operand: str, room: Room) -> Accumulators:
        folding = Folding(op, len(self.of.key), "" if op == "count" else operand)
        none = np.empty((folding.width, 0), np.int64)
        sums = sums_of(folding, none, none[0] if len(none) else np.empty(0, np.int64))
        return Accumulators.of(room.arena, folding, sums, page_rows=room.page_rows, dir_rows=room.dir_rows)

    def made(self, state: TotalsState, delta: ZSet) -> tuple[ZSet, ZSet, TotalsState]:
        """(the rows of the keys of a change, not empty, before it, and after it; the totals after it)."""
        check_sum(delta.weights)
        groups = delta.rows[list(self.of.key)]
        sums = sums_of(state.weights.folding, groups, delta.weights)
        weights = state.weights.values(sums)
        most = state.most + float(np.abs(delta.weights.astype(np.float64)).sum())
        if most >= SAFE:
            _check_counts(*weights)
        following, keys = state.weights.moved(sums, weights[1]), sums.groups
        there = [values[0] != 0 for values in weights]
        parts: list[list[Rows]] = [[np.compress(held, keys, axis=1)] for held in there]
        totals = []
        for total, accumulators in zip(self.of.totals, state.totals, strict=True):
            if _plain(total):
                values, made = weights, following
            else:
                sums = self._sums(total, accumulators, groups, delta)
                values = accumulators.values(sums)
                made = accumulators.moved(sums, values[1])
            if most >= SAFE:
                _check_counts(*values)
            totals.append(made)
            for part, held, of, at in zip(parts, there, values, (accumulators, made), strict=True):
                part.append(self._results(at, part[0], of if held.all() else np.compress(held, of, axis=1)))
        before, after = (
            ZSet(np.ascontiguousarray(np.vstack(part)), np.ones(part[0].shape[1], np.int64)) for part in parts
        )
        return before, after, TotalsState(following, tuple(totals), most)

    def _sums(self, total: Total, accumulators: Accumulators, groups: Rows, delta: ZSet) -> Sums:
        """What a change adds to a total: something for each of its keys, nothing where no row counts."""
        weights = delta.weights
        if total.where >= 0:
            weights = weights * (delta.rows[total.where] != 0)
        if total.op != "count" and np.abs(weights.astype(np.float64)).sum() >= MOST:
            raise WeightOverflowError
        rows = groups if total.op == "count" else np.vstack([groups, delta.rows[total.column]])
        return sums_of(accumulators.folding, rows, weights)

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


def _plain(total: Total) -> bool:
    """Whether a total is the sum of all weights."""
    return total.op == "count" and total.where < 0


def _check_counts(before: Rows, after: Rows) -> None:
    """`WeightOverflowError` if a count, the first of the values of each key, left int64 on its way."""
    added(before[0], after[0] - before[0])
