"""Internal relations: those that desugaring makes of parts of rules, and the clauses that derive them.

An internal relation is named after the first head of its rule and numbered within it, `@p.1`, `@p.2`, in the order in
which the rule's constructs are met; what an aggregate needs besides its own relation has the number of the aggregate.

    @p.1          what an aggregate says of each group, or the rows for which a negated conjunction holds
    @p.1.all      the bindings that an aggregate folds, where they are not simply the rows of one relation, but for
                  columns that are only counted (counted_atoms.py)
    @p.1.counts   below a quantile: how many bindings have each value of a group
    @p.1.met      what meets conditions on the texts of one atom in its braces (text_selections.py)
    @p.1.groups   the values of the variables that come from outside of the braces, or of the negation
    @p.1.with0    what the rule reads of `count` and `sum`: 0 for the groups without a binding
    @p.1.rows     the rows along which a recursive clause is evaluated key by key (acyclic.py)

`@p.1.all` is shared by all braces of a program that are equal but for the names of variables, and so is `@p.1.met`; it
is derived by the clauses of the first rule that has them. So is `@p.1.counts`, if it has one alternative.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from lftj.errors import Span
from lftj.language import ast
from lftj.language.clause import INTERNAL
from lftj.language.names import KnownRelation, Names
from lftj.language.normal_form import Conjunction

# How their names end.
ALL, COUNTS, MET, GROUPS, WITH_ZERO, ROWS = ".all", ".counts", ".met", ".groups", ".with0", ".rows"


_PART = re.compile(r"\.\d+(?:\.[a-z]\w*(?:\.\d+)?)?$")


def is_part(name: str) -> bool:
    """Whether a relation was made of a part of a rule; internal heads of a query of SQL are none: `@v.sum1`."""
    return name.startswith(INTERNAL) and _PART.search(name) is not None


@dataclass(frozen=True, slots=True)
class Fold:
    """The clause is an aggregate: `op` over groups, the first arguments of its head (see `clause.Aggregate`)."""

    op: str
    groups: int


@dataclass(frozen=True, slots=True)
class InternalRule:
    """One head with one conjunction, in AST terms; made from one alternative of `rule`.

    `best`: as in `clause.Clause` · `joined`: variables that are joined with those of another rule, so that null
    equals nothing in them.
    """

    rule: ast.Rule
    head: ast.Atom
    body: Conjunction
    fold: Fold | None = None
    best: str = ""
    joined: frozenset[str] = frozenset()


class InternalRelations:
    """The internal relations of a program so far; new ones are entered into `names`. `derived`: what rules derive."""

    def __init__(self, names: Names, known: Mapping[str, object], derived: Container[str] = ()) -> None:
        self.names, self.derived = names, derived
        self.shared: dict[object, str] = {}
        self._known = known
        self._numbers: dict[str, int] = {}

    def number(self, head: str) -> str:
        """The next name `@head.n` that neither this program nor the database has."""
        number = self._numbers.get(head, 0)
        while True:
            number += 1
            name = f"{INTERNAL}{head}.{number}"
            if not any(f"{name}{suffix}" in self._known for suffix in ("", ALL, COUNTS, MET, GROUPS, ROWS)):
                self._numbers[head] = number
                return name

    def relation(self, name: str, columns: list[str], words: list[str], span: Span, *, functional: bool = False) -> str:
        """Enter an internal relation. `words` say what each column is, as a reason in a message about types."""
        distinct = [column if columns.index(column) == at else f"{column}_" for at, column in enumerate(columns)]
        relation = KnownRelation(
            name, distinct, [None] * len(columns), span, "internal", functional=functional, words=words
        )
        self.names.relations.setdefault(name, relation)
        return name


class Renaming:
    """Equal conjunctions for braces that are equal but for names: variables are named by order of appearance."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._names = {column: f"{at}" for at, column in enumerate(columns)}

    def conjunction(self, body: Conjunction) -> Conjunction:
        """The conjunction with other names."""
        return Conjunction(
            tuple(self._atom(atom) for atom in body.atoms),
            tuple(replace(c, left=self.term(c.left), right=self.term(c.right)) for c in body.compares),
            tuple(self._atom(atom) for atom in body.negated),
        )

    def _atom(self, atom: ast.Atom) -> ast.Atom:
        return replace(atom, args=tuple(self.term(arg) for arg in atom.args))

    def term(self, term: ast.Term) -> ast.Term:
        """The term with other names."""
        if isinstance(term, ast.Variable):
            return replace(term, name=self._names.setdefault(term.name, f"{len(self._names)}"))
        return replace(term, args=tuple(map(self.term, term.args))) if isinstance(term, ast.Functor) else term
