"""Evaluating one clause: plan it on the data at hand, lower the plan, run the walk, collect its rows.

`Evaluator` holds what all clauses of a database share (relations, symbols). A clause that computes texts is evaluated
in two (text_steps.py), the rows between them in a relation that lives as long as the evaluation. Every evaluation
leaves an `Evaluation` behind: the plan, what the walk counted, the seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from lftj.evaluate.overdue import finish
from lftj.evaluate.text_steps import step
from lftj.evaluate.undefined_terms import look_for_error
from lftj.join import join_state as cells
from lftj.join import triejoin
from lftj.join.ranges import CutRun
from lftj.join.run import Counters, Limits, Run
from lftj.language.clause import Clause, Parameter, Var
from lftj.plan.body import Body, body_of
from lftj.plan.cuts import cuts_of
from lftj.plan.joinplan import Abandoned, JoinPlan, plan_join
from lftj.plan.keyorder import MANY, Choice, OrderSearch
from lftj.plan.lowering import Encode, lower
from lftj.plan.matches import NumberBound
from lftj.plan.moves import neighbours, order_of
from lftj.plan.sampling import WORTHWHILE, best_of
from lftj.plan.starts import grown_orders, varied
from lftj.plan.trials import LAST, TRIED, Trials
from lftj.program.components import ComponentRounds
from lftj.program.evaluation import Evaluation
from lftj.program.state import State
from lftj.program.text_split import TextSplit, split_text
from lftj.store.stored import StoredRelation
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary
from scantree.memory import Arena
from scantree.sort import sort_chunks

if TYPE_CHECKING:
    from lftj.evaluate.one_pass import OnePass

Rows = npt.NDArray[np.int64]
Kept = TypeVar("Kept")
T = TypeVar("T")

KEPT_PLANS = 1024
# A relation that has so many rows more or less than when a plan was made is as it was then, however small it is.
SMALL = 16


def about_as_many(then: int, now: int) -> bool:
    """Whether a relation that had `then` rows when a plan was made neither grew nor shrank by more than half since."""
    return abs(now - then) <= max(SMALL, then // 2)


@dataclass(slots=True)
class Evaluator:
    """Evaluates clauses over the relations of `state`; putting another state there is how changes are published.

    `pilot_from`: estimated steps from which plans are tried before one is chosen (sampling.py). `columns_from`: rows of
    a relation from which its columns are read (by_columns.py). `trace_room`: records a trace's buffers hold. Tests
    force these tiny. `rounds`: what is kept of recursive components. `circuits`: those that are attached, with what is
    kept of them, by the mark of their clauses (lftj/streams/attached.py). `given`: the codes of a query's parameters;
    plans are of queries with about such values. `one_pass`: the aggregates that are about to be evaluated.
    """

    arena: Arena
    symbols: SymbolTable
    state: State
    page_rows: int = 256
    dir_rows: int = 64
    buffer_rows: int = 1 << 16
    pilot_from: float = WORTHWHILE
    columns_from: int = 1 << 13
    trace_room: int | None = None
    rounds: ComponentRounds = field(default_factory=ComponentRounds)
    circuits: dict[str, Any] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    one_pass: OnePass | None = None
    _plans: dict[tuple[Any, ...], tuple[list[int], list[tuple[int, ...]], Any]] = field(default_factory=dict)

    @property
    def relations(self) -> dict[str, StoredRelation]:
        """The relations of the present state."""
        return self.state.relations

    def over(self, state: State, *, apart: bool = False) -> Evaluator:
        """An evaluator over another state. `apart`: for another thread, with plans of its own."""
        return Evaluator(
            self.arena,
            self.symbols,
            state,
            self.page_rows,
            self.dir_rows,
            self.buffer_rows,
            self.pilot_from,
            self.columns_from,
            self.trace_room,
            self.rounds,
            self.circuits,
            self.given,
            None if apart else self.one_pass,
            {} if apart else self._plans,
        )

    def passes(self, head: str) -> bool:
        """Whether a head goes when the others that are evaluated with it are: only these read it."""
        return self.one_pass is not None and head in self.one_pass.below

    def giving(self, codes: Mapping[str, int]) -> Evaluator:
        """The same evaluator for a query whose parameters have these codes."""
        return replace(self, given=codes) if codes else self

    # -- plans --------------------------------------------------------------------------------------------------------

    def plan(
        self,
        clause: Clause,
        *,
        counting: bool = False,
        order: tuple[str, ...] | None = None,
        also: Mapping[str, StoredRelation] | None = None,
        limits: Limits | None = None,
        apart: bool = False,
        without: frozenset[str] = frozenset(),
        abandoned: tuple[Abandoned, ...] = (),
    ) -> tuple[Body, JoinPlan]:
        """The plan for a clause without text terms on data of about this size. Pilot runs keep to `limits`.

        `apart`: bindings are told apart (`body_of`) · `without`: variables that are left out (`Body.without`) ·
        `abandoned`: orders that took too long (overdue.py); whatever was planned for the clause is planned anew.
        """
        relations = {**self.relations, **(also or {})}
        keys = {atom.predicate: relations[atom.predicate].key for atom in clause.atoms}
        body = body_of(clause, apart=apart, keys=keys).without(without)
        forced = order if order is not None else self.state.key_orders.get(clause.rule)

        def made() -> JoinPlan:
            statistics = {atom.predicate: relations[atom.predicate].statistics for atom in (*body.atoms, *body.negated)}
            wanted = None if forced is None else tuple(v for v in forced if v in body.variables)
            search = OrderSearch(body, statistics, counting, given=self.given)
            walked = {late.order: late.steps for late in abandoned}
            read = {atom.predicate: relations[atom.predicate] for atom in (*body.atoms, *body.negated, *body.looked)}
            at_hand = (read, self._encode, self.symbols.ranks, limits or Limits())

            def planned(choice: Choice) -> JoinPlan:
                return plan_join(body, choice, relations, counting=counting)

            @cache
            def others() -> list[Choice]:
                return [*varied(search, ranked), *(() if few else grown_orders(search))]

            ranked = choices = search.ranked() if wanted is None else [search.forced(wanted)]
            # Of few variables nearly all orders are ranked, and of them large joins are tried on samples at once.
            few = len(search.names) <= MANY
            large = few and choices[0].cost >= self.pilot_from
            last = LAST >> 2 if few and choices[0].cost >= LAST else LAST
            plan, ended = planned(choices[0]), False
            if wanted is None and (abandoned or (len(search.names) >= TRIED and not large)):
                plan, ended = Trials(*at_hand).best_of(plan, others, planned, partial(neighbours, search), last)
                if not few or choices[0].cost < LAST:
                    walked.setdefault(plan.order, LAST)
                if not ended:
                    choices = [*filter(None, [search.along(order_of(search, plan))]), *others()]
            if not ended:
                plan = best_of(choices, planned, *at_hand, worthwhile=self.pilot_from, walked=walked)
            if abandoned and plan.order not in (late.order for late in abandoned):
                plan = replace(plan, abandoned=abandoned)
            return plan

        if abandoned:
            for key in [key for key in self._plans if key[0] == clause]:
                del self._plans[key]
        key = (clause, counting, apart, without, forced, *self._parts(body, relations))
        return body, self.kept(key, clause, relations, made)

    def _parts(self, body: Body, relations: Mapping[str, StoredRelation]) -> Iterator[int]:
        """About how many rows meet each bound that a parameter gives, as a power of two of a part of all.

        What is planned for few of them is not for many.
        """
        for condition in body.conditions if self.given else ():
            bound = NumberBound.of(condition.compare, self.given)
            atom = None if bound is None else next((a for a in body.atoms if bound.variable in a.columns), None)
            if bound is not None and atom is not None:
                statistics = {atom.predicate: relations[atom.predicate].statistics}
                yield math.frexp(bound.part(atom, statistics))[1]

    def kept(
        self, key: tuple[Any, ...], clause: Clause, relations: Mapping[str, StoredRelation], make: Callable[[], Kept]
    ) -> Kept:
        """What `make` plans for `clause` over `relations`, or did when these had about as many rows (`about_as_many`).

        `key`: what is planned, and for what. Answers do not depend on the rows that a plan is made for, so one may be a
        little out of date: if it went with every change of a relation, every small commit would plan again what it
        evaluates. But key orders may rely on primary keys, of which a table of the same name may have others.
        """
        counts = [len(relations[name]) for name in clause.reads]
        keys = [relations[name].key for name in clause.reads]
        known = self._plans.get(key)
        if known is not None and known[1] == keys and all(map(about_as_many, known[0], counts)):
            found: Kept = known[2]
            return found
        plan = make()
        while len(self._plans) >= KEPT_PLANS:
            del self._plans[next(iter(self._plans))]
        self._plans[key] = counts, keys, plan
        return plan

    def describe(self, clause: Clause, *, order: tuple[str, ...] | None = None) -> Evaluation:
        """The plan of a clause, without running it.

        Of a clause that computes texts only the first part can be planned ahead. That of a threshold says what it
        reads, and not what its head is made of: nothing walks it.
        """
        if clause.threshold is not None:
            atoms = tuple(
                replace(atom, args=tuple(arg and Var(f"_{n}.{i}", arg.type) for i, arg in enumerate(atom.args)))
                for n, atom in enumerate(clause.atoms)
            )
            reads = replace(clause, head_args=(), atoms=atoms, compares=(), aggregate=None, threshold=None)
            return Evaluation(clause, self.plan(reads)[1])
        split = split_text(clause)
        if split is not None:
            return Evaluation(clause, self.plan(split.inner, order=order)[1], split=split)
        return Evaluation(clause, self.plan(clause, order=order)[1])

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _run(
        self, clause: Clause, body: Body, plan: JoinPlan, limits: Limits, also: Mapping[str, StoredRelation]
    ) -> Run | None:
        """The walk for `plan`, ready to start; None if an atom without variables already fails."""
        relations = {**self.relations, **also}
        if any(len(relations[name]) == 0 for name in plan.guards) or any(len(relations[name]) for name in plan.voids):
            return None
        versions = {}
        for node in plan.nodes:
            versions[node.predicate, node.key_order] = relations[node.predicate].order(node.key_order)
            limits.look(0)
        lowered = lower(plan, versions, self._encode, np.zeros(1, np.int64))
        walk = lowered.walk._replace(ranks=self.symbols.ranks()) if lowered.ranked else lowered.walk

        def where(regs: Rows) -> str:
            # Registers of deeper depths, and of blocks counted before, hold values of other bindings.
            at = int(walk.control[cells.DEPTH]) - int(walk.control[cells.ENTER] == triejoin.OPENING)
            depths = plan.above(at)
            bound = [
                f"{d.variable} = {self.decode(int(regs[i]), body.variables[d.variable])!r}"
                for i, d in enumerate(plan.depths)
                if i in depths and d.variable in body.variables and d.variable not in body.shown
            ]
            return f"{clause.span}: in `{clause.text}`" + (f" with {', '.join(bound)}" if bound else "")

        crew = self.arena.crew
        cuts = None if crew is None or plan.folded is not None else cuts_of(plan, versions, crew.threads)
        run: Run
        if crew is None or cuts is None:
            run = Run(self.arena.space.mem, walk, lowered.prelude, limits, where, buffer_rows=self.buffer_rows)
        else:
            run = CutRun(self.arena.space.mem, walk, lowered.prelude, limits, where, buffer_rows=self.buffer_rows)
            run.cut(crew, cuts)
        run.keeps = (lowered, tuple(versions.values()))
        return run

    def _finish(
        self,
        clause: Clause,
        body: Body,
        plan: JoinPlan,
        walk: Callable[[Run], T],
        limits: Limits,
        *,
        counting: bool = False,
        also: Mapping[str, StoredRelation] | None = None,
    ) -> tuple[JoinPlan, Run | None, T | None]:
        """What `walk` makes of the walk for `plan`, or for a better one: see overdue.py."""

        def begin(plan: JoinPlan) -> Run | None:
            return self._run(clause, body, plan, limits, also or {})

        return finish(partial(self.plan, clause, counting=counting, also=also, limits=limits), plan, begin, walk)

    @property
    def _encode(self) -> Encode:
        # Bound to the symbols only: a trace keeps it, and must not keep the state it was recorded in.
        return partial(_code, self.symbols, self.given)

    def encode(self, value: object, type: str) -> int:
        """The code of a constant."""
        return _code(self.symbols, {}, value, type)

    def decode(self, code: int, type: str) -> Any:
        """The value of a code; None for a code of no symbol."""
        if in_dictionary(type) and not 0 <= code < len(self.symbols):
            return None
        return self.symbols.value(code, type)

    def count(self, clause: Clause, limits: Limits, *, order: tuple[str, ...] | None = None) -> tuple[int, Evaluation]:
        """Distinct bindings of the clause's head. Nothing is materialised where the head holds all variables."""
        start = time.perf_counter()
        if split_text(clause) is None:
            n = 0
            body, plan = self.plan(clause, counting=True, order=order, limits=limits)
            whole = all(d.definition is not None or d.variable in body.head_variables for d in plan.depths)
            if whole:
                plan, run, found = self._finish(clause, body, plan, Run.count, limits, counting=True)
                n = found or 0
            else:
                body, plan = self.plan(clause, order=order, limits=limits)
                run = None
                if plan.in_order:

                    def add(chunk: Rows) -> None:
                        nonlocal n
                        n += chunk.shape[1]

                    plan, run, _ = self._finish(clause, body, plan, lambda run: run.give(add), limits)
            # An order that had to take the place of another may meet a head more than once.
            if whole or plan.in_order:
                if run is not None and run.saw_undefined:
                    look_for_error(self, clause, limits)
                return n, Evaluation(clause, plan, run.counters if run else Counters(), time.perf_counter() - start)
        collected: list[Rows] = []
        evaluation = self.rows(clause, limits, collected.append, order=order)
        return self.distinct(collected, len(clause.head_args))[1], evaluation

    def distinct(self, chunks: list[Rows], arity: int) -> tuple[Rows, int]:
        """Sorted distinct rows of chunks int64[arity, n], a list that may be emptied: (rows, how many)."""
        if not chunks or arity == 0:
            n = min(1, sum(chunk.shape[1] for chunk in chunks))
            return np.empty((arity, n), np.int64), n
        rows = sort_chunks(chunks)
        return rows, rows.shape[1]

    def rows(
        self,
        clause: Clause,
        limits: Limits,
        emit: Callable[[Rows], None],
        *,
        order: tuple[str, ...] | None = None,
        also: Mapping[str, StoredRelation] | None = None,
    ) -> Evaluation:
        """Give the clause's rows to `emit`, as int64[arity, n] arrays; with repeats unless the plan says `in_order`.

        Raises `EvaluationError` if a row is in error (undefined_terms.py); rows may have been given by then.
        """
        evaluation, saw_undefined = self.walk(clause, limits, emit, order=order, also=also)
        if saw_undefined:
            look_for_error(self, clause, limits, also)
        return evaluation

    def walk(
        self,
        clause: Clause,
        limits: Limits,
        emit: Callable[[Rows], None],
        *,
        order: tuple[str, ...] | None = None,
        also: Mapping[str, StoredRelation] | None = None,
    ) -> tuple[Evaluation, bool]:
        """As `rows`, but a term without a value is only told of: (evaluation, whether there was one)."""
        start = time.perf_counter()
        split = split_text(clause)
        if split is not None:
            return self._walk_in_two(clause, split, limits, emit, also or {}, order)
        body, plan = self.plan(clause, order=order, also=also, limits=limits)
        plan, run, _ = self._finish(clause, body, plan, lambda run: run.give(emit), limits, also=also)
        if run is None:
            return Evaluation(clause, plan, Counters(), time.perf_counter() - start), False
        return Evaluation(clause, plan, run.counters, time.perf_counter() - start), run.saw_undefined

    def _walk_in_two(
        self,
        clause: Clause,
        split: TextSplit,
        limits: Limits,
        emit: Callable[[Rows], None],
        also: Mapping[str, StoredRelation],
        order: tuple[str, ...] | None,
    ) -> tuple[Evaluation, bool]:
        start = time.perf_counter()
        chunks: list[Rows] = []
        inner, saw_undefined = self.walk(split.inner, limits, chunks.append, order=order, also=also)
        rows, count = self.distinct(chunks, len(split.inner.head_args))
        stepped = step(split, rows, count, self.symbols, self.given)
        between = StoredRelation(split.schema, self.arena, page_rows=self.page_rows, dir_rows=self.dir_rows)
        between = between.successor(between.build(stepped.rows, stepped.size))
        outer, more = self.walk(split.outer, limits, emit, order=order, also={**also, split.schema.name: between})
        evaluation = Evaluation(clause, outer.plan, outer.counters, time.perf_counter() - start, inner, split)
        return evaluation, saw_undefined or stepped.undefined or more


def _code(symbols: SymbolTable, given: Mapping[str, int], value: object, type: str) -> int:
    """The code of a constant, or of a parameter."""
    if isinstance(value, Parameter):
        return given[value.name]
    return symbols.intern_value(value, type)
