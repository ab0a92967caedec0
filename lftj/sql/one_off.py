"""Queries that are asked once, and views, as rules to be added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language import ast
from lftj.language.diagnostics import counted
from lftj.program.state import State
from lftj.results.answers import Answers
from lftj.sql.catalogue import Catalogue, find
from lftj.sql.limits import limited
from lftj.sql.parameters import NOTHING, Given
from lftj.sql.places import SqlText
from lftj.sql.queries import translated, unwrapped
from lftj.sql.question import Answer, Asking, Question, positions
from lftj.sql.results import SqlResult
from lftj.sql.view import View
from lftj.values.codes import Schema

# --- queries ----------------------------------------------------------------------------------------------------------


def asked(database: Answers, question: Question, timeout: float | None, given: Given = NOTHING) -> SqlResult:
    """The answer of a query over what a database holds; what it reads is brought up to date first, and stays so."""
    with database._lock:
        evaluator, until = database._evaluator, Limits.within(timeout)
        stale = question.below(evaluator, database._state)
        if stale:
            database._refresh(stale, timeout)
        progress = database._progress.rows(lambda: "query")
        state = database._state
        found = question.rows(evaluator, state, lambda _: Limits(until.deadline, timeout, progress), given)
        view = question.view(evaluator, state)
    return _in_order(found, view, evaluator)


def selected(asking: Asking, state: State, question: Question, given: Given = NOTHING) -> SqlResult:
    """The answer of a query over a state that is not published."""
    evaluator = asking._evaluator
    found = question.rows(evaluator, state, asking._limits(), given)
    return _in_order(found, question.view(evaluator, state), evaluator)


def _in_order(found: Answer, view: View, evaluator: Evaluator) -> SqlResult:
    """The rows of an answer as often as they are there, in the order of the query, then of the values."""
    width, order = len(view.columns) - view.hidden, positions(found, view, evaluator)
    return SqlResult(Schema("select", found.columns[:width]), found.rows[:width, order], evaluator.symbols)


# --- views ------------------------------------------------------------------------------------------------------------


def view_of(query: exp.Expr, named: Sequence[str], name: str, catalogue: Catalogue, source: SqlText) -> ast.Program:
    """The declarations and rules of a view; `named`: its columns, where not as the query names them."""
    query = unwrapped(query)
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
