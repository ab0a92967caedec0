"""Passes over a whole version that tell the planner what it holds."""

from __future__ import annotations

import numpy as np

from lftj.join.trie import KEY_MAX
from scantree._jit import inlined, kernel
from scantree.cursor import count_range, seek_lub
from scantree.layout import DIRS, HEADER, ROOM, dir_count, dir_of


@inlined
def _count(mem, at, before, stride, counts):
    """Count the prefixes that begin with the row at `mem[at]`, the one `before` it (-1: none) having others."""
    level = 0
    if before >= 0:
        while level < len(counts) and mem[at + level * stride] == mem[before + level * stride]:
            level += 1
    for c in range(level, len(counts)):
        counts[c] += 1


@kernel
def prefix_counts(mem, root, shape, step, counts):
    """Distinct prefixes of each length, in every `step`-th directory page; how many rows these hold.

    A prefix counts where it begins. `counts` int64[keys], zero to begin, is written.
    """
    fan = 1 << shape.dir_bits
    looked = 0
    for d in range(0, mem[root + DIRS], step):
        before = root - root - 1
        if d > 0:
            directory = dir_of(mem, root, d - 1)
            last = dir_count(mem, root, d - 1) - 1
            before = mem[directory + last] + mem[directory + fan + last] - 1
        directory = dir_of(mem, root, d)
        for s in range(dir_count(mem, root, d)):
            page, rows = mem[directory + s], mem[directory + fan + s]
            for at in range(page, page + rows):
                _count(mem, at, before, 1 << shape.page_bits, counts)
                before = at
            looked += rows
    return looked


@kernel
def fence_counts(mem, root, shape, counts):
    """As `prefix_counts`, of the rows that pages begin with: at most as many as there are."""
    fan = 1 << shape.dir_bits
    before = root - root - 1
    for d in range(mem[root + DIRS]):
        fences = dir_of(mem, root, d) + 2 * fan
        for at in range(fences, fences + dir_count(mem, root, d)):
            _count(mem, at, before, fan, counts)
            before = at


@kernel
def mark_keys(mem, root, shape, column, bitmap):
    """Hash every key of `column` into `bitmap` bool[power of two]."""
    fan = 1 << shape.dir_bits
    mask = np.uint64(len(bitmap) - 1)
    for d in range(mem[root + DIRS]):
        directory = mem[root + HEADER + d]
        for s in range(mem[root + HEADER + mem[root + ROOM] + d]):
            at = mem[directory + s] + (column << shape.page_bits)
            for p in range(mem[directory + fan + s]):
                # Fibonacci hashing, high bits folded down.
                h = np.uint64(mem[at + p]) * np.uint64(0x9E3779B97F4A7C15)
                bitmap[(h ^ (h >> np.uint64(32))) & mask] = True


@kernel
def draw_rows(mem, root, shape, rows, out):
    """`out` int64[cols, n] gets the rows numbered `rows` int64[n] (ascending)."""
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    i, passed = 0, 0
    for d in range(mem[root + DIRS]):
        directory = mem[root + HEADER + d]
        for s in range(mem[root + HEADER + mem[root + ROOM] + d]):
            while i < len(rows) and rows[i] < passed + mem[directory + fan + s]:
                for c in range(shape.cols):
                    out[c, i] = mem[mem[directory + s] + c * cap + rows[i] - passed]
                i += 1
            passed += mem[directory + fan + s]


@kernel
def rows_under(mem, root, shape, prefixes, counts):
    """`counts` int64[n]: rows that start with `prefixes` int64[n, k]; the last column is used as scratch."""
    last = prefixes.shape[1] - 1
    for i in range(len(prefixes)):
        prefix = prefixes[i]
        lo = seek_lub(mem, root, shape, prefix)
        if prefix[last] < KEY_MAX:
            prefix[last] += 1
            hi = seek_lub(mem, root, shape, prefix)
            prefix[last] -= 1
            counts[i] = count_range(mem, root, shape, lo, hi)
        else:
            counts[i] = 1
