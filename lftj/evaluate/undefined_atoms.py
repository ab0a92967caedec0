"""Undefined rows as a relation that clauses read: for the rest of a body, or to leave out what binds such a row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lftj.language.clause import BodyAtom, Clause
from lftj.program.undefined import UndefinedRows
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator


def name_of(atom: BodyAtom, number: int) -> str:
    """What undefined rows of an atom's relation are called."""
    return f"{atom.predicate}.undefined{number}"


def relation_of(evaluator: Evaluator, of: str, one: UndefinedRows, name: str) -> StoredRelation:
    """Undefined rows of the relation `of` as a relation, of their known columns."""
    types = evaluator.relations[of].types
    columns = tuple(Column(f"c{c}", types[c]) for c in one.columns)
    schema = Schema(name, columns)
    made = StoredRelation(schema, evaluator.arena, page_rows=evaluator.page_rows, dir_rows=evaluator.dir_rows)
    return made.successor(made.build(one.rows, len(one.undefined)))


def without_undefined(evaluator: Evaluator, clause: Clause) -> tuple[Clause, dict[str, StoredRelation]]:
    """`clause` without the bindings that read undefined rows, and the relations that it reads for that.

    They have errors of their own, or none.
    """
    undefined = evaluator.state.undefined
    if undefined.keys().isdisjoint(clause.reads):
        return clause, {}
    negated, also = list(clause.negated), dict[str, StoredRelation]()
    for atom in (*clause.atoms, *clause.negated):
        for one in undefined.get(atom.predicate, ()):
            args = tuple(atom.args[c] for c in one.columns)
            if None not in args:
                name = name_of(atom, len(also))
                also[name] = relation_of(evaluator, atom.predicate, one, name)
                negated.append(BodyAtom(name, args))
    return replace(clause, negated=tuple(negated)), also
