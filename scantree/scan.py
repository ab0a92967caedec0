"""Scans: the fold of any run of rows by a monoid, from partial folds that pages carry.

A *scan* folds one column by an associative operator with an identity: their number (COUNT), sum, least or greatest
value. A store made with one keeps, in every entry of a directory page and of the root, the fold of all rows below the
entry, and over the root's entries a scan-tree (layout.py), so that a run of rows is folded in few steps:

    lo |. . x x|x x x x|x x x x| x x x x  ...  x x x x |x x x x|x x . .| hi
         rows    entries of a      nodes of the root's    entries   rows
                directory page         scan-tree

Only the first and the last row page are read row by row and only the first and the last directory page entry by entry;
everything between costs at most 2 log2(directory pages) nodes. With the page sizes as constants that is O(log n), and
an update repairs the path from the changed pages to the root, which it writes anew in any case. The other way round,
the row with which a sum passes a number is found by one descent (`seek_sum`).

SUM is exact. The sum of one page may leave int64 although the sum of the whole run does not, so a partial sum takes two
columns, high * 2^32 + low with 0 <= low < 2^32, which suffices for 2^32 rows; only a result beyond int64 is refused.
The other monoids take one column. COUNT reads no column: directory entries hold counts in any case, but the root does
not.

Degenerate cases: the fold of no rows is the identity (0, 0, KEY_MAX for MIN, KEY_MIN for MAX).

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
sections 3.1 and 3.1.1. Deviations: a binary scan-tree stands over the root alone, whose size grows with n; inside
pages, whose size is fixed, rows and entries are folded one after the other.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from scantree._jit import kernel
from scantree.cursor import pack, unpack
from scantree.layout import DIRS, HEADER, ROOM, dir_count, dir_of

NONE, COUNT, SUM, MIN, MAX = 0, 1, 2, 3, 4
KEY_MIN, KEY_MAX = -(2**63), 2**63 - 1
LOW = (1 << 32) - 1

DONE, OVERFLOW = 0, 1

# Cells of `looked`, int64[2], which counts what kernels look at: entries and tree nodes; rows.
ENTRIES, LOOKED_ROWS = 0, 1


class Monoid(IntEnum):
    """What a scan folds by. Closed for now: compiled code cannot take functions without being compiled per function."""

    COUNT = COUNT
    SUM = SUM
    MIN = MIN
    MAX = MAX

    @property
    def folds(self) -> int:
        """Columns that a partial fold takes."""
        return 2 if self is Monoid.SUM else 1


class Scan(NamedTuple):
    """A monoid and the column it folds: a key or value column, counted from 0. COUNT needs none."""

    monoid: Monoid
    column: int = 0


@kernel
def identity(monoid):
    """The fold of nothing by `monoid`, a pair as all folds are: (value, 0), of SUM (high, low)."""
    if monoid == MIN:
        return KEY_MAX, 0
    if monoid == MAX:
        return KEY_MIN, 0
    return 0, 0


@kernel
def combine(monoid, a, low, b, b_low):
    """The fold (`a`, `low`) continued by the fold (`b`, `b_low`) of the rows behind."""
    if monoid == MIN:
        return min(a, b), 0
    if monoid == MAX:
        return max(a, b), 0
    low += b_low
    return a + b + (low >> 32), low & LOW


@kernel
def fold_page(mem, shape, page, lo, hi):
    """The fold of rows [lo, hi) of a row page."""
    base = page + (shape.column << shape.page_bits)
    a, low = identity(shape.monoid)
    # One loop per monoid: with the choice inside none of them becomes vector code.
    if shape.monoid == MIN:
        for i in range(base + lo, base + hi):
            a = min(a, mem[i])
    elif shape.monoid == MAX:
        for i in range(base + lo, base + hi):
            a = max(a, mem[i])
    elif shape.monoid == SUM:
        for i in range(base + lo, base + hi):
            a += mem[i] >> 32
            low += mem[i] & LOW
        a, low = a + (low >> 32), low & LOW
    else:
        a += hi - lo
    return a, low


@kernel
def fold_entries(mem, shape, directory, lo, hi):
    """The fold of all rows below entries [lo, hi) of a directory page."""
    fan = 1 << shape.dir_bits
    base = directory + (2 + shape.keys) * fan
    a, low = identity(shape.monoid)
    if shape.monoid == MIN:
        for i in range(base + lo, base + hi):
            a = min(a, mem[i])
    elif shape.monoid == MAX:
        for i in range(base + lo, base + hi):
            a = max(a, mem[i])
    elif shape.monoid == SUM:
        for i in range(base + lo, base + hi):
            a += mem[i]
            low += mem[i + fan]
        a, low = a + (low >> 32), low & LOW
    else:
        for i in range(base + lo, base + hi):
            a += mem[i]
    return a, low


@kernel
def node_address(shape, root, room, f, node):
    """Where fold column `f` of `node` of the root's scan-tree lies, 1 <= `node` < 2 * `room`; entry d is `room` + d."""
    column = 2 + shape.keys + f
    if node < room:
        return root + HEADER + (column + shape.folds) * room + node
    return root + HEADER + (column - 1) * room + node


