"""The buffers of an update: rows that flow through them become row pages, and these directory pages.

    rows of touched pages -> `rows` -> new row pages -> `entries` -> new directory pages -> `tops` -> the new root

A buffer that holds less than half a page when its source page ends does not become a small page: it takes in the next
page as well. So every page but the last is at least half full, whatever the history; at the right end pages are filled
to the brim, so that data arriving in key order packs densely. Buffers empty as soon as they hold two pages: the batch
may be of any size. Most touched pages stay about as full as they were, and are written without going through `rows`.
"""

from __future__ import annotations

import numpy as np

from scantree._jit import kernel, move
from scantree.layout import (
    HEADER,
    ROOM,
    Shape,
    copy,
    dir_words,
    first_at_least,
    page_words,
)
from scantree.memory import GRAIN, Words, allocate
from scantree.probe import INSERTED, NOTHING
from scantree.scan import fold_entries, fold_page

# Cells of the writer's state. MADE is the new root in the end: whoever is interrupted before the kernel's answer is
# there finds in it what to drop.
N_ROWS, N_ENTRIES, N_TOPS, N_PAGES, MADE = 0, 1, 2, 3, 4
# ... how many changes have been probed, the next change, and how many row pages and directory pages may still be made.
PROBED, NEXT, SPARE_PAGES, SPARE_DIRS, STATE = 5, 6, 7, 8, 9

Work = tuple[Words, Words, Words, Words]


@kernel
def _enter_page(space, shape, work, page, count):
    """Enter a new page with its `count` rows into the entry buffer."""
    _, entries, _, state = work
    mem, e = space.mem, state[N_ENTRIES]
    entries[0, e], entries[1, e] = page, count
    for c in range(shape.keys):
        entries[2 + c, e] = mem[page + (c << shape.page_bits)]
    if shape.folds > 0:
        entries[2 + shape.keys, e], low = fold_page(mem, shape, page, 0, count)
        if shape.folds > 1:
            entries[3 + shape.keys, e] = low
    state[N_ENTRIES] = e + 1
    state[N_PAGES] += 1
    state[SPARE_PAGES] -= 1


@kernel
def _emit_page(space, shape, work, start, count):
    """Write rows [start, start + count) of the row buffer as a page."""
    page = allocate(space, page_words(shape))
    for c in range(shape.cols):
        copy(space.mem, page + (c << shape.page_bits), work[0][c], start, count)
    _enter_page(space, shape, work, page, count)


@kernel
def _emit_dir(space, shape, work, start, count):
    """Write entries [start, start + count) of the entry buffer as a directory page and enter it into the tops."""
    _, entries, tops, state = work
    mem = space.mem
    fan = 1 << shape.dir_bits
    directory = allocate(space, dir_words(shape))
    for c in range(2 + shape.keys + shape.folds):
        copy(mem, directory + c * fan, entries[c], start, count)
    t = state[N_TOPS]
    tops[0, t], tops[1, t] = directory, count
    for c in range(shape.keys):
        tops[2 + c, t] = entries[2 + c, start]
    if shape.folds > 0:
        tops[2 + shape.keys, t], low = fold_entries(mem, shape, directory, 0, count)
        if shape.folds > 1:
            tops[3 + shape.keys, t] = low
    state[N_TOPS] = t + 1
    state[SPARE_DIRS] -= 1


@kernel
def empty_dirs(space, shape, work, final, last):
    """Turn the entry buffer into directory pages: what is beyond two, or everything if `final`; see `empty_rows`."""
    _, entries, _, state = work
    fan = 1 << shape.dir_bits
    n, start = state[N_ENTRIES], 0
    while n - start >= 2 * fan or (last and final and n - start > fan):
        _emit_dir(space, shape, work, start, fan)
        start += fan
    if final and n - start > fan:
        half = (n - start) // 2
        _emit_dir(space, shape, work, start, half)
        start += half
    if final and n > start:
        _emit_dir(space, shape, work, start, n - start)
        start = n
    if start > 0:
        for c in range(2 + shape.keys + shape.folds):
            copy(entries[c], 0, entries[c], start, n - start)
        state[N_ENTRIES] = n - start


@kernel
def empty_rows(space, shape, work, final, last):
    """Turn the row buffer into pages: what is beyond two pages always, everything if `final`.

    A remainder between one and two pages becomes two halves; at the right end of the relation (`last`) a full page and
    a rest.
    """
    rows, _, _, state = work
    cap = 1 << shape.page_bits
    n, start = state[N_ROWS], 0
    while n - start >= 2 * cap or (last and final and n - start > cap):
        _emit_page(space, shape, work, start, cap)
        start += cap
    if final and n - start > cap:
        half = (n - start) // 2
        _emit_page(space, shape, work, start, half)
        start += half
    if final and n > start:
        _emit_page(space, shape, work, start, n - start)
        start = n
    if start > 0:
        for c in range(shape.cols):
            copy(rows[c], 0, rows[c], start, n - start)
        state[N_ROWS] = n - start
    empty_dirs(space, shape, work, False, False)


