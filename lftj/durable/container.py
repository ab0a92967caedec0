"""The file: one SQLite database, its tables, its one writer, and what is refused.

    meta         key, value, hash                  what holds of the file as a whole (meta.py)
    log          seq, time, entry, hash            one row per transaction, load or change of rules
    symbols      first, count, texts, hash         texts from code `first` on
    segments     id, rows, body, hash              row pages that were written together
    checkpoints  seq, time, body, hash             which segments and pages make the relations at `seq`
    deltas       relation, seq, last, delta, hash  what an entry changed in a derived relation, where history is kept
    ends         name, last, hash                  the last row of each of these: without it nobody would miss it; and
                                                   the last entry that was dropped from the log

SQLite keeps a write-ahead log beside the file while it is open; locking, recovery and integrity are its own. A hash is
16 bytes of BLAKE2b over the body and the row's key, so that a row in the place of another is found too. `ends` is kept
by triggers of the connection, so it costs a commit no statement of its own; a file has no triggers (it would be
refused).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from lftj.arguments import file_name
from lftj.durable import left_log, meta
from lftj.durable.hashes import CHECK, damaged, hash_of
from lftj.durable.log_mark import RENEWED, Mark
from lftj.durable.write_ahead_log import is_there, log_path, salt_of
from lftj.durable.writer_lock import WriterLock, is_written_to, lock_path
from lftj.errors import DatabaseFileError
from scantree.locks import Lock

# "lftj", and the version of the format of what is in the tables.
APPLICATION, FORMAT = 0x6C66746A, 4
# The versions that are read, and become this one when they are written to; in files of version 2 the end of the log is
# recorded with every entry, and those of versions before 4 have no narrow key orders.
READ = range(2, FORMAT + 1)
SYNC = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}
# Milliseconds that a statement waits for another process to end its own.
PATIENCE = 10_000
# The statements as SQLite keeps them in the file, where they are compared.
_TABLES = """
CREATE TABLE meta(key text primary key, value, hash blob not null) without rowid;
CREATE TABLE log(seq integer primary key, time real not null, entry blob not null, hash blob not null);
CREATE TABLE symbols(first integer primary key, count integer not null, texts blob not null, hash blob not null);
CREATE TABLE segments(id integer primary key, rows integer not null, body blob not null, hash blob not null);
CREATE TABLE checkpoints(seq integer primary key, time real not null, body blob not null, hash blob not null);
CREATE TABLE deltas(relation text, seq integer, last integer not null, delta blob not null, hash blob not null,
    primary key (relation, seq)) without rowid;
CREATE TABLE ends(name text primary key, last integer not null, hash blob not null) without rowid;
"""
# What the last row of each table is, kept by SQLite as it writes the row.
_ENDS = """
create temp trigger symbols_end after insert on main.symbols begin
    update ends set last = new.first + new.count, hash = new.hash where name = 'symbols'; end;
create temp trigger checkpoints_end after insert on main.checkpoints begin
    update ends set last = new.seq, hash = new.hash where name = 'checkpoints'; end;
create temp trigger deltas_end after insert on main.deltas begin
    insert or replace into ends values ('deltas ' || new.relation, new.seq, new.hash); end;
"""

# What the last entry of the log is: recorded before SQLite takes its write-ahead log over into the file, which has
# checksums of its own and needs no such record. With each entry it would be a second page for the disk to wait for,
# which takes half as long again.
RECORD_END = """update ends set (last, hash) = (select seq, hash from log order by seq desc limit 1)
    where name = 'log' and last < (select max(seq) from log)"""
# Pages in the write-ahead log from which on SQLite takes it over; those of entries after which the end is recorded. It
# is written from its beginning then: where it grows instead, the disk is waited for longer.
MOST_AHEAD, MOST_UNRECORDED = 1000, 500

Result = TypeVar("Result")

INSERT_ENTRY = "insert into log values (?, ?, ?, ?)"


def stat_of(path: Path) -> os.stat_result | None:
    """What the system says of a file; None if it is not there. `DatabaseFileError` if there can be no such file."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = f"the system says: {error.strerror}" if isinstance(error, OSError) else f"Python says: {error}"
        what = f"cannot open {os.fspath(path)!r}"
        raise DatabaseFileError(what, why=why, remedy="check the path and its permissions") from None


