"""The file: one SQLite database, its tables, its one writer, and what is refused.

    meta         key, value: format, page shape, the writer at work, the number of the last entry
    log          seq, time, entry, hash            one row per transaction, load or change of rules
    symbols      first, count, texts, hash         texts from code `first` on
    segments     id, rows, body, hash              row pages that were written together
    checkpoints  seq, time, body, hash             which segments and pages make the relations at `seq`
    deltas       relation, seq, delta, hash        what an entry changed in a derived relation, where history is kept

SQLite keeps a write-ahead log beside the file while it is open; locking, recovery and integrity are its own. A hash is
16 bytes of BLAKE2b over the body and the row's key, so that a row in the place of another is found too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lftj.errors import DatabaseFileError

# "lftj", and the version of the format of what is in the tables.
APPLICATION, FORMAT = 0x6C66746A, 1
SYNC = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}
# Milliseconds that a statement waits for another process to end its own.
PATIENCE = 10_000
_TABLES = """
create table meta(key text primary key, value) without rowid;
create table log(seq integer primary key, time real not null, entry blob not null, hash blob not null);
create table symbols(first integer primary key, count integer not null, texts blob not null, hash blob not null);
create table segments(id integer primary key, rows integer not null, body blob not null, hash blob not null);
create table checkpoints(seq integer primary key, time real not null, body blob not null, hash blob not null);
create table deltas(relation text, seq integer, delta blob not null, hash blob not null, primary key (relation, seq))
    without rowid;
