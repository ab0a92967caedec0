"""The walk of a query that is asked again and again, kept from one question to the next.

To plan a join, and to make its arrays, takes longer than to walk to a few rows. So the plan and the arrays are kept
while the relations have about as many rows as when they were made, and a question costs: the codes of its parameters
into their registers, the roots of the relations' present versions into the frames, one call of the kernel.

No version is kept: between questions the arrays hold no pages. Hence there are no jump tables (they belong to a
version), and whoever asks holds the state that is walked over.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator, about_as_many
from lftj.join import expression_vm, trie
from lftj.join import join_state as cells
from lftj.join.run import Counters, walk_once
from lftj.language.clause import Clause
from lftj.plan.joinplan import JoinPlan
from lftj.plan.lowering import Lowered, Sought, lower
from lftj.program.evaluation import Evaluation
from lftj.program.text_split import split_text

Rows = npt.NDArray[np.int64]

# Rows that an answer may have. Of a longer one the rows take longer than the plan.
ROOM = 1024
_NOTHING_SOUGHT = Sought(jumps=False)


class KeptWalk:
    """The walk of one clause, whose key order may be forced. `rows` gives short answers only."""

    __slots__ = ("_clause", "_counts", "_frames", "_lowered", "_order", "_orders", "_out", "_plan", "_reads", "_texts")

    def __init__(self, clause: Clause, order: tuple[str, ...] | None) -> None:
        self._clause, self._order = clause, order
        self._reads = tuple(clause.reads)
        self._texts = split_text(clause) is not None
        self._plan: JoinPlan | None = None
        self._lowered: Lowered | None = None
        self._counts: list[int] = []
        # Key orders that are read, and the frames that stand on the root of each.
        self._orders: list[tuple[str, tuple[int, ...], Rows]] = []
        self._frames = self._out = np.empty((0, 0), np.int64)

    def rows(self, evaluator: Evaluator, codes: Mapping[str, int]) -> tuple[Rows, Evaluation] | None:
        """The rows int64[arity, n] of the clause, sorted and distinct, where its parameters have `codes`.

        None where the answer is long or the walk is, where a term has no value, and of a clause that computes texts:
        that is for `Evaluator.rows`. Nothing that the clause reads is stale.
        """
        if self._texts:
            return None
        started = time.perf_counter()
        relations = evaluator.state.relations
        lowered, plan = self._lowered, self._plan
        if lowered is None or plan is None or not self._as_many(evaluator):
            plan, lowered = self._make(evaluator.giving(codes))
        for name in plan.guards:
            if not len(relations[name]):
                return self._none(plan, started)
        for name in plan.voids:
            if len(relations[name]):
                return self._none(plan, started)
        for name, columns, frames in self._orders:
            self._frames[frames, trie.ROOT] = relations[name].order(columns).root
        walk = lowered.walk._replace(ranks=evaluator.symbols.ranks()) if lowered.ranked else lowered.walk
        for name, register in lowered.parameters.items():
            walk.regs[register] = codes[name]
        walk.cell[expression_vm.TROUBLE] = 0
        finished = walk_once(evaluator.arena.space.mem, walk, lowered.prelude, self._out)
        if not finished or walk.cell[expression_vm.TROUBLE]:
            return None
        control = walk.control.tolist()
        steps, count = control[cells.STEPS], control[cells.WRITTEN]
        found = self._out[:, :count].copy()
        if count > 1 and not (plan.in_order and len(found)):
            found = evaluator.distinct([found], len(found))[0]
        matches = tuple(walk.depths[:, cells.MATCHES].tolist())
        counters = Counters(steps, steps + control[cells.LANDED], control[cells.OPENS], count, matches)
        return found, Evaluation(self._clause, plan, counters, time.perf_counter() - started)

    def _as_many(self, evaluator: Evaluator) -> bool:
        relations = evaluator.state.relations
        for name, count in zip(self._reads, self._counts, strict=True):
            if not about_as_many(count, len(relations[name])):
                return False
        return True

    def _make(self, evaluator: Evaluator) -> tuple[JoinPlan, Lowered]:
        """Plan the clause, and make its arrays."""
        relations = evaluator.relations
        _, plan = evaluator.plan(self._clause, order=self._order)
        orders: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for i, node in enumerate(plan.nodes):
            orders.setdefault((node.predicate, node.key_order), []).append(i)
        versions = {at: relations[at[0]].order(at[1]) for at in orders}
        lowered = lower(plan, versions, evaluator._encode, np.zeros(1, np.int64), _NOTHING_SOUGHT)
        lowered.kept = ()
        self._plan, self._lowered = plan, lowered
        self._counts = [len(relations[name]) for name in self._reads]
        self._orders = [(name, columns, np.array(at)) for (name, columns), at in orders.items()]
        self._frames = lowered.walk.frames
        self._out = np.empty((len(lowered.walk.head), ROOM), np.int64)
        return plan, lowered

    def _none(self, plan: JoinPlan, started: float) -> tuple[Rows, Evaluation]:
        """The answer without rows, where an atom without variables fails already."""
        empty = np.empty((len(self._clause.head_args), 0), np.int64)
        return empty, Evaluation(self._clause, plan, Counters(), time.perf_counter() - started)
