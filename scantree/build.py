"""Bulk build: rows in key order (sort.py) become the pages of a fresh version, alone or merged with an old one.

Pages are filled from left to right, evenly, to `FILL` of their capacity, so that the first inserts after a load do not
split every page they touch. Each is allocated when its first row comes: a version that is used up by a merge gives its
pages back while those of the new one are filled, so the two are never there in full together.
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
    copy,
    dir_count,
    dir_of,
    dir_words,
    first_at_least,
    page_words,
    root_words,
)
from scantree.memory import Words, allocate
from scantree.sort import unpack_column
from scantree.sweep import drop_dir

FILL = 15 / 16
# What is left to do of a build: rows and row pages that are not begun, directory pages that are not, row pages of the
# present directory page that are not; the present row page, the rows in it, and how many it gets.
ROWS_LEFT, PAGES_LEFT, DIRS_LEFT, ENTRIES_LEFT, PAGE, HELD, COUNT = range(7)
# Rows that are compared one by one before the place of the next is sought in the rest of a page.
NEAR = 4


def pages_for(n: int, bits: int) -> int:
    """Pages of 2^`bits` places that `n` rows (or entries) are spread over: one if they fit, else filled to `FILL`.

    Two pages for what fits into one would leave both less than half full.
    """
    return min(n, 1) if n <= 1 << bits else -(-n // int(FILL * (1 << bits)))


def plan_for(n: int, pages: int, dirs: int) -> Words:
    """What is left to do of a build of `n` rows before it begins."""
    return np.array([n, pages, dirs, 0, 0, 0, 0], np.int64)


@kernel
def lay_out(space, shape, n, dirs):
    """A new version of `n` rows, with room for `dirs` directory pages and none yet; returns its root.

    The caller has checked `room`, and gives the rows to `write_rows` or `merge` next.
    """
    room = 4
    while room < dirs:
        room *= 2
    root = allocate(space, root_words(shape, room))
    mem = space.mem
    mem[root + DIRS], mem[root + ROWS], mem[root + ROOM], mem[root + PAGES] = 0, n, room, 0
    return root


@kernel
def _begin_page(space, root, shape, plan):
    """Make the next row page the present one, evenly filled; where a directory page is full, the next one of these."""
    mem, room = space.mem, space.mem[root + ROOM]
    if plan[ENTRIES_LEFT] == 0:
        d = mem[root + DIRS]
        mem[root + HEADER + d] = allocate(space, dir_words(shape))
        mem[root + HEADER + room + d] = 0
        mem[root + DIRS] = d + 1
        plan[ENTRIES_LEFT] = (plan[PAGES_LEFT] + plan[DIRS_LEFT] - 1) // plan[DIRS_LEFT]
        plan[DIRS_LEFT] -= 1
    d = mem[root + DIRS] - 1
    s = mem[root + HEADER + room + d]
    page, count = allocate(space, page_words(shape)), (plan[ROWS_LEFT] + plan[PAGES_LEFT] - 1) // plan[PAGES_LEFT]
    directory = dir_of(mem, root, d)
    mem[directory + s], mem[directory + (1 << shape.dir_bits) + s] = page, count
    mem[root + HEADER + room + d] = s + 1
    mem[root + PAGES] += 1
    plan[ENTRIES_LEFT] -= 1
    plan[PAGES_LEFT] -= 1
    plan[ROWS_LEFT] -= count
    plan[PAGE], plan[HELD], plan[COUNT] = page, 0, count


@kernel
def _place(space, root, shape, plan, left):
    """(where the next of `left` rows goes, how many of them fit behind each other there)."""
    if plan[HELD] == plan[COUNT]:
        _begin_page(space, root, shape, plan)
    return plan[PAGE] + plan[HELD], min(plan[COUNT] - plan[HELD], left)


@kernel
def _placed(mem, root, shape, plan, width):
    """`width` rows are in the present page. With its first one, the keys are known that it and its directory have."""
    if plan[HELD] == 0:
        cap, fan, room = 1 << shape.page_bits, 1 << shape.dir_bits, mem[root + ROOM]
        d = mem[root + DIRS] - 1
        directory, s = dir_of(mem, root, d), dir_count(mem, root, d) - 1
        for c in range(shape.keys):
            key = mem[plan[PAGE] + c * cap]
            mem[directory + (2 + c) * fan + s] = key
            if s == 0:
                mem[root + HEADER + (2 + c) * room + d] = key
    plan[HELD] += width


@kernel
def write_rows(space, root, shape, rows, lo, hi, fill, plan):
    """Write rows [lo, hi) of `rows` int64[c, n], the next ones in key order, into a version that was laid out for them.

    `fill` int64[cols - c]: the last columns of all of them. `plan`: what is left to do, kept between calls.
    """
    mem, cap, given = space.mem, 1 << shape.page_bits, len(rows)
    done = lo
    while done < hi:
        at, width = _place(space, root, shape, plan, hi - done)
        for c in range(given):
            copy(mem, at + c * cap, rows[c], done, width)
        for c in range(given, shape.cols):
            mem[at + c * cap : at + c * cap + width] = fill[c - given]
        _placed(mem, root, shape, plan, width)
        done += width


@kernel
def write_packed(space, root, shape, packed, low, bits, plan):
    """Write the rows `packed` uint64[n], sorted words of `bits` per column counted from `low`, as `write_rows` does."""
    mem, cap = space.mem, 1 << shape.page_bits
    done = 0
    while done < len(packed):
        at, width = _place(space, root, shape, plan, len(packed) - done)
        shift = 0
        for c in range(shape.cols - 1, -1, -1):
            unpack_column(packed[done : done + width], low[c], bits[c], shift, mem, at + c * cap)
            shift += bits[c]
        _placed(mem, root, shape, plan, width)
        done += width


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


@kernel
def _write_from(space, root, shape, source, lo, hi, plan):
    """Write rows [lo, hi) of the row page `source`, the next ones in key order."""
    mem, cap = space.mem, 1 << shape.page_bits
    done = lo
    while done < hi:
        at, width = _place(space, root, shape, plan, hi - done)
        for c in range(shape.cols):
            copy(mem, at + c * cap, mem, source + c * cap + done, width)
        _placed(mem, root, shape, plan, width)
        done += width


@kernel
def _is_before(rows, at, mem, row, cap, keys):
    """Whether row `at` of `rows` is before the one at `mem[row + c * cap]`."""
    for c in range(keys):
        if rows[c, at] != mem[row + c * cap]:
            return rows[c, at] < mem[row + c * cap]
    return False


@kernel
def _has_key_of(rows, at, mem, row, cap, keys):
    """Whether row `at` of `rows` has the key of the one at `mem[row + c * cap]`."""
    same = True
    for c in range(keys):
        same = same and rows[c, at] == mem[row + c * cap]
    return same


@kernel
def merge(space, old, root, shape, rows, at, fill, plan, d, dirs, use_up, new):
    """Write the rows of directory pages [d, dirs) of `old`, and those of `rows` int64[c, m] from `at` on before them.

    Behind the last directory page, all that are left of `rows`; `fill` as in `write_rows`. Of a key that `old` has only
    the old row is written, and `new` bool[m], all True before, becomes False there. `use_up`: the directory pages go as
    soon as they are read. Returns the first row of `rows` that was not dealt with.
    """
    mem, cap, fan, keys, m = space.mem, 1 << shape.page_bits, 1 << shape.dir_bits, shape.keys, rows.shape[1]
    whole = mem[old + DIRS]
    flat = rows.reshape(-1)
    while d < dirs:
        directory = dir_of(mem, old, d)
        for s in range(dir_count(mem, old, d)):
            page, count, p = mem[directory + s], mem[directory + fan + s], 0
            while p < count:
                q, there = p, False
                if at == m:
                    q = count
                else:
                    while q < count and q < p + NEAR and not _is_before(rows, at, mem, page + q, cap, keys):
                        q += 1
                    there = q > p and _has_key_of(rows, at, mem, page + q - 1, cap, keys)
                    if q == p + NEAR and not there:
                        q = first_at_least(mem, page, cap, q, count, flat[at:], m, keys)
                        if q < count and _has_key_of(rows, at, mem, page + q, cap, keys):
                            q, there = q + 1, True
                _write_from(space, root, shape, page, p, q, plan)
                p = q
                if there:
                    new[at] = False
                    at += 1
                elif p < count:
                    end = at + 1
                    while end < m and _is_before(rows, end, mem, page + p, cap, keys):
                        end += 1
                    write_rows(space, root, shape, rows, at, end, fill, plan)
                    at = end
        if use_up:
            drop_dir(space, old, shape, d)
        d += 1
    if d == whole:
        write_rows(space, root, shape, rows, at, m, fill, plan)
        at = m
    return at


@kernel
def finish(mem, root, shape, plan):
    """A version that was laid out for more rows than came has what it has."""
    missing = plan[ROWS_LEFT] + plan[COUNT] - plan[HELD]
    if missing > 0:
        mem[root + ROWS] -= missing
        if plan[HELD] < plan[COUNT]:
            d = mem[root + DIRS] - 1
            mem[dir_of(mem, root, d) + (1 << shape.dir_bits) + dir_count(mem, root, d) - 1] = plan[HELD]
