"""Positions: seeking a row, seeking forward from a position, walking and copying ranges.

A position names a row of one version (layout.py). `seek_lub` finds the least row that is at least the asked one: fences
of the root, fences of the directory page, then the page. `seek_from` does the same but starts at a known position and
gallops, so that a run of nearby seeks costs O(log distance) each instead of O(log n) (the measure a leapfrog join's
bound rests on).

A shorter row (fewer keys than the relation has) is a prefix: its least upper bound is the first row that starts with it
or follows it.
"""

from __future__ import annotations

import numpy as np

from scantree._jit import kernel
from scantree.layout import DIRS, HEADER, ROOM, compare, copy, dir_count, dir_of, first_at_least, last_at_most


@kernel
def pack(shape, d, s, p):
    """The position of row `p` of entry `s` of directory page `d`."""
    return (((d << shape.dir_bits) | s) << shape.page_bits) | p


@kernel
def unpack(shape, pos):
    """(d, s, p) of a position."""
    slot = pos >> shape.page_bits
    return (
        slot >> shape.dir_bits,
        slot & ((1 << shape.dir_bits) - 1),
        pos & ((1 << shape.page_bits) - 1),
    )


@kernel
def normal(mem, root, shape, d, s, p):
    """The position (d, s, p), moved to the next page while p is past the end of its page."""
    if d < mem[root + DIRS]:
        fan = 1 << shape.dir_bits
        if p >= mem[dir_of(mem, root, d) + fan + s]:
            p = 0
            s += 1
            if s >= dir_count(mem, root, d):
                s = 0
                d += 1
    return pack(shape, d, s, p)


@kernel
def end_pos(mem, root, shape):
    """The position after the last row."""
    return pack(shape, mem[root + DIRS], 0, 0)


@kernel
def seek_lub(mem, root, shape, row):
    """Position of the least row whose first len(row) keys are >= `row` int64[1..keys]; the end if there is none."""
    k = len(row)
    dirs, room, fan, cap = mem[root + DIRS], mem[root + ROOM], 1 << shape.dir_bits, 1 << shape.page_bits
    if dirs == 0:
        return pack(shape, 0, 0, 0)
    # Of pages whose fence equals a prefix, rows that match may start in the page before: find the last fence below it.
    d = first_at_least(mem, root + HEADER + 2 * room, room, 0, dirs, row, 1, k)
    d = max(0, d - 1)
    directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
    s = first_at_least(mem, directory + 2 * fan, fan, 0, count, row, 1, k)
    s = max(0, s - 1)
    p = first_at_least(mem, mem[directory + s], cap, 0, mem[directory + fan + s], row, 1, k)
    return normal(mem, root, shape, d, s, p)


@kernel
def seek_past(mem, root, shape, row):
    """Position of the least row whose first len(row) keys are > `row` int64[0..keys]; the end if there is none."""
    k = len(row)
    dirs, room, fan, cap = mem[root + DIRS], mem[root + ROOM], 1 << shape.dir_bits, 1 << shape.page_bits
    if dirs == 0:
        return pack(shape, 0, 0, 0)
    d = last_at_most(mem, root + HEADER + 2 * room, room, 0, dirs, row, 1, k)
    directory = dir_of(mem, root, d)
    s = last_at_most(mem, directory + 2 * fan, fan, 0, dir_count(mem, root, d), row, 1, k)
    page = mem[directory + s]
    p = last_at_most(mem, page, cap, 0, mem[directory + fan + s], row, 1, k)
    if compare(mem, page + p, cap, row, 1, k) <= 0:
        p += 1
    return normal(mem, root, shape, d, s, p)


@kernel
def seek_from(mem, root, shape, row, pos):
    """`seek_lub`, at or after `pos`: gallops in the page, then over fences of the directory page, then of the root."""
    k = len(row)
    if pos >= end_pos(mem, root, shape):
        return pos
    fan, cap, room = 1 << shape.dir_bits, 1 << shape.page_bits, mem[root + ROOM]
    d, s, p = unpack(shape, pos)
    directory = dir_of(mem, root, d)
    page, rows = mem[directory + s], mem[directory + fan + s]
    if compare(mem, page + rows - 1, cap, row, 1, k) >= 0:
        lo, step = p, 1
        while lo + step < rows and compare(mem, page + lo + step, cap, row, 1, k) < 0:
            lo += step
            step *= 2
        return pack(shape, d, s, first_at_least(mem, page, cap, lo, min(rows, lo + step + 1), row, 1, k))
    count = dir_count(mem, root, d)
    if d + 1 < mem[root + DIRS] and compare(mem, directory + 2 * fan + count - 1, fan, row, 1, k) < 0:
        lo, step = d, 1
        while lo + step < mem[root + DIRS] and compare(mem, root + HEADER + 2 * room + lo + step, room, row, 1, k) < 0:
            lo += step
            step *= 2
        hi = min(mem[root + DIRS], lo + step + 1)
        e = first_at_least(mem, root + HEADER + 2 * room, room, lo + 1, hi, row, 1, k) - 1
        if e > d:
            d, s = e, 0
            directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
    lo, step = s, 1
    while lo + step < count and compare(mem, directory + 2 * fan + lo + step, fan, row, 1, k) < 0:
        lo += step
        step *= 2
    s = first_at_least(mem, directory + 2 * fan, fan, lo + 1, min(count, lo + step + 1), row, 1, k) - 1
    p = first_at_least(mem, mem[directory + s], cap, 0, mem[directory + fan + s], row, 1, k)
    return normal(mem, root, shape, d, s, p)


