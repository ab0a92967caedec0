"""Partial functors: the terms of a clause that have no value for some arguments.

A walk takes such a term, where it has none, for a condition that does not hold. Whether the row is in error depends on
the rest of the body, for conditions come in any order: `lftj/evaluate/undefined_terms.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from lftj.language.clause import Apply, Clause, Compare, Term, Value
from lftj.language.functors import TEXT_TESTS, Constraint, known_as
from lftj.language.types import INTEGRAL, NUMBER

# The operator of a comparison that holds where its left side has no value, though the arguments of that have one.
UNDEFINED = "undefined"


def _may_fail(term: Apply) -> bool:
    spec, first = known_as(term.op), term.args[0].type
    if isinstance(spec, Constraint):
        return first in spec.partial
    if not spec.may_fail([arg.type for arg in term.args]):
        return False
    if spec.total_with is None or first not in INTEGRAL:
        return True
    second = term.args[1]
    return not (isinstance(second, Value) and spec.total_with(int(second.value)))


def partial_terms(term: Term) -> Iterator[Apply]:
    """The terms within `term`, itself included, that may have no value; arguments come before what uses them."""
    if isinstance(term, Apply):
        for arg in term.args:
            yield from partial_terms(arg)
        if _may_fail(term):
            yield term


def partial_of(compare: Compare) -> Iterator[Apply]:
    """The terms of a comparison that may have no value."""
    yield from partial_terms(compare.left)
    yield from partial_terms(compare.right)
    if compare.op in TEXT_TESTS:
        term = term_of_test(compare)
        if _may_fail(term):
            yield term


def term_of_test(compare: Compare) -> Apply:
    """The term that stands for a test of texts: 1 if it holds."""
    return Apply(compare.op.removeprefix("not_"), (compare.left, compare.right), NUMBER)


def partial_in(clause: Clause) -> tuple[Apply, ...]:
    """The terms of a clause that may have no value, each once, in the order of the text: the body, then the head."""
    found: dict[Apply, None] = {}
    for compare in clause.compares:
        found.update(dict.fromkeys(partial_of(compare)))
    for term in clause.head_args:
        found.update(dict.fromkeys(partial_terms(term)))
    return tuple(found)
