"""Exact sums of values and of their squares, in segments, so that a variance can be followed by adding integers.

A value is an integer times a unit: 1, the least digit of a decimal, or 2**-1074 of floats. Segments, of 32 bits, are
those of exactsum.py; those of the sum of squares, whose unit is the square, come behind those of the sum:

    integers      segments 0 and 1 of the sum, 2 to 5 of the squares
    floats        segments 0 to 65 of the sum, 66 to 197 of the squares

A square adds pieces up to 2**32 to at most five segments, as often as its weight says: nothing can overflow below 2**31
values per group, and what is taken away leaves nothing behind. From the sums S and Q of n values,
n * Q - S * S is an integer, so that nothing cancels out that is not equal.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 2.3.4, whose accumulators these extend from sums to sums of squares.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.join.exactsum import BITS, FRACTION, LOW, SEGMENTS, add_float, parts_of, read_segments, write_pieces
from lftj.join.two_floats import add, divide, is_sure, multiply, product_of, square_root
from scantree._jit import inlined, kernel
from scantree.cursor import end_pos

if TYPE_CHECKING:
    from scantree.version import Version

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NUMBER, UNSIGNED, FLOAT = 0, 1, 2
KINDS = {"number": NUMBER, "unsigned": UNSIGNED, "float": FLOAT}
HALF, HALF_LOW = 16, (1 << 16) - 1
TOP = 1 << (BITS - 1)
POINT = 1074  # a float is an integer times 2**-POINT
# What is computed with two floats is nearer to the exact result than this part of it, or of what is subtracted.
BOUND = 2.0**-94
# Where numbers are so large or small that parts of them may leave the range of floats, integers decide.
ORDINARY, SMALLEST, LARGEST = 1e-290, 1e-200, 1e280


def squares_from(storage: str) -> int:
    """The first segment of the sum of squares: how many the sum has."""
    return SEGMENTS if storage == "float" else 2


def segments_in_all(storage: str) -> int:
    """How many segments there are, of the sum and of the squares."""
    return 3 * SEGMENTS if storage == "float" else 6


@inlined
def _product(a, b):
    """(the low, the high 32 bits) of the product of two integers up to 2**32, none of whose steps leaves 63 bits."""
    high = a * (b >> HALF)
    low = a * (b & HALF_LOW) + ((high & HALF_LOW) << HALF)
    return low & LOW, (high >> HALF) + (low >> BITS)


@inlined
def _add_square(high, low, shift, weight, cells, s):
    """Add the square of high * 2**32 + low, times 2**`shift`, to the segments from s of row 0 of `cells`.

    `shift` is below 32; five segments, of which the last one is for a shift.
    """
    p0, p1 = _product(low, low)
    q0, q1 = _product(high, low)
    r0, r1 = _product(high, high)
    middle = p1 + 2 * q0
    upper = (middle >> BITS) + 2 * q1 + r0
    carry = p0 << shift
    cells[0, s] += weight * (carry & LOW)
    carry = ((middle & LOW) << shift) + (carry >> BITS)
    cells[0, s + 1] += weight * (carry & LOW)
    carry = ((upper & LOW) << shift) + (carry >> BITS)
    cells[0, s + 2] += weight * (carry & LOW)
    carry = (((upper >> BITS) + r1) << shift) + (carry >> BITS)
    cells[0, s + 3] += weight * (carry & LOW)
    if shift > 0:
        cells[0, s + 4] += weight * (carry >> BITS)


@inlined
def _add_integer(code, kind, weight, cells):
    """Add an integer and its square to the segments of row 0 of `cells`."""
    negative = kind == NUMBER and code < 0
    magnitude = ~code if negative else code
    high, low = magnitude >> BITS, magnitude & LOW
    if kind == UNSIGNED:
        high += TOP
    if negative:
        low += 1
    signed = -weight if negative else weight
    cells[0, 0] += signed * low
    cells[0, 1] += signed * high
    _add_square(high, low, 0, weight, cells, 2)


@inlined
def _add_square_of_float(code, weight, cells):
    """Add the square of a finite float to the segments of row 0 of `cells`; the first one."""
    exponent, mantissa = parts_of(code)
    s = SEGMENTS + ((2 * exponent) >> 5)
    _add_square(mantissa >> BITS, mantissa & LOW, (2 * exponent) & 31, weight, cells, s)
    return s


@inlined
def add_value(code, kind, weight, table, cells):
    """Add a value and its square, as often as `weight` says, to row 0 of `table` int64[1, 3] and of `cells`."""
    if kind != FLOAT:
        _add_integer(code, kind, weight, cells)
    elif add_float(code, weight, table, cells, 0, 0) >= 0:
        _add_square_of_float(code, weight, cells)


@kernel
def sum_squares(codes, kind, weights, starts, cells, table, rows, sums):
    """Sum the pieces of the values of each group and of their squares, each as often as its weight says.

    As `exactsum.sum_segments`, but for `kind`, how the `codes` are stored, and `cells` int64[1, segments in all].
    Returns how many rows are written: at most 8 per value, and as many as there are segments per group.
    """
    written = 0
    for g in range(len(starts) - 1):
        # What is met of the sum, and of the squares.
        least, greatest, lowest, highest = cells.shape[1], -1, cells.shape[1], -1
        for i in range(starts[g], starts[g + 1]):
            if kind != FLOAT:
                table[g, 0] += weights[i]
                _add_integer(codes[i], kind, weights[i], cells)
                least, greatest, lowest, highest = 0, 1, 2, 5
                continue
            s = add_float(codes[i], weights[i], table, cells, g, 0)
            if s < 0:
                continue
            least, greatest = min(least, s), max(greatest, s + 2)
            s = _add_square_of_float(codes[i], weights[i], cells)
            lowest, highest = min(lowest, s), max(highest, s + 4)
        written = write_pieces(cells, least, greatest, g, rows, sums, written)
        written = write_pieces(cells, lowest, highest, g, rows, sums, written)
    return written


@inlined
def _total(cells, first, end, scales):
    """(the sum of segments from `first` to `end`, by their `scales`, as two floats, whether one is all)."""
    high, low, exact = 0.0, 0.0, True
    for s in range(end - 1, first - 1, -1):
        if cells[s] != 0:
            scale = scales[s]
            exact = exact and scale > ORDINARY
            for part in (float(cells[s] >> BITS) * (LOW + 1.0), float(cells[s] & LOW)):
                high, low = add(high, low, part * scale, 0.0)
                exact = exact and low == 0.0
    return high, low, exact


@inlined
def variance_of(cells, count, layout, scales, unit, sample, rooted):
    """The variance of `count` values with the segments `cells` int64[segments]; -1 where it takes more than two floats.

    The others as `_variances` takes them.
    """
    if count == 1:
        return 0.0
    squares, width = layout
    n = float(count)
    sh, sl, one = _total(cells, 0, squares, scales)
    qh, ql, other = _total(cells, squares, width, scales)
    ph, pl = multiply(qh, ql, n, 0.0)
    th, tl = multiply(sh, sl, sh, sl)
    exact = one and other
    ordinary = ph > SMALLEST and ph < LARGEST
    if exact and ph == th and pl == tl and (ordinary or ph == 0.0):
        return 0.0
    high, low = add(ph, pl, -th, -tl)
    if not ordinary or not high > SMALLEST:
        return -1.0
    error = BOUND if exact else BOUND + BOUND * ((ph + th) / high)
    dh, dl = product_of(n, n - 1.0 if sample else n)
    dh, dl = multiply(dh, dl, unit[0], unit[1])
    high, low = divide(high, low, dh, dl)
    if rooted:
        high, low = square_root(high, low)
    return high if is_sure(high, low, high * error) else -1.0


@kernel
def _variances(mem, root, shape, groups, counts, layout, scales, unit, sample, rooted, cells, found):
    """Write the variance of each of `groups` int64[m, k] to `found` float64[m]; -1 where it takes more than two floats.

    `mem`, `root`, `shape`: the version, keys (group..., segment), one value · `counts` int64[m]: from 1 on, of a
    `sample` from 2 · `layout`: (the first segment of the squares, segments in all) · `scales` float64[segments]: what
    each counts · `unit`: two floats, by which the variance is divided · `rooted`: its square root is asked for ·
    `cells` int64[segments]: scratch.
    """
    end = end_pos(mem, root, shape)
    for j in range(len(groups)):
        for s in range(layout[1]):
            cells[s] = 0
        read_segments(mem, root, shape, end, groups[j], cells)
        found[j] = variance_of(cells, counts[j], layout, scales, unit, sample, rooted)


@kernel
def _segments_of_group(mem, root, shape, group, cells):
    """Write the segments of `group` int64[k] of a version to `cells` int64[segments in all], zero before."""
    read_segments(mem, root, shape, end_pos(mem, root, shape), group, cells)


@cache
def scales_of(storage: str) -> Floats:
    """What a segment's unit is, of each segment: 0 or inf where that is no float."""
    squares, point = squares_from(storage), POINT if storage == "float" else 0
    of_sum = [BITS * s - point for s in range(squares)]
    of_squares = [BITS * s - 2 * point for s in range(segments_in_all(storage) - squares)]
    with np.errstate(over="ignore", under="ignore"):
        scales: Floats = np.ldexp(1.0, np.array([*of_sum, *of_squares]))
    return scales


