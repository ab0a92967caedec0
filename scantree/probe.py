"""Probing a batch of changes: what each of them does to a version, before anything is copied.

The pages of a batch lie all over the memory, and waiting for them one after the other is most of what a batch of a
hundred changes to a million rows costs. So they are asked for some changes ahead.
"""

from __future__ import annotations

from scantree._jit import kernel, prefetch
from scantree.layout import (
    DIRS,
    HEADER,
    ROOM,
    compare,
    dir_count,
    dir_of,
    first_at_least,
    last_at_most,
)

# What a change is to do: erase its key, insert its row or give it new values, insert its row if its key is not there.
ERASE, UPSERT, ADD = -1, 1, 2
# Verdicts, one per change.
NOTHING, INSERTED, ERASED, CHANGED = 0, 1, 2, 3

# Words of a cache line; changes whose pages are asked for together.
LINE, AHEAD = 8, 16


@kernel
def route(mem, root, shape, flat, m, j, d, s):
    """(directory page number, entry) of the page that row j of `flat` int64[cols * m], column by column, belongs to.

    The version is not empty, and the page is entry `s` of directory page `d` or behind it. `flat` is the batch reshaped
    by whoever calls: numba makes a call into C of each `reshape`, which a loop over changes should make once.
    """
    fan, room, dirs = 1 << shape.dir_bits, mem[root + ROOM], mem[root + DIRS]
    fences = root + HEADER + 2 * room
    row = flat[j:]
    if d + 1 < dirs and compare(mem, fences + d + 1, room, row, m, shape.keys) <= 0:
        d, s = last_at_most(mem, fences, room, d + 1, dirs, row, m, shape.keys), 0
    base, entries, step = dir_of(mem, root, d) + 2 * fan, dir_count(mem, root, d), 1
    # Rows come in key order, so the page is one of the next ones, mostly.
    while s + step < entries and compare(mem, base + s + step, fan, row, m, shape.keys) <= 0:
        s += step
        step *= 2
    return d, last_at_most(mem, base, fan, s, min(s + step, entries), row, m, shape.keys)


@kernel
def fence_behind(mem, root, shape, d, s):
    """(where the first key of the page behind entry `s` of directory page `d` lies, its stride); 0 without one."""
    if s + 1 < dir_count(mem, root, d):
        fan = 1 << shape.dir_bits
        return dir_of(mem, root, d) + 2 * fan + s + 1, fan
    if d + 1 < mem[root + DIRS]:
        room = mem[root + ROOM]
        return root + HEADER + 2 * room + d + 1, room
    return root - root, root - root


@kernel
def ask_for(mem, root, shape, batch, lo, hi, d, s):
    """Ask for the pages that rows [lo, hi) of `batch` belong to: all of each is going to be read.

    They are entry `s` of directory page `d` or behind it; returns where the last of them is.
    """
    if mem[root + DIRS] == 0:
        return d, s
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    flat, m, fence, stride = batch.reshape(-1), batch.shape[1], 0, 0
    for j in range(lo, hi):
        # Of many rows most belong to the page of the one before.
        if j > lo and (fence == 0 or compare(mem, fence, stride, flat[j:], m, shape.keys) > 0):
            continue
        d, s = route(mem, root, shape, flat, m, j, d, s)
        directory = dir_of(mem, root, d)
        page, rows = mem[directory + s], mem[directory + fan + s]
        fence, stride = fence_behind(mem, root, shape, d, s)
        for c in range(shape.cols):
            for at in range(page + c * cap, page + c * cap + rows, LINE):
                prefetch(mem, at)
    return d, s


@kernel
def judge(mem, shape, at, found, flat, m, op, j):
    """What change `j` of `flat` int64[cols * m] does, the row of its key lying at `mem[at]` if it was `found`."""
    if op < 0:
        return ERASED if found else NOTHING
    if not found:
        return INSERTED
    if op == UPSERT:
        for c in range(shape.keys, shape.cols):
            if mem[at + (c << shape.page_bits)] != flat[c * m + j]:
                return CHANGED
    return NOTHING


@kernel
def probe(mem, root, shape, batch, ops, verdict, lo, hi):
    """What each of the changes [lo, hi) does, written to `verdict` int8[m].

    `batch` int64[cols, m]: in key order, distinct keys; `ops` int8[m]: UPSERT, ERASE or ADD.
    """
    m = batch.shape[1]
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    flat = batch.reshape(-1)
    # The page of the last change, where the next one is looked for first, and the key of the page after it.
    page, count, p, fence, stride, d, s = 0, 0, 0, 0, 0, 0, 0
    empty = mem[root + DIRS] == 0
    for j in range(lo, hi):
        found = False
        at = 0
        if not empty:
            if j == lo or (fence > 0 and compare(mem, fence, stride, flat[j:], m, shape.keys) <= 0):
                d, s = route(mem, root, shape, flat, m, j, d, s)
                directory = dir_of(mem, root, d)
                page, count, p = mem[directory + s], mem[directory + fan + s], 0
                fence, stride = fence_behind(mem, root, shape, d, s)
            p = first_at_least(mem, page, cap, p, count, flat[j:], m, shape.keys)
            at = page + p
            found = p < count and compare(mem, at, cap, flat[j:], m, shape.keys) == 0
        verdict[j] = judge(mem, shape, at, found, flat, m, ops[j], j)
