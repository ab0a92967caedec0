"""Statements that come again: parsed, planned and translated once, with the values of their parameters left open.

    db.sql("update stock set n = n - $n where item = $item", n=2, item="tea")
    db.sql("update stock set n = 2 where item = 'tea'")

A text is known by itself and the kinds of its values, and by what some of its literals stand between
(open_literals.py). The second time that it is met its statement is kept, if it is the only one, and asks or changes
rows. A plan holds while tables and rules are what they were. Where what a statement is translated to depends on values,
and whenever it fails, the text is carried out as it stands: errors name its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from lftj.errors import Error, ProgramError, TimeoutExpired
from lftj.program.state import State
from lftj.program.strata import Strata
from lftj.results.answers import KEPT_QUERIES
from lftj.results.recently_used import put, used
from lftj.sql.catalogue import catalogue_of
from lftj.sql.one_off import asked, selected
from lftj.sql.open_literals import leave_open, open_places, shape_of, with_literals
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

    `question`: of one that asks · `refused`: it cannot be translated so, though the text can.
    """

    __slots__ = ("_done", "_plan", "_source", "_statement", "_untranslated", "question", "refused")

    def __init__(self, statement: exp.Expression, source: SqlText) -> None:
        self._statement, self._source = statement, source
        self._plan: _Plan | None = None
        self.question = Question(statement, source) if is_query(statement) else None
        self.refused = self._done = self._untranslated = False

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
        """Raise what the text as it stands would raise too."""
        if not given or isinstance(error, TimeoutExpired):
            raise error
        self._untranslated = not self._done and isinstance(error, ProgramError)

    def text_succeeded(self) -> None:
        """The text as it stands did what failed so: what was never translated is refused for good."""
        self.refused = self._untranslated


def kept_statement(database: Any, text: str, parameters: Given) -> tuple[KeptStatement | None, Given]:
    """The statement of a text whose like was met before, if it is kept; and the values of what it leaves open.

    Its like has the same shape, the same literals where they are not left open, and parameters of the same kinds.
    """
    if len(text) > LONGEST:
        return None, parameters
    shape, literals = shape_of(text)
    like = ("sql", shape, tuple([(name, kind_of(value)) for name, value in parameters.items()]))
    places = _open_places(database, like, text, literals, parameters) if literals else ()
    if places is None:
        return None, parameters
    known, key = database._known, (*like, _closed(literals, places))
    found: Any = known.get(key, _MET)
    if found is not _MET:
        used(database._lock, known, key, found)
    elif _first(database, key, None) is None:
        return None, parameters
    else:
        found = _made(text, parameters, places)
        put(database._lock, known, key, found, KEPT_QUERIES)
    if found is not None and not found.refused:
        return found, with_literals(parameters, literals, places) if places else parameters
    if found is not None and places:
        put(database._lock, known, like, _fewer(literals, places), KEPT_QUERIES)
    return None, parameters


def _first(database: Any, key: Any, value: Any) -> tuple[Any] | None:
    """What this was given when the key was met first; None if it is now."""
    met: dict[Any, tuple[Any]] = database._known.get(_MET, {})
    if key in met:
        return met[key]
    put(database._lock, met, key, (value,), KNOWN)
    put(database._lock, database._known, _MET, met, KEPT_QUERIES)
    return None


def _open_places(
    database: Any, like: Any, text: str, literals: Sequence[str], parameters: Given
) -> tuple[int, ...] | None:
    """Which literals are left open in texts like this; None if it is the first."""
    known = database._known
    places: tuple[int, ...] | None = known.get(like)
    if places is not None:
        used(database._lock, known, like, places)
    elif (first := _first(database, like, literals)) is not None:
        statement = _only_statement(SqlText(text), parameters)
        places = () if statement is None else open_places(statement, text)
        put(database._lock, known, like, places, KEPT_QUERIES)
        _first(database, (*like, _closed(first[0], places)), None)
    return places


def _fewer(literals: Sequence[str], places: Sequence[int]) -> tuple[int, ...]:
    """The places of numbers, if there are texts too, which are often dates; else none."""
    numbers = tuple(place for place in places if literals[place][0] != "'")
    return () if len(numbers) == len(places) else numbers


def _closed(literals: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    """The literals that are not left open."""
    return tuple([literal for place, literal in enumerate(literals) if place not in places])


def _made(text: str, parameters: Given, places: Sequence[int]) -> KeptStatement | None:
    """The statement of a text, with the literals at `places` left open."""
    source = SqlText(text)
    statement = _only_statement(source, parameters)
    if statement is None:
        return None
    leave_open(statement, text, places)
    return KeptStatement(statement, source)


def _only_statement(source: SqlText, parameters: Given) -> exp.Expression | None:
    """The statement of a text, if it is the only one and asks or changes rows."""
    statements = parsed(source, parameters, leave_open=True)
    kept = len(statements) == 1 and (is_query(statements[0]) or isinstance(statements[0], CHANGES))
    return statements[0] if kept else None
