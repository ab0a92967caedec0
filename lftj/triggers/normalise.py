"""Normal form: a formula as a polynomial, that is a sum of monomials without redundant variables.

A *monomial* is an integer times a product of relations, comparisons, values and lifts, summed over all its variables
but those that are wanted. A formula becomes a polynomial by distributing products over sums and by opening every
`AggSum`, whose own variables get fresh names: what is summed inside is then summed outside.

    AggSum(keys, f * AggSum((), g)) = AggSum(keys, f * g')       where g' shares no variable with f but bound ones

Variable elimination (Cumulus, section 3.3) replaces a variable by what it equals. Fixed variables stay; where two
of them are equal the equality stays too (the paper's E').
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, product
from typing import Any

from lftj.language.clause import Apply, Term, Value, Var, names_of, replaced
from lftj.triggers.algebra import Add, AggSum, Cmp, Formula, Lift, MapRead, Mul, Rel, Val
from lftj.triggers.formulas import binds, is_parameter, renamed, substituted, variables
from lftj.values.type_table import family_of, is_nullable

Atomic = Rel | Lift | Cmp | Val | MapRead

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# The families of types whose codes add and multiply as the values do; null is none of them.
_INTEGERS = frozenset(("number", "decimal", "duration"))
# Comparisons that hold of equal values.
_REFLEXIVE = ("=", "<=", ">=")


@dataclass(frozen=True, slots=True)
class Monomial:
    """`coefficient` times the product of `factors`."""

    coefficient: int
    factors: tuple[Atomic, ...]

    def formula(self) -> Formula:
        """The monomial as a product, or as its only factor."""
        scale = () if self.coefficient == 1 else (Val(Value(self.coefficient, "number")),)
        factors = (*scale, *self.factors)
        return factors[0] if len(factors) == 1 else Mul(factors)


@dataclass(frozen=True, slots=True)
class Unified:
    """A monomial without redundant variables; `replaced_by` says what each eliminated variable became."""

    monomial: Monomial
    replaced_by: Mapping[str, Term]


# --- polynomials ------------------------------------------------------------------------------------------------------


def polynomial(formula: Formula, bound: Iterable[Var]) -> list[Monomial]:
    """`formula` as a sum of monomials; of none it is 0. `bound`: the variables that have a value outside."""
    known = {var.name for var in bound}
    return _monomials(_opened(formula, known, known | set(variables(formula))))


def _opened(formula: Formula, bound: set[str], taken: set[str]) -> Formula:
    """`formula` without AggSums: their own variables get names that nobody else has. `taken` gets all names."""
    match formula:
        case Mul(parts):
            opened, known = [], set(bound)
            for part in parts:
                opened.append(_opened(part, known, taken))
                known |= binds(part)
            return Mul(tuple(opened))
        case Add(parts):
            return Add(tuple(_opened(part, bound, taken) for part in parts))
        case AggSum(keys, body):
            seen = bound | {key.name for key in keys}
            own = {name: var for name, var in variables(body).items() if name not in seen and not is_parameter(var)}
            fresh = {name: _fresh(var, taken) for name, var in own.items() if name in taken}
            taken |= set(own)
            return _opened(renamed(body, fresh), seen, taken)
    return formula


def _fresh(var: Var, taken: set[str]) -> Var:
    """A variable like `var` of a name that is not taken; it is then."""
    name = next(name for name in (f"{var.name}'{i}" for i in count(1)) if name not in taken)
    taken.add(name)
    return Var(name, var.type)


def _monomials(formula: Formula) -> list[Monomial]:
    match formula:
        case Add(parts):
            return [monomial for part in parts for monomial in _monomials(part)]
        case Mul(parts):
            return [_product(choice) for choice in product(*map(_monomials, parts))]
        case Val(term):
            return _of_value(term)
        case AggSum():
            raise AssertionError("an AggSum is opened before")
    return [Monomial(1, (formula,))]


def _product(monomials: Sequence[Monomial]) -> Monomial:
    coefficient = 1
    for monomial in monomials:
        coefficient *= monomial.coefficient
    return Monomial(coefficient, tuple(chain.from_iterable(monomial.factors for monomial in monomials)))


def _of_value(term: Term) -> list[Monomial]:
    """Constants go into the coefficient, products of integers are products of factors."""
    if isinstance(term, Value) and term.type == "number":
        return [Monomial(term.value, ())] if term.value else []
    if isinstance(term, Apply) and _of_integers(term):
        if term.op == "*":
            return [_product(choice) for choice in product(*map(_of_value, term.args))]
        if term.op == "neg":
            return [_scaled(monomial, -1) for monomial in _of_value(term.args[0])]
    return [Monomial(1, (Val(term),))]


def _of_integers(term: Apply) -> bool:
    """Whether arithmetic is that of integer codes: of numbers, and of decimals and durations, which are scaled ones."""
    types = (term.type, *(arg.type for arg in term.args))
    return all(family_of(type) in _INTEGERS and not is_nullable(type) for type in types)


def _scaled(monomial: Monomial, by: int) -> Monomial:
    return Monomial(monomial.coefficient * by, monomial.factors)


def split_sums(monomial: Monomial) -> list[Monomial]:
    """Distributes over the sums within values, unless one relation has all that a value reads.

    `(x + y)` over R(k, x) and S(k, y) becomes x and y: then each is a sum over its own relation, and a change of R
    looks up a sum of S instead of visiting its rows.
    """
    atoms = [binds(factor) for factor in monomial.factors if isinstance(factor, Rel)]
    choices: list[list[Monomial]] = []
    for factor in monomial.factors:
        if isinstance(factor, Val) and not any(set(variables(factor)) <= atom for atom in atoms):
            choices.append(_summands(factor.term))
        else:
            choices.append([Monomial(1, (factor,))])
    first = Monomial(monomial.coefficient, ())
    return [_product((first, *choice)) for choice in product(*choices)]


def _summands(term: Term) -> list[Monomial]:
    if isinstance(term, Apply) and _of_integers(term):
        parts = [_summands(arg) for arg in term.args]
        if term.op == "+":
            return [*chain.from_iterable(parts)]
        if term.op == "-" and len(parts) == 2:
            return [*parts[0], *(_scaled(monomial, -1) for monomial in parts[1])]
        if term.op == "neg":
            return [_scaled(monomial, -1) for monomial in parts[0]]
        if term.op == "*":
            return [_product(choice) for choice in product(*parts)]
    return _of_value(term)


# --- variable elimination ---------------------------------------------------------------------------------------------


def unified(monomial: Monomial, fixed: Iterable[Var], keys: Iterable[Var] = ()) -> Unified | None:
    """Eliminates variables that equal another one, a constant or a term; None if the monomial is 0.

    `fixed`: the variables that stay, as they are bound outside. `keys`: those that may become another variable or a
    constant, but no computed term, as they are the keys under which the monomial is added. Parameters always stay.
    """
    stay, plain = {var.name for var in fixed}, {var.name for var in keys}
    factors = list(monomial.factors)
    by: dict[str, Term] = {}
    i = 0
    while i < len(factors):
        step = _elimination(factors[i], stay, plain, factors[:i] + factors[i + 1 :])
        if step is None:
            i += 1
            continue
        for name, term in by.items():
            by[name] = replaced(term, step)
        by.update(step)
        factors = [substituted(factor, step) for factor in factors[:i] + factors[i + 1 :]]
        i = 0
    coefficient, kept = monomial.coefficient, list[Atomic]()
    has_value = {name for factor in factors if not isinstance(factor, Lift) for name in binds(factor)}
    for factor in factors:
        if isinstance(factor, Lift):
            if factor.var.name in has_value or factor.var.name.startswith("@"):
                factor = Cmp("=", factor.var, factor.term)
            else:
                has_value.add(factor.var.name)
        truth = _truth(factor) if isinstance(factor, Cmp) else None
        if truth is False:
            return None
        if isinstance(factor, Val):
            monomials = _of_value(factor.term)
            if not monomials:
                return None
            coefficient *= monomials[0].coefficient
            kept += monomials[0].factors
        elif truth is None:
            kept += _distinct_arguments(factor) if isinstance(factor, Rel) else [factor]
    if not coefficient:
        return None
    return Unified(Monomial(coefficient, tuple(_by_representatives(kept, stay))), by)


def _by_representatives(factors: Sequence[Atomic], stay: set[str]) -> list[Atomic]:
    """The factors with their equalities among variables that stay as the paper's E': each with its representative.

    The representative of a class is the variable that an equality mentions last.
    """
    classes: list[dict[str, Var]] = []
    others: list[Atomic] = []
    for factor in factors:
        match factor:
            case Cmp("=", Var() as left, Var() as right) if _stays(left, stay) and _stays(right, stay):
                joined = [group for group in classes if left.name in group or right.name in group]
                classes = [group for group in classes if group not in joined]
                merged = {name: var for group in joined for name, var in group.items()}
                for var in (left, right):
                    merged.pop(var.name, None)
                classes.append({**merged, left.name: left, right.name: right})
            case _:
                others.append(factor)
    for group in classes:
        *members, representative = group.values()
        others += [Cmp("=", member, representative) for member in members]
    return others


def _stays(var: Var, stay: set[str]) -> bool:
    return var.name in stay or is_parameter(var)


def _elimination(factor: Atomic, stay: set[str], plain: set[str], others: Sequence[Atomic]) -> dict[str, Term] | None:
    """What an equality replaces: one variable that does not stay, by what it equals; None if the factor stays.

    A variable of `plain` is not replaced by a computed term.
    """
    if isinstance(factor, Lift):
        pairs: list[tuple[Term, Term]] = [(factor.var, factor.term), (factor.term, factor.var)]
    elif isinstance(factor, Cmp) and factor.op == "=":
        pairs = [(factor.left, factor.right), (factor.right, factor.left)]
    else:
        return None
    for var, term in pairs:
        if not isinstance(var, Var) or var.name in stay or var.name.startswith("@"):
            continue
        if isinstance(term, Var | Value):
            return {var.name: term} if term != var else None
        # A computed value cannot stand in a relation: there the equality stays, as a comparison.
        if var.name in plain or var.name in names_of(term):
            continue
        if not any(isinstance(other, Rel | MapRead) and var.name in binds(other) for other in others):
            return {var.name: term}
    return None


def _truth(compare: Cmp) -> bool | None:
    """The outcome of a comparison that needs no values of variables."""
    if compare.left == compare.right:
        return compare.op in _REFLEXIVE
    left, right = compare.left, compare.right
    if isinstance(left, Value) and isinstance(right, Value):
        if left.type == right.type == "number":
            return _COMPARE[compare.op](left.value, right.value)
        if compare.op in ("=", "!=") and None not in (left.value, right.value):
            return _COMPARE[compare.op](left.value, right.value)
    return None


def _distinct_arguments(atom: Rel) -> list[Atomic]:
    """R(x, x) as R(x, x'') where x = x''."""
    args: list[Var | Value] = []
    compares: list[Atomic] = []
    for i, arg in enumerate(atom.args):
        if isinstance(arg, Var) and arg in args and not is_parameter(arg):
            other = Var(f"{arg.name}''{atom.name}{i}", arg.type)
            compares.append(Cmp("=", arg, other))
            arg = other
        args.append(arg)
    return [Rel(atom.name, tuple(args)), *compares]


# --- factorisation ----------------------------------------------------------------------------------------------------


def components(factors: Sequence[Atomic], bound: frozenset[str]) -> list[list[Atomic]]:
    """The connected components of factors that share variables which are not `bound`, in order of their first factor.

    The sum of the product of all is the product of the sums of each. A factor without such variables is one of its own.
    """
    groups: list[tuple[set[str], list[int]]] = []
    for i, factor in enumerate(factors):
        mine, members = set(variables(factor)) - bound, [i]
        apart = []
        for names, indices in groups:
            if names & mine:
                mine, members = mine | names, indices + members
            else:
                apart.append((names, indices))
        groups = [*apart, (mine, sorted(members))]
    return [[factors[i] for i in indices] for indices in sorted(indices for _, indices in groups)]
