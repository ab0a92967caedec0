"""Trials: of a body of many variables key orders are raced for some thousand steps before one is chosen.

What estimates from averages say of many variables is a product of as many errors (starts.py). A walk costs some ten
nanoseconds a step, and a tenth of a millisecond to set up: less than the search for its order. So candidates walk in
turn, `FIRST` steps each, then the half of them that came farthest `FASTER` times as many, until some end; the one of
these with the least steps is chosen. The cheapest by estimate walks alone at first: if it ends at once, nothing else is
tried.

If none ends within `LAST` steps, all that is known is that every order takes longer. Then estimates decide, or pilot
runs (sampling.py), which try larger joins on a sample. Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lftj.join import expression_vm, triejoin
from lftj.join import join_state as cells
from lftj.join.run import Limits
from lftj.plan.joinplan import JoinPlan
from lftj.plan.keyorder import DEDUPE, EMIT, SORT, Choice
from lftj.plan.lowering import Encode, Sought, lower
from lftj.plan.statistics import Stored

# Bodies of so many variables are tried; of fewer, nearly all orders are searched, and estimates err less. Of the orders
# that are the cheapest by estimate so many take part.
TRIED, RANKED = 5, 4
# Steps within which the first one ends at once; those of the first round; how they grow; and those of the last round.
AT_ONCE, FIRST, FASTER, LAST = 128, 512, 4, 1 << 17
# After each round the half that came farthest goes on, but so many at least.
LEAST = 3
# Rows of the buffer that a trial writes to.
ROWS = 1 << 8

Ranks = Callable[[], npt.NDArray[np.int64]]


class Trials:
    """The trials of one body over `relations`: walks from one plan each, and the key orders that were built for them.

    `encode`, `ranks`: codes of constants, and of symbols by the order of their texts.
    """

    def __init__(self, relations: Mapping[str, Stored], encode: Encode, ranks: Ranks, limits: Limits) -> None:
        self.relations, self.encode, self.ranks, self.limits = relations, encode, ranks, limits
        self._built = {name: set(relation.orders) for name, relation in relations.items()}

    def best_of(
        self, first: JoinPlan, choices: Iterable[Choice], plan: Callable[[Choice], JoinPlan]
    ) -> JoinPlan | None:
        """The plan that ends with the least steps, `first` or one of `choices`; None if none ends within `LAST`."""
        if not first.nodes:
            return first
        walks = [_Trial(first, self, 0.0)]
        walks[0].walk(AT_ONCE)
        if walks[0].ended:
            return first
        seen, needed = {first.order}, _orders(first)
        for choice in choices:
            candidate = plan(choice)
            sorting = self._sorting(_orders(candidate) - needed)
            if candidate.order not in seen and sorting < LAST:
                seen.add(candidate.order)
                walks.append(_Trial(candidate, self, sorting))
        budget, ended = float(FIRST), list[_Trial]()
        running = walks
        while budget <= LAST and not ended:
            for trial in running:
                trial.walk(min([budget, *(other.cost for other in ended)]))
                if trial.ended:
                    ended.append(trial)
            budget *= FASTER
            running = sorted(running, key=lambda trial: -trial.progress)[: max(LEAST, len(running) // 2)]
        best = min(ended, key=lambda trial: trial.cost) if ended else None
        self._forget([trial.plan for trial in walks], first if best is None else best.plan)
        return None if best is None else replace(best.plan, cost=best.cost)

    def _sorting(self, orders: set[tuple[str, tuple[int, ...]]]) -> float:
        """Cost of sorting those of `orders` that are not there."""
        return SORT * sum(len(self.relations[name]) for name, order in orders if order not in self._built[name])

    def _forget(self, tried: Iterable[JoinPlan], best: JoinPlan) -> None:
        """Drop the key orders that were built for a trial and are not the best one's."""
        for name, order in set[tuple[str, tuple[int, ...]]]().union(*map(_orders, tried)) - _orders(best):
            if order not in self._built[name]:
                self.relations[name].forget(order)


class _Trial:
    """A walk that is given more steps again and again; what it finds is counted and dropped."""

    def __init__(self, plan: JoinPlan, trials: Trials, sorting: float) -> None:
        self.plan, self._sorting, self._limits = plan, sorting, trials.limits
        self._versions = {order: trials.relations[order[0]].order(order[1]) for order in _orders(plan)}
        lowered = lower(plan, self._versions, trials.encode, np.zeros(1, np.int64), Sought(jumps=False))
        walk = lowered.walk._replace(ranks=trials.ranks()) if lowered.ranked else lowered.walk
        expression_vm.run_code(lowered.prelude, 0, len(lowered.prelude), walk.regs, walk.ranks, walk.cell)
        self._walk, self._kept = walk, lowered.kept
        self._mem = next(iter(self._versions.values())).store.arena.space.mem
        self._out = np.empty((len(walk.head), ROWS), np.int64)
        self._rows = 0
        self.ended = self.failed = False

    @property
    def cost(self) -> float:
        """Steps so far, and what landings, rows and sorting are worth in steps."""
        control, row = self._walk.control, EMIT if self.plan.in_order else DEDUPE
        return float(control[cells.STEPS] + control[cells.LANDED]) + row * self._rows + self._sorting

    @property
    def progress(self) -> float:
        """The part of the walk that is done, by the matches of the first depth that has more than one or two."""
        d = next((d for d, depth in enumerate(self.plan.depths) if depth.rows >= 2.0), 0)
        return float(self._walk.depths[d, cells.MATCHES]) / max(1.0, self.plan.depths[d].rows)

    def walk(self, most: float) -> None:
        """Go on until it ends, fails, or has cost `most`."""
        control = self._walk.control
        while not (self.ended or self.failed) and (left := int(most - self.cost)) > 0:
            status = triejoin.triejoin(self._mem, self._walk, self._out, left)
            self._rows += int(control[cells.WRITTEN])
            control[cells.WRITTEN] = 0
            self.ended, self.failed = status == triejoin.FINISHED, status >= triejoin.OVERFLOW
            self._limits.look(0)


def _orders(plan: JoinPlan) -> set[tuple[str, tuple[int, ...]]]:
    return {(node.predicate, node.key_order) for node in plan.nodes}
