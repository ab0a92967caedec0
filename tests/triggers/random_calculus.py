"""Random terms and formulae of the calculus, and their meaning by the paper's definition (Cumulus, section 3.1)."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator

from hypothesis import strategies as st

from lftj.errors import ProgramError
from lftj.triggers.calculus import (
    AndFormula,
    AtomFormula,
    CallTerm,
    ConstantTerm,
    ConstraintFormula,
    OrFormula,
    PlusTerm,
    ProductTerm,
    SumTerm,
    TruthFormula,
    VariableTerm,
    check,
    safe,
)

ARITIES = {"R": 2, "S": 1}
_NAMES = "xyz"
_OPS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}


# --- meaning ----------------------------------------------------------------------------------------------------------


def term_value(term, rows, at):
    """The value of a term where the bound variables have the values `at`."""
    match term:
        case VariableTerm(name):
            return at[name]
        case ConstantTerm(value):
            return value
        case CallTerm("max", args):
            return max(term_value(arg, rows, at) for arg in args)
        case ProductTerm((first, *rest)):
            product = term_value(first, rows, at)
            for part in rest:
                product *= term_value(part, rows, at)
            return product
        case PlusTerm(parts):
            return sum(term_value(part, rows, at) for part in parts)
        case SumTerm(inner, formula):
            # What one alternative of an `or` binds and another does not is nothing to the term.
            seen = safe(formula, at)
            found = valuations(formula, rows, at)
            return sum(n * term_value(inner, rows, {x: new[x] for x in seen}) for new, n in found)


def valuations(formula, rows, at) -> Iterator[tuple[dict, int]]:
    """The valuations of the safe variables, with multiplicities; a conjunction in an order that can be evaluated."""
    match formula:
        case TruthFormula(value):
            if value:
                yield at, 1
        case AtomFormula(relation, args):
            for row, n in rows[relation].items():
                new = dict(at)
                if all(new.setdefault(arg.name, v) == v for arg, v in zip(args, row, strict=True)):
                    yield new, n
        case ConstraintFormula("=", VariableTerm(name), term) if name not in at:
            yield {**at, name: term_value(term, rows, at)}, 1
        case ConstraintFormula("=", term, VariableTerm(name)) if name not in at:
            yield {**at, name: term_value(term, rows, at)}, 1
        case ConstraintFormula(op, left, right):
            if _OPS[op](term_value(left, rows, at), term_value(right, rows, at)):
                yield at, 1
        case OrFormula(parts):
            for part in parts:
                yield from valuations(part, rows, at)
        case AndFormula(parts):
            first = next(part for part in parts if _evaluable(part, at))
            rest = [part for part in parts if part is not first]
            following = AndFormula(tuple(rest)) if rest else TruthFormula(True)
            for new, n in valuations(first, rows, at):
                for newer, m in valuations(following, rows, new):
                    yield newer, n * m


def _evaluable(formula, at):
    """Whether all that a formula reads has a value, given that the variables of `at` have one."""
    return valid(SumTerm(ConstantTerm(1), formula), at)


def valid(term, bound):
    """Whether a term is valid under bound variables."""
    try:
        check(term, bound)
    except ProgramError:
        return False
    return True


# --- random ones ------------------------------------------------------------------------------------------------------


@st.composite
def scalars(draw, bound):
    """A term without Sums over bound variables."""
    leaves = [*map(VariableTerm, sorted(bound)), ConstantTerm(2), ConstantTerm(-1), ConstantTerm(0)]
    kind = draw(st.integers(0, 5))
    if kind < 4:
        return draw(st.sampled_from(leaves))
    two = tuple(draw(st.sampled_from(leaves)) for _ in range(2))
    return (PlusTerm, ProductTerm)[kind - 4](two)


@st.composite
def formulae(draw, bound=frozenset(), depth=2):
    """A formula whose comparisons read safe variables."""
    kind = draw(st.integers(0, 7))
    if depth and kind in (0, 1, 2):
        first = draw(formulae(bound, depth - 1))
        second = draw(formulae(safe(first, bound), depth - 1))
        return AndFormula((first, second)) if draw(st.booleans()) else AndFormula((second, first))
    if depth and kind == 3:
        return OrFormula((draw(formulae(bound, depth - 1)), draw(formulae(bound, depth - 1))))
    if kind == 4:
        return TruthFormula(draw(st.booleans()))
    if kind == 5 and bound:
        return ConstraintFormula(draw(st.sampled_from(sorted(_OPS))), draw(scalars(bound)), draw(scalars(bound)))
    if kind == 6 and bound:
        return ConstraintFormula("=", VariableTerm(draw(st.sampled_from(_NAMES))), draw(scalars(bound)))
    relation = draw(st.sampled_from(sorted(ARITIES)))
    return AtomFormula(relation, tuple(VariableTerm(draw(st.sampled_from(_NAMES))) for _ in range(ARITIES[relation])))


@st.composite
def terms(draw, bound=frozenset(), depth=2):
    """A valid term over bound variables."""
    kind = draw(st.integers(0, 6))
    if kind == 0 or not depth:
        return draw(scalars(bound))
    if kind in (1, 2):
        return (PlusTerm, ProductTerm)[kind - 1]((draw(terms(bound, depth - 1)), draw(terms(bound, depth - 1))))
    formula = draw(formulae(bound, depth))
    made = SumTerm(draw(terms(safe(formula, bound), depth - 1)), formula)
    return made if valid(made, bound) else draw(scalars(bound))


@st.composite
def databases(draw):
    """A few rows of every relation, some of them twice: by name (arity, rows)."""
    rows = {}
    for name, arity in ARITIES.items():
        some = draw(st.lists(st.tuples(*[st.integers(0, 2)] * arity), max_size=5))
        rows[name] = arity, Counter(some)
    return rows
