"""Conjunctions and cases: put together, told apart, and split where a value may be null.

Two alternatives *exclude* one another if no row meets both. That is seen from their literals alone: one is the negation
of the other (`a = 1`, `a != 1`), two constants or ranges of a term do not meet (`a = 1`, `a > 2`), or one asks for null
of what the other computes with (`is_null(a)`, `a > 2`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from math import prod
from typing import Any, NamedTuple, Protocol

from sqlglot import exp

from lftj.language import ast
from lftj.language.functors import COMPARISONS, FUNCTORS, IS_NULL, NEGATED, NULL_TESTS, OR_NULL
from lftj.language.visitors import Node, nodes, parts
from lftj.sql.scope import Case, Conjunction, SqlScope

# More alternatives than this are refused: each becomes a rule.
LIMIT = 200
# Up to so many are a rule each, where others would have a head of their own (`computed_columns.py`).
FEW = 32
# A term of more parts has a variable where it is written twice: written out, it doubles at each level of a nest.
LARGE = 24
TRUE, FALSE = ast.Constant(True, "bool"), ast.Constant(False, "bool")
# What a predicate may be: true, false, or (None) unknown.
Truth = bool | None


class Known(NamedTuple):
    """A value that is not null, and where it is one."""

    literals: Conjunction
    term: ast.Term
    type: str


class Translator(Protocol):
    """What the translations of parts call for parts of theirs."""

    @property
    def scope(self) -> SqlScope:
        """What expressions can see."""

    def value(self, node: exp.Expr) -> list[Case]:
        """The cases of an expression."""

    def cast(self, value: Known, type: str, node: exp.Expr) -> ast.Term:
        """A value as one of another type, or an error."""

    def truth(self, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
        """Where a predicate is `wanted`, in alternatives that exclude one another."""


# Conjunctions


def joined(*conjunctions: Conjunction) -> Conjunction | None:
    """All literals of the conjunctions, each once; None if no row can meet them all."""
    first, *others = [conjunction for conjunction in conjunctions if conjunction] or [()]
    return _Joined.of(first, chain.from_iterable(others))


def products(lists: Sequence[Sequence[Conjunction]]) -> list[Conjunction]:
    """Each way to take one conjunction of each list, without those that contradict themselves."""
    found: list[Conjunction] = [()]
    for alternatives in lists:
        found = [both for one, two in product(found, alternatives) if (both := joined(one, two)) is not None]
    return found


def limited(found: list[Conjunction], node: exp.Expr, scope: SqlScope) -> list[Conjunction]:
    """The conjunctions, if they are not too many."""
    if len(found) > LIMIT:
        raise scope.source.error(
            f"this expression splits into {len(found)} alternatives",
            node,
            why=f"each becomes a rule, and up to {LIMIT} are made",
            remedy="split the query, or compute a part of it as a column of a view",
        )
    return found


def is_null(term: ast.Term) -> ast.Literal:
    """The literal that a term is null."""
    return ast.Comparison(IS_NULL, term, term)


def not_null(term: ast.Term) -> ast.Literal:
    """The literal that a term is not null."""
    return ast.Negation(is_null(term))


def computed_with(literal: ast.Literal) -> set[str]:
    """The variables that are not null where a literal holds."""
    if isinstance(literal, ast.Negation):
        inner = literal.literal
        if isinstance(inner, ast.Comparison) and inner.op != OR_NULL:  # of `!is_null(x)` too, which says so
            return {node.name for node in _strict((inner.left, inner.right))}
        return set()
    if isinstance(literal, ast.Comparison):
        return set() if literal.op in NULL_TESTS else {node.name for node in _strict((literal.left, literal.right))}
    return set()  # of an atom: null matches null where `or_null` says so


def may_have_no_value(node: Node) -> bool:
    """Whether a term may have no value, or a test of texts."""
    if isinstance(node, ast.Functor):
        return node.name not in FUNCTORS or bool(FUNCTORS[node.name].partial)
    tests = isinstance(node, ast.Comparison) and node.op not in (*COMPARISONS, *NULL_TESTS)
    return tests and not isinstance(node.left, ast.Constant)  # type: ignore[union-attr]


def _strict(terms: Iterable[Any]) -> Iterator[ast.Variable]:
    """The variables of terms, but for those that `coalesce` looks at."""
    for term in terms:
        if isinstance(term, ast.Variable):
            yield term
        elif not (isinstance(term, ast.Functor) and term.name == "coalesce"):
            yield from _strict(parts(term))


class _Joined(tuple[ast.Literal, ...]):
    """Literals that some row may meet all of, and what tells whether it can meet more.

    So a conjunction that grows is not looked through again with each literal. `negated`: what negations negate ·
    `known`, `nulls`: variables that are not null, and that are · `bounds`: the comparisons of a term with constants.
    """

    there: dict[ast.Literal, None]
    negated: set[ast.Literal]
    known: set[str]
    nulls: set[str]
    bounds: dict[ast.Term, tuple[tuple[str, Any], ...]]

    @staticmethod
    def of(before: Conjunction, more: Iterable[ast.Literal]) -> _Joined | None:
        """`before` and `more`, each literal once; None if no row can meet them all."""
        there: dict[ast.Literal, None] = {}
        if isinstance(before, _Joined):
            fresh = dict.fromkeys(literal for literal in more if literal not in before.there)
            if not fresh:
                return before
            there = before.there | fresh
            negated, known, nulls = set(before.negated), set(before.known), set(before.nulls)
            bounds = dict(before.bounds)
        else:
            there = fresh = dict.fromkeys((*before, *more))
            negated, known, nulls, bounds = set(), set(), set(), {}
        for literal in fresh:
            known |= computed_with(literal)
            if literal in negated:
                return None
            if isinstance(literal, ast.Negation):
                if literal.literal in there:
                    return None
                negated.add(literal.literal)
            elif isinstance(literal, ast.Comparison):
                if literal.op == IS_NULL and isinstance(literal.left, ast.Variable):
                    nulls.add(literal.left.name)
                elif literal.op in COMPARISONS:
                    if ast.Comparison(NEGATED[literal.op], literal.left, literal.right) in there:
                        return None
                    if isinstance(literal.right, ast.Constant):
                        found = (*bounds.get(literal.left, ()), (literal.op, literal.right.value))
                        if len(found) > 1 and _empty(found):
                            return None
                        bounds[literal.left] = found
        if not known.isdisjoint(nulls):
            return None
        made = _Joined(there)
        made.there, made.negated, made.known, made.nulls, made.bounds = there, negated, known, nulls, bounds
        return made


def _empty(bounds: Sequence[tuple[str, Any]]) -> bool:
    """Whether no value meets all comparisons with constants, of one type."""
    low: Any = None
    high: Any = None
    unequal = [value for op, value in bounds if op == "!="]
    low_open = high_open = False
    for op, value in bounds:
        if op in ("=", ">", ">=") and (low is None or value > low or (value == low and op == ">")):
            low, low_open = value, op == ">"
        if op in ("=", "<", "<=") and (high is None or value < high or (value == high and op == "<")):
            high, high_open = value, op == "<"
    if low is None or high is None:
        return False
    return bool(low > high or (low == high and (low_open or high_open or low in unequal)))


# Cases


def split(case: Case) -> list[Case]:
    """A case as one that is never null, and one that always is."""
    if case.term is None or not case.nullable:
        return [case]
    value = joined(case.literals, (not_null(case.term),))
    null = joined(case.literals, (is_null(case.term),))
    found = [] if value is None else [Case(value, case.term, case.type, nullable=False)]
    return found if null is None else [*found, null_case(null, case.type)]


def written_once(of: Translator, cases: Iterable[Case]) -> list[Case]:
    """The cases with a variable for each large term, so that what is made of them may name it more than once."""
    found = []
    for case in (part for one in cases for part in split(one)):
        if case.term is not None and sum(1 for _ in nodes((case.term,))) > LARGE:
            variable = of.scope.named(case.term)
            literals = (*case.literals, ast.Comparison("=", variable, case.term))
            case = replace(case, literals=literals, term=variable)
        found.append(case)
    return found


def null_case(literals: Conjunction, type: str = "") -> Case:
    """The case of null."""
    return Case(literals, None, type, nullable=True)


def computed(
    arguments: Sequence[Sequence[Case]], result: Callable[[Sequence[Known]], tuple[ast.Term, str]]
) -> list[Case]:
    """The cases of a function that is null where an argument is: `result` gives the term and its type where none is."""
    ways: list[tuple[Conjunction, tuple[Case, ...]]] = [((), ())]
    nulls: list[Conjunction] = []
    for cases in arguments:
        longer = []
        for (literals, chosen), case in product(ways, [part for one in cases for part in split(one)]):
            both = joined(literals, case.literals)
            if both is not None and case.term is None:
                nulls.append(both)
            elif both is not None:
                longer.append((both, (*chosen, case)))
        ways = longer
    found = []
    for literals, chosen in ways:
        term, type = result([Known(literals, case.term, case.type) for case in chosen if case.term is not None])
        found.append(Case(literals, term, type, nullable=False))
    type = found[0].type if found else _type_of_null(arguments, result)
    return [*found, *(null_case(literals, type) for literals in nulls)]


def _type_of_null(
    arguments: Sequence[Sequence[Case]], result: Callable[[Sequence[Known]], tuple[ast.Term, str]]
) -> str:
    """The type of a function whose arguments are null wherever it is asked for; "" if nothing tells it."""
    types = [next((case.type for case in cases if case.type), "") for cases in arguments]
    return result([Known((), ast.Variable("null"), type) for type in types])[1] if all(types) else ""


def values_of(of: Translator, parts: Iterable[exp.Expr]) -> list[list[Case]]:
    """The cases of parts of a function; one of each where they were too many to be combined."""
    return combined(of, [of.value(part) for part in parts])


def combined(of: Translator, values: list[list[Case]]) -> list[list[Case]]:
    """The cases of values; one of each where they were too many to be combined."""
    return of.scope.computed_apart(values) if prod(map(len, values)) > FEW else values


def of_few_cases(of: Translator, cases: list[Case]) -> list[Case]:
    """The cases of a value; one where they were too many."""
    return cases if len(cases) <= FEW else of.scope.computed_apart([cases])[0]


def plain(node: exp.Expr) -> exp.Expr:
    """An expression without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
