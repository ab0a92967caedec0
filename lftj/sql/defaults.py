"""Defaults of columns: what they hold where an `insert` says nothing, as the one row of a relation of their own.

    create table sale (item int, qty int default 1, day date default '2024-01-01')
    @sale.default(qty, day)                  (1, 2024-01-01)

It is a part of the table, and goes when it goes. A column without a default that admits null holds null.
"""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from lftj.language import ast
from lftj.language.clause import INTERNAL
from lftj.program.state import State
from lftj.sql.catalogue import Table, catalogue_of
from lftj.sql.given_rows import Blank, codes_for, typed_answer
from lftj.sql.places import SqlText
from lftj.sql.question import Question
from lftj.sql.room import Session, extend
from lftj.sql.table_definition import TableDefinition
from lftj.store.change import INSERT, Batch
from lftj.values.type_table import is_nullable, type_of

DEFAULT = "default"


def add_defaults(session: Session, made: TableDefinition, source: SqlText) -> None:
    """Keep the values that columns of a table, which was just declared, have by default."""
    table = catalogue_of(session._present()).table(made.name)
    assert table is not None, "it was just declared"
    codes = [_default(session, table, name, value, source) for name, value in made.defaults.items()]
    columns = [column for column in (table.column(name) for name in made.defaults) if column is not None]
    attributes = tuple(ast.Attribute(column.name, column.type) for column in columns)
    declared = ast.Declaration(f"{INTERNAL}{table.name}.{DEFAULT}", attributes)
    (item,) = extend(session, ast.Program((declared,), source.name)).items
    assert isinstance(item, ast.Declaration)
    session._add(item.name, session._relation(item.name), Batch(np.array(codes, np.int64)[:, None], 1, INSERT))


def _default(session: Session, table: Table, name: str, value: exp.Expr, source: SqlText) -> int:
    """The code of a constant that a column has by default."""
    if (part := value.find(exp.Column, exp.Query)) is not None:
        raise source.error(
            f"the default of `{name}` is no constant",
            part,
            why="it is computed once, when the table is created",
            remedy="write a value, such as 0 or 'none'",
        )
    place = [column.name for column in table.columns].index(name)
    question = Question(exp.Select(expressions=[exp.alias_(value.copy(), name, quoted=True)]), source)
    found = typed_answer(session, question, [table.columns[place].type], source)
    return int(codes_for(table, place, found.rows[0], found.columns[0], value, source)[0])


def blank_row(state: State, table: Table) -> Blank:
    """The codes of a row of which nothing is said: defaults, else null; None where a column has neither."""
    begins = f"{INTERNAL}{table.name}.{DEFAULT}"
    kept = next((relation for name, relation in state.relations.items() if name.startswith(begins)), None)
    given = {} if kept is None else dict(zip(kept.schema.names, kept.facts.columns()[:, 0].tolist(), strict=True))
    return [
        given.get(column.name, type_of(column.type).null if is_nullable(column.type) else None)
        for column in table.columns
    ]
