"""Bags whose rows are there once each: a sum over joins of them need not multiply by how often they are there.

    sum copies * copies_2 : { e(a, b, copies), e(b, c, copies_2) }    =    count : { e(a, b, _), e(b, c, _) }

A table without a key is a bag, whose last column says how often a row is there. Most hold every row once. Then that
column is not walked, and no sum of products beside the count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.plan.body import Body, body_of
from lftj.plan.joinplan import Folded, JoinPlan

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator

# Rows of a column that are looked at in the time of a step of a walk, with room to spare.
PASSED = 8


def planned(
    evaluator: Evaluator, clause: Clause, folded: Folded, limits: Limits
) -> tuple[Body, JoinPlan, frozenset[str]]:
    """The body, how its bindings would be enumerated, and the factors that are left out, since they are 1.

    A pass over a column tells, unless the walk is estimated to take so few steps that it would not pay.
    """
    relations, copies = evaluator.relations, _copies(evaluator, body_of(clause), folded)
    ones = frozenset(copies)
    body, plan = evaluator.plan(clause, limits=limits, without=ones)
    single = {
        name
        for name in {*copies.values()}
        if len(relations[name]) <= PASSED * plan.cost
        and relations[name].ends(relations[name].arity - 1) in (None, (1, 1))
    }
    if not single.issuperset(copies.values()):
        ones = frozenset(factor for factor, name in copies.items() if name in single)
        body, plan = evaluator.plan(clause, limits=limits, without=ones)
    return body, plan, ones


def _copies(evaluator: Evaluator, body: Body, folded: Folded) -> dict[str, str]:
    """The factors that say how often rows of bags are there, and which nothing else reads: of which relation."""
    held = Counter(v for scope in body.scopes for v in scope)
    last = {atom.columns[-1]: atom.predicate for atom in body.atoms if evaluator.relations[atom.predicate].schema.bag}
    return {v: name for v, name in last.items() if v in folded.factors and held[v] == 1}
