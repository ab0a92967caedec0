"""The first rows of a relation in an order, from scratch and from few rows (`lftj/language/first_rows.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.group_scan import ranked
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.language.first_rows import FirstRows, OrderedColumn
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary, is_nullable, type_of
from scantree.version import Rows, Version

KEY_MIN, KEY_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max
# From so many times the rows that are asked for, most rows are put aside before those are sorted.
FEW_TIMES = 4


def first_of(clause: Clause) -> FirstRows:
    """What the head of a marked clause holds."""
    assert clause.aggregate is not None
    return FirstRows.of(clause.aggregate.op)


def derive_first(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of the head of a marked clause. O(n log n) for n rows of the relation that it reads."""
    head, rows = evaluator.relations[clause.head], evaluator.relations[clause.atoms[0].predicate].content.columns()
    limits.look(rows.shape[1])
    first = first_of(clause)
    rows = leading(rows, first, head.schema, evaluator.symbols, first.offset + first.limit)
    return head.build(cut(rows, first, head.schema))


def leading(rows: Rows, first: FirstRows, schema: Schema, symbols: SymbolTable, size: int) -> Rows:
    """The first `size` of rows int64[arity, n], in order: those that are behind by the first key are not sorted."""
    if rows.shape[1] > FEW_TIMES * size:
        ordered = leading_column(first.order)
        key = rough_key(rows[ordered.column], schema.types[ordered.column], ordered, symbols)
        bound = np.partition(key, max(size - 1, 0))[max(size - 1, 0)]
        rows = np.compress(key <= bound, rows, axis=1)
    return in_order(rows, first, schema, symbols)[:, :size]


def leading_column(order: Sequence[OrderedColumn]) -> OrderedColumn:
    """What rows are ordered by first."""
    return order[0] if order else OrderedColumn(0, False, True)


def rough_key(codes: Rows, type_: str, ordered: OrderedColumn, symbols: SymbolTable) -> Rows:
    """What a column puts rows in order by, as numbers; values at the end of all codes may be alike with null."""
    key = symbols.order(codes, type_)
    key = ~key if ordered.descending else key
    if is_nullable(type_):
        key = np.where(codes == type_of(type_).null, KEY_MIN if ordered.nulls_first else KEY_MAX, key)
    return key


def in_order(rows: Rows, first: FirstRows, schema: Schema, symbols: SymbolTable) -> Rows:
    """Rows int64[arity, n] in the order that `first` says, then in that of all columns; `schema`: of the head."""
    types = schema.types[: schema.arity - schema.bag]
    values = [comparable(rows[at], type_, symbols) for at, type_ in enumerate(types)]
    keys = [*order_keys(first.order, rows, values, schema.types), *values]
    return rows[:, np.lexsort(keys[::-1])]


def comparable(codes: Rows, type_: str, symbols: SymbolTable) -> Rows:
    """Numbers in the order of the values of a column; null's comes first."""
    if in_dictionary(type_):
        return ranked(codes, symbols)
    # The greatest code, as that of null among unsigned numbers, wraps to the least.
    return codes + 1 if is_nullable(type_) and type_of(type_).null == KEY_MAX else codes


def order_keys(
    order: Iterable[OrderedColumn], rows: Rows, values: Sequence[Rows] | Mapping[int, Rows], types: Sequence[str]
) -> Iterator[Rows]:
    """What rows are sorted by: where null is put, then the `values`, comparable numbers of the columns."""
    for column, descending, nulls_first in order:
        key = ~values[column] if descending else values[column]
        if is_nullable(types[column]):
            null = rows[column] == type_of(types[column]).null
            yield (null != nulls_first).astype(np.int64)
            key = np.where(null, 0, key)
        yield key


def cut(rows: Rows, first: FirstRows, schema: Schema) -> Rows:
    """Those of the rows int64[arity, n], which are in order, that are after the offset and within the limit."""
    if not schema.bag:
        return rows[:, first.offset : first.offset + first.limit]
    ends = np.cumsum(rows[-1])
    taken = np.minimum(ends, first.offset + first.limit) - np.maximum(ends - rows[-1], first.offset)
    rows = np.compress(taken > 0, rows, axis=1)
    rows[-1] = taken[taken > 0]
    return rows
