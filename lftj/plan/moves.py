"""Neighbours of a key order: the same order with one variable moved.

Where a walk took more steps than it had to, it bound a variable too soon or too late. The depth with the most matches
says where: binding something else before it may leave less to match, and so may binding it later. These moves come
first, then those of all other variables, the short ones before the long ones.

A move that leaves more variables than before with nothing bound to connect them to is none: it makes products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lftj.plan.joinplan import JoinPlan
from lftj.plan.keyorder import Choice, OrderSearch


def neighbours(search: OrderSearch, plan: JoinPlan, matches: Sequence[int]) -> Iterator[Choice]:
    """Orders that differ from the one of `plan` in the place of one variable, the likely ones first.

    `matches`: how often each depth of the plan matched, as far as it was walked.
    """
    order = order_of(search, plan)
    n, matched = len(order), dict(zip((depth.variable for depth in plan.depths), matches, strict=True))
    most = max(range(n), key=lambda d: matched[order[d]])
    moves = [(i, most) for i in range(most + 1, n)]
    moves += [(most, j) for j in range(most + 1, n)]
    moves += sorted(((i, j) for i in range(n) for j in range(n)), key=lambda move: abs(move[0] - move[1]))
    loose = _loose(search, order)
    seen = {order}
    for i, j in moves:
        moved = [*order[:i], *order[i + 1 :]]
        moved.insert(j, order[i])
        if (other := tuple(moved)) not in seen:
            seen.add(other)
            if _loose(search, other) <= loose and (choice := search.along(other)) is not None:
                yield choice


def order_of(search: OrderSearch, plan: JoinPlan) -> tuple[str, ...]:
    """The variables of a plan in key order, those that stand for constants among them."""
    return tuple(depth.variable for depth in plan.depths if depth.variable in search.rank)


def _loose(search: OrderSearch, order: Sequence[str]) -> int:
    """How many variables of an order nothing connects to those before them."""
    bits, near, bound, found = search.matches.bit, search.matches.neighbours, 0, 0
    for v in order:
        found += not near[bits[v]] & bound
        bound |= bits[v]
    return found
