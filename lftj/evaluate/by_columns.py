"""Clauses column by column: over one relation, and over joins with what has one row for each of its rows.

    q[f, s] = sum p * (100 - d) : { item(_, f, s, p, d, day), day <= date("1998-09-02") }.
    total[r] = sum p : { sale(_, c, p), customer(c, r) }.

A walk would want the relation sorted by these columns, a copy of it for each aggregate of a `group by`, and plans which
order is best. So the columns that are read (column_reading.py) are copied out of its pages, conditions and terms are
computed over them, a part of the rows at a time, and rows of other relations are looked up by their keys: hash joins,
with the largest relation on the side that probes. What conditions define is computed where it is read.

Whatever has no value is left to the walk. So is what key orders that are built lead to, if it is few of the rows; and
what is asked again and again, if one that would have to be sorted leads to few: then sorting pays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.evaluate.column_reading import ColumnReading, ReadColumns, RowLookup, reading_of
from lftj.evaluate.term_columns import TermColumns
from lftj.join.row_table import RowTable
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause, Compare, Parameter, Value, Var
from lftj.language.functors import FLIPPED
from lftj.plan.body import body_of
from lftj.plan.keyorder import MANY, OrderSearch
from lftj.program.evaluation import Evaluation
from lftj.program.text_split import split_text
from lftj.values.type_table import in_dictionary
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator

Ints = npt.NDArray[np.int64]

# Rows that are computed at a time; and of those whose texts are, once for each that is different.
PART, PART_OF_TEXTS = 1 << 18, 1 << 22
# How often it is read so before it is sorted, where a walk then takes fewer steps than this part of the rows, and more
# for each lookup. Measured (bench.asked, of a million sales and TPC-H at 0.1): a step takes 24 to 30 ns, a row some 10
# ns and 9 for each lookup.
OFTEN, FEW, LOOKED_UP = 8, 1 / 4, 3 / 10
BOUNDS = {**FLIPPED, "=": "="}


def rows_by_columns(
    evaluator: Evaluator, clause: Clause, limits: Limits, emit: Callable[[Ints], None]
) -> Evaluation | None:
    """Give the clause's rows, of an aggregate one for each binding, to `emit`, int64[width, n], with repeats.

    None if it is to be walked instead. Nothing of what was given counts then.
    """
    reading = asked_reading(evaluator, clause)
    return None if reading is None else read_rows(evaluator, clause, reading, limits, emit)


def asked_reading(evaluator: Evaluator, clause: Clause, *, in_order: bool = True) -> ColumnReading | None:
    """As `likely_reading`, of a clause that is evaluated now; None, too, where that was done so often that it sorts."""
    reading = likely_reading(evaluator, clause, in_order=in_order)
    return None if reading is None or pays_to_sort(evaluator, clause, reading) else reading


def read_rows(
    evaluator: Evaluator, clause: Clause, reading: ColumnReading, limits: Limits, emit: Callable[[Ints], None]
) -> Evaluation | None:
    """As `rows_by_columns`, once it is known how the clause is read; None if it cannot be."""
    start, relation = time.perf_counter(), evaluator.relations[reading.base.relation]
    found = [LookedUp.of(evaluator, lookup) for lookup in reading.lookups]
    tables = [table for table in found if table is not None]
    if len(tables) < len(found):
        walk_from_now_on(evaluator, clause, reading)
        return None
    bound, part = 0, PART if split_text(clause) is None else PART_OF_TEXTS
    for rows in relation.content.column_chunks(reading.base.places, part):
        columns = _columns(evaluator, reading.base, rows)
        if columns is None or not all(table.join(columns) for table in tables):
            return None
        columns.columns |= {name: columns.codes(term) for name, term in reading.defined.items()}
        codes = [columns.codes(term) for term in clause.head_args]
        if not columns.defined.all():
            return None
        emit(np.array(codes, np.int64).reshape(len(codes), columns.count))
        bound += columns.count
        limits.look(bound)
    read = len(relation) + sum(len(evaluator.relations[lookup.part.relation]) for lookup in reading.lookups)
    counters = Counters(steps=read, rows=bound)
    return Evaluation(clause, None, counters, time.perf_counter() - start, instead=str(reading))


def is_read_by_columns(evaluator: Evaluator, clause: Clause) -> bool:
    """Whether `rows_by_columns` is expected to give the bindings: it takes few steps for each row, whatever joins."""
    reading = likely_reading(evaluator, clause)
    if reading is None or _asked(evaluator, clause, reading)[0] >= OFTEN:
        return False
    return all(lookup.declared or LookedUp.of(evaluator, lookup) is not None for lookup in reading.lookups)


def likely_reading(evaluator: Evaluator, clause: Clause, *, in_order: bool = True) -> ColumnReading | None:
    """How the clause is read by columns; None where a walk is as good, and where its key order is given.

    Not `in_order`: it does not matter that a walk gives rows in order.
    """
    few = all(len(evaluator.relations[atom.predicate]) < evaluator.columns_from for atom in clause.atoms)
    if few and len(clause.variables()) <= MANY:  # more take longer to plan with than this does
        return None
    reading = reading_of(clause, evaluator.relations)
    if reading is None or clause.rule in evaluator.state.key_orders:
        return None
    if not reading.adds_up(clause, evaluator.relations):
        return None
    if few or evaluator.relations[reading.base.relation].unsorted:
        return reading
    bound = all(isinstance(term, Var) and term.name not in reading.defined for term in clause.head_args)
    if in_order and bound and clause.aggregate is None and not reading.lookups:
        return None  # a walk gives the rows in order
    return None if _is_led_to(evaluator, reading, in_order=in_order) else reading


def _columns(evaluator: Evaluator, part: ReadColumns, rows: Ints) -> TermColumns | None:
    """What is read of `rows` int64[places, n] of a part; None if a condition has no value for one."""
    size = len(part.columns)
    columns = TermColumns(
        dict(zip(part.columns, rows[:size], strict=True)), rows.shape[1], evaluator.symbols, evaluator.given
    )
    if part.constants or part.repeated:
        wanted: list[np.int64 | Ints] = [np.int64(_code(evaluator, constant)) for _, constant in part.constants]
        wanted += [columns.columns[name] for _, name in part.repeated]
        columns.take(np.logical_and.reduce([row == code for row, code in zip(rows[size:], wanted, strict=True)]))
    return columns if _keep(columns, part.compared) else None


def _keep(columns: TermColumns, compared: Sequence[Compare]) -> bool:
    """Keep the rows that meet all conditions; False if one of them has no value for some that meet the others."""
    if compared:
        kept, wrong = columns.met(compared)
        if wrong.any():
            return False
        columns.take(kept)
    return True


class LookedUp:
    """The rows that a lookup may find: their `values`, by variable, and their numbers by their keys in `table`."""

    def __init__(self, lookup: RowLookup, columns: TermColumns, table: RowTable) -> None:
        self._lookup, self._table = lookup, table
        self._values = {name: column for name, column in columns.columns.items() if name not in lookup.key}

    @classmethod
    def of(cls, evaluator: Evaluator, lookup: RowLookup) -> LookedUp | None:
        """None if two rows have one key, or a condition has no value."""
        held = evaluator.relations[lookup.part.relation].content.some_columns(lookup.part.places)
        columns = _columns(evaluator, lookup.part, held)
        if columns is None:
            return None
        table = RowTable.of(np.stack([columns.columns[name] for name in lookup.key]))
        return None if table is None else cls(lookup, columns, table)

    def join(self, columns: TermColumns) -> bool:
        """Join what is bound with the rows that are found; False if a condition has no value for some of that."""
        rows = self._table.rows(np.stack([columns.columns[name] for name in self._lookup.key]))
        there = rows >= 0
        columns.take(there)
        rows = rows if columns.count == len(rows) else rows[there]
        columns.columns |= {name: values[rows] for name, values in self._values.items()}
        return _keep(columns, self._lookup.compared)


def _code(evaluator: Evaluator, constant: Value | Parameter) -> int:
    if isinstance(constant, Parameter):
        return evaluator.given[constant.name]
    return evaluator.encode(constant.value, constant.type)


def _is_led_to(evaluator: Evaluator, reading: ColumnReading, *, in_order: bool) -> bool:
    """Whether a key order that is built has the columns of the one relation in front, or leads to few of its rows."""
    base = reading.base
    relation, places = evaluator.relations[base.relation], {*base.places}
    if in_order and not reading.lookups and any({*order[: len(places)]} == places for order in relation.orders):
        return True
    first = {order[0]: order for order in relation.orders if order and order[0] in places}
    left = {place: (0, len(relation)) for place in first}
    for place, op, constant in _fixed(base):
        if place in first and (op == "=" or not in_dictionary(relation.types[place])):
            version, code = relation.order(first[place]), _code(evaluator, constant)
            left[place] = _within(version, op, code, *left[place])
    return any(high - low < FEW * len(relation) for low, high in left.values())


def _fixed(part: ReadColumns) -> Iterator[tuple[int, str, Value | Parameter]]:
    """(a column, how it compares, with what) for each column of a part that is compared with a constant."""
    for place, constant in part.constants:
        yield place, "=", constant
    for compare in part.compared:
        for op, one, other in (
            (compare.op, compare.left, compare.right),
            (BOUNDS.get(compare.op, ""), compare.right, compare.left),
        ):
            if op in BOUNDS and isinstance(one, Var) and isinstance(other, Value | Parameter):
                yield part.columns[one.name], op, other


def _within(version: Version, op: str, code: int, low: int, high: int) -> tuple[int, int]:
    """The rows from `low` to `high` whose first key compares so with a code: the first of them, and where they end."""
    less, most = (version.count(version.begin(), end) for end in (version.seek((code,)), version.seek_past((code,))))
    low = max(low, {">=": less, "=": less, ">": most}.get(op, 0))
    return low, min(high, {"<=": most, "=": most, "<": less}.get(op, high))


def pays_to_sort(evaluator: Evaluator, clause: Clause, reading: ColumnReading) -> bool:
    """Whether its like was evaluated often by now, and a key order that is sorted for it leads to few of the rows."""
    base = evaluator.relations[reading.base.relation]
    if base.unsorted:
        return False
    asked = _asked(evaluator, clause, reading)
    asked[0] += len(base) >= evaluator.columns_from
    if asked[0] == OFTEN:
        body = body_of(clause)
        statistics = {atom.predicate: evaluator.relations[atom.predicate].statistics for atom in body.atoms}
        best = OrderSearch(body, statistics, False, sort=0.0, given=evaluator.given).ranked()[0]
        part = FEW + LOOKED_UP * len(reading.lookups)
        if best.cost >= part * len(evaluator.relations[reading.base.relation]):
            asked[0] = -(1 << 62)  # never
    return asked[0] >= OFTEN


def walk_from_now_on(evaluator: Evaluator, clause: Clause, reading: ColumnReading) -> None:
    """Evaluate what is read so no more by columns."""
    _asked(evaluator, clause, reading)[0] = OFTEN


def _asked(evaluator: Evaluator, clause: Clause, reading: ColumnReading) -> list[int]:
    """How often clauses of this shape were evaluated so."""
    key, relations = ("columns", clause.head, reading.shape), evaluator.relations
    asked: list[int] = evaluator.kept(key, clause, relations, lambda: [0])
    return asked
