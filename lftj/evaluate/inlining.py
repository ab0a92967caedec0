"""Aggregates over relations of bindings, written over what derives these.

    @p.1.all(c, v, x) :- sale(_, c, v), x = c % 10.      @p.1[x] = max v : { @p.1.all(c, v, x) }.
        ->   @p.1[x] = max v : { sale(_, c, v), x = c % 10 }.

    @p.1.all(n, u) :- sale(_, n, _), u = upper(n).       @p.1[u] = sum v : { sale(i, n, v), @p.1.all(n, u) }.
        ->   @p.1[u] = sum v : { sale(i, n, v), u = upper(n) }.

Such a relation (lftj/language/aggregates.py, counted_atoms.py) is what changes are followed by, and texts computed in.
Who reads columns needs neither.
"""

from __future__ import annotations

from dataclasses import replace

from lftj.evaluate.group_scan import Extreme, row_fold
from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Term, Var, names_of, replaced


def inlined(clause: Clause, derived: Clause) -> Clause | None:
    """An aggregate with what `derived` reads in place of the one atom over its head.

    None if it would fold other values. The head of `derived` has no other clause, and no facts.
    """
    if derived.aggregate is not None or derived.acyclic or derived.negated or derived.threshold is not None:
        return None
    if clause.aggregate is None or clause.acyclic or clause.negated:
        return None
    places = [i for i, atom in enumerate(clause.atoms) if atom.predicate == derived.head]
    if len(places) != 1:
        return None
    atom, others = clause.atoms[places[0]], (*clause.atoms[: places[0]], *clause.atoms[places[0] + 1 :])
    if not others:
        return _of_its_body(clause, derived) if is_extreme(clause) else None
    by = _matched(atom, others, derived)
    if by is None:
        return None
    compares = (
        *clause.compares,
        *(Compare(c.op, replaced(c.left, by), replaced(c.right, by)) for c in derived.compares),
    )
    return replace(clause, atoms=others, compares=compares)


def is_extreme(clause: Clause) -> bool:
    """Whether the clause keeps the least or the greatest value of each group."""
    aggregate = clause.aggregate
    return aggregate is not None and not clause.acyclic and isinstance(row_fold(aggregate.op), Extreme)


def _of_its_body(clause: Clause, derived: Clause) -> Clause | None:
    """An extreme, for which it does not matter how often a value comes, over the bindings themselves."""
    (atom,) = clause.atoms
    terms = {arg.name: term for arg, term in zip(atom.args, derived.head_args, strict=True) if isinstance(arg, Var)}
    unread = [term for name, term in terms.items() if name not in names_of(*clause.head_args)]
    if len(terms) < len(atom.args) or any(isinstance(term, Apply) for term in unread):
        return None  # nobody would look whether it has a value
    head_args = tuple(replaced(term, terms) for term in clause.head_args)
    return replace(derived, head=clause.head, head_args=head_args, aggregate=clause.aggregate)


def _matched(atom: BodyAtom, others: tuple[BodyAtom, ...], derived: Clause) -> dict[str, Term] | None:
    """What the variables of `derived` are where its head is `atom`, if each of its atoms is one of `others` then.

    None, too, if a variable that its head does not hold is compared or joined: other rows than those of `others` may
    have the value that it needs.
    """
    by: dict[str, Term] = {}
    for own, arg in zip(derived.head_args, atom.args, strict=True):
        if not isinstance(own, Var) or not isinstance(arg, Var) or own.name in by:
            return None
        by[own.name] = Var(arg.name, own.type)
    compared = names_of(*(side for compare in derived.compares for side in (compare.left, compare.right)))
    within = [arg.name for read in derived.atoms for arg in read.args if isinstance(arg, Var) and arg.name not in by]
    if not compared <= by.keys() or len(set(within)) < len(within):
        return None
    return by if all(any(_is(read, other, by) for other in others) for read in derived.atoms) else None


def _is(read: BodyAtom, other: BodyAtom, by: dict[str, Term]) -> bool:
    """Whether each row of `other` is one of `read`."""
    if read.predicate != other.predicate:
        return False
    for own, arg in zip(read.args, other.args, strict=True):
        if isinstance(own, Var):
            known = by.get(own.name)
            if isinstance(known, Var) and not (isinstance(arg, Var) and arg.name == known.name):
                return False
        elif own is not None and own != arg:
            return False
    return True
