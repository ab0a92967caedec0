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

from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Term, Var, variables_of
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
    steps = [c for c in clause.compares if _needs_step(c)]
    in_head = [term for term in clause.head_args if computes_text(term)]
    if not steps and not in_head:
        return None
    plain = [c for c in clause.compares if not _needs_step(c)]
    atoms = list(clause.atoms)
    waiting: list[BodyAtom] = []
    computed: dict[str, tuple[Var, Term]] = {}
    filters: list[Compare] = []

    def bound_by(chosen: Sequence[BodyAtom]) -> set[str]:
        """Variables that `chosen` and the plain equations over them bind."""
        names = {v.name for atom in chosen for arg in atom.args for v in variables_of(arg)}
        grew = True
        while grew:
            grew = False
            for c in plain:
                for side, other in ((c.left, c.right), (c.right, c.left)):
                    if (
                        c.op == "="
                        and isinstance(side, Var)
                        and side.name not in names
                        and names >= {v.name for v in variables_of(other)}
                    ):
                        names.add(side.name)
                        grew = True
        return names

    def define(c: Compare) -> bool:
        """Take `c` as the definition of a variable if the atoms that do not hold it can compute it now."""
        for side, other in ((c.left, c.right), (c.right, c.left)):
            if c.op != "=" or not isinstance(side, Var) or side.name in computed:
                continue
            needs = {v.name for v in variables_of(other)}
            rest = [a for a in atoms if side.name not in {v.name for arg in a.args for v in variables_of(arg)}]
            known = bound_by(rest)
            # What was computed before must not lose the atoms that bind its arguments.
            for _, term in computed.values():
                needs |= {v.name for v in variables_of(term)}
            if side.name not in known and needs <= known:
                waiting.extend(a for a in atoms if a not in rest)
                atoms[:] = rest
                computed[side.name] = (side, other)
                return True
        return False

    left = [c for c in steps if not define(c)]
    names = bound_by(atoms)
    later: list[Compare] = []
    for c in left:
        ready = {v.name for term in (c.left, c.right) for v in variables_of(term)} <= names | set(computed)
        (filters if ready else later).append(c)
    inner_plain = [c for c in plain if {v.name for t in (c.left, c.right) for v in variables_of(t)} <= names]
    outer_plain = [c for c in plain if c not in inner_plain]
    types = {v.name: v for v in clause.variables()}
    head: list[Term] = []
    for term in clause.head_args:
        if computes_text(term) and {v.name for v in variables_of(term)} <= names | set(computed):
            name = f"·{len(computed)}"
            while name in types:  # the first of two splits
                name += "·"
            computed[name] = (Var(name, term.type), term)
            head.append(Var(name, term.type))
        else:
            head.append(term)
    kept = [types[name] for name in types if name in names]
    columns = [*kept, *(var for var, _ in computed.values())]
    between = INNER
    while any(atom.predicate == between for atom in clause.atoms):  # the clause is itself the outer part of another
        between += INNER
    schema = Schema(between, tuple(Column(v.name, v.type) for v in columns))
    # A negated atom goes where its variables are bound first.
    early = [a for a in clause.negated if {v.name for arg in a.args for v in variables_of(arg)} <= names]
    inner = Clause(
        between,
        tuple(kept),
        tuple(atoms),
        tuple(inner_plain),
        clause.span,
        clause.text,
        clause.rule,
        negated=tuple(early),
    )
    outer = Clause(
        clause.head,
        tuple(head),
        (BodyAtom(between, tuple(columns)), *waiting),
        (*outer_plain, *later),
        clause.span,
        clause.text,
        clause.rule,
        negated=tuple(a for a in clause.negated if a not in early),
        aggregate=clause.aggregate,
    )
    return TextSplit(inner, tuple(computed.values()), tuple(filters), schema, outer)


def parts_of(clause: Clause) -> Iterator[Clause]:
    """The clauses without text terms that `clause` is evaluated by: itself, or the parts of its split."""
    while (split := split_text(clause)) is not None:
        yield split.inner
        clause = split.outer
    yield clause
