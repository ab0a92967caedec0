"""Cycles: what a program derives from itself, and why that is refused.

A relation may not depend on its own negation, nor on an aggregate over itself: it would have to be complete before it
is complete (the program is not stratified). Such a cycle is an error of the program. Recursion without negation means
something, and is refused only because it is not evaluated yet.

Cycles are found among clauses and told in the program's own words: relations that rules were taken apart into
(`clause.INTERNAL`) are left out of what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lftj.errors import Span
from lftj.language import ast
from lftj.language.clause import INTERNAL, Clause
from lftj.language.findings import Findings
from lftj.language.infer import TypedClause
from lftj.language.strata import cycle, path
from lftj.language.walks import atoms_of


@dataclass(slots=True)
class Dependencies:
    """Which relations each head reads, in order of first appearance. Facts alone make a head that reads nothing.

    `complete`: of the pairs (head, relation read) where the relation has to be complete before the head is derived,
    how it is read, in words, and where.
    """

    reads: dict[str, dict[str, None]] = field(default_factory=dict)
    complete: dict[tuple[str, str], tuple[str, Span]] = field(default_factory=dict)

    def known(self, clauses: Iterable[Clause]) -> None:
        """Add the clauses of a database."""
        for clause in clauses:
            self._add(
                clause.head,
                [(atom.predicate, atom.span) for atom in clause.atoms],
                [(atom.predicate, atom.span) for atom in clause.negated],
                clause.aggregate.op if clause.aggregate else "",
            )

    def rule(self, rule: ast.Rule, clauses: Iterable[TypedClause]) -> None:
        """Add a rule and the clauses it was taken apart into; none, if it could not be."""
        for head in rule.heads:
            self.reads.setdefault(head.name, {})
        read = False
        for clause in clauses:
            read = True
            self._add(
                clause.head.name,
                [(atom.name, atom.span) for atom in clause.body.atoms],
                [(atom.name, atom.span) for atom in clause.body.negated],
                clause.fold.op if clause.fold else "",
            )
        if not read:
            for head in rule.heads:
                self.reads[head.name].update((atom.name, None) for atom in atoms_of(rule))

    def _add(
        self, head: str, atoms: Sequence[tuple[str, Span]], negated: Sequence[tuple[str, Span]], aggregate: str
    ) -> None:
        read = self.reads.setdefault(head, {})
        for name, span in atoms:
            read[name] = None
            if aggregate:
                self.complete.setdefault((head, name), (f"the aggregate `{aggregate}`", span))
        for name, span in negated:
            read[name] = None
            word = "a negated conjunction" if name.startswith(INTERNAL) else f"the negation of `{name}`"
            self.complete.setdefault((head, name), (word, span))


def refuse_cycles(
    found: Sequence[tuple[str, ...]], dependencies: Dependencies, rules: Sequence[ast.Rule], findings: Findings
) -> None:
    """Report the components that hold a cycle: one through negation or an aggregate if there is one."""
    for component in found:
        negative = _negative(component, dependencies)
        if negative is not None:
            round_, (word, span) = negative
            findings.error(
                f"a negative cycle: {_shown(round_)}, through {word}",
                span,
                why="a relation has to be complete before it can be negated or aggregated, so none may wait for itself",
                remedy="derive one of these relations without the others",
                predicate=_named(round_)[0],
            )
            continue
        round_ = _named(cycle(component, dependencies.reads))
        steps = set(pairwise(round_))
        for rule in rules if round_ else ():
            uses = {atom.name for atom in atoms_of(rule)}
            head = next((h for h in rule.heads if any((h.name, name) in steps for name in uses)), None)
            if head is not None:
                findings.unsupported(f"recursion ({_shown(round_)})", head.span)
                break


def _negative(component: tuple[str, ...], dependencies: Dependencies) -> tuple[list[str], tuple[str, Span]] | None:
    """A cycle within a component that asks for a complete relation, and how it does."""
    members = set(component)
    for head in component:
        for name in dependencies.reads[head]:
            told = dependencies.complete.get((head, name))
            if told is None or name not in members:
                continue
            back = path(name, head, members, dependencies.reads) if name != head else [head]
            return [head, *back], told
    return None


def _named(round_: Sequence[str]) -> list[str]:
    """A cycle without internal relations, from and to the first that has a name."""
    names = [name for name in round_[:-1] if not name.startswith(INTERNAL)]
    return [*names, names[0]] if names else []


def _shown(round_: Sequence[str]) -> str:
    return " -> ".join(f"`{name}`" for name in _named(round_))
