"""Batch update: a version and a sorted batch of upserts and erases become the next version.

The old version is walked once from left to right, directory page by directory page. What no effective change touches is
shared (its reference count goes up); everything else flows through three small buffers (buffers.py).

The batch is *probed* (probe.py) a few changes ahead of that: an insert of a row that is present with the same values,
or an erase of an absent key, is no change at all and touches nothing. The verdict per change is also the exact net
delta of a relation.

A version of one page that only its maker reads, as that of a round's changed rows, is written again where it lies
(`overwrite`).

Cost: O(m log n) probes, then one row page and one directory page copied per touched page, and the root: for a single
row of a million about 4 KB + 2 KB + 4 KB. The structure is a copy-on-write B+-tree of bounded height.
"""

from __future__ import annotations

import numpy as np

from scantree._jit import kernel
from scantree.buffers import (
    MADE,
    N_ENTRIES,
    N_PAGES,
    N_ROWS,
    N_TOPS,
    NEXT,
    PROBED,
    SPARE_DIRS,
    SPARE_PAGES,
    empty_dirs,
    empty_rows,
    merge_page,
    pages_wanted,
    renew_page,
    share_dirs,
    share_pages,
    tops_for,
)
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
    last_at_most,
    page_words,
    root_words,
)
from scantree.memory import Heap, allocate, grains_for, has_room
from scantree.packed import counts_at, table_at, words_at
from scantree.probe import AHEAD, ERASED, INSERTED, NOTHING, ask_for, probe
from scantree.scan import fold_root

# As few of them as may be, for whoever allocates from the arena itself.
ANY = np.iinfo(np.int64).min
# No root: nothing was done.
NO_ROOM = -1


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
def _until(mem, fence, stride, flat, m, j, keys):
    """The first change at or after `j` of `flat` int64[cols * m] that is not below the key at `mem[fence]`."""
    while j < m and compare(mem, fence, stride, flat[j:], m, keys) > 0:
        j += 1
    return j


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
            empty_rows(space, shape, work, True, False)
            share_pages(space, shape, work, directory, s, hit)
            s = hit
            continue
        upto = j
        if hit == s:
            upto = end
            if s + 1 < count:
                upto = min(end, _until(mem, directory + 2 * fan + s + 1, fan, flat, m, j, shape.keys))
        _probe_until(mem, root, shape, batch, ops, verdict, state, upto)
        page, held = mem[directory + s], mem[directory + fan + s]
        after = held + growth(verdict[j:upto])
        if state[N_ROWS] == 0 and cap // 2 <= after <= cap:
            renew_page(space, shape, work, page, held, batch, ops, verdict, j, upto, after)
        else:
            merge_page(space, shape, work, page, held, batch, ops, verdict, j, upto)
        j = min(end, _advance(mem, root, shape, batch, ops, verdict, state, upto))
        s += 1
        # A page that runs over shares its rows with the next one if both then fit into two: fewer, fuller pages than a
        # split makes.
        n = state[N_ROWS]
        hold = n > cap and s < count and n + mem[directory + fan + s] <= 2 * cap - cap // 8
        if n >= cap // 2 and not hold and not (last and s == count):
            empty_rows(space, shape, work, True, False)


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
            empty_dirs(space, shape, work, True, False)
            share_dirs(space, root, shape, work, d, hit)
            d = hit
            continue
        upto = j
        if hit == d:
            upto = m if d + 1 == end else _until(mem, fences + d + 1, room, flat, m, j, shape.keys)
        _apply_in_dir(space, root, shape, batch, ops, verdict, work, d, j, upto)
        state[NEXT] = _advance(mem, root, shape, batch, ops, verdict, state, upto)
        d += 1
    return d


@kernel
def finish(space, shape, work, rows):
    """Write what is left in the buffers and a root over all that was made, of `rows` rows; returns it."""
    mem, tops, state = space.mem, work[2], work[3]
    empty_rows(space, shape, work, True, True)
    empty_dirs(space, shape, work, True, True)
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
        merge_page(space, shape, work, 0, 0, batch, ops, verdict, 0, m)
    return finish(space, shape, work, mem[root + ROWS] + growth(verdict))


@kernel
def grains_wanted(shape, m, dirs, pages):
    """Grains that may be handed out for `m` changes to a version of so many pages."""
    rows, directories = pages_wanted(shape, m, dirs, pages)
    room = 4
    while room < dirs + directories:
        room *= 2
    made = rows * grains_for(page_words(shape)) + directories * grains_for(dir_words(shape))
    return made + grains_for(root_words(shape, room))


@kernel
def update_packed(packed, root, batch, ops, verdict, sure):
    """`update`, with what `Store.prepare` packed: the heap, the work arrays and the shape.

    Unless the caller is `sure` of that, looks first whether there are room and scratch for it: NO_ROOM if not.
    """
    space = Heap(words_at(packed, 0), counts_at(packed, 1), words_at(packed, 2))
    work = (table_at(packed, 3), table_at(packed, 4), table_at(packed, 5), words_at(packed, 6))
    of = words_at(packed, 7)
    shape = Shape(of[0], of[1], of[2], of[3], of[4], of[5], of[6])
    if not sure:
        m, dirs = batch.shape[1], space.mem[root + DIRS]
        if work[2].shape[1] < tops_for(shape, m, dirs):
            return NO_ROOM
        if not has_room(space.heap, grains_wanted(shape, m, dirs, space.mem[root + PAGES])):
            return NO_ROOM
    return update(space, root, shape, batch, ops, verdict, work)


@kernel
def overwrite(mem, root, shape, rows):
    """Let a version of one row page hold `rows` int64[cols, n] instead, in key order, as many as the page has room for.

    Whoever calls has made it, and nobody else reads it. It has no scan.
    """
    cap, fan, n = 1 << shape.page_bits, 1 << shape.dir_bits, rows.shape[1]
    directory = dir_of(mem, root, 0)
    page = mem[directory]
    for c in range(shape.cols):
        copy(mem, page + c * cap, rows[c], 0, n)
    for c in range(shape.keys):
        mem[directory + (2 + c) * fan] = mem[root + HEADER + (2 + c) * mem[root + ROOM]] = rows[c, 0]
    mem[directory + fan] = mem[root + ROWS] = n
