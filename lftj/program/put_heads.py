"""Heads that no text of rules derives: outputs of circuits, and path counts.

A head may be a relation that is there, if that has the same columns, no rows and no rules: what an earlier output or
rule of the name has left. Rules that read it are then derived after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lftj.errors import DataError
from lftj.language.clause import Clause
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values.schema import Schema


def with_heads(
    state: State,
    clauses: Sequence[Clause],
    schemas: Sequence[Schema],
    new: Callable[[Schema], StoredRelation],
    *,
    why: str,
    remedy: Callable[[str], str],
) -> State:
    """`state` with stale heads, one for each of `schemas`, bottom up, derived by `clauses`. `new` makes a relation.

    Raises `DataError` if a name is taken, for which `why` and `remedy` are given, or a head would read itself.
    """
    names = [schema.name for schema in schemas]
    made = {}
    for name, schema in zip(names, schemas, strict=True):
        there = state.relations.get(name)
        if there is not None and (there.schema != schema or state.strata.of(name) or len(there.facts)):
            raise DataError(
                f"there is a relation `{name}` already: {there.schema}",
                why=f"{why}, and this one has rows or rules" if there.schema == schema else why,
                remedy=remedy(name),
            )
        made[name] = there or new(schema)
    above = state.strata.above(names)
    for clause in clauses:
        for read in clause.reads:
            if read in above or read in names[names.index(clause.head) :]:
                raise DataError(
                    f"`{clause.head}` cannot be derived from `{read}`",
                    why=f"rules derive `{read}` from `{clause.head}`, so that it would be derived from itself",
                    remedy=f"remove these rules, or {remedy(clause.head)}",
                )
    below = [head for head in state.strata.order if head not in above]
    strata = state.strata.extended(clauses, (*below, *names, *(head for head in state.strata.order if head in above)))
    return state._replace(relations={**state.relations, **made}, strata=strata).made_stale(names)
