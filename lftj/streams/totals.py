"""Totals: counts, sums, means and variances of all rows with a key, kept by adding and taking away.

All of them are linear in the rows, so that a change of the rows is a change of the totals of its keys:

    kept per key     the sum of all weights; per total the sum of weights of its rows, and of weight times value,
                     all in one table, which a step looks up and changes once; sums of floats, and of squares, have
                     tables of their own

A key has a row of totals while the sum of its weights is not zero, or that of some of them. Integer sums are exact and
refused beyond 64 bits; sums of floats are those of `math.fsum`, whatever came and went (accumulators.py).
Weights may be any of int64: where those of a change are large, wide_sums.py adds them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.accumulators import (
    COUNT,
    HIGH,
    MOST,
    Accumulators,
    Folding,
    Results,
    Sums,
    carried,
    check_times,
    sums_of,
)
from lftj.language.aggregate_specs import AGGREGATES
from lftj.streams.integral import Integral, ascending
from lftj.streams.operators import PER_KEY, Columns, Operator, Room, Tick, TickByTick, Value, zset_of
from lftj.streams.wide_sums import WIDE, magnitude, small_pieces, wide_mean, wide_sums, without_over
from lftj.streams.zsets import ZSet, added, check_sums
from scantree.consolidate import runs_of
from scantree.version import Rows, Store

Bools = npt.NDArray[np.bool_]


class Total(NamedTuple):
    """One total: `op`, of those that accumulate, of `column` (of type `operand`).

    `where`: a column that says how often a row counts, of a condition 1 or 0; -1: once · `text`: what it is, as the
    user wrote it.
    """

    text: str
    op: str
    column: int
    operand: str
    where: int


class TotalsState(NamedTuple):
    """The accumulators of all keys: weights and, in further columns, all totals but those in segments; then of these.

    `most`: no count is beyond it: the magnitudes of all weights that ever came · `over`: (place, key...) -> what the
    words of a total do not hold of it (wide_sums.py); None before weights were large.
    """

    weights: Accumulators
    totals: tuple[Accumulators, ...]
    most: float = 0.0
    over: Integral | None = None


class Placed(NamedTuple):
    """A total, how it is folded, and where its values begin in the table of all keys; -1: it has one of its own."""

    total: Total
    folding: Folding
    first: int

    @property
    def words(self) -> slice:
        """Its columns of values in the table of all keys."""
        return slice(self.first, self.first + self.folding.words)

    @property
    def checked(self) -> tuple[int, ...]:
        """Which of its values may grow beyond int64."""
        return (COUNT,)


# By the place of a total, what `over` has of it of each key, before and after.
Beyond = dict[int, tuple[Rows, Rows]]


@dataclass(frozen=True)
class Totals(TickByTick):
    """A row (key..., totals...) for each key while the weights of its rows do not add up to zero.

    `group`: the columns of the key · `there`: the column that says which rows these are, 1 or 0; -1: all · `needed`:
    counts that may not be zero either · `marked`: with a last column, 1 where some total has no value (and is 0), else
    0; without it such a key is an error.
    """

    symbol: ClassVar[str] = "totals"
    law: ClassVar[str] = PER_KEY
    key: tuple[int, ...]
    group: Columns
    totals: tuple[Total, ...]
    there: int = -1
    needed: tuple[int, ...] = ()
    marked: bool = False

    @property
    def label(self) -> str:
        """What it computes."""
        return f"totals {self.text}"

    @property
    def text(self) -> str:
        """All totals, as the user wrote them."""
        return ", ".join(total.text for total in self.totals)

    @property
    def width(self) -> int:
        """The key, the totals and the mark."""
        return len(self.key) + len(self.totals) + self.marked

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set."""
        if not len(zset):
            return ZSet.zero(self.width)
        change = TotalsChange(self)
        return change.change(change.start(room), zset, room)[0]

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
        """Where each total is kept: a count of the rows that a key is there by is its first value."""
        places, first = [], 1
        for total in self.of.totals:
            folding = Folding(total.op, len(self.of.key), "" if total.op == "count" else total.operand)
            if total.op == "count" and total.where == self.of.there:
                places.append(Placed(total, folding, 0))
            elif folding.segmented:
                places.append(Placed(total, folding, -1))
            else:
                places.append(Placed(total, folding, first))
                first += folding.words
        return places

    def step(self, state: TotalsState, values: Sequence[Value], tick: Tick) -> tuple[Value, TotalsState]:
        """Add the change to the totals of its keys."""
        delta = zset_of(values[0])
        if not len(delta):
            return ZSet.zero(self.of.width), state
        return self.change(state, delta, tick.room)

    def _none(self, folding: Folding, room: Room) -> Accumulators:
        none = np.empty((folding.width, 0), np.int64)
        sums = sums_of(folding, none, np.empty(0, np.int64))
        return Accumulators.of(room.arena, folding, sums, page_rows=room.page_rows, dir_rows=room.dir_rows)

    def _without_over(
        self, over: Integral, keys: Rows, places: list[Placed], more: list[Rows | int], after: Rows
    ) -> tuple[Integral, Beyond]:
        """(the next `over`, what it has of the totals of the keys); high words of `after` are made small in place."""
        found: Beyond = {}
        for i, (place, added_over) in enumerate(zip(places, more, strict=True)):
            if place.first <= 0 or not place.folding.operand:
                continue
            high = place.first + HIGH
            excess, after[high] = without_over(after[high])
            rows = np.vstack([keys, np.full((1, keys.shape[1]), i)])
            before = over.weights_of(rows)
            over = over.plus(ZSet(rows, added_over + excess))
            found[i] = before, before + added_over + excess
        return over, found

    def change(self, state: TotalsState, delta: ZSet, room: Room) -> tuple[ZSet, TotalsState]:
        """(how the rows of the keys of a change, not empty, change; the totals after it)."""
        delta, starts = _by_key(delta, list(self.of.key))
        check_sums(delta.weights, starts)
        groups, places = delta.rows[list(self.of.key)], self._placed()
        sums, overs = [], []
        for place in places:
            added_sums, added_over = self._sums(place, groups, delta, starts)
            sums.append(added_sums)
            overs.append(added_over)
        weights = _counts(groups, self._counting(delta, self.of.there), starts)
        keys, table = weights.groups, state.weights.table
        more = [weights.values, *(s.values for place, s in zip(places, sums, strict=True) if place.first > 0)]
        before = table.values_of(keys)
        after = before + np.vstack(more)
        for place in places:
            if place.first > 0:
                after[place.words] = carried(place.folding, after[place.words])
        most, over, beyond = state.most + magnitude(delta.weights), state.over, Beyond()
        if most >= WIDE:
            over = room.integral(ascending(range(len(self.of.key) + 1))) if over is None else over
            over, beyond = self._without_over(over, keys, places, overs, after)
        following = state.weights.moved(weights, after)
        if most >= WIDE:
            for word in (0, *(place.first + i for place in places if place.first > 0 for i in place.checked)):
                added(before[word], after[word] - before[word])
        must = [0, *(places[i].first for i in self.of.needed)]
        there = (before[must] != 0).all(axis=0), (after[must] != 0).all(axis=0)
        parts: list[list[Rows]] = [[np.compress(held, keys, axis=1)] for held in there]
        marks = [np.zeros(part[0].shape[1], np.bool_) for part in parts]
        own, totals = iter(state.totals), []
        for number, (place, added_to) in enumerate(zip(places, sums, strict=True)):
            if place.first < 0:
                was = next(own)
                if most >= WIDE and not place.folding.squares:
                    added_to = small_pieces(was, added_to)
                values = was.values(added_to)
                if most >= WIDE:
                    added(values[0], values[1] - values[0])
                now = was.moved(added_to, values[1])
                totals.append(now)
            else:
                was = now = Accumulators(place.folding, table, None)
                values = before[place.words], after[place.words]
            overs_of = beyond.get(number, (None, None))
            for part, mark, held, of, at, more_of in zip(
                parts, marks, there, values, (was, now), overs_of, strict=True
            ):
                of, held_over = np.compress(held, of, axis=1), None if more_of is None else more_of[held]
                codes, without = self._results(at, part[0], of, held_over)
                if self.of.marked and without is not None:
                    mark |= without
                    codes = np.where(without, 0, codes)
                elif without is not None and without.any():
                    raise self._no_value(place.total, part[0][:, np.argmax(without)], room)
                part.append(codes)
        if self.of.marked:
            for part, mark in zip(parts, marks, strict=True):
                part.append(mark.astype(np.int64))
        change = _exchanged(np.vstack(parts[0]), np.vstack(parts[1]), there, len(self.of.key))
        return change, TotalsState(following, tuple(totals), most, over)

    def _counting(self, delta: ZSet, where: int) -> Rows:
        """The weights of the rows by how often they count."""
        return delta.weights if where < 0 else delta.weights * delta.rows[where]

    def _sums(self, place: Placed, groups: Rows, delta: ZSet, starts: Rows) -> tuple[Sums, Rows | int]:
        """What a change adds to a total, and to `over`: something for each of its keys, nothing where no row counts."""
        total = place.total
        weights = self._counting(delta, total.where)
        if total.op == "count":
            return _counts(groups, weights, starts), 0
        rows = np.vstack([groups, delta.rows[total.column]])
        if place.folding.squares:  # exact as they are, for all groups of so few bindings that they have a value
            check_times(total.op, weights)
        elif magnitude(weights) >= WIDE:
            return wide_sums(place.folding, rows, weights)
        return sums_of(place.folding, rows, weights), 0

    def _results(self, accumulators: Accumulators, keys: Rows, values: Rows, over: Rows | None) -> Results:
        """(the results of keys with their values in the table, which of them have none)."""
        op, counts = accumulators.folding.op, values[0]
        if op == "mean" and (counts == 0).any():
            return counts, counts == 0
        if accumulators.folding.operand == "float":
            # An inf that is owed is a -inf.
            inf, negative = values[1], values[2]
            values = np.stack(
                [counts, np.maximum(inf, 0) - np.minimum(negative, 0), np.maximum(negative, 0) - np.minimum(inf, 0)]
            )
        if op == "mean":
            return _means(accumulators, keys, values, over)
        if accumulators.folding.squares:
            return _variances(accumulators, keys, values)
        codes, without = accumulators.results(keys, values)
        return codes, without if over is None or without is None else without | (over != 0)

    def _no_value(self, total: Total, key: Rows, room: Room) -> EvaluationError:
        """The error for a key without a value of a total."""
        held = ", ".join(
            f"{column.name} = {room.symbols.value(int(code), column.type)!r}"
            for column, code in zip(self.of.group, key, strict=True)
        )
        return EvaluationError(
            f"`{total.text}` has no value" + (f" for {held}" if held else ""),
            why="it is beyond its type, or adds inf and -inf; the step was not made",
            remedy="leave such rows out, or make a column of whole numbers one of floats",
        )


