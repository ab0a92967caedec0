"""Choosing how heads follow a change: the one list of strategies, and the one place that chooses.

The first strategy that fits is taken, in order of preference; but what is already kept of a head and holds is gone on
from. Then its cost decides: following the change, or evaluating again.
"""

from __future__ import annotations

from lftj.join.run import Limits
from lftj.language.options import VALUES
from lftj.maintain.alias import Alias
from lftj.maintain.delta import Delta
from lftj.maintain.paths import Paths
from lftj.maintain.recompute import RECOMPUTE
from lftj.maintain.report import Reason
from lftj.maintain.rounds import Rounds
from lftj.maintain.scan import Scan
from lftj.maintain.step import Step
from lftj.maintain.strategy import Declined, Kept, Staged, Strategy
from lftj.maintain.trace import Trace
from lftj.program.strata import Heads

STRATEGIES: list[Strategy] = [Rounds(), Paths(), Alias(), Scan(), Delta(), Trace(), RECOMPUTE]


def register(strategy: Strategy, *, asked: bool = True) -> None:
    """Prefer one more strategy to all others; `asked`: and let users ask for it as `maintain`."""
    STRATEGIES.insert(0, strategy)
    if asked:
        VALUES["maintain"] = (*VALUES["maintain"], strategy.name)


def follow(step: Step, heads: Heads, limits: Limits) -> Staged:
    """`heads` after the step, by the strategy that is chosen."""
    strategy, kept, why = choose(step, heads)
    if kept is not None:
        try:
            return kept.apply(step, heads, why, limits)
        except Declined as declined:
            why = str(declined)
    return strategy.prepare(step, heads, why, limits)


def choose(step: Step, heads: Heads) -> tuple[Strategy, Kept | None, Reason]:
    """(the strategy, what it follows the change by, why so); without the second, the strategy prepares."""
    asked = step.asked(heads)
    if RECOMPUTE.name in asked:
        return RECOMPUTE, None, RECOMPUTE.unprepared(step, heads)
    kept = step.kept.heads.get(heads.name)
    if kept is not None and kept.holds_for(step, heads):
        strategy = named(kept.strategy)
    else:
        strategy = next(one for one in STRATEGIES if not one.fits(step, heads))
        kept = strategy.kept(step, heads)
    if kept is None:
        return strategy, None, strategy.unprepared(step, heads)
    cost = kept.estimate(step, heads)
    return strategy, kept if cost.worth else None, cost.why


def named(name: str) -> Strategy:
    """The strategy called `name`."""
    return next(strategy for strategy in STRATEGIES if strategy.name == name)


def at_rest(step: Step, heads: Heads) -> tuple[Strategy, str]:
    """(how `heads` follow changes; why the strategy before that in the list does not fit)."""
    if RECOMPUTE.name in step.asked(heads) and not heads.recursive:
        return RECOMPUTE, ""
    kept = step.kept.heads.get(heads.name)
    own = kept.strategy if kept is not None and kept.clauses == heads.clauses else None
    why = ""
    for strategy in STRATEGIES:
        why_not = strategy.fits(step, heads)
        if strategy.name == own or (own is None and not why_not):
            return strategy, why
        why = why_not
    raise AssertionError("the last strategy fits all heads")
