"""The arena: all pages of one database in one array of words.

An `Arena` is a reserved range of address space seen as `mem : int64[words]`. Memory is handed out in pages of whole
*grains* (64 words) and named by the offset of its first word, so that a page reference is one int64 and every kernel
reads every relation through one array. The range is reserved, not committed: the operating system backs a page when it
is first written, the arena never moves, and readers in other threads keep a valid view while a writer allocates.

Each page has a reference count in `refs : int32[grains]` (at its first grain): how many directories of live versions
point to it. At zero the page goes to the free list of its size and is the first to be reused. `heap : int64[...]` is
the allocator's own state:

    heap[TOP]      first grain never handed out (grain 0 is never used: reference 0 means "none")
    heap[LIMIT]    one past the last grain that may be handed out
    heap[USED]     grains in live pages
    heap[MOST]     grains that may be in live pages: the arena's limit
    heap[EASY]     TOP up to which kernels may hand out without asking `Arena.room`
    heap[FREE + c] first page of the free list of size class c; each free page holds the next one in its first word

Size classes are exact up to `LARGE` grains and powers of two above (only roots of very large relations get there).
Invariant: USED + the grains on free lists + 1 = TOP. Allocation and release are O(1). The allocator is not thread-safe:
`Arena.lock` is held by whoever allocates or releases.

A version goes where Python drops its last reference: in any thread, even inside an allocation. So that only queues its
root, and whoever next asks for room, holding the lock, sweeps. A transaction leaves several old versions behind, and a
kernel's call takes as long as dropping one of them: one call drops all, of several transactions of few rows.
"""

from __future__ import annotations

import gc
import mmap
import os
import platform
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel, prefetch
from scantree.crew import Crew
from scantree.layout import DIRS, HEADER, ROOM, Shape, dir_count, dir_of, dir_words, page_words, root_words
from scantree.locks import Lock, LostLockError
from scantree.packed import PackedArguments, counts_at, table_at, words_at

GRAIN = 64
LARGE = 2048
# Words of a cache line, and of the next free page that are asked for ahead (more lines than that are dropped).
LINE, AHEAD = 8, 768
TOP, LIMIT, USED, MOST, EASY, FREE = 0, 1, 2, 3, 4, 8
# Words in use from which pages of the system are large.
_LARGE_FROM = 1 << 20
CLASSES = LARGE + 64
# Columns of the versions that are dropped together, how many are in a call at most, and how many wait for one before an
# update has it made. Whoever needs room for more than an update of few rows does not wait, nor does an update of `MANY`
# changes, which would write in memory that the system has to back first.
ROOT, PACKED = 0, 1
AT_ONCE, TOGETHER, MANY = 64, 8, 256

Words = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]


class Heap(NamedTuple):
    """What a kernel reads and allocates by: `mem` int64[words], `refs` int32[grains], `heap` int64[FREE + CLASSES]."""

    mem: Words
    refs: Counts
    heap: Words


