"""Amending: a version that nobody else reads is changed where it lies.

`update` leaves the old version as it was, so a change of one row copies its page. Where the old version is used up by
what comes after it, as from round to round of a fixpoint or where that lags (lagging.py), a page that no other version
holds may be written to instead: rows move within it. A page, or directory page, that others hold too is copied first,
once. A page that runs over is cut in two, and one that would be less than half full shares its rows with the page
beside it. What does not fit (a page of more than twice its room, a directory page that would run over or be less than
half full) is left for `update`.

Cost: O(m log n) probes as for `update`, and for each touched page the rows behind the first change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel, move
from scantree.layout import (
    DIRS,
    HEADER,
    PAGES,
    ROOM,
    ROWS,
    compare,
    copy,
    dir_count,
    dir_of,
    dir_words,
    first_at_least,
    page_words,
)
from scantree.memory import GRAIN, ArenaFullError, Size, allocate, release
from scantree.probe import AHEAD, CHANGED, ERASED, INSERTED, ask_for, fence_behind, judge, route

if TYPE_CHECKING:
    from scantree.version import Store

Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]

# The verdict of a change that was not made. The others are those of probe.py.
LEFT = -1
# One of so many changes may cut a page in two.
CUT_PART = 8


@kernel
def _look(mem, shape, page, count, flat, ops, verdict, at, lo, hi):
    """What changes [lo, hi) do to a page, and where, written to `verdict` and `at`.

    Returns (rows that come, rows that go, rows whose values change).
    """
    cap, m = 1 << shape.page_bits, len(ops)
    come, go, changed, p = 0, 0, 0, 0
    for j in range(lo, hi):
        p = first_at_least(mem, page, cap, p, count, flat[j:], m, shape.keys)
        found = p < count and compare(mem, page + p, cap, flat[j:], m, shape.keys) == 0
        at[j] = p
        verdict[j] = judge(mem, shape, page + p, found, flat, m, ops[j], j)
        come += verdict[j] == INSERTED
        go += verdict[j] == ERASED
        changed += verdict[j] == CHANGED
    return come, go, changed


@kernel
def _own_dir(space, root, shape, d):
    """A copy of directory page number `d`, which others hold too, in its place; its pages are shared with them."""
    mem, refs, _ = space
    fan, old, entries = 1 << shape.dir_bits, dir_of(mem, root, d), dir_count(mem, root, d)
    new = allocate(space, dir_words(shape))
    for c in range(2 + shape.keys):
        move(mem, new + c * fan, old + c * fan, entries)
    for s in range(entries):
        refs[mem[new + s] // GRAIN] += 1
    refs[old // GRAIN] -= 1
    mem[root + HEADER + d] = new
    return new


@kernel
def _own_page(space, shape, directory, s, count):
    """A copy of the page of entry `s`, which others hold too, in its place."""
    mem, refs, _ = space
    cap, old = 1 << shape.page_bits, mem[directory + s]
    new = allocate(space, page_words(shape))
    for c in range(shape.cols):
        move(mem, new + c * cap, old + c * cap, count)
    refs[old // GRAIN] -= 1
    mem[directory + s] = new
    return new


@kernel
def _close(mem, shape, page, count, verdict, at, lo, hi):
    """Take the rows out of a page that changes [lo, hi) erase; how many are left. `at` follows."""
    cap = 1 << shape.page_bits
    for c in range(shape.cols):
        base, to, p = page + c * cap, -1, 0
        for j in range(lo, hi):
            if verdict[j] == ERASED:
                if to < 0:
                    to = at[j]
                else:
                    move(mem, base + to, base + p, at[j] - p)
                    to += at[j] - p
                p = at[j] + 1
        move(mem, base + to, base + p, count - p)
    gone = 0
    for j in range(lo, hi):
        at[j] -= gone
        gone += verdict[j] == ERASED
    return count - gone


@kernel
def _spread(mem, shape, page, count, batch, verdict, at, lo, hi, come):
    """Put the rows into a page that changes [lo, hi) insert; it has room for them."""
    cap = 1 << shape.page_bits
    for c in range(shape.cols):
        base, end, w = page + c * cap, count, count + come
        for j in range(hi - 1, lo - 1, -1):
            if verdict[j] == INSERTED:
                n = end - at[j]
                move(mem, base + w - n, base + at[j], n)
                end, w = at[j], w - n - 1
                mem[base + w] = batch[c, j]


@kernel
def _cut(mem, shape, page, count, batch, verdict, at, lo, hi, half, new, spare):
    """Put the rows of a page and those that changes [lo, hi) insert into it and, from row `half` on, the page `new`."""
    cap = 1 << shape.page_bits
    for c in range(shape.cols):
        base, r, w = page + c * cap, 0, 0
        for j in range(lo, hi):
            if verdict[j] == INSERTED:
                n = at[j] - r
                copy(spare, w, mem, base + r, n)
                spare[w + n] = batch[c, j]
                r, w = at[j], w + n + 1
        copy(spare, w, mem, base + r, count - r)
        copy(mem, base, spare, 0, half)
        copy(mem, new + c * cap, spare, half, w + count - r - half)


@kernel
def _set_fence(mem, root, shape, d, s):
    """The fence of entry `s` of directory page number `d` is the key of its page's first row."""
    fan, cap, room = 1 << shape.dir_bits, 1 << shape.page_bits, mem[root + ROOM]
    directory = dir_of(mem, root, d)
    for c in range(shape.keys):
        key = mem[mem[directory + s] + c * cap]
        mem[directory + (2 + c) * fan + s] = key
        if s == 0:
            mem[root + HEADER + (2 + c) * room + d] = key


