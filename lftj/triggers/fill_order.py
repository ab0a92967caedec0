"""The order in which maps are filled: which relation's rows come first.

A statement reads the maps of the other relations, and does nothing where one of them is empty. So what is walked
depends on what came before, and the maps are the same in the end:

    q[d] += 1 for each doc(d, r), can(u, r)      doc first: each row of can runs through the documents of its r
                                                 can first: they are counted by r, and each row of doc looks one up

The cost of a relation after others is estimated as that of the statements of its events, from the program's estimates
of maps. Of few relations the best order is found, the subsets of those that are there being what it depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from lftj.triggers.algebra import EVENT, INSERTION, MapRead, Statement, TriggerProgram
from lftj.triggers.formulas import binds, relations_of

# For each map that a statement reads: the relations that the map needs, as bits, and the entries that are visited if
# one of them is not there; last what is visited if all are, under a bit that none has.
Walk: TypeAlias = list[tuple[int, float]]
# Of more relations the order is the given one: 2^8 subsets are looked at in some milliseconds.
_MOST_RELATIONS = 8


def fill_order(program: TriggerProgram, rows: Mapping[str, float]) -> list[str]:
    """The relations of a program, with so many `rows` each, in the order in which they fill the maps at least cost."""
    relations = list(program.relations)
    if not 1 < len(relations) <= _MOST_RELATIONS:
        return relations
    bits = {name: 1 << place for place, name in enumerate(relations)}
    reads = {name: sum(bits[held] for held in relations_of(made.body)) for name, made in program.maps.items()}
    walks = {
        name: [_walk(program, statement, reads) for statement in program.statements.get((INSERTION, name), ())]
        for name in relations
    }

    @cache
    def best(there: int) -> tuple[float, tuple[str, ...]]:
        """The least cost of the relations that are not `there` yet, and their order."""
        ways = []
        for place, (name, bit) in enumerate(bits.items()):
            if not there & bit:
                after = there | bit
                cost, order = best(after)
                ways.append(
                    (rows[name] * sum(_visits(walk, after) for walk in walks[name]) + cost, place, (name, *order))
                )
        if not ways:
            return 0.0, ()
        cost, _, order = min(ways)
        return cost, order

    return list(best(0)[1])


def _walk(program: TriggerProgram, statement: Statement, reads: Mapping[str, int]) -> Walk:
    """What a statement visits for an event, read by read. `reads`: the relations of each map, as bits."""
    count, total = 1.0, 1.0
    walk = []
    known = {name for factor in statement.factors for name in binds(factor) if name.startswith(EVENT)}
    for factor in statement.factors:
        if isinstance(factor, MapRead):
            walk.append((reads[factor.name], total + count))
            estimate = program.estimates.get(factor.name)
            found = 1.0 if estimate is None else estimate.visits(factor, known)
            total += count * max(1.0, found)
            count *= found
        known |= binds(factor)
    return [*walk, (-1, total)]


def _visits(walk: Walk, there: int) -> float:
    """The entries that a statement visits for an event, where only maps of relations that are `there` hold any."""
    return next(visits for needed, visits in walk if needed & ~there)
