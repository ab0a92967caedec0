"""A step: one commit as strategies see it, and what is kept of heads from one commit to the next."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from lftj.evaluate.evaluator import Evaluator
from lftj.language.options import AUTO
from lftj.maintain import background
from lftj.maintain.branches import TraceChange, trace_change, whole_change
from lftj.maintain.cost import HeadCosts
from lftj.maintain.report import HeadReport
from lftj.maintain.trace_layout import Order
from lftj.plan.join_stats import JoinStatsByJoin
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import BULK_PART, BULK_ROWS, StoredRelation

if TYPE_CHECKING:
    from lftj.maintain.clause_delta import ClauseDelta
    from lftj.maintain.strategy import Kept


class KeptHeads:
    """What strategies keep of a database's heads. It is no part of a state: `Kept` knows which contents it holds for.

    `costs`: what is known of the costs of a head · `reports`: how the last commit that derived a head did so ·
    `join_stats`: of a recursive head, what the joins of its component did.
    """

    __slots__ = ("costs", "heads", "join_stats", "reports")

    def __init__(self) -> None:
        self.heads: dict[str, Kept] = {}
        self.costs: dict[str, HeadCosts] = {}
        self.reports: dict[str, HeadReport] = {}
        self.join_stats: dict[str, JoinStatsByJoin] = {}

    def forget_all_but(self, heads: Set[str]) -> None:
        """Forget what is kept of other heads: they have no rules any more, or others."""
        for kept in (self.heads, self.costs, self.reports, self.join_stats):
            for head in kept.keys() - heads:
                del kept[head]

    def costs_of(self, heads: Heads) -> HeadCosts:
        """What is known of the costs of heads under these rules."""
        found = self.costs.get(heads.name)
        if found is None or (found.heads is not heads and found.heads != heads):
            found = self.costs[heads.name] = HeadCosts(heads)
        return found

    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes per head, by what they are for."""
        return {head: kept.memory() for head, kept in list(self.heads.items())}


class Step:
    """One commit as strategies see it.

    `before`: the state before it, in which every head that it concerns is up to date · `evaluator`: evaluates over the
    state after it, as far as that is made: everything below the heads in hand · `changes` of these relations, where
    they are not empty · `new_heads`: those whose rules change · `kept`: what is kept of heads · `deltas`: those planned
    for heads in this step, and why so (delta.py).

    A step without changes is *at rest*: `explain` looks at it.
    """

    __slots__ = ("_surgeries", "_unkept", "after", "before", "changes", "deltas", "evaluator", "kept", "new_heads")

    def __init__(
        self,
        before: State,
        evaluator: Evaluator,
        changes: dict[str, Change],
        new_heads: frozenset[str],
        kept: KeptHeads,
    ) -> None:
        self.before, self.evaluator, self.changes = before, evaluator, changes
        # The relations after the step, as far as they are made; heads are put into them one after the other.
        self.after: dict[str, StoredRelation] = evaluator.state.relations
        self.new_heads, self.kept = new_heads, kept
        self.deltas: dict[str, tuple[list[ClauseDelta], str]] = {}
        self._surgeries: dict[Order, TraceChange] = {}
        self._unkept: dict[str, str] = {}

    @classmethod
    def at_rest(cls, evaluator: Evaluator, kept: KeptHeads) -> Step:
        """A step that changes nothing."""
        return cls(evaluator.state, evaluator, {}, frozenset(), kept)

    def asked(self, heads: Heads) -> set[str]:
        """What users ask for as the strategy of these heads ("auto" where nothing is asked for)."""
        maintain = self.evaluator.state.maintain
        return {maintain.get(clause.rule, AUTO) for clause in heads.clauses} if maintain else {AUTO}

    def surgeries(self, order: Order, *, whole: bool = False) -> TraceChange:
        """The change of a relation in a key order, with its tree surgeries; `whole`: of whole rows, in their order."""
        if whole:
            return whole_change(self.changes[order[0]], order[1])
        if order not in self._surgeries:
            name, columns = order
            old, new = (relations[name].order(columns) for relations in (self.before.relations, self.after))
            self._surgeries[order] = trace_change(self.changes[name], old, new, columns)
        return self._surgeries[order]

    def unkept(self, heads: Heads, unless: str) -> str:
        """Why `heads` are evaluated now without keeping what following takes; empty if they are not.

        Keeping it takes longer than evaluating: it pays where a change follows soon. So the first commit after a load
        only evaluates, and one after it prepares; but not if following what it changes would not be worth it. Where
        users ask for the strategy `unless`, every commit prepares.
        """
        if unless in self.asked(heads):
            return ""
        if heads.name not in self._unkept:
            self._unkept[heads.name] = self._evaluated(heads, unless)
        return self._unkept[heads.name]

    def _evaluated(self, heads: Heads, unless: str) -> str:
        if background.is_busy():
            return background.COMPILING
        if too_many := self.bulk(heads, unless):
            return too_many
        before, costs = self.before.relations.get(heads.name), self.kept.costs_of(heads)
        if before is None or costs.evaluated is None or costs.evaluated() is not before.content:
            return "the next change is followed"
        done = self.before.evaluations.get(heads.clauses[0])
        if done is not None and done.cpu and costs.still_dear(self.changed(heads), done.cpu):
            return f"following {self.changed(heads):,} changed rows would take longer"
        return ""

    def changed(self, heads: Heads) -> int:
        """The changed rows that `heads` read."""
        return sum([len(self.changes[name].kinds) for name in heads.reads if name in self.changes])

    def bulk(self, heads: Heads, unless: str) -> str:
        """Why the change is so large that `heads` are evaluated, without keeping anything; empty if it is not.

        Nor is it where users ask for the strategy `unless`, however much changes.
        More of the kind may follow; the next small change keeps what it needs.
        """
        if unless in self.asked(heads) or sum(len(change.kinds) for change in self.changes.values()) < BULK_ROWS:
            return ""
        changed = self.changed(heads)
        if changed < BULK_ROWS:
            return ""
        rows = sum(len(self.after[name]) for name in heads.reads)
        return f"{changed:,} rows changed where there are {rows:,}" if changed > BULK_PART * rows else ""