@kernel
def fold_root(mem, root, shape):
    """Fill the scan-tree over the root's entries, whose own folds are there already; places without entry get none."""
    room, dirs = mem[root + ROOM], mem[root + DIRS]
    nothing = identity(shape.monoid)
    for d in range(dirs, room):
        for f in range(shape.folds):
            mem[node_address(shape, root, room, f, room + d)] = nothing[f]
    for node in range(room - 1, 0, -1):
        left, right = node_address(shape, root, room, 0, 2 * node), node_address(shape, root, room, 0, 2 * node + 1)
        left_low, right_low = 0, 0
        if shape.folds > 1:
            left_low = mem[node_address(shape, root, room, 1, 2 * node)]
            right_low = mem[node_address(shape, root, room, 1, 2 * node + 1)]
        a, low = combine(shape.monoid, mem[left], left_low, mem[right], right_low)
        mem[node_address(shape, root, room, 0, node)] = a
        if shape.folds > 1:
            mem[node_address(shape, root, room, 1, node)] = low


@kernel
def fold_version(mem, root, shape):
    """Fold every page of a version that was just built (its pages are written, its folds are not)."""
    fan, room = 1 << shape.dir_bits, mem[root + ROOM]
    for d in range(mem[root + DIRS]):
        directory, count = dir_of(mem, root, d), dir_count(mem, root, d)
        at = directory + (2 + shape.keys) * fan
        for s in range(count):
            a, low = fold_page(mem, shape, mem[directory + s], 0, mem[directory + fan + s])
            mem[at + s] = a
            if shape.folds > 1:
                mem[at + fan + s] = low
        a, low = fold_entries(mem, shape, directory, 0, count)
        mem[node_address(shape, root, room, 0, room + d)] = a
        if shape.folds > 1:
            mem[node_address(shape, root, room, 1, room + d)] = low
    fold_root(mem, root, shape)


@kernel
def _fold_dirs(mem, root, shape, lo, hi, looked):
    """The fold of all rows below directory pages [lo, hi): the fewest nodes of the scan-tree, from left to right."""
    room = mem[root + ROOM]
    a, low = identity(shape.monoid)
    at, node, size = lo, room + lo, 1
    while at < hi:
        while node & 1 == 0 and at + 2 * size <= hi:
            node, size = node >> 1, size << 1
        while at + size > hi:
            node, size = node << 1, size >> 1
        b, b_low = mem[node_address(shape, root, room, 0, node)], 0
        if shape.folds > 1:
            b_low = mem[node_address(shape, root, room, 1, node)]
        a, low = combine(shape.monoid, a, low, b, b_low)
        looked[ENTRIES] += 1
        at += size
        node += 1
    return a, low


