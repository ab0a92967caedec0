"""Scans of a relation as a user asks for them: the fold of a key interval, by any monoid, in O(log n).

    db["sales"].scan("max", lo=(2,), hi=(2,))        the greatest value of the last column where the first one is 2
    db["sales"].scan("sum", "amount", lo=(2, 5))     from store 5 of region 2 on, all regions behind included
    db["sales"].scan("count", order=("store",), lo=(5,), hi=(7,))

An *interval* runs from the first row that begins with `lo` (or follows it) to the last that begins with `hi`, in a *key
order*: the columns of `order`, then the others as they are declared. Both ends are included, a missing one is open.

    count; sum, mean of integers; min, max of numbers     compiled: a scan that the relation keeps (stored.py)
    all others (lftj/results/monoids.py)                          Python functions over remembered pages (page_folds.py)

The first scan of its kind on a relation builds what later ones use: O(n) once, for compiled ones a copy of the content
in pages. Commits carry it along.

Symbols are kept by code and not by text. An interval may run over a symbol column only if it is the same text at both
ends; and where the order of the rows matters (cat, monoids that do not commute), rows that agree in all columns before
a symbol column are put into the order of their texts while they are folded (text_order.py): a step per such row. Where
the symbol column is the first one nothing is remembered and the rows of the interval are sorted.

Rows that are in no page (deltas) are folded one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lftj import arguments
from lftj.errors import DataError, UnknownColumnError
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.types import ANY, SYMBOL
from lftj.results import monoids, text_order
from lftj.results.answer_errors import out_of_memory
from lftj.results.monoids import UserMonoid
from lftj.store.page_folds import NOTHING, PageFolds
from lftj.values import gate
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import family_of, in_dictionary, is_nullable, null_rows, storage_of, type_of
from scantree.memory import ArenaFullError
from scantree.scan import Monoid
from scantree.version import Rows, Version

if TYPE_CHECKING:
    from lftj.store.stored import StoredRelation

_UNSIGNED = 1 << 63


class Interval(NamedTuple):
    """Codes of a key interval in key order `order`; `shared`: the first columns that all its rows have in common."""

    order: tuple[int, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]
    shared: int

    @property
    def whole(self) -> bool:
        """Whether it is the whole relation."""
        return not self.lo and not self.hi


class Asked(NamedTuple):
    """A scan that was checked: what is folded, where. `column` is numbered as declared, -1 where there is none."""

    schema: Schema
    symbols: SymbolTable
    monoid: str | UserMonoid
    column: int
    interval: Interval

    @property
    def type(self) -> str:
        """The type of the column."""
        return self.schema.types[self.column] if self.column >= 0 else "number"


def ask(
    schema: Schema,
    symbols: SymbolTable,
    monoid: str | UserMonoid,
    column: str | int | None,
    lo: Sequence[object] | None,
    hi: Sequence[object] | None,
    order: Sequence[str | int] | None,
) -> Asked:
    """Check a scan; `DataError` says what is wrong with it."""
    found = monoids.find(monoid)
    at = -1
    if found != "count":
        if not schema.arity:
            raise DataError(
                f"{schema} has no column to scan",
                why="a relation without columns holds one row or none, and no values",
                remedy='ask for "count"',
            )
        at = schema.arity - 1 if column is None else _column(schema, column)
    elif column is not None:
        _column(schema, column)
    type = schema.types[at] if at >= 0 else "number"
    folds = AGGREGATES[found].operand if isinstance(found, str) and at >= 0 else ANY
    family = family_of(type)
    if family not in folds and found != "cat":
        joined = ', "cat"' if family == SYMBOL else ""
        raise DataError(
            f"column `{schema.names[at]}` holds {_held(type)}, which have no {found}",
            why="symbols are texts, and are not added" if family == SYMBOL else f"a {family} is not added",
            remedy=f'name a column of numbers, or ask for "min", "max"{joined} or "count"',
        )
    if family not in folds:
        raise DataError(
            f"column `{schema.names[at]}` holds no texts to concatenate",
            why="cat joins texts",
            remedy="name a symbol column, or register a monoid with `lift=str`",
        )
    return Asked(schema, symbols, found, at, _interval(schema, symbols, lo, hi, order))


def _held(type: str) -> str:
    """What a column of a type holds, in words."""
    family = family_of(type)
    return "symbols" if family == SYMBOL else f"values of type {family}"


def _column(schema: Schema, asked: str | int) -> int:
    if isinstance(asked, str) and asked in schema.names:
        return schema.names.index(asked)
    if isinstance(asked, int) and not isinstance(asked, bool) and 0 <= asked < schema.arity:
        return asked
    from lftj.language.diagnostics import did_you_mean

    raise UnknownColumnError(
        f"`{schema.name}` has no column {asked!r}",
        why=f"its columns are {', '.join(schema.names) or 'none'}",
        remedy=did_you_mean(str(asked), schema.names, "give a name, or a number from 0 on"),
    )


def _interval(
    schema: Schema,
    symbols: SymbolTable,
    lo: Sequence[object] | None,
    hi: Sequence[object] | None,
    order: Sequence[str | int] | None,
) -> Interval:
    if order is not None and not isinstance(order, tuple | list):
        why = "it is columns in an order, a tuple or list of names or numbers"
        raise arguments.refused("order", order, why, 'give a tuple, as in `order=("store",)` for one column')
    first = [_column(schema, name) for name in order or ()]
    if len(set(first)) != len(first):
        raise DataError(
            "a key order names a column twice",
            why="a row has one place in the order of its columns",
            remedy="name every column at most once",
        )
    whole = (*first, *(c for c in range(schema.arity) if c not in first))
    columns = [schema.columns[c] for c in whole]
    ends = [gate.check_prefix(() if end is None else end, columns, schema.name) for end in (lo, hi)]
    shared = 0
    while shared < min(map(len, ends)) and ends[0][shared] == ends[1][shared]:
        shared += 1
    for i in range(shared, max(map(len, ends))):
        if in_dictionary(columns[i].type):
            held = _held(columns[i].type)
            value, order = ("text", "the order of their texts") if held == "symbols" else ("value", "order")
            raise DataError(
                f"an interval runs over column `{columns[i].name}`, which holds {held}",
                why=f"{held} are not kept in {order}",
                remedy=f"give the same {value} at both ends, and the same values before it; or begin the key order "
                "with other columns: order=(...)",
            )
    # A text that the database never met gets the code -1, which no row has.
    codes = [tuple(symbols.code(v) if isinstance(v, str) else v for v in end) for end in ends]
    return Interval(whole, codes[0], codes[1], shared)


# -- rows in pages ----------------------------------------------------------------------------------------------------


def scan_stored(asked: Asked, stored: StoredRelation) -> Any:
    """The answer for a stored relation, which keeps what is built for it. `MemoryLimitError` if that does not fit."""
    try:
        if isinstance(asked.monoid, UserMonoid):
            return asked.monoid.answer(_by_pages(asked, asked.monoid, stored))
        return _built_in(asked, asked.monoid, stored)
    except ArenaFullError as full:
        raise out_of_memory(full) from None


def _built_in(asked: Asked, name: str, stored: StoredRelation) -> Any:
    if name == "count":
        return _count(asked, stored)
    if is_nullable(asked.type):  # what is built over codes would fold null's too
        version = stored.order(asked.interval.order)
        return _fold(asked, name, version.columns(*_positions(version, asked.interval)))
    if name == "cat":
        return monoids.CAT.answer(_by_pages(asked, monoids.CAT, stored))
    if name in ("min", "max"):
        if in_dictionary(asked.type):
            return _by_pages(asked, monoids.TEXT_MIN if name == "min" else monoids.TEXT_MAX, stored)
        version = stored.scan_version(asked.interval.order, Monoid[name.upper()], asked.column)
        lo, hi = _positions(version, asked.interval)
        return asked.symbols.value(version.scan(lo, hi), asked.type) if lo < hi else None
    count = _count(asked, stored) if name == "mean" or storage_of(asked.type) == "unsigned" else 1
    if storage_of(asked.type) == "float":
        total = _by_pages(asked, monoids.FLOAT_SUM, stored)
        return _float_answer(name, total, count)
    version = stored.scan_version(asked.interval.order, Monoid.SUM, asked.column)
    exact = version.exact_scan(*_positions(version, asked.interval))
    return _exact_answer(name, exact, count, asked.type)


def _float_answer(name: str, total: monoids.ExactFloat, count: int) -> float | None:
    if name == "mean":
        return monoids.rounded(total, count) if count else None
    return monoids.rounded(total)


def _exact_answer(name: str, exact: int, count: int, type: str) -> Any:
    """The sum or mean of `count` values whose codes have the sum `exact`."""
    if storage_of(type) == "unsigned":
        exact += count * _UNSIGNED
    made = type_of(type)
    if name == "sum":
        return made.summed(exact)
    return made.averaged(exact, count) if count else None


def _count(asked: Asked, stored: StoredRelation) -> int:
    if asked.interval.whole:
        return len(stored)
    version = stored.scan_version(asked.interval.order, Monoid.COUNT, 0)
    return version.scan(*_positions(version, asked.interval))


def _positions(version: Version, interval: Interval) -> tuple[int, int]:
    lo = version.seek(interval.lo) if interval.lo else version.begin()
    hi = version.seek_past(interval.hi) if interval.hi else version.end()
    return lo, hi


def _by_pages(asked: Asked, monoid: UserMonoid, stored: StoredRelation) -> Any:
    """The element of the interval."""
    interval = asked.interval
    version = stored.order(interval.order)
    lo, hi = _positions(version, interval)
    before_text = _columns_before_text(asked, monoid)
    if before_text == 0:
        return _one_by_one(asked, monoid, version.columns(lo, hi)) if lo < hi else monoid.identity
    at = interval.order.index(asked.column)
    key = (interval.order, monoid, at, before_text)

    def make() -> PageFolds:
        # Nothing of the state: the memory outlives it.
        values = _Values(asked.symbols, asked.type)
        if before_text is None:
            return PageFolds(lambda rows: monoid.fold(values(rows[at])), monoid.combine)
        rest = [_SortKeys(asked.symbols, asked.schema.types[c]) for c in interval.order[before_text:]]
        return text_order.folds(monoid, values, at, rest)

    element = stored.page_folds(key, make).fold(version, lo, hi)
    if element is NOTHING:
        return monoid.identity
    return element if before_text is None else text_order.closed(monoid, element)


def _columns_before_text(asked: Asked, monoid: UserMonoid) -> int | None:
    """How many columns stand before the first symbol column over which the interval runs.

    None if it does not matter: there is no such column, or the order of the rows is nothing to the monoid.
    """
    if monoid.commutative:
        return None
    order = asked.interval.order
    for i in range(asked.interval.shared, len(order)):
        if in_dictionary(asked.schema.types[order[i]]):
            return i
    return None


class _Values:
    """Python values of codes of one column."""

    __slots__ = ("_symbols", "_type")

    def __init__(self, symbols: SymbolTable, type: str) -> None:
        self._symbols, self._type = symbols, type

    def __call__(self, codes: Rows) -> list[Any]:
        # A copy: decoding wants an array without gaps, and a monoid must not see the pages.
        return self._symbols.values(codes.copy(), self._type)


class _SortKeys(_Values):
    """What compares as the Python values of codes of one column, with null where its code is, as `order` of symbols."""

    __slots__ = ()

    def __call__(self, codes: Rows) -> list[Any]:
        if not in_dictionary(self._type):
            keys: list[Any] = codes.tolist()
            return keys
        values = super().__call__(codes)
        return [(value is not None, value) for value in values] if is_nullable(self._type) else values


# -- rows one by one --------------------------------------------------------------------------------------------------


def scan_rows(asked: Asked, rows: Rows) -> Any:
    """The answer for rows int64[arity, n] in declared column order that are in no pages; O(n log n)."""
    interval = asked.interval
    rows = rows[list(interval.order)]
    if len(rows):
        rows = rows[:, np.lexsort(rows[::-1])]
    n = rows.shape[1]
    lo, hi = _bisect(rows, interval.lo, "left"), _bisect(rows, interval.hi, "right") if interval.hi else n
    rows = rows[:, lo : max(lo, hi)]
    if asked.monoid == "count":
        return rows.shape[1]
    if isinstance(asked.monoid, UserMonoid):
        return asked.monoid.answer(_one_by_one(asked, asked.monoid, rows))
    return _fold(asked, asked.monoid, rows)


def _fold(asked: Asked, name: str, rows: Rows) -> Any:
    """The answer of a built-in fold for rows int64[arity, n] in the interval's key order; null is left out."""
    at, type = asked.interval.order.index(asked.column), asked.type
    if (nulls := null_rows(rows[at], type)) is not None:
        rows = np.compress(~nulls, rows, axis=1)
    if name == "cat":
        return monoids.CAT.answer(_one_by_one(asked, monoids.CAT, rows))
    codes, n = rows[at], rows.shape[1]
    if name in ("min", "max"):
        return (min if name == "min" else max)(_Values(asked.symbols, type)(codes), default=None)
    if storage_of(type) == "float":
        values = _Values(asked.symbols, type)(codes)
        total = monoids.FLOAT_SUM.fold(values) if values else monoids.FLOAT_SUM.identity
        return _float_answer(name, total, n)
    return _exact_answer(name, sum(codes.tolist()), n, type)


def _one_by_one(asked: Asked, monoid: UserMonoid, rows: Rows) -> Any:
    """The element of rows int64[arity, n] in the interval's key order, symbols by their texts."""
    order, types = asked.interval.order, asked.schema.types
    if not rows.shape[1]:
        return monoid.identity
    if not monoid.commutative and any(in_dictionary(types[c]) for c in order):
        keys = [asked.symbols.order(column, types[c]) for c, column in zip(order, rows, strict=True)]
        rows = rows[:, np.lexsort(keys[::-1])]
    return monoid.fold(_Values(asked.symbols, asked.type)(rows[order.index(asked.column)]))


def _bisect(rows: Rows, prefix: tuple[int, ...], side: Any) -> int:
    """The first position at (side "left") or behind ("right") the rows that begin with `prefix`."""
    lo, hi = 0, rows.shape[1]
    for i, code in enumerate(prefix):
        run = rows[i, lo:hi]
        last = i + 1 == len(prefix)
        left, right = int(np.searchsorted(run, code)), int(np.searchsorted(run, code, "right"))
        if left == right or last:
            return lo + (left if side == "left" else right)
        lo, hi = lo + left, lo + right
    return lo
