"""A disk that notes what SQLite does to it, and fails when it is told to: a VFS of apsw under the product's own calls.

`Disk.connect` takes the place of `sqlite3.connect`. The connections are apsw's, which runs the same statements; errors
are those of `sqlite3`. Shared memory is none of a VFS's in Python, so the file is locked by its one connection.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import apsw

REAL = sqlite3.connect
# Bytes that a disk writes as a whole.
SECTOR = 512
# Statements outside of transactions after which the write-ahead log is taken over into the file.
AUTOCHECKPOINT = 5


class Event(NamedTuple):
    """`what` was done to a file: write, truncate (`at`: the size), sync, delete (`at`: whether for good); or "done"."""

    what: str
    file: str = ""
    at: int = 0
    data: bytes = b""
    note: Any = None


class Disk:
    """`events`: what was done. `fail_at`: the number of the call that fails, with `error`, and how many fail after."""

    def __init__(self, name: str) -> None:
        self.events: list[Event] = []
        self.calls, self.fail_at, self.failures, self.error = 0, -1, 1, apsw.FullError
        self._vfs = _Vfs(name, self)
        self._name = name

    def connect(self, given: str, **options: Any) -> Any:
        """Open a database, as `sqlite3.connect` does. The file alone, without its log, needs no disk that notes it."""
        parts = urlsplit(given)
        if "immutable=1" in parts.query:
            return REAL(given, **options)
        flags = apsw.SQLITE_OPEN_READONLY if "mode=ro" in parts.query else 0
        flags |= 0 if flags else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with _errors():
            return Connection(apsw.Connection(unquote(parts.path), flags, vfs=self._name))

    def done(self, note: Any) -> None:
        """Note that something has returned."""
        self.events.append(Event("done", note=note))

    def fail(self, number: int, failures: int, error: type[apsw.Error]) -> None:
        """Make so many calls fail, from the one with this number on (counted from now)."""
        self.calls, self.fail_at, self.failures, self.error = 0, number, failures, error

    def asked(self, what: str, file: str, at: int = 0, data: bytes = b"") -> None:
        """Note a call, or make it fail."""
        number = self.calls
        self.calls += 1
        if self.fail_at <= number < self.fail_at + self.failures and self.fail_at >= 0:
            raise self.error("the disk fails")
        self.events.append(Event(what, Path(file).name, at, data))


class Connection:
    """What lftj asks of a connection of `sqlite3`, done by one of apsw."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection, self._often, self._commits = connection, False, 0
        self.execute("pragma locking_mode = exclusive")

    def execute(self, sql: str, bindings: Iterable[Any] = ()) -> Rows:
        if "wal_autocheckpoint" in sql:
            sql, self._often = "pragma wal_autocheckpoint = 0", not sql.endswith("= 0")
        with _errors():
            rows = Rows(list(self._connection.execute(sql, tuple(bindings))))
        self._checkpoint()
        return rows

    def _checkpoint(self) -> None:
        """Take over the write-ahead log now and then, as SQLite does: no statement fails if that does.

        Left to SQLite, apsw would raise what the disk said there.
        """
        if self._often and not self._connection.in_transaction:
            self._commits += 1
            if self._commits % AUTOCHECKPOINT == 0:
                with contextlib.suppress(apsw.Error):
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        with _errors():
            self._connection.executemany(sql, rows)
        self._checkpoint()

    def executescript(self, sql: str) -> None:
        self.execute(sql)

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def close(self) -> None:
        with _errors():
            self._connection.close()


class Rows:
    """The rows of a statement."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


class _errors:
    """Errors of apsw as those of `sqlite3`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, apsw.Error):
            raise sqlite3.OperationalError(str(error)) from None


class _Vfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self.disk = disk
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self.disk, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        self.disk.asked("delete", name, at=int(syncdir))
        super().xDelete(name, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.name = "" if name is None else name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        try:
            self.disk.asked("write", self.name, offset, bytes(data))
        except apsw.Error:
            data = data[: len(data) // 2]  # it was full in the midst of it
            self.disk.events.append(Event("write", Path(self.name).name, offset, bytes(data)))
            super().xWrite(data, offset)
            raise
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self.disk.asked("truncate", self.name, size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self.disk.asked("sync", self.name)
        super().xSync(flags)


def after_a_crash(events: list[Event], rng: random.Random) -> dict[str, bytes]:
    """The files as a disk may have them after these events: what was not synced is there in part, in any order.

    Each write since the last sync of its file is there or not, or some of its sectors are. Names are there once
    something in the file was synced; what was deleted may be there again.
    """
    pending: dict[str, list[Event]] = {}
    files: dict[str, bytearray] = {}
    for event in events:
        for_good = event.what == "sync" or (event.what == "delete" and event.at)
        if for_good:
            for write in [*pending.pop(event.file, []), *([event] if event.what == "delete" else [])]:
                _apply(files, write)
        elif event.what != "done":
            pending.setdefault(event.file, []).append(event)
    for writes in pending.values():
        for write in _some(writes, rng):
            _apply(files, write)
    return {name: bytes(held) for name, held in files.items()}


def _some(writes: list[Event], rng: random.Random) -> Iterator[Event]:
    """Some of these, some in part: none, a first part of them, all but one, or any."""
    kind = rng.randrange(4)
    upto, without = rng.randrange(len(writes) + 1), rng.randrange(len(writes))
    for i, write in enumerate(writes):
        if kind == 0 or (kind == 1 and i >= upto) or (kind == 2 and i == without) or (kind == 3 and rng.random() < 0.4):
            continue
        torn = kind == 3 or (kind == 1 and i == upto - 1)
        if write.what == "write" and torn and rng.random() < 0.5:
            for at in range(0, len(write.data), SECTOR):
                if rng.random() < 0.6:
                    yield write._replace(at=write.at + at, data=write.data[at : at + SECTOR])
        else:
            yield write


def _apply(files: dict[str, bytearray], event: Event) -> None:
    if event.what == "delete":
        files.pop(event.file, None)
        return
    held = files.setdefault(event.file, bytearray())
    if event.what == "truncate":
        del held[event.at :]
        return
    if len(held) < event.at:
        held.extend(bytes(event.at - len(held)))
    held[event.at : event.at + len(event.data)] = event.data
