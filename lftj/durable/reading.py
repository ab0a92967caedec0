"""A reader in another process: it goes on to what the writer of the file has committed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lftj.durable.checkpoint import Checkpoint
from lftj.durable.file import DatabaseFile
from lftj.durable.opening import go_on, load_symbols, restore
from lftj.errors import DatabaseFileError
from lftj.program.state import State
from lftj.results.transaction_delta import Deltas
from lftj.store.change import Change

if TYPE_CHECKING:
    from lftj.database import Database


def refreshed(database: Database, file: DatabaseFile) -> Deltas:
    """Take up the entries that are new in the file, and deliver what they changed."""
    if not file.read_only:
        raise DatabaseFileError(
            "`refresh` of a database that writes to its file",
            why="it is the one writer, so nobody else can have changed the file",
            remedy="call it where the file was opened with read_only=True",
        )
    with database._lock, file.container.failing("read"):
        file.container.connection.execute("begin")  # one moment of the file
        try:
            oldest = file.container.connection.execute("select min(seq) from log").fetchone()[0]
            last = Checkpoint.last(file.container)
            if last is not None and last.seq > file.seq and (oldest is None or oldest > file.seq + 1):
                changes = _again(database, file, last)
            else:
                changes = go_on(database, file, evaluate=True)
        finally:
            file.container.connection.execute("rollback")
        deltas = Deltas(changes, {}, database._evaluator, {})
        database._deliver(deltas)
    return deltas


def _again(database: Database, file: DatabaseFile, checkpoint: Checkpoint) -> dict[str, Change]:
    """The entries since are gone: the checkpoint takes the place of what is there, and is compared with it."""
    before = database._state
    load_symbols(file)
    database._evaluator.state, file.steps = State(), []
    file.segments.saved = {}
    try:
        restore(database, file, checkpoint)
        go_on(database, file, evaluate=False)
    except BaseException:
        database._evaluator.state = before
        raise
    database._refresh_all(None)
    after = database._state.relations
    return {
        name: change
        for name, relation in after.items()
        if name in before.relations
        and before.relations[name].schema == relation.schema
        and len((change := Change.between(before.relations[name].content, relation.content)).kinds)
    }
