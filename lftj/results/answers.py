"""Answers: queries and relations by name, over a database or over a snapshot of one.

Both are an evaluator (whose state holds the relations), a lock under which it is used, and a progress line. A database
brings what a query reads up to date first; in a snapshot nothing is ever stale.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from lftj import arguments
from lftj.errors import CountRangeError, Error, EvaluationError, MemoryLimitError, UnknownRelationError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.checker import check_query
from lftj.language.clause import INTERNAL, Clause
from lftj.maintain.refresh import refresh
from lftj.program.evaluation import Evaluation
from lftj.program.rule_options import check_order
from lftj.program.state import State
from lftj.progress import Progress
from lftj.results.query import Query
from lftj.results.relation import Relation
from lftj.store.stored import StoredRelation
from lftj.values.codes import Column, Schema
from scantree.memory import ArenaFullError

Named = TypeVar("Named")


class Answers:
    """Relations by name and queries over them."""

    _evaluator: Evaluator
    _progress: Progress
    _lock: threading.RLock

    @property
    def _state(self) -> State:
        return self._evaluator.state

    @property
    def _threads(self) -> int:
        crew = self._evaluator.arena.crew
        return 1 if crew is None else crew.threads

    def __getitem__(self, name: str) -> Relation:
        """The content of a relation; evaluates what is not up to date."""
        relation = self._current(name)
        return Relation(relation.schema, relation.content, self._evaluator.symbols, relation)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._evaluator.state.relations

    def __iter__(self) -> Iterator[str]:
        """The names of all relations of the program; what its rules were taken apart into is left out."""
        return iter([name for name in self._evaluator.state.relations if not name.startswith(INTERNAL)])

    def query(
        self, text: str, *, order: tuple[str, ...] | list[str] | None = None, timeout: float | None = None
    ) -> Query:
        """A query over the relations, such as `"tri(1, y, z), y < z"`: lazy, one column per named variable.

        `order` forces the order in which its variables are bound; `timeout` limits each evaluation, in seconds.
        """
        arguments.text("text", text, "a query is a text", 'give conditions, as in `db.query("tri(1, y, z), y < z")`')
        clause = check_query(text, self._schemas())
        chosen = None
        if order is not None:
            chosen = arguments.names("order", order, 'give the variables of the query, as in `order=("y", "z")`')
            check_order(clause, chosen)
        return Query(self, clause, chosen, arguments.seconds(timeout))

    # -- what queries use ---------------------------------------------------------------------------------------------

    def _schemas(self) -> dict[str, Schema]:
        return {name: relation.schema for name, relation in self._evaluator.state.relations.items()}

    def _stored(self, name: str) -> StoredRelation:
        return find(name, self._evaluator.state.relations)

    def _new(self, schema: Schema) -> StoredRelation:
        evaluator = self._evaluator
        made: StoredRelation = self._guarded(
            StoredRelation, schema, evaluator.arena, page_rows=evaluator.page_rows, dir_rows=evaluator.dir_rows
        )
        return made

    def _current(self, name: str) -> StoredRelation:
        """A relation as it is; evaluates what is not up to date."""
        state = self._evaluator.state
        relation = find(name, state.relations)
        if name not in state.stale:
            return relation
        with self._lock:
            self._refresh([name], None)
            return self._evaluator.state.relations[name]

    def _refresh_all(self, timeout: float | None) -> None:
        """Bring everything up to date but path counts that no number holds, and what reads them as numbers."""
        failed: dict[str, EvaluationError] = {}
        self._refresh(tuple(self._evaluator.state.relations), timeout, failed)
        for error in failed.values():
            if not isinstance(error, CountRangeError):
                raise error

    def _refresh(
        self, names: Iterable[str], timeout: float | None, failed: dict[str, EvaluationError] | None = None
    ) -> None:
        until, strata = Limits.within(timeout), self._evaluator.state.strata

        def limits(head: str) -> Limits:
            return Limits(until.deadline, timeout, self._progress.rows(lambda: strata.place(head)))

        with self._progress.step("evaluating"):
            self._guarded(refresh, self._evaluator, names, limits, failed)

    def _prepared(self, clause: Clause, timeout: float | None) -> Limits:
        """Bring what the clause reads up to date; what is left of the time."""
        until = Limits.within(timeout)
        self._refresh(clause.reads, timeout)
        return Limits(until.deadline, timeout, self._progress.rows(lambda: "query"))

    def _count(self, clause: Clause, order: tuple[str, ...] | None, timeout: float | None) -> tuple[int, Evaluation]:
        with self._lock:
            limits = self._prepared(clause, timeout)
            with self._progress.step("counting"):
                counted: tuple[int, Evaluation] = self._guarded(self._evaluator.count, clause, limits, order=order)
                return counted

    def _answer(
        self, clause: Clause, order: tuple[str, ...] | None, timeout: float | None
    ) -> tuple[Relation, Evaluation]:
        with self._lock:
            limits = self._prepared(clause, timeout)
            chunks: list[Any] = []
            with self._progress.step("evaluating"):
                evaluation = self._guarded(self._evaluator.rows, clause, limits, chunks.append, order=order)
            names = [str(term) for term in clause.head_args]
            schema = Schema("query", tuple(Column(n, t.type) for n, t in zip(names, clause.head_args, strict=True)))
            holder = self._new(schema)
            version = self._guarded(holder.assemble, chunks, in_order=evaluation.sorted)
            return Relation(schema, version, self._evaluator.symbols), evaluation

    def _describe(self, clause: Clause, order: tuple[str, ...] | None) -> Evaluation:
        with self._lock:
            self._refresh(clause.reads, None)
            return self._evaluator.describe(clause, order=order)

    def _guarded(self, action: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call `action`; running out of memory becomes an error that says so."""
        try:
            return action(*args, **options)
        except ArenaFullError as full:
            raise out_of_memory(full) from None


def out_of_memory(full: ArenaFullError) -> MemoryLimitError:
    """The error that a user sees when the arena is full."""
    return MemoryLimitError(
        f"{full.needed:,} bytes of pages are needed, the limit is {full.limit:,}",
        where=full.where,
        why="the change was not made; the database is as it was before",
        remedy="raise `memory_limit=`, or load less",
    )


def find(name: str, named: Mapping[str, Named]) -> Named:
    """What `named` holds for relation `name`."""
    try:
        return named[name]
    except (KeyError, TypeError):  # what cannot be hashed is no name either
        raise unknown(name, named) from None


def unknown(name: str, known: Iterable[str]) -> Error:
    """The error for a relation that is not there."""
    from lftj.language.diagnostics import did_you_mean

    arguments.text("name", name, "relations are known by their names", "give the name of a relation as a str")
    shown = [other for other in known if not other.startswith(INTERNAL)]
    return UnknownRelationError(
        f"there is no relation `{name}`",
        why="no rule or declaration names it",
        remedy=did_you_mean(name, shown, "declare it with `.decl`, or see `list(db)` for what there is"),
    )
