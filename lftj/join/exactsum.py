"""Exact sums of floats: bits against a fixed point, cut into segments, so that adding and taking away is integers.

Every finite float64 is an integer times 2**-1074. A *segment* is 32 bits of that integer, counted from the right, and
the sum of a group is the sum of its segments, each an int64 that may be negative or hold more than 32 bits:

    1.5   = 2**-1074 * 2**32k * (piece 0, piece 1, piece 2)          a float has 53 bits: at most three pieces
    sum   = 2**-1074 * (s[0] + s[1] * 2**32 + ... + s[65] * 2**2080)

Segments that sum to zero are not kept, so a group holds few of its 66. Sums of pieces are a linear function of the
values that are there, whatever came and went before: a value that is taken away leaves nothing behind. Only reading the
sum carries from segment to segment; it is rounded once, half to even, and thus `math.fsum` of the values, bit for bit.
A mean is the exact sum divided by the count, and rounded once as well.
Nothing can overflow below 2**31 values per group.

Infinities are no multiple of anything and are counted apart by the caller. Where `math.fsum` raises because a partial
sum of its own overflows while the sum does not, this gives the sum.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 2.3.4. Deviation: signed 32-bit pieces in int64 take the place of 52-bit segments against an offset of
alternating bits; neither borrowing nor carrying happens before the sum is read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined, kernel
from scantree.cursor import end_pos, normal, seek_lub, unpack
from scantree.layout import compare, dir_of

Ints = npt.NDArray[np.int64]

SEGMENTS = 66
# Of the digits of a sum: two more for what the uppermost carries.
DIGITS = SEGMENTS + 2
BITS = 32
LOW = (1 << BITS) - 1
FRACTION = 52
# Groups, and values of each, whose segments are summed in a table, of two megabytes at most.
FEW, VALUES = 4_000, 16
INFINITE = 0x7FF << FRACTION  # the code of inf; ~INFINITE is that of -inf
NO_SUM = INFINITE + 1  # the code of no float


@inlined
def parts_of(code):
    """(the exponent, from 0 on, the mantissa) of a finite float by its code, without its sign."""
    bits = code if code >= 0 else ~code
    exponent, mantissa = bits >> FRACTION, bits & ((1 << FRACTION) - 1)
    if exponent > 0:
        mantissa |= 1 << FRACTION
        exponent -= 1
    return exponent, mantissa


@inlined
def _add_pieces(code, weight, cells, g):
    """Add a finite float, as often as `weight` says, to row g of `cells` int64[groups, SEGMENTS].

    Returns the first of its three segments.
    """
    exponent, mantissa = parts_of(code)
    signed = weight if code >= 0 else -weight
    s, shift = exponent >> 5, exponent & 31
    low = (mantissa & LOW) << shift
    high = ((mantissa >> BITS) << shift) + (low >> BITS)
    cells[g, s] += signed * (low & LOW)
    cells[g, s + 1] += signed * (high & LOW)
    cells[g, s + 2] += signed * (high >> BITS)
    return s


@inlined
def add_float(code, weight, table, cells, g, row):
    """Add a float, as often as `weight` says, to row g of `table` and to a row of `cells`; its first segment, if any.

    `table` int64[groups, 3]: the sums of the weights, of those of inf and of those of -inf · `cells` int64[rows,
    SEGMENTS].
    """
    table[g, 0] += weight
    if code == INFINITE:
        table[g, 1] += weight
        return -1
    if code == ~INFINITE:
        table[g, 2] += weight
        return -1
    return _add_pieces(code, weight, cells, row)


@inlined
def write_pieces(cells, first, last, g, rows, sums, written):
    """Write the segments of row 0 of `cells` from `first` to `last` that are not zero, of group g, and clear them.

    To `rows` int64[2, n] and `sums` int64[n], behind the first `written`; how many are written then.
    """
    for s in range(first, last + 1):
        if cells[0, s] != 0:
            rows[0, written], rows[1, written], sums[written] = g, s, cells[0, s]
            cells[0, s] = 0
            written += 1
    return written


@kernel
def sum_segments(codes, weights, starts, cells, table, rows, sums):
    """Sum the pieces of the floats of each group, each as often as its weight says.

    `codes`, `weights` int64[m], group by group · `starts` int64[g + 1]: where each group begins · `cells` int64[1,
    SEGMENTS], scratch, zero before and after · `table` int64[g, 3], as `add_float` adds to it · `rows` int64[2, n]:
    written, (group, segment) in order · `sums` int64[n]: written, none of them zero. Returns how many; n is at least
    min(66, 3 * rows) per group.
    """
    written = 0
    for g in range(len(starts) - 1):
        least, greatest = SEGMENTS, -1
        for i in range(starts[g], starts[g + 1]):
            s = add_float(codes[i], weights[i], table, cells, g, 0)
            if s >= 0:
                least, greatest = min(least, s), max(greatest, s + 2)
        written = write_pieces(cells, least, greatest, g, rows, sums, written)
    return written


@kernel
def _sum_scattered(codes, weights, at, table, cells, met):
    """Add floats of groups with numbers `at` int64[m] to `table` and `cells`, a row for each group (`add_float`).

    `met` bool[groups]: which there are.
    """
    for i in range(len(at)):
        met[at[i]] = True
        add_float(codes[i], weights[i], table, cells, at[i], at[i])


@kernel
def round_digits(digits, count, first, last):
    """The code of the float nearest to the sum in `digits` int64[DIGITS] divided by `count`, half to even.

    `count` is 1 for the sum itself, below 2**31 for a mean. Digits below `first` and from `last` - 2 on are zero, as
    carries need two. Destroys the digits. A code beyond those of finite floats (>= INFINITE, <= ~INFINITE) if the
    quotient is.
    """
    negative = False
    for _ in range(2):
        carry = 0
        for s in range(first, last):
            total = digits[s] + carry
            digits[s], carry = total & LOW, total >> BITS
        if carry >= 0:
            break
        # The digits of a negative sum, as they are now, are those of its complement.
        negative = True
        for s in range(first, last):
            digits[s] = LOW - digits[s]
        digits[first] += 1
    top, remainder = last - 1, 0
    while top > 0 and digits[top] == 0:
        top -= 1
    if count > 1:
        for s in range(top, -1, -1):
            total = (remainder << BITS) + digits[s]
            digits[s], remainder = total // count, total % count
        if top > 0 and digits[top] == 0:  # a count has less than 32 bits: one digit at most is gone
            top -= 1
    length, rest = BITS * top, digits[top]
    while rest > 0:
        length, rest = length + 1, rest >> 1
    drop = max(0, length - FRACTION - 1)
    s, shift = drop >> 5, drop & 31
    mantissa = digits[s] >> shift
    for i in range(1, 3):
        # No bits are above the mantissa's 53; shifting a digit without any by 64 would be undefined.
        if s + i < DIGITS and digits[s + i] != 0:
            mantissa |= digits[s + i] << (BITS * i - shift)
    if drop > 0:
        at = drop - 1
        half = (digits[at >> 5] >> (at & 31)) & 1
        rest = remainder | (digits[at >> 5] & ((1 << (at & 31)) - 1))
        for i in range(first, at >> 5):
            rest |= digits[i]
        if half == 1 and (rest != 0 or mantissa & 1 == 1):
            mantissa += 1
    elif 2 * remainder + (mantissa & 1) > count:
        mantissa += 1
    # A mantissa with all its 53 bits adds one to the exponent, and so does one that was rounded up to 54.
    bits = INFINITE if drop > 2046 else min(INFINITE, (drop << FRACTION) + mantissa)
    # A mean may round to zero, which has no sign.
    return ~bits if negative and bits != 0 else bits


@inlined
def read_segments(mem, root, shape, end, group, cells):
    """Write the segments of `group` int64[k] of a version that ends at `end` to `cells`, each at its number.

    `mem`, `root`, `shape`: the version, keys (group..., segment), one value.
    """
    cap, fan, k = 1 << shape.page_bits, 1 << shape.dir_bits, len(group)
    pos = seek_lub(mem, root, shape, group) if k > 0 else 0
    while pos < end:
        d, s, p = unpack(shape, pos)
        directory = dir_of(mem, root, d)
        page, until = mem[directory + s], mem[directory + fan + s]
        while p < until and compare(mem, page + p, cap, group, 1, k) == 0:
            cells[mem[page + k * cap + p]] = mem[page + (k + 1) * cap + p]
            p += 1
        if p < until:
            break
        pos = normal(mem, root, shape, d, s, p)


@kernel
def rounded_sums(mem, root, shape, groups, infinite, counts, digits, codes):
    """`codes` int64[m]: the codes of the sums of groups of a version of segments, each divided by its count.

    `mem`, `root`, `shape`: the version, keys (group..., segment), one value · `groups` int64[m, k] · `infinite`
    int64[2, m]: how many values of each group are inf, and -inf · `counts` int64[m]: as for `round_digits` · `digits`
    int64[DIGITS]: scratch.
    A group that has none (inf and -inf, or more than a float64 holds) gets `NO_SUM`. Returns how many have none.
    """
    end, without = end_pos(mem, root, shape), 0
    for j in range(len(groups)):
        if infinite[0, j] > 0 or infinite[1, j] > 0:
            codes[j] = INFINITE if infinite[0, j] > 0 else ~INFINITE
            if infinite[0, j] > 0 and infinite[1, j] > 0:
                codes[j] = NO_SUM
                without += 1
            continue
        for s in range(DIGITS):
            digits[s] = 0
        read_segments(mem, root, shape, end, groups[j], digits)
        code = round_digits(digits, counts[j], 0, DIGITS)
        codes[j] = code
        if code >= INFINITE or code <= ~INFINITE:
            codes[j] = NO_SUM
            without += 1
    return without


def segments_of(codes: Ints, weights: Ints, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Sums of floats by their codes int64[m], group by group.

    (the sums of the weights of each group, of those of inf and of those of -inf, int64[3, g]; rows int64[2, n] of group
    number and segment, in order; their sums int64[n]). `weights` int64[m]: how often each counts · `starts`: where each
    group begins; a group has a row at least.
    """
    bounds = np.append(starts, len(codes))
    room = int(np.minimum(SEGMENTS, 3 * np.diff(bounds)).sum())
    rows, sums, table = np.empty((2, room), np.int64), np.empty(room, np.int64), np.zeros((len(starts), 3), np.int64)
    n = sum_segments(codes, weights, bounds, np.zeros((1, SEGMENTS), np.int64), table, rows, sums)
    return np.ascontiguousarray(table.T), rows[:, :n], sums[:n]


def are_few(groups: int, values: int) -> bool:
    """Whether `values` floats of so many groups are better summed in a table of all segments than group by group."""
    return groups <= min(FEW, values // VALUES)


def sums_of_few(codes: Ints, weights: Ints, at: Ints, groups: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Sums of floats by their codes int64[m] in any order, of few groups, with numbers `at` int64[m] below `groups`.

    (the numbers of those that are there, int64[g], in order; the sums of their weights, of those of inf and of those
    of -inf, int64[3, g]; rows int64[2, n] of a place among them and a segment, in order; their sums int64[n])
    """
    table, cells = np.zeros((groups, 3), np.int64), np.zeros((groups, SEGMENTS), np.int64)
    met = np.zeros(groups, np.bool_)
    _sum_scattered(codes, weights, at, table, cells, met)
    there = np.flatnonzero(met)
    cells = cells[there]
    rows = np.array(np.nonzero(cells))
    return there, np.ascontiguousarray(table[there].T), rows, cells[rows[0], rows[1]]
