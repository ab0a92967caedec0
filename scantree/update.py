"""Batch update: a version and a sorted batch of upserts and erases become the next version.

The old version is walked once from left to right, directory page by directory page. What no effective change touches is
shared (its reference count goes up); everything else flows through three small buffers, each feeding the next:

    rows of touched pages -> `rows` -> new row pages -> `entries` -> new directory pages -> `tops` -> the new root

A buffer that holds less than half a page when its source page ends does not become a small page: it takes in the next
page as well. So every page but the last is at least half full, whatever the history; at the right end pages are filled
to the brim, so that data arriving in key order packs densely. Buffers empty as soon as they hold two pages: the batch
may be of any size.

The batch is *probed* (probe.py) a few changes ahead of that: an insert of a row that is present with the same values,
or an erase of an absent key, is no change at all and touches nothing. The verdict per change is also the exact net
delta of a relation.

Cost: O(m log n) probes, then one row page and one directory page copied per touched page, and the root: for a single
row of a million about 4 KB + 2 KB + 4 KB. Source of the structure: copy-on-write B+-trees of bounded height (design.md
section 4).
"""

from __future__ import annotations

import numpy as np

from scantree._jit import kernel
from scantree.layout import (
    DIRS,
    HEADER,
    PAGES,
    ROOM,
    ROWS,
    Shape,
    compare,
    copy,
    dir_count,
    dir_of,
    dir_words,
    first_at_least,
    last_at_most,
    page_words,
    root_words,
)
from scantree.memory import GRAIN, Words, allocate
from scantree.probe import AHEAD, ERASED, INSERTED, NOTHING, ask_for, probe
from scantree.scan import fold_entries, fold_page, fold_root

# Cells of the writer's state. MADE is the new root in the end: whoever is interrupted before the kernel's answer is
# there finds in it what to drop.
N_ROWS, N_ENTRIES, N_TOPS, N_PAGES, MADE = 0, 1, 2, 3, 4
# ... how many changes have been probed, the next change, and how many row pages and directory pages may still be made.
PROBED, NEXT, SPARE_PAGES, SPARE_DIRS, STATE = 5, 6, 7, 8, 9
# As few of them as may be, for whoever allocates from the arena itself.
ANY = np.iinfo(np.int64).min


@kernel
def _emit_page(space, shape, work, start, count):
    """Write rows [start, start + count) of the row buffer as a page and enter it into the entry buffer."""
    rows, entries, _, state = work
    mem = space.mem
    page = allocate(space, page_words(shape))
    for c in range(shape.cols):
        copy(mem, page + (c << shape.page_bits), rows[c], start, count)
    e = state[N_ENTRIES]
    entries[0, e], entries[1, e] = page, count
    for c in range(shape.keys):
        entries[2 + c, e] = rows[c, start]
    if shape.folds > 0:
        entries[2 + shape.keys, e], low = fold_page(mem, shape, page, 0, count)
        if shape.folds > 1:
            entries[3 + shape.keys, e] = low
    state[N_ENTRIES] = e + 1
    state[N_PAGES] += 1
    state[SPARE_PAGES] -= 1


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
def _empty_dirs(space, shape, work, final, last):
    """Turn the entry buffer into directory pages: what is beyond two, or everything if `final`; see `_empty_rows`."""
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
def _empty_rows(space, shape, work, final, last):
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
    _empty_dirs(space, shape, work, False, False)


@kernel
def _merge_page(space, shape, work, page, count, batch, ops, verdict, j, end):
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
            _empty_rows(space, shape, work, False, False)


@kernel
def _share_pages(space, shape, work, directory, lo, hi):
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
        _empty_dirs(space, shape, work, False, False)


@kernel
def _share_dirs(space, root, shape, work, lo, hi):
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
def _probe_until(mem, root, shape, batch, ops, verdict, state, end):
    """Know the verdicts of the first `end` changes.

    Some more are probed with them, and the pages of those that come next are asked for: they arrive while what was
    probed is applied.
    """
    m = len(ops)
    first = m - m  # a literal would be a type of its own, and what takes it compiled twice
    while state[PROBED] < end:
        lo = state[PROBED]
        hi = min(lo + AHEAD, m)
        if m > 1 and lo == 0:
            ask_for(mem, root, shape, batch, lo, hi, first, first)
        if hi < m:
            ask_for(mem, root, shape, batch, hi, min(hi + AHEAD, m), first, first)
        probe(mem, root, shape, batch, ops, verdict, lo, hi)
        state[PROBED] = hi


@kernel
def _advance(mem, root, shape, batch, ops, verdict, state, j):
    """The first change at or after `j` that does something; the number of changes if there is none."""
    while j < len(ops):
        if j >= state[PROBED]:
            _probe_until(mem, root, shape, batch, ops, verdict, state, j + 1)
        if verdict[j] != NOTHING:
            break
        j += 1
    return j


@kernel
def _until(mem, fence, stride, batch, j, keys):
    """The first change at or after `j` that is not below the key at `mem[fence]`."""
    m = batch.shape[1]
    flat = batch.reshape(-1)
    while j < m and compare(mem, fence, stride, flat[j:], m, keys) > 0:
        j += 1
    return j