@kernel
def copy_range(mem, root, shape, lo, hi, out):
    """Copy rows from position `lo` on, up to position `hi`, into `out` int64[cols, n]; stops when `out` is full.

    Returns (position after the last row copied, rows copied).
    """
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    done, space = 0, out.shape[1]
    hd, hs, hp = unpack(shape, hi)
    while lo < hi and done < space:
        d, s, p = unpack(shape, lo)
        directory = dir_of(mem, root, d)
        page, until = mem[directory + s], mem[directory + fan + s]
        if d == hd and s == hs:
            until = hp
        width = min(until - p, space - done)
        for c in range(shape.cols):
            copy(out[c], done, mem, page + c * cap + p, width)
        done += width
        lo = normal(mem, root, shape, d, s, p + width)
    return lo, done


@kernel
def copy_columns(mem, root, shape, columns, d, s, out):
    """Copy the page columns `columns` int64[k] of rows into `out` int64[k, n], from page `s` of directory `d` on.

    Stops before a page that `out` has no room for. Returns (the next directory, the next page, rows copied).
    """
    fan, cap, done = 1 << shape.dir_bits, 1 << shape.page_bits, 0
    while d < mem[root + DIRS]:
        directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
        while s < count:
            page, width = mem[directory + s], mem[directory + fan + s]
            if done + width > out.shape[1]:
                return d, s, done
            for i in range(len(columns)):
                copy(out[i], done, mem, page + columns[i] * cap, width)
            done += width
            s += 1
        d, s = d + 1, 0
    return d, s, done


@kernel
def count_range(mem, root, shape, lo, hi):
    """Rows in [lo, hi): whole pages are counted by their directory entries."""
    fan = 1 << shape.dir_bits
    total = 0
    hd, hs, hp = unpack(shape, hi)
    d, s, p = unpack(shape, lo)
    while lo < hi:
        if d == hd and s == hs:
            return total + hp - p
        total += mem[dir_of(mem, root, d) + fan + s] - p
        p = 0
        s += 1
        if s >= dir_count(mem, root, d):
            s = 0
            d += 1
        lo = pack(shape, d, s, p)
    return total


@kernel
def first_keys(mem, root, shape):
    """(the least, the greatest) first key of a version with rows: those of its first and its last row."""
    d = mem[root + DIRS] - 1
    directory, s = dir_of(mem, root, d), dir_count(mem, root, d) - 1
    last = mem[directory + s] + mem[directory + (1 << shape.dir_bits) + s] - 1
    return mem[mem[dir_of(mem, root, 0)]], mem[last]


@kernel
def column_ranges(mem, root, shape, columns, low, high):
    """Lower `low` and raise `high` int64[k] to the least and the greatest value of each of `columns` int64[k]."""
    fan, cap = 1 << shape.dir_bits, 1 << shape.page_bits
    for d in range(mem[root + DIRS]):
        directory = dir_of(mem, root, d)
        for s in range(dir_count(mem, root, d)):
            page, count = mem[directory + s], mem[directory + fan + s]
            for c in range(len(columns)):
                at = page + columns[c] * cap
                least, most = low[c], high[c]
                for i in range(np.uint64(at), np.uint64(at + count)):
                    least, most = min(least, mem[i]), max(most, mem[i])
                low[c], high[c] = least, most


@kernel
def _page_near(mem, root, shape, row, stride, near):
    """(page, its rows, address of the first key of the page after it or 0, distance of the keys there) for a row.

    The version is not empty. `near` is what this returned for another row: keys that are looked up in order are often
    in one page. Of page 0 nothing is known.
    """
    fan, room = 1 << shape.dir_bits, mem[root + ROOM]
    page, _, fence, width = near
    within = page > 0 and compare(mem, page, 1 << shape.page_bits, row, stride, shape.keys) <= 0
    if within and (fence == 0 or compare(mem, fence, width, row, stride, shape.keys) > 0):
        return near
    tops = root + HEADER + 2 * room
    d = last_at_most(mem, tops, room, 0, mem[root + DIRS], row, stride, shape.keys)
    directory = dir_of(mem, root, d)
    s = last_at_most(mem, directory + 2 * fan, fan, 0, dir_count(mem, root, d), row, stride, shape.keys)
    page, count = mem[directory + s], mem[directory + fan + s]
    if s + 1 < dir_count(mem, root, d):
        return page, count, directory + 2 * fan + s + 1, fan
    if d + 1 < mem[root + DIRS]:
        return page, count, tops + d + 1, room
    return page, count, 0 * room, room


@kernel
def find_rows(mem, root, shape, batch, found, values):
    """`found` bool[m]: whether the key of row j of `batch` int64[keys, m] (any order) is present.

    `values` int64[v, m]: the first v values of those rows; 0 where absent.
    """
    keys, m = batch.shape
    cap = 1 << shape.page_bits
    flat = batch.reshape(-1)
    near = (root - root, root - root, root - root, root - root)
    for j in range(m):
        found[j], at = False, 0
        if mem[root + DIRS] > 0:
            row = flat[j:]
            near = _page_near(mem, root, shape, row, m, near)
            page, count = near[0], near[1]
            p = first_at_least(mem, page, cap, 0, count, row, m, keys)
            at = page + p
            found[j] = p < count and compare(mem, at, cap, row, m, keys) == 0
        for c in range(len(values)):
            values[c, j] = mem[at + ((keys + c) << shape.page_bits)] if found[j] else 0
