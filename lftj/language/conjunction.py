"""Bodies as conjunctions: negations pushed inwards, disjunctions distributed; later passes see flat lists.

    p(x) :- a(x), (b(x) ; x > 1, !(x = 2 ; c(x))).
      ->   a(x), b(x)        and        a(x), x > 1, x != 2, not c(x)

A negated comparison is its opposite, a double negation vanishes, a negated disjunction is the conjunction of the
negations (de Morgan). A fact has one conjunction, the empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lftj.language import ast
from lftj.language.functors import NEGATED

LIMIT = 1024  # alternatives of one rule; a rule with ten binary disjunctions in a row reaches it


@dataclass(frozen=True, slots=True)
class Conjunction:
    """One alternative of a body. `negated` atoms are kept for the checks; no clause is made of them yet."""

    atoms: tuple[ast.Atom, ...]
    compares: tuple[ast.Comparison, ...]
    negated: tuple[ast.Atom, ...]


def negated_atoms(body: tuple[ast.Literal, ...], negated: bool = False) -> Iterator[ast.Atom]:
    """The atoms of a body that stand under an odd number of negations."""
    for literal in body:
        if isinstance(literal, ast.Negation):
            yield from negated_atoms((literal.literal,), not negated)
        elif isinstance(literal, ast.Disjunction):
            for alternative in literal.alternatives:
                yield from negated_atoms(alternative, negated)
        elif negated and isinstance(literal, ast.Atom):
            yield literal


_Alternatives = list[tuple[ast.Literal, ...]]


def conjunctions(body: tuple[ast.Literal, ...]) -> list[Conjunction] | None:
    """The alternatives of a body in source order; None if there are more than LIMIT."""
    try:
        alternatives = _all_of(body, False)
    except OverflowError:
        return None
    return [
        Conjunction(
            tuple(x for x in literals if isinstance(x, ast.Atom)),
            tuple(x for x in literals if isinstance(x, ast.Comparison)),
            tuple(x.literal for x in literals if isinstance(x, ast.Negation) and isinstance(x.literal, ast.Atom)),
        )
        for literals in alternatives
    ]


def _all_of(literals: tuple[ast.Literal, ...], negated: bool) -> _Alternatives:
    """The alternatives of `a and b and ...`, each literal negated first if `negated` says so."""
    result: _Alternatives = [()]
    for literal in literals:
        options = _literal(literal, negated)
        if len(result) * len(options) > LIMIT:
            raise OverflowError
        result = [done + option for done in result for option in options]
    return result


def _any_of(alternatives: Iterator[_Alternatives]) -> _Alternatives:
    result: _Alternatives = []
    for options in alternatives:
        result += options
        if len(result) > LIMIT:
            raise OverflowError
    return result


def _literal(literal: ast.Literal, negated: bool) -> _Alternatives:
    if isinstance(literal, ast.Negation):
        return _literal(literal.literal, not negated)
    if isinstance(literal, ast.Disjunction):
        if not negated:
            return _any_of(_all_of(alternative, False) for alternative in literal.alternatives)
        # not (A or B) is (not A) and (not B); not (a and b) is (not a) or (not b)
        result: _Alternatives = [()]
        for alternative in literal.alternatives:
            options = _any_of(_literal(part, True) for part in alternative)
            if len(result) * len(options) > LIMIT:
                raise OverflowError
            result = [done + option for done in result for option in options]
        return result
    if not negated:
        return [(literal,)]
    if isinstance(literal, ast.Comparison):
        return [(replace(literal, op=NEGATED[literal.op]),)]
    return [(ast.Negation(literal, literal.span),)]
