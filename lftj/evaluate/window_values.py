"""Values of window functions over rows of whole partitions (`lftj/language/window_functions.py`).

Rows are sorted once, by partition, order and all columns. Then each row has the places of its partition, its peers and
its frame among all, and every function is computed for all rows at once: folds by the difference of two running sums,
the least and greatest values of frames by a table of powers of two (Bender, Farach-Colton: *The LCA problem revisited*,
LATIN 2000), the rest by looking a place up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.first_of_order import comparable, order_keys
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.language.types import DECIMAL, FLOAT
from lftj.language.window_functions import FOLDS, NEIGHBOURS, RANKINGS, WindowFunction, WindowFunctions
from lftj.values.codes import decode_float, encode_float
from lftj.values.decimal_type import DIGITS
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import family_of, is_nullable, null_rows, type_of
from scantree.consolidate import runs_of
from scantree.version import Rows, Version

# Binary digits of a float's mantissa.
DIGITS_OF_FLOAT = 53
LOW_32 = 0xFFFFFFFF
# Rows that a bag may have when each copy is one.
MOST_COPIES = 1 << 28


def windows_of(clause: Clause) -> WindowFunctions:
    """What the head of a marked clause holds."""
    assert clause.aggregate is not None
    return WindowFunctions.of(clause.aggregate.op)


def derive_windows(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of the head of a marked clause. O(n log n) for n rows of the relation that it reads."""
    head, rows = evaluator.relations[clause.head], evaluator.relations[clause.atoms[0].predicate].content.columns()
    limits.look(rows.shape[1])
    return head.build(windowed(rows, windows_of(clause), head.schema, evaluator.symbols))


def windowed(rows: Rows, windows: WindowFunctions, schema: Schema, symbols: SymbolTable) -> Rows:
    """Rows int64[arity, n] of the relation below, whole partitions of it, as rows of the head (`schema`), in any order.

    Raises `EvaluationError` where a sum has no value, or a bag has too many copies.
    """
    if schema.bag:
        if (copies := int(rows[-1].sum())) > MOST_COPIES:
            raise EvaluationError(
                f"a window over {copies:,} rows, copies of rows among them",
                why=f"each copy is a row of its own there, and up to {MOST_COPIES:,} are held; nothing was changed",
                remedy="group the rows first, and let the window be over the groups",
            )
        rows = np.repeat(rows[:-1], rows[-1], axis=1)
    width = schema.arity - schema.bag - len(windows.functions)
    types = schema.types
    ranks = comparable(rows, types[:width], symbols)
    keys = [*(ranks[at] for at in windows.partition), *order_keys(windows.order, rows, ranks, types)]
    sorted_by = {*windows.partition, *(column for column, _, _ in windows.order)}
    keys += [rank for at, rank in enumerate(ranks) if at not in sorted_by]
    moved = runs_of(np.vstack(keys))[1] if keys else None  # without columns all rows are alike
    if moved is not None:
        rows, ranks = np.take(rows, moved, axis=1), [rank[moved] for rank in ranks]
    places = _Places.of(rows, windows)
    made = []
    for at, function in enumerate(windows.functions):
        argument = function.argument
        value = None if argument < 0 else _Column(rows[argument], ranks[argument], types[argument])
        null = type_of(types[width + at]).null if is_nullable(types[width + at]) else 0
        made.append(_values(function, places, value, null))
    found = np.vstack([rows, *made]) if made else rows
    return _counted(found) if schema.bag else found


class _Column(NamedTuple):
    """A column: its `codes` int64[n], numbers int64[n] in the order of its values (`ranks`), and its type."""

    codes: Rows
    ranks: Rows
    type: str

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Where it is not null."""
        null = null_rows(self.codes, self.type)
        return np.ones(len(self.codes), np.bool_) if null is None else ~null


class _Places(NamedTuple):
    """Of each row, in order, int64[n]: where its partition begins and ends, and its peers (`first`, `after`).

    `groups`: the number of its peers among all.
    """

    begin: Rows
    end: Rows
    first: Rows
    after: Rows
    groups: Rows

    @staticmethod
    def of(rows: Rows, windows: WindowFunctions) -> _Places:
        """Those of sorted rows."""
        partition = _changes(rows, windows.partition)
        peers = partition | _changes(rows, [column for column, _, _ in windows.order])
        return _Places(*_spans(partition), *_spans(peers), np.cumsum(peers))

    def frame(self, function: WindowFunction) -> tuple[Rows, Rows]:
        """(where the frame of each row begins, where it ends)."""
        here = np.arange(len(self.begin))
        low, high = self.begin, self.end
        if function.low is not None:
            low = np.clip(here + function.low, self.begin, self.end) if function.rows else self.first
        if function.high is not None:
            high = np.clip(here + function.high + 1, self.begin, self.end) if function.rows else self.after
        return low, np.maximum(low, high)


def _changes(rows: Rows, columns: tuple[int, ...] | list[int]) -> npt.NDArray[np.bool_]:
    """Where one of the columns has another value than in the row before."""
    found = np.zeros(rows.shape[1], np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= rows[column][1:] != rows[column][:-1]
    return found


def _spans(starts: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """(where the run of each row begins, where it ends)."""
    begins = np.flatnonzero(starts)
    which = np.cumsum(starts) - 1
    return begins[which], np.append(begins[1:], len(starts))[which]


def _values(function: WindowFunction, places: _Places, value: _Column | None, null: int) -> Rows:
    """The codes int64[n] of a function's values. `null`: what stands for a value that is not there."""
    if function.name in RANKINGS:
        return _ranking(function, places)
    if function.name in NEIGHBOURS:
        assert value is not None
        here = np.arange(len(places.begin)) + (function.number if function.name == "lead" else -function.number)
        there = (here >= places.begin) & (here < places.end)
        return np.where(there, value.codes[np.where(there, here, 0)], null) if len(here) else value.codes
    low, high = places.frame(function)
    if function.name in FOLDS:
        return _folded(function.name, value, low, high, null)
    assert value is not None
    here = {"first": low, "last": high - 1, "nth": low + function.number - 1}[function.name]
    there = (here >= low) & (here < high)
    return np.where(there, value.codes[np.where(there, here, 0)], null) if len(here) else value.codes


