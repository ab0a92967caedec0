"""Queries that are asked once: evaluated over a state, and not published. And views, as rules to be added.

The query becomes a head like that of a view, under a name that no relation has. A state with its rules is made beside
the one that is asked, evaluated as far as the head needs, and forgotten; what lies below it and is up to date is read
as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language import ast
from lftj.language.diagnostics import counted
from lftj.maintain.refresh import refresh
from lftj.program.extend import Extension, extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.results.answers import Answers, out_of_memory
from lftj.sql.catalogue import Catalogue, find
from lftj.sql.limits import limited
from lftj.sql.places import SqlText
from lftj.sql.queries import translated, unwrapped
from lftj.sql.results import SqlResult
from lftj.sql.view import Order, View
from lftj.store.stored import StoredRelation
from lftj.values.codes import Column, Schema
from lftj.values.type_table import is_nullable, type_of
from scantree.memory import ArenaFullError

Codes = npt.NDArray[np.int64]
NO_OPTIONS = RuleOptions.of(None, None, None)


class Asking(Protocol):
    """Where a query is asked from: an open `Transaction`."""

    _evaluator: Evaluator

    def _limits(self) -> Callable[[str], Limits]: ...


class Answer(NamedTuple):
    """Distinct `rows` int64[columns, n] in key order, how often each is there (`copies` int64[n]), and the columns."""

    rows: Codes
    copies: Codes
    columns: tuple[Column, ...]


def catalogue_of(state: State) -> Catalogue:
    """The tables and views of a state."""
    return Catalogue({name: relation.schema for name, relation in state.relations.items()}, state.strata.by_head)


# --- queries ----------------------------------------------------------------------------------------------------------


def asked(database: Answers, query: exp.Expr, source: SqlText, timeout: float | None) -> SqlResult:
    """The answer of a query over what a database holds; what it reads is brought up to date first, and stays so."""
    with database._lock:
        state, evaluator = database._state, database._evaluator
        view = _one_off(query, state, source)
        until = Limits.within(timeout)
        added = _added(state, view, evaluator)
        stale = state.stale & added.state.strata.below((view.name,))
        if stale:
            database._refresh(stale, timeout)
            added = _added(database._state, view, evaluator)
        progress = database._progress.rows(lambda: "query")
        found = _evaluated(added, view, evaluator, lambda _: Limits(until.deadline, timeout, progress))
    return _in_order(found, view, evaluator)


def selected(asking: Asking, state: State, query: exp.Expr, source: SqlText) -> SqlResult:
    """The answer of a query over a state that is not published."""
    view, evaluator = _one_off(query, state, source), asking._evaluator
    found = _evaluated(_added(state, view, evaluator), view, evaluator, asking._limits())
    return _in_order(found, view, evaluator)


def answer(asking: Asking, state: State, query: exp.Expr, source: SqlText) -> Answer:
    """The rows of a query over a state, in key order; of one with a limit those that its order puts first."""
    view, evaluator = _one_off(query, state, source), asking._evaluator
    found = _evaluated(_added(state, view, evaluator), view, evaluator, asking._limits())
    width = len(view.columns) - view.hidden
    if view.limit is not None or view.offset:
        order = _ordered(found, view, evaluator)
    elif view.hidden:
        order = np.repeat(np.arange(found.rows.shape[1]), found.copies)
    else:
        return found
    rows, copies = np.unique(found.rows[:width, order], axis=1, return_counts=True)
    return Answer(rows, copies.astype(np.int64), found.columns[:width])


def with_rows(asking: Asking, state: State, word: str, columns: tuple[Column, ...], rows: Codes) -> tuple[State, str]:
    """The state with one more table, of distinct rows int64[columns, n], and its name, which begins with `word`."""
    while find(word, state.relations) is not None:
        word += "_"
    relation = _new_relation(asking._evaluator)(Schema(word, columns))
    relations = {**state.relations, word: relation}
    return state._replace(relations=relations).with_facts(word, relation.with_facts(rows, rows.shape[1])), word


def _new_relation(evaluator: Evaluator) -> Callable[[Schema], StoredRelation]:
    return partial(StoredRelation, arena=evaluator.arena, page_rows=evaluator.page_rows, dir_rows=evaluator.dir_rows)


def _one_off(query: exp.Expr, state: State, source: SqlText) -> View:
    """The rules of a query, whose head has a name of its own."""
    name = "select"
    while name in state.relations:
        name += "_"
    return translated(query, catalogue_of(state), name, source)


def _added(state: State, view: View, evaluator: Evaluator) -> Extension:
    try:
        return extended(state, view.program, NO_OPTIONS, _new_relation(evaluator), evaluator.symbols)
    except ArenaFullError as full:
        raise out_of_memory(full) from None


def _evaluated(added: Extension, view: View, evaluator: Evaluator, limits: Callable[[str], Limits]) -> Answer:
    state = added.state.made_stale(added.heads)
    try:
        for name, (rows, count) in added.facts.items():
            state = state.with_facts(name, state.relations[name].with_facts(rows, count))
        staged = evaluator.over(state)
        refresh(staged, (view.name,), limits)
    except ArenaFullError as full:
        raise out_of_memory(full) from None
    relation = staged.state.relations[view.name]
    rows, types = relation.content.columns(), relation.schema.types
    columns = tuple(Column(column.name, type) for column, type in zip(view.columns, types, strict=False))
    if view.bag:
        return Answer(rows[:-1], rows[-1], columns)
    return Answer(rows, np.ones(rows.shape[1], np.int64), columns)


def _in_order(found: Answer, view: View, evaluator: Evaluator) -> SqlResult:
    """The rows of an answer as often as they are there, in the order of the query, then of the values."""
    width, order = len(view.columns) - view.hidden, _ordered(found, view, evaluator)
    return SqlResult(Schema("select", found.columns[:width]), found.rows[:width, order], evaluator.symbols)


def _ordered(found: Answer, view: View, evaluator: Evaluator) -> npt.NDArray[np.int64]:
    """The positions of the rows that a query gives out, in its order: by what it says, then by all columns."""
    values = [evaluator.symbols.order(row, column.type) for row, column in zip(found.rows, found.columns, strict=True)]
    keys = [key for item in view.order for key in _sort_keys(values, found, item)]
    order = np.lexsort([*values[::-1], *keys[::-1]]) if values else np.arange(found.rows.shape[1])
    order = np.repeat(order, found.copies[order])
    return order[view.offset : None if view.limit is None else view.offset + view.limit]


def _sort_keys(values: Sequence[Codes], found: Answer, item: Order) -> list[Codes]:
    """What to sort by for one item of `order by`: where null is put, and then the values."""
    column, codes = found.columns[item.column], values[item.column]
    keys = [~codes if item.descending else codes]
    if is_nullable(column.type):
        null = found.rows[item.column] == type_of(column.type).null
        keys[0] = np.where(null, 0, keys[0])
        keys.insert(0, (null != item.nulls_first).astype(np.int64))
    return keys


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
