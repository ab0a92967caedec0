"""A commit: the state after a transaction, computed beside the state before it, and the change of every relation.

    facts       the batches of the transaction are applied to facts: what really changed, by relation
    before      stale heads that the transaction concerns are evaluated, so that their change is exact
    heads       bottom up, each head whose facts, rules or reads changed follows by the strategy that is chosen for it
                (choose.py), and is asked for undefined rows and key conflicts
    check       what must stay empty has no row (lftj/evaluate/empty_relations.py)
    publish     what strategies staged is adopted, and the next state takes the place of the last

Nothing of it is visible before `publish`; a commit that fails, or is discarded, leaves nothing behind. A head that
could not be computed before the transaction (a division by zero, say) must not keep the transaction from repairing
that: it stays stale, and its change is in `unknown`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from lftj.errors import CountRangeError, EvaluationError
from lftj.evaluate.empty_relations import check_constraints
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.key_conflicts import check_content, check_facts
from lftj.evaluate.one_pass import OnePass
from lftj.evaluate.undefined_groups import undefined_of, with_undefined
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.language.options import TRIGGERS
from lftj.maintain.alias import KeptAlias
from lftj.maintain.choose import follow, named
from lftj.maintain.recompute import ticking
from lftj.maintain.refresh import refresh
from lftj.maintain.report import Causes, HeadReport, RuleWork
from lftj.maintain.step import KeptHeads, Step
from lftj.maintain.strategy import Staged
from lftj.maintain.streams import Streams
from lftj.plan.join_stats import JoinStatsByJoin
from lftj.program.state import State
from lftj.program.strata import Heads, Strata
from lftj.program.undefined import alike, groups_of
from lftj.store.change import INSERTED, Batch, Change, applied
from lftj.store.stored import BULK_ROWS, StoredRelation
from lftj.triggers.derived_relations import NoEvents
from lftj.values.schema import Schema
from scantree.lagging import make_room
from scantree.version import Version

Limit = Callable[[str], Limits]
NO_STATE = State()


class Commit:
    """The state after `batches` and a change of the rules: computed by `run`, in force after `publish`.

    `evaluator` holds the state before. `program`: a state with the strata (and new, empty relations) to be, None if the
    rules do not change; `new_heads`: those whose rules do, and the commit adds those that enter or leave a recursion.
    `limits` is asked once per derived head, and raises when the time is up. `kept`: what is kept of heads from one
    commit to the next. `dropped`: relations that go, and of which nothing is told; one of them may be in `program`
    again, as another · `streams`: the events, where they come in an order (results/event_stream.py).

    After `run`: `state`, `changes` (those that are not empty), `fact_changes` (of facts alone), `unknown` (heads whose
    change is not known, and the error), `reports` (of each derived head), `work` (what it took, by rule) and
    `join_stats` (of recursive heads).
    """

    __slots__ = (
        "_adopted",
        "_batches",
        "_before",
        "_built",
        "_dropped",
        "_evaluator",
        "_failed",
        "_filled",
        "_kept",
        "_limits",
        "_new_heads",
        "_other_undefined",
        "_program",
        "_ruled",
        "_staged",
        "_stale",
        "_streams",
        "_ticking",
        "base",
        "changes",
        "fact_changes",
        "join_stats",
        "reports",
        "schemas",
        "seconds",
        "state",
        "unknown",
        "work",
    )

    def __init__(
        self,
        evaluator: Evaluator,
        batches: Mapping[str, Sequence[Batch]],
        program: State | None,
        new_heads: frozenset[str],
        limits: Limit,
        kept: KeptHeads,
        dropped: frozenset[str] = frozenset(),
        streams: Streams | None = None,
    ) -> None:
        self._evaluator, self._batches, self._program = evaluator, batches, program
        self._limits, self._kept, self._streams = limits, kept, streams
        # What is kept of a head (its content's form, plans, traces) belongs to how it is derived: by which rules, and
        # by rounds or not.
        moved = frozenset() if program is None else program.strata.moved_since(evaluator.state.strata)
        self._ruled, self._new_heads = new_heads, new_heads | moved
        self.base = self.state = self._before = evaluator.state
        self._dropped = dropped
        if dropped:
            self._before = self._without_dropped(self.base)
        self.changes: dict[str, Change] = {}
        self.fact_changes: dict[str, Change] = {}
        self.unknown: dict[str, EvaluationError] = {}
        # Of the relations that changed, and those that only the transaction's program has.
        self.schemas: dict[str, Schema] = {}
        self.reports: dict[str, HeadReport] = {}
        self.work: dict[str, tuple[Sequence[Clause], Sequence[RuleWork]]] = {}
        self.join_stats: dict[str, JoinStatsByJoin] = {}
        self.seconds = 0.0
        self._staged: list[tuple[Heads, Staged]] = []
        self._adopted: list[Heads] = []
        self._built: dict[str, tuple[StoredRelation, tuple[int, int]]] = {}
        self._failed: dict[str, EvaluationError] = {}
        self._filled: list[str] = []  # heads that were evaluated by maps, which hold for no state that others see yet
        self._stale: set[str] = set()
        # Heads that are derived in each commit, whatever it changes.
        self._ticking: list[str] = []
        # Heads of which other rows are undefined than before.
        self._other_undefined: set[str] = set()

    # -- the algorithm ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Compute everything; nothing that others see changes."""
        started = time.perf_counter()
        facts, changed = self._facts()
        self.fact_changes = changed
        strata = (self._program or self.base).strata
        if strata.marked:
            self._ticking = ticking(self._evaluator, self._before, strata.marked)
        streamed = () if self._streams is None else self._streams.logs
        if not facts and self._program is None and not self._ticking and not streamed:
            return
        concerned, derived = strata.affected[
            tuple(dict.fromkeys((*changed, *self._new_heads, *self._ticking, *streamed)))
        ]
        before = self._before
        if before.stale and (concerned or self._new_heads):
            before = self._refreshed(strata, concerned)
        self.state = self._with_facts(before, strata, concerned, facts, changed)
        if derived:
            rows, evaluator = 0, self._evaluator
            for change in self.changes.values():
                rows += len(change.kinds)
            if self._new_heads or rows >= BULK_ROWS:
                evaluator = self._evaluating(derived, loaded=rows >= BULK_ROWS)
            step = Step(before, self.state, evaluator, self.changes, self._new_heads, self._kept)
            step.fact_changes, step.streams = changed, self._streams
            for heads in derived:
                self._follow(step, heads, facts)
            self.state = step.state
        left = self.state.relations
        constrained = False
        for name in self.changes:
            if name in left:
                self.schemas[name] = schema = left[name].schema
                constrained = constrained or schema.constraint != ""
        if constrained:  # only one that has changed may have a row: most commits have none to look at
            check_constraints(self._evaluator.over(self.state), self.changes, self._limits)
        if self._streams is not None:
            lagging = [version for name in {**changed, **self.changes} for version in left[name].lagging()]
            make_room(self._evaluator.arena, lagging)
        if self._stale != self.state.stale:
            self.state = self.state._replace(stale=frozenset(self._stale))
        if self._program is not None:
            self.schemas |= {name: held.schema for name, held in left.items() if name not in self._before.relations}
        self.seconds = time.perf_counter() - started

    def publish(self) -> None:
        """Adopt what strategies staged, and put the next state in the place of the last.

        Interrupted before the last step, what was adopted belongs to contents that are in no state: `discard` has it
        forgotten, and the next commit that needs it makes it again.
        """
        kept = self._kept
        if self._new_heads or self._before is not self.base:
            kept.forget_all_but(set(self.state.strata.order) - self._new_heads)
        for heads, staged in self._staged:
            self._adopted.append(heads)
            for head in heads.names:
                kept.heads.pop(head, None)
            staged.adopt()
            if staged.kept is not None:
                kept.heads[heads.name] = staged.kept
        kept.reports.update(self.reports)
        kept.join_stats.update(self.join_stats)
        self._evaluator.state = self.state  # the one step that others can see

    def discard(self) -> None:
        """Forget what was computed, and the key orders and scans that were built for it."""
        for relation, built in self._built.values():
            relation.forget_since(built)
        for _, staged in self._staged:
            staged.discard()
        for heads in self._adopted:
            for head in heads.names:
                self._kept.heads.pop(head, None)
        for head in self._filled:
            self._kept.heads.pop(head, None)
        self.state = self.base
        self.changes = {}
        self._built, self._staged, self._adopted, self._filled = {}, [], [], []

    def finish(self) -> None:
        """After `publish`: keep the changes and the reports, and no state; nor circuits without outputs."""
        if self._program is not None and self._evaluator.circuits:
            marks = {clause.aggregate.op for clause in self.state.strata.marked if clause.aggregate is not None}
            circuits = self._evaluator.circuits  # snapshots may have the same
            self._evaluator.circuits = {mark: made for mark, made in circuits.items() if mark in marks}
        self.base = self.state = self._before = NO_STATE
        self._batches, self._program = {}, None
        self._built, self._staged, self._adopted = {}, [], []

    # -- facts --------------------------------------------------------------------------------------------------------

    def _facts(self) -> tuple[dict[str, Version], dict[str, Change]]:
        """(the next facts, and how they differ) of relations whose facts change."""
        base, program = self._before.relations, self._program
        facts: dict[str, Version] = {}
        changed: dict[str, Change] = {}
        for name, batches in self._batches.items():
            relation = base[name] if program is None or name in base else program.relations[name]
            new, change = applied(relation.facts, batches)
            if new is not relation.facts:
                # Where rows only go, no two are under one key that were not before.
                if relation.schema.keyed and (inserted := change.of_kind(INSERTED)).shape[1]:
                    self._note_built((name,) if relation.schema.key else ())
                    check_facts(self._evaluator, relation, new, inserted)
                facts[name], changed[name] = new, change
        return facts, changed

    def _refreshed(self, strata: Strata, concerned: frozenset[str]) -> State:
        """The state before, once the stale heads that the transaction concerns, and those below them, are evaluated."""
        self._note_built(self._before.relations)
        # Heads whose rules the transaction removed may read what it dropped then.
        staged = self._evaluator.over(self.base)
        names = strata.below(concerned) | self._new_heads
        kept = self._kept.heads.copy()
        try:
            refresh(staged, names, self._limits, self._failed, again=False, kept=self._kept)
        finally:
            self._filled = [name for name, made in self._kept.heads.items() if kept.get(name) is not made]
        return self._without_dropped(staged.state)

    def _without_dropped(self, state: State) -> State:
        for name in self._dropped & state.relations.keys():
            state = state.without_relation(name)
        return state

    def _with_facts(
        self,
        before: State,
        strata: Strata,
        concerned: frozenset[str],
        facts: Mapping[str, Version],
        changed: Mapping[str, Change],
    ) -> State:
        """The state with the next facts and rules; contents of heads are those of before.

        Adds to `changes` those of relations that no rule derives (any more).
        """
        relations, evaluations, undefined = before.relations.copy(), before.evaluations, before.undefined
        self._stale = set(before.stale)
        program = self._program
        if program is not None:
            # The rows without null of a relation that was dropped and declared anew may have other columns.
            relations = {
                name: held if (held := relations.get(name)) is not None and held.schema == relation.schema else relation
                for name, relation in program.relations.items()
            }
            evaluations = evaluations.copy()  # a new dict would take the hash of every clause
            for clause in list(evaluations):
                if clause.head in self._new_heads or clause not in strata.of(clause.head):
                    del evaluations[clause]
            self._stale = {head for head in self._stale if head in strata.by_head}
            undefined = {head: rows for head, rows in undefined.items() if head in strata.by_head}
        for name in {**facts, **dict.fromkeys(self._new_heads)} if self._new_heads else facts:
            relation = relations[name]
            new = facts.get(name, relation.facts)
            if name in strata.by_head:
                relations[name] = relation.successor(relation.content, new)
                continue
            if name in self._failed:
                self.unknown[name] = self._failed[name]
            change = Change.between(relation.content, new) if name in before.strata.by_head else changed.get(name)
            relations[name] = relation.successor(new, new, change)
            if name not in self._failed and change is not None and len(change.kinds):
                self.changes[name] = change
        info = program or self.base
        return State(
            relations,
            strata,
            frozenset(self._stale),
            evaluations,
            info.key_orders,
            info.directives,
            info.maintain,
            info.granularity,
            self.base.not_stopped_in(concerned) if self.base.stopped else self.base.stopped,
            undefined,
            info.types,
        )

    def _evaluating(self, derived: Sequence[Heads], *, loaded: bool) -> Evaluator:
        """The evaluator, with what is evaluated whatever is kept: heads that are new, and all of them after a load."""
        new = self._new_heads
        together = OnePass(c for heads in derived if loaded or heads.name in new for c in heads.clauses)
        return replace(self._evaluator, one_pass=together)

    # -- heads --------------------------------------------------------------------------------------------------------

    def _follow(self, step: Step, heads: Heads, facts: Mapping[str, Version]) -> None:
        """Derive heads together if anything that concerns them changed, and look at what is undefined in them."""
        if self._failed and self._blocked(heads):
            return
        if self._shares(step, heads):
            return
        started = time.perf_counter()
        causes = self._causes(step, heads, facts)
        if causes is None:
            if not self._other_undefined.isdisjoint(heads.reads):
                self._look_for_undefined(step, heads, None, self._limits(heads.name))
            return
        self._note_built((*heads.reads, *heads.names))
        limits = self._limits(heads.name)
        try:
            staged = follow(step, heads, limits)
        except CountRangeError as error:
            # The counts themselves are exact; the error is for those who read them as numbers.
            self._fail(heads, error)
            return
        self._staged.append((heads, staged))
        if staged.undefined or step.state.undefined:
            self._look_for_undefined(step, heads, staged, limits)
        for head, relation in staged.relations.items():
            if relation.schema.key or (relation.schema.functional and (not heads.grouped or len(relation.facts))):
                check_content(step.evaluator, head, relation, staged.changes[head], limits)
        if self._streams is not None:
            self._streams.moved(head for head, change in staged.changes.items() if len(change.kinds))
        step.after.update(staged.relations)
        if staged.evaluations:
            step.state = step.state.with_evaluations(staged.evaluations)
        self._report(step, heads, staged, causes, time.perf_counter() - started)

    def _shares(self, step: Step, heads: Heads) -> bool:
        """A head that has the rows of another relation, as that of an aggregate, goes with it; whether it is one.

        Nothing is chosen, and what is kept of it stays as it is, so that there is nothing to adopt or to discard.
        """
        head = heads.name
        kept = step.kept.heads.get(head)
        if not isinstance(kept, KeptAlias) or self._program is not None or self._streams is not None:
            return False
        if step.state.undefined or not kept.holds_for(step, heads):
            return False
        schema, below = step.after[head].schema, step.after[kept.below].schema
        if schema.key or schema.constraint or schema.functional > below.functional:
            return False
        started = time.perf_counter()
        step.after[head], self.changes[head] = kept.shared(step, head)
        self.work[head] = heads.clauses, ()
        seconds = time.perf_counter() - started
        self.reports[head] = HeadReport(kept.strategy, kept.causes, kept.why, 0, 0, 0, seconds)
        return True

    def _blocked(self, heads: Heads) -> bool:
        """Whether heads wait for what could not be computed before the transaction either."""
        for name in (*heads.names, *heads.reads):
            if name in self._failed and name in self._stale:
                self._fail(heads, self._failed[name])
                return True
        return False

    def _fail(self, heads: Heads, error: EvaluationError) -> None:
        for head in heads.names:
            if self.state.relations[head].schema.constraint:
                raise error
            self.unknown[head] = self._failed[head] = error
            self._stale.add(head)

    def _causes(self, step: Step, heads: Heads, facts: Mapping[str, Version]) -> Causes | None:
        """Why heads have to be derived; None if nothing that concerns them changed."""
        names = list(filter(self.changes.__contains__, heads.reads))
        rules = moved = False
        if self._new_heads:
            rules, moved = not self._ruled.isdisjoint(heads.names), not self._new_heads.isdisjoint(heads.names)
        own = not facts.keys().isdisjoint(heads.names)
        ticks = heads.name in self._ticking or (self._streams is not None and self._streamed(step, heads))
        return Causes(rules, moved, own, names) if names or moved or own or ticks else None

    def _streamed(self, step: Step, heads: Heads) -> bool:
        """Whether triggers keep a head for which there are events, whatever they add up to."""
        assert self._streams is not None
        if named(TRIGGERS).fits(step, heads):
            return False
        by_head = step.state.strata.by_head
        try:
            logs = [self._streams.of(name, by_head, step.after) for name in heads.reads]
        except NoEvents:
            return True
        return any(log is not None and len(log.kinds) for log in logs)

    def _note_built(self, names: Iterable[str]) -> None:
        """Note how many key orders and scans relations have before this commit builds others."""
        before, noted = self._before.relations, self._built
        for name in names:
            if name not in noted and (relation := before.get(name)) is not None:
                noted[name] = relation, relation.built_so_far

    def _look_for_undefined(self, step: Step, heads: Heads, staged: Staged | None, limits: Limits) -> None:
        """Look at what is undefined in heads that were derived, or that read what is undefined now."""
        evaluator, before = step.evaluator, step.state.undefined
        if staged is None:
            found = undefined_of(evaluator, heads, {}, groups_of(before.get(heads.name, ())), limits)
        else:
            found = undefined_of(evaluator, heads, staged.relations, staged.undefined, limits)
        for head in heads.names:
            if not alike(found.get(head, ()), before.get(head, ())):
                self._other_undefined.add(head)
        after = with_undefined(before, heads.names, found)
        if after is not before:
            step.state = step.state._replace(undefined=after)

    def _report(self, step: Step, heads: Heads, staged: Staged, causes: Causes, seconds: float) -> None:
        steps, removed, added = staged.steps, staged.removed, staged.added
        clauses = step.state.strata.by_head
        for head in heads.names:
            change = staged.changes[head]
            if len(change.kinds):
                self.changes[head] = change
            self.work[head] = clauses[head], staged.work
            if staged.join_stats is not None:
                self.join_stats[head] = staged.join_stats
            self.reports[head] = HeadReport(
                staged.strategy, causes, staged.why, steps, removed, added, seconds, staged.more
            )
            # What they took together is said of the first.
            steps, removed, added, seconds = 0, 0, 0, 0.0
