"""Walks that take far longer than was estimated are abandoned, and planned again by trying orders out.

Estimates are averages: there are data on which an order takes a million times as long. A walk may take `LATE` times
its estimate, and `FLOOR` steps in any case; then pilot runs (lftj/plan/sampling.py) compare its order with others. If
it is still the best the walk goes on where it was; else what it found is dropped, and another begins. After `TRIES`
orders the last one has no limit. What was abandoned stands in the counters of the walk that took its place, and in
`tx.stats`. An order that the user wants is never abandoned, nor is a walk that has given rows away. Of one that threads
have cut among them the steps of all ranges count.

What changed rows are joined with (lftj/maintain/clause_delta.py) is not planned again, but given up for an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from lftj.join.run import NO_END, Counters, Overdue
from lftj.plan.body import Body
from lftj.plan.joinplan import Abandoned, JoinPlan

# A pilot walks some ten thousand steps for each of six candidates: a few milliseconds, as FLOOR steps take.
LATE, FLOOR, TRIES = 30.0, 1 << 18, 3


class Walking(Protocol):
    """A walk that raises `Overdue` when it has taken more steps than `most`, and may go on then."""

    most: int
    counters: Counters


W = TypeVar("W", bound=Walking)
T = TypeVar("T")


def finish(
    replan: Callable[..., tuple[Body, JoinPlan]],
    plan: JoinPlan,
    begin: Callable[[JoinPlan], W | None],
    walk: Callable[[W], T],
) -> tuple[JoinPlan, W | None, T | None]:
    """(the plan that a clause was walked by in the end, the walk, what `walk` made of it).

    `replan`: `Evaluator.plan` as it made the plan, but for `abandoned` · `begin`: the walk for a plan, None if there is
    nothing to walk.
    """
    abandoned: tuple[Abandoned, ...] = ()
    while (walking := begin(plan)) is not None:
        if not plan.forced and len(abandoned) < TRIES:
            walking.most = int(max(FLOOR, min(LATE * plan.cost, NO_END >> 1)))
        try:
            return plan, walking, _walked(walking, walk, abandoned)
        except Overdue:
            late = Abandoned(plan.order, walking.most, plan.cost)
            _, better = replan(abandoned=(*abandoned, late))
            if better.order == plan.order:
                walking.most = NO_END
                return plan, walking, _walked(walking, walk, abandoned)
            plan, abandoned = better, (*abandoned, late)
    return plan, None, None


def _walked(walking: W, walk: Callable[[W], T], abandoned: tuple[Abandoned, ...]) -> T:
    found = walk(walking)
    walking.counters.abandoned = sum(late.steps for late in abandoned)
    return found
