"""`create table`: a declaration in the open transaction, and the rows of a query where it is made of one.

    create table t (a int, b text)               table_definition.py, constraints.py, defaults.py
    create table t as select a, b from u         a bag with the columns of the query, all of which admit null

A query is asked before the table that it replaces goes.
"""

from __future__ import annotations

from sqlglot import exp

from lftj.language import ast
from lftj.language.names import BAG, COPIES
from lftj.sql import ddl
from lftj.sql.catalogue import catalogue_of, unlike
from lftj.sql.constraints import add_constraints
from lftj.sql.defaults import add_defaults
from lftj.sql.given_rows import codes_for
from lftj.sql.places import SqlText
from lftj.sql.question import NO_OPTIONS, Answer, Question
from lftj.sql.room import Session
from lftj.sql.row_changes import insert_rows
from lftj.sql.table_definition import definition_of
from lftj.sql.view_rules import column_names
from lftj.values.type_table import with_null, without_null


def create_table(
    session: Session, create: exp.Create, target: exp.Expr, source: SqlText, *, replaced: str | None = None
) -> None:
    """Carry out a `create table`, in the place of the table `replaced` where there is one."""
    query = create.expression
    # It may read the old table.
    found = None if query is None else Question(query, source).answer(session, session._present())
    if replaced is not None:
        session._drop(replaced)
    if found is None:
        made = definition_of(create, source)
        if "." in made.name and (made.constraints or made.defaults):
            raise source.unsupported(
                "a constraint or default of a table with a dot in its name", target, "give it a name without a dot"
            )
        session._extended(ast.Program((made.declaration(target, source),), source.name), NO_OPTIONS)
        if made.defaults:
            add_defaults(session, made, source)
        add_constraints(session, made, source)
        return
    name = ddl.name_of(target, source)
    named = [part.name for part in create.this.expressions] if isinstance(create.this, exp.Schema) else []
    columns = column_names([column.name for column in found.columns], named, f"the table `{name}`", query, source)
    span = source.span(target)
    attributes = [
        ast.Attribute(column, with_null(without_null(given.type)), span)
        for column, given in zip(columns, found.columns, strict=True)
    ]
    attributes.append(ast.Attribute(unlike(COPIES, columns), "number", span))
    declaration = ast.Declaration(name, tuple(attributes), (BAG,), span, functional=True)
    session._extended(ast.Program((declaration,), source.name), NO_OPTIONS)
    properties = create.args.get("properties")
    if properties is None or not any(given.args.get("no") for given in properties.find_all(exp.WithDataProperty)):
        _fill(session, name, found, query, source)


def _fill(session: Session, name: str, found: Answer, query: exp.Expr, source: SqlText) -> None:
    """Insert the rows of an answer into the table that has its columns."""
    table = catalogue_of(session._present()).table(name)
    assert table is not None, "it was just declared"
    for place, column in enumerate(found.columns):
        codes_for(table, place, found.rows[place], column, query, source)
    insert_rows(session, table, found.rows, found.copies)
