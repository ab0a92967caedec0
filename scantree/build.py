"""Bulk build: rows in key order (sort.py) become the pages of a fresh version, alone or merged with an old one.

Pages are filled from left to right, evenly, to `FILL` of their capacity, so that the first inserts after a load do not
split every page they touch.
"""

from __future__ import annotations

from scantree._jit import kernel
from scantree.layout import DIRS, HEADER, PAGES, ROOM, ROWS, copy, dir_words, page_words, root_words
from scantree.memory import allocate

FILL = 15 / 16


def pages_for(n: int, bits: int) -> int:
    """Pages of 2^`bits` places that `n` rows (or entries) are spread over: one if they fit, else filled to `FILL`.

    Two pages for what fits into one would leave both less than half full.
    """
    return min(n, 1) if n <= 1 << bits else -(-n // int(FILL * (1 << bits)))


@kernel
def merge_rows(a, b, at, keys, out):
    """Write the rows of `a` int64[cols, n], and of `b` int64[cols, m] from row `at` on those before the last of `a`.

    Both are in key order and have no key in common; `out` int64[cols, >= n + m - at] gets them in key order. Returns
    (the first row of `b` that was not written, rows written).
    """
    cols, n = a.shape
    m, k = b.shape[1], 0
    for i in range(n):
        while at < m:
            before = False
            for c in range(keys):
                if b[c, at] != a[c, i]:
                    before = b[c, at] < a[c, i]
                    break
            if not before:
                break
            for c in range(cols):
                out[c, k] = b[c, at]
            at += 1
            k += 1
        for c in range(cols):
            out[c, k] = a[c, i]
        k += 1
    return at, k


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
def write_rows(mem, root, shape, rows, place):
    """Write `rows` int64[cols, n], the next ones in key order, into a version that was laid out for them.

    `place` int64[3] is where the next row goes, (directory page, entry, row): all zero to begin, kept between calls.
    """
    cap, fan, room = 1 << shape.page_bits, 1 << shape.dir_bits, mem[root + ROOM]
    done = 0
    while done < rows.shape[1]:
        d, s, p = place[0], place[1], place[2]
        directory = mem[root + HEADER + d]
        page, count = mem[directory + s], mem[directory + fan + s]
        width = min(count - p, rows.shape[1] - done)
        for c in range(shape.cols):
            copy(mem, page + c * cap + p, rows[c], done, width)
        if p == 0:
            for c in range(shape.keys):
                mem[directory + (2 + c) * fan + s] = rows[c, done]
                if s == 0:
                    mem[root + HEADER + (2 + c) * room + d] = rows[c, done]
        done += width
        place[2] = p + width
        if p + width == count:
            place[1], place[2] = s + 1, 0
            if s + 1 == mem[root + HEADER + room + d]:
                place[0], place[1] = d + 1, 0