def absolute(path: Path) -> Path:
    """Where a path leads whatever folder the process goes to later. `DatabaseFileError` if it is in none now."""
    try:
        return path.absolute()
    except OSError as error:
        raise DatabaseFileError(
            f"cannot open {os.fspath(path)!r}",
            why=f"it is in the folder that the process is in, of which the system says: {error.strerror}",
            remedy="give the path from the root on, or go to a folder that is there",
        ) from None


class Container:
    """A connection to the file, for one process. `page_rows`: of pages in it (None: whatever they are)."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool, sync: str, page_rows: int | None) -> None:
        self.path, self.read_only, self.sync, self.pid = Path(file_name(path)), read_only, sync, os.getpid()
        self.lock = Lock(_opened_by_parent, self.path, self.pid)
        there = stat_of(self.path)
        self.place = absolute(self.path)
        if there is not None and stat.S_ISDIR(there.st_mode):
            raise DatabaseFileError(
                f"{self.path} is a folder", why="a database is one file", remedy='give a file, as in path="shop.lftj"'
            )
        if read_only and (there is None or there.st_size == 0):
            raise self._nothing_there("there is no file {}" if there is None else "{} is empty")
        self._connection: sqlite3.Connection | None = None
        self._there: tuple[int, int] | None = None
        self._format = FORMAT
        self._unrecorded = 0  # pages of entries, about
        self._mark: Mark | None = None  # once something is written
        self._commits = 0
        self._writing: WriterLock | None = None
        try:
            if not read_only:
                self._writing = self._locked()
            if not (read_only and is_written_to(self.place)):
                left_log.look(self)
            self._connection = self.connect("ro" if read_only else "rwc")
            with self.failing("open"):
                self._begin(page_rows)
            self._there = None if read_only else self._named()
        except BaseException:
            self.close()
            raise

    def _nothing_there(self, what: str) -> DatabaseFileError:
        """The error where there is nothing to read."""
        return DatabaseFileError(
            what.format(self.path),
            why="read_only=True opens a file that is there",
            remedy="check the path, or open it once without read_only",
        )

    def _named(self) -> tuple[int, int] | None:
        """Which file the path names."""
        try:
            found = os.stat(self.place)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check_place(self, what: str) -> None:
        """Raise `DatabaseFileError` if the path names another file than was opened to be written to, or none."""
        if self._there is None or self._named() == self._there:
            return
        log = log_path(self.place)
        raise DatabaseFileError(
            f"cannot {what} {self.path}: it was moved, replaced or removed while it was open",
            why=f"what was committed last is beside it, in {log}, and a file of another name is not read with that",
            remedy=f"move the file back, so that {log} is beside it, and open it there; close it before it is moved",
        )

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection; `DatabaseFileError` once it is closed, and in a process that was forked."""
        if self.pid != os.getpid():
            raise _opened_by_parent(self.path, self.pid)
        if self._connection is None:
            raise DatabaseFileError(
                f"{self.path} is closed",
                why="`close` was called, or its `with` block has ended; what was in memory can still be read",
                remedy="open it again, as in lftj.Database(path=...)",
            )
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether it is open, and was opened by this process."""
        return self._connection is not None and self.pid == os.getpid()

    # -- opening ------------------------------------------------------------------------------------------------------

    def _locked(self) -> WriterLock:
        """The lock of the file's one writer."""
        try:
            return WriterLock(self.path)
        except DatabaseFileError:  # an OSError too
            raise
        except OSError as error:
            folder = lock_path(self.path).parent
            if not folder.is_dir():
                is_file = folder.exists()
                raise DatabaseFileError(
                    f"cannot make {self.path}",
                    why=f"{folder} is not a folder" if is_file else f"there is no folder {folder}",
                    remedy="check the path" if is_file else "make it first, or check the path",
                ) from None
            raise DatabaseFileError(
                f"cannot write to {self.path}",
                why=f"{lock_path(self.path)} tells who writes to it, and cannot be written: {error.strerror}",
                remedy="check the permissions" + (", or open it with read_only=True" if self.place.exists() else ""),
            ) from None

    def connect(self, mode: str, options: str = "") -> sqlite3.Connection:
        """A connection to the file. `mode`: as SQLite has it in addresses of files, and more `options` of these."""
        try:
            return sqlite3.connect(
                f"{self.place.as_uri()}?mode={mode}{options}",
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
        if self.read_only:
            self._check_readable()
            if meta.is_empty(self.connection):
                raise self._nothing_there("{} is empty")  # another process is about to make it, or was killed there
        else:
            run("pragma temp_store = memory")
            if meta.is_empty(self.connection):
                # A journal whose deletion a loss of power undid would later empty the file: "extra" waits for that too.
                run("pragma synchronous = extra")
                run("pragma journal_mode = wal")
                self._make(page_rows)
            run(f"pragma synchronous = {SYNC[self.sync]}")
        run = self.connection.execute
        run("pragma cell_size_check = on")
        if run("pragma application_id").fetchone()[0] != APPLICATION:
            raise DatabaseFileError(
                f"{self.path} is a SQLite file, but no database of lftj",
                why="it does not carry lftj's mark",
                remedy="give the path of a file that lftj made"
                + ", or of one that is not there yet" * (not self.read_only),
            )
        self._format = run("pragma user_version").fetchone()[0]
        self._check_format(page_rows)
        if self.read_only:
            return
        run("pragma journal_mode = wal")
        if is_there(self.place):
            # What a crash left in the log would be taken, after the next one, for a part of what is written now.
            with contextlib.suppress(sqlite3.Error):  # who reads the log says what is wrong with it
                run(RECORD_END)
            run("pragma wal_checkpoint(truncate)").fetchall()
        run("pragma wal_autocheckpoint = 0")
        self.connection.executescript(_ENDS)

    def _check_readable(self) -> None:
        """See that the file can be read, if need be as one that nobody writes to: in a folder where nothing may be."""
        try:
            self.connection.execute("select 1 from sqlite_master limit 1")
        except sqlite3.OperationalError:
            if is_there(self.place) or is_written_to(self.place):
                raise
            self.connection.close()
            self._connection = self.connect("ro", "&immutable=1")

    def _make(self, page_rows: int | None) -> None:
        def make(connection: sqlite3.Connection) -> None:
            if not meta.is_empty(self.connection):
                return  # another process was quicker
            for statement in _statements(_TABLES):
                connection.execute(statement)
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {FORMAT}")
            shape = {"page_rows": page_rows, "byte_order": sys.byteorder}
            given = {"sync": self.sync, "history": None, "retain": 0, "log": str(Mark.new())}
            for key, value in {**shape, **given}.items():
                self.set_meta(key, value)
            for name in ("log", "symbols", "checkpoints", "dropped"):
                connection.execute("insert into ends values (?, 0, x'')", (name,))

        self.transact(make)

    def _check_format(self, page_rows: int | None) -> None:
        version = self._format
        if version not in READ:
            newer = version > FORMAT
            raise DatabaseFileError(
                f"{self.path} has format {version}, and this lftj reads formats {READ[0]} to {FORMAT}",
                why=f"it was written by {'a later' if newer else 'an earlier'} version of lftj",
                remedy="upgrade lftj" if newer else "open it with the lftj that wrote it, and copy its relations",
            )
        self._check_tables()
        for key, here in (("byte_order", sys.byteorder), ("page_rows", page_rows)):
            there = self.meta(key)
            if here is not None and there != here:
                raise DatabaseFileError(
                    f"{self.path} was written with {key} {there}, and here it is {here}",
                    why="pages are in the file as they are in memory",
                    remedy="open it where it was written, and copy its relations by `to_parquet`",
                )

    def _check_tables(self) -> None:
        """See that the file has the tables of this format, and nothing that SQLite would run."""
        there = set(self.connection.execute("select type, name, sql from sqlite_master"))
        made = {("table", sql.split("(")[0].split()[-1], sql) for sql in _statements(_TABLES)}
        for kind, name, _ in sorted(there ^ made, key=str):
            raise damaged(f"{kind} {name} is not what lftj made")

    def meta(self, key: str) -> Any:
        """What the table `meta` has under a key. `DatabaseFileError` if it is damaged or missing."""
        return meta.value_of(self.connection, key)

    def set_meta(self, key: str, value: object) -> None:
        """Write to the table `meta`."""
        meta.put(self.connection, key, value)

    def _begin_to_write(self) -> None:
        """Before the first change of this process: mark the file, so that the log that it writes is known by that.

        Killed at any moment here, it leaves a log that is known: by the old mark, or by the new one, in it or in the
        file (log_mark.py). Nothing waits for the disk but the checkpoint, which has the order that matters.
        """
        if self._mark is not None or self._there is None:  # where it is made, a file has no mark to go by
            return
        run = self.connection.execute
        mark, salt = meta.mark_of(self.connection), salt_of(self.place)
        if self.sync == "full":
            run("pragma synchronous = normal")
        try:
            if salt is None:
                mark = Mark.new(mark)
                self.set_meta("log", str(mark))  # a log has no salt before something is in it
                salt = salt_of(self.place)
            if salt is not None and (mark is None or not mark.knows(salt)):
                # It is known where readers have kept a log from being emptied.
                mark = (mark if mark is not None and mark.salt is None else Mark.new(mark))._replace(salt=salt)
                self.set_meta("log", str(mark))
            if self.meta("sync") != self.sync:
                self.set_meta("sync", self.sync)
            if self._format != FORMAT:
                run(f"pragma user_version = {FORMAT}")
                self._format = FORMAT
            run("pragma wal_checkpoint(passive)").fetchall()
        finally:
            run(f"pragma synchronous = {SYNC[self.sync]}")
        self._mark = mark

    def close(self) -> None:
        """End the connection. Another process may write then."""
        if self.pid != os.getpid():
            return
        with self.lock:  # a thread may be in the middle of a transaction
            connection, self._connection = self._connection, None
            try:
                if connection is not None:
                    if self._there is not None and not connection.in_transaction:
                        # Where there is no room for that, the write-ahead log stays beside the file.
                        with contextlib.suppress(sqlite3.Error):
                            connection.execute(RECORD_END)
                    connection.close()
                    self._check_place("close")
            finally:
                if self._writing is not None:
                    self._writing.release()

    # -- transactions -------------------------------------------------------------------------------------------------

    def insert_entry(self, seq: int, time: float, body: bytes) -> None:
        """Insert an entry into the log: a transaction of its own, or a part of the one that this thread is in."""
        row = (seq, time, body, hash_of(body, seq, time))
        with self.lock:
            connection = self.connection
            if self.sync == "full":  # a look takes long beside a commit of another kind; checkpoints look too
                self._check_place("write to")
            self._unrecorded += 1 + len(body) // 4096
            try:
                self._begin_to_write()
                if self._unrecorded < MOST_UNRECORDED or connection.in_transaction:
                    connection.execute(INSERT_ENTRY, row)
                else:
                    self.transact(lambda connection: connection.execute(INSERT_ENTRY, row))
            except sqlite3.Error as error:
                raise self._failed("write to", error) from None

    def in_transaction(self) -> bool:
        """Whether a transaction has begun; its thread holds the lock."""
        return self.connection.in_transaction

    def transact(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do some work in a transaction of SQLite: what it writes is there as a whole, or not at all.

        Within another of this thread it is a part of that. No context manager: Ctrl-C between one and its block would
        leave the transaction open, and what is written after that would be a part of it, and be lost.
        """
        with self.lock:
            connection = self.connection
            if self.in_transaction():
                return work(connection)
            self._check_place("write to")
            self._begin_to_write()
            try:
                connection.execute("begin immediate")
                done = work(connection)
                self._commit(connection)
            except BaseException:
                if self.in_transaction():
                    connection.execute("rollback")
                raise
            return done

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction for a block of somebody else's, as `transact`."""
        with self.lock:
            connection = self.connection
            if self.in_transaction():
                yield
                return
            self._begin_to_write()
            try:
                connection.execute("begin immediate")
                yield
                self._commit(connection)
            except BaseException:
                if self.in_transaction():
                    connection.execute("rollback")
                raise

    def _commit(self, connection: sqlite3.Connection) -> None:
        """End a transaction. SQLite may take over its write-ahead log here, and nowhere else."""
        connection.execute(RECORD_END)
        self._commits += 1
        if self._commits % RENEWED == 0 and self._mark is not None and (salt := salt_of(self.place)) is not None:
            self.set_meta("log", str(self._mark._replace(salt=salt, follows="")))
        connection.execute(f"pragma wal_autocheckpoint = {MOST_AHEAD}")
        try:
            connection.execute("commit")
            self._unrecorded = 0
        finally:
            connection.execute("pragma wal_autocheckpoint = 0")

    def take_over(self) -> None:
        """Write to the file what is in the write-ahead log, and empty that."""
        self.connection.execute(RECORD_END)
        self.connection.execute("pragma wal_checkpoint(truncate)")

    def at_one_moment(self, work: Callable[[], Result]) -> Result:
        """Do some work that reads the file as it is at one moment, whatever is written to it meanwhile."""
        with self.lock:
            connection = self.connection
            if self.in_transaction():
                return work()
            try:
                connection.execute("begin")
                return work()
            finally:
                if self.in_transaction():
                    connection.execute("rollback")

    @contextlib.contextmanager
    def failing(self, what: str) -> Iterator[None]:
        """Tell what SQLite says while the file is used to `what`, and that there is no memory for what it holds."""
        try:
            yield
        except MemoryError as full:
            # With the kernels, which whoever only looks into a file does without.
            from lftj.results.answer_errors import out_of_memory
            from scantree.memory import ArenaFullError

            if not isinstance(full, ArenaFullError):
                raise
            raise out_of_memory(full) from None
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._failed(what, error) from None

    def _failed(self, what: str, error: sqlite3.Error | UnicodeDecodeError) -> DatabaseFileError:
        # Of a damaged file, what SQLite says may be no text.
        text = "malformed" if isinstance(error, UnicodeDecodeError) else str(error)
        if "not a database" in text or "file is encrypted" in text:
            why, remedy = f"SQLite says: {text}", "check the name; if it was a database, go back to a backup"
        elif "malformed" in text:
            why, remedy = f"SQLite says: {text}", f"{CHECK}, or go back to a backup"
        elif "full" in text:
            why, remedy = f"SQLite says: {text}", "make room on the disk and do it again; nothing of it was kept"
        elif "readonly" in text or "unable to open" in text:
            why, remedy = f"SQLite says: {text}", "check the path and its permissions"
            remedy += "" if self.read_only else ", or open it with read_only=True"
        else:
            why, remedy = f"SQLite says: {text}", "nothing of it was kept; do it again once the cause is gone"
        return DatabaseFileError(f"cannot {what} {self.path}", why=why, remedy=remedy)


def _opened_by_parent(path: Path, pid: int) -> DatabaseFileError:
    """The error of a process that was forked from `pid`, which opened the file."""
    return DatabaseFileError(
        f"{path} was opened by process {pid}, and this one is its child",
        why="a connection to the file must not be used in a process that was forked",
        remedy="open the file in the child, with read_only=True if the parent goes on writing",
    )


def _statements(script: str) -> list[str]:
    return script.strip().rstrip(";").split(";\n")
