"""Checks of derived contents before they stand: values that a rule needs and that are undefined, and key conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.key_conflicts import check_content
from lftj.evaluate.undefined_groups import refused_in, refused_together
from lftj.join.run import Limits
from lftj.program.strata import Heads
from lftj.program.undefined import Refused
from lftj.store.change import INSERTED, Change
from lftj.store.stored import StoredRelation

Undefined = dict[str, tuple[Refused, ...]]


def undefined_of(
    evaluator: Evaluator,
    heads: Heads,
    relations: Mapping[str, StoredRelation],
    own: tuple[Refused, ...],
    limits: Limits,
) -> Undefined:
    """Rows of `heads` without a value, where there are any; `relations`: their contents, `own`: groups of their own.

    Raises `EvaluationError` if a row that the user sees needs such a value.
    """
    if not heads.recursive:
        found = refused_in(evaluator, heads.name, own, limits)
        return {heads.name: found} if found else {}
    if not evaluator.state.refused:
        return {}
    together = refused_together(evaluator, heads.names, {**evaluator.relations, **relations}, limits)
    return {head: together[head] for head in heads.names if head in together}


def check_keys(
    evaluator: Evaluator,
    relations: Mapping[str, StoredRelation],
    changes: Mapping[str, Change] | None,
    limits: Limits,
) -> None:
    """Raise `KeyConflictError` if a functional predicate among `relations` has two values for a key.

    `changes`: how they differ from contents without conflicts; None: all rows are looked at.
    """
    for head, relation in relations.items():
        if relation.schema.functional:
            inserted = None if changes is None else changes[head].of_kind(INSERTED)
            check_content(evaluator, head, relation.content, inserted, limits)


def with_undefined(refused: Undefined, names: Iterable[str], found: Undefined) -> Undefined:
    """`refused` once `found` is what is refused of the heads `names`."""
    if not found and refused.keys().isdisjoint(names):
        return refused
    return {**{name: rows for name, rows in refused.items() if name not in names}, **found}
