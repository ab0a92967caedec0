"""Heads that are another relation under a new name, or with its columns in another order.

deg(x, n) :- @deg.1(x, n).      the last step of most aggregates, and of any renaming
inverse(x, y) :- e(y, x).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lftj.language.clause import Clause, Var
from lftj.store.stored import StoredRelation
from lftj.values.type_table import with_null


def alias_of(clauses: Sequence[Clause], relations: Mapping[str, StoredRelation]) -> str:
    """The relation whose rows the rules `clauses` of a head copy, if that is all they do; else empty."""
    if len(clauses) != 1:
        return ""
    clause = clauses[0]
    if len(clause.atoms) != 1 or clause.compares or clause.negated or clause.aggregate is not None:
        return ""
    atom, args = clause.atoms[0], clause.head_args
    if not args or atom.args != args or len(set(args)) < len(args) or not all(isinstance(arg, Var) for arg in args):
        return ""
    head, below = relations[clause.head], relations[atom.predicate]
    # Values are stored alike whether null may stand beside them or not.
    alike = all(wide in (narrow, with_null(narrow)) for wide, narrow in zip(head.types, below.types, strict=True))
    # A recursive relation keeps rounds beside its rows, in versions of another shape.
    if not alike or below.content.store.hidden or atom.predicate == clause.head:
        return ""
    return atom.predicate


def permuted_of(clause: Clause) -> tuple[str, tuple[int, ...]] | None:
    """(the relation whose rows a clause copies, which of its columns each argument of the head is) if that is all."""
    if len(clause.atoms) != 1 or clause.compares or clause.negated or clause.aggregate is not None:
        return None
    args, head_args = clause.atoms[0].args, clause.head_args
    variables = {arg for arg in args if isinstance(arg, Var)}
    if len(variables) < len(args) or variables != {*head_args} or len(head_args) != len(args):
        return None
    return clause.atoms[0].predicate, tuple(args.index(arg) for arg in head_args if isinstance(arg, Var))
