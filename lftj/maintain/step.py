"""A step: one commit as strategies see it, and what is kept of heads from one commit to the next.

Rules read relations, and their changes, in key orders: a `TraceChange` is a relation's change in one key order, with
the trie branches that it inserts and erases (tree surgery; arXiv 1303.5313, section 4.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.language.options import AUTO, TRIGGERS
from lftj.maintain import background
from lftj.maintain.cost import HeadCosts
from lftj.maintain.report import HeadReport
from lftj.maintain.trace_layout import Order
from lftj.plan.join_stats import JoinStatsByJoin
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.store.change import Change
from lftj.store.stored import BULK_PART, BULK_ROWS, StoredRelation
from scantree.surgery import surgeries
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.language.clause import Clause
    from lftj.maintain.body_maps import BodyMaps
    from lftj.maintain.clause_delta import ClauseDelta
    from lftj.maintain.strategy import Kept
    from lftj.maintain.streams import Streams

Ints = npt.NDArray[np.int64]

_NO_KEYS = np.empty(0, np.int64)
_ONLY_AUTO, _ONLY_TRIGGERS = frozenset({AUTO}), frozenset({TRIGGERS})


@cache
def _only(strategy: str) -> frozenset[str]:
    return frozenset({strategy})


@dataclass(slots=True)
class TraceChange:
    """What a commit does to one relation in one key order.

    `rows` int64[arity, m] in key order · `kinds` int8[m]: 1 inserted, -1 erased · `tops` int64[m]: the first level at
    which each row is a surgery (scantree.surgery) · `low`, `high` int64[arity]: the range of each column.
    """

    rows: Ints
    kinds: npt.NDArray[np.int8]
    tops: Ints
    low: Ints
    high: Ints


class KeptHeads:
    """What strategies keep of a database's heads. It is no part of a state: `Kept` knows which contents it holds for.

    `costs`: what is known of the costs of a head · `reports`: how the last commit that derived a head did so ·
    `join_stats`: of a recursive head, what the joins of its component did · `bodies`: the maps that heads of one body
    have, by their rules, as long as one of these has them · `passing`: whether all of it goes with one answer, so that
    nothing is kept for what comes later.
    """

    __slots__ = ("bodies", "costs", "heads", "join_stats", "passing", "reports")

    def __init__(self, *, passing: bool = False) -> None:
        self.passing = passing
        self.heads: dict[str, Kept] = {}
        self.costs: dict[str, HeadCosts] = {}
        self.reports: dict[str, HeadReport] = {}
        self.join_stats: dict[str, JoinStatsByJoin] = {}
        self.bodies: WeakValueDictionary[tuple[Clause, ...], BodyMaps] = WeakValueDictionary()

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
        return {head: sizes for head, kept in list(self.heads.items()) if (sizes := kept.memory())}


class Step:
    """One commit as strategies see it.

    `before`: the state before it, in which every head that it concerns is up to date · `state`: the one after it, as
    far as that is made: everything below the heads in hand · `after`: the relations of it, into which heads are put one
    after the other · `changes` of these relations, where they are not empty · `fact_changes`: those of facts alone ·
    `new_heads`: those whose rules change · `kept`: what is kept of heads · `deltas`: those planned for heads in this
    step, and why so (delta.py) · `streams`: what comes and goes event by event, where the commit is a stream of events.

    A step without changes is *at rest*: `explain` looks at it.
    """

    __slots__ = (
        "_evaluator",
        "_surgeries",
        "_unkept",
        "after",
        "before",
        "changes",
        "deltas",
        "fact_changes",
        "kept",
        "new_heads",
        "state",
        "streams",
    )

    def __init__(
        self,
        before: State,
        state: State,
        evaluator: Evaluator,
        changes: dict[str, Change],
        new_heads: frozenset[str],
        kept: KeptHeads,
    ) -> None:
        self.before, self.state, self.changes = before, state, changes
        self.after: dict[str, StoredRelation] = state.relations
        self._evaluator, self.new_heads, self.kept = evaluator, new_heads, kept
        self.deltas: dict[str, tuple[list[ClauseDelta], str]] = {}
        self.fact_changes: Mapping[str, Change] = {}
        self.streams: Streams | None = None
        self._surgeries: dict[Order, TraceChange] = {}
        self._unkept: dict[str, str] = {}

    @classmethod
    def at_rest(cls, evaluator: Evaluator, kept: KeptHeads) -> Step:
        """A step that changes nothing."""
        return cls(evaluator.state, evaluator.state, evaluator, {}, frozenset(), kept)

    @property
    def evaluator(self) -> Evaluator:
        """Evaluates over `state`. Following a change seldom takes one, so it is made for whoever asks."""
        if self._evaluator.state is not self.state:
            self._evaluator = self._evaluator.over(self.state)
        return self._evaluator

    @property
    def circuits(self) -> Mapping[str, Any]:
        """The circuits that are attached, by the mark of their clauses."""
        return self._evaluator.circuits

    def asked(self, heads: Heads) -> Set[str]:
        """What users ask for as the strategy of these heads ("auto" where nothing is asked for)."""
        maintain = self.state.maintain
        if not maintain:
            return _ONLY_AUTO
        clauses = heads.clauses
        if len(clauses) == 1:
            asked: Set[str] = _only(maintain.get(clauses[0].rule, AUTO))
        else:
            asked = {maintain.get(clause.rule, AUTO) for clause in clauses}
        # Of a rule with an aggregate, that is kept by triggers: what reads it is a head like any other.
        return _ONLY_AUTO if asked == _ONLY_TRIGGERS and clauses[0].aggregate is None else asked

    def changes_in(self, orders: Sequence[Order], whole: Set[Order]) -> dict[Order, TraceChange]:
        """The changes of relations in these key orders, where there are any; of those in `whole`, every row counts."""
        found: dict[Order, TraceChange] = {}
        for order in orders:
            name, columns = order
            change = self.changes.get(name)
            if change is None:
                continue
            if order in whole:
                if columns != tuple(range(len(change.rows))):
                    change = change.in_order(columns)
                tops = np.zeros(len(change.kinds), np.int64)
                made = TraceChange(change.rows, change.kinds, tops, _NO_KEYS, _NO_KEYS)
            elif order in self._surgeries:
                made = self._surgeries[order]
            else:
                relation = self.before.relations[name]
                before, after = relation.order(columns), self.after[name].order_after(columns, relation, change)
                made = self._surgeries[order] = trace_change(change, before, after, columns)
            if len(made.kinds):
                found[order] = made
        return found

    def versions(self, orders: Sequence[Order]) -> tuple[dict[Order, Version], dict[Order, Version]]:
        """The relations in these key orders, before the step and after it."""
        old: dict[Order, Version] = {}
        new: dict[Order, Version] = {}
        for order in orders:
            name, columns = order
            before, after = self.before.relations[name], self.after[name]
            old[order] = before.order(columns)
            new[order] = after.order_after(columns, before, self.changes.get(name))
        return old, new

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
        return self.dear(heads) if self.is_evaluated(heads) else "the next change is followed"

    def is_evaluated(self, heads: Heads) -> bool:
        """Whether a commit made the content before the step by evaluating, and kept nothing."""
        before, evaluated = self.before.relations.get(heads.name), self.kept.costs_of(heads).evaluated
        return before is not None and evaluated is not None and evaluated() is before.content

    def dear(self, heads: Heads) -> str:
        """Why evaluating `heads` is better than following so much, as the last commit found; empty if it did not."""
        changed, done = self.changed(heads), self.before.evaluations.get(heads.clauses[0])
        if done is None or not done.cpu or not self.is_evaluated(heads):
            return ""
        dear = self.kept.costs_of(heads).still_dear(changed, done.cpu)
        return f"following {changed:,} changed rows would take longer" if dear else ""

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


def trace_change(change: Change, old: Version, new: Version, columns: tuple[int, ...]) -> TraceChange:
    """A change of a relation in the key order `columns`, with its tree surgeries; `old`, `new`: in that order."""
    if columns != tuple(range(len(change.rows))):
        change = change.in_order(columns)
    rows, kinds = np.ascontiguousarray(change.rows), change.kinds
    arity, m = rows.shape
    tops, low, high = np.empty(m, np.int64), np.empty(arity, np.int64), np.empty(arity, np.int64)
    if not m:  # in a narrow key order rows may be the same before and after
        return TraceChange(rows, kinds, tops, low, high)
    surgeries(new.store.arena.space.mem, old.root, new.root, new.store.shape, rows, kinds, tops, low, high)
    return TraceChange(rows, kinds, tops, low, high)
