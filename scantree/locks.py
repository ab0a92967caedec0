"""Locks that a process forked in the middle of another thread's work refuses, instead of waiting for ever.

A child has the memory of its parent and of its threads only the one that forked. A lock that another thread had then is
never released there, and what it guards is as far as that thread had come: somewhere within a change. So whoever wants
such a lock in the child is told, by the error that the lock was made with. A lock that was free, or that the forking
thread had, goes on as before.

Taking and releasing one costs what it costs of `threading.RLock`: nothing is asked until a process is forked.
"""

from __future__ import annotations

import _thread
import os
import weakref
from collections.abc import Callable

_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock(_thread.RLock):  # type: ignore[misc]
    """A reentrant lock. `error(*args)` makes what is raised by whoever wants it where it is lost."""

    __slots__ = ("args", "error")

    error: Callable[..., Exception]
    args: tuple[object, ...]

    def __new__(cls, error: Callable[..., Exception], *args: object) -> Lock:
        """A lock that is free."""
        made = super().__new__(cls)
        made.error, made.args = error, args
        _all.add(made)
        return made


class LostLock(Lock):  # type: ignore[misc]
    """What a lock becomes in a child that was forked while another thread had it."""

    __slots__ = ()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Raise what the lock was made with: nobody is there to release it."""
        raise self.error(*self.args)

    __enter__ = acquire


class LostLockError(RuntimeError):
    """A process was forked while another thread was at work in `what`."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} cannot be used: this process was forked while another thread was at work there")


def _see_what_is_lost() -> None:
    """In a child that was just forked, by its only thread."""
    for lock in tuple(_all):
        if _thread.RLock.acquire(lock, blocking=False):  # of this class: one that was lost before is not asked
            lock.release()
        else:
            lock.__class__ = LostLock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_see_what_is_lost)
