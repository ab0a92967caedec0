"""Heads that are followed by the derivations of their rules: what goes and what comes, rule by rule.

Each rule has a trace (clause_trace.py, text_trace.py) or a delta (clause_delta.py), which gives the bindings that a
change takes away and brings. Where one rule derives each row in one way only (its head names all its variables) and
there are no facts, these are the head's change. Otherwise *support* counts them: a version of the head's rows with one
value, the number of bindings of all rules that derive the row. A row is in the head if its support is positive or it is
a fact. The bindings of an aggregate are folded into accumulators (accumulators.py).

What is kept belongs to the contents it was made over and maintained to, which it knows by identity: where others stand
in the state (after a load, say), it is outdated, and is made again when next needed.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lftj.evaluate import overdue
from lftj.evaluate.undefined_groups import undefined_groups_of
from lftj.evaluate.undefined_terms import look_for_error
from lftj.join.run import NO_END, Limits, Overdue
from lftj.language.clause import Clause, Var
from lftj.maintain.clause_delta import ClauseDelta, Followed
from lftj.maintain.clause_trace import ClauseTrace, Maintained
from lftj.maintain.cost import MAINTENANCE_STEP, MANY, SEEK, RebuildCost, following
from lftj.maintain.report import CostComparison, Reason, RuleWork, amount
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Declined, Staged
from lftj.maintain.text_trace import TextMaintained, TextTrace
from lftj.plan.body import body_of
from lftj.plan.joinplan import JoinPlan
from lftj.program.strata import Heads
from lftj.program.text_split import parts_of
from lftj.store.change import Change, change_of_rows
from lftj.store.stored import StoredRelation
from scantree.consolidate import count_in, counted
from scantree.memory import Arena
from scantree.version import Rows, Store, Version

if TYPE_CHECKING:
    from lftj.evaluate.accumulators import Accumulators

DECLARED = "its rules are declared so"


def derives_once(plan: JoinPlan) -> bool:
    """Whether a binding of the rule, up to its existential suffix, is known by the row it derives."""
    shown = {term.name for term in plan.head if isinstance(term, Var)}
    return all(depth.definition is not None or depth.variable in shown for depth in plan.depths[: plan.until])


def why_not_followed(heads: Heads) -> str:
    """Why the derivations of `heads` cannot be followed; empty if they can."""
    if heads.recursive or not heads.clauses:
        return "its rules are recursive" if heads.recursive else "no rule derives it"
    if heads.clauses[0].threshold is not None:
        return "running sums decide which rows it adds up"
    bodies = [body_of(part) for clause in heads.clauses for part in parts_of(clause)]
    if any(body.guards or body.voids for body in bodies):
        return "a rule asks whether a relation is empty"
    return ""


def kept_content(old: Version, new: Version, change: Change) -> Version:
    """The old content where the new one is equal; but one that was another relation's ends with that."""
    return new if len(change.kinds) or old.store is not new.store else old


def support_of(arena: Arena, arity: int, chunks: list[Rows], *, page_rows: int, dir_rows: int) -> Version:
    """The support of derived rows, given with all repeats in `chunks` int64[arity, n], a list that is emptied."""
    store = Store(arena, arity, 1, page_rows=page_rows, dir_rows=dir_rows)
    return store.assemble([counted(chunks or [np.empty((arity, 0), np.int64)])])


def support_store(relation: StoredRelation) -> Store:
    """A store for the support of a head."""
    store = relation.declared_store()
    page_rows, dir_rows = 1 << store.shape.page_bits, 1 << store.shape.dir_bits
    return Store(store.arena, relation.arity, 1, page_rows=page_rows, dir_rows=dir_rows)


def supported_change(
    support: Version, old: StoredRelation, facts: Version, fact_change: Change, erased: list[Rows], inserted: list[Rows]
) -> tuple[Version, Change]:
    """(the next support, the change of the head's content) when derivations go and come and facts change.

    `old`: the head before; `facts`: its facts after.
    """
    rows = np.ascontiguousarray(np.concatenate([*erased, *inserted, fact_change.rows], axis=1))
    weights = np.zeros(rows.shape[1], np.int64)
    gone = sum([part.shape[1] for part in erased])
    weights[:gone], weights[gone : rows.shape[1] - len(fact_change.kinds)] = -1, 1
    following, counted_rows, before = count_in(support, rows, weights)
    rows, after = counted_rows[:-1], counted_rows[-1]
    assert not len(after) or int(after.min()) >= 0, "a derivation went that was never counted"
    was, now = before > 0, after > 0
    if len(old.facts):
        was |= old.facts.contains(rows)
    if len(facts):
        now |= facts.contains(rows)
    flips = was != now
    return following, Change(rows.compress(flips, axis=1), np.where(now[flips], 1, -1).astype(np.int8))


