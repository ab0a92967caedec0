"""Trials: key orders are raced for some thousand steps before one is chosen.

What estimates from averages say of many variables is a product of as many errors (starts.py), and of few ones it is off
by several times where the columns of a body depend on each other. A walk costs some nanoseconds a step, and a tenth of
a millisecond to set up: less than the search for its order. The cheapest by estimate walks alone at first: if it ends
at once, or has taken not much more steps than its rows ask of any order, nothing else is tried.

Else candidates walk in turn, `FIRST` steps each, then the half of them that came farthest `FASTER` times as many, until
some end. How far a walk came is told by the rows it has found, where it finds no row twice: all such orders find as
many in the end. And by the part of its first keys that it has passed, for the others.

Then neighbours of the best one (moves.py) are tried, `MOVES` of them at most. Walks that bind the same variables first
meet the same keys there in the same order; so whichever stands at the greater key after as many steps is the better
one, and most neighbours are given up after a part of the steps that the best one took.

If none ends within `LAST` steps, all that is known is that every order takes longer. Then pilot runs (sampling.py)
decide, which try larger joins on a sample. Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join import expression_vm, triejoin
from lftj.join import join_state as cells
from lftj.join.run import Limits
from lftj.language.clause import names_of
from lftj.plan.joinplan import JoinPlan
from lftj.plan.keyorder import DEDUPE, EMIT, SORT, Choice
from lftj.plan.lowering import Encode, SeekHints, lower
from lftj.plan.statistics import Stored

# Bodies of so many variables are tried.
TRIED = 2
# Steps within which the first one ends at once; those of the first round per variable, about as long as it takes to set
# up a walk; how they grow; and those of the last round.
AT_ONCE, FIRST, FASTER, LAST = 64, 2048, 4, 1 << 19
# After each round the half that came farthest goes on, but so many at least.
LEAST = 2
# A walk is good if it takes at most so many times the steps that its rows alone ask for, and AT_ONCE.
ENOUGH = 2.0
# Neighbours that are tried; they are looked at early, after this part of the steps of the best one, and have to take
# clearly fewer. Where the best one did not end they walk so far.
MOVES, EARLY, CLEARLY, CLIMB = 4, 0.25, 0.8, 1 << 15
# Steps that a trial goes on by at least, and rows of the buffer that it writes to.
STRIDE, ROWS = 64, 1 << 10
# A key order whose sorting would cost as much is not tried.
SORTED = 1 << 17

Ranks = Callable[[], npt.NDArray[np.int64]]


class Trials:
    """The trials of one body over `relations`: walks from one plan each, and the key orders that were built for them.

    `encode`, `ranks`: codes of constants, and of symbols by the order of their texts.
    """

    def __init__(self, relations: Mapping[str, Stored], encode: Encode, ranks: Ranks, limits: Limits) -> None:
        self.relations, self.encode, self.ranks, self.limits = relations, encode, ranks, limits
        self._built = {name: set(relation.orders) for name, relation in relations.items()}

    def best_of(
        self,
        first: JoinPlan,
        choices: Callable[[], Iterable[Choice]],
        plan: Callable[[Choice], JoinPlan],
        near: Callable[[JoinPlan, Sequence[int]], Iterable[Choice]],
        last: int = LAST,
    ) -> tuple[JoinPlan, bool]:
        """The plan that takes the least steps of `first`, `choices` and what they lead to; whether it ends by `last`.

        `choices` are asked for unless `first` is good · `near`: the neighbours of a plan, whose depths matched so often
        (moves.py).
        """
        if not first.nodes:
            return first, True
        alone = _Trial(first, self, 0.0)
        alone.walk(FIRST * len(first.depths))
        if alone.good:
            return first, True
        self._needed = _orders(first)
        self._tried = {first.order: alone}
        walks = [alone, *filter(None, (self._begin(plan(choice)) for choice in choices()))]
        if len(walks) == 1:
            return first, True
        self._last = last
        best = self._climb(self._race(walks), plan, near)
        tried = [trial.plan for trial in self._tried.values()]
        self._forget(tried, best.plan if best.ended else first)
        return (replace(best.plan, cost=best.cost) if best.ended else best.plan), best.ended

    def _begin(self, plan: JoinPlan) -> _Trial | None:
        """A trial of `plan`; None if there was one, or if too many rows would have to be sorted for it."""
        sorting = self._sorting(_orders(plan) - self._needed)
        if plan.order in self._tried or sorting >= SORTED:
            return None
        trial = self._tried[plan.order] = _Trial(plan, self, sorting)
        return trial

    def _race(self, running: list[_Trial]) -> _Trial:
        """The one that ends with the least cost, or that came farthest within `LAST`."""
        budget, ended = 0.0, list[_Trial]()
        while budget < self._last and not ended:
            budget = min(max(budget * FASTER, float(FIRST * len(running[0].plan.depths))), self._last)
            for trial in running:
                trial.walk(min([budget, *(other.cost for other in ended)]))
                if trial.ended:
                    ended.append(trial)
            running = _farthest(running, max(LEAST, len(running) // 2))
        return min(ended, key=lambda trial: trial.cost) if ended else running[0]

    def _climb(
        self,
        best: _Trial,
        plan: Callable[[Choice], JoinPlan],
        near: Callable[[JoinPlan, Sequence[int]], Iterable[Choice]],
    ) -> _Trial:
        """`best`, or what is reached from it by going to a better neighbour again and again."""
        most, better = len(self._tried) + MOVES, True
        while better and not best.good:
            better = False
            for choice in near(best.plan, best.matches):
                if len(self._tried) >= most:
                    break
                trial = self._begin(plan(choice))
                if trial is not None and trial.beats(best):
                    best, better = trial, True
                    break
        best.walk(self._last)
        return best

    def _sorting(self, orders: set[tuple[str, tuple[int, ...]]]) -> float:
        """Cost of sorting those of `orders` that are not there."""
        return SORT * sum(len(self.relations[name]) for name, order in orders if order not in self._built[name])

    def _forget(self, tried: Iterable[JoinPlan], best: JoinPlan) -> None:
        """Drop the key orders that were built for a trial and are not the best one's."""
        for name, order in set[tuple[str, tuple[int, ...]]]().union(*map(_orders, tried)) - _orders(best):
            if order not in self._built[name]:
                self.relations[name].forget(order)


