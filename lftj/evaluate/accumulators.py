"""Accumulators: what is kept of each group of a count, sum, mean or variance, so that bindings can come and go.

A *table* holds a row per group that has a binding, keyed by the group:

    count                       bindings
    sum, mean of integers       bindings, high, low            the sum is high * 2**32 + low, 0 <= low < 2**32
    sum, mean of floats         bindings, infs, -infs          and a row per (group..., segment) in `segments`: exactsum
    variances                   the same                       of integers, too: exactsquares

All of it is linear in the bindings. So a trace's bindings that go and come are first summed per group, with weights -1
and 1 (`Sums`), and then added to the accumulators of these groups; a group without a binding goes. The results before
and after, which are exact, tell the change of the head. An integer sum must fit into its type, but what is accumulated
need not: a sum may leave the range and come back. A group whose result its type does not hold, or that sums inf and
-inf, has no row, and who asks for the group decides what that means (undefined_groups.py).

The sum of floats is `math.fsum` of the surviving values. The mean, of integers and floats, is the exact sum divided by
the count, rounded once: what `Relation.scan` gives, too. It has a value where the sum is beyond the largest float.

Memory, bytes per group of k columns, when pages are full (a page is full after a build and two thirds full after many
updates): 8 (k + 1) for a count, 8 (k + 3) for a sum of integers; of floats 8 (k + 3) and 8 (k + 2) for each of its
segments, of which values within a factor of 2**32 of one another take 3 or 4, and any values at most 66.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
sections 2.3.1, 2.3.2 and 2.3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.variances import VARIANCES
from lftj.join import dense_groups, exactsquares, exactsum
from lftj.join.dense_groups import NumberedGroups
from lftj.language.aggregate_specs import AGGREGATES, squares
from lftj.language.clause import Clause
from lftj.language.types import scale_of
from lftj.store.change import Change
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN, encode_float
from lftj.values.type_table import family_of, storage_of, type_of
from lftj.values.value_type import ValueType
from scantree.consolidate import consolidated, count_in, numbered, runs_of
from scantree.memory import Arena
from scantree.sort import in_one
from scantree.version import Store, Version

Ints = npt.NDArray[np.int64]

BITS, LOW = 32, (1 << 32) - 1
SIGN = np.int64(-(2**63))
COUNT, HIGH, LOWER = 0, 1, 2
# Sums of more bindings of one group could leave the words that hold them.
MOST = 1 << 31
# Bindings that can come or go at a time, so that those of a group are counted in a word.
COUNTABLE = float(1 << 56)
# Integers up to here are floats, so that numpy's quotient of two is that of the integers.
EXACT = 1 << 53


class GroupsWithoutResult(NamedTuple):
    """Groups without a result: `groups` int64[k, n] in order, and whether each holds inf and -inf, `undefined` bool[n].

    The others are out of the range of their type.
    """

    groups: Ints
    undefined: npt.NDArray[np.bool_]

    def __bool__(self) -> bool:
        return len(self.undefined) > 0

    def after(self, touched: Ints, again: GroupsWithoutResult) -> GroupsWithoutResult:
        """These, with the groups `touched` int64[k, g] replaced by those of them without a result now, `again`."""
        if not self:
            return again
        n = len(self.undefined)
        # A row (group..., touched or not): the places of those of its own that were not looked at again.
        rows = np.concatenate([self.groups, touched], axis=1)
        if len(rows) == 0:
            return again if touched.shape[1] else self
        distinct, numbers = numbered(rows)
        looked = np.zeros(distinct.shape[1], np.bool_)
        looked[numbers[n:]] = True
        kept = ~looked[numbers[:n]]
        groups = np.concatenate([np.compress(kept, self.groups, axis=1), again.groups], axis=1)
        undefined = np.concatenate([self.undefined[kept], again.undefined])
        order = np.lexsort(groups[::-1])
        return GroupsWithoutResult(np.ascontiguousarray(groups[:, order]), undefined[order])


# (the code of the result of each group, those that have none; None if all have one)
Results = tuple[Ints, npt.NDArray[np.bool_] | None]


@cache
def none_without_result(groups: int) -> GroupsWithoutResult:
    """The value for groups of `groups` columns that all have a result."""
    return GroupsWithoutResult(np.empty((groups, 0), np.int64), np.empty(0, np.bool_))


class Folding(NamedTuple):
    """What is folded: `op`, a key of `RESULTS`, the number of group columns, the type of the `operand` ("": none)."""

    op: str
    groups: int
    operand: str

    @property
    def storage(self) -> str:
        """How the operand is stored: "number", "unsigned" or "float"; "" without one."""
        return storage_of(self.operand) if self.operand else ""

    @property
    def squares(self) -> bool:
        """Whether the sum of squares is kept, too."""
        return squares(self.op)

    @property
    def segmented(self) -> bool:
        """Whether sums are kept in segments."""
        return self.squares or self.storage == "float"

    @property
    def width(self) -> int:
        """Columns of a binding: the group, then the operand."""
        return self.groups + bool(self.operand)

    @property
    def words(self) -> int:
        """Value columns of the table."""
        return 3 if self.operand else 1


def folding_of(clause: Clause) -> Folding:
    """What a clause that accumulates folds."""
    aggregate = clause.aggregate
    assert aggregate is not None
    operand = clause.head_args[aggregate.groups].type if AGGREGATES[aggregate.op].operand else ""
    return Folding(aggregate.op, aggregate.groups, operand)


@cache
def range_of_sums(operand: str) -> tuple[int, int] | None:
    """The least and the greatest code of a sum of values of a type; None if every code is one."""
    made = type_of(AGGREGATES["sum"].result_of(operand))
    return None if made.low <= NUMBER_MIN and made.high >= NUMBER_MAX else (made.low, made.high)


class Sums(NamedTuple):
    """Bindings summed per group.

    `groups` int64[k, g] in order · `values` int64[words, g], what to add to the table · `segments` int64[k + 1, s] in
    order and `pieces` int64[s], where sums are kept in segments.
    """

    groups: Ints
    values: Ints
    segments: Ints
    pieces: Ints


def multiplied(folding: Folding, rows: Ints) -> Ints:
    """How many bindings each of `rows` int64[width + k, m] stands for: the product of its k multiplicities.

    `EvaluationError` if there are more than can be counted, or if one is `MOST` bindings of a variance.
    """
    weights, width = np.ones(rows.shape[1], np.int64), folding.width
    for multiplicity in rows[width:]:
        weights *= multiplicity
    if len(rows) > width + 1 and rows.shape[1]:
        about = np.prod(rows[width:].astype(np.float64), axis=0).sum()
        if about > COUNTABLE:
            raise too_many(about)
    if folding.squares:
        check_times(folding.op, weights)
    return weights


def check_times(op: str, weights: Ints) -> None:
    """`EvaluationError` if a value counts so often, by weights int64[m], that its group has no variance.

    What is written behind a value may be any number, so that counts could leave their words, and come back.
    """
    if len(weights) and (times := max(int(weights.max()), -int(weights.min()))) >= MOST:
        raise EvaluationError(
            f"a value counts {times:,} times in `{op}`",
            why="a group of 2^31 bindings and more has no value; nothing was changed",
            remedy="exclude such a count in the body, or divide all of them by a common factor",
        )


def too_many(about: float) -> EvaluationError:
    """The error of `about` so many bindings, which is more than can be counted."""
    return EvaluationError(
        f"an aggregate ranges over about {about:.1g} bindings",
        why="more than 2^56 cannot be counted at a time; of atoms of which only some columns are used, every "
        "combination of rows is a binding; nothing was changed",
        remedy="name the variables that the braces need in a rule of its own, and aggregate over its head",
    )


def sums_of(folding: Folding, rows: Ints, weights: Ints) -> Sums:
    """The sums of bindings int64[width, m], each as often as its weight int64[m] says."""
    k, m = folding.groups, rows.shape[1]
    words = bool(folding.operand) and not folding.segmented
    small = words and np.abs(weights).sum(dtype=np.float64) < MOST
    if m >= dense_groups.LEAST and (small or not words):
        dense = NumberedGroups.dense(np.ascontiguousarray(rows[:k]))
        if dense is not None:
            operand = np.ascontiguousarray(rows[k]) if folding.operand else None
            return _numbered_sums(folding, dense, np.ascontiguousarray(weights), operand)
    if k == 0 or m == 1:
        groups, order, starts = rows[:k], None, np.zeros(min(m, 1), np.int64)
    else:
        groups, order, starts = runs_of(np.ascontiguousarray(rows[:k]))
    if order is not None:
        weights = weights[order]
    distinct, none = groups.take(starts, axis=1), np.empty((k + 1, 0), np.int64)
    if m == 0 or not folding.operand:
        values = np.add.reduceat(weights, starts)[None, :] if m else np.empty((folding.words, 0), np.int64)
        return Sums(distinct, values, none, none[0])
    operand = np.ascontiguousarray(rows[k] if order is None else rows[k][order])
    if folding.segmented:
        return _segmented(distinct, *_segments_of(folding, operand, np.ascontiguousarray(weights), starts))
    if folding.storage == "unsigned":
        operand = operand ^ SIGN
        high = (operand >> BITS) & LOW
    else:
        high = operand >> BITS
    low = operand & LOW
    if small:
        parts = np.stack([weights, weights * high, weights * low])
    else:  # the products with the lower half of a weight, and what they carry, so that nothing wraps in the lower part
        product = (weights & LOW).astype(np.uint64) * low.astype(np.uint64)
        carried_over = (product >> np.uint64(BITS)).astype(np.int64) + (weights >> BITS) * low
        parts = np.stack([weights, weights * high + carried_over, (product & np.uint64(LOW)).astype(np.int64)])
    # Where each binding is a group of its own there is nothing to add.
    return Sums(distinct, parts if len(starts) == m else np.add.reduceat(parts, starts, axis=1), none, none[0])


def _numbered_sums(folding: Folding, numbered: NumberedGroups, weights: Ints, operand: Ints | None) -> Sums:
    if folding.segmented:
        assert operand is not None
        if not folding.squares and exactsum.are_few(numbered.room, len(operand)):
            there, *found = exactsum.sums_of_few(operand, weights, numbered.at, numbered.room)
            return _segmented(numbered.groups(there), *found)
        there, order, starts = numbered.runs()
        if order is not None:
            operand, weights = operand[order], weights[order]
        return _segmented(numbered.groups(there), *_segments_of(folding, operand, weights, starts))
    flipped = int(SIGN) if folding.storage == "unsigned" else 0
    none = np.empty((folding.groups + 1, 0), np.int64)
    return Sums(*numbered.sums(weights, operand, flipped, BITS), none, none[0])


def _segments_of(folding: Folding, operand: Ints, weights: Ints, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """The sums of values, and of their squares if these are kept, group by group (`exactsum.segments_of`)."""
    if folding.squares:
        return exactsquares.squares_of(operand, folding.storage, weights, starts)
    return exactsum.segments_of(operand, weights, starts)


def _segmented(groups: Ints, values: Ints, rows: Ints, pieces: Ints) -> Sums:
    """The sums of `groups` int64[k, g]; `rows` int64[2, n] of a place among them and a segment."""
    return Sums(groups, values, np.vstack([groups[:, rows[0]], rows[1]]), pieces)


def sums_by_number(folding: Folding, numbered: NumberedGroups, operand: Ints | None) -> Sums:
    """The sums of m < `MOST` bindings by the numbers of their groups."""
    return _numbered_sums(folding, numbered, np.ones(len(numbered.at), np.int64), operand)


def added_up(one: Sums, other: Sums) -> Sums:
    """The sums of the bindings of both."""
    groups, values = consolidated(np.hstack([one.groups, other.groups]), np.hstack([one.values, other.values]))
    segments, pieces = consolidated(
        np.hstack([one.segments, other.segments]), np.concatenate([one.pieces, other.pieces])
    )
    kept = pieces != 0
    return Sums(groups, values, np.compress(kept, segments, axis=1), pieces[kept])


class Gathering:
    """Sums of bindings that come in chunks. Many are summed at a time, so that only groups take memory."""

    # Bindings that wait to be summed.
    ROOM = 1 << 20

    def __init__(self, folding: Folding) -> None:
        self.folding = folding
        self._waiting: list[Ints] = []
        self._weights: list[Ints] = []
        self._size = 0
        self._sums: Sums | None = None

    def add(self, chunk: Ints) -> None:
        """More bindings int64[width + k, n], with k multiplicities (`multiplied`)."""
        self._waiting.append(chunk[: self.folding.width])
        self._weights.append(multiplied(self.folding, chunk))
        self._size += chunk.shape[1]
        # As many as there are groups, so that adding to these costs no more than the bindings did.
        if self._size >= max(self.ROOM, 0 if self._sums is None else self._sums.groups.shape[1]):
            self._sums = self.sums()

    def sums(self) -> Sums:
        """The sums of all that came."""
        rows = np.concatenate([np.empty((self.folding.width, 0), np.int64), *self._waiting], axis=1)
        weights = np.concatenate([np.empty(0, np.int64), *self._weights])
        self._waiting, self._weights, self._size = [], [], 0
        new = sums_of(self.folding, rows, weights)
        return new if self._sums is None else added_up(self._sums, new)


class Accumulators:
    """The accumulators of all groups at one moment; never changed, `updated` makes the next.

    `without_result`: the groups without a result, as whoever made them found by `rows` or `all_rows`.
    """

    __slots__ = ("folding", "segments", "table", "without_result")

    def __init__(self, folding: Folding, table: Version, segments: Version | None) -> None:
        self.folding, self.table, self.segments = folding, table, segments
        self.without_result = none_without_result(folding.groups)

    @classmethod
    def of(cls, arena: Arena, folding: Folding, sums: Sums, *, page_rows: int, dir_rows: int) -> Accumulators:
        """The accumulators of groups whose bindings are all in `sums`."""
        made = cls.none(arena, folding, page_rows=page_rows, dir_rows=dir_rows)
        table = made.table.store.assemble([np.vstack([sums.groups, carried(folding, sums.values)])])
        if made.segments is None:
            return cls(folding, table, None)
        return cls(folding, table, made.segments.store.assemble([np.vstack([sums.segments, sums.pieces])]))

    @classmethod
    def none(cls, arena: Arena, folding: Folding, *, page_rows: int, dir_rows: int) -> Accumulators:
        """The accumulators of no group."""
        store = Store(arena, folding.groups, folding.words, page_rows=page_rows, dir_rows=dir_rows)
        if not folding.segmented:
            return cls(folding, store.empty(), None)
        segments = Store(arena, folding.groups + 1, 1, page_rows=page_rows, dir_rows=dir_rows)
        return cls(folding, store.empty(), segments.empty())

    def followed(self, erased: list[Ints], inserted: list[Ints]) -> tuple[Accumulators, Change]:
        """(the next accumulators, the change of the head) when bindings int64[width + k, n] go and come."""
        rows, weights = weighted(self.folding, erased, inserted)
        if not self.folding.operand:  # its table is that of counts
            counted = count_in(self.table, np.ascontiguousarray(rows[: self.folding.groups]), weights)
            return Accumulators(self.folding, counted.version, None), Change(*counted.changes())
        sums = sums_of(self.folding, rows, weights)
        before, after = self.values(sums)
        following = self.moved(sums, after)
        gone, _ = self.rows(sums.groups, before)
        come, without_result = following.rows(sums.groups, after)
        following.without_result = (
            self.without_result.after(sums.groups, without_result) if self.without_result else without_result
        )
        return following, Change(*in_one(gone, come))

    def values(self, sums: Sums) -> tuple[Ints, Ints]:
        """The values of the groups of `sums` in the table, int64[words, g]: before and after these are added."""
        before = self.table.values_of(sums.groups)
        return before, carried(self.folding, before + sums.values)

    def moved(self, sums: Sums, after: Ints) -> Accumulators:
        """The accumulators after `sums` are added, which gives the values `after` int64[words, g]."""
        ops = np.where((after != 0).any(axis=0), 1, -1).astype(np.int8)
        table, _ = self.table.update(np.concatenate([sums.groups, after]), ops)
        segments = self.segments
        if segments is not None:
            pieces = segments.values_of(sums.segments)[0] + sums.pieces
            ops = np.where(pieces != 0, 1, -1).astype(np.int8)
            segments, _ = segments.update(np.vstack([sums.segments, pieces]), ops)
        return Accumulators(self.folding, table, segments)

    def all_rows(self) -> tuple[Ints, GroupsWithoutResult]:
        """`rows` of all groups."""
        table, k = self.table.columns(), self.folding.groups
        return self.rows(table[:k], table[k:])

    def memory(self) -> int:
        """Bytes of their pages."""
        return self.table.memory() + (0 if self.segments is None else self.segments.memory())

    def rows(self, groups: Ints, values: Ints) -> tuple[Ints, GroupsWithoutResult]:
        """(the rows (group..., code of the result) of those of `groups` that have one, in order; the rest).

        `groups` int64[k, g] with their `values` in the table int64[words, g]; one of too few bindings is in neither.
        """
        there = values[COUNT] >= AGGREGATES[self.folding.op].least
        if not there.all():
            groups, values = groups.compress(there, axis=1), values.compress(there, axis=1)
        codes, without = self.results(groups, values)
        if self.folding.op != "count":
            # More could have left the words that hold them.
            many = values[COUNT] >= MOST
            without = many if without is None else without | many
        if without is None or not without.any():
            return np.concatenate([groups, codes[None, :]]), none_without_result(self.folding.groups)
        undefined = np.zeros(np.count_nonzero(without), np.bool_)
        if self.folding.storage == "float":
            infs, negative = values[HIGH][without] > 0, values[LOWER][without] > 0
            undefined = infs | negative if self.folding.squares else infs & negative
        without_result = GroupsWithoutResult(np.compress(without, groups, axis=1), undefined)
        return np.compress(~without, np.vstack([groups, codes]), axis=1), without_result

    def results(self, groups: Ints, values: Ints) -> Results:
        """(the code of the result of each group, those that have none; None if all have one).

        Of a mean and of variances, counts are from `AggregateSpec.least` on and below `MOST`.
        """
        return RESULTS[self.folding.op](self, groups, values) if groups.shape[1] else (values[COUNT], None)

    def total(self, groups: Ints, values: Ints) -> Results:
        """The exact sum of every group."""
        storage = self.folding.storage
        if storage == "float":
            return self._rounded(groups, values, np.ones_like(values[COUNT]))
        high = values[HIGH]
        bound = (-(1 << 31), 1 << 31) if storage == "number" else (0, 1 << 32)
        sums: Ints = (high << BITS) | values[LOWER]
        codes = sums if storage == "number" else sums ^ SIGN
        without = (high < bound[0]) | (high >= bound[1])
        if (narrow := range_of_sums(self.folding.operand)) is not None:
            without |= (codes < narrow[0]) | (codes > narrow[1])
        return codes, without

    def mean(self, groups: Ints, values: Ints) -> Results:
        """The exact sum of every group, divided by its count and rounded once."""
        counts: Ints = values[COUNT]
        if self.folding.storage == "float":
            return self._rounded(groups, values, counts)
        operand = self.folding.operand
        if family_of(operand) in AGGREGATES["mean"].keeps:
            return nearest_means(values[HIGH], values[LOWER], counts, type_of(operand))
        return encode_float(quotients(values[HIGH], values[LOWER], counts, 10 ** scale_of(operand))), None

    def count(self, groups: Ints, values: Ints) -> Results:
        """The number of bindings of every group."""
        return values[COUNT], None

    def variance(self, groups: Ints, values: Ints) -> Results:
        """The variance of every group, or its square root; none where one of its values is inf, or of too many."""
        assert self.segments is not None
        folding, counts = self.folding, values[COUNT]
        there = (values[HIGH] == 0) & (values[LOWER] == 0) & (counts < MOST)
        codes, without = np.zeros_like(counts), ~there
        codes[there], without[there] = VARIANCES[folding.op].results(
            self.segments, folding.operand, folding.storage, groups.compress(there, axis=1), counts[there]
        )
        return codes, without

    def _rounded(self, groups: Ints, values: Ints, counts: Ints) -> Results:
        """The sums of floats divided by `counts`, rounded once."""
        assert self.segments is not None
        version, codes = self.segments, np.empty(groups.shape[1], np.int64)
        exactsum.rounded_sums(
            version.store.arena.space.mem,
            version.root,
            version.store.shape,
            np.ascontiguousarray(groups.T),
            np.ascontiguousarray(values[HIGH:]),
            np.ascontiguousarray(counts),
            np.zeros(exactsum.DIGITS, np.int64),
            codes,
        )
        return codes, codes == exactsum.NO_SUM


# The kernels of the aggregates that accumulate: the result of every group (int64[k, g]) from its values in the table.
RESULTS: dict[str, Callable[[Accumulators, Ints, Ints], Results]] = {
    "count": Accumulators.count,
    "sum": Accumulators.total,
    "mean": Accumulators.mean,
    **dict.fromkeys(VARIANCES, Accumulators.variance),
}


def carried(folding: Folding, values: Ints) -> Ints:
    """Values of the table with 0 <= low < 2**32."""
    if not folding.operand or folding.segmented:
        return values
    low = values[LOWER]
    return np.stack([values[COUNT], values[HIGH] + (low >> BITS), low & LOW])


def quotients(high: Ints, low: Ints, counts: Ints, unit: int) -> npt.NDArray[np.float64]:
    """The floats nearest to (high * 2**32 + low) / (counts * unit)."""
    small = (np.abs(high) < EXACT >> BITS) & (counts < EXACT // unit)
    means: npt.NDArray[np.float64] = ((high << BITS) + low) / (counts * np.where(small, unit, 1))
    for i in np.flatnonzero(~small).tolist():
        means[i] = ((int(high[i]) << BITS) + int(low[i])) / (int(counts[i]) * unit)
    return means


def nearest_means(high: Ints, low: Ints, counts: Ints, type: ValueType) -> Results:
    """The integers nearest to (high * 2**32 + low) / counts, the even one of two; those beyond the type are none.

    A mean leaves the range of what it is the mean of where weights of both signs are added up.
    """
    means = [
        round(Fraction((h << BITS) + at, n))
        for h, at, n in zip(high.tolist(), low.tolist(), counts.tolist(), strict=True)
    ]
    without = [not type.low <= mean <= type.high for mean in means]
    if not any(without):
        return np.array(means, np.int64), None
    return np.array([0 if none else m for m, none in zip(means, without, strict=True)], np.int64), np.array(without)


def weighted(folding: Folding, erased: list[Ints], inserted: list[Ints]) -> tuple[Ints, Ints]:
    """Bindings int64[width + k, n] that go and come (`multiplied`), with what each counts, less than 0 if it goes."""
    chunks = [*erased, *inserted]
    if not chunks:
        return np.empty((folding.width, 0), np.int64), np.empty(0, np.int64)
    rows = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
    weights = multiplied(folding, rows)
    if erased:
        weights[: sum([part.shape[1] for part in erased])] *= -1
    return rows, weights
