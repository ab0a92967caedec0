"""Conditions on texts in braces, each of one atom: a relation of what meets them, which the aggregate reads besides.

What braces hold cannot be joined in one go where texts are computed between two joins (counted_atoms.py). Where each
such condition is about the variables of one atom, it need not be between them:

    v = sum x : { part(k, t, _), line(k, x, _), x > 3, contains("PROMO", t) }
      ->   @p.1.met(k, t)   :- part(k, t, _), contains("PROMO", t).
           @p.1(sum x)      :- part(k, t, _), line(k, x, _), x > 3, @p.1.met(k, t).

So that relation has some of the rows of one relation, and not all that the braces bind; and triggers, which compute a
condition as a row comes, do without it (triggers/from_clauses.py). Only for atoms of relations that no rule derives:
in a recursion what it selects would be one of the heads.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

from lftj.language import ast
from lftj.language.counted_atoms import makes_texts
from lftj.language.normal_form import Conjunction
from lftj.language.visitors import open_variables


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
    """(the body without its conditions on texts, what has to be selected for them); None if they are about more.

    `counted`: atoms with what is left of them once variables of their own are taken out.
    """
    plain: list[ast.Comparison] = []
    homes: dict[ast.Atom, None] = {}
    for compare in body.compares:
        if not makes_texts((compare,)):
            plain.append(compare)
            continue
        home = next((atom for atom in body.atoms if _is_about(compare, atom)), None)
        if home is None or home.name in derived or makes_texts(home.args):
            return None
        homes[home] = None
    without = replace(body, compares=tuple(plain))
    if not homes or makes_texts((*head, *without)):
        return None
    found = []
    for home in homes:
        conditions = tuple(compare for compare in body.compares if _is_about(compare, home))
        found.append(TextSelection(counted.get(home, home), conditions))
    return without, found


def _is_about(compare: ast.Comparison, atom: ast.Atom) -> bool:
    """Whether a comparison has variables, all of which the atom binds, and the atom computes no key from others."""
    bound = {arg.name for arg in atom.args if isinstance(arg, ast.Variable)}
    used = {variable.name for variable in open_variables((compare,))}
    return bool(used) and used <= bound and bound.issuperset(v.name for v in open_variables((atom,)))