@kernel
def _apply_in_dir(space, root, shape, batch, ops, verdict, work, d, j, end):
    """Pass through directory page `d` with changes j.. < end, all of which belong to it.

    Both may be equal: then its pages only fill up what the buffers hold.
    """
    mem = space.mem
    state = work[3]
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    m = batch.shape[1]
    flat = batch.reshape(-1)
    directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
    last = d + 1 == mem[root + DIRS]
    s = 0
    hold = False
    while s < count:
        hit = count
        if j < end:
            hit = last_at_most(mem, directory + 2 * fan, fan, s, count, flat[j:], m, shape.keys)
        if hit > s and not hold and (state[N_ROWS] == 0 or state[N_ROWS] >= cap // 2):
            _empty_rows(space, shape, work, True, False)
            _share_pages(space, shape, work, directory, s, hit)
            s = hit
            continue
        upto = j
        if hit == s:
            upto = end
            if s + 1 < count:
                upto = min(end, _until(mem, directory + 2 * fan + s + 1, fan, batch, j, shape.keys))
        _probe_until(mem, root, shape, batch, ops, verdict, state, upto)
        _merge_page(space, shape, work, mem[directory + s], mem[directory + fan + s], batch, ops, verdict, j, upto)
        j = min(end, _advance(mem, root, shape, batch, ops, verdict, state, upto))
        s += 1
        # A page that runs over shares its rows with the next one if both then fit into two: fewer, fuller pages than a
        # split makes.
        n = state[N_ROWS]
        hold = n > cap and s < count and n + mem[directory + fan + s] <= 2 * cap - cap // 8
        if n >= cap // 2 and not hold and not (last and s == count):
            _empty_rows(space, shape, work, True, False)


@kernel
def begin(mem, root, shape, batch, ops, verdict, work):
    """Begin with a batch; whether it changes anything."""
    state = work[3]
    state[:] = 0
    state[NEXT] = _advance(mem, root, shape, batch, ops, verdict, state, state[NEXT])
    return state[NEXT] < len(ops)


@kernel
def pass_over(space, root, shape, batch, ops, verdict, work, d, end, pages, directories):
    """Pass through directory pages d.. < end of `root` with the changes of `batch`, which all belong to them.

    Stops before a directory page where less than `pages` row pages or `directories` directory pages may still be made;
    returns the one it stands before. What is made is in `work`.
    """
    mem, state = space.mem, work[3]
    fan, m = 1 << shape.dir_bits, batch.shape[1]
    room = mem[root + ROOM]
    fences = root + HEADER + 2 * room
    flat = batch.reshape(-1)
    while d < end and state[SPARE_PAGES] >= pages and state[SPARE_DIRS] >= directories:
        j, hit = state[NEXT], end
        if j < m:
            hit = last_at_most(mem, fences, room, d, end, flat[j:], m, shape.keys)
        if hit > d and state[N_ROWS] == 0 and (state[N_ENTRIES] == 0 or state[N_ENTRIES] >= fan // 2):
            _empty_dirs(space, shape, work, True, False)
            _share_dirs(space, root, shape, work, d, hit)
            d = hit
            continue
        upto = j
        if hit == d:
            upto = m if d + 1 == end else _until(mem, fences + d + 1, room, batch, j, shape.keys)
        _apply_in_dir(space, root, shape, batch, ops, verdict, work, d, j, upto)
        state[NEXT] = _advance(mem, root, shape, batch, ops, verdict, state, upto)
        d += 1
    return d


@kernel
def finish(space, shape, work, rows):
    """Write what is left in the buffers and a root over all that was made, of `rows` rows; returns it."""
    mem, tops, state = space.mem, work[2], work[3]
    _empty_rows(space, shape, work, True, True)
    _empty_dirs(space, shape, work, True, True)
    n = state[N_TOPS]
    room = 4
    while room < n:
        room *= 2
    new = allocate(space, root_words(shape, room))
    mem[new + DIRS], mem[new + ROWS] = n, rows
    mem[new + ROOM], mem[new + PAGES] = room, state[N_PAGES]
    for c in range(2 + shape.keys + shape.folds):
        copy(mem, new + HEADER + c * room, tops[c], 0, n)
    if shape.folds > 0:
        fold_root(mem, new, shape)
    state[MADE] = new
    return new


@kernel
def growth(verdict):
    """By how many rows a batch with these verdicts int8[m] makes a version grow."""
    grown = 0
    for i in range(len(verdict)):
        if verdict[i] == INSERTED:
            grown += 1
        elif verdict[i] == ERASED:
            grown -= 1
    return grown


@kernel
def update(space, root, shape, batch, ops, verdict, work):
    """The next version: `root` with the changes of `batch` applied. Returns its root; the old one stays.

    If nothing changes, `root` itself (no new reference). `batch` int64[cols, m]: in key order, distinct keys; `ops`
    int8[m]: 1 upserts, -1 erases; `verdict` int8[m] is written. `work`, all scratch: rows int64[cols, 4 pages], entries
    int64[e, 4 directory pages], tops int64[e, t] with e = 2 + keys + folds and t as in `scratch`, state int64[STATE].
    The caller has checked `room`.
    """
    mem = space.mem
    m, dirs = batch.shape[1], mem[root + DIRS]
    if not begin(mem, root, shape, batch, ops, verdict, work):
        return root
    first = dirs - dirs  # a literal would be a type of its own, and what takes it compiled twice
    pass_over(space, root, shape, batch, ops, verdict, work, first, dirs, ANY, ANY)
    if dirs == 0:
        _probe_until(mem, root, shape, batch, ops, verdict, work[3], m)
        _merge_page(space, shape, work, 0, 0, batch, ops, verdict, 0, m)
    return finish(space, shape, work, mem[root + ROWS] + growth(verdict))


Work = tuple[Words, Words, Words, Words]


def tops_for(shape: Shape, m: int, dirs: int) -> int:
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
