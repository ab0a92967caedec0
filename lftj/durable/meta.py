"""The table `meta` of a file: what holds of it as a whole, by a key.

byte_order, page_rows    of pages, which are in the file as they are in memory
sync                     what commits survive: that of the last process that wrote
history                  the entry from which on changes of derived relations are written (None: they are not)
retain                   the entries that are kept beyond the last checkpoint (None: all)
dropped                  the last entry that was dropped, and its time (ends.py)
log                      the mark of its write-ahead log (log_mark.py)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lftj.durable.hashes import damaged, hash_of
from lftj.durable.log_mark import Mark

if TYPE_CHECKING:
    from sqlite3 import Connection

# The keys that every file has, whenever it was made.
KEYS = ("byte_order", "history", "page_rows", "sync")


def is_empty(connection: Connection) -> bool:
    """Whether nothing has been made in a file: it is new, or who made it was killed before it had."""
    run = connection.execute
    return not (run("pragma application_id").fetchone()[0] or run("select count(*) from sqlite_master").fetchone()[0])


def has(connection: Connection, key: str) -> bool:
    """Whether there is anything under a key."""
    return bool(connection.execute("select count(*) from meta where key = ?", (key,)).fetchone()[0])


def value_of(connection: Connection, key: str) -> Any:
    """What is under a key. `DatabaseFileError` if it is damaged or missing."""
    row = connection.execute("select value, hash from meta where key = ?", (key,)).fetchone()
    if row is None or row[1] != hash_of(repr(row[0]).encode(), key):
        raise damaged(f"meta {key}")
    return row[0]


def put(connection: Connection, key: str, value: object) -> None:
    """Put a value under a key."""
    row = (key, value, hash_of(repr(value).encode(), key))
    connection.execute("insert or replace into meta values (?, ?, ?)", row)


def retained(connection: Connection) -> int | None:
    """The entries that are kept beyond the last checkpoint, None: all. `DatabaseFileError` if that is damaged."""
    if not has(connection, "retain"):  # made before this was noted: nothing that it keeps is dropped unasked
        return 0 if value_of(connection, "history") is None else None
    retain: int | None = value_of(connection, "retain")
    return retain


def mark_of(connection: Connection) -> Mark | None:
    """The mark that a file has, with its log; None if it has none. `DatabaseFileError` if it is damaged."""
    return Mark.read(value_of(connection, "log")) if has(connection, "log") else None