@kernel
def _enter(mem, root, shape, d, s, page, rows):
    """Enter a page with its rows as number `s` of directory page number `d`, which has room for it."""
    fan, directory, entries = 1 << shape.dir_bits, dir_of(mem, root, d), dir_count(mem, root, d)
    for c in range(2 + shape.keys):
        at = directory + c * fan + s
        move(mem, at + 1, at, entries - s)
    mem[directory + s], mem[directory + fan + s] = page, rows
    _set_fence(mem, root, shape, d, s)
    mem[root + HEADER + mem[root + ROOM] + d] += 1
    mem[root + PAGES] += 1


@kernel
def _leave(space, root, shape, d, s):
    """Take entry `s` > 0 out of directory page number `d`, and give its page back."""
    mem = space.mem
    fan, directory, entries = 1 << shape.dir_bits, dir_of(mem, root, d), dir_count(mem, root, d)
    release(space, mem[directory + s], page_words(shape))
    for c in range(2 + shape.keys):
        at = directory + c * fan + s
        move(mem, at, at + 1, entries - s - 1)
    mem[root + HEADER + mem[root + ROOM] + d] -= 1
    mem[root + PAGES] -= 1


@kernel
def _partner(mem, root, shape, d, s, after):
    """The entry beside `s` whose page takes in the `after` rows of a page less than half full, or gives it some.

    -1 if there is none, or if their directory page would be less than half full with an entry less.
    """
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    entries, other = dir_count(mem, root, d), s - 1 if s > 0 else s + 1
    if other == entries:
        return -1
    stays = after + mem[dir_of(mem, root, d) + fan + other] > cap
    return other if stays or entries > fan // 2 or d + 1 == mem[root + DIRS] else -1


@kernel
def _share(space, root, shape, d, s):
    """Put the rows of entries `s` and `s + 1` of directory page number `d` into one page, or half of them into each.

    No other version holds these pages. Whether one is left.
    """
    mem = space.mem
    fan, cap, directory = 1 << shape.dir_bits, 1 << shape.page_bits, dir_of(mem, root, d)
    first, second = mem[directory + s], mem[directory + s + 1]
    n, k = mem[directory + fan + s], mem[directory + fan + s + 1]
    keep = n + k if n + k <= cap else (n + k) // 2
    for c in range(shape.cols):
        x, y = first + c * cap, second + c * cap
        if keep > n:
            move(mem, x + n, y, keep - n)
            move(mem, y, y + keep - n, n + k - keep)
        else:
            move(mem, y + n - keep, y, k)
            move(mem, y, x + keep, n - keep)
    mem[directory + fan + s], mem[directory + fan + s + 1] = keep, n + k - keep
    _set_fence(mem, root, shape, d, s)
    if keep < n + k:
        _set_fence(mem, root, shape, d, s + 1)
        return False
    _leave(space, root, shape, d, s + 1)
    return True


