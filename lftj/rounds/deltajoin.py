"""A clause planned once and run many times, over relations that change between the runs.

A round, or a step of maintenance, is many small joins. Planning and lowering one takes longer than running it, so both
are kept as long as the relations are of about the size they were made for; a run only puts the roots of the present
versions into the frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lftj.engine.evaluate import Evaluator
from lftj.engine.stored import StoredRelation
from lftj.join import machine, trie, triejoin
from lftj.join import walk as cells
from lftj.join.run import Limits, Run
from lftj.language.clause import Clause
from lftj.plan.body import Body, body_of
from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import rank_orders
from lftj.plan.lowering import Lowered, lower
from lftj.rounds.variants import CHANGED

Rows = npt.NDArray[np.int64]
Relations = Mapping[str, StoredRelation]

NO_LIMIT = np.iinfo(np.int64).max
# Rows from which on a run is worth a plan and a lowering of its own, with jump tables.
LARGE = 1 << 15
# Rows that wait to be made distinct, at most about.
WAITING = 1 << 22


@dataclass(slots=True)
class _Made:
    """A plan, for relations of these sizes; its arrays, if they are kept."""

    plan: JoinPlan
    sizes: tuple[int, ...]
    lowered: Lowered | None = None


class DeltaJoin:
    """One variant of a clause. `tested`: atoms, by number, whose rows must be older than the limit of a run."""

    def __init__(self, clause: Clause, tested: tuple[int, ...] = ()) -> None:
        self.clause, self.tested = clause, tested
        self.body: Body = body_of(clause)
        self.reads = tuple(dict.fromkeys(atom.predicate for atom in (*self.body.atoms, *self.body.negated)))
        self._made: _Made | None = None
        self.steps = 0
        self.trouble = False

    def plan(self, relations: Relations) -> JoinPlan:
        """The plan for relations of the present sizes."""
        sizes = tuple(len(relations[name]).bit_length() // 3 for name in self.reads)
        if self._made is None or self._made.sizes != sizes:
            statistics = {name: relations[name].statistics for name in self.reads}
            choice = rank_orders(self.body, statistics)[0]
            plan = plan_join(self.body, choice, relations, tested=self.tested)
            if self._made is None or self._made.plan != plan:
                self._made = _Made(plan, sizes)
            self._made.sizes = sizes
        return self._made.plan

    @property
    def orders(self) -> set[tuple[str, tuple[int, ...]]]:
        """The key orders of stored relations that the present plan reads."""
        nodes = () if self._made is None else self._made.plan.nodes
        return {(node.predicate, node.key_order) for node in nodes if node.predicate != CHANGED}

    def rows(self, evaluator: Evaluator, relations: Relations, limits: Limits, limit: int = NO_LIMIT) -> Rows:
        """The distinct heads int64[head, n] over `relations`; `limit`: of the rounds of tested rows."""
        arity = len(self.clause.head_args)
        if any(len(relations[name]) == 0 for name in (*self.body.guards, *(a.predicate for a in self.body.atoms))):
            return np.empty((arity, 0), np.int64)
        if any(len(relations[name]) for name in self.body.voids):
            return np.empty((arity, 0), np.int64)
        plan = self.plan(relations)
        large = len(relations[CHANGED]) >= LARGE if CHANGED in self.reads else True
        versions = {
            (node.predicate, node.key_order): relations[node.predicate].order(node.key_order) for node in plan.nodes
        }
        made = self._made
        assert made is not None
        if large or made.lowered is None:
            lowered = lower(plan, versions, evaluator._encode, np.zeros(1, np.int64), jumps=large)
            if not large:
                made.lowered = lowered
        else:
            lowered = made.lowered
            frames, depths, control = lowered.walk.frames, lowered.walk.depths, lowered.walk.control
            for f, node in enumerate(plan.nodes):
                frames[f, trie.ROOT] = versions[node.predicate, node.key_order].root
            frames[:, trie.OPENED] = 0
            depths[:, cells.MATCHES] = 0
            control[cells.DEPTH], control[cells.ENTER], control[cells.STAY] = 0, triejoin.OPENING, -1
            control[cells.STEPS] = control[cells.LANDED] = control[cells.OPENS] = control[cells.WRITTEN] = 0
            lowered.walk.cell[machine.TROUBLE] = 0
        walk = lowered.walk._replace(ranks=evaluator.symbols.ranks()) if lowered.ranked else lowered.walk
        walk.control[cells.LIMIT] = limit
        buffer = evaluator.buffer_rows if large else min(evaluator.buffer_rows, 1 << 10)
        run = Run(evaluator.arena.space.mem, walk, lowered.prelude, limits, lambda regs: "", buffer_rows=buffer)
        chunks: list[Rows] = []
        waiting = 0
        for chunk in run.chunks():
            chunks.append(chunk)
            waiting += chunk.shape[1]
            if waiting > WAITING:
                chunks = [evaluator.distinct(chunks, arity)[0]]
                waiting = 0
        self.steps += run.counters.steps
        self.trouble |= run.trouble
        return evaluator.distinct(chunks, arity)[0]
