"""Bulk build: columns of rows in any order become the pages of a fresh version.

Rows are brought into key order first (`sort_rows`), equal keys reduced to their last row, then pages are filled from
left to right, evenly, to `FILL` of their capacity, so that the first inserts after a load do not split every page they
touch.

Sorting packs all key columns of a row into one uint64 wherever their ranges allow and sorts that array, which is
several times faster than `numpy.lexsort`; wide ranges fall back to it. Columns already in order (files often are) are
recognised in one pass and not sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel
from scantree.layout import DIRS, HEADER, PAGES, ROOM, ROWS, copy, dir_words, page_words, root_words
from scantree.memory import allocate

Column = npt.NDArray[np.int64]

FILL = 15 / 16


@kernel
def order_of(columns):
    """2 if the rows of `columns` int64[k, n] are strictly ascending, 1 if ascending with repeats, 0 otherwise."""
    k, n = columns.shape
    verdict = 2
    for i in range(1, n):
        relation = 0
        for c in range(k):
            if columns[c, i] != columns[c, i - 1]:
                relation = 1 if columns[c, i] > columns[c, i - 1] else -1
                break
        if relation < 0:
            return 0
        if relation == 0:
            verdict = 1
    return verdict


@kernel
def last_of_equal(columns, keep):
    """`keep` bool[n]: whether row i is the last of its run of equal keys; `columns` int64[k, n] in key order."""
    k, n = columns.shape
    for i in range(n):
        keep[i] = True
        if i + 1 < n:
            equal = True
            for c in range(k):
                if columns[c, i] != columns[c, i + 1]:
                    equal = False
                    break
            keep[i] = not equal


def pages_for(n: int, bits: int) -> int:
    """Pages of 2^`bits` places that `n` rows (or entries) are spread over: one if they fit, else filled to `FILL`.

    Two pages for what fits into one would leave both less than half full.
    """
    return min(n, 1) if n <= 1 << bits else -(-n // int(FILL * (1 << bits)))


def _bit_widths(keys: Sequence[Column]) -> tuple[list[int], list[int]] | None:
    """(least values, bits) per column if a whole key fits into 64 bits, else None."""
    lows = [int(column.min()) for column in keys]
    bits = [(int(column.max()) - low).bit_length() for column, low in zip(keys, lows, strict=True)]
    return (lows, bits) if sum(bits) <= 64 else None


def _pack(keys: Sequence[Column], lows: list[int], bits: list[int]) -> npt.NDArray[np.uint64]:
    packed = (keys[0] - np.int64(lows[0])).view(np.uint64)
    for column, low, width in zip(keys[1:], lows[1:], bits[1:], strict=True):
        # Shifting by 64 is undefined: a column that wide is the only one with any bits, so what precedes it is zero.
        if width < 64:
            packed <<= np.uint64(width)
        packed |= (column - np.int64(low)).view(np.uint64)
    return packed


def _unpack(packed: npt.NDArray[np.uint64], lows: list[int], bits: list[int], out: Column) -> None:
    shift = 0
    for c in range(len(bits) - 1, -1, -1):
        width = bits[c]
        if width == 0:
            out[c] = lows[c]
            continue
        part = packed >> np.uint64(shift) if shift else packed
        mask = np.uint64((1 << width) - 1)
        np.add((part & mask).view(np.int64), np.int64(lows[c]), out=out[c])
        shift += width


def sort_rows(columns: Sequence[Column], keys: int) -> npt.NDArray[np.int64]:
    """Rows in key order, one per key (the last given wins), as int64[cols, n].

    `columns`: equally long int64 columns, the first `keys` of them keys.
    """
    n = len(columns[0]) if columns else 0
    rows = np.empty((len(columns), n), np.int64)
    for c, column in enumerate(columns):
        rows[c] = column
    if n < 2 or keys == 0:
        return rows if keys else np.ascontiguousarray(rows[:, max(0, n - 1) :])
    state = order_of(rows[:keys])
    if state == 2:
        return rows
    if state == 0:
        with np.errstate(over="ignore"):
            packing = _bit_widths(list(rows[:keys]))
            if packing is not None and keys == len(columns):
                packed = _pack(list(rows), *packing)
                packed.sort()
                distinct = np.empty(n, np.bool_)
                distinct[0] = True
                np.not_equal(packed[1:], packed[:-1], out=distinct[1:])
                if not distinct.all():
                    packed = packed[distinct]
                    rows = np.empty((keys, len(packed)), np.int64)
                _unpack(packed, *packing, rows)
                return rows
            if packing is not None:
                order = np.argsort(_pack(list(rows[:keys]), *packing), kind="stable")
            else:
                order = np.lexsort(rows[:keys][::-1])
        rows = np.take(rows, order, axis=1)  # `rows[:, order]` would lay the columns out across
    keep = np.empty(n, np.bool_)
    last_of_equal(rows[:keys], keep)
    return rows if keep.all() else np.compress(keep, rows, axis=1)


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
