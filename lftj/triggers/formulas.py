"""Variables of formulas: which occur, which get a value, how one is replaced by another term.

A formula is evaluated under values for some variables, its *bound* ones. `variables` lists what occurs in it,
`binds` what has a value after it. What an `AggSum` sums away is seen by neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard

from lftj.language.clause import Term, Value, Var, replaced, variables_of
from lftj.triggers.algebra import EVENT, Add, AggSum, Cmp, Factor, Formula, Lift, MapRead, Mul, Rel, Val

# What replaces variables, by name: a bound variable stays itself.
Substitution = Mapping[str, Term]


def is_parameter(term: Term) -> TypeGuard[Var]:
    """Whether a term is a parameter of an event: `@0`, `@1`, ..."""
    return isinstance(term, Var) and term.name.startswith(EVENT)


def number(value: int) -> Val:
    """An integer as a formula."""
    return Val(Value(value, "number"))


def arguments(formula: Rel | MapRead) -> tuple[Var | Value, ...]:
    """The arguments of a relation, the keys of a map."""
    return formula.args if isinstance(formula, Rel) else formula.keys


def variables(formula: Formula) -> dict[str, Var]:
    """The variables that occur, by name, in order; of an `AggSum` its keys and the parameters of an event."""
    return {var.name: var for var in _occurrences(formula)}


def variables_of_all(formulas: Iterable[Formula]) -> dict[str, Var]:
    """The variables that occur in any of the formulas."""
    return {name: var for formula in formulas for name, var in variables(formula).items()}


def _occurrences(formula: Formula) -> Iterable[Var]:
    match formula:
        case Rel() | MapRead():
            return [arg for arg in arguments(formula) if isinstance(arg, Var)]
        case Lift(var, term):
            return [var, *variables_of(term)]
        case Cmp(_, left, right):
            return [*variables_of(left), *variables_of(right)]
        case Val(term):
            return list(variables_of(term))
        case Mul(parts) | Add(parts):
            return [var for part in parts for var in _occurrences(part)]
        case AggSum(keys, body):
            return [*keys, *(var for var in _occurrences(body) if is_parameter(var))]


def binds(formula: Formula) -> frozenset[str]:
    """The names of the variables that have a value after a formula, whatever is bound before it."""
    match formula:
        case Rel() | MapRead():
            return frozenset(arg.name for arg in arguments(formula) if isinstance(arg, Var))
        case Lift(var):
            return frozenset((var.name,))
        case Mul(parts):
            return frozenset().union(*map(binds, parts))
        case Add(parts):
            return frozenset.intersection(*map(binds, parts)) if parts else frozenset()
        case AggSum(keys):
            return frozenset(key.name for key in keys)
    return frozenset()


def relations_of(formula: Formula) -> dict[str, None]:
    """The relations that a formula reads, each once, in order."""
    match formula:
        case Rel(name):
            return {name: None}
        case Mul(parts) | Add(parts):
            return {name: None for part in parts for name in relations_of(part)}
        case AggSum(_, body):
            return relations_of(body)
    return {}


def substituted(factor: Rel | Factor, by: Substitution) -> Rel | Factor:
    """A factor with variables replaced. A `Lift` whose variable is replaced compares.

    What stands in a relation or is a key of a map must be replaced by a variable or a constant.
    """

    def plain(arg: Var | Value) -> Var | Value:
        new = replaced(arg, by)
        assert isinstance(new, Var | Value), f"{arg} stands in a relation and cannot become {new}"
        return new

    match factor:
        case Rel(name, args):
            return Rel(name, tuple(map(plain, args)))
        case MapRead(name, keys):
            return MapRead(name, tuple(map(plain, keys)))
        case Lift(var, term):
            new, term = by.get(var.name, var), replaced(term, by)
            return Lift(new, term) if isinstance(new, Var) and new.name == var.name else Cmp("=", new, term)
        case Cmp(op, left, right):
            return Cmp(op, replaced(left, by), replaced(right, by))
        case Val(term):
            return Val(replaced(term, by))


def renamed(formula: Formula, by: Mapping[str, Var]) -> Formula:
    """A formula with all its variables renamed at once; unlike `substituted` it keeps a `Lift` a `Lift`."""
    match formula:
        case Lift(var, term):
            return Lift(by.get(var.name, var), replaced(term, by))
        case Mul(parts):
            return Mul(tuple(renamed(part, by) for part in parts))
        case Add(parts):
            return Add(tuple(renamed(part, by) for part in parts))
        case AggSum(keys, body):
            return AggSum(tuple(by.get(key.name, key) for key in keys), renamed(body, by))
    return substituted(formula, by)
