"""A reader in another process: it goes on to what the writer of the file has committed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lftj.durable.checkpoint import SavedCheckpoint
from lftj.durable.database_file import DatabaseFile
from lftj.durable.opening import go_on, load_symbols, restore
from lftj.errors import DatabaseFileError
from lftj.program.state import State
from lftj.results.transaction_delta import Deltas
from lftj.store.change import Change

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile


def refreshed(database: InFile, file: DatabaseFile) -> Deltas:
    """Take up the entries that are new in the file, and deliver what they changed."""
    if not file.read_only:
        raise DatabaseFileError(
            "`refresh` of a database that writes to its file",
            why="it is the one writer, so nobody else can have changed the file",
            remedy="call it where the file was opened with read_only=True",
        )
    with database._lock, file.container.failing("read"), file.container.moment():
        database._refresh_all(None)
        before, at = database._state, (file.seq, list(file.steps), dict(file.segments.saved))
        try:
            oldest = file.container.connection.execute("select min(seq) from log").fetchone()[0]
            last = SavedCheckpoint.last(file.container)
            if last is not None and last.seq > file.seq and (oldest is None or oldest > file.seq + 1):
                _again(database, file, last)
            else:
                go_on(database, file)
            database._refresh_all(None)
        except BaseException:
            database._evaluator.state = before
            file.seq, file.steps, file.segments.saved = at
            raise
        deltas = Deltas(_changes(before, database._state), {}, database._evaluator, {})
        database._deliver(deltas)
    return deltas


def _again(database: InFile, file: DatabaseFile, checkpoint: SavedCheckpoint) -> None:
    """The entries since are gone: the checkpoint takes the place of what is there."""
    load_symbols(file)
    database._evaluator.state, file.steps, file.segments.saved = State(), [], {}
    restore(database, file, checkpoint)
    go_on(database, file)


def _changes(before: State, after: State) -> dict[str, Change]:
    """How relations that were there and are differ; pages that they share are not looked at."""
    return {
        name: change
        for name, relation in after.relations.items()
        if name in before.relations
        and before.relations[name].schema == relation.schema
        and len((change := Change.between(before.relations[name].content, relation.content)).kinds)
    }
