"""Ranks of texts: numbers that compare as the texts do, and that seldom change when one more comes.

A kernel compares two texts by `ranks[code]`. Ranks need only be in the order of the texts, not dense, so they keep
gaps: a new text gets a number between those of its neighbours, which `sortedcontainers.SortedList` finds in O(log n),
and the others keep theirs.

    "b" -> -2**61, "d" -> 0        "c" comes: -> -2**53 (close to the younger "d")        "cc" comes: -> -2**53 + 2**45

Texts often come in order (names with a serial number), so a new one is put close to the younger of its neighbours, at
1 / 2**NEAR of the gap, and leaves most of the gap to the next: thousands fit where halving would have room for some
fifty. When a gap is used up, and where many texts came at once, all are ranked anew, evenly spread, by one sort in
Arrow: amortised that is far less than the lookups. Nothing is done, and no list is kept, before somebody asks.

Whoever took the ranks before keeps valid ones: a new text is written behind the end of every array that was handed out,
and ranking anew makes a new array.

Source: labels for order maintenance, P. Dietz, D. Sleator, STOC 1987; M. Bender et al., ESA 2002.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.values.arrow_arrays import values_of

if TYPE_CHECKING:
    import pyarrow as pa
    from sortedcontainers import SortedList

# All ranks lie within +-EDGE, and within half of it when they were spread evenly: the ends are what most texts come to.
EDGE = 1 << 62
NEAR = 8
# Ranking so many texts anew takes no longer than finding the neighbours of one.
FEW = 128


class Ranks:
    """The ranks of the texts of one symbol table. Whoever calls holds the table's lock."""

    def __init__(self) -> None:
        self._all: npt.NDArray[np.int64] = np.empty(0, np.int64)  # with room at the end
        self._ranked = self._all  # those of the texts so far
        self._ordered: SortedList | None = None
        self.rebuilt = 0  # how often all texts were ranked anew

    def __len__(self) -> int:
        return len(self._ranked)

    @property
    def array(self) -> npt.NDArray[np.int64]:
        """The rank of each code."""
        return self._ranked

    def rank_all(self, texts: pa.Array) -> None:
        """Rank `texts`, in the order of their codes, anew."""
        import pyarrow.compute as pc

        order = values_of(pc.array_sort_indices(texts))
        n = len(order)
        self._all = np.empty(n + n // 4 + FEW, np.int64)
        self._ranked = self._all[:n]
        self._ranked[order] = np.arange(n) * (EDGE // max(1, n)) - EDGE // 2
        self._ordered = None
        self.rebuilt += 1

    def add(self, codes: dict[str, int]) -> bool:
        """Rank the texts that came since, which are the last of `codes`, those of all texts in their order.

        False if a gap is used up: then it is for `rank_all`.
        """
        n = len(codes)
        if self._ordered is None:
            from sortedcontainers import SortedList

            every = list(codes)
            self._ordered = SortedList([every[code] for code in np.argsort(self._ranked).tolist()])
        if n > len(self._all):
            self._all = np.concatenate([self._ranked, np.empty(n // 4 + FEW, np.int64)])
        for text in _last(codes, n - len(self._ranked)):
            before = next(self._ordered.irange(None, text, reverse=True), None)
            after = next(self._ordered.irange(text, None), None)
            low, earlier = (-EDGE, -1) if before is None else (int(self._all[codes[before]]), codes[before])
            high, later = (EDGE, -1) if after is None else (int(self._all[codes[after]]), codes[after])
            near = (high - low) >> NEAR
            if near == 0:
                return False
            self._all[codes[text]] = low + near if earlier > later else high - near
            self._ordered.add(text)
        self._ranked = self._all[:n]
        return True


def _last(codes: dict[str, int], count: int) -> list[str]:
    """The `count` texts that came last, the oldest first."""
    newest = reversed(codes)
    return [next(newest) for _ in range(count)][::-1]
