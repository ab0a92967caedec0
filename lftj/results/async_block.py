"""Asynchronous blocks: `async with db.transaction() as tx`, without keeping the event loop from its other tasks.

    enter       takes the writer's lock, in pauses while somebody else has it
    the block   collects, as any transaction's block does; the thread of the loop has the lock, through every `await`
    leave       the commit is computed by a thread of its own; it is published in the loop's thread, between two tasks

Three threads may want the database meanwhile. Others wait, as they do for any block; while the lock passes to the
thread that computes and back, they may read and evaluate, and writers wait for `passing`. Other tasks of the same loop
that write get an error at once, where they would wait for themselves; with `async with` they wait. A task that is
cancelled while its commit is computed stops that, waits until it has stopped, and discards the transaction. From the
first moment of the publication on there is no `await`, so that a commit is never cancelled half way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Generator
from types import TracebackType
from typing import Any, Protocol

from lftj.errors import ForkError
from lftj.join.run import Limits

# Seconds between two looks at a lock that somebody else has: the first, and the longest.
_PAUSE, _LONGEST = 0.0005, 0.01


class Writers(Protocol):
    """What blocks of one database share: a `Database`."""

    _lock: threading.RLock
    _holding: Generator[None] | None

    @property
    def _open(self) -> Any: ...


class AnyBlock(Protocol):
    """A transaction, as far as an asynchronous block needs it."""

    _apart: AsyncBlock | None

    def _computed(self) -> object: ...

    def _hold(self) -> None: ...

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class AsyncBlock:
    """The asynchronous block of a transaction of the database `writers`."""

    def __init__(self, block: AnyBlock, writers: Writers) -> None:
        self._block, self._writers = block, writers
        self._task, self._thread, self._pid = asyncio.current_task(), threading.get_ident(), os.getpid()
        self._passing: threading.Event | None = None
        self._passed, self._computing = threading.Event(), 0
        self._limits: list[Limits] = []
        self._stopped = False

    async def enter(self) -> None:
        """Begin the block when no other transaction is open."""
        writers, pause = self._writers, _PAUSE
        while True:
            if writers._lock.acquire(blocking=False):
                try:
                    # Of a block without a task, or of this task, nobody would see the end: `__enter__` refuses.
                    other = writers._open
                    if other is None or other._apart is None or other._apart._task is self._task:
                        self._block.__enter__()
                        self._block._apart = self
                        return
                    other._apart.check_alive()
                finally:
                    writers._lock.release()
            pause = await _paused(pause)

    async def leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the block: discard it, or compute the commit beside the loop and publish it."""
        block, lock = self._block, self._writers._lock
        if kind is not None:
            block.__exit__(kind, error, trace)
            return
        passing = self._passed
        try:
            self._passing = passing
            holding, self._writers._holding = self._writers._holding, None
            assert holding is not None, "its block has begun"
            holding.close()
            raised = await self._beside()
            pause = _PAUSE
            while not lock.acquire(blocking=False):
                try:
                    pause = await _paused(pause)
                except asyncio.CancelledError as cancelled:
                    raised = raised or cancelled
            try:
                assert self._writers._open is block, "nobody opens another while this one passes the lock"
                block._hold()
            finally:
                lock.release()
            if raised is None:
                block.__exit__(None, None, None)
                return
            block.__exit__(type(raised), raised, raised.__traceback__)
        finally:
            self._passing = None
            passing.set()
        raise raised

    async def _beside(self) -> BaseException | None:
        """Compute the commit in a thread of its own; what that raised, or the cancellation that stopped it."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        failed: list[BaseException] = []

        def compute() -> None:
            try:
                self._computing = threading.get_ident()
                with self._writers._lock:
                    self._block._computed()
            except BaseException as error:
                failed.append(error)
            self._computing = 0
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=compute, name="lftj commit", daemon=True).start()
        cancelled: BaseException | None = None
        while not done.is_set():
            try:
                await done.wait()
            except asyncio.CancelledError as error:
                cancelled = cancelled or error
                self._stopped = True
                for limits in self._limits:
                    _expire(limits)
        return cancelled or (failed[0] if failed else None)

    def limited(self, limits: Limits) -> Limits:
        """The limits of a part of the commit, which expire when the task is cancelled."""
        self._limits.append(limits)
        if self._stopped:
            _expire(limits)
        return limits

    def awaited(self) -> threading.Event | None:
        """What other threads have to wait for while the commit is computed; None for the loop's and who computes."""
        if threading.get_ident() in (self._thread, self._computing):
            return None
        self.check_alive()
        return self._passing

    def check_alive(self) -> None:
        """Raise `ForkError` in a child, where nobody ends the block: its task, or its thread, is the parent's."""
        if self._pid != os.getpid():
            raise ForkError("the database")


def _expire(limits: Limits) -> None:
    limits.deadline, limits.timeout = 0.0, 0.0


async def _paused(pause: float) -> float:
    await asyncio.sleep(pause)
    return min(2 * pause, _LONGEST)
