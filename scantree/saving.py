"""Saving: the pages of a version as they lie, and a version made of pages that were saved.

A version that is saved once and again shares most of its pages with the one before: a page is known by its offset as
long as somebody holds the version, so whoever saves writes only pages that are new, and lists all of them in order.
`restored` makes a version of the same pages, each with the same rows, so that the next saving knows them again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel
from scantree.build import FILL, lay_out
from scantree.layout import DIRS, HEADER, PAGES, ROOM, copy, dir_count, dir_of, dir_words, page_words
from scantree.memory import allocate
from scantree.version import Rows, Store, Version

Ints = npt.NDArray[np.int64]


@kernel
def list_pages(mem, root, shape, pages, counts):
    """The row pages of a version in key order: their offsets, and the rows in each, into int64[row pages] both."""
    fan, n = 1 << shape.dir_bits, 0
    for d in range(mem[root + DIRS]):
        directory, entries = dir_of(mem, root, d), dir_count(mem, root, d)
        copy(pages, n, mem, directory, entries)
        copy(counts, n, mem, directory + fan, entries)
        n += entries


@kernel
def read_pages(mem, shape, pages, counts, out):
    """The rows of row pages, one after the other, into `out` int64[cols, sum of counts]."""
    at = 0
    for i in range(len(pages)):
        for c in range(shape.cols):
            copy(out[c], at, mem, pages[i] + (c << shape.page_bits), counts[i])
        at += counts[i]


@kernel
def append_pages(space, root, shape, rows, start, counts, entries):
    """Give a version that was laid out more row pages, of `counts` rows each: those of `rows` from `start` on.

    A directory page is begun where the last one has `entries`. The caller has checked the room.
    """
    mem, room, fan, cap = space.mem, space.mem[root + ROOM], 1 << shape.dir_bits, 1 << shape.page_bits
    for i in range(len(counts)):
        d = mem[root + DIRS] - 1
        if d < 0 or mem[root + HEADER + room + d] == entries:
            d += 1
            mem[root + HEADER + d] = allocate(space, dir_words(shape))
            mem[root + HEADER + room + d] = 0
            mem[root + DIRS] = d + 1
        s = mem[root + HEADER + room + d]
        page, directory = allocate(space, page_words(shape)), dir_of(mem, root, d)
        for c in range(shape.cols):
            copy(mem, page + c * cap, rows[c], start, counts[i])
        mem[directory + s], mem[directory + fan + s] = page, counts[i]
        for c in range(shape.keys):
            key = mem[page + c * cap]
            mem[directory + (2 + c) * fan + s] = key
            if s == 0:
                mem[root + HEADER + (2 + c) * room + d] = key
        mem[root + HEADER + room + d] = s + 1
        mem[root + PAGES] += 1
        start += counts[i]


def pages_of(version: Version) -> tuple[Ints, Ints]:
    """(the offsets of the row pages of a version, in key order; how many rows each has), int64[row pages] both."""
    mem, shape = version.store.arena.space.mem, version.store.shape
    n = int(mem[version.root + PAGES])
    pages, counts = np.empty(n, np.int64), np.empty(n, np.int64)
    list_pages(mem, version.root, shape, pages, counts)
    return pages, counts


def rows_of(version: Version, pages: Ints, counts: Ints) -> Rows:
    """The rows, hidden values included, of some row pages of a version, one page after the other: int64[cols, n]."""
    mem, shape = version.store.arena.space.mem, version.store.shape
    out = np.empty((shape.cols, int(counts.sum())), np.int64)
    read_pages(mem, shape, pages, counts, out)
    return out


def restored(store: Store, counts: Ints, chunks: Iterable[tuple[Rows, Ints]]) -> Version:
    """A version with row pages of `counts` rows, in key order, from 1 to a full page each.

    `chunks`: the rows int64[cols, n] of so many pages after the others, and the rows in each of these. The store has
    no scan. Raises `ArenaFullError`.
    """
    shape, space = store.shape, store.arena.space
    entries = max(1, int(FILL * (1 << shape.dir_bits)))
    dirs = -(-len(counts) // entries)
    with store.arena.lock:
        store.arena.room(*store._sizes(len(counts), dirs, dirs))
        version = Version(store, int(lay_out(space, shape, int(counts.sum()), dirs)))
        for rows, widths in chunks:
            append_pages(space, version.root, shape, rows, 0, widths, entries)
    return version
