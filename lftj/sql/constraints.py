"""Constraints of tables, as heads that must stay empty.

    check (qty > 0)                          @sale.check1     select * from sale where not (qty > 0)
    unique (a, b)                            @sale.unique2    the keys without null that more than one row has
    foreign key (item) references item (id)  @sale.foreign3   the rows whose key, without null, no row of `item` has

They are parts of the table: their names begin with its own, they go when it goes, and a table that one of them reads
cannot be dropped before (`lftj/evaluate/empty_relations.py` refuses a commit that leaves a row in one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lftj.language import ast
from lftj.language.clause import INTERNAL
from lftj.language.names import EMPTY, VIEW
from lftj.sql.catalogue import Catalogue, Table, catalogue_of, find, unlike
from lftj.sql.ddl import known_table, sql_type
from lftj.sql.places import SqlText
from lftj.sql.queries import translated
from lftj.sql.room import Session, extend
from lftj.sql.table_definition import TableConstraint, TableDefinition, words_of
from lftj.values.type_table import without_null


def add_constraints(session: Session, made: TableDefinition, source: SqlText) -> None:
    """Add the constraints of a table that was just declared."""
    table = catalogue_of(session._present()).table(made.name)
    assert table is not None, "it was just declared"
    for number, constraint in enumerate(made.constraints, 1):
        catalogue = catalogue_of(session._present())
        query = _rows_that_break(table, constraint, catalogue, source)
        view = translated(query, catalogue, f"{INTERNAL}{table.name}.{constraint.kind}{number}", source)
        qualifiers = (VIEW, f"{EMPTY} {words_of(constraint)}")
        declared, *rules = view.items
        assert isinstance(declared, ast.Declaration)
        extend(session, ast.Program((replace(declared, qualifiers=qualifiers), *rules), source.name))


# --- queries ----------------------------------------------------------------------------------------------------------


def _rows_that_break(table: Table, constraint: TableConstraint, catalogue: Catalogue, source: SqlText) -> exp.Select:
    """The query whose rows break a constraint; no two of them are alike."""
    if constraint.condition is not None:
        return _unchecked(table, constraint.condition, source)
    if constraint.references is None:
        return _repeated(table, constraint.columns)
    return _without_partner(table, constraint, catalogue, source)


def _from(table: Table, shown: Sequence[exp.Expr], alias: str | None = None) -> exp.Select:
    node = exp.to_table(table.name, quoted=True)
    return exp.Select(
        expressions=list(shown), from_=exp.From(this=exp.alias_(node, alias, table=True) if alias else node)
    )


def _column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True) if table else None)


def _named(type: str) -> str:
    return str(sql_type(type).sql("duckdb").lower())


def _unchecked(table: Table, condition: exp.Expr, source: SqlText) -> exp.Select:
    for kind, what in ((exp.Query, "a subquery"), (exp.AggFunc, "an aggregate"), (exp.Window, "a window function")):
        if (found := condition.find(kind)) is not None:
            raise source.error(
                f"{what} in `check`",
                found,
                why="a check is about one row",
                remedy="declare a relation `empty` by `db.rules`, and derive there what must not be",
            )
    shown = [_column(column.name, table.name) for column in table.columns]
    return _from(table, shown).where(exp.not_(exp.paren(condition.copy()))).distinct()


def _present(columns: Sequence[str], alias: str | None = None) -> list[exp.Expr]:
    """That no column of a key is null: null is like nothing."""
    return [exp.not_(exp.Is(this=_column(name, alias), expression=exp.Null())) for name in columns]


def _repeated(table: Table, columns: Sequence[str]) -> exp.Select:
    key = [_column(name) for name in columns]
    number = exp.Count(this=exp.Star())
    shown = [*key, exp.alias_(number, unlike("rows", columns), quoted=True)]
    more = exp.GT(this=number.copy(), expression=exp.Literal.number(1))
    return _from(table, shown).where(*_present(columns)).group_by(*(part.copy() for part in key)).having(more)


def _without_partner(table: Table, constraint: TableConstraint, catalogue: Catalogue, source: SqlText) -> exp.Select:
    node, named = constraint.references or (constraint.node, ())
    other = known_table(node, catalogue, source)
    partner = _partner_columns(table, other, constraint, named, source)
    there = _from(other, [exp.Literal.number(1)], "referenced").where(
        *(
            exp.EQ(this=_column(theirs, "referenced"), expression=_column(ours, "referring"))
            for ours, theirs in zip(constraint.columns, partner, strict=True)
        )
    )
    shown = [_column(column.name, "referring") for column in table.columns]
    query = _from(table, shown, "referring").where(*_present(constraint.columns, "referring"))
    return query.where(exp.not_(exp.Exists(this=there))).distinct()


def _partner_columns(
    table: Table, other: Table, constraint: TableConstraint, named: Sequence[str], source: SqlText
) -> list[str]:
    """The columns that a foreign key refers to: a primary key, or unique ones."""
    theirs = [column.name for column in other.columns]
    found = [find(name, theirs) for name in named] if named else list(other.key)
    keys = [set(key) for key in other.keys]
    if other.view or None in found or set(found) not in keys or len(set(found)) < len(found):
        shown = "" if other.view else " or ".join(f"({', '.join(key)})" for key in other.keys)
        raise source.error(
            f"{words_of(constraint)} refers to no key of `{other.name}`",
            constraint.node,
            why="several rows there could have the value, and each would do",
            remedy=f"name a key of it: {shown}" if shown else "refer to a primary key, or to columns that are `unique`",
        )
    if len(found) != len(constraint.columns):
        raise source.error(
            f"{words_of(constraint)} has {len(constraint.columns)} columns for {len(found)}",
            constraint.node,
            why="each column refers to one of the other table",
            remedy="name as many columns on both sides",
        )
    for ours, name in zip(constraint.columns, found, strict=True):
        mine, its = table.column(ours), other.column(name or "")
        assert mine is not None
        assert its is not None
        if without_null(mine.type) != without_null(its.type):
            raise source.error(
                f"`{ours}` of `{table.name}` and `{name}` of `{other.name}` have different types",
                constraint.node,
                why=f"one is {_named(mine.type)} and the other {_named(its.type)}, which are never the same value",
                remedy="declare both with one type",
            )
    return [name or "" for name in found]