def _by_key(zset: ZSet, key: list[int]) -> tuple[ZSet, Rows]:
    """(the rows of a Z-set, not empty, in the order of their keys, where each key begins)."""
    if not key:
        return zset, np.zeros(1, np.int64)
    _, order, starts = runs_of(zset.rows[key])
    return zset if order is None else ZSet(np.take(zset.rows, order, axis=1), zset.weights[order]), starts


def _counts(groups: Rows, weights: Rows, starts: Rows) -> Sums:
    """The sums of weights of rows in the order of their keys, each of which begins at one of `starts`."""
    none = np.empty((len(groups) + 1, 0), np.int64)
    return Sums(groups[:, starts], np.add.reduceat(weights, starts)[None, :], none, none[0])


def _exchanged(before: Rows, after: Rows, there: tuple[Bools, Bools], k: int) -> ZSet:
    """The rows `after` without the rows `before`, in normal form.

    Both are of the same keys, which are distinct and in order, in their first `k` columns. `there`: which keys have a
    row in each.
    """
    at = [np.flatnonzero(held) for held in there]
    both = there[0] & there[1]
    old, new = (np.compress(both[held], rows, axis=1) for rows, held in zip((before, after), there, strict=True))
    relation = np.zeros(old.shape[1], np.int8)  # of the old row to the new one, by the last columns first
    for one, two in zip(old[k:][::-1], new[k:][::-1], strict=True):
        relation = np.where(one == two, relation, np.where(one < two, np.int8(-1), np.int8(1)))
    # Every key has two places in the order: for the lesser row and for the greater one.
    second = [np.zeros(len(both), np.int64), np.ones(len(both), np.int64)]
    second[0][both], second[1][both] = relation > 0, relation < 0
    taken = np.full(2 * len(both), -1, np.int64)
    for places, later, first in zip(at, second, (0, len(at[0])), strict=True):
        taken[2 * places + later[places]] = np.arange(first, first + len(places))
    same = np.flatnonzero(both)[relation == 0]
    taken[2 * same] = taken[2 * same + 1] = -1
    taken = taken[taken >= 0]
    weights = np.repeat(np.array([-1, 1]), [len(places) for places in at])
    return ZSet(np.take(np.hstack([before, after]), taken, axis=1), weights[taken], normal=True)


