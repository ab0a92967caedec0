"""Clauses of one body: aggregates over the same bindings, in the same groups, of other operands.

    @q.1(k, sum x)       :- line(k, x, _w1, d), d < 5.
    @q.2(k, mean x * y)  :- line(k, x, y, d), d < 5.
    @q.3(k, count)       :- line(k, _w1, _w2, d), d < 5.

Their maps are one program: a row is followed once, whatever is summed of it. Which bodies are one is seen by their
form, in which variables are numbered by their first place in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from lftj.language.clause import Apply, Clause, Term, Value, Var, replaced, variables_of

Form = tuple[Hashable, ...]


def form_of(clause: Clause) -> Form:
    """What is equal of clauses of one body, of an aggregate: all but the operand and the names of variables."""
    numbers: dict[str, Term] = {var.name: Var(f"{i}", "") for i, var in enumerate(_numbered(clause))}

    def form(term: Term | None) -> Hashable:
        return term if term is None else (_kinds(term), replaced(term, numbers))

    return (
        tuple((atom.predicate, *map(form, atom.args)) for atom in clause.atoms),
        tuple((atom.predicate, *map(form, atom.args)) for atom in clause.negated),
        tuple((compare.op, form(compare.left), form(compare.right)) for compare in clause.compares),
        tuple(map(form, _groups(clause))),
    )


def operand_in(clause: Clause, other: Clause) -> Term | None:
    """What `other`, of the same form, sums, over the variables of `clause`; None of a count."""
    aggregate = other.aggregate
    if aggregate is None or aggregate.op == "count":
        return None
    here: dict[str, Term] = {
        theirs.name: ours for ours, theirs in zip(_numbered(clause), _numbered(other), strict=True)
    }
    return replaced(other.head_args[aggregate.groups], here)


def _groups(clause: Clause) -> Sequence[Term]:
    return () if clause.aggregate is None else clause.head_args[: clause.aggregate.groups]


def _numbered(clause: Clause) -> list[Var]:
    """The variables of the body and the groups, each once, by their first places."""
    terms: list[Term | None] = [arg for atom in (*clause.atoms, *clause.negated) for arg in atom.args]
    terms += [side for compare in clause.compares for side in (compare.left, compare.right)]
    terms += _groups(clause)
    return list({var.name: var for term in terms for var in variables_of(term)}.values())


def _kinds(term: Term) -> tuple[str, ...]:
    """The types of a term's parts, which tell variables of one number apart, and constants that are equal in Python."""
    return tuple(_parts(term))


def _parts(term: Term) -> Iterator[str]:
    yield term.type
    if isinstance(term, Value):
        yield term.value.__class__.__name__
    elif isinstance(term, Apply):
        for arg in term.args:
            yield from _parts(arg)
