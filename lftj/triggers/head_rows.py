"""Rows of a head from the maps of its count and its sum: of a group as long as it has a binding.

    count(d) 0 -> 1, total(d) 0 -> 12 at event 3;   total(d) 12 -> 15 at event 5, count(d) 1 -> 2 at event 5
    sum:     event 3  +(d, 12)          event 5  -(d, 12) +(d, 15)

What two maps log, of several statements each, becomes one step per event and group: the row before it and the row
after it. Steps of one number are one: with the same number for all events the rows are the net change of the head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.accumulators import BITS, LOW, SIGN, nearest_means, quotients, range_of_sums
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.types import scale_of
from lftj.store.change import ERASED, INSERTED, Change
from lftj.triggers.event_kernel import LOG_TABLE, OLD
from lftj.triggers.lowered import TablePlace
from lftj.triggers.maps import LogLines
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN, encode_float
from lftj.values.type_table import family_of, storage_of, type_of
from scantree.consolidate import consolidated
from scantree.sort import sorting

Ints = npt.NDArray[np.int64]


class NoResult(Exception):
    """A group has no result (its sum is out of the range of its type); `args[0]` says so in words."""


class RowLog(NamedTuple):
    """Rows that go and come, in the order of events.

    `rows` int64[arity, n] · `kinds` int8[n], INSERTED or ERASED · `numbers` int64[n], of the events.
    """

    rows: Ints
    kinds: npt.NDArray[np.int8]
    numbers: Ints

    @classmethod
    def none(cls, arity: int) -> RowLog:
        """No rows."""
        return cls(np.empty((arity, 0), np.int64), np.empty(0, np.int8), np.empty(0, np.int64))

    def net(self) -> Change:
        """What all of it changes."""
        if not len(self.kinds):
            return Change.none(len(self.rows))
        rows, weights = consolidated(self.rows, self.kinds.astype(np.int64))
        moved = weights != 0
        return Change(rows.compress(moved, axis=1), weights[moved].astype(np.int8))


class HeadRows:
    """How entries become rows.

    `keys`: how many the maps have · `shown`: of each column of the group, which key of the maps it is (from 0), or
    -1 - the number of a constant, whose codes are `constants`.
    """

    def __init__(self, op: str, operand: str, keys: int, shown: Sequence[int], constants: Sequence[int]) -> None:
        self.op, self.operand = op, operand
        self.shown, self.constants = tuple(shown), tuple(constants)
        self.storage = storage_of(operand) if operand else ""
        self.keys = keys
        self.by_key = self.shown == tuple(range(len(self.shown)))
        low, high = (range_of_sums(operand) if operand else None) or (NUMBER_MIN, NUMBER_MAX)
        self.low, self.high = (0, NUMBER_MAX) if self.storage == "unsigned" else (low, high)

    def plain_bounds(self) -> tuple[int, int] | None:
        """If a row is the keys, with the count or the sum as it is: the bounds of that; else None."""
        if not self.by_key:
            return None
        if self.op == "count":
            return NUMBER_MIN, NUMBER_MAX
        return (self.low, self.high) if self.op == "sum" and self.storage == "number" else None

    def rows(self, keys: Ints, counts: Ints, totals: Ints) -> Ints:
        """The rows int64[arity, n] of groups that have bindings. Raises `NoResult`."""
        results = self.results(counts, totals)
        rows = np.empty((len(self.shown) + 1, len(counts)), np.int64)
        for i, place in enumerate(self.shown):
            rows[i] = keys[place] if place >= 0 else self.constants[-1 - place]
        rows[-1] = results
        return rows

    def results(self, counts: Ints, totals: Ints) -> Ints:
        """The codes of the results of groups that have bindings. Raises `NoResult`."""
        if self.op == "count":
            return counts
        if self.op == "sum":
            if len(totals) and (int(totals.min()) < self.low or int(totals.max()) > self.high):
                raise NoResult(f"the sum of a group is out of the range of {self.operand}")
            return totals ^ SIGN if self.storage == "unsigned" else totals
        high, low = totals >> BITS, totals & LOW
        if family_of(self.operand) in AGGREGATES["mean"].keeps:
            codes, without = nearest_means(high, low, counts, type_of(self.operand))
            if without is not None:
                raise NoResult(f"the mean of a group is out of the range of {self.operand}")
            return codes
        return encode_float(quotients(high, low, counts, 10 ** scale_of(self.operand)))

    def one(self, key: tuple[int, ...], count: int, total: int) -> list[int] | None:
        """The row of one group; None if it has no binding. Raises `NoResult`."""
        if count <= 0:
            return None
        if self.op == "count":
            result = count
        elif self.op == "sum" and self.storage == "number" and self.low <= total <= self.high:
            result = total
        else:
            result = int(self.results(np.array([count]), np.array([total]))[0])
        if self.by_key:
            return [*key, result]
        return [*(key[place] if place >= 0 else self.constants[-1 - place] for place in self.shown), result]

    def change(self, logged: Logged) -> Change:
        """The net change by few lines of a log, which are read one by one. Raises `NoResult`."""
        found: dict[tuple[int, ...], list[int | None]] = {}
        for line in logged.lines.tolist():
            for place, at in zip((logged.counts, logged.totals), (0, 2), strict=True):
                if place is not None and line[LOG_TABLE] == place.table:
                    keys = OLD + 2 * logged.values[place.table]
                    states = found.setdefault(tuple(line[keys : keys + self.keys]), [None, None, None, None])
                    old = OLD + 2 * place.value
                    if states[at] is None:
                        states[at] = line[old]
                    states[at + 1] = line[old + 1]
        rows: list[tuple[list[int], int]] = []
        for key, (had, has, was, now) in found.items():
            if has is None:
                had = has = logged.value(logged.counts, key)
            if logged.totals is None:
                was = now = 0
            elif now is None:
                was = now = logged.value(logged.totals, key)
            assert had is not None
            assert was is not None
            assert now is not None
            before, after = self.one(key, had, was), self.one(key, has, now)
            if before != after:
                rows += [(row, kind) for row, kind in ((before, ERASED), (after, INSERTED)) if row is not None]
        if not rows:
            return Change.none(len(self.shown) + 1)
        rows.sort()
        columns = np.array([row for row, _ in rows], np.int64).T
        return Change(np.ascontiguousarray(columns), np.array([kind for _, kind in rows], np.int8))

    def net(self, lines: Ints, order: Ints, count: TablePlace, total: TablePlace | None, values: int) -> Change:
        """The net change by many lines of one table with so many `values`, which `order` has by group.

        Raises `NoResult`.
        """
        keys = lines[order, OLD + 2 * values : OLD + 2 * values + self.keys].T
        begins = np.flatnonzero(_begins(keys))
        firsts, lasts = order[begins], order[np.append(begins[1:], len(order)) - 1]
        keys = keys[:, begins]

        def states(place: TablePlace) -> tuple[Ints, Ints]:
            return lines[firsts, OLD + 2 * place.value], lines[lasts, OLD + 2 * place.value + 1]

        counts = states(count)
        totals = counts if total is None else states(total)
        there = [(side > 0) for side in counts]
        rows = [self.rows(keys[:, is_], n[is_], t[is_]) for is_, n, t in zip(there, counts, totals, strict=True)]
        kinds = [np.full(part.shape[1], kind, np.int8) for part, kind in zip(rows, (ERASED, INSERTED), strict=True)]
        gone_and_come = np.concatenate(kinds)
        return RowLog(np.concatenate(rows, axis=1), gone_and_come, np.zeros_like(gone_and_come, np.int64)).net()

    def log(self, states: GroupStates, numbers: Ints) -> RowLog:
        """The rows that go and come. `numbers` int64[events]: of each event, in order. Raises `NoResult`."""
        steps = states.steps(numbers)
        n = len(steps.events)
        had, has = steps.counts[0] > 0, steps.counts[1] > 0
        before = self.rows(steps.keys[:, had], steps.counts[0, had], steps.totals[0, had])
        after = self.rows(steps.keys[:, has], steps.counts[1, has], steps.totals[1, has])
        # A row that goes and comes at once stays.
        results = np.zeros((2, n), np.int64)
        results[0, had], results[1, has] = before[-1], after[-1]
        moved = ~(had & has) | (results[0] != results[1])
        rows = np.concatenate([before[:, moved[had]], after[:, moved[has]]], axis=1)
        gone, come = np.flatnonzero(had & moved), np.flatnonzero(has & moved)
        kinds = np.full(rows.shape[1], INSERTED, np.int8)
        kinds[: len(gone)] = ERASED
        # Of one step the row that goes is the first.
        order = np.argsort(np.concatenate([2 * gone, 2 * come + 1]))
        when = np.concatenate([steps.events[gone], steps.events[come]])
        return RowLog(rows[:, order], kinds[order], when[order])


class Logged(NamedTuple):
    """What a run logged: `lines` of the kernel's log · `counts`, `totals`: where the maps are (None: there is no sum).

    `values`: how many values each table has · `value`: that of a key in a map now.
    """

    lines: Ints
    counts: TablePlace
    totals: TablePlace | None
    values: Sequence[int]
    value: Callable[[TablePlace, tuple[int, ...]], int]


class GroupStates(NamedTuple):
    """States of groups, line by line: `keys` int64[k, n], `events` int64[n], `counts` and `totals` int64[2, n].

    The second of these are before and after each line. Lines of one group are in the order of events.
    """

    keys: Ints
    events: Ints
    counts: Ints
    totals: Ints

    @classmethod
    def of_one(cls, counted: LogLines, summed: LogLines | None) -> GroupStates:
        """From maps that were logged together, line by line."""
        counts = np.stack([counted.old, counted.new])
        totals = counts if summed is None else np.stack([summed.old, summed.new])
        return cls(counted.keys, counted.events, counts, totals)

    @classmethod
    def of_two(cls, counted: LogLines, summed: LogLines, final: tuple[Ints, Ints]) -> GroupStates:
        """From maps that were logged each on its own.

        `final`: the values of both now, of the keys of `counted` and then of `summed`.
        """
        keys = np.concatenate([counted.keys, summed.keys], axis=1)
        events = np.concatenate([counted.events, summed.events])
        of_sum = np.zeros(len(events), np.bool_)
        of_sum[len(counted.events) :] = True
        old, new = (np.concatenate([getattr(part, side) for part in (counted, summed)]) for side in ("old", "new"))
        # Lines of one group next to one another; those of a map keep their order.
        order = np.lexsort((events, *keys[::-1]))
        keys, of_sum, old, new = keys[:, order], of_sum[order], old[order], new[order]
        first = _begins(keys)
        group = np.cumsum(first) - 1
        count = _states(~of_sum, group, first, old, new, final[0][order])
        total = _states(of_sum, group, first, old, new, final[1][order])
        return cls(keys, events[order], np.stack(count), np.stack(total))

    def steps(self, numbers: Ints) -> GroupStates:
        """One line for each group and number of an event, in the order of numbers; `events` are the numbers then."""
        at, n = numbers[self.events], len(self.events)
        if n < 2 or (np.diff(at) > 0).all():
            return self._replace(events=at)
        order = np.arange(n) if not len(self.keys) else sorting(np.ascontiguousarray(self.keys))[0]
        keys, at = self.keys[:, order], at[order]
        begins = _begins(keys)
        begins[1:] |= at[1:] != at[:-1]
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], n) - 1
        by_number = np.argsort(at[firsts], kind="stable")
        firsts, lasts = order[firsts[by_number]], order[lasts[by_number]]
        return GroupStates(
            self.keys[:, firsts],
            numbers[self.events[firsts]],
            np.stack([self.counts[0, firsts], self.counts[1, lasts]]),
            np.stack([self.totals[0, firsts], self.totals[1, lasts]]),
        )


def _begins(keys: Ints) -> npt.NDArray[np.bool_]:
    """Where runs of equal keys int64[k, n] begin."""
    begins = np.zeros(keys.shape[1], np.bool_)
    begins[:1] = True
    if len(keys):
        begins[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return begins


def _states(
    mine: npt.NDArray[np.bool_], group: Ints, first: npt.NDArray[np.bool_], old: Ints, new: Ints, final: Ints
) -> tuple[Ints, Ints]:
    """The value of a map before and after each line, those of other maps included.

    `mine`: the lines of the map · `group` int64[n]: the group of a line, which `first` begins · `final`: its value
    after all of them.
    """
    n = len(mine)
    places = np.arange(n)
    # The last line of the map up to each line, and whether it is of the same group.
    latest = np.maximum.accumulate(np.where(mine, places, -1))
    known = (latest >= 0) & (group[np.maximum(latest, 0)] == group)
    # Before the first line of the map in a group it has the old value of that; without any the final one.
    start = np.where(first, places, 0)
    start = np.maximum.accumulate(start)
    initial = final[start].copy()
    firsts = np.flatnonzero(mine)
    if len(firsts):
        head = np.ones(len(firsts), np.bool_)
        head[1:] = group[firsts[1:]] != group[firsts[:-1]]
        of_group = np.zeros(int(group[-1]) + 1, np.int64)
        has_line = np.zeros(len(of_group), np.bool_)
        of_group[group[firsts[head]]] = old[firsts[head]]
        has_line[group[firsts[head]]] = True
        initial = np.where(has_line[group], of_group[group], initial)
    after = np.where(known, new[np.maximum(latest, 0)], initial)
    before = np.where(first, initial, np.roll(after, 1))
    return before, after
