"""Bulk build: rows in key order (sort.py) become the pages of a fresh version, alone or merged with an old one.

Pages are filled from left to right, evenly, to `FILL` of their capacity, so that the first inserts after a load do not
split every page they touch. Each is allocated when its first row comes: a version that is used up by a merge gives its
pages back while those of the new one are filled, so the two are never there in full together.
"""

from __future__ import annotations

import numpy as np

from scantree._jit import inlined, kernel, move
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
from scantree.memory import Words, allocate, drop_dir
from scantree.sort import unpack_column

FILL = 15 / 16
# What is left to do of a build: rows and row pages that are not begun, directory pages that are not, row pages of the
# present directory page that are not; the present row page, the rows in it, and how many it gets.
ROWS_LEFT, PAGES_LEFT, DIRS_LEFT, ENTRIES_LEFT, PAGE, HELD, COUNT = range(7)
# Rows that are compared, and written, one by one before the place of the next is sought in the rest of a page.
NEAR = np.uint64(16)
ZERO, ONE = np.uint64(0), np.uint64(1)


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


@inlined
def _order(mem, row, cap, keys, first, second, rows, at):
    """-1, 0 or 1: the key of the row at `mem[row + c * cap]` against that of row `at` of `rows`, c < `keys`.

    `first` and `second`: the first two columns of that one, which a loop has at hand.
    """
    stored = mem[row]
    if stored != first:
        return -1 if stored < first else 1
    if keys > ONE:
        stored = mem[row + cap]
        if stored != second:
            return -1 if stored < second else 1
        for c in range(ONE + ONE, keys):
            stored = mem[row + c * cap]
            if stored != rows[c, at]:
                return -1 if stored < rows[c, at] else 1
    return 0


@kernel
def _merge_page(space, root, shape, source, count, rows, at, fill, plan, new):
    """Write the `count` rows of the row page `source`, and those of `rows` from `at` on that come before one of them.

    As `merge`, of which this is the loop: addresses are unsigned, so that none is asked whether it counts from the end.
    """
    mem, m = space.mem, np.uint64(rows.shape[1])
    cap, cols, keys = np.uint64(1 << shape.page_bits), np.uint64(shape.cols), np.uint64(shape.keys)
    flat, given = rows.reshape(-1), np.uint64(len(rows))
    p, n, page, next_ = np.uint64(0), np.uint64(count), np.uint64(source), np.uint64(at)
    while p < n:
        place, left = _place(space, root, shape, plan, 1 << shape.page_bits)
        begin = np.uint64(place)
        w, end = begin, begin + np.uint64(left)
        while p < n and w < end:
            order, upto = -1, min(n, p + (end - w))
            if next_ < m:
                first, second = rows[ZERO, next_], rows[ONE, next_] if keys > ONE else 0
                near = min(upto, p + NEAR)
                while p < near:
                    order = _order(mem, page + p, cap, keys, first, second, rows, next_)
                    if order >= 0:
                        break
                    for c in range(cols):
                        mem[w + c * cap] = mem[page + p + c * cap]
                    p += ONE
                    w += ONE
                if order == 0:
                    new[next_] = False
                    next_ += ONE
                    continue
                if order > 0:
                    for c in range(given):
                        mem[w + c * cap] = rows[c, next_]
                    for c in range(given, cols):
                        mem[w + c * cap] = fill[c - given]
                    next_ += ONE
                    w += ONE
                    continue
                if p < upto:
                    asked = flat[np.int64(next_) :]
                    lo, hi = np.int64(p), np.int64(upto)
                    hi = first_at_least(mem, source, 1 << shape.page_bits, lo, hi, asked, rows.shape[1], shape.keys)
                    upto = np.uint64(hi)
            for c in range(cols):
                move(mem, w + c * cap, page + p + c * cap, upto - p)
            w += upto - p
            p = upto
        _placed(mem, root, shape, plan, np.int64(w - begin))
    return np.int64(next_)


@kernel
def merge(space, old, root, shape, rows, at, fill, plan, d, dirs, use_up, new):
    """Write the rows of directory pages [d, dirs) of `old`, and those of `rows` int64[c, m] from `at` on before them.

    Behind the last directory page, all that are left of `rows`; `fill` as in `write_rows`. Of a key that `old` has only
    the old row is written, and `new` bool[m], all True before, becomes False there. `use_up`: the directory pages go as
    soon as they are read. Returns the first row of `rows` that was not dealt with.
    """
    mem, fan, m = space.mem, 1 << shape.dir_bits, rows.shape[1]
    whole = mem[old + DIRS]
    while d < dirs:
        directory = dir_of(mem, old, d)
        for s in range(dir_count(mem, old, d)):
            page, count = mem[directory + s], mem[directory + fan + s]
            at = _merge_page(space, root, shape, page, count, rows, at, fill, plan, new)
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