class ArenaFullError(MemoryError):
    """The arena's limit was reached. Nothing was changed. `where`: what needed the pages, if somebody says so."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(f"{needed:,} bytes of pages needed, the limit is {limit:,}")
        self.needed, self.limit, self.where = needed, limit, ""


class Size(NamedTuple):
    """A number of pages of so many words each: what is asked of `Arena.room`."""

    pages: int
    words: int

    @property
    def grains(self) -> int:
        """Grains they take: whole ones, a power of two of them for large pages (as `size_class` says)."""
        each = (self.words + GRAIN - 1) // GRAIN or 1
        return self.pages * (each if each < LARGE else 1 << (each - 1).bit_length())


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
def grains_for(words):
    """Grains that a page of so many words takes."""
    return size_class(max(1, (words + GRAIN - 1) // GRAIN))[1]


@kernel
def has_room(heap, grains):
    """Whether so many grains may be handed out; False, too, where `Arena.room` has to see to something before."""
    return heap[USED] + grains <= heap[MOST] and heap[TOP] + grains <= heap[EASY]


@kernel
def allocate(space, words):
    """Offset of a new page of at least `words` words with reference count 1. The caller has checked `room`.

    The next free page of this size is asked for: it is likely to be the next that is written, was last touched a long
    time ago, and is on its way while this one is filled. Updates of some 100 rows of a million take a tenth less so.
    """
    mem, refs, heap = space
    cls, grains = size_class(max(1, (words + GRAIN - 1) // GRAIN))
    page = heap[FREE + cls]
    if page != 0:
        ahead = mem[page]
        heap[FREE + cls] = ahead
        for i in range(ahead, ahead + min(words, AHEAD), LINE):
            prefetch(mem, i)
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


@kernel
def drop_dir(space, root, shape, d):
    """Take the reference of a version from its directory page number `d`, which is not to be read by it any more."""
    mem = space.mem
    directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
    if directory == 0:
        return  # it went before
    mem[root + HEADER + d] = 0
    # Read what is needed before freeing: a freed page's first word becomes the free list's link.
    first = mem[directory]
    if release(space, directory, dir_words(shape)):
        for s in range(count):
            release(space, first if s == 0 else mem[directory + s], page_words(shape))


@kernel
def drop_dirs(space, root, shape):
    """Take the references of a version from all that it has but its root; it is not to be read any more."""
    for d in range(space.mem[root + DIRS]):
        drop_dir(space, root, shape, d)


@kernel
def drop(space, root, shape):
    """Take one reference from a version; frees every page that no other version holds."""
    drop_dirs(space, root, shape)
    release(space, root, root_words(shape, space.mem[root + ROOM]))


@kernel
def drop_all(packed):
    """Drop versions, up to the first row without a ROOT; these become 0. `packed`: the heap, and them, int64[n, 2]."""
    space, waiting = Heap(words_at(packed, 0), counts_at(packed, 1), words_at(packed, 2)), table_at(packed, 3)
    for i in range(len(waiting)):
        root, word = waiting[i, ROOT], waiting[i, PACKED]
        if root == 0:
            break
        keys, cols, folds = word & 0xFFFF, (word >> 16) & 0xFFFF, word >> 48
        drop(space, root, Shape(keys, cols, (word >> 32) & 0xFF, (word >> 40) & 0xFF, folds, 0, 0))
        waiting[i, ROOT] = 0


def packed(shape: Shape) -> int:
    """What dropping a version has to know of its shape, in one word."""
    return shape.keys | shape.cols << 16 | shape.page_bits << 32 | shape.dir_bits << 40 | shape.folds << 48


def _no_reserve() -> int:
    """The flag that makes a mapping of more than the machine's memory legal; Python names it only from 3.13 on."""
    common = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64", "riscv64", "s390x")
    return getattr(mmap, "MAP_NORESERVE", 0x4000 if common else 0)


