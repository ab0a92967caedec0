"""Versions that nobody holds any more: their pages go back together, with the next thing that asks for room.

A version goes where Python drops its last reference: in any thread, even inside an allocation. So that only queues its
root, and whoever holds the arena's lock next sweeps. A transaction leaves several old versions behind, and a kernel's
call takes as long as dropping one of them: one call drops all.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from scantree._jit import kernel
from scantree.layout import DIRS, HEADER, ROOM, Shape, dir_count, dir_of, dir_words, page_words, root_words
from scantree.memory import Heap, release

ROOT, PACKED = 0, 1
#: Versions per call.
AT_ONCE = 64


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
def drop_all(space, waiting):
    """Drop the versions of `waiting` int64[n, 2], up to the first row without a ROOT; these become 0."""
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


class Sweep:
    """The versions of one arena that wait to be dropped; true if there are any."""

    __slots__ = ("_begun", "_now", "_waiting", "space")

    def __init__(self, space: Heap) -> None:
        self.space = space
        self._waiting: deque[tuple[int, int]] = deque()
        self._now, self._begun = np.zeros((AT_ONCE, 2), np.int64), False

    def __bool__(self) -> bool:
        return bool(self._waiting) or self._begun

    def add(self, root: int, packed: int) -> None:
        """A version that is to go; from any thread."""
        self._waiting.append((root, packed))

    def __call__(self) -> None:
        """Drop what waits. The caller holds the arena's lock."""
        waiting, now = self._waiting, self._now
        if self._begun:
            drop_all(self.space, now)  # what a call that was interrupted had taken out
        self._begun = True
        while waiting:
            for i in range(min(AT_ONCE, len(waiting))):
                now[i, ROOT], now[i, PACKED] = waiting.popleft()
            drop_all(self.space, now)
        self._begun = False