@kernel
def fold_run(mem, root, shape, lo, hi, looked):
    """The fold of the rows between positions `lo` and `hi` of a version of a store with a scan: a pair, never refused.

    `looked` int64[2]: increased by the entries (tree nodes included) and the rows that were looked at.
    Returns (value, 0), of SUM (high, low).
    """
    a, low = identity(shape.monoid)
    if lo < hi:
        fan = 1 << shape.dir_bits
        d, s, p = unpack(shape, lo)
        hd, hs, hp = unpack(shape, hi)
        if p > 0:
            directory = dir_of(mem, root, d)
            until = hp if d == hd and s == hs else mem[directory + fan + s]
            a, low = fold_page(mem, shape, mem[directory + s], p, until)
            looked[LOOKED_ROWS] += until - p
            p = 0
            if d == hd and s == hs:
                hp = 0
            else:
                s += 1
        if d < hd and s > 0:
            # From here on the parts of the run follow in order: the operator need not commute.
            count = dir_count(mem, root, d)
            b, b_low = fold_entries(mem, shape, dir_of(mem, root, d), s, count)
            a, low = combine(shape.monoid, a, low, b, b_low)
            looked[ENTRIES] += count - s
            d, s = d + 1, 0
        if d < hd:
            b, b_low = _fold_dirs(mem, root, shape, d, hd, looked)
            a, low = combine(shape.monoid, a, low, b, b_low)
        if s < hs:
            b, b_low = fold_entries(mem, shape, dir_of(mem, root, hd), s, hs)
            a, low = combine(shape.monoid, a, low, b, b_low)
            looked[ENTRIES] += hs - s
        if hp > 0:
            b, b_low = fold_page(mem, shape, mem[dir_of(mem, root, hd) + hs], 0, hp)
            a, low = combine(shape.monoid, a, low, b, b_low)
            looked[LOOKED_ROWS] += hp
    return a, low


@kernel
def fold_range(mem, root, shape, lo, hi, looked):
    """The fold of the rows between positions `lo` and `hi` of a version of a store with a scan, in 64 bits.

    `looked` as for `fold_run`.
    Returns (value, status): OVERFLOW if the sum leaves int64; the value is then 0.
    """
    a, low = fold_run(mem, root, shape, lo, hi, looked)
    if shape.monoid != SUM:
        return a, DONE
    if a < -(1 << 31) or a >= 1 << 31:
        return 0, OVERFLOW
    return (a << 32) + low, DONE


@kernel
def seek_sum(mem, root, shape, high, low, looked):
    """Position of the first row with which the sum of all rows so far exceeds (`high`, `low`), of which there is one.

    A pair as of `fold_run`, and so is `looked`. The scan is a SUM of values of which none is negative.
    """
    room, fan, node = mem[root + ROOM], 1 << shape.dir_bits, 1
    a, a_low = np.int64(0), np.int64(0)
    while node < room:
        node = node << 1
        b, b_low = mem[node_address(shape, root, room, 0, node)], mem[node_address(shape, root, room, 1, node)]
        b, b_low = combine(SUM, a, a_low, b, b_low)
        looked[ENTRIES] += 1
        if b < high or (b == high and b_low <= low):
            a, a_low, node = b, b_low, node + 1
    d, s = node - room, 0
    directory = dir_of(mem, root, d)
    base = directory + (2 + shape.keys) * fan
    while True:
        b, b_low = combine(SUM, a, a_low, mem[base + s], mem[base + fan + s])
        looked[ENTRIES] += 1
        if b > high or (b == high and b_low > low):
            break
        a, a_low, s = b, b_low, s + 1
    p, values = 0, mem[directory + s] + (shape.column << shape.page_bits)
    while True:
        a, a_low = combine(SUM, a, a_low, mem[values + p] >> 32, mem[values + p] & LOW)
        looked[LOOKED_ROWS] += 1
        if a > high or (a == high and a_low > low):
            break
        p += 1
    return pack(shape, d, s, p)
