"""Views as rules to be added: those of a query, whose head has the name of the view and the columns that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lftj.language import ast
from lftj.language.diagnostics import counted
from lftj.sql.catalogue import Catalogue, find
from lftj.sql.limits import limited
from lftj.sql.places import SqlText
from lftj.sql.queries import translated, unwrapped
from lftj.sql.view import View
from lftj.sql.written_windows import without_distinct_on


def view_of(query: exp.Expr, named: Sequence[str], name: str, catalogue: Catalogue, source: SqlText) -> ast.Program:
    """The declarations and rules of a view; `named`: its columns, where not as the query names them."""
    query = without_distinct_on(unwrapped(query), source)
    if limited(query):
        inner = exp.TableAlias(this=exp.to_identifier("limited"))
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query.copy(), alias=inner)))
    elif query.args.get("order") is not None:  # rows of a view have no order
        query = query.copy()
        query.set("order", None)
    view = translated(query, catalogue, name, source)
    columns = column_names([column.name for column in view.columns], named, f"the view `{name}`", query, source)
    return ast.Program(_renamed(view, columns), source.name)


def column_names(found: Sequence[str], named: Sequence[str], what: str, query: exp.Expr, source: SqlText) -> list[str]:
    """The names of the columns of `what` is made of a query: those that are `named`, else those that it has."""
    columns = list(named) or list(found)
    if len(columns) != len(found):
        raise source.error(
            f"{counted(len(columns), 'name')} for {counted(len(found), 'column')} of {what}",
            query,
            why="each column of the query has one name",
            remedy="name all of them, or none",
        )
    for at, column in enumerate(named):
        if find(column, columns[:at]) is not None:
            raise source.error(
                f"{what} has two columns `{column}`",
                query,
                why="columns are known by their names, in any case",
                remedy="give one of them another name with `as`",
            )
    return columns


def _renamed(view: View, names: Sequence[str]) -> tuple[ast.Item, ...]:
    """The items of a view whose head has columns of these names."""
    return tuple(
        replace(
            item,
            attributes=(
                *(replace(a, name=name) for a, name in zip(item.attributes, names, strict=False)),
                *item.attributes[len(names) :],
            ),
        )
        if isinstance(item, ast.Declaration) and item.name == view.name
        else item
        for item in view.items
    )