def _worth_reserving() -> int:
    """A power of two, at least twice the machine's memory: more could not be used, and a process has 128 TB for all."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 40
    return min(1 << 40, max(1 << 30, 1 << (2 * memory - 1).bit_length()))


def _reserve(size: int) -> tuple[mmap.mmap, int]:
    """An anonymous mapping of `size` bytes, or of the largest halving of it that the system grants."""
    private, collected = 0, False
    if sys.platform != "win32":
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _no_reserve()
    while True:
        try:
            if private:
                return mmap.mmap(-1, size, flags=private), size
            return mmap.mmap(-1, size), size
        except (OSError, ValueError, OverflowError):
            if not collected:
                # Arenas in reference cycles hold address space until the collector runs, which does not see its size.
                gc.collect()
                collected = True
                continue
            if size <= 1 << 26:
                raise
            size //= 2


def reserved(words: int) -> tuple[mmap.mmap, Words]:
    """Memory for at least `words` words, or as many as are granted: zeros that take memory when they are first written.

    In large pages of the system. What is given back to it by `give_back` is zeros again.
    """
    mapping, size = _reserve(min(8 * words, Arena.RESERVE))
    if hasattr(mmap, "MADV_HUGEPAGE"):
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return mapping, np.frombuffer(mapping, dtype=np.int64, count=size // 8)


def give_back(mapping: mmap.mmap, begin: int, end: int) -> int:
    """Give the words [begin, end) of reserved memory, which nobody reads, back to the system; how many of them it took.

    These are whole pages of the system.
    """
    first, last = -(-8 * begin // mmap.PAGESIZE) * mmap.PAGESIZE, 8 * end // mmap.PAGESIZE * mmap.PAGESIZE
    if last <= first or not hasattr(mmap, "MADV_DONTNEED"):
        return 0
    mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
    return (last - first) // 8


class Arena:
    """Pages of one database. `limit` caps the bytes of pages in use (default: the address space that was reserved).

    `crew`: the threads that work on them beside each other (None: only whoever calls). `touched`: rows that were looked
    up in versions by key, found there, or changed, since it was made: what work is counted by. `gone`: versions that
    wait to be dropped, each its root and its `packed` shape; any thread appends to it. `lost` makes the error for a
    process that was forked while another thread had the lock, from the words for what is lost.
    """

    RESERVE = _worth_reserving()

    def __init__(self, limit: int | None = None, lost: Callable[[str], Exception] = LostLockError) -> None:
        mapping, size = _reserve(self.RESERVE)
        counts, counted = _reserve(size // (GRAIN * 2))
        self._mapping = mapping
        self._huge = False
        self.space = Heap(
            np.frombuffer(mapping, dtype=np.int64),
            np.frombuffer(counts, dtype=np.int32),
            np.zeros(FREE + CLASSES, np.int64),
        )
        self.lock = Lock(lost, "the pages of the database")
        self.crew: Crew | None = None
        self.touched = 0
        self.gone: deque[tuple[int, int]] = deque()
        self._going, self._sweeping = np.zeros((AT_ONCE, 2), np.int64), False
        self._packed_going = PackedArguments(*self.space, self._going)
        self._dropped: deque[Callable[[], None]] = deque()
        self._reserved = min(size // (8 * GRAIN), counted // 4)
        heap = self.space.heap
        heap[TOP] = 1
        heap[LIMIT] = self._reserved
        heap[EASY] = min(self._reserved, _LARGE_FROM // GRAIN)
        self.limit = limit

    @property
    def limit(self) -> int | None:
        """The most bytes of pages in use; None: as many as were reserved."""
        return self._limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        self._limit = limit
        self._cap = self._reserved * GRAIN * 8 if limit is None else min(self._reserved * GRAIN * 8, limit)
        self.space.heap[MOST] = self._cap // (GRAIN * 8)

    @property
    def used(self) -> int:
        """Bytes in live pages."""
        return int(self.space.heap[USED]) * GRAIN * 8

    @property
    def ever_used(self) -> int:
        """Bytes in pages that were handed out at least once: the system has backed them."""
        return int(self.space.heap[TOP]) * GRAIN * 8

    def room(self, *wanted: Size | int) -> None:
        """Make sure that all the wanted pages can be handed out; raises `ArenaFullError`, changing nothing.

        An int asks for that many words in pages of any size.
        """
        if self.gone or self._dropped or self._sweeping:
            self.collect()
        heap = self.space.heap
        grains = sum(size.grains if isinstance(size, Size) else size // GRAIN + 1 for size in wanted)
        used, top = int(heap[USED]), int(heap[TOP])
        if (used + grains) * GRAIN * 8 > self._cap:
            raise ArenaFullError((used + grains) * GRAIN * 8, self._cap)
        if top + grains > self._reserved:
            # The last of the reservation has been handed out before: what comes now must fit into free pages.
            fresh = grains - self._free_grains([size for size in wanted if isinstance(size, Size)])
            if top + fresh > self._reserved:
                raise ArenaFullError((top + fresh) * GRAIN * 8, self._reserved * GRAIN * 8)
        elif not self._huge and (top + grains) * GRAIN > _LARGE_FROM:
            # Large pages halve the cost of random opens on big relations; small databases keep small pages and a small
            # footprint.
            self._huge = True
            heap[EASY] = self._reserved
            if hasattr(mmap, "MADV_HUGEPAGE"):
                self._mapping.madvise(mmap.MADV_HUGEPAGE)

    def _free_grains(self, wanted: Sequence[Size]) -> int:
        """Grains of `wanted` that free pages of their size classes can serve. O(pages wanted)."""
        mem, _, heap = self.space
        pages: dict[int, int] = {}  # per grains of a page: sizes of one class share its free list
        for size in wanted:
            each = Size(1, size.words).grains
            pages[each] = pages.get(each, 0) + size.pages
        served = 0
        for each, asked in pages.items():
            page, found = int(heap[FREE + int(size_class(each)[0])]), 0
            while page and found < asked:
                page, found = int(mem[page]), found + 1
            served += found * each
        return served

    def drop_later(self, action: Callable[[], None]) -> None:
        """Queue the release of pages that are not a version's (those: `gone`).

        Finalizers call this: they may run in any thread, even inside an allocation. `action` should not hold the arena
        (its `space` will do): the queue would keep the arena alive.
        """
        self._dropped.append(action)

    def collect(self) -> None:
        """Release what finalizers queued."""
        gone, going = self.gone, self._going
        with self.lock:
            if self._sweeping:
                drop_all(self._packed_going.words)  # what a call that was interrupted had taken out
            self._sweeping = True
            while gone:
                for i in range(min(AT_ONCE, len(gone))):
                    going[i, ROOT], going[i, PACKED] = gone.popleft()
                drop_all(self._packed_going.words)
            self._sweeping = False
            while self._dropped:
                self._dropped.popleft()()
