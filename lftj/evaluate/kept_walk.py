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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator, about_as_many
from lftj.join import expression_vm, trie
from lftj.join import join_state as cells
from lftj.join.run import Counters, walk_once
from lftj.language.clause import Clause
from lftj.plan.joinplan import JoinPlan
from lftj.plan.lowering import Lowered, SeekHints, lower
from lftj.program.evaluation import Evaluation
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]

# Rows that an answer may have. Of a longer one the rows take longer than the plan.
ROOM = 1024
_NOTHING_SOUGHT = SeekHints(jumps=False)


class _KeptArrays(NamedTuple):
    """A plan, its arrays, how many rows each relation had, the frames on the root of each key order, room for rows."""

    plan: JoinPlan
    lowered: Lowered
    counts: list[int]
    orders: list[tuple[str, tuple[int, ...], Rows]]
    out: Rows


class KeptWalk:
    """The walk of one clause, whose key order may be forced. `rows` gives short answers only."""

    __slots__ = ("_clause", "_made", "_order", "_reads", "_texts")

    def __init__(self, clause: Clause, order: tuple[str, ...] | None) -> None:
        self._clause, self._order = clause, order
        self._reads = tuple(clause.reads)
        self._texts = split_text(clause) is not None
        self._made: _KeptArrays | None = None  # in one object: an interrupt must not leave the arrays of two plans

    def rows(self, evaluator: Evaluator, codes: Mapping[str, int]) -> tuple[Rows, Evaluation] | None:
        """The rows int64[arity, n] of the clause, sorted and distinct, where its parameters have `codes`.

        None where the answer is long or the walk is, where a term has no value, and of a clause that computes texts:
        that is for `Evaluator.rows`. Nothing that the clause reads is stale.
        """
        if self._texts:
            return None
        started = time.perf_counter()
        relations = evaluator.state.relations
        made = self._made
        if made is None or not self._as_many(made.counts, relations):
            made = self._made = self._make(evaluator.giving(codes))
        plan, lowered, _, orders, out = made
        for name in plan.guards:
            if not len(relations[name]):
                return self._none(plan, started)
        for name in plan.voids:
            if len(relations[name]):
                return self._none(plan, started)
        walk = lowered.walk
        for name, columns, frames in orders:
            walk.frames[frames, trie.ROOT] = relations[name].order(columns).root
        if lowered.ranked:
            walk = walk._replace(ranks=evaluator.symbols.ranks())
        for name, register in lowered.parameters.items():
            walk.regs[register] = codes[name]
        walk.cell[expression_vm.NO_VALUE] = 0
        finished = walk_once(evaluator.arena.space.mem, walk, lowered.prelude, out)
        if not finished or walk.cell[expression_vm.NO_VALUE]:
            return None
        control = walk.control.tolist()
        steps, count = control[cells.STEPS], control[cells.WRITTEN]
        found = out[:, :count].copy()
        if count > 1 and not (plan.in_order and len(found)):
            found = evaluator.distinct([found], len(found))[0]
        matches = tuple(walk.depths[:, cells.MATCHES].tolist())
        counters = Counters(steps, steps + control[cells.LANDED], control[cells.OPENS], count, matches)
        return found, Evaluation(self._clause, plan, counters, time.perf_counter() - started)

    def _as_many(self, counts: list[int], relations: Mapping[str, StoredRelation]) -> bool:
        """Whether the relations have about as many rows as when the plan was made."""
        return all(map(about_as_many, counts, [len(relations[name]) for name in self._reads]))

    def _make(self, evaluator: Evaluator) -> _KeptArrays:
        """Plan the clause, and make its arrays."""
        relations = evaluator.relations
        _, plan = evaluator.plan(self._clause, order=self._order)
        nodes: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for i, node in enumerate(plan.nodes):
            nodes.setdefault((node.predicate, node.key_order), []).append(i)
        versions = {(name, columns): relations[name].order(columns) for name, columns in nodes}
        lowered = lower(plan, versions, evaluator._encode, np.zeros(1, np.int64), _NOTHING_SOUGHT)
        lowered.kept = ()
        counts = [len(relations[name]) for name in self._reads]
        orders = [(name, columns, np.array(at)) for (name, columns), at in nodes.items()]
        return _KeptArrays(plan, lowered, counts, orders, np.empty((len(lowered.walk.head), ROOM), np.int64))

    def _none(self, plan: JoinPlan, started: float) -> tuple[Rows, Evaluation]:
        """The answer without rows, where an atom without variables fails already."""
        empty = np.empty((len(self._clause.head_args), 0), np.int64)
        return empty, Evaluation(self._clause, plan, Counters(), time.perf_counter() - started)
