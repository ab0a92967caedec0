"""The table that a statement changes, its columns, and what it assigns to them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lftj.language.diagnostics import did_you_mean
from lftj.sql.catalogue import Catalogue, Table, find
from lftj.sql.ddl import known_table
from lftj.sql.places import SqlText

# What says the same as a part of a statement that is not supported.
_INSTEAD = {
    "returning": "leave it out: `db.sql` returns the rows that came and went",
}


def refuse_parts(statement: exp.Expr, source: SqlText, **features: str) -> None:
    """Refuse the parts of a statement that are not supported, each by what it is called."""
    for part, feature in features.items():
        given = statement.args.get(part)
        if given:
            node = given if isinstance(given, exp.Expr) else statement
            raise source.unsupported(feature, node, _INSTEAD.get(part, "write the statement without it"))


def changed_table(node: exp.Expr, catalogue: Catalogue, source: SqlText) -> Table:
    """The table that a node names; a view is refused."""
    table = known_table(node, catalogue, source)
    if node.args.get("joins"):
        raise source.error(
            "several tables whose rows are to be changed",
            node,
            why="a statement changes one table, and which of them is meant it does not say",
            remedy="name the others behind `using` in `delete`, and behind `from` in `update`",
        )
    if table.view:
        raise source.error(
            f"`{table.name}` is a view, and its rows cannot be changed",
            node,
            why="they are what its definition, or its rules, derive",
            remedy="change the tables that it reads",
        )
    return table


def places_of(table: Table, named: Sequence[exp.Expr] | None, source: SqlText) -> list[int]:
    """The positions of the columns that nodes name; of all, if there are no such nodes."""
    columns = [column.name for column in table.columns]
    if named is None:
        return list(range(len(columns)))
    places: list[int] = []
    for node in named:
        name = node.name
        found = find(name, columns)
        if found is None:
            raise source.error(
                f"`{table.name}` has no column `{name}`",
                node,
                why=f"its columns are {', '.join(columns)}",
                remedy=did_you_mean(name, columns, "name one of these"),
            )
        if columns.index(found) in places:
            raise source.error(
                f"column `{found}` is named twice",
                node,
                why="a row has one value in each column",
                remedy="leave one of the two out",
            )
        places.append(columns.index(found))
    return places


def columns_of(table: Table, node: exp.Expr) -> list[exp.Expr]:
    """The columns of a table, as a select names them."""
    alias = node.alias_or_name
    return [exp.column(exp.to_identifier(column.name, quoted=True), alias) for column in table.columns]


def assignments(table: Table, called: str, items: Sequence[exp.Expr], source: SqlText) -> dict[int, exp.Expr]:
    """The values of `set`, by the positions of their columns. `called`: the table, in the statement."""
    assigned: dict[int, exp.Expr] = {}
    for item in items:
        column = item.this if isinstance(item, exp.EQ) else None
        if not isinstance(column, exp.Column):
            raise source.unsupported(f"`set {item.sql('duckdb')}`", item, "write `set column = value, ...`")
        (place,) = places_of(table, [column], source)
        if column.table and column.table.casefold() != called.casefold():
            raise source.error(
                f"`set {column.sql('duckdb')}`, and `{called}` is changed",
                column,
                why="a statement sets columns of the table that it changes",
                remedy=f"write `set {column.name} = ...`",
            )
        if place in assigned:
            raise source.error(
                f"`{column.name}` is set twice",
                item,
                why="a column has one value in each row",
                remedy="leave one of the two out",
            )
        value = item.expression
        if isinstance(value, exp.Column) and value.sql().lower() == "default" and table.column("default") is None:
            value = exp.Var(this="DEFAULT")
            value.parent = item  # where it stands
        assigned[place] = value
    return assigned
