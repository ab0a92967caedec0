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

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from scantree.own_thread import in_own_thread

P = ParamSpec("P")
T = TypeVar("T")

# Sorting these by a few columns takes some 20 ms: nobody notices, and a thread takes a tenth of one to begin.
FEW_ROWS = 1 << 15


def interruptible(rows: int, work: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> T:
    """What `work(*arguments, **options)` returns or raises; `rows` says how long it may take."""
    if rows <= FEW_ROWS:
        return work(*arguments, **options)
    return in_own_thread("lftj conversion", partial(work, *arguments, **options), daemon=True)
