"""The write-ahead log that a crash left beside a file: whether it is that of the file, and all there.

SQLite reads it as far as it is intact, and whatever file it belongs to, without a word.
"""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from typing import TYPE_CHECKING

from lftj.durable import meta
from lftj.durable.hashes import damaged
from lftj.durable.log_mark import Mark
from lftj.durable.write_ahead_log import is_there, log_path, salt_of, unread
from lftj.durable.writer_lock import is_written_to
from lftj.errors import DatabaseFileError

if TYPE_CHECKING:
    from lftj.durable.container import Container


def look(container: Container) -> None:
    """Look at the log before SQLite does: `DatabaseFileError` if it is another file's, or damaged; or a warning."""
    path = container.place
    if is_there(path):
        if not path.exists():
            raise DatabaseFileError(
                f"there is no file {container.path}, and its write-ahead log is there",
                why=f"what was committed last to a file of this name is in {log_path(path)}, which would be lost",
                remedy="put the file back beside it; or, to begin anew, remove it",
            )
        if not path.stat().st_size:
            raise damaged("it is empty, and its write-ahead log is not")  # SQLite would remove that
        _check_own(container)
    lost = unread(path)
    if not lost or _is_its_writers(container):
        return
    log = f"the write-ahead log {log_path(path)}"
    # Not to be written to: a connection that may write removes the log when it is closed.
    with contextlib.closing(container.connect("ro")) as connection, container.failing("open"):
        kept = None if meta.is_empty(connection) else meta.value_of(connection, "sync")
    if lost > 1 and kept in (None, "full"):
        raise DatabaseFileError(
            f"the file is damaged: {log}",
            why=f"the last {lost} transactions in it are not what was written, or follow what is not",
            remedy="go back to a backup; to go on without these, and with what was committed before them: "
            'sqlite3 FILE "pragma wal_checkpoint(truncate)"',
        )
    why = "a process that is killed as it writes does that, a loss of power, or damage"
    text = f"{log} ends in the midst of a transaction, which is left out: {why}"
    warnings.warn(text, RuntimeWarning, stacklevel=7)


def _check_own(container: Container) -> None:
    """`DatabaseFileError` if the log is that of another file, which this one has replaced (log_mark.py)."""
    salt, log = salt_of(container.place), log_path(container.place)
    if salt is None:
        return
    alone = _mark(container, "&immutable=1")  # without the log; a file that carries no mark, has any
    if alone is None or alone.knows(salt):
        return
    together = _mark(container)
    own = together is not None and together.in_log_of(alone, salt)
    if not own and not _is_its_writers(container):
        raise DatabaseFileError(
            f"the write-ahead log {log} is not that of {container.path}",
            why="a process that wrote to another file of this name was killed, and left it; then that file was "
            "replaced, by a backup perhaps. Together, the two are neither",
            remedy=f"to open the file as it is, remove {log} and {log.name.removesuffix('-wal')}-shm beside it; "
            "to open the other one, put it back in its place",
        )


def _is_its_writers(container: Container) -> bool:
    """Whether nobody left the log: the file is read, and its writer came while the log was looked at."""
    return container.read_only and is_written_to(container.place)


def _mark(container: Container, options: str = "") -> Mark | None:
    """The mark of the file, by a connection with such options; None if it has none intact."""
    with contextlib.closing(container.connect("ro", options)) as connection:
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError, DatabaseFileError):
            return meta.mark_of(connection)
        return None
