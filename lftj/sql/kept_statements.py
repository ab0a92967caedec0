"""Statements that come again: parsed, planned and translated once, with the values of their parameters left open.

    db.sql("update stock set n = n - $n where item = $item", n=2, item="tea")

A text is known by itself and the kinds of its values. The second time that it is met its statement is kept, if it is
the only one, and asks or changes rows. A plan holds while tables and rules are what they were. Where what a statement
is translated to depends on values, and whenever it fails, the text is carried out as it stands: errors name its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlglot import exp

from lftj.errors import Error, ProgramError, TimeoutExpired
from lftj.program.state import State
from lftj.program.strata import Strata
from lftj.results.answers import KEPT_QUERIES
from lftj.results.recently_used import put, used
from lftj.sql.catalogue import catalogue_of
from lftj.sql.one_off import asked, selected
from lftj.sql.parameters import Given, kind_of
from lftj.sql.places import SqlText
from lftj.sql.question import Question
from lftj.sql.results import SqlResult
from lftj.sql.room import Session
from lftj.sql.session import CHANGES, RowStatement, is_query, planned
from lftj.sql.statements import parsed
from lftj.values.value_type import Misfit

# So many texts are known that were met once. Longer ones are programs, and not known.
KNOWN, LONGEST = 1024, 4096
# Where a database has them.
_MET = ("sql",)


class _Plan(NamedTuple):
    """What a statement does to rows, in a program with these `strata`, and with relations of these names."""

    change: RowStatement
    strata: Strata
    names: frozenset[str]

    def holds(self, state: State) -> bool:
        """Whether the program is as it was."""
        relations = state.relations
        if state.strata is not self.strata or relations.keys() != self.names:
            return False
        return all(relations[table.name].schema == table.schema for table in self.change.tables)


class KeptStatement:
    """A statement whose parameters have types and no values.

    `question`: of one that asks · `refused`: it cannot be translated so.
    """

    __slots__ = ("_done", "_plan", "_source", "_statement", "question", "refused")

    def __init__(self, statement: exp.Expression, source: SqlText) -> None:
        self._statement, self._source = statement, source
        self._plan: _Plan | None = None
        self.question = Question(statement, source) if is_query(statement) else None
        self.refused = self._done = False

    def asked(self, database: Any, given: Given, timeout: float | None) -> SqlResult | None:
        """The answer of a query over what a database holds; None if it fails."""
        return self._answered(lambda question: asked(database, question, timeout, given), given)

    def selected(self, session: Session, given: Given) -> SqlResult | None:
        """The answer of a query over what an open transaction holds; None if it fails."""
        return self._answered(lambda question: selected(session, session._present(), question, given), given)

    def _answered(self, ask: Callable[[Question], SqlResult], given: Given) -> SqlResult | None:
        assert self.question is not None
        try:
            answer = ask(self.question)
        except (Error, Misfit) as error:
            self._failed(error, given)
            return None
        self._done = True
        return answer

    def carried_out(self, session: Session, given: Given) -> bool:
        """Whether rows were changed as it says: if it fails, none are."""
        try:
            with session._restoring():
                state = session._present()
                if self._plan is None or not self._plan.holds(state):
                    change = planned(self._statement, catalogue_of(state), self._source)
                    self._plan = _Plan(change, state.strata, frozenset(state.relations))
                self._plan.change.carry_out(session, given)
        except (Error, Misfit) as error:
            self._failed(error, given)
            return False
        self._done = True
        return True

    def _failed(self, error: Exception, given: Given) -> None:
        """Raise what the text as it stands would raise too. What has never been translated is refused for good."""
        if not given or isinstance(error, TimeoutExpired):
            raise error
        self.refused = not self._done and isinstance(error, ProgramError)


def kept_statement(database: Any, text: str, parameters: Mapping[str, Any]) -> KeptStatement | None:
    """The statement of a text that was met before, with values of the same kinds; None if it is not kept."""
    if len(text) > LONGEST:
        return None
    known: dict[Any, Any] = database._known
    key = ("sql", text, tuple([(name, kind_of(value)) for name, value in parameters.items()]))
    found = known.get(key, _MET)
    if found is _MET:
        met: dict[Any, None] = known.get(_MET, {})
        if key not in met:
            put(database._lock, met, key, None, KNOWN)
            put(database._lock, known, _MET, met, KEPT_QUERIES)
            return None
        found = _made(text, parameters)
        put(database._lock, known, key, found, KEPT_QUERIES)
    else:
        used(database._lock, known, key, found)
    return None if found is None or found.refused else found


def _made(text: str, parameters: Mapping[str, Any]) -> KeptStatement | None:
    """The statement of a text, if it is the only one and asks or changes rows."""
    source = SqlText(text)
    statements = parsed(source, parameters, leave_open=True)
    kept = len(statements) == 1 and (is_query(statements[0]) or isinstance(statements[0], CHANGES))
    return KeptStatement(statements[0], source) if kept else None