"""


def hash_of(body: bytes, *key: object) -> bytes:
    """The hash of a row: of its body and its key."""
    if type(body) is not bytes:  # a damaged page of SQLite may make any value of it
        return b""
    digest = hashlib.blake2b(body, digest_size=16)
    digest.update(repr(key).encode())
    return digest.digest()


def intact(body: bytes, hash: bytes, table: str, *key: object) -> bytes:
    """The body of a row. `DatabaseFileError` that names it if it is damaged."""
    if hash_of(body, *key) != hash:
        raise damaged(f"{table} {', '.join(map(str, key))}")
    return body


def damaged(what: str) -> DatabaseFileError:
    """The error for a part of a file that is not what was written."""
    return DatabaseFileError(
        f"the file is damaged: {what}",
        why="its hash is not that of what was written; nothing is answered from it",
        remedy="run `lftj check` on it, which says what can be rebuilt; or go back to a backup",
    )


class Container:
    """A connection to the file, for one process. `page_rows`: of pages in it (None: whatever they are)."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool, sync: str, page_rows: int | None) -> None:
        self.path, self.read_only, self.sync, self.pid = Path(path), read_only, sync, os.getpid()
        self.lock = threading.RLock()
        if self.path.is_dir():
            raise DatabaseFileError(
                f"{self.path} is a folder", why="a database is one file", remedy='give a file, as in path="shop.lftj"'
            )
        if read_only and (not self.path.exists() or self.path.stat().st_size == 0):
            raise DatabaseFileError(
                f"there is no file {self.path}",
                why="read_only=True opens a file that is there",
                remedy="check the path, or open it once without read_only",
            )
        self._connection: sqlite3.Connection | None = self._connect()
        try:
            with self.failing("open"):
                self._begin(page_rows)
        except BaseException:
            self._connection.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection; `DatabaseFileError` once it is closed, and in a process that was forked."""
        if self.pid != os.getpid():
            raise DatabaseFileError(
                f"{self.path} was opened by process {self.pid}, and this one is its child",
                why="a connection to the file must not be used in a process that was forked",
                remedy="open the file in the child, with read_only=True if the parent goes on writing",
            )
        if self._connection is None:
            raise DatabaseFileError(
                f"{self.path} is closed",
                why="`close` was called, or its `with` block has ended; what was in memory can still be read",
                remedy="open it again, as in lftj.Database(path=...)",
            )
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        mode = "ro" if self.read_only else "rwc"
        try:
            return sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=PATIENCE / 1000,
                cached_statements=64,
            )
        except sqlite3.Error as error:
            raise self._failed("open", error) from None

    def _begin(self, page_rows: int | None) -> None:
        run = self.connection.execute
        if not self.read_only:
            run("pragma journal_mode = wal")
            run(f"pragma synchronous = {SYNC[self.sync]}")
            run("pragma wal_autocheckpoint = 4000")
            if self._is_empty():
                self._make(page_rows)
        if run("pragma application_id").fetchone()[0] != APPLICATION:
            raise DatabaseFileError(
                f"{self.path} is a SQLite file, but no database of lftj",
                why="it does not carry lftj's mark",
                remedy="give the path of a file that lftj made, or of one that is not there yet",
            )
        self._check_format(run("pragma user_version").fetchone()[0], page_rows)
        if not self.read_only:
            self._take()

    def _is_empty(self) -> bool:
        """Whether nothing has been made in the file: it is new, or who made it was killed before it had."""
        run = self.connection.execute
        return not (
            run("pragma application_id").fetchone()[0] or run("select count(*) from sqlite_master").fetchone()[0]
        )

    def _make(self, page_rows: int | None) -> None:
        with self.transaction() as connection:
            if not self._is_empty():
                return  # another process was quicker
            for statement in _TABLES.strip().split(";\n"):
                connection.execute(statement)
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {FORMAT}")
            for key, value in {"page_rows": page_rows, "byte_order": sys.byteorder, "seq": 0}.items():
                self.set_meta(key, value)

    def _check_format(self, version: int, page_rows: int | None) -> None:
        if version != FORMAT:
            newer = version > FORMAT
            raise DatabaseFileError(
                f"{self.path} has format {version}, and this lftj reads format {FORMAT}",
                why=f"it was written by {'a later' if newer else 'an earlier'} version of lftj",
                remedy="upgrade lftj" if newer else "open it with the lftj that wrote it, and copy its relations",
            )
        for key, here in (("byte_order", sys.byteorder), ("page_rows", page_rows)):
            there = self.meta(key)
            if here is not None and there != here:
                raise DatabaseFileError(
                    f"{self.path} was written with {key} {there}, and here it is {here}",
                    why="pages are in the file as they are in memory",
                    remedy="open it where it was written, and copy its relations by `to_parquet`",
                )

    def meta(self, key: str) -> Any:
        """What the table `meta` holds under a key; None if nothing."""
        row = self.connection.execute("select value from meta where key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def set_meta(self, key: str, value: object) -> None:
        """Write to the table `meta`."""
        self.connection.execute("insert or replace into meta values (?, ?)", (key, value))

    # -- one writer ---------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Become the file's writer."""
        with self.transaction():
            held = self.meta("writer")
            if held is not None and _alive(held):
                raise DatabaseFileError(
                    f"{self.path} is in use: {_named(held)} writes to it",
                    why="a file has one writer at a time",
                    remedy="end that process, or open the file with read_only=True" + _if_gone(held),
                )
            self.set_meta("writer", _identity())

    def close(self) -> None:
        """End the connection. Another process may write then."""
        if self.pid != os.getpid():
            return
        with self.lock:  # a thread may be in the middle of a transaction
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if not self.read_only:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("delete from meta where key = 'writer'")
            connection.close()

    # -- transactions -------------------------------------------------------------------------------------------------

    def insert(self, table: str, row: tuple[Any, ...]) -> None:
        """Insert one row: a transaction of its own, or a part of the one that this thread is in."""
        with self.lock:
            self.connection.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)

    def in_transaction(self) -> bool:
        """Whether a transaction has begun; its thread holds the lock."""
        return self.connection.in_transaction

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction of SQLite: what the block writes is there as a whole, or not at all.

        Within another of this thread it is a part of that.
        """
        with self.lock:
            connection = self.connection
            if self.in_transaction():
                yield connection
                return
            try:
                connection.execute("begin immediate")
                yield connection
                connection.execute("commit")
            except BaseException:
                if self.in_transaction():
                    connection.execute("rollback")
                raise

    @contextlib.contextmanager
    def moment(self) -> Iterator[sqlite3.Connection]:
        """A block that reads the file as it is at one moment, whatever is written to it meanwhile."""
        with self.lock:
            connection = self.connection
            if self.in_transaction():
                yield connection
                return
            try:
                connection.execute("begin")
                yield connection
            finally:
                if self.in_transaction():
                    connection.execute("rollback")

    @contextlib.contextmanager
    def failing(self, what: str) -> Iterator[None]:
        """Tell what SQLite says while the file is used to `what`."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._failed(what, error) from None

    def _failed(self, what: str, error: sqlite3.Error) -> DatabaseFileError:
        text = str(error)
        if "not a database" in text or "malformed" in text or "file is encrypted" in text:
            why, remedy = f"SQLite says: {text}", "run `lftj check` on it, or go back to a backup"
        elif "full" in text:
            why, remedy = f"SQLite says: {text}", "make room on the disk and do it again; nothing of it was kept"
        elif "readonly" in text or "unable to open" in text:
            why, remedy = f"SQLite says: {text}", "check the path and its permissions, or open it with read_only=True"
        else:
            why, remedy = f"SQLite says: {text}", "nothing of it was kept; do it again once the cause is gone"
        return DatabaseFileError(f"cannot {what} {self.path}", why=why, remedy=remedy)


def _started(pid: int) -> str:
    """When a process began, in words that no other of the same number has; empty where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _identity() -> str:
    return f"{os.getpid()} {_started(os.getpid())} {socket.gethostname()}"


def _alive(writer: str) -> bool:
    """Whether the writer that a file names is still at work; one on another machine is taken to be."""
    pid, started, host = _parts(writer)
    if host != socket.gethostname():
        return True
    if int(pid) == os.getpid():
        return started == _started(int(pid))
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return started == _started(int(pid))


def _named(writer: str) -> str:
    pid, _, host = _parts(writer)
    here = "this process" if int(pid) == os.getpid() and host == socket.gethostname() else f"process {pid}"
    return here if host == socket.gethostname() else f"process {pid} on {host}"


def _parts(writer: object) -> tuple[str, str, str]:
    """Number, beginning and machine of the process that `writer` is about."""
    parts = writer.split(" ", 2) if isinstance(writer, str) else []
    if len(parts) != 3 or not parts[0].isdecimal():
        raise damaged("meta writer")
    return parts[0], parts[1], parts[2]


def _if_gone(writer: str) -> str:
    """What to do about a writer that cannot be asked whether it is still at work."""
    if _parts(writer)[2] == socket.gethostname():
        return ""
    return "; if it has ended, say so: sqlite3 FILE \"delete from meta where key = 'writer'\""
