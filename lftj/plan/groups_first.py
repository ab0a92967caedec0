"""The order of a walk that counts groups by blocks: the cheapest to enumerate, or one that binds the groups first.

Where the groups come last, as in `count : { e(x, y), f(y, z), g(z, w) }` by x in key order y, z, w, x, nothing is left
to count apart, and the walk takes as many steps as there are bindings. With x first, y, z and w are counted once for
each value of the variable before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lftj.plan.joinplan import JoinPlan, plan_join
from lftj.plan.keyorder import SORT, OrderSearch
from lftj.plan.matches import Matches
from lftj.plan.statistics import Stored

# How many times as many steps the order at hand is expected to take, before another one is taken for it.
FEWER = 2.0


def groups_first(
    search: OrderSearch,
    plan: JoinPlan,
    groups: tuple[str, ...],
    relations: Mapping[str, Stored],
    counted: Callable[[JoinPlan], JoinPlan],
) -> JoinPlan:
    """`plan`, or one that binds `groups` first if that is expected to take fewer steps as it is `counted`."""
    if plan.forced or not groups or {*plan.order[: len(groups)]} == {*groups}:
        return plan
    if not all(search.matches.holding[v] for v in groups):
        return plan
    search.begin(groups)
    choice = search.grown()
    if choice is None:
        return plan
    made = plan_join(search.body, choice, relations)
    steps = steps_by_blocks(counted(made), search.matches) + _sorting(made, relations)
    if FEWER * steps > steps_by_blocks(counted(plan), search.matches) + _sorting(plan, relations):
        return plan
    return replace(made, cost=max(made.cost, steps))


def _sorting(plan: JoinPlan, relations: Mapping[str, Stored]) -> float:
    """The cost of the key orders that would have to be built."""
    needed = {(name, order) for _, name, order in plan.uses if order not in relations[name].orders}
    return SORT * sum(len(relations[name]) for name, _ in needed)


def steps_by_blocks(plan: JoinPlan, matches: Matches) -> float:
    """The bindings that a walk by blocks is expected to meet, where none is counted twice for the same keys."""
    total, entered = 0.0, list[float]()
    for block in plan.blocks:
        # How often it is counted, and of how many bindings above it, were each counted
        above = plan.depths[block.parent].rows if block.parent >= 0 else 1.0
        often = above * entered[plan.depths[block.parent].block] if block.parent >= 0 else 1.0
        if block.keys is not None:
            keys = 1.0
            for v in block.keys:
                held = matches.holding[v]
                keys *= min([matches.distinct(a.predicate, frozenset([a.columns.index(v)])) for a in held], default=1.0)
            often = min(often, keys)
        entered.append(often / max(1.0, above))
    for depth in plan.depths:
        total += depth.rows * entered[depth.block]
    return total
