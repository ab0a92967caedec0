"""The arena: all pages of one database in one array of words.

An `Arena` is a reserved range of address space seen as `mem : int64[words]`. Memory is handed out in pages of whole *grains* (64 words) and
named by the offset of its first word, so that a page reference is one int64 and every kernel reads every relation through one array.
The range is reserved, not committed: the operating system backs a page when it is first written, the arena never moves, and readers in
other threads keep a valid view while a writer allocates.

Each page has a reference count in `refs : int32[grains]` (at its first grain): how many directories of live versions point to it. At zero the
page goes to the free list of its size and is the first to be reused. `heap : int64[...]` is the allocator's own state:

    heap[TOP]      first grain never handed out (grain 0 is never used: reference 0 means "none")
    heap[LIMIT]    one past the last grain that may be handed out
    heap[USED]     grains in live pages
    heap[FREE + c] first page of the free list of size class c; each free page holds the next one in its first word

Size classes are exact up to `LARGE` grains and powers of two above (only roots of very large relations get there). Invariant: USED + the grains
on free lists + 1 = TOP. Allocation and release are O(1). The allocator is not thread-safe: `Arena.lock` is held by whoever allocates or releases.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel

GRAIN = 64
LARGE = 2048
TOP, LIMIT, USED, FREE = 0, 1, 2, 8
CLASSES = LARGE + 64

Words = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]


class Heap(NamedTuple):
    """What a kernel needs to read and allocate: `mem` int64[words], `refs` int32[grains], `heap` int64[FREE + CLASSES]."""

    mem: Words
    refs: Counts
    heap: Words


class ArenaFullError(MemoryError):
    """The arena's limit was reached. Nothing was changed."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(f"{needed:,} bytes of pages needed, the limit is {limit:,}")
        self.needed, self.limit = needed, limit


@kernel
def size_class(grains):
    """(class, grains rounded up to it) of a page of `grains` grains."""
    if grains < LARGE:
        return grains, grains
    bits = 0
    while (1 << bits) < grains:
        bits += 1
    return LARGE + bits, 1 << bits


@kernel
def allocate(space, words):
    """Offset of a new page of at least `words` words with reference count 1. The caller has checked `room`."""
    mem, refs, heap = space
    cls, grains = size_class(max(1, (words + GRAIN - 1) // GRAIN))
    page = heap[FREE + cls]
    if page != 0:
        heap[FREE + cls] = mem[page]
    else:
        page = heap[TOP] * GRAIN
        heap[TOP] += grains
    heap[USED] += grains
    refs[page // GRAIN] = 1
    return page


@kernel
def release(space, page, words):
    """Take one reference from `page`; True if that was the last and the page was freed."""
    mem, refs, heap = space
    refs[page // GRAIN] -= 1
    if refs[page // GRAIN] > 0:
        return False
    cls, grains = size_class(max(1, (words + GRAIN - 1) // GRAIN))
    mem[page] = heap[FREE + cls]
    heap[FREE + cls] = page
    heap[USED] -= grains
    return True


def _reserve(size: int) -> tuple[mmap.mmap, int]:
    """An anonymous mapping of `size` bytes, or of the largest halving of it that the system grants."""
    private = 0
    if sys.platform != "win32":
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    while True:
        try:
            if private:
                return mmap.mmap(-1, size, flags=private), size
            return mmap.mmap(-1, size), size
        except (OSError, ValueError, OverflowError):
            if size <= 1 << 26:
                raise
            size //= 2


class Arena:
    """Pages of one database. `limit` caps the bytes of pages in use (default: whatever address space could be reserved)."""

    RESERVE = 1 << 40

    def __init__(self, limit: int | None = None) -> None:
        mapping, size = _reserve(self.RESERVE)
        counts, _ = _reserve(size // (GRAIN * 2))
        self._mapping = mapping
        self._huge = False
        self.space = Heap(
            np.frombuffer(mapping, dtype=np.int64),
            np.frombuffer(counts, dtype=np.int32),
            np.zeros(FREE + CLASSES, np.int64),
        )
        self.lock = threading.RLock()
        self._dropped: deque[Callable[[], None]] = deque()
        self._reserved = size // (8 * GRAIN)
        self.limit = limit
        heap = self.space.heap
        heap[TOP] = 1
        heap[LIMIT] = self._reserved

    @property
    def used(self) -> int:
        """Bytes in live pages."""
        return int(self.space.heap[USED]) * GRAIN * 8

    def room(self, words: int) -> None:
        """Make sure that `words` more words of pages can be handed out; raises `ArenaFullError`, changing nothing."""
        self.collect()
        heap = self.space.heap
        grains = words // GRAIN + 1
        cap = self._reserved if self.limit is None else min(self._reserved, self.limit // (8 * GRAIN))
        if int(heap[USED]) + grains > cap or int(heap[TOP]) + grains > self._reserved:
            raise ArenaFullError((int(heap[USED]) + grains) * GRAIN * 8, cap * GRAIN * 8)
        if not self._huge and (int(heap[TOP]) + grains) * GRAIN > 1 << 20:
            # Large pages halve the cost of random opens on big relations; small databases keep small pages and a small footprint.
            self._huge = True
            if hasattr(mmap, "MADV_HUGEPAGE"):
                self._mapping.madvise(mmap.MADV_HUGEPAGE)

    def drop_later(self, action: Callable[[], None]) -> None:
        """Queue the release of a version. Finalizers call this: they may run in any thread, even inside an allocation."""
        self._dropped.append(action)

    def collect(self) -> None:
        """Release what finalizers queued."""
        with self.lock:
            while self._dropped:
                self._dropped.popleft()()
