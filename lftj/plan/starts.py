"""Key orders that grow from one variable: what a search by estimates leaves out of long bodies.

The estimate of an order multiplies one factor for each depth, so where they err a little, or the columns of a body
depend on each other, that of a long body means nothing: the search then prefers orders that jump from one end of the
body to the other. What does well whatever the data is to begin somewhere and to bind next what is connected to it and
has few matches; and of a projection, to bind the head first. Where to begin is left to those who try (trials.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lftj.language.clause import variables_of
from lftj.plan.keyorder import CROWDED, Choice, OrderSearch

# Of the variables of a body so many are begun with at most, of a crowded one so many; and so many of the head.
STARTS, SPREAD, HEADS, ALSO = 8, 6, 4, 2
# Of the orders that are the cheapest by estimate so many take part.
RANKED = 3


def grown_orders(search: OrderSearch) -> Iterator[Choice]:
    """Orders of a projection that begin with its head (`_projected`); then such as begin anywhere.

    That is: with a constant, with what a comparison or a negated atom needs, and with variables all over the body.
    """
    body, matches = search.body, search.matches
    named = [v for v in matches.names if v not in body.shown]
    begun: list[list[str]] = []
    if search.existential:
        yield from _projected(search, [v for v in named if matches.bit[v] & search.head])
    begun += [[v] for v in matches.names if v in body.shown]
    joined = [atom.variables for atom in body.atoms]
    for scope in (*(atom.variables for atom in body.negated), *(c.variables for c in body.conditions)):
        if any(scope <= variables for variables in joined):
            names = [v for v in matches.names if v in scope]
            begun += [names, names[::-1]]
    most = STARTS if len(named) <= CROWDED else SPREAD
    begun += [[v] for v in named[:: -(-len(named) // most)]]
    if len(named) > CROWDED and len(joined) == 1 and not body.negated:
        begun = begun[:ALSO]  # of one atom no order leads to dead ends, and there are as many steps as columns
    for first in begun:
        yield from _grown(search, first)


def _projected(search: OrderSearch, head: Sequence[str]) -> Iterator[Choice]:
    """Orders that begin with each of some variables of the head.

    They bind the others of the head next; or go there step by step, through what lies between. Then follows what has
    least matches; or what is near to the head, so that dead ends on one side of it are met before the walk is deep in
    another; or so in one part after the other of those that the head leaves apart, the small ones first.
    """
    far = _distances(search, search.head)
    parts = search.matches.components(search.matches.all & ~search.head)
    size = {v: part.bit_count() for part in parts for v in search.matches.named(part)}
    for i, v in enumerate(head[:HEADS]):
        first = [v, *(u for u in head if u != v)]
        yield from _grown(search, first)
        if i < ALSO:
            yield from _grown(search, first, {u: (float(far.get(u, 0)),) for u in search.names})
            if len(parts) > 1:
                yield from _grown(search, first, {u: (size.get(u, 0.0), float(far.get(u, 0))) for u in search.names})
            if len(head) > 1:
                yield from _between(search, first)


def _between(search: OrderSearch, head: Sequence[str]) -> Iterator[Choice]:
    """The order that goes from the first of the head to the nearest other one, from these to the next, and so on."""
    order, left = [head[0]], list(head[1:])
    while left:
        far = _distances(search, search.matches.mask(frozenset(order)))
        v = min(left, key=lambda u: (far.get(u, len(far)), search.rank[u]))
        way = [v]
        while far.get(way[-1], 0) > 1:
            near = search.matches.named(search.matches.neighbours[search.matches.bit[way[-1]]])
            way.append(next(u for u in near if far.get(u) == far[way[-1]] - 1))
        order += reversed(way)
        left = [u for u in left if u not in order]
    yield from _grown(search, order)


def _distances(search: OrderSearch, start: int) -> dict[str, int]:
    """How many steps each variable that is connected to `start` is away from it."""
    matches, reached, frontier, found, away = search.matches, start, start, dict[str, int](), 0
    while frontier:
        found |= dict.fromkeys(matches.named(frontier), away)
        around = 0
        for v in matches.named(frontier):
            around |= matches.neighbours[matches.bit[v]]
        frontier = around & ~reached
        reached, away = reached | frontier, away + 1
    return found


def _grown(
    search: OrderSearch, first: Sequence[str], sooner: Mapping[str, tuple[float, ...]] | None = None
) -> Iterator[Choice]:
    """The order that binds the variables `first`, connected ones sooner, then what is connected and has least matches.

    What is computed from bound variables comes at once; `sooner`: what comes before matches. Nothing where no order can
    begin so.
    """
    matches, partial, wanted = search.matches, search.start, list(first)
    while left := search.leading & ~partial.bound:
        near = matches.frontier(left, partial.bound) if partial.bound else 0
        found = []
        for v in matches.named(near or left):
            bit = matches.bit[v]
            if (known := matches.matching(bit, partial.bound)) is not None:
                place = sooner[v] if sooner is not None else ()
                found.append((not known.defined, place, known.matches, search.rank[v], v))
        found.sort()
        wanted = [v for v in wanted if matches.bit[v] & ~partial.bound]
        if wanted and (not partial.bound or not found or found[0][0]):
            v = next((v for v in wanted if matches.bit[v] & near), wanted[0])
        elif found:
            v = found[0][-1]
        else:
            return
        following = search.bind_twins(partial, v)
        if following is None:
            return
        partial = following
    yield search.choice(partial)


def varied(search: OrderSearch, choices: Sequence[Choice]) -> Iterator[Choice]:
    """Of `choices` the first `RANKED`, the first that begins with each variable, and one that needs no sorting.

    That one binds the head in the order of its columns: estimates of how many rows come out err the most.
    """
    begun = set[str]()
    for i, choice in enumerate(choices):
        if i < RANKED or choice.order[0] not in begun:
            yield choice
        begun.add(choice.order[0])
    named = [v for v in choices[0].order if v not in search.body.shown]
    head = [v.name for term in search.body.head for v in variables_of(term) if v.name in named]
    if head and not search.body.every:
        yield replace(search.forced(tuple(dict.fromkeys([*head, *named]))), forced=False)