def _ranking(function: WindowFunction, places: _Places) -> Rows:
    here = np.arange(len(places.begin)) - places.begin
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


# Folds


def _folded(name: str, value: _Column | None, low: Rows, high: Rows, null: int) -> Rows:
    if value is None:
        return high - low
    present = value.present
    many = _between(present.astype(np.int64), low, high)
    if name == "count":
        return many
    if name == "sum":
        add = _sum_of_floats if family_of(value.type) == FLOAT else _sum
        found = add(np.where(present, value.codes, 0), low, high)  # of 0 the code is 0
        if is_nullable(value.type) and ((found == null) & (many > 0)).any():
            raise _beyond()
        if family_of(value.type) == DECIMAL and (np.abs(found) >= 10**DIGITS).any():
            raise _beyond()
    else:
        found = _best(value, present, low, high, greatest=name == "max")
    return np.where(many > 0, found, null)


def _between(numbers: Rows, low: Rows, high: Rows) -> Rows:
    """The sum of the numbers in each frame."""
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers)])
    found: Rows = running[high] - running[low]
    return found


def _sum(codes: Rows, low: Rows, high: Rows) -> Rows:
    """Sums of 64-bit numbers, in two halves each, so that one that leaves 64 bits is seen."""
    lower = _between(codes & LOW_32, low, high)
    upper = _between(codes >> 32, low, high) + (lower >> 32)
    if len(upper) and (upper.min() < -(1 << 31) or upper.max() >= 1 << 31):
        raise _beyond()
    return (upper << 32) | (lower & LOW_32)


def _sum_of_floats(codes: Rows, low: Rows, high: Rows) -> Rows:
    """Sums of floats, exact and rounded once, as those of `sum` are: in integers of any size."""
    values = decode_float(codes)
    infinite = np.isinf(values)
    # value = whole * 2 ** exponent; all are multiples of the least power of two among them
    parts, exponents = np.frexp(np.where(infinite, 0.0, values))
    wholes, exponents = (parts * 2.0**DIGITS_OF_FLOAT).astype(np.int64), exponents - DIGITS_OF_FLOAT
    least = min(int(exponents.min(initial=0)), 0)
    running = [0]
    for whole, more in zip(wholes.tolist(), (exponents - least).tolist(), strict=True):
        running.append(running[-1] + (whole << more))
    one, found = 1 << -least, np.empty(len(low))
    for at, (begin, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        try:
            found[at] = (running[end] - running[begin]) / one
        except OverflowError:
            raise _beyond() from None
    if infinite.any():
        up, down = (_between((infinite & (values * sign > 0)).astype(np.int64), low, high) for sign in (1, -1))
        if ((up > 0) & (down > 0)).any():
            raise _beyond()
        found = np.where(up > 0, np.inf, np.where(down > 0, -np.inf, found))
    return encode_float(found)


def _beyond() -> EvaluationError:
    return EvaluationError(
        "a sum over a window has no value",
        why="it leaves the range of its type; nothing was changed",
        remedy="sum smaller values, or doubles instead of whole numbers",
    )


def _best(value: _Column, present: npt.NDArray[np.bool_], low: Rows, high: Rows, *, greatest: bool) -> Rows:
    """The codes of the least, or the greatest, value in each frame; of one without a value some code."""
    order = np.argsort(value.ranks, kind="stable")
    # Places in the order of values, so that one number says which is better, and where it is.
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    best = np.maximum if greatest else np.minimum
    table = np.where(present, place, -1 if greatest else len(order))
    found = np.full(len(low), -1 if greatest else len(order), np.int64)
    length, width = high - low, 1
    while width <= int(length.max(initial=0)):
        rows = np.flatnonzero((length >= width) & (length < 2 * width))
        found[rows] = best(table[low[rows]], table[high[rows] - width])
        table = best(table[:-width], table[width:])
        width *= 2
    return value.codes[order[np.clip(found, 0, max(len(order) - 1, 0))]] if len(order) else value.codes


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
