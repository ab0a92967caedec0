"""Key orders that grow from one variable: what a search by estimates leaves out of long bodies.

The estimate of an order multiplies one factor for each depth, so where they err a little, or the columns of a body
depend on each other, that of a long body means nothing: the search then prefers orders that jump from one end of the
body to the other. What does well whatever the data is to begin somewhere and to bind next what is connected to it and
has few matches; and of a projection, to bind the head first. Where to begin is left to those who try (trials.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lftj.plan.keyorder import CROWDED, Choice, OrderSearch

# Of the variables of a body so many are begun with at most, of a crowded one so many; and so many of the head.
STARTS, SPREAD, HEADS = 12, 8, 4


def grown_orders(search: OrderSearch) -> Iterator[Choice]:
    """Orders that bind the head first, beginning with each of its variables; then such as begin anywhere.

    That is: with a constant, with what a comparison or a negated atom needs, and with variables all over the body.
    """
    body, matches = search.body, search.matches
    named = [v for v in matches.names if v not in body.shown]
    begun: list[list[str]] = []
    if search.existential:
        head = [v for v in named if matches.bit[v] & search.head]
        begun += [[v, *(u for u in head if u != v)] for v in head[:HEADS]]
    begun += [[v] for v in matches.names if v in body.shown]
    joined = [atom.variables for atom in body.atoms]
    for scope in (*(atom.variables for atom in body.negated), *(c.variables for c in body.conditions)):
        if any(scope <= variables for variables in joined):
            names = [v for v in matches.names if v in scope]
            begun += [names, names[::-1]]
    most = STARTS if len(named) <= CROWDED else SPREAD
    begun += [[v] for v in named[:: -(-len(named) // most)]]
    for first in begun:
        yield from _grown(search, first)


def _grown(search: OrderSearch, first: Sequence[str]) -> Iterator[Choice]:
    """The order that binds the variables `first`, connected ones sooner, then what is connected and has least matches.

    What is computed from bound variables comes at once. Nothing where no order can begin so.
    """
    matches, partial, wanted = search.matches, search.start, list(first)
    while left := matches.all & ~partial.bound:
        near = matches.frontier(left, partial.bound) if partial.bound else 0
        found = []
        for v in matches.names:
            bit = matches.bit[v]
            if (near or left) & bit and (known := matches.matching(bit, partial.bound)) is not None:
                found.append((not known.defined, known.matches, search.rank[v], v))
        found.sort()
        wanted = [v for v in wanted if matches.bit[v] & left]
        if wanted and (not partial.bound or not found or found[0][0]):
            v = next((v for v in wanted if matches.bit[v] & near), wanted[0])
        elif found:
            v = found[0][-1]
        else:
            return
        following = search.bind(partial, v)
        if following is None:
            return
        partial = following
    yield search.choice(partial)
