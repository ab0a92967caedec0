"""Watchers: callbacks that are told what a commit changed about a relation (`Database.on_commit`)."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable

from lftj.results.transaction_delta import Delta, Deltas

Callback = Callable[[Delta], object]


class Watchers:
    """The callbacks of a database, in the order in which they were added."""

    def __init__(self) -> None:
        self._callbacks: dict[object, tuple[str, Callback]] = {}
        self._undelivered: deque[tuple[Callback, Delta]] = deque()
        self._delivering = False

    def __len__(self) -> int:
        return len(self._callbacks)

    def add(self, name: str, callback: Callback) -> Callable[[], None]:
        """Tell `callback` of changes of a relation; returns what ends that."""
        handle = object()
        self._callbacks[handle] = (name, callback)

        def stop() -> None:
            self._callbacks.pop(handle, None)

        return stop

    def deliver(self, deltas: Deltas) -> list[str]:
        """Call the callbacks of the relations that changed; returns the messages of those that failed.

        A transaction of a callback only adds to the queue, which is emptied here. So every callback gets the commits in
        their order.
        """
        for name, callback in tuple(self._callbacks.values()):
            if name in deltas:
                self._undelivered.append((callback, deltas[name]))
        failures: list[str] = []
        if self._delivering:
            return failures
        self._delivering = True
        stop: BaseException | None = None
        try:
            while self._undelivered:
                callback, delta = self._undelivered.popleft()
                try:
                    callback(delta)
                except Exception as error:
                    shown = "".join(traceback.format_exception(error)).rstrip()
                    failures.append(f"a callback of on_commit failed; the commit stands\n{shown}")
                except BaseException as error:
                    stop = stop or error
        finally:
            self._delivering = False
        if stop is not None:
            raise stop
        return failures
