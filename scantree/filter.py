"""Branch filters: a bitmap that says of most branches of a trie that they are not there, in one memory access.

A changed branch is checked against many contexts, and nearly all of them do not hold it. A filter over the branches of
one level (the distinct keys of a prefix and what follows) is a blocked Bloom filter (Putze, Sanders and Singler,
JEA 2009): the hash of a branch picks one word and two bits in it, `BITS` bits being spent per branch. It answers "no"
for certain and "perhaps" for a few per cent of absent branches. All branches with the same last key lie within `SPAN`
words, which stay in the first cache while one changed key is asked of thousands of prefixes.

A filter covers all versions since it was made: inserted branches are added before anyone asks, erased ones stay until
it is made anew (`BranchFilter.stale`). It lies in the arena, where kernels find it by its offset.
"""

from __future__ import annotations

import weakref

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined, kernel
from scantree.layout import DIRS, dir_count, dir_of
from scantree.memory import Size, allocate, release
from scantree.version import Version

BITS = 16
SPAN = 1023
SEED = 0x3C6EF372FE94F82A
FACTOR = 0x1E3779B97F4A7C15


@inlined
def mix(h, key):
    """The hash of a branch, from the hash `h` of its prefix (SEED for none) and its last key."""
    h = (h ^ key) * np.int64(FACTOR)
    return h ^ ((h >> np.int64(31)) & np.int64(0x1FFFFFFFF))


@inlined
def bits_of(h):
    """The two bits of a branch in its word, from other bits of its hash than those that pick the word."""
    return (np.int64(1) << (h & 63)) | (np.int64(1) << ((h >> 6) & 63))


@inlined
def window_of(key):
    """Where the words of branches that end in `key` begin, before the mask."""
    return mix(np.int64(SEED), key) >> 12


@inlined
def may_hold(mem, table, mask, prefix, key, window):
    """Whether a branch may be in the filter of `mask` + 1 words at `mem[table]`.

    `prefix`: the hash of its prefix; `key`: its last key; `window`: that key's (`window_of`), which a caller that asks
    for many prefixes computes once.
    """
    bits = bits_of(mix(prefix, key))
    return mem[table + ((window + ((prefix >> 12) & SPAN)) & mask)] & bits == bits


@inlined
def _add(mem, table, mask, prefix, key):
    """Add a branch."""
    mem[table + ((window_of(key) + ((prefix >> 12) & SPAN)) & mask)] |= bits_of(mix(prefix, key))


@kernel
def add_branches(mem, table, mask, columns, n):
    """Add the branches that are the first `n` columns of rows `columns` int64[k, m]."""
    for j in range(columns.shape[1]):
        h = np.int64(SEED)
        for c in range(n - 1):
            h = mix(h, columns[c, j])
        _add(mem, table, mask, h, columns[n - 1, j])


@kernel
def add_version(mem, root, shape, table, mask, n):
    """Clear the filter, then add the branches of the first `n` columns of a version."""
    for w in range(mask + 1):
        mem[table + w] = 0
    fan = 1 << shape.dir_bits
    for d in range(mem[root + DIRS]):
        directory = dir_of(mem, root, d)
        for s in range(dir_count(mem, root, d)):
            page = mem[directory + s]
            for p in range(mem[directory + fan + s]):
                h = np.int64(SEED)
                for c in range(n - 1):
                    h = mix(h, mem[page + (c << shape.page_bits) + p])
                _add(mem, table, mask, h, mem[page + ((n - 1) << shape.page_bits) + p])


class BranchFilter:
    """The filter of the branches of `levels` keys of a relation in one key order."""

    __slots__ = ("__weakref__", "added", "arena", "capacity", "levels", "mask", "page")

    def __init__(self, version: Version, levels: int) -> None:
        self.arena, self.levels = version.store.arena, levels
        self.capacity = max(64, len(version) + len(version) // 4)
        words = 1 << max(0, self.capacity * BITS // 64 - 1).bit_length()
        self.mask = words - 1
        with self.arena.lock:
            self.arena.room(Size(1, words))
            self.page = int(allocate(self.arena.space, words))
        self.added = len(version)
        add_version(self.arena.space.mem, version.root, version.store.shape, self.page, self.mask, levels)
        space, page = self.arena.space, self.page  # not the arena: a queued release must not keep it alive
        finalizer = weakref.finalize(self, self.arena.drop_later, lambda: release(space, page, words))
        finalizer.atexit = False

    def add(self, columns: npt.NDArray[np.int64]) -> None:
        """Add the branches of rows `columns` int64[k, m], in key order, in front."""
        add_branches(self.arena.space.mem, self.page, self.mask, columns, self.levels)
        self.added += columns.shape[1]

    @property
    def stale(self) -> bool:
        """Whether so much was added since it was made that it says "perhaps" too often."""
        return self.added > 2 * self.capacity

    def memory(self) -> int:
        """Bytes."""
        return 8 * (self.mask + 1)
