"""Checks of derived contents before they stand: values that a rule needs and that are undefined, and key conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.key_conflicts import check_content
from lftj.evaluate.undefined_groups import undefined_in, undefined_together
from lftj.join.run import Limits
from lftj.program.strata import Heads
from lftj.program.undefined import UndefinedRows
from lftj.store.change import INSERTED, Change
from lftj.store.stored import StoredRelation

Undefined = dict[str, tuple[UndefinedRows, ...]]


def undefined_of(
    evaluator: Evaluator,
    heads: Heads,
    relations: Mapping[str, StoredRelation],
    own: tuple[UndefinedRows, ...],
    limits: Limits,
) -> Undefined:
    """Rows of `heads` without a value, where there are any; `relations`: their contents, `own`: groups of their own.

    Raises `EvaluationError` if a row that the user sees needs such a value.
    """
    if not heads.recursive:
        found = undefined_in(evaluator, heads.name, own, limits)
        return {heads.name: found} if found else {}
    if not evaluator.state.undefined:
        return {}
    together = undefined_together(evaluator, heads.names, {**evaluator.relations, **relations}, limits)
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


def with_undefined(undefined: Undefined, names: Iterable[str], found: Undefined) -> Undefined:
    """`undefined` with `found` for the heads `names`."""
    if not found and undefined.keys().isdisjoint(names):
        return undefined
    return {**{name: rows for name, rows in undefined.items() if name not in names}, **found}
