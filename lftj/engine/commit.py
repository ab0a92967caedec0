"""A commit: the state after a transaction, computed beside the state before it, and the change of every relation.

    batches      the facts of the next version (batch.py)                      what really changed, by relation
    before       stale heads that the transaction concerns are evaluated, so that their change is exact
    heads        bottom up: a head is derived if what it reads changed, its facts or its rules
    keys         what is inserted into functional predicates is looked up by its key (functional.py)

Nothing of it is visible before `Transaction` puts `state` in the place of the last one; a commit that fails, or is
dropped, is forgotten with everything it built. A head that could not be computed before the transaction (a division by
zero, say) must not keep the transaction from repairing that: it stays stale, and its change is in `unknown`.

At `_derive` a head's new content is made. What is at hand there: `before` and `staged.state`, the relations before
and after with all their key orders (`StoredRelation.order`), and the changes of everything below (`changes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from lftj.engine.batch import Batch, applied
from lftj.engine.change import INSERTED, Change
from lftj.engine.derive import refresh
from lftj.engine.evaluate import Evaluator
from lftj.engine.functional import check_content, check_facts
from lftj.engine.headtrace import StagedTrace, trace_change, whole_change
from lftj.engine.refused import Refused, alike, groups_of, refused_in, refused_together
from lftj.engine.state import State
from lftj.engine.stored import Built, StoredRelation
from lftj.engine.strata import Strata
from lftj.engine.strategy import Derived, RuleWork, derive_head
from lftj.engine.told import Causes, Told
from lftj.engine.trace import TraceChange
from lftj.engine.tracelayout import Order
from lftj.errors import CountRangeError, EvaluationError
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.rounds.strategy import follow
from lftj.rounds.tally import Tallies
from lftj.values.codes import Schema
from scantree.version import Version

Limit = Callable[[str], Limits]
NO_STATE = State()


class Commit:
    """The state after `batches` and a change of the rules, computed by `run`.

    `evaluator` holds the state before. `program`: a state with the strata (and new, empty relations) to be, None if the
    rules do not change; `heads`: those whose rules do. `limits` is asked once per evaluated head.

    After `run`: `state`, `changes` (those that are not empty), `unknown`, `told` (of each derived head) and `work`
    (what it took, by rule).
    """

    __slots__ = (
        "_batches",
        "_built",
        "_evaluator",
        "_heads",
        "_limits",
        "_orders",
        "_program",
        "_refusing",
        "_ruled",
        "_traced",
        "base",
        "before",
        "changes",
        "ran",
        "seconds",
        "staged",
        "state",
        "told",
        "traces",
        "unknown",
        "untraced",
        "work",
    )

    def __init__(
        self,
        evaluator: Evaluator,
        batches: Mapping[str, Sequence[Batch]],
        program: State | None,
        heads: frozenset[str],
        limits: Limit,
    ) -> None:
        self._evaluator, self._batches, self._program = evaluator, batches, program
        self._limits = limits
        # What is kept of a head (its content's form, plans, traces) belongs to how it is derived: by which rules, and
        # by rounds or not.
        moved = frozenset() if program is None else program.strata.moved_since(evaluator.state.strata)
        self._ruled, self._heads = heads, heads | moved
        self.base = self.before = self.state = evaluator.state
        self.staged = evaluator
        self.changes: dict[str, Change] = {}
        self.unknown: dict[str, EvaluationError] = {}
        self.told: dict[str, Told] = {}
        self.work: dict[str, tuple[list[Clause], list[RuleWork]]] = {}
        self.ran: dict[str, Tallies] = {}
        self._built: list[tuple[StoredRelation, set[Built]]] = []
        self.traces = evaluator.traces
        self._traced: list[StagedTrace] = []
        self.untraced: set[str] = set()
        self._orders: dict[Order, TraceChange] = {}
        # The heads of which other rows are refused than before.
        self._refusing: set[str] = set()
        self.seconds = 0.0

    def run(self) -> None:
        """Compute everything; nothing that others see changes."""
        started = time.perf_counter()
        base, program = self.base, self._program
        relations = base.relations if program is None else program.relations
        facts: dict[str, Version] = {}
        touched: dict[str, Change] = {}
        for name, batches in self._batches.items():
            relation = (base.relations if name in base.relations else relations)[name]
            new, change = applied(relation.facts, batches)
            if new is not relation.facts:
                if relation.schema.functional:
                    check_facts(self._evaluator, relation.schema, new, change.of_kind(INSERTED))
                facts[name], touched[name] = new, change
        strata = base.strata if program is None else program.strata
        concerned = strata.above((*touched, *self._heads))
        if concerned or program is not None:
            self._derive_all(facts, touched, strata, concerned)
        elif touched:
            after = base.relations.copy()
            for name, new in facts.items():
                after[name] = after[name].successor(new, new, touched[name])
            self.state = State(
                after,
                strata,
                base.stale,
                base.evaluations,
                base.key_orders,
                base.directives,
                base.maintain,
                base.granularity,
                base.stopped,
                base.refused,
            )
            self.changes = touched
        self.seconds = time.perf_counter() - started

    def discard(self) -> None:
        """Forget what was computed, and the key orders and scans that were built for it."""
        for relation, before in self._built:
            for built in relation.built - before:
                relation.forget(built)
        for staged in self._traced:
            staged.discard()
        self._built, self._traced, self._orders = [], [], {}
        self.before = self.state = self.base
        self.staged = self._evaluator
        self.changes = {}

    def let_go(self) -> None:
        """After the commit was published: its traces hold; keep the changes, and no state."""
        if self._heads:
            self.traces.keep(set(self.state.strata.order) - self._heads)
        for head in self.untraced:
            self.traces.heads.pop(head, None)
        for staged in self._traced:
            self.traces.heads[staged.head] = staged.adopt()
        self.traces.told.update(self.told)
        self.traces.ran.update(self.ran)
        self._traced, self._orders = [], {}
        self._built, self._batches, self._program = [], {}, None
        self.base = self.before = self.state = NO_STATE
        self.staged = self._evaluator

    def fresh(self) -> dict[str, Schema]:
        """The schemas of relations that only the transaction's program has."""
        relations = {} if self._program is None else self._program.relations
        return {name: r.schema for name, r in relations.items() if name not in self._evaluator.state.relations}

    def _derive_all(
        self, facts: dict[str, Version], touched: dict[str, Change], strata: Strata, concerned: frozenset[str]
    ) -> None:
        base, program = self.base, self._program
        self._built = [(relation, relation.built) for relation in base.relations.values()]
        self.staged = staged = self._evaluator.over(base)
        failed: dict[str, EvaluationError] = {}
        if base.stale:
            refresh(staged, strata.below(concerned) | self._heads, self._limits, failed, again=False)
        self.before = before = staged.state
        relations, evaluations, refused = dict(before.relations), dict(before.evaluations), dict(before.refused)
        stale = set(before.stale)
        if program is not None:
            relations = {n: relations.get(n, r) for n, r in program.relations.items()}
            kept = set(strata.clauses)
            evaluations = {c: e for c, e in evaluations.items() if c in kept and c.head not in self._heads}
            stale = {head for head in stale if strata.of(head)}
            refused = {head: rows for head, rows in refused.items() if strata.of(head)}
        for name in {**facts, **dict.fromkeys(self._heads)}:
            relation = relations[name]
            new = facts.get(name, relation.facts)
            if strata.of(name):
                relations[name] = relation.successor(relation.content, new)
                continue
            if name in failed:
                self.unknown[name] = failed[name]
            change = Change.between(relation.content, new) if base.strata.of(name) else touched.get(name)
            relations[name] = relation.successor(new, new, change)
            if name not in failed and change is not None and len(change.kinds):
                self.changes[name] = change
        info = program or base
        staged.state = State(
            relations,
            strata,
            frozenset(stale),
            evaluations,
            info.key_orders,
            info.directives,
            info.maintain,
            info.granularity,
            base.not_stopped_in(concerned),
            refused,
        )
        finished: set[str] = set()
        for head in strata.order:
            if head not in concerned or head in finished:
                continue
            if members := staged.state.together(head):
                finished |= set(members)
                self._component(members, failed, stale, facts)
                continue
            reads = strata.reads(head)
            blocked = [name for name in (head, *reads) if name in failed and name in stale]
            if blocked:
                self.unknown[head] = failed[head] = failed[blocked[0]]
                stale.add(head)
                continue
            causes = self._causes(head, reads, facts)
            if causes is None:
                if not self._refusing.isdisjoint(reads):
                    self._refuse(head, groups_of(refused.get(head, ())), self._limits(head))
                continue
            started = time.perf_counter()
            limits = self._limits(head)
            limits.look(0)
            try:
                derived = self._derive(head, limits)
            except CountRangeError as error:
                # The counts themselves are exact; only who reads them as numbers is told.
                self.unknown[head] = failed[head] = error
                stale.add(head)
                continue
            content, change, done, strategy, reason, steps, removed, added, traced, work, own = derived
            if traced is not None:
                self._traced.append(traced)
            self._refuse(head, own, limits)
            if relations[head].schema.functional:
                check_content(staged, head, content, change.of_kind(INSERTED), limits)
            relations[head] = relations[head].successor(content, change=change)
            evaluations.update(done)
            if len(change.kinds):
                self.changes[head] = change
            self.work[head] = strata.of(head), work
            seconds = time.perf_counter() - started
            self.told[head] = Told(strategy, causes, reason, steps, removed, added, seconds)
        if stale != staged.state.stale:
            staged.state = staged.state._replace(stale=frozenset(stale))
        self.state = staged.state

    def _component(
        self, heads: tuple[str, ...], failed: dict[str, EvaluationError], stale: set[str], facts: Mapping[str, Version]
    ) -> None:
        """Derive heads together, with rounds."""
        staged = self.staged
        strata, relations = staged.state.strata, staged.state.relations
        reads = strata.reads(heads[0])
        if len(heads) > 1:
            reads = {name: None for head in heads for name in strata.reads(head)}
        blocked = [name for name in (*heads, *reads) if name in failed and name in stale] if failed else []
        if blocked:
            for head in heads:
                self.unknown[head] = failed[head] = failed[blocked[0]]
                stale.add(head)
            return
        found = [cause for head in heads if (cause := self._causes(head, strata.reads(head), facts))]
        if not found:
            if not self._refusing.isdisjoint(reads):
                self._refuse_together(heads, relations, self._limits(heads[0]))
            return
        started = time.perf_counter()
        limits = self._limits(heads[0])
        limits.look(0)
        self.untraced.update(heads)
        derived = follow(self, heads, limits)
        if staged.state.refused:
            self._refuse_together(heads, {**relations, **derived.relations}, limits)
        staged.state.evaluations.update(derived.evaluations)
        for head in heads:
            change = derived.changes[head]
            if relations[head].schema.functional:
                check_content(staged, head, derived.relations[head].content, change.of_kind(INSERTED), limits)
            relations[head] = derived.relations[head]
            if len(change.kinds):
                self.changes[head] = change
            self.work[head] = strata.of(head), []
            self.ran[head] = derived.tallies
            # What they took together is told of the first.
            steps, seconds = (derived.steps, time.perf_counter() - started) if head == heads[0] else (0, 0.0)
            self.told[head] = Told(derived.strategy, found[0], derived.why, steps, 0, 0, seconds, derived.more)

    def _refuse(self, head: str, own: tuple[Refused, ...], limits: Limits) -> None:
        """Look at what is refused in a head that was derived, or reads what is refused now."""
        self._now_refused(head, refused_in(self.staged, head, own, limits))

    def _refuse_together(self, heads: tuple[str, ...], relations: Mapping[str, StoredRelation], limits: Limits) -> None:
        found = refused_together(self.staged, heads, relations, limits)
        for head in heads:
            self._now_refused(head, found.get(head, ()))

    def _now_refused(self, head: str, found: tuple[Refused, ...]) -> None:
        refused = self.staged.state.refused
        if found or head in refused:
            if not alike(found, refused.get(head, ())):
                self._refusing.add(head)
            refused.pop(head, None)
            if found:
                refused[head] = found

    @property
    def new_heads(self) -> frozenset[str]:
        """The heads that are derived otherwise than before: by other rules, or no longer or newly with others."""
        return self._heads

    def _causes(self, head: str, reads: Mapping[str, None], facts: Mapping[str, Version]) -> Causes | None:
        """Why `head` has to be derived; None if nothing that concerns it changed."""
        names = [name for name in reads if name in self.changes]
        rules, moved, own = head in self._ruled, head in self._heads, head in facts
        return Causes(rules, moved, own, names) if names or moved or own else None

    def _derive(self, head: str, limits: Limits) -> Derived:
        """The new content of `head`, by the strategy that suits it."""
        return derive_head(self, head, limits)

    def trace_change(self, order: Order, *, whole: bool = False) -> TraceChange:
        """The change of a relation in a key order, with its tree surgeries; `whole`: of whole rows, in their order."""
        if whole:
            return whole_change(self.changes[order[0]], order[1])
        if order not in self._orders:
            name, columns = order
            old, new = (state.relations[name].order(columns) for state in (self.before, self.staged.state))
            self._orders[order] = trace_change(self.changes[name], old, new, columns)
        return self._orders[order]
