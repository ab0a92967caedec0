"""Atoms of a body on the way to formulas, and the derived relations that they become.

An atom may have conditions, which are about it only, and its columns may be computed with. So formulas read a relation
that is derived of it (derived_relations.py): the rows that meet its conditions, with the columns that are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lftj.language.clause import Compare, Term, Var, names_of, replaced
from lftj.triggers.algebra import Rel
from lftj.triggers.derived_relations import DerivedRelation


@dataclass(slots=True)
class AtomColumns:
    """An atom of the body. `columns`: of each of its variables; `wanted`: what the formula needs of it, by variable.

    `known`: the variable of each term that is computed of it.
    """

    predicate: str
    columns: dict[str, Var] = field(default_factory=dict)
    conditions: list[Compare] = field(default_factory=list)
    wanted: dict[str, Term] = field(default_factory=dict)
    known: dict[Term, Var] = field(default_factory=dict)
    positive: set[str] = field(default_factory=set)

    def has(self, names: set[str]) -> bool:
        """Whether it binds all these variables."""
        return names <= self.columns.keys()

    def inside(self, term: Term) -> Term:
        """A term over its columns."""
        return replaced(term, self.columns)


class NamedRelations:
    """Derived relations get names: one for all that are equal."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, tuple[Compare, ...], tuple[Term, ...], frozenset[int]], str] = {}
        self.variables: dict[str, list[tuple[str, int]]] = {}

    def rel(self, atom: AtomColumns) -> Rel:
        """What the formula reads of an atom: columns in the order of the relation, then what is computed."""
        names = sorted(atom.wanted, key=lambda name: _place(atom.wanted[name]))
        conditions = tuple(sorted(dict.fromkeys(atom.conditions), key=str))
        columns = tuple(atom.wanted[name] for name in names)
        positive = frozenset(i for i, name in enumerate(names) if name in atom.positive)
        form = (atom.predicate, conditions, columns, positive)
        if form not in self.made:
            number = sum(predicate == atom.predicate for predicate, *_ in self.made) + 1
            self.made[form] = f"{atom.predicate}.{number}"
        name = self.made[form]
        for i, variable in enumerate(names):
            self.variables.setdefault(variable, []).append((name, i))
        return Rel(name, tuple(Var(variable, atom.wanted[variable].type) for variable in names))

    def relations(self, checked: Sequence[Term]) -> tuple[DerivedRelation, ...]:
        """All of them, in the order in which they are first read."""
        measured: dict[str, set[tuple[int, str]]] = {name: set() for name in self.made.values()}
        for variable in names_of(*checked):
            for name, column in self.variables.get(variable, ()):
                measured[name].add((column, variable))
        return tuple(DerivedRelation(name, *form, tuple(sorted(measured[name]))) for form, name in self.made.items())


def _place(term: Term) -> tuple[int, int, str]:
    return (0, int(term.name[1:]), "") if isinstance(term, Var) else (1, 0, str(term))