def two_floats_of(number: int) -> tuple[float, float]:
    """An integer as the sum of two floats, which is exact of the powers of ten up to 10**36."""
    whole = float(number)
    return whole, float(number - int(whole))


def variances(
    version: Version, storage: str, groups: Ints, counts: Ints, unit: int, *, sample: bool, rooted: bool
) -> Floats:
    """The variances of `groups` int64[k, g] of `counts` values, by the segments of a version; -1 of those left open.

    What they take is divided by `unit`; `sample`: by n - 1 where else by n · `rooted`: their square roots.
    """
    width, found = segments_in_all(storage), np.empty(len(counts))
    at = version.store.arena.space.mem, version.root, version.store.shape
    cells, layout = np.zeros(width, np.int64), (squares_from(storage), width)
    groups, counts = np.ascontiguousarray(groups.T), np.ascontiguousarray(counts)
    _variances(*at, groups, counts, layout, scales_of(storage), two_floats_of(unit), sample, rooted, cells, found)
    return found


def sums_of_group(version: Version, storage: str, group: Ints) -> tuple[int, int]:
    """(the sum, that of the squares) of a group int64[k], in its units."""
    cells = np.zeros(segments_in_all(storage), np.int64)
    _segments_of_group(version.store.arena.space.mem, version.root, version.store.shape, group, cells)
    squares = squares_from(storage)
    return _integer(cells[:squares]), _integer(cells[squares:])


