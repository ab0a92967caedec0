"""What the planner knows of the data: rows, distinct keys of column sets, and a sample of the rows.

Distinct counts of a prefix of a key order that is built are exact: one pass over the pages counts the changes at each
level; of a large relation, over a part of the pages, spread evenly. A single column that no order starts with is
estimated by linear counting (Whang et al., TODS 1990): hash every key into a bitmap, count what stays empty. Other
column sets are bounded by the product of their parts. Everything is deterministic, and computed when first asked for.

A large relation of which few rows change keeps what is known of it: counting takes longer than following the change.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lftj.join.profile import draw_rows, fence_counts, mark_keys, prefix_counts
from scantree.version import Version

SAMPLE = 1024
# About so many rows are counted at least, where not all are.
PROFILED = 1 << 20
# Rows from which on what is known outlives a change, and what part of them may change before it is counted again.
LARGE, CHANGED_PART = 1 << 14, 1 / 100


class Stored(Protocol):
    """A relation as the planner sees it: its rows in any key order, and which orders exist already."""

    name: str
    arity: int

    def __len__(self) -> int: ...

    @property
    def orders(self) -> Collection[tuple[int, ...]]:
        """The key orders that are built, the declared one first."""

    def order(self, columns: tuple[int, ...]) -> Version:
        """The rows in the key order `columns`, built if need be."""

    def key_order(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """The key order to build for who reads these columns first: these, and all others or what tells rows apart."""

    def forget(self, columns: tuple[int, ...]) -> None:
        """Drop a secondary key order that nobody is going to use."""


class Statistics:
    """Rows and distinct counts of one relation. `changed`: rows that came or went since these were counted."""

    fleeting = False

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.rows = len(stored)
        self._known: dict[frozenset[int], float] = {frozenset(): 1.0, frozenset(range(stored.arity)): float(self.rows)}
        self._profiled: set[tuple[int, ...]] = set()
        self._sample: npt.NDArray[np.int64] | None = None
        self.changed = 0

    def after(self, stored: Stored, changed: int) -> Statistics | None:
        """What is known of a relation after so many more rows changed; None if it is to be counted again."""
        changed += self.changed
        if changed and (changed > CHANGED_PART * len(stored) or len(stored) < LARGE):
            return None
        made = Statistics(stored)
        made._know(self._known, self._profiled, changed)
        made._sample = self._sample
        return made

    def _know(self, known: Mapping[frozenset[int], float], profiled: Iterable[tuple[int, ...]], changed: int) -> None:
        rows = float(self.rows)
        self._known = {columns: min(count, rows) for columns, count in known.items()} | self._known
        self._profiled, self.changed = set(profiled), changed

    def noted(self) -> dict[str, Any]:
        """What is known, as JSON."""
        known = [[sorted(columns), count] for columns, count in self._known.items()]
        return {"known": known, "profiled": sorted(self._profiled), "changed": self.changed}

    @classmethod
    def of_noted(cls, stored: Stored, noted: Mapping[str, Any]) -> Statistics:
        """What was noted of a relation with the same rows."""
        made = cls(stored)
        known = {frozenset(columns): count for columns, count in noted["known"]}
        made._know(known, map(tuple, noted["profiled"]), noted["changed"])
        return made

    def distinct(self, columns: frozenset[int]) -> float:
        """Distinct keys of the given columns, at least 1."""
        if self.rows == 0:
            return 1.0
        for order in list(self.stored.orders):
            if order not in self._profiled:
                self._profile(order, self.stored.order(order))
        found = self._known.get(columns)
        if found is None and len(columns) > 1:
            return max(1.0, self._of_each(columns))  # not kept: of a wide table they are many, and large
        if found is None:
            found = self._known[columns] = self._estimate(next(iter(columns)))
        return max(1.0, found)

    def _of_each(self, columns: frozenset[int]) -> float:
        """The distinct keys of columns that have nothing to do with each other: no more than there are rows."""
        found = 1.0
        for column in sorted(columns):
            found *= self.distinct(frozenset([column]))
            if found >= self.rows:
                return float(self.rows)
        return found

    def _profile(self, order: tuple[int, ...], version: Version) -> None:
        """Count the prefixes of a key order; of a large relation in a part of its pages.

        Of keys that begin rarely a part tells little, but then pages begin with each of them: where it is in doubt, by
        the root of what was found, the pages are believed.
        """
        self._profiled.add(order)
        mem, shape = version.store.arena.space.mem, version.store.shape
        counts, begun = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
        looked = prefix_counts(mem, version.root, shape, max(1, self.rows // PROFILED), counts)
        if looked < self.rows:
            fence_counts(mem, version.root, shape, begun)
            later = (counts - 1) - np.sqrt(counts - 1)  # the first row begins all in any case
            counts = np.minimum(np.maximum(1 + later * (self.rows / looked), begun), self.rows)
        for level, count in enumerate(counts[:-1].tolist()):  # whole rows are all different
            self._known[frozenset(order[: level + 1])] = float(count)

    def _estimate(self, column: int) -> float:
        version = self.stored.order(tuple(range(self.stored.arity)))
        bitmap = np.zeros(1 << max(10, min(26, self.rows.bit_length())), np.bool_)
        with np.errstate(over="ignore"):  # where no kernels are compiled: hashes wrap around
            mark_keys(version.store.arena.space.mem, version.root, version.store.shape, column, bitmap)
        empty = len(bitmap) - int(np.count_nonzero(bitmap))
        return min(float(self.rows), len(bitmap) * math.log(len(bitmap) / max(1, empty)))

    def part_below(self, column: int, key: int) -> float:
        """The part of the rows whose `column` is less than `key`, in a sample of `SAMPLE` rows."""
        if not self.rows:
            return 0.0
        if self._sample is None:
            version = self.stored.order(tuple(range(self.stored.arity)))
            # The root first: equal rows of an unsorted version become one when it is sorted.
            root, rows = version.root, len(version)
            n = min(SAMPLE, rows)
            space, shape = version.store.arena.space, version.store.shape
            drawn = np.empty((shape.cols, n), np.int64)
            draw_rows(space.mem, root, shape, (2 * np.arange(n) + 1) * rows // (2 * n), drawn)
            self._sample = np.sort(drawn[: self.stored.arity], axis=1)
        sample = self._sample[column]
        return int(np.searchsorted(sample, key)) / len(sample)


class Fleeting(Statistics):
    """Statistics of a relation that is made for one run of a plan, and its key orders each time."""

    fleeting = True


class OneRow(Fleeting):
    """As if the relation had one row: for plans that are to be right for few rows of any kind."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self.rows = 1

    def distinct(self, columns: frozenset[int]) -> float:
        """One."""
        return 1.0

    def part_below(self, column: int, key: int) -> float:
        """Half of it."""
        return 0.5
