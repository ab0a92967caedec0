"""A crew: the threads of one database that run kernels beside each other.

Kernels hold no lock of Python's, so threads run them in parallel. A *shift* is one piece of work that several of them
do together, each the same function with a number of its own; whoever began it waits inside a `with` block, looks at
limits meanwhile, and leaves the block only when every thread has put its work down:

    with crew.shift(work) as shift:          # work(i, shift) for i in range(crew.threads)
        while not shift.over:
            shift.wait(0.05)                 # or until a worker calls `shift.tell()`; raises what a worker raised

If the block raises (Ctrl-C, a time-out, an error of a worker), `shift.stopped` asks the workers to stop at their next
slice, and they are waited for all the same: nobody writes to anything afterwards.

The threads are made when the first shift begins and end with the crew. A crew may be used by several threads at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)

# Bytes of two cache lines: they are fetched in pairs.
LINE = 128
# Seconds between two looks at limits while others work.
LOOK = 0.05


def apart(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """A copy of `array` with no other array on its cache lines: what another thread writes there is waited for."""
    margin = LINE // array.itemsize
    room = np.empty(array.size + 2 * margin, array.dtype)
    copied = room[margin : margin + array.size].reshape(array.shape)
    copied[...] = array
    return copied


class Stopped(Exception):
    """A worker puts its work down, because it was asked to."""


class Crew:
    """`threads` threads, at least two."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def shift(self, work: Callable[[int, Shift], None], workers: int | None = None, *, first: int = 0) -> Shift:
        """A shift that begins with its block; `workers`: so many take part (default: all).

        With `first` 1 number 0 is left to the block, which does that work itself: for work of a few milliseconds, where
        one thread less to wake up, and none that sleeps meanwhile, is quicker.
        """
        return Shift(self, work, range(first, self.threads if workers is None else workers))

    def submit(self, work: Callable[[int], None], numbers: range) -> list[Future[None]]:
        """Have `work` called with each of `numbers`, in any thread and order.

        If that is interrupted, by then nobody is at work any more.
        """
        if self._pid != os.getpid():  # a child that was forked has none of its parent's threads
            self._pool, self._pid, self._lock = None, os.getpid(), threading.Lock()
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="lftj")
            pool = self._pool
            try:
                return [pool.submit(work, i) for i in numbers]
            except BaseException:
                # Some may have begun of which nobody knows: the pool knows.
                self._pool = None
                pool.shutdown(wait=True)
                raise


class Shift:
    """One piece of work of a crew; see the module's text. Used once, as a context."""

    def __init__(self, crew: Crew, work: Callable[[int, Shift], None], numbers: range) -> None:
        self.stopped = False
        self._crew, self._work, self._numbers = crew, work, numbers
        self._news = threading.Event()
        self._error: BaseException | None = None
        self._futures: list[Future[None]] = []
        self._left, self._lock = len(numbers), threading.Lock()

    def __enter__(self) -> Shift:
        try:
            self._futures = self._crew.submit(self._go, self._numbers)
        except BaseException:
            self.stopped = True
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped |= kind is not None
        interrupted: BaseException | None = None
        while True:
            try:
                wait(self._futures)
                break
            except BaseException as again:  # a second Ctrl-C: the work must end before anything goes on
                interrupted, self.stopped = again, True
        self._work = _nothing  # what it worked on need not live as long as the last reference to the shift
        asked = kind is None or issubclass(kind, Stopped)  # by the failure of another worker
        if asked and (self._error or interrupted) is not None:
            raise self._error or interrupted  # type: ignore[misc]

    def _go(self, i: int) -> None:
        try:
            if not self.stopped:
                self._work(i, self)
        except Stopped:
            pass
        except BaseException as error:
            self._error, self.stopped = error, True
        finally:
            with self._lock:
                self._left -= 1
            self.tell()

    @property
    def over(self) -> bool:
        """Whether every worker is done."""
        return self._left == 0

    def look(self, rows: int) -> None:
        """What a worker calls between two slices, in the place of looking at limits: ends it if it is to stop."""
        if self.stopped:
            raise Stopped

    def tell(self) -> None:
        """Wake up whoever waits: something is ready, or a worker is done."""
        self._news.set()

    def wait(self, seconds: float) -> None:
        """Wait for news, `seconds` at most. Raises what a worker raised."""
        try:
            self._news.wait(seconds)
        except RuntimeError as error:
            # Ctrl-C within the wait unlocks the lock that it waits for, which is what is raised.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise
        self._news.clear()
        if self._error is not None:
            raise self._error


def _nothing(i: int, shift: Shift) -> None:
    """The work of a shift that is over."""
