"""Partial functors: the terms of a clause that have no value for some arguments.

A walk takes such a term, where it has none, for a condition that does not hold. Whether the row is in error depends on
the rest of the body, for conditions come in any order: `lftj/evaluate/undefined_terms.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from lftj.language.clause import Apply, Clause, Compare, Term, Value

# The functor's name in a term that stands for the test of the same name: a bad pattern has no value.
MATCH = "match"
# The operator of a comparison that holds where its left side has no value, though the arguments of that have one.
UNDEFINED = "undefined"
_INTEGRAL = frozenset({"/", "%", "^"})
_FLOAT = frozenset({"+", "-", "*", "/", "^"})
_PARSERS = frozenset({"to_number", "to_unsigned", "to_float"})


def _may_fail(term: Apply) -> bool:
    source = term.args[0].type
    if term.op == MATCH or (term.op in _PARSERS and source == "symbol"):
        return True
    if term.type == "float" and term.op in _FLOAT:
        return True
    if source == "float" and term.type in ("number", "unsigned"):
        return True
    if term.op not in _INTEGRAL or term.type == "float" or (term.op == "^" and term.type == "unsigned"):
        return False
    known = term.args[1]
    # Only a divisor that is 0, and a negative exponent, can fail.
    return not (isinstance(known, Value) and (int(known.value) >= 0 if term.op == "^" else known.value != 0))


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
    if compare.op in (MATCH, f"not_{MATCH}"):
        term = Apply(MATCH, (compare.left, compare.right), "number")
        if _may_fail(term):
            yield term


def partial_in(clause: Clause) -> tuple[Apply, ...]:
    """The terms of a clause that may have no value, each once, in the order of the text: the body, then the head."""
    found: dict[Apply, None] = {}
    for compare in clause.compares:
        found.update(dict.fromkeys(partial_of(compare)))
    for term in clause.head_args:
        found.update(dict.fromkeys(partial_terms(term)))
    return tuple(found)
