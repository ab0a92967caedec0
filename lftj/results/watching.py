"""Watching a database: callbacks, and feeds of commits.

db.on_commit("tri", callback)      callback(delta) after every transaction that changed `tri`
db.changes("tri")                  the deltas of every commit from now on, as an iterator (commit_feed.py)
"""

from __future__ import annotations

import inspect
import traceback
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import finalize, ref

from lftj import arguments
from lftj.results.answers import Answers
from lftj.results.commit_feed import CommitFeed
from lftj.results.transaction_delta import Delta, Deltas

_AWAIT_COMMITS = (
    "write `async for deltas in db.changes(name)` in a task, or give a function that begins one, by"
    " `loop.call_soon_threadsafe`"
)


class Watched(Answers):
    """The parts of `Database` that tell of its commits."""

    _instead = (
        'keep it in a file, as in `lftj.Database(path="shop.lftj")`, which another process opens with read_only=True;'
        " or give the rows of its relations, by `to_arrow()`; `db.branch()` is a copy in this process"
    )

    _watchers: dict[object, tuple[str, Callable[[Delta], object]]]
    # The calls to make of each commit, the last one first, by the keys of `_watchers`; and the last such commit.
    _undelivered: OrderedDict[int, list[tuple[object, Delta]]]
    _told: ref[Deltas] | None
    _delivering: bool
    _feeds: dict[object, ref[CommitFeed]]
    _end: finalize[..., Any] | None

    def _begin_watching(self) -> None:
        self._watchers, self._undelivered, self._told, self._delivering = {}, OrderedDict(), None, False
        self._feeds, self._end = {}, None

    def on_commit(self, name: str, callback: Callable[[Delta], object]) -> Callable[[], None]:
        """Call `callback(delta)` after every transaction that changed relation `name`; returns a function to end that.

        It is called once per commit, in the thread that commits, in the order of the commits and, within one, of the
        calls of `on_commit`. No other thread may commit meanwhile: a callback that waits for such a commit waits for
        ever. The commit stands whatever a callback does; an exception becomes a warning when all callbacks have run. A
        callback may open a transaction; callbacks are told of that one afterwards. Once ended, a callback is not called
        any more, but a call in another thread runs to its end. Loads are not commits. Coroutine functions, which nobody
        would await, are refused: `async for deltas in db.changes(name)` waits for commits.
        """
        self._stored(name)
        arguments.function("callback", callback, "callback(delta)", _AWAIT_COMMITS)
        handle = object()
        self._watchers[handle] = (name, callback)

        def stop() -> None:
            self._watchers.pop(handle, None)

        return stop

    def changes(self, *names: str, limit: int | None = None) -> CommitFeed:
        """The deltas of every commit from now on, as an iterator that waits for them, and an asynchronous one.

        `names`: relations, where not all are meant. Each item is what `tx.delta` of that commit is. It ends when it or
        the database is closed, from any thread, when nobody has the database any more, or with the block of
        `with db.changes() as feed`. `limit`: how many commits may wait to be read before `TransactionError` says that
        some were not kept; without it, any number. Loads are no commits. See `lftj.results.commit_feed`.
        """
        for name in names:
            self._stored(name)
        feeds, handle = self._feeds, object()
        if self._end is None:
            self._end = finalize(self, _close_all, feeds)
            self._end.atexit = False
        waiting = arguments.count("limit", limit, "commits that may wait to be read")
        feed = CommitFeed(names, waiting, lambda: feeds.pop(handle, None))
        feeds[handle] = ref(feed, lambda _: feeds.pop(handle, None))
        return feed

    def _all_feeds(self) -> list[CommitFeed]:
        return _alive(self._feeds)

    def _deliver(self, deltas: Deltas) -> list[str]:
        """Tell feeds; call the callbacks of the relations that changed; returns the messages of those that failed.

        A transaction of a callback only adds to the queue, which is emptied here. So every callback gets the commits in
        their order. Where this was interrupted, to call it again tells what was not told.
        """
        for feed in self._all_feeds():
            feed.give(deltas)
        if self._told is not (told := ref(deltas)):
            watchers = reversed(tuple(self._watchers.items()))
            calls = [(handle, deltas[name]) for handle, (name, _) in watchers if name in deltas]
            # One line: nothing interrupts it.
            self._undelivered[next(reversed(self._undelivered), 0) + 1], self._told = calls, told
        failures: list[str] = []
        if self._delivering:
            return failures
        stop: BaseException | None = None
        try:
            self._delivering = True
            while self._undelivered:
                number, calls = next(iter(self._undelivered.items()))
                while calls:
                    handle, delta = calls[-1]
                    watcher = self._watchers.get(handle)
                    try:
                        if watcher is not None:  # else it was ended meanwhile, by a callback or in another thread
                            _refuse_coroutine(watcher[1], watcher[1](delta))
                    except Exception as error:
                        shown = "".join(traceback.format_exception(error)).rstrip()
                        failures.append(f"a callback of on_commit failed; the commit stands\n{shown}")
                    except BaseException as error:
                        stop = stop or error
                    finally:
                        del calls[-1]
                del self._undelivered[number]
        finally:
            self._delivering = False
        if stop is not None:
            raise stop
        return failures


def _refuse_coroutine(callback: Callable[[Delta], object], given: object) -> None:
    """`ArgumentError` if all that a callback did was to give a coroutine, which a lambda may."""
    if inspect.iscoroutine(given):
        given.close()
        why = "it gave a coroutine that nobody runs"
        raise arguments.refused("callback", callback, why, _AWAIT_COMMITS)


def _alive(feeds: dict[object, ref[CommitFeed]]) -> list[CommitFeed]:
    return [feed for held in tuple(feeds.values()) if (feed := held()) is not None]


def _close_all(feeds: dict[object, ref[CommitFeed]]) -> None:
    for feed in _alive(feeds):
        feed.close()
