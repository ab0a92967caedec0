"""The lock of a file's one writer: a file beside it, locked for as long as the writer lives, whatever ends it.

    shop.lftj-lock      "1234 build-7": the number and the machine of the process, to name it by

The lock tells whether somebody writes, not what the file says: numbers of processes come again, and containers that
share a folder may share their names too. A lock of the system (`lockf`) is a process's, so a child that was forked does
not hold it; and it tells nothing to the process itself, which therefore notes the locks that it holds.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

from lftj.errors import DatabaseFileError

# The lock files, by device and number, that this process holds, with its number: a child holds none of its parent's.
_HELD: dict[tuple[int, int], int] = {}
# Reentrant: while it is held, the collector may end a database that nobody has closed, which lets go of its lock.
_GUARD = threading.RLock()
# Times that a lock is tried, a hundredth of a second apart.
TRIES = 5


class WriterLock:
    """The lock of the database file at `path`; `DatabaseFileError` that names who holds it."""

    _descriptor: int | None = None  # before it is open, and once it is closed

    def __init__(self, path: Path) -> None:
        self.path, self.pid = lock_path(path), os.getpid()
        try:
            with _GUARD:
                self._descriptor = descriptor = self._taken(path)
                _HELD[_key(os.fstat(descriptor))] = self.pid
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{self.pid} {socket.gethostname()}".encode())
        except BaseException:
            self.release()
            raise

    def __del__(self) -> None:
        """Whom an interrupt kept from holding on to it does not hold the file either."""
        if self._descriptor is not None:
            self.release()

    def _taken(self, path: Path) -> int:
        """The lock file, open and locked."""
        while True:
            if _held_here(self.path):
                raise _in_use(path, "this process")
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if not _lock_in_turn(descriptor):
                    raise _in_use(path, _named(os.read(descriptor, 300)))
                if _same(descriptor, self.path):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # who held it has removed it meanwhile: this one locks nothing

    def release(self) -> None:
        """Let another process write. Interrupted, it can be called again, and does the rest."""
        if self.pid != os.getpid():
            return
        with _GUARD:
            if self._descriptor is None:
                return
            with contextlib.suppress(OSError):
                if _same(self._descriptor, self.path):
                    os.unlink(self.path)
            _HELD.pop(_key(os.fstat(self._descriptor)), None)
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def lock_path(path: Path) -> Path:
    """The lock file of a database file, which a link may lead to."""
    return Path(f"{os.path.realpath(path)}-lock")


def is_written_to(path: Path) -> bool:
    """Whether a process, this one or another, is the writer of the file at `path`."""
    lock = lock_path(path)
    with _GUARD:
        if _held_here(lock):  # opening it and closing it again would let go of the lock
            return True
        try:
            descriptor = os.open(lock, os.O_RDONLY)  # in a folder where nothing may be written, too
        except FileNotFoundError:
            return False
        except OSError:  # it may not be asked: whoever wrote it may be alive
            return True
        try:
            return not _lock(descriptor, shared=True)
        finally:
            os.close(descriptor)


def _held_here(lock: Path) -> bool:
    try:
        return _HELD.get(_key(lock.stat())) == os.getpid()
    except OSError:
        return False


def _key(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _begin_anew() -> None:
    """A child that was forked holds no lock of its parent, one of whose other threads may have had the guard."""
    global _GUARD
    _GUARD = threading.RLock()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _same(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at `path`."""
    try:
        return _key(os.fstat(descriptor)) == _key(path.stat())
    except FileNotFoundError:
        return False


def _lock_in_turn(descriptor: int) -> bool:
    """Lock an open file; for a moment somebody may hold it who only asks whether it is held."""
    for _ in range(TRIES):
        if _lock(descriptor):
            return True
        time.sleep(0.01)
    return False


def _lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file for this process, `shared` with others who only ask; whether nobody else has."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            # Behind the text, which others read.
            os.lseek(descriptor, 1 << 20, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    try:
        fcntl.lockf(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _named(words: bytes) -> str:
    """Who wrote these words into a lock file."""
    pid, _, host = words.decode(errors="replace").partition(" ")
    if not pid.isdecimal():
        return "another process"
    return f"process {pid}" if host == socket.gethostname() else f"process {pid} on {host}"


def _in_use(path: Path, who: str) -> DatabaseFileError:
    return DatabaseFileError(
        f"{path} is in use: {who} writes to it",
        why="a file has one writer at a time",
        remedy="end that process, or open the file with read_only=True",
    )
