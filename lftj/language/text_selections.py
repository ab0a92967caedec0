"""Conditions on texts in braces, each of one atom: a relation of what meets them, which the aggregate reads besides.

What braces hold cannot be joined in one go where texts are computed between two joins (counted_atoms.py). Where each
such condition is about the variables of one atom, it need not be between them:

    v = sum x : { part(k, t, _), line(k, x, _), x > 3, contains("PROMO", t) }
      ->   @p.1.met(k, t)   :- part(k, t, _), contains("PROMO", t).
           @p.1(sum x)      :- part(k, t, _), line(k, x, _), x > 3, @p.1.met(k, t).

So that relation has some of the rows of one relation, and not all that the braces bind; and triggers, which compute a
condition as a row comes, do without it (triggers/from_clauses.py). Only for atoms of relations that no rule derives:
in a recursion what it selects would be one of the heads. And no condition that may have no value is asked there: where
something else in the braces leaves the row out, that is no error.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

from lftj.language import ast
from lftj.language.counted_atoms import makes_texts
from lftj.language.functors import FUNCTORS, MATCH, READS_AS
from lftj.language.normal_form import Conjunction
from lftj.language.visitors import nodes, open_variables

_SMALL = 1 << 31


class TextSelection(NamedTuple):
    """What meets the conditions on texts of one atom: `atom`, without what is only counted, and all its conditions."""

    atom: ast.Atom
    conditions: tuple[ast.Comparison, ...]

    @property
    def body(self) -> Conjunction:
        """What derives its relation."""
        return Conjunction((self.atom,), self.conditions)

    def columns(self) -> tuple[ast.Variable, ...]:
        """The variables of the atom, each once."""
        return tuple({variable.name: variable for variable in open_variables((self.atom,))}.values())


def text_selections(
    head: Sequence[ast.Term],
    body: Conjunction,
    counted: dict[ast.Atom, ast.Atom],
    derived: Container[str],
) -> tuple[Conjunction, list[TextSelection]] | None:
    """(the body without its conditions on texts, what has to be selected for them); None if there cannot be any.

    `counted`: atoms with what is left of them once variables of their own are taken out.
    """
    alone = len(body.atoms) == 1 and not (body.negated or body.none)
    alone = alone and all(_is_about(compare, body.atoms[0]) for compare in body.compares)
    plain: list[ast.Comparison] = []
    homes: dict[ast.Atom, None] = {}
    for compare in body.compares:
        if not makes_texts((compare,)):
            plain.append(compare)
            continue
        home = next((atom for atom in body.atoms if _is_about(compare, atom)), None)
        if home is None or home.name in derived or makes_texts(home.args) or not (alone or _has_value(compare)):
            return None
        homes[home] = None
    without = replace(body, compares=tuple(plain))
    if not homes or makes_texts((*head, *without)):
        return None
    found = []
    for home in homes:
        about = (compare for compare in body.compares if _is_about(compare, home))
        conditions = tuple(compare for compare in about if alone or _has_value(compare))
        found.append(TextSelection(counted.get(home, home), conditions))
    return without, found


def _is_about(compare: ast.Comparison, atom: ast.Atom) -> bool:
    """Whether a comparison has variables, all of which the atom binds, and the atom computes no key from others."""
    bound = {arg.name for arg in atom.args if isinstance(arg, ast.Variable)}
    used = {variable.name for variable in open_variables((compare,))}
    return bool(used) and used <= bound and bound.issuperset(v.name for v in open_variables((atom,)))


def _has_value(compare: ast.Comparison) -> bool:
    """Whether all terms of a comparison always have a value, as far as can be told before types are known."""
    for node in nodes((compare,)):
        if isinstance(node, ast.Comparison) and node.op.removeprefix("not_") in (MATCH, READS_AS):
            if not isinstance(node.left, ast.Constant):
                return False
        elif isinstance(node, ast.Functor) and node.name in FUNCTORS:
            known = FUNCTORS[node.name]
            if (known.partial or any(one.partial for one in known.overloads)) and not _is_small(node):
                return False
    return True


def _is_small(term: ast.Term) -> bool:
    """Whether a term is made of lengths of texts, and constants, by too few steps to leave 64 bits."""
    if isinstance(term, ast.Constant):
        return isinstance(term.value, int) and abs(term.value) < _SMALL
    if not isinstance(term, ast.Functor):
        return False
    sums = ("+", "-", "neg", "checked_add")
    return term.name in ("strlen", "strpos") or (term.name in sums and all(map(_is_small, term.args)))
