"""Constraints: relations that must stay empty, and the error that shows a row.

    .decl orphan(item:number) empty
    orphan(i) :- sale(i, _), !item(i, _).

Rules say what must not be there, and are followed like any others, by what a transaction changed. A commit, a load or a
program that would leave a row in such a relation is refused with a `ConstraintError`, and the database is as before. So
one of them is never stale in a state that is published after it was declared: whoever publishes one has it evaluated.

`check`, `unique` and foreign keys of SQL are constraints: heads such as `@sale.check1`, parts of the table (lftj/sql).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lftj.errors import ConstraintError
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.key_conflicts import A_FACT, derivation, shown_row
from lftj.join.run import Limits
from lftj.language.clause import INTERNAL, owner
from lftj.language.notation import literal_text
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values import gate


def constraints_of(state: State) -> list[str]:
    """The relations that must stay empty."""
    return [name for name, relation in state.relations.items() if relation.schema.constraint]


def check_constraints(evaluator: Evaluator, names: Iterable[str], limits: Callable[[str], Limits]) -> None:
    """Raise `ConstraintError` if one of these relations of the evaluator's state has a row, and must be empty."""
    for name in names:
        relation = evaluator.relations.get(name)
        if relation is not None and relation.schema.constraint and len(relation.content):
            raise _broken(evaluator, relation, limits(name))


def _broken(evaluator: Evaluator, relation: StoredRelation, limits: Limits) -> ConstraintError:
    schema, rows = relation.schema, relation.content.columns()
    row = gate.decode_row(rows[:, 0].tolist(), schema, evaluator.symbols)
    more = f", and {len(relation.content) - 1} more" if len(relation.content) > 1 else ""
    if schema.name.startswith(INTERNAL):
        values = (
            f"{column.name} = {literal_text(value, column.type)}"
            for column, value in zip(schema.columns, row, strict=True)
        )
        return ConstraintError(
            f"`{owner(schema.name)}` breaks {schema.constraint}: {', '.join(values)}{more}",
            relation=owner(schema.name),
            constraint=schema.constraint,
            row=row,
            why="a constraint holds for the rows that are there when a transaction ends; nothing was changed",
            remedy="correct the rows, or change what they are checked against in the same transaction",
        )
    a_fact = relation.facts.contains(rows[:, :1])[0]
    cause = A_FACT if a_fact else derivation(evaluator, evaluator.state.strata.of(schema.name), row, limits)[0]
    return ConstraintError(
        f"`{schema.name}` must stay empty, and would have the row {shown_row(schema, row)}{more}",
        relation=schema.name,
        constraint=schema.constraint,
        row=row,
        details=(f"{shown_row(schema, row)}: {cause}",),
        why=f"`{schema.name}` is declared `empty`; nothing was changed",
        remedy="change the rows that its rules read in the same transaction, so that they derive nothing",
    )
