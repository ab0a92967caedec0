"""How a version lies in the arena: root -> directory pages -> row pages.

A row page holds up to `page_rows` rows, column by column: column c of row p is `mem[page + c * page_rows + p]`. A
directory page holds up to `dir_rows` entries in the same way; an entry is (page, rows, fence), the fence being the key
of the page's first row:

    root       header | directory, entries, fence | ...        one entry per directory page, copied by every commit
    directory           row page, rows, fence     | ...        64 entries by default, shared between versions
    row page            k key columns, v value columns         256 rows by default, shared between versions

With the default sizes a million rows need about 4,200 row pages and 70 directory pages, so a one-row commit copies one
row page, one directory page and a root of 70 entries. Larger directory pages would make it slower: each entry that is
copied is a reference counted, and counted back when the old version goes. The root's header is

    mem[root + DIRS]  directory pages     mem[root + ROOM]   entries that fit
    mem[root + ROWS]  rows                mem[root + PAGES]  row pages

A *position* is one int64, ordered like the rows: (directory, entry, row) packed as `((d << dir_bits) | s) << page_bits
| p`. It always names an existing row or is the end, (number of directories, 0, 0). Fences separate: all rows of a page
are >= its fence and < the next one.

A store made with a *scan* (scan.py) has `folds` more columns at the end of every entry: the fold of one of the columns
over the rows below the entry. Its roots end with as many more columns of `room` words, the inner nodes of a scan-tree
over the root's entries (paper, section 3.1): node 1 is the tree's root, node i has the children 2i and 2i + 1, and the
nodes from `room` on are the entries themselves. Without a scan `folds` is 0 and none of this takes a word.

Degenerate cases: the empty version has no directory page; with no key columns there is at most one row, and fences are
empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scantree._jit import kernel

DIRS, ROWS, ROOM, PAGES = 0, 1, 2, 3
HEADER = 8


class Shape(NamedTuple):
    """`keys` key columns of `cols` columns; 2^`page_bits` rows per page, 2^`dir_bits` entries per directory page.

    With a scan (scan.py): entries carry `folds` columns that fold column `column` by `monoid`.
    """

    keys: int
    cols: int
    page_bits: int
    dir_bits: int
    folds: int = 0
    monoid: int = 0
    column: int = 0


@kernel
def page_words(shape):
    """Words of a row page."""
    return shape.cols << shape.page_bits


@kernel
def dir_words(shape):
    """Words of a directory page."""
    return (2 + shape.keys + shape.folds) << shape.dir_bits


@kernel
def root_words(shape, room):
    """Words of a root with space for `room` entries."""
    return HEADER + (2 + shape.keys + 2 * shape.folds) * room


@kernel
def dir_of(mem, root, d):
    """Offset of directory page number `d`."""
    return mem[root + HEADER + d]


@kernel
def dir_count(mem, root, d):
    """Entries in directory page number `d`."""
    return mem[root + HEADER + mem[root + ROOM] + d]


@kernel
def copy(to, at, source, start, n):
    """`to[at : at + n] = source[start : start + n]` on int64[...] that do not overlap.

    A plain loop: numba's slice assignment allocates when it cannot rule out overlap. Unsigned indices let it become a
    block copy.
    """
    t, s = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(n)):
        to[t + i] = source[s + i]


@kernel
def compare(mem, at, stride, row, row_stride, keys):
    """-1, 0 or 1: the key stored at `mem[at + c * stride]` against the one at `row[c * row_stride]`, c < `keys`."""
    for c in range(keys):
        stored, asked = mem[at + c * stride], row[c * row_stride]
        if stored < asked:
            return -1
        if stored > asked:
            return 1
    return 0


@kernel
def last_at_most(mem, base, stride, lo, hi, row, row_stride, keys):
    """Last position in [lo, hi) whose key is <= the row's; `lo` if there is none.

    `base` is the address of position 0's first key.
    """
    while hi - lo > 1:
        mid = (lo + hi) >> 1
        if compare(mem, base + mid, stride, row, row_stride, keys) <= 0:
            lo = mid
        else:
            hi = mid
    return lo


@kernel
def first_at_least(mem, base, stride, lo, hi, row, row_stride, keys):
    """First position in [lo, hi) whose key is >= the row's; `hi` if there is none."""
    while lo < hi:
        mid = (lo + hi) >> 1
        if compare(mem, base + mid, stride, row, row_stride, keys) < 0:
            lo = mid + 1
        else:
            hi = mid
    return lo
