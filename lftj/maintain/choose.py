"""Choosing how heads follow a change: the one list of strategies, and the one place that chooses.

The first strategy that fits is taken, in order of preference; but what is already kept of a head and holds is gone on
from. Then its cost decides: following the change, or evaluating again. What following took is measured where enough
rows changed, and corrects the next estimate; a trace, or deltas, that took longer than the other is expected to, by as
much as preparing that takes, gives way to it.
"""

from __future__ import annotations

import time
import weakref

from lftj.join.run import Limits
from lftj.language.options import VALUES
from lftj.maintain.alias import Alias
from lftj.maintain.by_partition import ByPartition
from lftj.maintain.cost import FARTHEST, GIVEN_UP, LOATH, MANY, following
from lftj.maintain.delta import Delta
from lftj.maintain.derivations import KeptDerivations
from lftj.maintain.first import First
from lftj.maintain.levels import Levels
from lftj.maintain.paths import Paths
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import CostComparison, Reason
from lftj.maintain.rounds import Rounds
from lftj.maintain.scan import Scan
from lftj.maintain.step import Step
from lftj.maintain.strategy import Declined, Kept, Staged, Strategy
from lftj.maintain.trace import Trace
from lftj.maintain.triggers import Triggers
from lftj.program.strata import Heads

# Nanoseconds up to which the system takes to back a byte (measured: 0.1 on a host, up to 5 in a virtual machine).
BACKED = 5.0
DELTA = Delta()
TRIGGERS = Triggers(DELTA)
STRATEGIES: list[Strategy] = [
    Levels(),
    Rounds(),
    Paths(),
    First(),
    ByPartition(),
    Alias(),
    Scan(),
    TRIGGERS,
    DELTA,
    Trace(),
    RECOMPUTE,
]


def register(strategy: Strategy, *, asked: bool = True) -> None:
    """Prefer one more strategy to all others; `asked`: and let users ask for it as `maintain`."""
    STRATEGIES.insert(0, strategy)
    if asked:
        VALUES["maintain"] = (*VALUES["maintain"], strategy.name)


def follow(step: Step, heads: Heads, limits: Limits) -> Staged:
    """`heads` after the step, by the strategy that is chosen."""
    name, kept, why, estimated = choose(step, heads)
    if kept is not None:
        try:
            if estimated is None:
                return kept.apply(step, heads, why, limits)
            arena, orders = step.evaluator.arena, _orders(step, heads)
            used, began = arena.ever_used, time.thread_time_ns()
            staged = kept.apply(step, heads, why, limits)
            took = time.thread_time_ns() - began
            # Else it sorted relations, or had memory backed, for the changes after it as well.
            if _orders(step, heads) == orders and BACKED * (arena.ever_used - used) < took:
                _learn(step, heads, kept, staged, estimated, took)
            return staged
        except Declined as declined:
            if isinstance(why, CostComparison):
                _give_up(step, heads, kept, why, estimated)
                name = RECOMPUTE.name
            why = declined.args[0]
    staged = named(name).prepare(step, heads, why, limits)
    if staged.kept is None:
        costs = step.kept.costs_of(heads)
        costs.evaluated = weakref.ref(staged.relations[heads.name].content)
        costs.anew = costs.anew[1], sum(done.cpu for done in staged.evaluations.values())
    return staged


def _orders(step: Step, heads: Heads) -> int:
    """How many key orders what `heads` read has before the step, after it or both: one that it renews counts once."""
    before, found = step.before.relations, 0
    for name in heads.reads:
        now = step.after[name]
        was = before.get(name, now)
        found += len(now.orders) if was is now else len({*was.orders, *now.orders})
    return found


def _learn(step: Step, heads: Heads, kept: Kept, staged: Staged, estimated: CostComparison, took: float) -> None:
    """Following the change took so many nanoseconds."""
    costs = step.kept.costs_of(heads)
    costs.learn(kept.strategy, estimated, took)
    if not isinstance(kept, KeptDerivations):
        return
    priced = following(estimated.rows, staged.steps, 0, by_delta=kept.by_delta)
    if costs.regrets(kept.strategy, step.changes, estimated, priced):
        staged.kept = None
        costs.evaluated = weakref.ref(staged.relations[heads.name].content)


def _give_up(step: Step, heads: Heads, kept: Kept, compared: CostComparison, estimated: CostComparison | None) -> None:
    """Following the change was abandoned: evaluating would have been done by then."""
    costs = step.kept.costs_of(heads)
    if estimated is not None:
        costs.learn(kept.strategy, estimated, FARTHEST * estimated.following)
    costs.refuse(kept.strategy, compared._replace(following=2.0 * compared.anew))
    costs.abandon(kept.strategy)


def choose(step: Step, heads: Heads) -> tuple[str, Kept | None, Reason, CostComparison | None]:
    """(the strategy's name, what it follows the change by, why so, the estimate if what it takes is to be learnt from).

    Without the second, the strategy prepares.
    """
    kept = step.kept.heads.get(heads.name)
    may_come_back = kept is not None and kept.strategy != TRIGGERS.name and step.state.maintain
    if kept is None or not kept.holds_for(step, heads) or (may_come_back and TRIGGERS.comes_back(step, heads)):
        if RECOMPUTE.name in step.asked(heads):
            return RECOMPUTE.name, None, RECOMPUTE.unprepared(step, heads), None
        strategy = fitting(step, heads)
        kept = strategy.kept(step, heads)
        if kept is None:
            return strategy.name, None, strategy.unprepared(step, heads), None
    cost = kept.estimate(step, heads)
    if not isinstance(cost.why, CostComparison):
        return kept.strategy, kept if cost.worth else None, cost.why, None
    compared, estimated = cost.why, None
    if compared.rows >= MANY:
        estimated = compared
        compared = step.kept.costs_of(heads).corrected(kept.strategy, compared)
    if compared.following <= max(LOATH * compared.anew, GIVEN_UP * compared.lost):
        return kept.strategy, kept, compared, estimated
    step.kept.costs_of(heads).refuse(kept.strategy, compared)
    return RECOMPUTE.name, None, compared, None


def fitting(step: Step, heads: Heads) -> Strategy:
    """The first strategy that fits; the last one fits all heads."""
    for strategy in STRATEGIES:
        if not strategy.fits(step, heads):
            break
    return strategy


def named(name: str) -> Strategy:
    """The strategy called `name`."""
    for strategy in STRATEGIES:
        if strategy.name == name:
            return strategy
    raise KeyError(name)


def at_rest(step: Step, heads: Heads) -> tuple[Strategy, str]:
    """(how `heads` follow changes; why the strategy before that in the list does not fit)."""
    if RECOMPUTE.name in step.asked(heads) and not heads.recursive:
        return RECOMPUTE, ""
    kept = step.kept.heads.get(heads.name)
    own = kept.strategy if kept is not None and kept.clauses == heads.clauses else None
    own = None if own == Alias.name else own  # a head is an alias as long as that fits
    why = ""
    for strategy in STRATEGIES:
        why_not = strategy.fits(step, heads)
        if strategy.name == own or (own is None and not why_not):
            return strategy, why
        why = why_not
    raise AssertionError("the last strategy fits all heads")
