"""Splitting a clause that computes texts into clauses that kernels can run, with a step between.

Kernels see codes; `cat`, `substr`, `to_number`, `match` and the like need the texts:

    p(z, w) :- r(x, y), z = cat(x, y), q(z, w).

    inner   ·(x, y)    :- r(x, y).                        a join like any other
    step    z := cat(x, y)                                column by column (text_steps.py)
    outer   p(z, w)    :- ·(x, y, z), q(z, w).            a join over the intermediate rows

An atom waits for the outer clause when it holds a computed variable that the rest of the body can compute; where the
computed variable's own arguments come from that atom, the equation is a filter of the step instead. The outer clause
may compute texts again and is then split in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Term, Var, names_of
from lftj.language.functors import TEXT_TESTS, Constraint, known_as
from lftj.values.schema import Column, Schema

INNER = "·"


def computes_text(term: Term) -> bool:
    """Whether `term` holds a functor over texts."""
    if not isinstance(term, Apply):
        return False
    spec = known_as(term.op)
    if isinstance(spec, Constraint) or spec.computes_text(term.args[0].type):
        return True
    return any(computes_text(arg) for arg in term.args)


def _needs_step(compare: Compare) -> bool:
    return compare.op in TEXT_TESTS or computes_text(compare.left) or computes_text(compare.right)


@dataclass(frozen=True, slots=True)
class TextSplit:
    """A clause in two.

    `inner` binds `inner.head_args`, then come `definitions` (variable, term) and `filters`, then `outer` reads the rows
    of `schema`.
    """

    inner: Clause
    definitions: tuple[tuple[Var, Term], ...]
    filters: tuple[Compare, ...]
    schema: Schema
    outer: Clause


def split_text(clause: Clause) -> TextSplit | None:
    """How to evaluate a clause that computes texts; None for one that does not. Found once, kept with the clause."""
    if not clause.text_split:
        clause.text_split.append(_made(clause))
    split = clause.text_split[0]
    assert split is None or isinstance(split, TextSplit)
    return split


def _made(clause: Clause) -> TextSplit | None:
    in_head = any(computes_text(term) for term in clause.head_args)
    if not in_head and not any(_needs_step(c) for c in clause.compares):
        return None
    return _Splitting(clause).split()


class _Splitting:
    """How a clause is split: into which part its atoms go, and what the step between computes.

    `atoms` bind, with the `plain` comparisons, what the step needs; those `waiting` hold a variable that it computes,
    and are joined after it.
    """

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.plain = [c for c in clause.compares if not _needs_step(c)]
        self.atoms, self.waiting = list(clause.atoms), list[BodyAtom]()
        self.computed: dict[str, tuple[Var, Term]] = {}

    def split(self) -> TextSplit:
        """The clause in two."""
        clause = self.clause
        left = [c for c in clause.compares if _needs_step(c) and not self._defines(c)]
        bound = self._bound_by(self.atoms)
        ready = bound | set(self.computed)
        filters = [c for c in left if names_of(c.left, c.right) <= ready]
        later = [c for c in left if c not in filters]
        early = [c for c in self.plain if names_of(c.left, c.right) <= bound]
        head = tuple(self._shown(term, bound) for term in clause.head_args)
        kept = [var for var in clause.variables() if var.name in bound]
        columns = [*kept, *(var for var, _ in self.computed.values())]
        between = INNER
        while any(atom.predicate == between for atom in clause.atoms):  # the clause is itself the outer part of another
            between += INNER
        # A negated atom goes where its variables are bound first.
        negated = [atom for atom in clause.negated if names_of(*atom.args) <= bound]
        inner = Clause(
            between,
            tuple(kept),
            tuple(self.atoms),
            tuple(early),
            clause.span,
            clause.text,
            clause.rule,
            negated=tuple(negated),
        )
        outer = Clause(
            clause.head,
            head,
            (BodyAtom(between, tuple(columns)), *self.waiting),
            (*(c for c in self.plain if c not in early), *later),
            clause.span,
            clause.text,
            clause.rule,
            negated=tuple(atom for atom in clause.negated if atom not in negated),
            aggregate=clause.aggregate,
        )
        schema = Schema(between, tuple(Column(v.name, v.type) for v in columns))
        return TextSplit(inner, tuple(self.computed.values()), tuple(filters), schema, outer)

    def _bound_by(self, chosen: Sequence[BodyAtom]) -> set[str]:
        """Variables that `chosen` and the plain equations over them bind."""
        names, grew = {name for atom in chosen for name in names_of(*atom.args)}, True
        while grew:
            before = len(names)
            for c in self.plain:
                for side, other in ((c.left, c.right), (c.right, c.left)):
                    if c.op == "=" and isinstance(side, Var) and names >= names_of(other):
                        names.add(side.name)
            grew = len(names) > before
        return names

    def _defines(self, c: Compare) -> bool:
        """Take `c` as the definition of a variable if the atoms that do not hold it can compute it now."""
        for side, other in ((c.left, c.right), (c.right, c.left)):
            if c.op != "=" or not isinstance(side, Var) or side.name in self.computed:
                continue
            rest = [atom for atom in self.atoms if side.name not in names_of(*atom.args)]
            known = self._bound_by(rest)
            # What was computed before must not lose the atoms that bind its arguments.
            needs = names_of(other, *(term for _, term in self.computed.values()))
            if side.name not in known and needs <= known:
                self.waiting += (atom for atom in self.atoms if atom not in rest)
                self.atoms = rest
                self.computed[side.name] = (side, other)
                return True
        return False

    def _shown(self, term: Term, bound: set[str]) -> Term:
        """A term of the head in the outer part: a variable that the step computes, if it can."""
        if not computes_text(term) or not names_of(term) <= bound | set(self.computed):
            return term
        name, taken = f"·{len(self.computed)}", {var.name for var in self.clause.variables()}
        while name in taken:  # the first of two splits
            name += "·"
        self.computed[name] = (Var(name, term.type), term)
        return Var(name, term.type)


def parts_of(clause: Clause) -> Iterator[Clause]:
    """The clauses without text terms that `clause` is evaluated by: itself, or the parts of its split."""
    while (split := split_text(clause)) is not None:
        yield split.inner
        clause = split.outer
    yield clause
