"""Views as rules to be added: those of a query, whose head has the name of the view and the columns that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from lftj.language import ast
from lftj.language.clause import INTERNAL
from lftj.language.functors import OR_NULL
from lftj.sql.catalogue import Catalogue, find
from lftj.sql.limits import limited
from lftj.sql.places import SqlText
from lftj.sql.queries import translated, unwrapped
from lftj.sql.view import View
from lftj.sql.written_windows import without_distinct_on
from lftj.values.faults import counted


def view_of(query: exp.Expr, named: Sequence[str], name: str, catalogue: Catalogue, source: SqlText) -> ast.Program:
    """The declarations and rules of a view; `named`: its columns, where not as the query names them."""
    query = without_distinct_on(unwrapped(query), source)
    if limited(query):
        inner = exp.TableAlias(this=exp.to_identifier("limited"))
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query.copy(), alias=inner)))
    view = translated(query, catalogue, name, source, ordered=False)
    columns = column_names([column.name for column in view.columns], named, f"the view `{name}`", query, source)
    return ast.Program(_with_constants_apart(_renamed(view, columns), name), source.name)


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


def _with_constants_apart(items: tuple[ast.Item, ...], name: str) -> tuple[ast.Item, ...]:
    """The items of a view whose head has rules and no facts: a part has these, so that others can take their place.

    A view that can have no rows has an empty part: without a rule nothing could take its place, and rows could be put
    into it.
    """
    facts = [item for item in items if _is_fact_of(item, name)]
    if not facts and any(isinstance(item, ast.Rule) and item.heads[0].name == name for item in items):
        return items
    part = f"{INTERNAL}{name}.constants"
    declared = next(item for item in items if isinstance(item, ast.Declaration) and item.name == name)
    args = tuple(ast.Variable(f"c{at}") for at in range(len(declared.attributes)))
    head = ast.Assignment(name, args[:-1], args[-1]) if declared.functional else ast.Atom(name, args)
    return (
        *(item for item in items if item not in facts),
        ast.Declaration(part, declared.attributes, functional=declared.functional),
        *(replace(fact, heads=(replace(fact.heads[0], name=part),)) for fact in facts),
        ast.Rule((head,), (ast.Atom(part, args), *(ast.Comparison(OR_NULL, arg, arg) for arg in args))),
    )


def _is_fact_of(item: ast.Item, name: str) -> TypeGuard[ast.Rule]:
    return isinstance(item, ast.Rule) and not item.body and item.heads[0].name == name and not folds(item.heads[0])


def folds(head: ast.Head) -> bool:
    """Whether a head has an aggregate: without a body it is no fact."""
    return isinstance(head, ast.Assignment) and isinstance(head.value, ast.Aggregate)


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
