"""Dictionaries that keep so many things, those that were used last: checked queries, statements of SQL.

Threads read them without a lock, and change them by one.
"""

from __future__ import annotations

import threading
from typing import Any


def put(lock: threading.RLock, kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Have it as what was used last; drop what was not used for longest."""
    with lock:
        kept.pop(key, None)
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[key] = value


def used(lock: threading.RLock, kept: dict[Any, Any], key: Any, value: Any) -> None:
    """It was used; if another thread has the lock, for a transaction perhaps, that is not worth the wait."""
    if lock.acquire(blocking=False):
        try:
            kept[key] = kept.pop(key, value)
        finally:
            lock.release()