def _variances(accumulators: Accumulators, keys: Rows, values: Rows) -> Results:
    """The variances of keys with their values in the table; anything for those of too few rows."""
    counts, least = values[0], AGGREGATES[accumulators.folding.op].least
    codes, without = accumulators.results(keys, np.vstack([np.clip(counts, least, MOST), values[1:]]))
    return codes, without if without is None else (without & (counts >= least)) | (counts >= MOST)


def _means(accumulators: Accumulators, keys: Rows, values: Rows, over: Rows | None) -> Results:
    """The means of keys with their values in the table, whose counts are not zero."""
    counts = values[0]
    usual = (counts < MOST) & (counts > -MOST)
    if over is not None:
        usual &= over == 0
    owed = counts < 0
    # More was taken away than was there: a mean has the sum of that sign, divided by how many they are.
    magnitudes = np.where(usual, np.where(owed, -counts, counts), 1)
    codes, without = accumulators.results(keys, np.vstack([magnitudes, values[1:]]))
    if owed.any():
        # The code of -x, unless x is 0; of a duration -x itself.
        of_float = AGGREGATES["mean"].result_of(accumulators.folding.operand) == "float"
        codes = np.where(owed & (codes != 0), ~codes if of_float else -codes, codes)
    if not usual.all():
        codes, without = codes.copy(), np.zeros(len(counts), np.bool_) if without is None else without.copy()
        for i in np.flatnonzero(~usual).tolist():
            more = 0 if over is None else int(over[i])
            mean = wide_mean(accumulators, keys[:, i], int(counts[i]), values[:, i], more)
            codes[i], without[i] = 0 if mean is None else mean, mean is None
    return codes, without
