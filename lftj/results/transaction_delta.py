"""What a transaction changed: per relation, the rows it inserted and the rows it erased.

    tx.delta["tri"].inserted    tx.delta["tri"].erased    relations of the same kind as db["tri"]
    tx.delta["tri"].to_arrow()                            both in one table, told apart by its column `_op`
    list(tx.delta)                                        the relations that changed

Deltas are exact, net and of whole relations: a row is inserted if it is in the relation after the transaction and was
not before, whether as a fact or derived. They hold their own rows and none of the database's pages, and decode symbols
when they are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lftj import html
from lftj.errors import CountRangeError, EvaluationError
from lftj.evaluate.evaluator import Evaluator
from lftj.language.clause import INTERNAL
from lftj.results.answer_errors import unknown
from lftj.results.not_pickled import Unchanging
from lftj.results.relation import Relation
from lftj.results.tabular import Held, Tabular, with_number
from lftj.store.change import ERASED, INSERTED, Change
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable

Rows = npt.NDArray[np.int64]
# The column of a delta, as a table, that says what became of a row.
OP = "_op"


class SortedRows:
    """Rows int64[arity, n], distinct and in key order, read as a version is. `contains` is O(log n) per key."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.shape[1])

    def columns(self) -> Rows:
        """All rows."""
        return self._rows

    def contains(self, keys: Rows) -> npt.NDArray[np.bool_]:
        """Whether each of the keys, the columns of `keys` int64[arity, m], is present."""
        return np.fromiter((self._has(key) for key in keys.T), np.bool_, keys.shape[1])

    def rows_under(self, prefixes: Rows) -> Rows:
        """The rows that begin with one of the prefixes, the columns of `prefixes` int64[k, m]: int64[arity, n]."""
        parts = [self._rows[:, slice(*self._under(prefix))] for prefix in prefixes.T]
        return np.concatenate([self._rows[:, :0], *parts], axis=1)

    def _has(self, key: Rows) -> bool:
        lo, hi = self._under(key)
        return lo < hi

    def _under(self, prefix: Rows) -> tuple[int, int]:
        lo, hi = 0, len(self)
        for column, value in zip(self._rows, prefix, strict=False):
            run = column[lo:hi]
            lo, hi = lo + int(np.searchsorted(run, value)), lo + int(np.searchsorted(run, value, "right"))
        return lo, hi


class Delta(Tabular):
    """The rows of one relation that a transaction inserted and erased.

    As a table (`lftj.results.tabular`) it has a last column `_op`, -1 of erased rows, which come first, and 1 of
    inserted ones: a source that `db.load_changes` of another database takes.
    """

    def __init__(self, schema: Schema, change: Change, symbols: SymbolTable) -> None:
        self._schema, self._change, self._symbols = schema, change, symbols

    @cached_property
    def inserted(self) -> Relation:
        """The rows that the relation has now and had not before."""
        return Relation(self._schema, SortedRows(self._change.of_kind(INSERTED)), self._symbols)

    @cached_property
    def erased(self) -> Relation:
        """The rows that the relation had before and has no more."""
        return Relation(self._schema, SortedRows(self._change.of_kind(ERASED)), self._symbols)

    def _described(self) -> str:
        return f"the delta of `{self._schema.name}`"

    def _held(self) -> Held:
        erased, inserted = self.erased._sorted, self.inserted._sorted
        kinds = np.repeat(np.array([ERASED, INSERTED], np.int64), [len(self.erased), len(self.inserted)])
        columns = [np.concatenate(pair) for pair in zip(erased, inserted, strict=True)]
        return with_number(self._schema, OP), [*columns, kinds], self._symbols, len(kinds)

    def __bool__(self) -> bool:
        return len(self._change.kinds) > 0

    def __repr__(self) -> str:
        return f"Delta of {self._schema}: {self._amounts()}"

    def _amounts(self) -> str:
        return f"{len(self.inserted):,} inserted, {len(self.erased):,} erased"

    def _repr_html_(self) -> str:
        return html.shown(self._html())

    def _html(self) -> str:
        """Its title and the first rows of either kind, the erased ones before the inserted ones."""
        schema, erased, inserted = self._schema, self.erased._head(), self.inserted._head()
        kinds = [html.ERASED] * len(erased) + [html.INSERTED] * len(inserted)
        table = html.table(schema.names, schema.types, [*erased, *inserted], kinds) if kinds else ""
        hidden = len(self.erased) + len(self.inserted) - len(kinds)
        return html.title(schema.name, self._amounts()) + table + html.more(hidden)


class Deltas(Mapping[str, Delta], Unchanging):
    """The delta of every relation. Iterating lists those of the program that changed; the others have an empty one.

    `schemas`: those of the relations that changed, as they were then, and of others that the database does not have
    yet. A relation may be gone, or have other columns, by the time somebody looks.
    """

    _instead = "give their rows instead, as in `{name: deltas[name].to_arrow() for name in deltas}`"

    def __init__(
        self,
        changes: Mapping[str, Change],
        unknown: Mapping[str, EvaluationError],
        evaluator: Evaluator,
        schemas: Mapping[str, Schema],
    ) -> None:
        self._changes, self._unknown, self._evaluator, self._schemas = changes, unknown, evaluator, schemas
        self._made: dict[str, Delta] = {}
        self._shown = [name for name in changes if not name.startswith(INTERNAL)]

    def _about(self, names: Collection[str]) -> Deltas:
        """The same deltas, of which iterating lists only those of `names` that changed."""
        narrowed = Deltas(self._changes, self._unknown, self._evaluator, self._schemas)
        narrowed._made = self._made
        narrowed._shown = [name for name in self._shown if name in names]
        return narrowed

    def __getitem__(self, name: str) -> Delta:
        """The delta of a relation; `UnknownRelationError` if there is no such relation."""
        schema = self._schema(name)
        if name in self._made:
            return self._made[name]
        cause = self._unknown.get(name)
        if isinstance(cause, CountRangeError):
            raise CountRangeError(
                f"the change of `{name}` cannot be told in numbers",
                why=cause.what,
                remedy=cause.remedy,
            )
        if cause is not None:
            raise EvaluationError(
                f"the change of `{name}` is not known",
                why=f"it could not be evaluated before the transaction: {cause.what}",
                remedy=f"read `{name}` to see what it is now",
            )
        change = self._changes.get(name)
        if change is None:
            change = Change(np.empty((schema.arity, 0), np.int64), np.empty(0, np.int8))
        return self._made.setdefault(name, Delta(schema, change, self._evaluator.symbols))

    def _schema(self, name: str) -> Schema:
        relations = self._evaluator.state.relations
        try:
            return self._schemas[name] if name in self._schemas else relations[name].schema
        except (KeyError, TypeError):  # what cannot be hashed is no name either
            raise unknown(name, (*relations, *self._schemas)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._shown)

    def __len__(self) -> int:
        return len(self._shown)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._changes

    def __repr__(self) -> str:
        lines = [f"  {self[name]!r}" for name in self._shown]
        return "\n".join(["Deltas:", *lines]) if lines else "Deltas: nothing changed"

    def _repr_html_(self) -> str:
        if not self._shown:
            return html.shown(html.title("Deltas", "nothing changed"))
        return html.shown(*(self[name]._html() for name in self._shown if name not in self._unknown))

    def _ipython_key_completions_(self) -> list[str]:
        """The relations that changed: what a notebook offers after `tx.delta["`."""
        return list(self)
