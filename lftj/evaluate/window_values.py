"""Values of window functions over rows of whole partitions (`lftj/language/window_functions.py`).

Rows are put in order once: by partition and order, and by all columns where it matters which of peers comes first. Then
each row has the places of its partition, its peers and its frame among all, and every function is computed for all rows
at once: folds of the frames by frame_folds.py, the rest by looking a place up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.first_of_order import comparable, order_keys
from lftj.evaluate.frame_folds import WindowColumn, WindowFrames, folded
from lftj.join.dense_groups import NumberedGroups
from lftj.join.frames import ends_by_value
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.language.window_functions import (
    NEIGHBOURS,
    PLACED,
    RANKINGS,
    ByValue,
    FrameEnd,
    WindowFunction,
    WindowFunctions,
)
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import is_nullable, null_rows, type_of
from scantree.consolidate import runs_of
from scantree.sort import ordering
from scantree.version import Rows, Version

# Rows that a bag may have when each copy is one.
MOST_COPIES = 1 << 28


def windows_of(clause: Clause) -> WindowFunctions:
    """What the head of a marked clause holds."""
    assert clause.aggregate is not None
    return WindowFunctions.of(clause.aggregate.op)


def derive_windows(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of the head of a marked clause. O(n log n) for n rows of the relation that it reads."""
    head, read = evaluator.relations[clause.head], evaluator.relations[clause.atoms[0].predicate]
    rows = None if evaluator.one_pass is None else evaluator.one_pass.rows(head.name)
    if rows is None:
        rows = read.content.some_columns(range(read.arity))
    limits.look(rows.shape[1])
    passes = evaluator.passes(head.name)
    found = windowed(rows, clause, head.schema, evaluator.symbols, counted=not passes)
    return head.as_they_come(found, repeats=head.schema.bag) if passes else head.build(found)


def windowed(rows: Rows, clause: Clause, schema: Schema, symbols: SymbolTable, *, counted: bool = True) -> Rows:
    """Rows int64[arity, n] of the relation below, whole partitions of it, as rows of the head (`schema`), in any order.

    Not `counted`: each copy of a row of a bag comes by itself. Raises `EvaluationError` where a fold has no value, a
    value has the code of null, or a bag has too many copies.
    """
    try:
        return _windowed(rows, windows_of(clause), schema, symbols, counted)
    except EvaluationError as error:
        error.placed(str(clause.span))  # columns and rules of its own are not what anyone wrote
        raise


def _windowed(rows: Rows, windows: WindowFunctions, schema: Schema, symbols: SymbolTable, counted: bool) -> Rows:
    if schema.bag:
        copies, alone = int(rows[-1].sum()), bool((rows[-1] == 1).all())
        if copies > MOST_COPIES:
            raise EvaluationError(
                f"a window over {copies:,} rows, copies of rows among them",
                why=f"each copy is a row of its own there, and up to {MOST_COPIES:,} are held; nothing was changed",
                remedy="group the rows first, and let the window be over the groups",
            )
        rows = rows[:-1] if alone else np.repeat(rows[:-1], rows[-1], axis=1)
    width = schema.arity - schema.bag - len(windows.functions)
    types = schema.types
    places = _Places(rows, types, windows, _order(rows, windows, types, width, symbols))
    made = []
    for at, function in enumerate(windows.functions):
        argument = function.argument
        value = None if argument < 0 else WindowColumn(places.moved(rows[argument]), types[argument], symbols)
        null = type_of(types[width + at]).null if is_nullable(types[width + at]) else 0
        made.append(places.moved_back(_values(function, places, value, null)))
    found = np.vstack([rows, *made]) if made else rows
    if not schema.bag:
        return found
    return _counted(found) if counted else np.vstack([found, np.ones(found.shape[1], np.int64)])


def _order(rows: Rows, windows: WindowFunctions, types: Sequence[str], width: int, symbols: SymbolTable) -> Rows | None:
    """The order int64[n] that windows look at rows in; None if they are in it."""
    # In which order partitions come, codes may say; which of peers comes first is of no concern to some functions.
    if not windows.order and not windows.told_apart:
        return NumberedGroups.of(rows[list(windows.partition)]).runs()[1] if windows.partition else None
    others = {*range(width)}.difference(windows.partition) if windows.told_apart else set[int]()
    ranked = {*others, *(column for column, _, _ in windows.order)}
    ranks = {at: comparable(rows[at], types[at], symbols) for at in sorted(ranked)}
    keys = [*(rows[at] for at in windows.partition), *order_keys(windows.order, rows, ranks, types)]
    keys += [ranks[at] for at in sorted(others.difference(column for column, _, _ in windows.order))]
    if not keys:  # all rows are alike
        return None
    return ordering(np.vstack(keys))


