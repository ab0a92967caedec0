"""Canonical forms: two definitions of maps that differ in names and order only have the same one.

The variables are numbered in the order in which the relations mention them, keys and others apart; among the orders of
relations of one name the one with the least text counts. Equal forms mean equal maps; maps that are equal for other
reasons may have different forms, which costs a map but no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, permutations, product
from math import factorial, prod

from lftj.language.clause import Apply, Term, Value, Var
from lftj.triggers.algebra import Cmp, Formula, Lift, MapRead, Rel, Val
from lftj.triggers.formulas import renamed, variables
from lftj.triggers.normalise import Atomic, Monomial

# Orders of relations of one name that are tried; beyond it only the given one is, and equal maps may not be found.
_ORDERS = 720
_MIRRORED = {">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """`text`: what two equal maps share. `keys`: the keys of this one, in the order of the form."""

    text: str
    keys: tuple[Var, ...]


def canonical(keys: Sequence[Var], monomial: Monomial, *, ordered: bool = False) -> CanonicalForm:
    """The form of `AggSum(keys, monomial)`. With `ordered` the keys keep their order, else it is part of the form."""
    first = {key.name: f"k{i}" for i, key in enumerate(keys)} if ordered else {}
    names = {key.name for key in keys}
    best: tuple[str, dict[str, str]] | None = None
    for atoms in _orders([factor for factor in monomial.factors if isinstance(factor, Rel)]):
        numbered = dict(first)
        rest = sorted((factor for factor in monomial.factors if not isinstance(factor, Rel)), key=_shape)
        for name in chain.from_iterable(variables(factor) for factor in (*atoms, *rest)):
            if name not in numbered:
                numbered[name] = f"{'k' if name in names else 'v'}{len(numbered)}"
        to = {
            name: Var(numbered[name], var.type)
            for factor in monomial.factors
            for name, var in variables(factor).items()
        }
        shown = [formula_text(renamed(atom, to)) for atom in atoms]
        shown += sorted(formula_text(renamed(factor, to)) for factor in rest)
        text = " * ".join((str(monomial.coefficient), *shown))
        if best is None or text < best[0]:
            best = text, numbered
    assert best is not None
    text, numbered = best
    order = sorted(keys, key=lambda key: int(numbered[key.name][1:]))
    head = ", ".join(f"{numbered[key.name]}:{key.type}" for key in order)
    return CanonicalForm(f"[{head}] {text}", tuple(order))


def _orders(atoms: Sequence[Rel]) -> Iterator[tuple[Rel, ...]]:
    """The orders of relations: by name, and all orders of those of one name."""
    by_name = [list(group) for _, group in groupby(sorted(atoms, key=lambda a: a.name), key=lambda a: a.name)]
    if prod(factorial(len(group)) for group in by_name) > _ORDERS:
        yield tuple(chain.from_iterable(by_name))
        return
    for choice in product(*(permutations(group) for group in by_name)):
        yield tuple(chain.from_iterable(choice))


def _shape(factor: Formula) -> str:
    """The text of a factor without the names of its variables; kinds of factors stay together."""
    return type(factor).__name__ + formula_text(
        renamed(factor, {name: Var("_", var.type) for name, var in variables(factor).items()})
    )


def formula_text(factor: Formula) -> str:
    """A factor as text that tells any two different ones apart, types included."""
    match factor:
        case Rel(name, args) | MapRead(name, args):
            return f"{name}({', '.join(map(_term_text, args))})"
        case Lift(var, term):
            return f"{_term_text(var)} := {_term_text(term)}"
        case Cmp(op, left, right):
            sides = [_term_text(left), _term_text(right)]
            if op in _MIRRORED:
                op, sides = _MIRRORED[op], sides[::-1]
            elif op in ("=", "!="):
                sides.sort()
            return f"{{{sides[0]} {op} {sides[1]}}}"
        case Val(term):
            return f"{{{_term_text(term)}}}"
    raise AssertionError(f"{factor} is no factor of a monomial")


def _term_text(term: Term) -> str:
    if isinstance(term, Apply):
        shown = [_term_text(arg) for arg in term.args]
        if term.op in ("+", "*"):
            shown.sort()
        return f"{term.op}:{term.type}({', '.join(shown)})"
    return f"{term.value!r}:{term.type}" if isinstance(term, Value) else f"{term}:{term.type}"


def combined(monomials: Sequence[Monomial], keys: Sequence[Var]) -> list[Monomial]:
    """The monomials with equal ones added up, and without those that cancel out."""
    total: dict[str, int] = {}
    factors: dict[str, tuple[Atomic, ...]] = {}
    for monomial in monomials:
        text = canonical(keys, Monomial(1, monomial.factors), ordered=True).text
        total[text] = total.get(text, 0) + monomial.coefficient
        factors.setdefault(text, monomial.factors)
    return [Monomial(total[text], factors[text]) for text in factors if total[text]]
