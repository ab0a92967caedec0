"""Cycles: what a program derives from itself, and which cycles have no meaning.

A relation may not depend on its own negation, nor on an aggregate over itself: it would have to be complete before it
is complete (the program is not stratified). Such a cycle is an error of the program. A minimum or maximum that is the
value of a functional predicate means something even so (shortest paths): where it is all that a rule says, its rule is
among candidates and on no such cycle (min_max.py). Functional predicates alone may be computed key by key, if the data
are acyclic (acyclic.py). In other places an extreme is refused only because it is not evaluated yet, and so is an
aggregate whose groups alone come from the cycle. What recursion without such a cycle may not hold is
in recursion.py.

Cycles are found among clauses and told in the program's own words: relations that rules were taken apart into
(`clause.INTERNAL`) are left out of what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lftj.errors import Span
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.clause import INTERNAL, Clause
from lftj.language.diagnostics import Findings
from lftj.language.infer import TypedClause
from lftj.language.internal_relations import COUNTS, GROUPS, is_part
from lftj.language.stratify import path
from lftj.language.thresholds import THRESHOLDS
from lftj.language.visitors import atoms_of


class Need(NamedTuple):
    """Why a relation has to be complete: how it is read, in words, where, and by which aggregate ("": by none)."""

    word: str
    span: Span
    op: str


@dataclass(slots=True)
class Dependencies:
    """Which relations each head reads, in order of first appearance. Facts alone make a head that reads nothing.

    `complete`: the pairs (head, relation read) where the relation has to be complete before the head is derived.
    `broken`: the heads of rules that could not be taken apart, for which what they read is all that is known. `folds`:
    the heads of aggregates.
    """

    reads: dict[str, dict[str, None]] = field(default_factory=dict)
    complete: dict[tuple[str, str], Need] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    folds: set[str] = field(default_factory=set)

    def known(self, clauses: Iterable[Clause]) -> None:
        """Add the clauses of a database."""
        for clause in clauses:
            self._add(
                clause.head,
                [(atom.predicate, atom.span) for atom in clause.atoms],
                [(atom.predicate, atom.span) for atom in clause.negated],
                *(_fold(clause) if clause.aggregate else ("", "")),
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
                _folding(clause.head.name, clause.fold.op) if clause.fold else "",
            )
        if not read:
            for head in rule.heads:
                self.broken.add(head.name)
                self.reads[head.name].update((atom.name, None) for atom in atoms_of(rule))

    def _add(
        self,
        head: str,
        atoms: Sequence[tuple[str, Span]],
        negated: Sequence[tuple[str, Span]],
        aggregate: str,
        fold: str,
    ) -> None:
        """`fold`: what folds the atoms, in words, by which `aggregate`, if it is one."""
        read = self.reads.setdefault(head, {})
        if fold:
            self.folds.add(head)
        for name, span in atoms:
            read[name] = None
            if fold:
                self.complete.setdefault((head, name), Need(fold, span, aggregate))
        for name, span in negated:
            read[name] = None
            word = "a negated conjunction" if name.startswith(INTERNAL) else f"the negation of `{name}`"
            self.complete.setdefault((head, name), Need(word, span, ""))


def _fold(clause: Clause) -> tuple[str, str]:
    """(the aggregate by which a clause of a database folds, if it is one; what folds, in words)."""
    assert clause.aggregate is not None
    op = clause.aggregate.op.removeprefix(f"{THRESHOLDS} ")
    # A circuit, path counts and what SQL has of its own are no aggregates, and are marked as folds.
    return (op, _folding(clause.head, op)) if op in AGGREGATES else ("", f"`{clause.text}`")


def _folding(head: str, op: str) -> str:
    """What folds, in words: of the counts below a quantile, which nobody wrote, that."""
    return "an aggregate of counted values" if is_part(head) and head.endswith(COUNTS) else f"the aggregate `{op}`"


def refuse_cycles(
    found: Sequence[tuple[str, ...]],
    dependencies: Dependencies,
    functional: Callable[[str], bool],
    findings: Findings,
) -> list[tuple[str, ...]]:
    """Report the components with a cycle through negation or an aggregate; the other recursive ones are returned.

    Those that hold a broken rule are in neither. `functional` tells the functional predicates.
    """
    recursive = []
    for component in found:
        if len(component) == 1 and component[0] not in dependencies.reads[component[0]]:
            continue
        negative = _negative(component, dependencies)
        if negative is None:
            if dependencies.broken.isdisjoint(component):
                recursive.append(component)
            continue
        round_, need = negative
        needs = {n.op for (h, r), n in dependencies.complete.items() if h in component and r in component}
        extreme = AGGREGATES[need.op].extreme if need.op in AGGREGATES else ""
        if extreme and needs == {need.op} and any(functional(name) for name in _named(round_)):
            findings.unsupported(
                f"recursive {extreme} ({shown(round_)})",
                need.span,
                remedy=f"make it all that a rule says, `f[key] = {need.op} value : {{ ... }}`, and load the rules of "
                "the recursion together",
            )
        elif any(name.startswith(INTERNAL) and name.endswith(GROUPS) for name in round_):
            what = f"aggregate `{need.op}`" if need.op else "a negated conjunction"
            findings.unsupported(
                f"{what} whose groups come from recursion ({shown(round_)})",
                need.span,
                remedy="bind all variables that it shares with the rule by atoms within it",
            )
        else:
            remedy = "derive one of these relations without the others"
            if need.op and (plain := [name for name in _named(round_)[1:] if not functional(name)]):
                remedy += f", or make `{plain[0]}` a functional predicate (`{plain[0]}[key] = ...`), which is computed "
                remedy += "key by key where the data have no cycle"
            findings.error(
                f"a negative cycle: {shown(round_)}, through {need.word}",
                need.span,
                why="a relation has to be complete before it can be negated or aggregated, so none may wait for itself",
                remedy=remedy,
                predicate=_named(round_)[0],
            )
    return recursive


def _negative(component: tuple[str, ...], dependencies: Dependencies) -> tuple[list[str], Need] | None:
    """A cycle within a component that asks for a complete relation, and how it does."""
    members = set(component)
    for head in component:
        for name in dependencies.reads[head]:
            need = dependencies.complete.get((head, name))
            if need is None or name not in members:
                continue
            back = path(name, head, members, dependencies.reads) if name != head else [head]
            return [head, *back], need
    return None


def _named(round_: Sequence[str]) -> list[str]:
    """A cycle without internal relations, unless it has no others, from and to the first."""
    names = [name for name in round_[:-1] if not name.startswith(INTERNAL)] or list(round_[:-1])
    return [*names, names[0]]


def shown(round_: Sequence[str]) -> str:
    """A cycle in the program's words."""
    return " -> ".join(f"`{name}`" for name in _named(round_))
