"""The traces of a head: those of its rules, and how many derivations each of its rows has.

A row of a head stands as long as some rule derives it or a fact says so. Where one rule derives each row in one way
only (its head names all its variables) and there are no facts, the rows that the trace of the rule loses and gains are
the head's change. Otherwise *support* counts derivations: rows int64[arity] with one value, the number of bindings of
all rules that derive the row. Maintenance adds and takes away; a row is in the head if its support is positive or it
is a fact.

The bindings of an aggregate are folded into accumulators instead (accumulators.py).

A head's traces belong to the contents they were recorded over and maintained to, which they know by identity: where
others stand in the state (after a load, say), they are outdated, and are recorded again when next needed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lftj.engine.change import Change
from lftj.engine.clausedelta import ClauseDelta, Followed
from lftj.engine.estimates import MANY, Anew, following
from lftj.engine.stored import StoredRelation
from lftj.engine.told import Told
from lftj.engine.trace import ClauseTrace, Maintained, TraceChange
from lftj.language.clause import Clause, Var
from lftj.plan.joinplan import JoinPlan
from lftj.rounds.tally import Tallies
from scantree.memory import Arena
from scantree.sort import order_of, sorting
from scantree.surgery import surgeries
from scantree.version import Store, Version

if TYPE_CHECKING:
    from lftj.engine.accumulators import Accumulators
    from lftj.engine.texttrace import TextMaintained, TextTrace

Rows = npt.NDArray[np.int64]
_NO_KEYS = np.empty(0, np.int64)


def derives_once(plan: JoinPlan) -> bool:
    """Whether a binding of the rule, up to its existential suffix, is known by the row it derives."""
    shown = {term.name for term in plan.head if isinstance(term, Var)}
    return all(depth.definition is not None or depth.variable in shown for depth in plan.depths[: plan.until])


@dataclass(slots=True)
class HeadTrace:
    """The traces of all clauses of a head, and its support (None: every row has one derivation and is no fact).

    `accumulators`: of a head that is an aggregate, in the place of a support.
    `by_delta`: the head is followed by the deltas of its rules, without traces. `seen`: the contents the traces hold
    for. `recorded`: what recording them took when it was last done.
    `misjudged`: how many times the steps that were expected maintaining took when it last had many rows to look at;
    `at_first`: the same when it first had.
    """

    clauses: tuple[Clause, ...]
    traces: list[ClauseTrace | TextTrace | ClauseDelta]
    support: Version | None
    seen: dict[str, weakref.ref[Version]]
    recorded: Anew
    accumulators: Accumulators | None = None
    misjudged: float = 1.0
    at_first: float | None = None
    by_delta: bool = field(init=False)
    _steps: list[dict[str, float]] = field(init=False)
    _names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.by_delta = any(isinstance(trace, ClauseDelta) for trace in self.traces)
        self._steps = [_steps_of(trace) for trace in self.traces]
        self._names = {name for clause in self.clauses for name in clause.reads}

    def holds_for(self, clauses: Iterable[Clause], relations: Mapping[str, StoredRelation], head: str) -> bool:
        """Whether this is the trace of `clauses` over `relations`."""
        if self.clauses != tuple(clauses):
            return False
        for name, ref in self.seen.items():
            if name not in relations or ref() is not relations[name].content:
                return False
        return self.support is not None or not len(relations[head].facts)

    def changed(self, changes: Mapping[str, Change]) -> tuple[int, float]:
        """(changed rows that the rules have to look at, once per rule that reads them; the steps expected of them)."""
        found, steps = 0, 0.0
        for expected in self._steps:
            for name, of_row in expected.items():
                if name in changes:
                    rows = len(changes[name].kinds)
                    found += rows
                    steps += rows * of_row
        return found, steps

    def estimate(self, changes: Mapping[str, Change], relations: Mapping[str, StoredRelation]) -> tuple[int, float]:
        """(changed rows that the rules have to look at, nanoseconds that following them is estimated to take)."""
        found, steps = self.changed(changes)
        # What there is to read makes a difference for many changed rows only; the others are not to wait for it.
        read = sum(len(relations[name]) for name in self._names) if found > MANY else 0
        return found, following(found, steps * self.misjudged, read, by_delta=self.by_delta)

    def learn(self, changes: Mapping[str, Change], steps: int) -> None:
        """Following these changes took so many steps."""
        found, expected = self.changed(changes)
        if found >= MANY:
            self.misjudged = steps / max(1.0, expected)
            self.at_first = self.at_first or self.misjudged

    def anew(self, stored: int) -> float:
        """Nanoseconds that evaluating, or recording, anew is estimated to take; the head has so many rows `stored`.

        Where changed rows are joined with fewer others than at first, so are all.
        """
        return self.recorded.nanoseconds(stored, self.misjudged / (self.at_first or 1.0))

    def look_at(self, relations: Mapping[str, StoredRelation], head: str, content: Version) -> None:
        """The traces hold for the contents in `relations`, and `content` of the head."""
        self.seen = {name: weakref.ref(relations[name].content) for name in self._names}
        self.seen[head] = weakref.ref(content)

    def memory(self) -> int:
        """Bytes of support and branch filters."""
        filters = {f.page: f.memory() for trace in self.parts for f in trace.filters.values()}
        return sum(filters.values()) + (self.support.memory() if self.support is not None else 0)

    @property
    def parts(self) -> list[ClauseTrace]:
        """The traces of joins that those of the rules consist of."""
        return [part for trace in self.traces for part in trace.parts]

    def between(self) -> int:
        """Bytes of the relations between the parts of rules that compute texts."""
        return sum(trace.memory() for trace in self.traces if not isinstance(trace, ClauseTrace | ClauseDelta))


def _steps_of(trace: ClauseTrace | TextTrace | ClauseDelta) -> dict[str, float]:
    """What a changed row of each relation that a rule reads is expected to take, in steps."""
    if isinstance(trace, ClauseDelta):
        return trace.steps
    contexts = sum(part.trace_plan.contexts for part in trace.parts)
    return {order[0]: contexts for order in trace.watched}


class Traces:
    """The traces of a database's heads. They are no part of a state: a trace knows which contents it holds for.

    `told`: how the last commit that derived a head did so; `ran`: of a recursive head, what the joins of its component
    did.
    """

    __slots__ = ("heads", "ran", "told")

    def __init__(self) -> None:
        self.heads: dict[str, HeadTrace] = {}
        self.told: dict[str, Told] = {}
        self.ran: dict[str, Tallies] = {}

    def keep(self, heads: Set[str]) -> None:
        """Forget what is kept of all heads but these."""
        for kept in (self.heads, self.told, self.ran):
            for head in kept.keys() - heads:
                kept.pop(head)

    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes per head: of each sensitivity index (by atom and variable), and of the rest."""
        found: dict[str, dict[str, int]] = {}
        for head, held in list(self.heads.items()):
            parts: dict[str, int] = {}
            for trace in held.parts:
                for s in trace.indexes.packings:
                    parts[trace.site_name(s)] = parts.get(trace.site_name(s), 0) + trace.indexes.memory(s)
            if not held.by_delta or held.support is not None:
                parts["support and filters"] = held.memory()
            if held.accumulators is not None:
                parts["accumulators"] = held.accumulators.memory()
            if between := held.between():
                parts["between parts"] = between
            found[head] = parts
        return found


