"""A snapshot: the database at one moment, for reading.

    snap = db.snapshot()                              now
    snap = db.at(17);  db.at(yesterday)               as it was, of a database in a file with `retain=`
    snap["tri"];  "tri" in snap;  list(snap);  snap.query("tri(1, y, z)");  snap.sql("select x from tri")

A snapshot is versions, not copies: taking one costs a moment per relation, and holding it costs the pages that later
changes replace. It never changes and waits for no writer; any number of threads may read it, queries among them one
after the other.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lftj import arguments, html
from lftj.durable.in_file import InFile
from lftj.errors import ForkError
from lftj.evaluate.evaluator import Evaluator
from lftj.maintain.report import amount
from lftj.program.state import State
from lftj.progress import Progress
from lftj.results.answers import Answers
from lftj.results.not_pickled import Unchanging
from scantree.locks import Lock

if TYPE_CHECKING:
    from lftj.sql.results import SqlResult


class Snapshot(Answers, Unchanging):
    """An immutable database: relations by name, and queries. Made by `Database.snapshot` and `Database.at`."""

    _instead = 'give the rows of its relations instead, as in `snapshot["tri"].to_arrow()`'

    def __init__(self, evaluator: Evaluator, state: State) -> None:
        frozen = {name: relation.frozen() for name, relation in state.relations.items()}
        self._evaluator = evaluator.over(state._replace(relations=frozen), apart=True)
        self._lock = Lock(ForkError, "the snapshot")
        self._progress = Progress()
        self._known = {}

    def sql(self, text: str, /, *, timeout: float | None = None, **parameters: Any) -> SqlResult:
        """The answer of the last query of a text of SQL, over the relations as they were (docs/sql.md).

        `parameters` are those of `$name` in the text; `timeout` limits each evaluation, in seconds. `TransactionError`
        for a statement that is no query, and what `Database.sql` raises.
        """
        from lftj.sql.running import ask

        with self._lock:
            return ask(self, text, parameters, arguments.seconds(timeout))

    def __repr__(self) -> str:
        lines = []
        for name in self:
            relation = self._state.relations[name]
            rows = "not evaluated" if name in self._state.stale else amount(len(relation), "row")
            lines.append(f"  {relation.schema}  {rows}")
        return "\n".join([f"lftj.Snapshot: {amount(len(lines), 'relation')}", *lines])

    def _repr_html_(self) -> str:
        rows = []
        for name in self:
            relation = self._state.relations[name]
            rows.append((str(relation.schema), "not evaluated" if name in self._state.stale else f"{len(relation):,}"))
        table = html.plain_table(("relation", "rows"), rows, numbers=("rows",))
        return html.shown(html.title("lftj.Snapshot", amount(len(rows), "relation")), table)


class Moments(InFile):
    """The parts of `Database` that give it as it is, or was, at one moment."""

    def snapshot(self) -> Snapshot:
        """The database as it is now, for reading: it never changes, and any thread may read it.

        Evaluates what is not up to date first. Reading what has no value raises, in the snapshot too.
        """
        state = self._state
        if state.stale:
            with self._lock:
                self._refresh_others(None)
                state = self._state
        return Snapshot(self._evaluator, state)

    def at(self, when: int | dt.datetime) -> Snapshot:
        """A snapshot of the database as it was after entry number `when` of the log, or at a time.

        It reaches as far back as `retain=` keeps the log, and raises `DataError` for what is not kept. Reading what
        had no value then raises what it raised then.
        """
        from lftj.durable.history import as_of

        then = as_of(self, self._in_file("at"), when)
        then._refresh_others(None)
        return Snapshot(then._evaluator, then._state)
