"""Long work that Ctrl-C ends at once: libraries that convert millions of rows in one call are not asked to stop.

Python runs signal handlers in its main thread, between two of its own instructions; one call into numpy or Arrow may
take a second, and Ctrl-C waits for it. So such a call is made by a thread of its own, while the main thread waits for
it in a way that a signal ends:

    interruptible(rows, work, *arguments)       work(*arguments), or KeyboardInterrupt at once

What the thread computes after that is thrown away with it: `work` must change nothing that others see, and holds no
lock that the caller may want before it is done. It helps where `work` lets go of Python's own lock, as numbers do in
numpy and Arrow. What makes Python objects keeps that lock, and is done in slices instead (`gate.to_rows` and
`gate.to_numpy`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Sorting these by a few columns takes some 20 ms: nobody notices, and a thread takes a tenth of one to begin.
FEW_ROWS = 1 << 15


def interruptible(rows: int, work: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> T:
    """What `work(*arguments, **options)` returns or raises; `rows` says how long it may take."""
    if rows <= FEW_ROWS or threading.current_thread() is not threading.main_thread():
        return work(*arguments, **options)
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work(*arguments, **options))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="lftj conversion", daemon=True).start()
    return result.result()