@dataclass(slots=True)
class StagedTrace:
    """A head's traces as they are to be after a commit: recorded anew, or maintained."""

    head: str
    trace: HeadTrace
    content: Version
    relations: Mapping[str, StoredRelation]
    maintained: list[tuple[Any, Maintained | TextMaintained | Followed]] = field(default_factory=list)
    support: Version | None = None
    accumulators: Accumulators | None = None

    def adopt(self) -> HeadTrace:
        """What was staged holds."""
        for trace, result in self.maintained:
            trace.adopt(result)
        self.trace.support, self.trace.accumulators = self.support, self.accumulators
        self.trace.look_at(self.relations, self.head, self.content)
        return self.trace

    def discard(self) -> None:
        """What was staged goes."""
        for trace, result in self.maintained:
            trace.discard(result)
        self.maintained.clear()


def support_of(arena: Arena, arity: int, chunks: list[Rows], *, page_rows: int, dir_rows: int) -> Version:
    """The support of derived rows, given with all repeats in `chunks` int64[arity, n]."""
    rows = np.concatenate([np.empty((arity, 0), np.int64), *chunks], axis=1)
    distinct, counts = summed(rows, np.ones(rows.shape[1], np.int64))
    store = Store(arena, arity, 1, page_rows=page_rows, dir_rows=dir_rows)
    return store.assemble([np.concatenate([distinct, counts[None, :]])])


