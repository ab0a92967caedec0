"""Atoms in braces whose rows are counted: their wildcards, and what else stands in one atom only, need no columns.

An aggregate that accumulates reads such an atom as it is, and multiplies by how many of its rows have the keys that
matter (plan/body.py). It cannot where its braces are evaluated as a relation of their own, whose rows are distinct:
where they hold a disjunction, or compute texts, between two joins. That relation would need all columns of the atom.
So it is derived without them, and the aggregate reads the atom once more:

    n = count : { a(k, x, _, _), contains("t", x) }
      ->   @p.1.all(k, x)    :- a(k, x, _, _), contains("t", x).
           @p.1(k, count)    :- a(k, x, u, v), @p.1.all(k, x).

The bindings are the same, as nothing else depends on `u` and `v`. All alternatives of a disjunction must share the
atom, and it must compute no texts itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lftj.language import ast
from lftj.language.functors import FUNCTORS, TEXT_TESTS
from lftj.language.normal_form import Conjunction
from lftj.language.visitors import Node, nodes, open_variables

# The terms of a head, and the conjunction below it.
Alternative = tuple[tuple[ast.Term, ...], Conjunction]


def counted_atoms(alternatives: Sequence[Alternative]) -> dict[ast.Atom, ast.Atom]:
    """The atoms of all `alternatives` that have variables of their own; for each, the atom with wildcards there."""
    uses = [Counter(variable.name for variable in open_variables((*head, *body))) for head, body in alternatives]
    found = dict[ast.Atom, ast.Atom]()
    for atom in alternatives[0][1].atoms:
        if makes_texts(atom.args) or any(atom not in body.atoms for _, body in alternatives):
            continue
        without = replace(atom, args=tuple(_wildcard(arg, uses) for arg in atom.args))
        if without != atom:
            found[atom] = without
    return found


def _wildcard(arg: ast.Term, uses: Iterable[Counter[str]]) -> ast.Term:
    alone = isinstance(arg, ast.Variable) and all(names[arg.name] == 1 for names in uses)
    return ast.Wildcard(arg.span) if alone else arg


def makes_texts(parts: Iterable[Node]) -> bool:
    """Whether some part computes with texts, as far as can be told before types are known.

    `to_number` and its like are taken to, `min` and `max` not to. What is decided by it is right either way. A functor
    that does not exist is reported elsewhere (names.py).
    """
    return any(
        (isinstance(node, ast.Comparison) and node.op in TEXT_TESTS)
        or (isinstance(node, ast.Functor) and node.name in FUNCTORS and FUNCTORS[node.name].mostly_texts)
        for node in nodes(parts)
    )
