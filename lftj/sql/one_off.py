"""Queries that answer: over what a database holds, or over what an open transaction does."""

from __future__ import annotations

from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.program.state import State
from lftj.results.answers import Answers
from lftj.sql.parameters import NOTHING, Given
from lftj.sql.question import Answer, Asking, Question, positions
from lftj.sql.results import SqlResult
from lftj.sql.view import View
from lftj.values.schema import Schema


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
    return _in_order(*found, evaluator)


def selected(asking: Asking, state: State, question: Question, given: Given = NOTHING) -> SqlResult:
    """The answer of a query over a state that is not published."""
    evaluator = asking._evaluator
    return _in_order(*question.rows(evaluator, state, asking._limits(), given), evaluator)


def _in_order(found: Answer, view: View, evaluator: Evaluator) -> SqlResult:
    """The rows of an answer as often as they are there, in the order of the query, then of the values."""
    width, order = len(view.columns) - view.hidden, positions(found, view, evaluator)
    return SqlResult(Schema("select", found.columns[:width]), found.rows[:width, order], evaluator.symbols)
