"""The first rows of an answer, where the others need not be made.

    select s.id, c.region from sale s, customer c where s.customer = c.id order by s.price desc limit 10

One rule derives the rows of such a query, to which others give its name and the order of its columns. Where that rule
is read by columns (lftj/evaluate/by_columns.py), what is behind the last row that is wanted, by the first column of the
order, is put aside as it comes: neither are equal rows added up nor is all of it sorted and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.by_columns import asked_reading, read_rows
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.first_of_order import FEW_TIMES, leading_column, rough_key
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.program.aliases import permuted_of
from lftj.sql.view import View
from lftj.store.stored import StoredRelation
from scantree.consolidate import consolidated, counted

Codes = npt.NDArray[np.int64]


class RowsOfRule(NamedTuple):
    """The rule that derives the rows of a view, and at which of its head's arguments each column of the view is."""

    clause: Clause
    places: tuple[int, ...]


def rule_of_rows(
    view: View, clauses: Callable[[str], Sequence[Clause]], fresh: Mapping[str, StoredRelation]
) -> RowsOfRule | None:
    """The one rule that rows come from, if no more is done to them; `fresh`: the heads of the query."""
    name, places = view.name, tuple(range(fresh[view.name].arity))
    while True:
        own = clauses(name)
        if len(own) != 1 or len(fresh[name].facts):
            return None
        clause = own[0]
        copied = permuted_of(clause)
        if copied is None or copied[0] not in fresh:
            break
        name, places = copied[0], tuple(copied[1][place] for place in places)
    if not fresh.keys().isdisjoint(clause.reads) or clause.best or clause.acyclic:
        return None
    if clause.aggregate is not None:
        # Copies of equal rows may be added up later; any other aggregate needs all rows.
        return RowsOfRule(clause, places) if view.bag and clause.aggregate.op == "sum" else None
    whole = len(clause.atoms) == 1 and {*clause.atoms[0].args} <= {*clause.head_args}
    return RowsOfRule(clause, places) if whole or not view.bag else None


def leading_rows(evaluator: Evaluator, rule: RowsOfRule, view: View, limits: Limits) -> Codes | None:
    """The rows of the view int64[arity, n] that may be among the first, in key order; None if all are to be made."""
    assert view.limit is not None
    clause, size = rule.clause, view.offset + view.limit
    rows = max((len(evaluator.relations[name]) for name in clause.reads), default=0)
    if not 0 < FEW_TIMES * size < rows:
        return None
    reading = asked_reading(evaluator, clause, in_order=False)
    if reading is None:
        return None
    ordered = leading_column(view.order)
    place = rule.places[ordered.column]
    type_ = evaluator.relations[clause.head].types[place]
    leading = Leading(size, lambda rows: rough_key(rows[place], type_, ordered, evaluator.symbols))
    if read_rows(evaluator, clause, reading, limits, leading.add) is None:
        return None
    found = leading.rows(len(clause.head_args))[[*rule.places]]
    if view.bag:
        return np.vstack(consolidated(found[:-1], found[-1]))
    distinct = counted([found])[:-1]
    return distinct if leading.all or distinct.shape[1] >= size else None


class Leading:
    """Rows int64[k, n] as they come, without those that are behind `size` others by their key.

    `key`: numbers in order, of rows · `all`: whether no row was put aside.
    """

    def __init__(self, size: int, key: Callable[[Codes], Codes]) -> None:
        self._size, self._key, self.all = size, key, True
        self._rows: list[Codes] = []
        self._bound: int | None = None

    def add(self, rows: Codes) -> None:
        """More rows."""
        if self._bound is not None:
            rows = self._up_to(self._bound, rows, self._key(rows))
        self._rows.append(rows)
        if sum(part.shape[1] for part in self._rows) > FEW_TIMES * self._size:
            rows = np.concatenate(self._rows, axis=1)
            key = self._key(rows)
            self._bound = int(np.partition(key, self._size - 1)[self._size - 1])
            self._rows = [self._up_to(self._bound, rows, key)]

    def _up_to(self, bound: int, rows: Codes, key: Codes) -> Codes:
        kept = key <= bound
        self.all = self.all and bool(kept.all())
        return np.compress(kept, rows, axis=1)

    def rows(self, width: int) -> Codes:
        """The rows that were not put aside, of `width` columns."""
        return np.concatenate([np.empty((width, 0), np.int64), *self._rows], axis=1)
