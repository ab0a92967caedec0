"""Work in a thread of its own, which the main thread waits for in a way that a signal ends.

Python runs signal handlers in its main thread. What they raise, as Ctrl-C does, ends whoever waits at once, and never
the work: that goes on to its end, and what it returns or raises then is thrown away.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_own_thread(name: str, work: Callable[[], T], *, daemon: bool) -> T:
    """What `work` returns or raises; done by a thread called `name` where the main thread asks, else where it is.

    `daemon`: a process that ends does not wait for it.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    try:
        threading.Thread(target=run, name=name, daemon=daemon).start()
    except RuntimeError:  # there are no more threads: the interpreter ends, or so the system's limits are
        return work()
    return result.result()
