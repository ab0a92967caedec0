"""Answers: the rows of one query, evaluated over a state and not published.

The query becomes a head like that of a view, under a name that no relation has. A state with its rules is made beside
the one that is asked, evaluated as far as the head needs, and forgotten; what lies below it and is up to date is read
as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language import ast
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.sql.catalogue import Catalogue
from lftj.sql.places import SqlText
from lftj.sql.results import SqlResult
from lftj.store.stored import StoredRelation
from lftj.values.codes import Column, Schema

Codes = npt.NDArray[np.int64]
NO_OPTIONS = RuleOptions.of(None, None, None)
ANSWER = "select"


class Asking(Protocol):
    """Where a query is asked: an open `Transaction`, or a `Database`."""

    _evaluator: Evaluator

    def _new(self, schema: Schema) -> StoredRelation: ...

    def _limits(self) -> Callable[[str], Limits]: ...


class Answer(NamedTuple):
    """Distinct `rows` int64[columns, n] in key order, how often each is there (`copies` int64[n]), and the columns."""

    rows: Codes
    copies: Codes
    columns: tuple[Column, ...]


def catalogue_of(state: State) -> Catalogue:
    """The tables and views of a state."""
    return Catalogue({name: relation.schema for name, relation in state.relations.items()}, state.strata.by_head)


def answer(room: Asking, state: State, query: exp.Expression, catalogue: Catalogue, source: SqlText) -> Answer:
    """The rows of a query over a state."""
    raise source.unsupported("queries", query)


def asked(room: Asking, query: exp.Expression, source: SqlText, timeout: float | None) -> SqlResult:
    """The answer of a query over what a database holds."""
    raise source.unsupported("queries", query)


def selected(room: Asking, state: State, query: exp.Expression, source: SqlText) -> SqlResult:
    """The answer of a query over a state, its rows in the order that it asks for."""
    raise source.unsupported("queries", query)


def view_of(query: exp.Expression, named: list[str], name: str, catalogue: Catalogue, source: SqlText) -> ast.Program:
    """The declarations and rules of a view; `named`: its columns, where not as the query names them."""
    raise source.unsupported("queries", query)