@kernel
def amend(space, root, shape, batch, ops, verdict, at, spare, pages, directories):
    """Make the changes of `batch` in the version `root` itself as far as that can be done; how many are LEFT.

    Nobody reads the version meanwhile, and its store keeps no scan. `batch`, `ops` and `verdict` as in `update.update`;
    `at` int64[m] and `spare` int64[2 page rows] are scratch; the caller has checked that so many `pages` and directory
    pages may be made.
    """
    mem, refs, _ = space
    m = batch.shape[1]
    if mem[root + DIRS] == 0:
        verdict[:] = LEFT
        return m
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    flat = batch.reshape(-1)
    j, d, s, left = 0, 0, 0, 0
    asked, asked_d, asked_s = 0, 0, 0
    while j < m:
        if asked < min(j + AHEAD, m):
            # The pages of those after it are asked for: they arrive while it is made.
            lo, asked = max(asked, j), min(max(asked, j) + 2 * AHEAD, m)
            asked_d, asked_s = ask_for(mem, root, shape, batch, lo, asked, asked_d, asked_s)
        d, s = route(mem, root, shape, flat, m, j, d, s)
        directory, entries = dir_of(mem, root, d), dir_count(mem, root, d)
        page, count = mem[directory + s], mem[directory + fan + s]
        fence, stride = fence_behind(mem, root, shape, d, s)
        last = fence == 0
        end = j + 1
        while end < m and (last or compare(mem, fence, stride, flat[end:], m, shape.keys) > 0):
            end += 1
        come, go, changed = _look(mem, shape, page, count, flat, ops, verdict, at, j, end)
        if come + go + changed == 0:
            j = end
            continue
        after, half, fits, other = count + come - go, 0, True, -1
        mine = refs[directory // GRAIN] == 1
        copied = not mine or refs[page // GRAIN] > 1
        if after > cap:
            # At the right end `update` packs pages densely.
            fits, half = after <= 2 * cap and entries < fan and not last, after // 2
        elif after < cap // 2 and (after == 0 or not last):  # the last page may hold few rows
            other = _partner(mem, root, shape, d, s, after)
            fits = other >= 0
        lent = other >= 0 and (not mine or refs[mem[directory + other] // GRAIN] > 1)
        if fits and pages >= copied + lent + (half > 0) and (mine or directories > 0):
            if not mine:
                directory = _own_dir(space, root, shape, d)
                directories -= 1
            if copied:
                page = _own_page(space, shape, directory, s, count)
                pages -= 1
            for i in range(j, end):
                if verdict[i] == CHANGED:
                    for c in range(shape.keys, shape.cols):
                        mem[page + c * cap + at[i]] = batch[c, i]
            if go > 0:
                count = _close(mem, shape, page, count, verdict, at, j, end)
            if half > 0:
                new = allocate(space, page_words(shape))
                pages -= 1
                _cut(mem, shape, page, count, batch, verdict, at, j, end, half, new, spare)
                _enter(mem, root, shape, d, s + 1, new, after - half)
            elif come > 0:
                _spread(mem, shape, page, count, batch, verdict, at, j, end, come)
            mem[directory + fan + s] = half if half > 0 else after
            mem[root + ROWS] += come - go
            if other < 0:
                _set_fence(mem, root, shape, d, s)
            else:
                if lent:
                    _own_page(space, shape, directory, other, mem[directory + fan + other])
                    pages -= 1
                s = min(s, other)
                if _share(space, root, shape, d, s):
                    asked_d, asked_s = d, s  # the entries behind it have moved up
        else:
            verdict[j:end] = LEFT
            left += end - j
        j = end
    return left


def amend_pages(store: Store, root: int, batch: Rows, ops: Kinds, verdicts: Kinds) -> int:
    """`amend` with what memory there is for pages that are copied or cut; how many changes are LEFT.

    `batch` int64[cols, m], `ops` int8[m] and `verdicts` int8[m] (written) as there. The caller holds the arena's lock.
    """
    arena, shape, m = store.arena, store.shape, len(ops)
    space = arena.space
    directories = min(m, int(space.mem[root + DIRS]))
    pages = min(m, int(space.mem[root + PAGES])) + m // CUT_PART + 1
    try:
        arena.room(Size(pages, shape.cols << shape.page_bits), Size(directories, (2 + shape.keys) << shape.dir_bits))
    except ArenaFullError:
        directories = pages = 0
    at, spare = np.empty(m, np.int64), np.empty(2 << shape.page_bits, np.int64)
    return int(amend(space, root, shape, batch, ops, verdicts, at, spare, pages, directories))
