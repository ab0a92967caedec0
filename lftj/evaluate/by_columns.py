"""Aggregates over one relation, column by column: where no key order has the columns that they read in front.

    q[f, s] = sum p * (100 - d) : { item(_, f, s, p, d, day), day <= date("1998-09-02") }.

A walk would want the relation sorted by these columns, a copy of it for each aggregate of a `group by`. So the columns
that are read are copied out of its pages, conditions and terms are computed over them, a part of the rows at a time,
and what is bound is folded; what conditions define is computed where it is read. Whatever has no value is left to the
walk. So is what is asked again and again, if a key order would lead to few of the rows: then sorting pays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.evaluate.text_steps import TextColumns
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause, Compare, Term, Var, replaced, variables_of
from lftj.plan.body import body_of
from lftj.plan.joinplan import plan_join
from lftj.plan.keyorder import OrderSearch
from lftj.program.evaluation import Evaluation
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator

Ints = npt.NDArray[np.int64]

# Rows from which on a relation is read so; rows that are computed at a time.
LEAST, PART = 1 << 13, 1 << 18
# How often it is read so before it is sorted, where a walk then takes fewer steps than this part of the rows.
OFTEN, FEW = 8, 1 / 4


def bound_by_columns(
    evaluator: Evaluator, clause: Clause, limits: Limits, emit: Callable[[Ints], None]
) -> Evaluation | None:
    """Give the bindings of an aggregate's clause to `emit`, int64[width, n]; None if it is to be walked instead.

    Nothing of what was given counts then.
    """
    compared, defined = _conditions(clause)
    places = _places(clause, compared, defined)
    if places is None:
        return None
    relation = evaluator.relations[clause.atoms[0].predicate]
    if (
        len(relation) < LEAST
        or _is_in_front({*places.values()}, relation)
        or _pays_to_sort(evaluator, clause, relation)
    ):
        return None
    start = time.perf_counter()
    whole = relation.content.some_columns([*places.values()])
    found = 0
    for at in range(0, len(relation), PART):
        part = whole[:, at : at + PART]
        columns = TextColumns(dict(zip(places, part, strict=True)), part.shape[1], evaluator.symbols, evaluator.given)
        kept, wrong = columns.met(compared)
        columns.take(kept)
        columns.columns |= {name: columns.codes(term) for name, term in defined.items()}
        codes = [columns.codes(term) for term in clause.head_args]
        if wrong.any() or not columns.defined.all():
            return None
        emit(np.array(codes, np.int64).reshape(len(codes), columns.count))
        found += columns.count
        limits.look(found)
    counters = Counters(steps=len(relation), rows=found)
    body = body_of(clause, range(1), apart=True)
    search = OrderSearch(body, {relation.schema.name: relation.statistics}, False)
    plan = plan_join(body, search.forced(tuple(v for v in body.atoms[0].columns if v)), evaluator.relations)
    return Evaluation(clause, plan, counters, time.perf_counter() - start)


def _conditions(clause: Clause) -> tuple[list[Compare], dict[str, Term]]:
    """(what is compared, the variables that conditions define by the atom's); all by terms of the atom's variables."""
    bound = {arg.name for atom in clause.atoms for arg in atom.args if isinstance(arg, Var)}
    defined = dict[str, Term]()
    left = list[Compare]()
    for compare in clause.compares:
        sides = replaced(compare.left, defined), replaced(compare.right, defined)
        for one, other in (sides, sides[::-1]):
            free = isinstance(one, Var) and one.name not in bound and "?" not in (one.type[-1:], other.type[-1:])
            if compare.op == "=" and free and {v.name for v in variables_of(other)} <= bound:
                assert isinstance(one, Var)
                defined[one.name] = other
                break
        else:
            left.append(replace(compare, left=sides[0], right=sides[1]))
    compared = [replace(c, left=replaced(c.left, defined), right=replaced(c.right, defined)) for c in left]
    return compared, defined


def _places(clause: Clause, compared: Sequence[Compare], defined: Mapping[str, Term]) -> dict[str, int] | None:
    """The columns that a clause reads of its one atom, by variable; None if it is of another form."""
    if len(clause.atoms) != 1 or clause.negated or clause.threshold is not None or split_text(clause) is not None:
        return None
    arguments = [arg for arg in clause.atoms[0].args if arg is not None]
    named = {arg.name: place for place, arg in enumerate(clause.atoms[0].args) if isinstance(arg, Var)}
    sides = (side for compare in compared for side in (compare.left, compare.right))
    read = {v.name for term in (*clause.head_args, *defined.values(), *sides) for v in variables_of(term)}
    read -= defined.keys()
    if len(named) < len(arguments) or not read <= named.keys() or not read:
        return None
    return {name: place for name, place in named.items() if name in read}


def _is_in_front(places: set[int], relation: StoredRelation) -> bool:
    """Whether a key order that is built has these columns in front, in whatever order."""
    return any({*order[: len(places)]} == places for order in relation.orders)


def _pays_to_sort(evaluator: Evaluator, clause: Clause, relation: StoredRelation) -> bool:
    """Whether the clause was evaluated often by now, and a key order that is sorted for it leads to few of the rows."""
    asked: list[int] = evaluator.kept((clause, "columns"), clause, evaluator.relations, lambda: [0])
    asked[0] += 1
    if asked[0] == OFTEN:
        statistics = {relation.schema.name: relation.statistics}
        best = OrderSearch(body_of(clause), statistics, False, sort=0.0).ranked()[0]
        if best.cost >= FEW * len(relation):
            asked[0] = -(1 << 62)  # never
    return asked[0] >= OFTEN
