"""Heads that are another relation under a new name: they share its content, and its changes are theirs.

    deg(x, n) :- @deg.1(x, n).      the last step of most aggregates, and of any renaming

Such a head needs no trace and no pages. It has a content of its own only where it must: while it has facts, and until
the first commit after an evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lftj.engine.stored import StoredRelation
from lftj.language.clause import Clause, Var


def shared_with(clauses: Sequence[Clause], relations: Mapping[str, StoredRelation]) -> str:
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
    # A recursive relation keeps rounds beside its rows, in versions of another shape.
    if head.types != below.types or below.content.store.hidden or atom.predicate == clause.head:
        return ""
    return atom.predicate
