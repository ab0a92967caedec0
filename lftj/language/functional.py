"""Functional predicates in bodies: a value looked up is a variable that an atom binds.

    total(x, p * n) :- order(x, n), p = price[x].     ->   total(x, p * n) :- order(x, n), price(x, p).
    total(x, price[x] * n) :- order(x, n).            ->   total(x, _v1 * n) :- order(x, n), price(x, _v1).

A key may itself be looked up, `f[g[x]]`. Equal lookups of one conjunction are one atom, unless a wildcard is among the
keys. A condition holds only where all its values exist, negated or not: `!(price[x] > 5)` is `price[x] <= 5`, and
neither holds of an x without a price. `!(q(x), price[x] > 5)`, of several conditions, does (normal_form.py).

In a head, `price[x] = c` is the row (x, c): the checker reads `ast.Assignment` as the atom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lftj.language import ast
from lftj.language.normal_form import Conjunction
from lftj.language.visitors import nodes

_PLAIN = (ast.Variable, ast.Constant, ast.Parameter, ast.Wildcard)


class Lookups:
    """The lookups of one conjunction: terms without them, and the atoms that bind what stands in their place.

    `variable` makes that of a lookup.
    """

    def __init__(self, variable: Callable[[ast.Term], ast.Variable]) -> None:
        self.atoms: list[ast.Atom] = []
        self._variable = variable
        self._made: dict[ast.Lookup, ast.Variable] = {}

    def conjunction(self, body: Conjunction) -> Conjunction:
        """The conjunction without lookups, their atoms after its own."""
        atoms = tuple(self.atom(atom) for atom in body.atoms)
        negated = tuple(self.atom(atom) for atom in body.negated)
        compares = [kept for compare in body.compares if (kept := self._compare(compare)) is not None]
        return replace(body, atoms=atoms, compares=tuple(compares), negated=negated)

    def atom(self, atom: ast.Atom) -> ast.Atom:
        """The atom without lookups."""
        return replace(atom, args=tuple(self.term(arg) for arg in atom.args))

    def term(self, term: ast.Term) -> ast.Term:
        """The term without lookups; what stands in braces is left alone."""
        if isinstance(term, ast.Functor):
            args = tuple(self.term(arg) for arg in term.args)
            return term if args == term.args else replace(term, args=args)
        if not isinstance(term, ast.Lookup):
            return term
        made = self._made.get(term)
        if made is None:
            made = self._variable(term)
            self._bind(term, made)
            if not any(isinstance(node, ast.Wildcard) for node in nodes((term,))):
                self._made[term] = made
        return made

    def _bind(self, lookup: ast.Lookup, value: ast.Term) -> None:
        keys = tuple(self.term(key) for key in lookup.keys)
        self.atoms.append(ast.Atom(lookup.name, (*keys, value), lookup.span))

    def _compare(self, compare: ast.Comparison) -> ast.Comparison | None:
        """The comparison without lookups; `price[x] = c` is the atom and nothing else."""
        for lookup, other in ((compare.left, compare.right), (compare.right, compare.left)):
            if compare.op == "=" and isinstance(lookup, ast.Lookup) and isinstance(other, _PLAIN):
                self._bind(lookup, other)
                return None
        left, right = self.term(compare.left), self.term(compare.right)
        return compare if (left, right) == (compare.left, compare.right) else replace(compare, left=left, right=right)
