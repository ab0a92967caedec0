"""Following a clause by its delta: what changed in one atom is joined with the rest of the body, atom by atom.

A derivation goes with a change if it was there before it and one of its rows went; it comes if it is there after it and
one of its rows came (of a negated atom: the other way round). So for every atom whose relation changed there is a plan
that begins with that atom's variables and ranges over its changed rows, over the versions before the change and over
those after it. A derivation with several changed rows is found by the plans of all these atoms, and is that of the
first.

Nothing is recorded: what this keeps is the key orders of the plans, which follow every change of their relations. It is
for rules whose traces would be large, and whose changed rows have few derivations each: semi-naive evaluation (F.
Bancilhon, R. Ramakrishnan, SIGMOD 1986) with the counting of A. Gupta, I. S. Mumick, V. S. Subrahmanian (SIGMOD 1993)
where the head's support counts, each join worst-case optimal (F. McSherry et al., "delta queries").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from lftj.engine.stored import StoredRelation
from lftj.engine.trace import TraceChange
from lftj.engine.tracelayout import Order
from lftj.join import changed, machine, trie, triejoin
from lftj.join import walk as cells
from lftj.join.run import SLICE, Counters, Limits
from lftj.language.clause import Clause
from lftj.plan.body import Atom, Body, body_of
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import Choice, rank_orders
from lftj.plan.lowering import Encode, lower
from lftj.plan.statistics import OneRow, Statistics
from scantree.memory import Arena
from scantree.version import Version

Ints = npt.NDArray[np.int64]
Versions = Mapping[Order, Version]

# The relation of changed rows, where plans are chosen.
CHANGED = "@Δ"
LEAST_ROWS, MOST_ROWS = 1 << 8, 1 << 14
# What a row of a key order costs that is built once, for many changes.
REPEATED = 0.05


@dataclass(slots=True)
class Followed:
    """What became of a clause: rows int64[head, n] erased and inserted, one per derivation, and counts.

    No records are kept, so none go or come. `trouble`: a term had no value somewhere in the walk.
    """

    erased: list[Ints]
    inserted: list[Ints]
    steps: int
    surgeries: int
    trouble: bool
    removed: int = 0
    added: int = 0


class _Variant:
    """The plan of one atom, and its arrays while the clause is followed.

    `order`: in which its changed rows are read, the `depth` columns that bind variables first · `negated`.
    """

    def __init__(self, body: Body, atom: Atom, relations: Mapping[str, StoredRelation]) -> None:
        self.negated = all(a is not atom for a in body.atoms)
        bound = [c for c, v in enumerate(atom.columns) if v is not None]
        self.depth = len(bound)
        self.order: Order = (
            atom.predicate,
            (*bound, *(c for c, v in enumerate(atom.columns) if v is None)),
        )
        self.variables = tuple(v for v in atom.columns if v is not None)
        others = tuple(a for a in body.atoms if a is not atom)
        blocking = tuple(a for a in body.negated if a is not atom)
        asked = replace(body, atoms=(replace(atom, predicate=CHANGED), *others), negated=blocking)
        statistics: dict[str, Statistics] = {a.predicate: relations[a.predicate].statistics for a in others}
        statistics |= {a.predicate: relations[a.predicate].statistics for a in asked.negated}
        statistics[CHANGED] = OneRow(relations[atom.predicate])
        best = rank_orders(asked, statistics, sort=REPEATED)[0]
        rest = tuple(v for v in best.order if v not in self.variables)
        choice = rank_orders(asked, statistics, forced=(*self.variables, *rest), sort=REPEATED)[0]
        self.steps = choice.cost
        self.plan = self._planned(replace(asked, atoms=others), choice, relations)
        self.places = [(node.predicate, node.key_order) for node in self.plan.nodes]
        self._made: tuple[cells.Walk, bool] | None = None
        self.out = np.empty((0, 0), np.int64)

    @staticmethod
    def _planned(body: Body, choice: Choice, relations: Mapping[str, StoredRelation]) -> JoinPlan:
        """Every derivation counts, so there is no existential suffix."""
        plan = plan_join(body, choice, relations)
        return replace(plan, until=len(plan.depths))

    def walk(self, versions: Versions, encode: Encode, ranks: Callable[[], Ints], names: tuple[str, ...]) -> cells.Walk:
        """The walk over `versions`, at its beginning; of each derivation it writes the head, then `names`."""
        if self._made is None:
            lowered = lower(self.plan, versions, encode, np.zeros(1, np.int64), jumps=False)
            place = {depth.variable: d for d, depth in enumerate(self.plan.depths)}
            head = np.concatenate([lowered.walk.head, np.array([place[v] for v in names], np.int64)])
            walk = lowered.walk._replace(head=head)
            machine.run_code(lowered.prelude, 0, len(lowered.prelude), walk.regs, walk.ranks, walk.cell)
            self._made = walk, lowered.ranked
            self.out = np.empty((len(head), LEAST_ROWS), np.int64)
        walk, ranked = self._made
        walk.frames[: len(self.places), trie.ROOT] = [versions[order].root for order in self.places]
        walk.frames[:, trie.OPENED] = 0
        control = walk.control
        control[cells.STEPS] = control[cells.LANDED] = control[cells.WRITTEN] = 0
        return walk._replace(ranks=ranks()) if ranked else walk


class ClauseDelta:
    """A clause that is followed by its delta."""

    def __init__(
        self,
        clause: Clause,
        plan: JoinPlan,
        relations: Mapping[str, StoredRelation],
        arena: Arena,
        encode: Encode,
        ranks: Callable[[], Ints],
    ) -> None:
        self.arena, self.encode, self.ranks = arena, encode, ranks
        self.plan = replace(plan, until=len(plan.depths))
        body = body_of(clause)
        self._variants = [_Variant(body, atom, relations) for atom in (*body.atoms, *body.negated)]
        self._names = tuple(body.variables)
        self._head = len(body.head)
        self.counters = Counters()
        self.watched: tuple[Order, ...] = tuple(dict.fromkeys(v.order for v in self._variants))
        joined = chain.from_iterable(v.places for v in self._variants)
        self.orders: tuple[Order, ...] = tuple(dict.fromkeys((*self.watched, *joined)))
        self.steps = sum(v.steps for v in self._variants)

    # It has no trace of a join, and looks for errors of its own.
    trouble = False
    parts: tuple[()] = ()

    def maintain(self, old: Versions, new: Versions, changes: Mapping[Order, TraceChange], limits: Limits) -> Followed:
        """The derivations that the `changes`, which lead from `old` to `new`, take away and bring."""
        found = Followed([], [], 0, 0, False)
        for kind, versions, rows in ((-1, old, found.erased), (1, new, found.inserted)):
            earlier: list[tuple[_Variant, int, TraceChange]] = []
            for variant in self._variants:
                change = changes.get(variant.order)
                own = -kind if variant.negated else kind
                if change is None or not (change.kinds == own).any():
                    continue
                try:
                    self._join(found, variant, versions, change, own, earlier, rows, limits)
                except BaseException:
                    variant._made = None
                    raise
                earlier.append((variant, own, change))
        return found

    def _join(
        self,
        found: Followed,
        variant: _Variant,
        versions: Versions,
        change: TraceChange,
        kind: int,
        earlier: list[tuple[_Variant, int, TraceChange]],
        rows: list[Ints],
        limits: Limits,
    ) -> None:
        walk = variant.walk(versions, self.encode, self.ranks, self._names)
        control, mem = walk.control, self.arena.space.mem
        state = np.zeros(changed.STATE, np.int64)
        walk.cell[machine.TROUBLE] = 0.0
        place = {v: self._head + i for i, v in enumerate(self._names)}
        status = triejoin.PAUSED
        while status != triejoin.FINISHED:
            status = changed.join_changed(
                mem, walk, change.rows, change.kinds, change.tops, kind, variant.depth, variant.out, state, SLICE
            )
            if status in (triejoin.FULL, triejoin.FINISHED) and (n := int(control[cells.WRITTEN])):
                kept = n
                for other, own, theirs in earlier:
                    at = np.array([place[v] for v in other.variables], np.int64)
                    kept = changed.keep_others(variant.out, kept, at, theirs.rows, theirs.kinds, theirs.tops, own)
                if kept:
                    rows.append(variant.out[: self._head, :kept].copy())
                control[cells.WRITTEN] = 0
                if n == variant.out.shape[1] < MOST_ROWS:
                    variant.out = np.empty((len(variant.out), 4 * n), np.int64)
            limits.look(0)
        found.steps += int(control[cells.STEPS] + control[cells.LANDED])
        found.surgeries += change.rows.shape[1]
        found.trouble |= bool(walk.cell[machine.TROUBLE])

    def adopt(self, result: Followed) -> None:
        """There is nothing to adopt: no records are kept."""

    def discard(self, result: Followed) -> None:
        """There is nothing to discard."""
