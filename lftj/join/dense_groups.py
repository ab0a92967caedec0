"""Sums and extremes of groups that lie close together: each has its place in a table, so that nothing is sorted.

    group columns x in 3..5, y in 0..1      (3,0) (3,1) (4,0) (4,1) (5,0) (5,1)

The places of groups are in their order. A table with no more places than there are bindings is passed once at the end.
Of a column whose values lie apart, as those of days that are timestamps, the steps between them are counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined, kernel
from scantree.consolidate import numbered
from scantree.sort import ranges

Ints = npt.NDArray[np.int64]

# Bindings from which on looking at their ranges is worth it.
LEAST = 256
# Values of a column whose steps are not looked at, and the widest range whose differences are codes.
NARROW, WIDEST = 64, 1 << 63


@kernel
def _step(column, least):
    """The greatest step by which all values of `column` int64[m] are reached from `least`, their least; at least 1."""
    step = np.int64(0)
    for i in range(len(column)):
        rest = column[i] - least
        if step:
            rest %= step
        while rest:
            step, rest = rest, step % rest
        if step == 1:
            break
    return max(step, np.int64(1))


class Places(NamedTuple):
    """Where groups of k columns lie in a table of `room` places.

    From `least` int64[k] on, in `steps` of each column, `spans` of them.
    """

    least: Ints
    steps: Ints
    spans: Ints
    room: int

    @classmethod
    def of(cls, groups: Ints) -> Places | None:
        """Of `groups` int64[k, m]; None if they do not lie close together, or are too few to look."""
        k, m = groups.shape
        if m < LEAST:
            return None
        least, most = ranges(groups)
        steps = [1] * k
        spans = [high - low + 1 for low, high in zip(least.tolist(), most.tolist(), strict=True)]
        if math.prod(spans) > m and max(spans) <= WIDEST:
            steps = [int(_step(groups[c], least[c])) if spans[c] > NARROW else 1 for c in range(k)]
            spans = [(span - 1) // step + 1 for span, step in zip(spans, steps, strict=True)]
        if (room := math.prod(spans)) > m:
            return None
        return cls(least, np.array(steps, np.int64), np.array(spans, np.int64), room)

    def at(self, groups: Ints) -> Ints:
        """The places int64[m] of groups int64[k, m]."""
        at = np.empty(groups.shape[1], np.int64)
        _places_of(groups, self.least, self.steps, self.spans, at)
        return at

    def groups(self, at: Ints) -> Ints:
        """The groups int64[k, g] at places int64[g]."""
        found = np.empty((len(self.spans), len(at)), np.int64)
        for c in reversed(range(len(self.spans))):
            at, place = np.divmod(at, self.spans[c])
            found[c] = place * self.steps[c] + self.least[c]
        return found


@inlined
def _place(rows, i, least, steps, spans):
    """The place of the group of row i."""
    at = 0
    for c in range(len(spans)):
        value = rows[c, i] - least[c]
        at = at * spans[c] + (value if steps[c] == 1 else value // steps[c])
    return at


@kernel
def _places_of(groups, least, steps, spans, at):
    """`at` int64[m]: the places of `groups` int64[k, m]."""
    for i in range(len(at)):
        at[i] = _place(groups, i, least, steps, spans)


@kernel
def _add_up(at, weights, operand, flipped, half, table, met):
    """Add bindings, of groups at places `at` int64[m], to `table` int64[places, w].

    It holds, of w = 1, the sum of the weights; of w = 3 also those of the weighted high and low words, of `half` bits,
    of `operand` int64[m], whose bits `flipped` are turned over first. `met` bool[places]: which groups there are.
    """
    wide = table.shape[1] > 1
    low_bits = (np.int64(1) << half) - 1
    for i in range(len(at)):
        place = at[i]
        met[place] = True
        table[place, 0] += weights[i]
        if wide:
            value = operand[i] ^ flipped
            high = value >> half
            if flipped != 0:
                high &= low_bits
            table[place, 1] += weights[i] * high
            table[place, 2] += weights[i] * (value & low_bits)


@kernel
def _add_words(groups, least, steps, spans, words, table, met):
    """Add the columns of `words` int64[w, m], of `groups` int64[k, m], at their places in `table` int64[places, w]."""
    for i in range(groups.shape[1]):
        at = _place(groups, i, least, steps, spans)
        met[at] = True
        for w in range(len(words)):
            table[at, w] += words[w, i]


@kernel
def _best_in_rows(rows, least, steps, spans, last, table, met):
    """Leave the least, or with `last` the greatest, value of row k of `rows` at the place of its group in `table`.

    A fifth faster than `_best_of` by the numbers of all rows, which this does not write.
    """
    for i in range(rows.shape[1]):
        at, value = _place(rows, i, least, steps, spans), rows[len(spans), i]
        if not met[at] or (table[at] < value if last else value < table[at]):
            table[at] = value
        met[at] = True


@kernel
def _best_of(at, ranks, last, table, best):
    """Leave the least, or with `last` the greatest, of `ranks` int64[m] at each place `at` int64[m] in `table`.

    `best` int64[places]: whose it is, of those alike the first; -1 where there is none, which it holds before.
    """
    for i in range(len(at)):
        place, rank = at[i], ranks[i]
        if best[place] < 0 or (table[place] < rank if last else rank < table[place]):
            table[place], best[place] = rank, i


@kernel
def _order_by(at, ends, order):
    """Write what puts `at` int64[m] in order, equal ones as given, to `order` int64[m].

    `ends` int64[places], zero before: where the run of each place ends.
    """
    for i in range(len(at)):
        ends[at[i]] += 1
    begin = np.int64(0)
    for place in range(len(ends)):
        count = ends[place]
        ends[place] = begin
        begin += count
    for i in range(len(at)):
        order[ends[at[i]]] = i
        ends[at[i]] += 1


class NumberedGroups(NamedTuple):
    """The groups of m bindings by numbers in their order, `at` int64[m], which are less than `room`.

    `places`: those that the numbers are, if the groups lie close together; else the numbers are of the groups
    `distinct` int64[k, room].
    """

    at: Ints
    room: int
    places: Places | None
    distinct: Ints

    @classmethod
    def dense(cls, groups: Ints) -> NumberedGroups | None:
        """Of `groups` int64[k, m] that lie close together; None if they do not."""
        places = Places.of(groups)
        return None if places is None else cls(places.at(groups), places.room, places, groups[:, :0])

    @classmethod
    def of(cls, groups: Ints) -> NumberedGroups:
        """Of `groups` int64[k, m]."""
        if (dense := cls.dense(groups)) is not None:
            return dense
        if len(groups):
            distinct, numbers = numbered(groups)
        else:
            distinct, numbers = groups[:, :1], np.zeros(groups.shape[1], np.int64)
        return cls(numbers, distinct.shape[1], None, distinct)

    def sums(self, weights: Ints, operand: Ints | None, flipped: int, half: int) -> tuple[Ints, Ints]:
        """(the distinct groups int64[k, g] in order, their sums int64[1 or 3, g]) of bindings with `weights` int64[m].

        `operand` int64[m] is summed in two words, of which the lower one has `half` bits, after its bits `flipped` were
        turned over; no sum of products with a word may leave 64 bits.
        """
        table = np.zeros((self.room, 1 if operand is None else 3), np.int64)
        met = np.zeros(self.room, np.bool_)
        _add_up(self.at, weights, weights if operand is None else operand, np.int64(flipped), half, table, met)
        there = np.flatnonzero(met)
        return self.groups(there), np.ascontiguousarray(table[there].T)

    def extremes(self, operand: Ints, ranks: Ints, *, last: bool) -> Ints:
        """The distinct groups in order, each with its least or (`last`) greatest value, int64[k + 1, g].

        Of the values `operand` int64[m] of the bindings, which compare as `ranks` int64[m] do.
        """
        table, best = np.empty(self.room, np.int64), np.full(self.room, -1, np.int64)
        _best_of(self.at, ranks, last, table, best)
        there = np.flatnonzero(best >= 0)
        return np.vstack([self.groups(there), operand[best[there]]])

    def runs(self) -> tuple[Ints, Ints | None, Ints]:
        """(the numbers of the groups that are there, what puts bindings in their order, where each of them begins).

        None for the order where they are in it.
        """
        if (self.at[1:] >= self.at[:-1]).all():
            starts = np.flatnonzero(np.append(True, self.at[1:] != self.at[:-1])[: len(self.at)])
            return self.at[starts], None, starts
        ends, order = np.zeros(self.room, np.int64), np.empty(len(self.at), np.int64)
        _order_by(self.at, ends, order)
        starts = np.append(0, ends[:-1])
        there = np.flatnonzero(starts < ends)
        return there, order, starts[there]

    def groups(self, numbers: Ints) -> Ints:
        """The groups int64[k, g] with `numbers` int64[g]."""
        return np.take(self.distinct, numbers, axis=1) if self.places is None else self.places.groups(numbers)


def dense_words(groups: Ints, words: Ints) -> tuple[Ints, Ints] | None:
    """(the distinct groups int64[k, g] in order, their words int64[w, g] added up) of rows int64[k, m], int64[w, m].

    None where they do not lie close together.
    """
    places = Places.of(groups)
    if places is None:
        return None
    table, met = np.zeros((places.room, len(words)), np.int64), np.zeros(places.room, np.bool_)
    _add_words(groups, places.least, places.steps, places.spans, words, table, met)
    at = np.flatnonzero(met)
    return places.groups(at), np.ascontiguousarray(table[at].T)


def dense_extremes(rows: Ints, *, last: bool) -> Ints | None:
    """The distinct groups in order, each with its least or (`last`) greatest value, of `rows` int64[k + 1, m].

    None where they do not lie close together.
    """
    rows = np.ascontiguousarray(rows)
    places = Places.of(rows[:-1])
    if places is None:
        return None
    table, met = np.empty(places.room, np.int64), np.zeros(places.room, np.bool_)
    _best_in_rows(rows, places.least, places.steps, places.spans, last, table, met)
    at = np.flatnonzero(met)
    return np.vstack([places.groups(at), table[at]])