@dataclass(slots=True)
class KeptDerivations:
    """The traces, or the deltas, of all clauses of one head, and its support.

    `steps`: what a changed row of each relation is expected to take, rule by rule · `support`: None if every row has
    one derivation and is no fact · `accumulators`: of an aggregate, in its place · `by_delta`: whether `traces` are
    deltas, which keep no records · `seen`: the contents that all of it holds for (None: for none) · `rebuild`: what
    evaluating took when that was last done · `cost_correction`: actual steps of the last change with many rows, divided
    by the expected ones; `at_first`: the same when there first was one.
    """

    clauses: tuple[Clause, ...]
    traces: list[ClauseTrace | TextTrace | ClauseDelta]
    steps: Sequence[Mapping[str, float]]
    support: Version | None
    seen: dict[str, weakref.ref[Version]] | None
    rebuild: RebuildCost
    accumulators: Accumulators | None = None
    cost_correction: float = 1.0
    at_first: float | None = None
    by_delta: bool = field(init=False)
    strategy: str = field(init=False)
    _names: set[str] = field(init=False)
    _moving: list[ClauseDelta] = field(init=False)

    def __post_init__(self) -> None:
        self.by_delta = any(isinstance(trace, ClauseDelta) for trace in self.traces)
        self.strategy = "delta" if self.by_delta else "trace"
        self._names = {name for clause in self.clauses for name in clause.reads}
        self._moving = [trace for trace in self.traces if isinstance(trace, ClauseDelta) and trace.moving]

    # -- what it holds for --------------------------------------------------------------------------------------------

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether this is of `heads`, over the contents before the step."""
        relations = step.before.relations
        if self.seen is None or self.clauses != heads.clauses or heads.name in step.new_heads:
            return False
        for name, ref in self.seen.items():
            if name not in relations or ref() is not relations[name].content:
                return False
        return self.support is not None or not len(relations[heads.name].facts)

    def hold_for(self, relations: Mapping[str, StoredRelation], head: str, content: Version) -> None:
        """It holds for the contents in `relations`, and `content` of the head, from now on."""
        seen = {name: weakref.ref(relations[name].content) for name in self._names}
        seen[head] = weakref.ref(content)
        self.seen = seen

    # -- what it costs ------------------------------------------------------------------------------------------------

    def changed(self, changes: Mapping[str, Change]) -> tuple[int, float]:
        """(changed rows that the rules have to look at, once per rule that reads them; the steps expected of them)."""
        found, steps = 0, 0.0
        for expected in self.steps:
            for name, of_row in expected.items():
                if name in changes:
                    rows = len(changes[name].kinds)
                    found += rows
                    steps += rows * of_row
        for delta in self._moving:
            steps -= delta.spared(changes)
        return found, steps

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """Following the changes of the step beside evaluating again; worth it where declared."""
        return Cost(DECLARED if self.strategy in step.asked(heads) else self.compare(step.changes, step.after))

    def compare(self, changes: Mapping[str, Change], relations: Mapping[str, StoredRelation]) -> CostComparison:
        """The estimated nanoseconds of following `changes`, and of evaluating over `relations` again."""
        found, steps = self.changed(changes)
        # The size of what is read matters for many changed rows only; few do not wait for it.
        read = sum([len(relations[name].content) for name in self._names]) if found > MANY else 0
        cost = following(found, steps, read, by_delta=self.by_delta)
        # Where changed rows are joined with fewer others than at first, so are all.
        thinned = self.cost_correction / (self.at_first or 1.0)
        again = self.rebuild.nanoseconds(len(relations[self.clauses[0].head].content), thinned)
        return CostComparison(found, cost, again)

    def learn(self, changes: Mapping[str, Change], steps: int) -> None:
        """Compare the steps that following `changes`, if they are many, took with those that were expected."""
        found, expected = self.changed(changes)
        if found >= MANY:
            self.cost_correction = steps / max(1.0, expected)
            self.at_first = self.at_first or self.cost_correction

    def memory(self) -> dict[str, int]:
        """Bytes of each sensitivity index (by atom and variable), and of the rest."""
        found: dict[str, int] = {}
        for trace in self.parts:
            for s in trace.indexes.packings:
                found[trace.site_name(s)] = found.get(trace.site_name(s), 0) + trace.indexes.memory(s)
        if not self.by_delta or self.support is not None:
            found["support and filters"] = self.support_bytes()
        if self.accumulators is not None:
            found["accumulators"] = self.accumulators.memory()
        between = sum(trace.memory() for trace in self.traces if isinstance(trace, TextTrace))
        return found | ({"between parts": between} if between else {})

    def support_bytes(self) -> int:
        """Bytes of support and branch filters."""
        filters = {f.page: f.memory() for trace in self.parts for f in trace.filters.values()}
        return sum(filters.values()) + (self.support.memory() if self.support is not None else 0)

    @property
    def parts(self) -> list[ClauseTrace]:
        """The traces of joins that those of the rules consist of."""
        return [part for trace in self.traces for part in trace.parts]

    # -- following a change -------------------------------------------------------------------------------------------

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> StagedDerivations:
        """Follow the changes of the step."""
        relation, head = step.after[heads.name], heads.name
        staged = StagedDerivations(
            self.strategy, why, {}, {}, kept=self, derivations=self, head=head, after=step.after, support=self.support
        )
        # The steps after which the head is rather evaluated: that would be done by then. What is declared is followed
        # however long it takes.
        most = NO_END
        if isinstance(why, CostComparison):
            most = max(overdue.FLOOR, int(why.anew / (SEEK if self.by_delta else MAINTENANCE_STEP)))
        try:
            erased, inserted = self._bindings(step, staged, limits, most)
            change = self._change(step, head, staged, erased, inserted)
            content = relation.content
            if len(change.kinds):
                content, _ = content.update(change.rows, change.kinds, in_order=True)
        except Overdue:
            staged.discard()
            rows, steps = self.changed(step.changes)
            estimated = f"{steps * self.cost_correction:,.0f} estimated for {amount(rows, 'changed row')}"
            what = "deltas were" if self.by_delta else "its trace was"
            raise Declined(f"{what} abandoned after {most:,} steps, {estimated}") from None
        except BaseException:
            staged.discard()
            raise
        if not isinstance(why, CostComparison) or why.rows >= MANY:
            self.learn(step.changes, staged.steps)
        staged.hold(content, change)
        if staged.accumulators is not None and staged.accumulators.without_result:
            staged.undefined = undefined_groups_of(self.clauses[0], staged.accumulators.without_result)
        return staged

    def _bindings(
        self, step: Step, staged: StagedDerivations, limits: Limits, most: int
    ) -> tuple[list[Rows], list[Rows]]:
        """The bindings int64[width, n] of all rules that go, and those that come.

        Raises `Overdue` if they take more steps than `most`.
        """
        erased: list[Rows] = []
        inserted: list[Rows] = []
        work = []
        for i, trace in enumerate(self.traces):
            changed = step.changes_in(trace.watched, trace.whole)
            if not changed:
                continue
            began = time.perf_counter()
            left = most if most == NO_END else max(1, most - staged.steps)
            if isinstance(trace, ClauseDelta):
                trace.most = left
            for part in trace.parts:
                part.patience = left
            old, new = step.versions(trace.orders)
            result = trace.maintain(old, new, changed, limits)
            staged.maintained.append((trace, result))
            if result.saw_undefined:
                look_for_error(step.evaluator, self.clauses[i], limits)
            seconds = time.perf_counter() - began
            work.append(RuleWork(i, result.steps, result.removed, result.added, result.surgeries, seconds))
            staged.steps += result.steps
            staged.removed += result.removed
            staged.added += result.added
            erased += result.erased
            inserted += result.inserted
        staged.work = work
        return erased, inserted

    def _change(
        self, step: Step, head: str, staged: StagedDerivations, erased: list[Rows], inserted: list[Rows]
    ) -> Change:
        """The change of the head when bindings go and come, and its facts change."""
        relation, fact_change = step.after[head], step.fact_changes.get(head)
        if self.accumulators is not None:
            staged.accumulators, change = self.accumulators.followed(erased, inserted)
            return change
        if self.support is None and fact_change is None:
            return change_of_rows(relation.arity, erased, inserted)
        support = self.support
        if support is None:
            evaluator = step.evaluator
            support = support_of(
                evaluator.arena,
                relation.arity,
                [relation.content.columns()],
                page_rows=evaluator.page_rows,
                dir_rows=evaluator.dir_rows,
            )
        fact_change = fact_change or Change.none(relation.arity)
        old, facts = step.before.relations[head], relation.facts
        staged.support, change = supported_change(support, old, facts, fact_change, erased, inserted)
        return change


@dataclass(slots=True, kw_only=True)
class StagedDerivations(Staged):
    """A head's derivations as they are to be after a commit: made anew, or maintained.

    `maintained`: the traces that were, each with what that gave · `support`, `accumulators`: the next ones.
    """

    derivations: KeptDerivations
    head: str
    after: Mapping[str, StoredRelation]
    content: Version | None = None
    maintained: list[tuple[Any, Maintained | TextMaintained | Followed]] = field(default_factory=list)
    support: Version | None = None
    accumulators: Accumulators | None = None

    def hold(self, content: Version, change: Change) -> None:
        """The head's next content, and how it differs."""
        self.content = content
        self.relations = {self.head: self.after[self.head].successor(content, change=change)}
        self.changes = {self.head: change}

    def adopt(self) -> None:
        """What was staged holds. Interrupted half way, what is kept holds for no content, and is made again."""
        kept = self.derivations
        kept.seen = None
        while self.maintained:
            trace, result = self.maintained.pop()
            trace.adopt(result)
        kept.support, kept.accumulators = self.support, self.accumulators
        assert self.content is not None
        kept.hold_for(self.after, self.head, self.content)

    def discard(self) -> None:
        """What was staged is dropped."""
        for trace, result in self.maintained:
            trace.discard(result)
        self.maintained.clear()