def summed(rows: Rows, weights: Rows) -> tuple[Rows, Rows]:
    """(distinct rows in order, the sums of the weights of each); `weights` int64[m] or int64[k, m]."""
    m = rows.shape[1]
    if len(rows) == 0:
        return rows[:, : min(m, 1)], weights.sum(axis=-1, keepdims=True)[..., : min(m, 1)]
    rows, order, starts = runs_of(rows)
    if order is not None:
        weights = np.take(weights, order, axis=-1)
    return rows[:, starts], np.add.reduceat(weights, starts, axis=-1) if m else weights


def runs_of(rows: Rows) -> tuple[Rows, Rows | None, Rows]:
    """(the rows int64[1.., m] in order, what put them so or None if they were, where each run of equal rows begins)."""
    order, state = None, order_of(rows)
    repeats = state == 1
    if state == 0:
        order, repeats = sorting(rows)
        rows = np.take(rows, order, axis=1)
    first = np.ones(rows.shape[1], np.bool_)
    if repeats:
        first[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return rows, order, np.flatnonzero(first)


def supported_change(
    support: Version, old: StoredRelation, facts: Version, fact_change: Change, erased: list[Rows], inserted: list[Rows]
) -> tuple[Version, Change]:
    """(the next support, the change of the head's content) when derivations go and come and facts change.

    `old`: the head before; `facts`: its facts after.
    """
    rows = np.concatenate([*erased, *inserted, fact_change.rows], axis=1)
    weights = np.zeros(rows.shape[1], np.int64)
    gone, come = (sum(part.shape[1] for part in parts) for parts in (erased, inserted))
    weights[:gone], weights[gone : gone + come] = -1, 1
    rows, weights = summed(rows, weights)
    before = support.values_of(rows)[0]
    after = before + weights
    assert not len(after) or int(after.min()) >= 0, "a derivation went that was never counted"
    moved = weights != 0
    batch = np.concatenate([rows, after[None, :]])[:, moved]
    following, _ = support.update(batch, np.where(after[moved] > 0, 1, -1).astype(np.int8))
    was = (before > 0) | old.facts.contains(rows)
    now = (after > 0) | facts.contains(rows)
    flips = was != now
    return following, Change(np.compress(flips, rows, axis=1), np.where(now[flips], 1, -1).astype(np.int8))


def whole_change(change: Change, columns: tuple[int, ...]) -> TraceChange:
    """A change of whole rows, every one of which counts, in the order of the columns."""
    if columns != tuple(range(len(columns))):
        change = change.in_order(columns)
    return TraceChange(change.rows, change.kinds, np.zeros(len(change.kinds), np.int64), _NO_KEYS, _NO_KEYS)


def trace_change(change: Change, old: Version, new: Version, columns: tuple[int, ...]) -> TraceChange:
    """A change of a relation in the key order `columns`, with its tree surgeries; `old`, `new`: in that order."""
    if columns != tuple(range(len(columns))):
        change = change.in_order(columns)
    rows, kinds = np.ascontiguousarray(change.rows), change.kinds
    arity, m = rows.shape
    tops, low, high = np.empty(m, np.int64), np.empty(arity, np.int64), np.empty(arity, np.int64)
    surgeries(new.store.arena.space.mem, old.root, new.root, new.store.shape, rows, kinds, tops, low, high)
    return TraceChange(rows, kinds, tops, low, high)
