"""Lagging versions: a version and changes of it that are known to be effective, made when somebody first reads it.

A stream of events changes a few rows in each of many pages, and `update` copies all of these, since the version before
is to stay. Mostly nobody needs it any more once the next one is published, and nobody reads the next one before that:
what follows from the events follows from these alone. So the changes wait until the version before is held by nothing
but the next, and are then made in its pages (amend.py). Where somebody reads the next version earlier, or holds the one
before, `update` makes it as ever.

Who holds a version is told by the interpreter's count of references. So whatever reads a version's root has to hold the
version as well, which all readers do.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from sys import getrefcount
from typing import Any

import numpy as np
import numpy.typing as npt

from scantree import amend as _amend
from scantree.memory import Arena, Size
from scantree.probe import ERASED, INSERTED
from scantree.version import Changes, Rows, Version, in_key_order

# Fewer changes are made at once: their pages are copied in less time than it takes to let them wait.
LEAST = 64


def _references(held: tuple[Any, ...]) -> int:
    """How many references there are to the first of `held`.

    Counted by `map`: the interpreter itself does not count all of its own since Python 3.14.
    """
    return next(map(getrefcount, held))


# The references to what nobody has but such a tuple.
OWN = _references((object(),))


class LaggingVersion(Version):
    """The version after `before` and `batch` int64[cols, m], in key order, with `ops` int8[m]; as of `update_later`.

    It has no root until the changes are made. It may be interrupted between making them and taking over the root: as
    every change is made again then, which does nothing where it was made before, the rows are right.
    """

    __slots__ = ("_waiting",)

    def __init__(self, before: Version, batch: Rows, ops: npt.NDArray[np.int8]) -> None:
        self.store, self._own, self.edition = before.store, False, 0
        self._rows = len(before) + int(ops.sum(dtype=np.int64))
        self._waiting: tuple[Version, Rows, npt.NDArray[np.int8]] | None = (before, batch, ops)

    def __getattr__(self, name: str) -> int:
        # Only what is not set is asked for here: the root, before the changes are made.
        if name != "root":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        self.settle()
        return self.root

    def to_be_made(self) -> tuple[Size, ...]:
        """The pages that the changes may make; none if they do not wait. The caller holds the arena's lock."""
        return () if self._waiting is None else self._waiting[0].wanted(len(self._waiting[2]))

    def settle(self) -> None:
        """Make the changes, if they wait: in the version before if nobody else has it. Raises `ArenaFullError`."""
        store = self.store
        with store.arena.lock:
            if self._waiting is None:
                return
            alone = _references(self._waiting) <= OWN
            before, batch, ops = self._waiting
            # Not by `use_up`, for which an interruption may be the end of the version before.
            if alone:
                verdicts = np.empty(len(ops), np.int8)
                left = _amend.amend_pages(store, before.root, batch, ops, verdicts)
                store.arena.touched += len(ops) - left
                rest = verdicts == _amend.LEFT
                batch, ops = np.compress(rest, batch, axis=1), ops[rest]
            following, _ = before.update(batch, ops, in_order=True)
            # Nothing is called from here on: no signal comes between.
            following._own, self.root, self._own, self._waiting = False, following.root, True, None


def make_room(arena: Arena, versions: Iterable[LaggingVersion]) -> None:
    """Make sure that there is memory for the changes of all these versions together; raises `ArenaFullError`."""
    with arena.lock:
        arena.room(*chain.from_iterable(version.to_be_made() for version in dict.fromkeys(versions)))


def update_later(
    version: Version, batch: Rows, ops: npt.NDArray[np.int8], *, in_order: bool = False
) -> tuple[Version, Changes]:
    """The version after `batch` int64[cols, m] is applied, all of which is effective; as by `Version.update`.

    `ops` int8[m]: 1 inserts a row that is not there, -1 erases one that is. The keys are distinct, and `in_order` or
    in any. Many changes lag. Raises `ArenaFullError`.
    """
    store, m = version.store, len(ops)
    if m < LEAST or not store.amends(m):
        return version.update(batch, ops, in_order=in_order)
    if not in_order:
        batch, ops = in_key_order(batch, ops, store.shape.keys)
    lagging = LaggingVersion(version, batch, ops)
    make_room(store.arena, [lagging])
    return lagging, Changes(batch, np.where(ops > 0, INSERTED, ERASED).astype(np.int8))
