"""The commits to come, one after the other: `db.changes()`.

    for deltas in db.changes("tri"): ...            waits for the next commit that changes `tri`; ends with `close()`
    async for deltas in db.changes(): ...           the same, without keeping the event loop from other tasks
    feed.waiting(timeout=1.0)                       a list of what has come, after at most so long

Each item is what `tx.delta` of that commit is: exact, of every relation. Where names are given, commits that change
none of them are left out, and iterating over an item gives those of the names that changed. Items come in the order of
the commits, from whatever threads, and are kept until somebody reads them; with `limit=` so many at most. A feed never
keeps a commit waiting: one whose reader falls behind `limit` gives what it has and then raises `TransactionError`.

Several readers of a feed share its items. A feed that nobody holds any more gets none.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from numbers import Real
from weakref import ref

from lftj.arguments import instance
from lftj.errors import ForkError, TransactionError
from lftj.results.not_pickled import NotPickled
from lftj.results.transaction_delta import Deltas
from scantree.locks import Lock


class CommitFeed(NotPickled):
    """The deltas of the commits after its making; an iterator, and an asynchronous one. Made by `Database.changes`.

    `names`: the relations that are asked for, none for all. `limit`: how many commits may wait (None: any number).
    `ended` is called when it is closed.
    """

    _instead = 'read it here, and give the rows of what it gives, as in `deltas["tri"].to_arrow()`'

    def __init__(self, names: tuple[str, ...], limit: int | None, ended: Callable[[], object]) -> None:
        self._names, self._limit, self._ended = frozenset(names), limit, ended
        self._items: OrderedDict[int, Deltas] = OrderedDict()  # by number, from 1 on
        self._number = 0  # of the last item
        self._read = 0  # of the last one that was read: whoever has the lock next drops the items up to it
        self._given: ref[Deltas] | None = None  # the deltas of the last commit that it was given, or that it lost
        self._lost = 0
        self._closed = False
        self._changed = threading.Condition(Lock(ForkError, "the feed of commits"))
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    # -- who commits --------------------------------------------------------------------------------------------------

    def give(self, deltas: Deltas) -> None:
        """Take the deltas of a commit; once, also where it is given them again since an interrupt came."""
        shown = deltas._about(self._names) if self._names else deltas
        if not len(shown):
            return
        with self._changed:
            if self._closed:
                return
            if self._given is not (given := ref(deltas)):
                full = self._limit is not None and len(self._unread()) >= self._limit
                number = self._number + 1
                # Nothing interrupts one of these lines.
                if self._lost or full:
                    self._lost, self._given = self._lost + 1, given
                else:
                    self._items[number], self._given, self._number = shown, given, number
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        sleepers, self._sleepers = self._sleepers, []
        for loop, future in sleepers:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                loop.call_soon_threadsafe(_settle, future)

    # -- who reads ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Deltas]:
        return self

    def __next__(self) -> Deltas:
        while True:
            with self._changed:
                while not self._ready():
                    self._changed.wait()
                if not self._items:
                    raise StopIteration
                read, (number, found) = self._read, next(iter(self._items.items()))
            if self._takes(read, number):
                return found

    def waiting(self, timeout: float = 0.0) -> list[Deltas]:
        """All that have come; where none has, it waits for the first, at most `timeout` seconds."""
        remedy = "give `timeout=0.5`, or leave it out for what is there now"
        instance("timeout", timeout, Real, "it is a time in seconds, a number", remedy)  # type: ignore[type-abstract]
        until = time.monotonic() + timeout
        while True:
            with self._changed:
                while not self._ready() and (left := until - time.monotonic()) > 0:
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                read, number, found = self._read, self._number, [*self._items.values()]
            if self._takes(read, number):
                return found

    def __aiter__(self) -> CommitFeed:
        return self

    async def __anext__(self) -> Deltas:
        while True:
            with self._changed:
                if ready := self._ready():
                    if not self._items:
                        raise StopAsyncIteration
                    read, (number, found) = self._read, next(iter(self._items.items()))
                else:
                    loop = asyncio.get_running_loop()
                    sleeper = loop.create_future()
                    self._sleepers.append((loop, sleeper))
            if ready:
                if self._takes(read, number):
                    return found
                continue
            try:
                await sleeper
            finally:
                with self._changed:
                    self._sleepers = [one for one in self._sleepers if one[1] is not sleeper]

    def _takes(self, read: int, number: int) -> bool:
        """Take the items up to a number, where those up to `read` were taken; not if another reader took some since.

        Without the lock, as its release is a call: after calls interrupts come, and the items would be lost.
        """
        if self._read != read:
            return False
        self._read = number
        return True

    def _unread(self) -> OrderedDict[int, Deltas]:
        """The items that nobody has read."""
        while self._items and (first := next(iter(self._items))) <= self._read:
            del self._items[first]
        return self._items

    def _ready(self) -> bool:
        """Whether there is something to give, or nothing will come. Raises where something was lost."""
        if not self._unread() and self._lost:
            lost, self._lost, self._closed = self._lost, 0, True
            self._ended()
            raise TransactionError(
                f"{lost:,} {'commit' if lost == 1 else 'commits'} of `db.changes` were not kept, and it has ended",
                why=f"limit={self._limit} commits were waiting to be read, and commits do not wait for readers",
                remedy="read the relations as they are now and begin another `db.changes`; read it sooner, or raise"
                " limit=",
            )
        return bool(self._items) or self._closed

    # -- life ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End it, from any thread: who iterates gets what is waiting and then the end."""
        with self._changed:
            self._closed = True
            self._wake()
        self._ended()

    async def aclose(self) -> None:
        """The same, for `contextlib.aclosing`."""
        self.close()

    def __enter__(self) -> CommitFeed:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> CommitFeed:
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        with self._changed:
            of = ", ".join(sorted(self._names)) or "all relations"
            return f"lftj.CommitFeed of {of}: {len(self._unread()):,} waiting{', closed' if self._closed else ''}"


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