class _Places:
    """Of each row, in the order of the windows, int64[n]: its partition from `begin` to `end`, its peers likewise.

    What no function needs is not computed. Moving a column takes as long as much of the rest, so that values go back to
    where their rows are, and these stay there.
    """

    def __init__(self, rows: Rows, types: Sequence[str], windows: WindowFunctions, order: Rows | None) -> None:
        self._rows, self._types, self._windows, self._order = rows, types, windows, order
        self.many = rows.shape[1]

    def moved(self, values: Rows) -> Rows:
        """The values of the rows in order, of those that were given."""
        return values if self._order is None else values[self._order]

    def moved_back(self, values: Rows) -> Rows:
        """The values of the rows that were given, of those in order."""
        if self._order is None:
            return values
        found = np.empty_like(values)
        found[self._order] = values
        return found

    @cached_property
    def _partition(self) -> npt.NDArray[np.bool_]:
        """Where a partition begins."""
        found = np.zeros(self.many, np.bool_)
        found[:1] = True
        return self._changed(self._windows.partition, found)

    @cached_property
    def _peers(self) -> npt.NDArray[np.bool_]:
        """Where peers of other rows begin."""
        return self._changed([column for column, _, _ in self._windows.order], self._partition.copy())

    def _changed(self, columns: Sequence[int], found: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """`found`, and where one of the columns has another value than in the row before."""
        for column in columns:
            values = self.moved(self._rows[column])
            found[1:] |= values[1:] != values[:-1]
        return found

    @cached_property
    def begin(self) -> Rows:
        """Where its partition begins."""
        return _begins(self._partition)

    @cached_property
    def end(self) -> Rows:
        """Where its partition ends."""
        return _ends(self._partition)

    @cached_property
    def first(self) -> Rows:
        """Where its peers begin."""
        return _begins(self._peers)

    @cached_property
    def after(self) -> Rows:
        """Where its peers end."""
        return _ends(self._peers)

    @cached_property
    def groups(self) -> Rows:
        """The number of its peers among all."""
        return np.cumsum(self._peers)

    def frames(self, function: WindowFunction) -> WindowFrames:
        """Where the frame of each row begins, and where it ends."""
        low = self._end(function.low, function.rows, last=False)
        return WindowFrames(low, np.maximum(low, self._end(function.high, function.rows, last=True)))

    def _end(self, end: FrameEnd, rows: bool, *, last: bool) -> Rows:
        """Where frames begin, or behind which row they end: the `last` of them."""
        if end is None:
            return self.end if last else self.begin
        if isinstance(end, ByValue):
            return self._by_value(end, last)
        if rows:
            return np.clip(np.arange(self.many) + end + last, self.begin, self.end)
        if end == 0:
            return self.after if last else self.first
        # Groups of peers are numbered among all, from 1; those of the partition end where the next one begins.
        starts = np.append(np.flatnonzero(self._peers), self.many)
        first, behind = self.groups[self.begin] - 1, self.groups[self.end - 1]
        return starts[np.clip(self.groups - 1 + end + last, first, behind)]

    def _by_value(self, end: ByValue, last: bool) -> Rows:
        """Where values say that frames end; of rows without one, where their peers do."""
        ((_, descending, nulls_first),) = self._windows.order
        values, bounds = (self.moved(self._rows[column]) for column in end)
        null = null_rows(values, self._types[end.value])
        present = np.ones(self.many, np.bool_) if null is None else ~null
        if descending:
            values, bounds = ~values, ~bounds
        found = ends_by_value(values, present, bounds, self.begin, self.end, nulls_first=nulls_first, beyond=last)
        return np.where(present, found, self.after if last else self.first)


def _begins(starts: npt.NDArray[np.bool_]) -> Rows:
    """Where the run of each row begins, of runs that begin at `starts`."""
    begins = np.flatnonzero(starts)
    return np.repeat(begins, np.diff(begins, append=len(starts)))


def _ends(starts: npt.NDArray[np.bool_]) -> Rows:
    """Where the run of each row ends."""
    begins = np.flatnonzero(starts)
    ends = np.append(begins, len(starts))[1:]
    return np.repeat(ends, ends - begins)


def _values(function: WindowFunction, places: _Places, value: WindowColumn | None, null: int) -> Rows:
    """The codes int64[n] of a function's values. `null`: what stands for a value that is not there."""
    if function.name in RANKINGS:
        return _ranking(function, places)
    if function.name in NEIGHBOURS:
        assert value is not None
        return _placed(function, WindowFrames(places.begin, places.end), value, null)
    frames = places.frames(function)
    if function.name in PLACED:
        assert value is not None
        return _placed(function, frames, value, null)
    return folded(function.name, value, frames, null)


def _placed(function: WindowFunction, frames: WindowFrames, value: WindowColumn, null: int) -> Rows:
    """The codes of the values at a place in each frame, or so far from the row; of a frame without it, `null`."""
    low, high = frames
    here, away = np.arange(len(low)), function.number if function.name == "lead" else -function.number
    behind, counted = here + 1, here
    if function.skips_nulls:  # places are counted among the rows that have a value
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(value.present)])
        low, high, here, behind = before[low], before[high], before[here], before[behind]
        counted = np.flatnonzero(value.present)
    match function.name:
        case "first":
            at = low
        case "last":
            at = high - 1
        case "nth":
            at = low + function.number - 1
        case _:
            at = behind + away - 1 if away > 0 else here + away
    there = (at >= low) & (at < high)
    found = np.full(len(at), null, np.int64)
    found[there] = value.codes[counted[at[there]]]
    return value.given_out(found, there, null)


def _ranking(function: WindowFunction, places: _Places) -> Rows:
    here = np.arange(places.many) - places.begin
    if function.name == "row_number":
        return here + 1
    if function.name == "rank":
        return places.first - places.begin + 1
    if function.name == "dense_rank":
        return places.groups - places.groups[places.begin] + 1
    size, rest = np.divmod(places.end - places.begin, function.number)
    longer = rest * (size + 1)  # the first parts have one row more
    part: Rows = np.where(here < longer, here // (size + 1), rest + (here - longer) // np.maximum(size, 1)) + 1
    return part


# Copies


def _counted(rows: Rows) -> Rows:
    """The distinct rows, with how often each is there as the last column."""
    if not rows.shape[1]:
        return np.concatenate([rows, np.empty((1, 0), np.int64)])
    if not len(rows):
        return np.array([[rows.shape[1]]], np.int64)
    rows, _, starts = runs_of(np.ascontiguousarray(rows))
    many = np.diff(np.append(starts, rows.shape[1]))
    return np.vstack([np.take(rows, starts, axis=1), many])
