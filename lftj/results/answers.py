"""Answers: queries and relations by name, over a database or over a snapshot of one.

Both are an evaluator (whose state holds the relations), a lock under which it is used, and a progress line. A database
brings what a query reads up to date first; in a snapshot nothing is stale but what has no value.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeVar

from lftj import arguments
from lftj.errors import CountRangeError, EvaluationError, ForkError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.checker import check_query
from lftj.language.clause import INTERNAL, Clause
from lftj.maintain.refresh import refresh
from lftj.maintain.step import KeptHeads
from lftj.program.evaluation import Evaluation
from lftj.program.rule_options import check_order
from lftj.program.state import State
from lftj.progress import Progress
from lftj.results.answer_errors import out_of_memory, unknown
from lftj.results.compiled import Compiled
from lftj.results.not_pickled import NotPickled
from lftj.results.prepared import PreparedQuery
from lftj.results.query import Query
from lftj.results.recently_used import put, used
from lftj.results.relation import Relation
from lftj.results.transaction_delta import SortedRows
from lftj.store.stored import StoredRelation
from lftj.values.schema import Schema
from scantree.locks import LostLockError
from scantree.memory import ArenaFullError

Named = TypeVar("Named")

# So many checked queries, and statements of SQL (lftj/sql/kept_statements.py), are kept: those that were used last.
KEPT_QUERIES = 256


class Answers(NotPickled):
    """Relations by name and queries over them."""

    _evaluator: Evaluator
    _progress: Progress
    _lock: threading.RLock
    _known: dict[tuple[Any, ...], Any]
    _kept: KeptHeads | None = None
    # The call that is at work, and that no function of it may change the database in; for who holds the lock. The frame
    # of its block, if it has one, by its `id`.
    _changing, _changing_in = "", 0

    def _call_at_work(self) -> str:
        """The call that is at work in this thread, which holds the lock; empty if there is none.

        Ctrl-C may keep a block from its end, where that begins: it is left, and its call is not at work any more, long
        before the traceback that refers to it is gone.
        """
        if self._changing_in:
            frame: FrameType | None = sys._getframe()
            while frame is not None and id(frame) != self._changing_in:
                frame = frame.f_back
            if frame is None:
                self._changing, self._changing_in = "", 0
        return self._changing

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

    def _ipython_key_completions_(self) -> list[str]:
        """The names of relations: what a notebook offers after `db["`."""
        return list(self)

    def query(
        self,
        text: str,
        /,
        *,
        order: tuple[str, ...] | list[str] | None = None,
        timeout: float | None = None,
        **parameters: Any,
    ) -> Query:
        """A query over the relations, such as `"tri(1, y, z), y < z"`: lazy, one column per named variable.

        `order` forces the order in which its variables are bound; `timeout` limits each evaluation, in seconds. All
        other arguments are values of its parameters: `db.query("tri($from, y, z)", **{"from": 1})`. They never become
        part of the text; `ArgumentError` is raised if one is missing, misnamed or of another type.
        """
        compiled = self._compiled(text, _chosen(order))
        compiled.check(parameters, self._evaluator.symbols)
        return Query(self, compiled, parameters, arguments.seconds(timeout))

    def prepare_query(
        self, text: str, /, *, order: tuple[str, ...] | list[str] | None = None, timeout: float | None = None
    ) -> PreparedQuery:
        """A query to ask many times: `may = db.prepare_query("may($who, a, r)")`, then `may(who="ann")`.

        `order` and `timeout` as for `query`. It stays valid after commits and changes of rules.
        """
        chosen = _chosen(order)
        self._compiled(text, chosen)
        return PreparedQuery(self, text, chosen, arguments.seconds(timeout))

    def _compiled(self, text: str, order: tuple[str, ...] | None) -> Compiled:
        """The checked query that `text` writes; kept, since checking one takes longer than many an answer."""
        try:
            compiled = self._known.get((text, order))
        except TypeError:  # what cannot be hashed is no text either
            compiled = None
        if isinstance(compiled, Compiled) and compiled.valid(self._evaluator.state.relations):
            used(self._lock, self._known, (text, order), compiled)
            return compiled
        arguments.text("text", text, "a query is a text", 'give conditions, as in `db.query("tri(1, y, z), y < z")`')
        schemas = self._schemas()
        clause = check_query(text, schemas, parameters=True)
        if order is not None:
            check_order(clause, order)
        compiled = Compiled(text, clause, order, schemas)
        put(self._lock, self._known, (text, order), compiled, KEPT_QUERIES)
        return compiled

    def _now(self, compiled: Compiled) -> Compiled:
        """The query as it reads now: its text is checked again if what it reads is gone, or has other columns."""
        if compiled.valid(self._evaluator.state.relations):
            return compiled
        return self._compiled(compiled.text, compiled.order)

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
        for error in self._refresh_others(timeout).values():
            if not isinstance(error, CountRangeError):
                raise error

    def _refresh_others(self, timeout: float | None) -> dict[str, EvaluationError]:
        """Bring everything up to date that has a value; the errors of the heads that have none, and stay stale."""
        failed: dict[str, EvaluationError] = {}
        with self._lock:
            self._refresh(tuple(self._evaluator.state.relations), timeout, failed)
        return failed

    def _refresh(
        self, names: Iterable[str], timeout: float | None, failed: dict[str, EvaluationError] | None = None
    ) -> None:
        stale = self._evaluator.state.stale
        if not stale:
            return
        until, strata = Limits.within(timeout), self._evaluator.state.strata

        def limits(head: str) -> Limits:
            return Limits(until.deadline, timeout, self._progress.rows(lambda: strata.place(head)))

        started = time.perf_counter()
        with self._progress.step("evaluating"):
            before = self._call_at_work()
            try:
                self._changing = "evaluate"
                self._guarded(refresh, self._evaluator, names, limits, failed, kept=self._kept)
            finally:
                self._changing = before
        if done := stale - self._evaluator.state.stale:
            self._evaluated(done, time.perf_counter() - started)

    def _evaluated(self, heads: frozenset[str], seconds: float) -> None:
        """Stale heads were evaluated. Of a snapshot none are stale that have a value."""

    def _prepared(self, clause: Clause, timeout: float | None) -> Limits:
        """Bring what the clause reads up to date; what is left of the time."""
        until = Limits.within(timeout)
        self._refresh(clause.reads, timeout)
        return Limits(until.deadline, timeout, self._progress.rows(lambda: "query"))

    def _giving(self, compiled: Compiled, given: Mapping[str, Any]) -> Evaluator:
        """The evaluator, with the values given for the parameters of a query."""
        return self._evaluator.giving(compiled.codes(given, self._evaluator.symbols))

    def _count(self, compiled: Compiled, given: Mapping[str, Any], timeout: float | None) -> tuple[int, Evaluation]:
        with self._lock:
            compiled = self._now(compiled)
            limits = self._prepared(compiled.clause, timeout)
            with self._progress.step("counting"):
                count = self._giving(compiled, given).count
                counted = [self._guarded(count, case, limits, order=compiled.order) for case in compiled.cases]
                return sum(n for n, _ in counted), counted[0][1]

    def _short_answer(
        self, compiled: Compiled, given: Mapping[str, Any], timeout: float | None
    ) -> tuple[Relation, Evaluation] | None:
        """The rows of a query with parameters if there are few, which are found at once; else None."""
        with self._lock:
            evaluator, compiled = self._evaluator, self._now(compiled)
            if len(compiled.cases) > 1:
                return None
            codes = compiled.codes(given, evaluator.symbols)
            if not evaluator.state.stale.isdisjoint(compiled.reads):
                self._refresh(compiled.reads, timeout)
            found = self._guarded(compiled.walk.rows, evaluator, codes)
            if found is None:
                return None
            return Relation(compiled.schema, SortedRows(found[0]), evaluator.symbols), found[1]

    def _answer(
        self, compiled: Compiled, given: Mapping[str, Any], timeout: float | None
    ) -> tuple[Relation, Evaluation]:
        """The rows of a query, however many."""
        with self._lock:
            compiled = self._now(compiled)
            schema = compiled.schema
            limits = self._prepared(compiled.clause, timeout)
            chunks: list[Any] = []
            with self._progress.step("evaluating"):
                rows, order = self._giving(compiled, given).rows, compiled.order
                done = [self._guarded(rows, case, limits, chunks.append, order=order) for case in compiled.cases]
            holder = self._new(schema)
            version = self._guarded(holder.assemble, chunks, in_order=len(done) == 1 and done[0].sorted)
            return Relation(schema, version, self._evaluator.symbols), done[0]

    def _describe(self, compiled: Compiled, given: Mapping[str, Any]) -> Evaluation:
        with self._lock:
            compiled = self._now(compiled)
            self._refresh(compiled.clause.reads, None)
            describe = self._giving(compiled, given).describe
            described: Evaluation = self._guarded(describe, compiled.cases[0], order=compiled.order)
            return described

    def _guarded(self, action: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call `action`; running out of memory becomes an error that says so, and what a fork has taken another."""
        try:
            return action(*args, **options)
        except ArenaFullError as full:
            raise out_of_memory(full) from None
        except LostLockError as lost:
            raise ForkError(lost.what) from None


def _chosen(order: tuple[str, ...] | list[str] | None) -> tuple[str, ...] | None:
    """A key order that was asked for."""
    if order is None:
        return None
    return arguments.names("order", order, 'give the variables of the query, as in `order=("y", "z")`')


def find(name: str, named: Mapping[str, Named]) -> Named:
    """What `named` holds for relation `name`."""
    try:
        return named[name]
    except (KeyError, TypeError):  # what cannot be hashed is no name either
        raise unknown(name, named) from None