def _farthest(trials: Sequence[_Trial], many: int) -> list[_Trial]:
    """The trials that came farthest: by turns in rows for what they cost, and in keys."""
    by_rows = sorted((trial for trial in trials if trial.distinct), key=lambda trial: -trial.yielded)
    by_keys = sorted(trials, key=lambda trial: -trial.progress)
    turns = [trial for pair in zip_longest(by_rows, by_keys) for trial in pair if trial is not None]
    return list(dict.fromkeys(turns))[:many]


class _Mark(NamedTuple):
    """What a trial had cost when it stood at `keys`, those of the depths that were bound."""

    cost: float
    keys: tuple[int, ...]


class _Trial:
    """A walk that is given more steps again and again; what it finds is counted and dropped."""

    def __init__(self, plan: JoinPlan, trials: Trials, sorting: float) -> None:
        self.plan, self._sorting, self._limits = plan, sorting, trials.limits
        self._versions = {order: trials.relations[order[0]].order(order[1]) for order in _orders(plan)}
        lowered = lower(plan, self._versions, trials.encode, np.zeros(1, np.int64), SeekHints(jumps=False))
        walk = lowered.walk._replace(ranks=trials.ranks()) if lowered.ranked else lowered.walk
        expression_vm.run_code(lowered.prelude, 0, len(lowered.prelude), walk.regs, walk.ranks, walk.cell)
        self._walk, self._kept = walk, lowered.kept
        self._mem = next(iter(self._versions.values())).store.arena.space.mem
        self._out = np.empty((len(walk.head), ROWS), np.int64)
        self._rows = 0
        self.ended = self.failed = False
        self._marks = [_Mark(0.0, ())]
        # Whether it finds no row twice.
        head = names_of(*plan.head)
        self.distinct = plan.in_order or all(d.definition is not None or d.variable in head for d in plan.depths)

    @property
    def good(self) -> bool:
        """Whether it ended, and no order would take much less.

        Any takes a step at each depth for a row that is found in order, or one at the last, and sorts it out.
        """
        suffix = sum(depth.definition is None for depth in self.plan.depths[self.plan.until :])
        least = self._rows * (1.0 + min(EMIT + suffix, DEDUPE)) if self.distinct else 0.0
        return self.ended and self.cost <= AT_ONCE + ENOUGH * least

    @property
    def yielded(self) -> float:
        """Rows for what it has cost."""
        return self._rows / max(1.0, self.cost)

    @property
    def matches(self) -> list[int]:
        """How often each depth matched so far."""
        found: list[int] = self._walk.depths[:, cells.MATCHES].tolist()
        return found

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
            # Landings and rows come on top of steps: by halves, so that it does not go far beyond.
            status = triejoin.triejoin(self._mem, self._walk, self._out, max(left // 2, STRIDE))
            self._rows += int(control[cells.WRITTEN])
            control[cells.WRITTEN] = 0
            self.ended, self.failed = status == triejoin.FINISHED, status >= triejoin.OVERFLOW
            self._limits.look(0)
            bound = int(control[cells.DEPTH]) + int(control[cells.ENTER] != triejoin.OPENING)
            self._marks.append(_Mark(self.cost, tuple(self._walk.regs[:bound].tolist())))

    def beats(self, best: _Trial) -> bool:
        """Walk until it is clear whether this one takes fewer steps than `best`."""
        pairs = zip(self.plan.depths, best.plan.depths, strict=True)
        alike = next((d for d, (own, its) in enumerate(pairs) if own.variable != its.variable), 0)
        if self.plan.counting:
            alike = min(1, alike)  # what is counted apart is not walked in the order of its keys
        there = best._mark(EARLY * best.cost if best.ended else CLIMB)
        if keys := there.keys[:alike]:
            self.walk(there.cost)
            if not self.ended and self._marks[-1].keys[:alike] < keys:
                return False
        if best.ended:
            self.walk(CLEARLY * best.cost)
            return self.ended
        return self._marks[-1].keys[:alike] > keys

    def _mark(self, cost: float) -> _Mark:
        """Where it stood when it had last stopped within `cost`."""
        return next(mark for mark in reversed(self._marks) if mark.cost <= cost)


def _orders(plan: JoinPlan) -> set[tuple[str, tuple[int, ...]]]:
    return {(node.predicate, node.key_order) for node in plan.nodes}