def _integer(pieces: Ints) -> int:
    """The integer that segments stand for."""
    there = np.flatnonzero(pieces).tolist()
    return sum(int(pieces[i]) << (BITS * i) for i in there)


def integers_of(codes: Ints, storage: str) -> list[int]:
    """The values with `codes` int64[n], in their units; of infinities, some number."""
    if storage != "float":
        beyond = 1 << 63 if storage == "unsigned" else 0
        return [code + beyond for code in codes.tolist()]
    bits = np.where(codes < 0, ~codes, codes)
    exponents, mantissas = bits >> FRACTION, bits & ((1 << FRACTION) - 1)
    mantissas |= (exponents > 0) << np.int64(FRACTION)
    signed = np.where(codes < 0, -mantissas, mantissas)
    shifts = np.maximum(exponents - 1, 0)
    return [mantissa << shift for mantissa, shift in zip(signed.tolist(), shifts.tolist(), strict=True)]


def squares_of(codes: Ints, storage: str, weights: Ints, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Sums of values by their codes int64[m], and of their squares, group by group: as `exactsum.segments_of`."""
    bounds, width = np.append(starts, len(codes)), segments_in_all(storage)
    room = int(np.minimum(width, 8 * np.diff(bounds)).sum())
    rows, sums, table = np.empty((2, room), np.int64), np.empty(room, np.int64), np.zeros((len(starts), 3), np.int64)
    cells = np.zeros((1, width), np.int64)
    n = sum_squares(codes, KINDS[storage], weights, bounds, cells, table, rows, sums)
    return np.ascontiguousarray(table.T), rows[:, :n], sums[:n]
