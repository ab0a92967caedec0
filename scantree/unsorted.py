"""Unsorted versions: distinct rows that wait to be put in order, until somebody asks for more than whole columns.

What one question derives on its way goes with the answer, and mostly it is read once: by columns, whatever their order.
Sorting it and laying it out in pages takes several times as long as that. So the rows wait as they came; whoever seeks
in them, or walks them, has them sorted first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scantree.consolidate import consolidated
from scantree.sort import sort_rows
from scantree.version import Rows, Store, Version


class UnsortedVersion(Version):
    """A version of `rows` int64[cols, n], cols > 0. It has no root until they are sorted.

    Their keys are distinct; or they are `counted`: the last column says how often a row is there, and adds up where the
    rest is equal. Until they are sorted the length is the number of rows as they came.
    """

    __slots__ = ("_waiting", "counted")

    def __init__(self, store: Store, rows: Rows, *, counted: bool = False) -> None:
        self.store, self._own, self.edition, self.counted = store, False, 0, counted
        self._rows = rows.shape[1]
        self._waiting: Rows | None = rows

    @property
    def waits(self) -> bool:
        """Whether the rows are as they came."""
        return self._waiting is not None

    def __getattr__(self, name: str) -> int:
        # Only what is not set is asked for here: the root, before the rows are sorted.
        if name != "root":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        self._sort()
        return self.root

    def _sort(self) -> None:
        with self.store.arena.lock:
            if self._waiting is None:
                return
            rows = self._waiting
            if self.counted:
                rows = np.vstack(consolidated(rows[:-1], rows[-1]))
            made = self.store.assemble([sort_rows(rows, self.store.shape.keys)])
            self._rows = len(made)
            # Nothing is called from here on: no signal comes between.
            made._own, self.root, self._own, self._waiting = False, made.root, True, None

    def count(self, lo: int | None = None, hi: int | None = None) -> int:
        """As of any version; how many there are is known."""
        return len(self) if lo is None and hi is None else super().count(lo, hi)

    def column_chunks(self, columns: Sequence[int], size: int) -> Iterator[Rows]:
        """As of any version, in the order of the rows."""
        rows = self._waiting
        if rows is None:
            yield from super().column_chunks(columns, size)
            return
        size = max(size, 1)
        for at in range(0, rows.shape[1], size):
            yield np.stack([rows[column, at : at + size] for column in columns])