@kernel
def merge_page(space, shape, work, page, count, batch, ops, verdict, j, end):
    """Bring the rows of a page (or of none, `page` 0), with changes j.. < end merged in, into the row buffer."""
    rows, _, _, state = work
    mem = space.mem
    cap = 1 << shape.page_bits
    m = batch.shape[1]
    flat = batch.reshape(-1)
    p = 0
    while p < count or j < end:
        if j < end and verdict[j] == NOTHING:
            j += 1
            continue
        if j < end:
            # Everything below the next change is copied in one go.
            until = first_at_least(mem, page, cap, p, count, flat[j:], m, shape.keys)
        else:
            until = count
        n, width = state[N_ROWS], until - p
        for c in range(shape.cols):
            copy(rows[c], n, mem, page + c * cap + p, width)
        state[N_ROWS] = n + width
        p = until
        if j < end:
            if verdict[j] != INSERTED:
                p += 1  # the old row leaves; a changed one comes back with its new values
            if ops[j] > 0:
                n = state[N_ROWS]
                for c in range(shape.cols):
                    rows[c, n] = batch[c, j]
                state[N_ROWS] = n + 1
            j += 1
        if state[N_ROWS] >= 2 * cap:
            empty_rows(space, shape, work, False, False)


@kernel
def renew_page(space, shape, work, page, count, batch, ops, verdict, j, end, after):
    """Write the rows of a page, with changes j.. < end merged in, as a page of `after` rows; the row buffer is empty.

    As `merge_page` and `_emit_page` would: most changes leave a page about as full as it was, and its rows are copied
    once.
    """
    mem, cap, m = space.mem, 1 << shape.page_bits, batch.shape[1]
    flat, p, n = batch.reshape(-1), 0, 0
    new = allocate(space, page_words(shape))
    for i in range(j, end + 1):
        until = count
        if i < end:
            if verdict[i] == NOTHING:
                continue
            until = first_at_least(mem, page, cap, p, count, flat[i:], m, shape.keys)
        for c in range(shape.cols):
            move(mem, new + c * cap + n, page + c * cap + p, until - p)
        n, p = n + until - p, until
        if i < end:
            p += verdict[i] != INSERTED
            if ops[i] > 0:
                for c in range(shape.cols):
                    mem[new + c * cap + n] = batch[c, i]
                n += 1
    _enter_page(space, shape, work, new, after)
    empty_dirs(space, shape, work, False, False)


@kernel
def share_pages(space, shape, work, directory, lo, hi):
    """Enter pages [lo, hi) of a directory page of the old version into the entry buffer, unchanged."""
    _, entries, _, state = work
    mem, refs, _ = space
    fan = 1 << shape.dir_bits
    e, width = state[N_ENTRIES], hi - lo
    for c in range(2 + shape.keys + shape.folds):
        copy(entries[c], e, mem, directory + c * fan + lo, width)
    for i in range(e, e + width):
        refs[entries[0, i] // GRAIN] += 1
    state[N_ENTRIES] = e + width
    state[N_PAGES] += width
    if e + width >= 2 * fan:
        empty_dirs(space, shape, work, False, False)


@kernel
def share_dirs(space, root, shape, work, lo, hi):
    """Enter directory pages [lo, hi) of the old version into the tops, unchanged."""
    _, _, tops, state = work
    mem, refs, _ = space
    room = mem[root + ROOM]
    t, width = state[N_TOPS], hi - lo
    for c in range(2 + shape.keys + shape.folds):
        copy(tops[c], t, mem, root + HEADER + c * room + lo, width)
    for i in range(t, t + width):
        refs[tops[0, i] // GRAIN] += 1
        state[N_PAGES] += tops[1, i]
    state[N_TOPS] = t + width


@kernel
def pages_wanted(shape, m, dirs, pages):
    """(row pages, directory pages) that may be made by `m` changes to a version of so many."""
    rows = 3 * min(m, pages) + (2 * m >> shape.page_bits) + 4
    return rows, min(rows, 3 * dirs + (2 * rows >> shape.dir_bits) + 4)


@kernel
def tops_for(shape, m, dirs):
    """Directory pages that the next version may have, after `m` changes to one with `dirs` of them.

    Every touched directory page may split (full ones do so at a single new page), and a run of touched ones is cut
    evenly: as many more as the new pages fill, of which a change makes one at most.
    """
    return dirs + min(dirs, m) + (m >> shape.dir_bits) + 8


def scratch(shape: Shape, m: int, dirs: int) -> Work:
    """Work arrays for `update`, a batch of `m` changes to a version with `dirs` directory pages."""
    columns = 2 + shape.keys + shape.folds
    return (
        np.empty((shape.cols, 4 << shape.page_bits), np.int64),
        np.empty((columns, 4 << shape.dir_bits), np.int64),
        np.empty((columns, tops_for(shape, m, dirs)), np.int64),
        np.zeros(STATE, np.int64),
    )
