"""Bulk build: rows in key order (sort.py) become the pages of a fresh version, alone or merged with an old one.

Pages are filled from left to right, evenly, to `FILL` of their capacity, so that the first inserts after a load do not
split every page they touch.
"""

from __future__ import annotations

from scantree._jit import kernel
from scantree.layout import (
    DIRS,
    HEADER,
    PAGES,
    ROOM,
    ROWS,
    compare,
    copy,
    dir_words,
    first_at_least,
    page_words,
    root_words,
)
from scantree.memory import allocate

FILL = 15 / 16


def pages_for(n: int, bits: int) -> int:
    """Pages of 2^`bits` places that `n` rows (or entries) are spread over: one if they fit, else filled to `FILL`.

    Two pages for what fits into one would leave both less than half full.
    """
    return min(n, 1) if n <= 1 << bits else -(-n // int(FILL * (1 << bits)))


@kernel
def lay_out(space, shape, n, pages, dirs):
    """A new version with room for `n` rows and no rows yet; returns its root.

    The rows are spread evenly over `pages` row pages, these over `dirs` directory pages. The caller has checked
    `room`, and gives the rows to `write_rows` next.
    """
    mem = space.mem
    fan = 1 << shape.dir_bits
    room = 4
    while room < dirs:
        room *= 2
    root = allocate(space, root_words(shape, room))
    mem[root + DIRS], mem[root + ROWS], mem[root + ROOM], mem[root + PAGES] = dirs, n, room, pages
    done_rows, done_pages = 0, 0
    for d in range(dirs):
        entries = (pages - done_pages + dirs - d - 1) // (dirs - d)
        directory = allocate(space, dir_words(shape))
        mem[root + HEADER + d] = directory
        mem[root + HEADER + room + d] = entries
        for s in range(entries):
            count = (n - done_rows + pages - done_pages - 1) // (pages - done_pages)
            mem[directory + s] = allocate(space, page_words(shape))
            mem[directory + fan + s] = count
            done_rows += count
            done_pages += 1
    return root


@kernel
def write_rows(mem, root, shape, source, at, stride, n, place):
    """Write `n` rows, the next ones in key order, into a version that was laid out for them.

    `source[at + c * stride + i]` is column c of row i. `place` int64[3] is where the next row goes, (directory page,
    entry, row): all zero to begin, kept between calls.
    """
    cap, fan, room = 1 << shape.page_bits, 1 << shape.dir_bits, mem[root + ROOM]
    done = 0
    while done < n:
        d, s, p = place[0], place[1], place[2]
        directory = mem[root + HEADER + d]
        page, count = mem[directory + s], mem[directory + fan + s]
        width = min(count - p, n - done)
        for c in range(shape.cols):
            copy(mem, page + c * cap + p, source, at + c * stride + done, width)
        if p == 0:
            for c in range(shape.keys):
                mem[directory + (2 + c) * fan + s] = source[at + c * stride + done]
                if s == 0:
                    mem[root + HEADER + (2 + c) * room + d] = source[at + c * stride + done]
        done += width
        place[2] = p + width
        if p + width == count:
            place[1], place[2] = s + 1, 0
            if s + 1 == mem[root + HEADER + room + d]:
                place[0], place[1] = d + 1, 0


@kernel
def _following(mem, page, cap, p, count, row, stride, keys):
    """The first of rows [p, count) of a page whose key is >= the one at `row`: galloping, for it is near."""
    step = 1
    while p < count and compare(mem, page + p, cap, row, stride, keys) < 0:
        near = p + 1
        p += step
        step += step
        if p >= count or compare(mem, page + p, cap, row, stride, keys) >= 0:
            return first_at_least(mem, page, cap, near, min(p, count), row, stride, keys)
    return p


@kernel
def merge_rows(mem, old, new, shape, rows, place, at, d, last):
    """Write the rows of directory pages `d`.. < `last` of version `old`, and of `rows` those from `at` on between them.

    `rows` int64[cols, m] are in key order, with no key of `old`; `new`, `place`: as of `write_rows`. Returns the first
    of `rows` that was not written.
    """
    cap, fan, m = 1 << shape.page_bits, 1 << shape.dir_bits, rows.shape[1]
    flat = rows.reshape(-1)
    while d < last:
        directory = mem[old + HEADER + d]
        for s in range(mem[old + HEADER + mem[old + ROOM] + d]):
            page, count = mem[directory + s], mem[directory + fan + s]
            p = 0
            while p < count:
                upto = count
                if at < m:
                    upto = _following(mem, page, cap, p, count, flat[at:], m, shape.keys)
                write_rows(mem, new, shape, mem, page + p, cap, upto - p, place)
                p, first = upto, at
                if p < count:
                    while at < m and compare(mem, page + p, cap, flat[at:], m, shape.keys) > 0:
                        at += 1
                    write_rows(mem, new, shape, flat, first, m, at - first, place)
        d += 1
    return at
