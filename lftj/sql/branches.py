"""The body of a query: atoms that bind its columns, and conditions in alternatives; rules are made of its branches.

A *branch* is one choice of the alternatives of all conditions: a conjunction, the body of one rule. In it, columns that
an equality says are alike become one variable, which joins atoms where a comparison would only filter pairs of rows.
Null equals nothing: of two columns that may both be null the branch says that they are not. A branch whose conditions
contradict one another is left out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, TypeVar

from lftj.language import ast
from lftj.language.functors import COMPARISONS, IS_NULL, OR_NULL
from lftj.language.visitors import nodes
from lftj.sql.cases import computed_with, joined, not_null
from lftj.sql.scope import Case, Conjunction
from lftj.sql.view import Rows

# More ways than this to meet the conditions of a query are refused: each becomes a rule.
MOST = 5_000
Way = TypeVar("Way")


class TooManyWays(Exception):
    """There are more ways to meet the conditions of a query than are made rules of."""


class _Choice(NamedTuple):
    """A choice of alternatives: what is `met` of conditions, the `literals` of the cases that are `chosen`, and `all`.

    `all`: None where these contradict one another, which single alternatives are not left out for.
    """

    all: Conjunction | None
    met: Conjunction
    literals: Conjunction
    chosen: tuple[Case, ...]

    def with_one_of(self, others: Sequence[_Choice]) -> Iterator[_Choice]:
        """The choice with each of some others that it does not contradict, or with the only one."""
        for all, met, literals, chosen in others:
            both = None if self.all is None or all is None else joined(self.all, all)
            if both is not None or len(others) == 1:
                yield _Choice(both, (*self.met, *met), (*self.literals, *literals), (*self.chosen, *chosen))


@dataclass(frozen=True, slots=True)
class RowAtom:
    """One relation in the body, a variable for each of its columns. `copies`: of a bag, how often the row is there.

    `leaves_none_out`: it has a row for whatever the rest of the body has.
    """

    rows: Rows
    variables: tuple[ast.Variable, ...]
    copies: ast.Variable | None = None
    leaves_none_out: bool = False

    @property
    def atom(self) -> ast.Atom:
        """The atom of a rule."""
        return ast.Atom(self.rows.name, (*self.variables, *((self.copies,) if self.copies else ())))

    def renamed(self, names: Mapping[str, ast.Term]) -> RowAtom:
        """The atom with other variables in the place of some."""
        found = [(names.get(v.name, v), v) for v in self.variables]
        return replace(self, variables=tuple(new if isinstance(new, ast.Variable) else old for new, old in found))


def _few(ways: list[Way], most: int) -> list[Way]:
    """The ways to meet conditions, if they are not too many."""
    if len(ways) > most:
        raise TooManyWays
    return ways


@dataclass(slots=True)
class QueryBody:
    """Atoms, and conditions of which each is a list of alternatives."""

    atoms: list[RowAtom] = field(default_factory=list)
    conditions: list[list[Conjunction]] = field(default_factory=list)

    def branches(self, nullable: Mapping[str, bool], *more: Sequence[Conjunction]) -> list[Branch]:
        """The branches, with `more` conditions. `nullable`: of each variable, whether it may be null."""
        return [branch for branch, _ in self.choices(nullable, (), *more)]

    def splits(self, nullable: Mapping[str, bool], values: Sequence[Sequence[Case]], most: int) -> bool:
        """Whether there are more than so many ways to choose a branch with a case of each of some values."""
        try:  # on the way there may be more, of which some contradict what is chosen next
            return sum(1 for _ in islice(self.choices(nullable, values, most=8 * most), most + 1)) > most
        except TooManyWays:
            return True

    def choices(
        self,
        nullable: Mapping[str, bool],
        values: Sequence[Sequence[Case]],
        *more: Sequence[Conjunction],
        most: int = MOST,
    ) -> Iterator[tuple[Branch, tuple[Case, ...]]]:
        """The branches with a case of each of some values, for each way to choose these; `TooManyWays` if they are.

        Ways are chosen part by part, so that those that contradict themselves are left out before there are many.
        """
        ways = [_Choice((), (), (), ())]
        parts = [[_Choice(part, part, (), ()) for part in alternatives] for alternatives in (*self.conditions, *more)]
        parts += [[_Choice(case.literals, (), case.literals, (case,)) for case in value] for value in values]
        for part in parts:
            ways = _few([longer for way in ways for longer in way.with_one_of(part)], most)
        for _, met, literals, chosen in ways:
            branch = _unified(tuple(self.atoms), (*met, *literals), nullable)
            if branch is not None:
                yield branch, chosen

    def copy(self) -> QueryBody:
        """A body of its own with the same atoms and conditions."""
        return QueryBody(list(self.atoms), list(self.conditions))


@dataclass(frozen=True, slots=True)
class Branch:
    """A conjunction. `renamed`: the variables for which another stands since both are alike."""

    atoms: tuple[RowAtom, ...]
    literals: tuple[ast.Literal, ...]
    renamed: Mapping[str, ast.Variable]

    @property
    def body(self) -> tuple[ast.Literal, ...]:
        """The body of a rule."""
        return (*(row.atom for row in self.atoms), *self.literals)

    @property
    def copies(self) -> list[ast.Term]:
        """How often the rows of bags are there: the multiplicity of a binding is the product."""
        return [row.copies for row in self.atoms if row.copies is not None]

    def term(self, term: ast.Term) -> ast.Term:
        """A term of the query in this branch."""
        return renamed(term, self.renamed)

    def bound(self, given: Iterable[str] = ()) -> set[str]:
        """The variables that atoms bind, or that are equal to what such variables, or `given` ones, give."""
        return self._closed(_bound(self.atoms, self.literals).union(given))

    def with_literals(self, *literals: ast.Literal) -> Branch:
        """The branch with more conditions."""
        return replace(self, literals=(*self.literals, *literals))

    def determines(self, terms: Iterable[ast.Term], given: Iterable[str]) -> bool:
        """Whether no two rows of the body give the same `terms`; `given`: variables that are fixed from outside."""
        known = self._closed({term.name for term in terms if isinstance(term, ast.Variable)} | set(given))
        waiting = list(self.atoms)
        while waiting:
            ready = [
                row for row in waiting if any({row.variables[at].name for at in key} <= known for key in row.rows.keys)
            ]
            if not ready:
                return False
            waiting = [row for row in waiting if row not in ready]
            known = self._closed(known | {v.name for row in ready for v in row.variables})
        return True

    def _closed(self, known: set[str]) -> set[str]:
        """The variables that equalities compute from known ones, with these."""
        found = set(known)
        grew = True
        while grew:
            grew = False
            for literal in self.literals:
                if isinstance(literal, ast.Comparison) and literal.op == "=":
                    for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                        if isinstance(side, ast.Variable) and side.name not in found and variables(other) <= found:
                            found.add(side.name)
                            grew = True
        return found


def variables(term: ast.Term) -> set[str]:
    """The names of the variables of a term."""
    return {node.name for node in nodes((term,)) if isinstance(node, ast.Variable)}


_Node = TypeVar("_Node", bound="ast.Term | ast.Literal")


def renamed(node: _Node, names: Mapping[str, ast.Term]) -> _Node:
    """A term or a literal with other terms in the place of variables."""
    if not names:
        return node
    made: ast.Term | ast.Literal = node
    match node:
        case ast.Variable(name):
            made = names.get(name, node)
        case ast.Functor() | ast.Atom():
            made = replace(node, args=tuple(renamed(arg, names) for arg in node.args))
        case ast.Comparison():
            made = replace(node, left=renamed(node.left, names), right=renamed(node.right, names))
        case ast.Negation():
            made = replace(node, literal=renamed(node.literal, names))
        case ast.Disjunction():
            made = replace(node, alternatives=tuple(tuple(renamed(x, names) for x in a) for a in node.alternatives))
    return made  # type: ignore[return-value]


def _unified(
    atoms: tuple[RowAtom, ...], literals: Sequence[ast.Literal], nullable: Mapping[str, bool]
) -> Branch | None:
    """The branch of a conjunction; None if it contradicts itself."""
    bound = _bound(atoms, literals)
    names = _alike(bound, literals)
    members: dict[str, list[str]] = {}
    for name, kept in names.items():
        members.setdefault(kept.name, [kept.name]).append(name)
    known = [
        not_null(ast.Variable(kept))
        for kept, alike in members.items()
        if all(nullable.get(name, False) for name in alike if name in bound)
    ]
    strict = set(members)
    made = joined((*known, *(renamed(_plain(literal), names) for literal in literals)))
    if made is None:
        return None
    strict.update(*map(computed_with, made))
    kept_literals = []
    for literal in made:
        truth = _truth(literal, strict, nullable)
        if truth is False:
            return None
        if truth is None:
            kept_literals.append(literal)
    rows = tuple(replace(row, variables=tuple(names.get(v.name, v) for v in row.variables)) for row in atoms)
    return Branch(rows, tuple(kept_literals), names)


def _bound(atoms: tuple[RowAtom, ...], literals: Sequence[ast.Literal]) -> set[str]:
    """The variables that atoms bind."""
    bound = {v.name for row in atoms for v in (*row.variables, *((row.copies,) if row.copies else ()))}
    for literal in literals:
        if isinstance(literal, ast.Atom):
            bound |= {arg.name for arg in literal.args if isinstance(arg, ast.Variable)}
    return bound


def _alike(bound: set[str], literals: Sequence[ast.Literal]) -> dict[str, ast.Variable]:
    """For each variable that another stands for, that one: of those that are equal one that an atom binds."""
    names: dict[str, ast.Variable] = {}
    for literal in literals:
        if isinstance(literal, ast.Comparison) and literal.op == "=":
            left, right = literal.left, literal.right
            if isinstance(left, ast.Variable) and isinstance(right, ast.Variable):
                left, right = names.get(left.name, left), names.get(right.name, right)
                if left.name in bound or right.name not in bound:
                    left, right = right, left
                if left.name != right.name:  # `right` stands for `left`
                    names = {name: right if kept == left else kept for name, kept in names.items()}
                    names[left.name] = right
    return names


def _plain(literal: ast.Literal) -> ast.Literal:
    """The literal; of `x = x` that x is not null."""
    if isinstance(literal, ast.Comparison) and literal.op == "=" and literal.left == literal.right:
        return not_null(literal.left) if isinstance(literal.left, ast.Variable) else literal
    return literal


def _truth(literal: ast.Literal, strict: set[str], nullable: Mapping[str, bool]) -> bool | None:
    """Whether a condition of a branch holds in any case, or in none; None if it depends on the row."""
    if isinstance(literal, ast.Negation):
        inner = literal.literal
        if isinstance(inner, ast.Comparison) and inner.op == IS_NULL and isinstance(inner.left, ast.Variable):
            return True if not nullable.get(inner.left.name, True) else None
        return None
    if not isinstance(literal, ast.Comparison):
        return None
    left, right = literal.left, literal.right
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return _of_constants(literal.op, left, right)
    if isinstance(left, ast.Variable):
        if literal.op == "=" and left == right:
            return True
        if literal.op == IS_NULL and (left.name in strict or not nullable.get(left.name, True)):
            return False
    return None


def _of_constants(op: str, left: ast.Constant, right: ast.Constant) -> bool | None:
    one, two = left.value, right.value
    if left.kind != right.kind or op not in COMPARISONS or one is None or two is None:
        return None
    return bool(_HOLDS[op](one, two))


_HOLDS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def may_be_null(term: ast.Term, branch: Branch, nullable: Mapping[str, bool]) -> bool:
    """Whether a term may be null in a branch."""
    if isinstance(term, ast.Constant):
        return term.value is None
    if not isinstance(term, ast.Variable) or not nullable.get(term.name, False):
        return False
    joined_by = sum(v == term for row in branch.atoms for v in row.variables)
    if any(isinstance(one, ast.Comparison) and one.op == OR_NULL and one.left == term for one in branch.literals):
        joined_by = 1  # null matches null
    return joined_by < 2 and not any(term.name in computed_with(literal) for literal in branch.literals)
