"""Frames of window functions: where values say that they end, and what is folded over them, in one pass over the rows.

    rows        4  7  1  3  8  2          in the order of the window
    frames      [low, high) of each row, which go forward from one row to the next, or seldom back

Values enter a frame at its end and leave at its beginning, so that each is looked at twice, however long frames are;
where one goes back, as one month before 30 March at night and 31 March in the morning does, it is begun anew. A
sum is exact whatever came and went (exactsum.py), and rounded for each row; so is a variance (exactsquares.py). Of
extremes those wait, in a queue, that will be the best when all before them have left. Quantiles and modes are looked up
in a tree over the numbers of all distinct values, whose leaves say how often the frame has each: node 1 is its root,
the children of i are 2 i and 2 i + 1, and an inner node has the sum, or the greatest, of both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.join.exactsquares import (
    KINDS,
    add_value,
    scales_of,
    segments_in_all,
    squares_from,
    two_floats_of,
    variance_of,
)
from lftj.join.exactsum import DIGITS, INFINITE, SEGMENTS, add_float, round_digits
from scantree._jit import inlined, kernel

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


@inlined
def _is_before(values, present, at, bound, nulls_first, beyond):
    """Whether the row `at` comes before the end of a frame that has this bound."""
    if not present[at]:
        return nulls_first
    return values[at] < bound or (beyond and values[at] == bound)


@kernel
def _ends(values, present, bounds, begin, end, nulls_first, beyond, ends):
    """`ends` int64[n]: the first row from `begin` on, up to `end`, with a value >= the row's bound; `beyond`: > it.

    Of rows in the order of their values. What is not `present` comes before all values, or behind them, and has no end.
    """
    at = 0
    for i in range(len(values)):
        if i == 0 or begin[i] != begin[i - 1]:
            at = begin[i]
        if not present[i]:
            continue
        while at > begin[i] and not _is_before(values, present, at - 1, bounds[i], nulls_first, beyond):
            at -= 1
        while at < end[i] and _is_before(values, present, at, bounds[i], nulls_first, beyond):
            at += 1
        ends[i] = at


@inlined
def _begins_anew(low, high, i, end):
    """Whether nothing that is in the frames before, up to `end`, is in frame i, or this one goes back behind them."""
    return low[i] >= end or (i > 0 and (low[i] < low[i - 1] or high[i] < high[i - 1]))


@kernel
def _sums(codes, present, low, high, counts, table, cells, digits, sums):
    """`sums` int64[n]: the code of the sum of each frame, of the floats that are `present`; whether one has none.

    `counts` int64[n]: what each is divided by · `table` int64[1, 3], `cells` int64[1, SEGMENTS], `digits`
    int64[DIGITS]: scratch, zero.
    """
    begin, end, least, greatest = 0, 0, SEGMENTS, -1
    for i in range(len(low)):
        if i > 0 and low[i] == low[i - 1] and high[i] == high[i - 1]:
            sums[i] = sums[i - 1]
            continue
        if _begins_anew(low, high, i, end):
            for s in range(least, greatest + 1):
                cells[0, s] = 0
            table[0, 1], table[0, 2] = 0, 0
            begin, end, least, greatest = low[i], low[i], SEGMENTS, -1
        while end < high[i]:
            if present[end]:
                s = add_float(codes[end], 1, table, cells, 0, 0)
                if s >= 0:
                    least, greatest = min(least, s), max(greatest, s + 2)
            end += 1
        while begin < low[i]:
            if present[begin]:
                add_float(codes[begin], -1, table, cells, 0, 0)
            begin += 1
        if table[0, 1] > 0 or table[0, 2] > 0:
            if table[0, 1] > 0 and table[0, 2] > 0:
                return True
            sums[i] = INFINITE if table[0, 1] > 0 else ~INFINITE
            continue
        for s in range(least, greatest + 1):
            digits[s] = cells[0, s]
        first = least if counts[i] == 1 else 0  # a quotient has digits below those of the sum
        sums[i] = round_digits(digits, counts[i], first, greatest + 3) if greatest >= 0 else 0
        for s in range(first, greatest + 3):
            digits[s] = 0
        if sums[i] >= INFINITE or sums[i] <= ~INFINITE:
            return True
    return False


@kernel
def _best(ranks, present, low, high, last, queue, best):
    """`best` int64[n]: where the least, or with `last` the greatest, of `ranks` in each frame is; -1 if there is none.

    Of those that are `present`. `queue` int64[n]: scratch.
    """
    head, tail, end = 0, 0, 0
    for i in range(len(low)):
        if _begins_anew(low, high, i, end):
            head, tail, end = 0, 0, low[i]
        while end < high[i]:
            if present[end]:
                rank = ranks[end]
                while tail > head and (ranks[queue[tail - 1]] <= rank if last else rank <= ranks[queue[tail - 1]]):
                    tail -= 1
                queue[tail] = end
                tail += 1
            end += 1
        while head < tail and queue[head] < low[i]:
            head += 1
        best[i] = queue[head] if head < tail else -1


@kernel
def _variances(codes, kind, present, low, high, counts, layout, scales, unit, sample, rooted, table, cells, found):
    """`found` float64[n]: the variance of each frame, -1 where two floats do not suffice, inf of one with infinities.

    As `exactsquares._variances`, but of the values with `codes` int64[n] that are `present`; of so few, by `counts`
    int64[n], that there is none it is 0 · `table` int64[1, 3], `cells` int64[1, segments]: scratch, zero.
    """
    begin, end = 0, 0
    for i in range(len(low)):
        if _begins_anew(low, high, i, end):
            cells[:] = 0
            table[:] = 0
            begin, end = low[i], low[i]
        while end < high[i]:
            if present[end]:
                add_value(codes[end], kind, 1, table, cells)
            end += 1
        while begin < low[i]:
            if present[begin]:
                add_value(codes[begin], kind, -1, table, cells)
            begin += 1
        if table[0, 1] > 0 or table[0, 2] > 0:
            found[i] = np.inf
        elif counts[i] > sample:
            found[i] = variance_of(cells[0], counts[i], layout, scales, unit, sample, rooted)
        else:
            found[i] = 0.0


@inlined
def _count(tree, at, more, greatest):
    """The value at the leaf `at` is in the frame once more, or once less."""
    tree[at] += more
    while at > 1:
        at >>= 1
        tree[at] = max(tree[2 * at], tree[2 * at + 1]) if greatest else tree[2 * at] + tree[2 * at + 1]


@kernel
def _numbered(numbers, present, low, high, wanted, tree, found):
    """`found` int64[w, n]: of each frame the number of the value that has the rank `wanted` int64[w, n], from 0 on.

    `numbers` int64[n]: of the values in order; of equal ones, one · `tree` int64[2 * leaves]: zero. Without `wanted`
    (w = 0), `found` int64[1, n] is of the value that comes most often, the least of several. -1 where there is none.
    """
    leaves, begin, end = len(tree) >> 1, 0, 0
    greatest = len(wanted) == 0
    for i in range(len(low)):
        until = end if _begins_anew(low, high, i, end) else low[i]
        while begin < until:
            if present[begin]:
                _count(tree, leaves + numbers[begin], -1, greatest)
            begin += 1
        if begin == end:
            begin, end = low[i], low[i]
        while end < high[i]:
            if present[end]:
                _count(tree, leaves + numbers[end], 1, greatest)
            end += 1
        for w in range(len(found)):
            rank, at = np.int64(0), 1
            if not greatest:
                rank = wanted[w, i]
            if tree[1] <= rank:
                found[w, i] = -1
                continue
            while at < leaves:
                at *= 2
                if greatest:
                    if tree[at] < tree[at >> 1]:
                        at += 1
                elif tree[at] <= rank:
                    rank -= tree[at]
                    at += 1
            found[w, i] = at - leaves


@kernel
def _distinct(numbers, present, low, high, counts, found):
    """`found` int64[n]: how many distinct values each frame has. `counts` int64[distinct values]: zero."""
    begin, end, many = 0, 0, 0
    for i in range(len(low)):
        until = end if _begins_anew(low, high, i, end) else low[i]
        while begin < until:
            if present[begin]:
                counts[numbers[begin]] -= 1
                many -= counts[numbers[begin]] == 0
            begin += 1
        if begin == end:
            begin, end = low[i], low[i]
        while end < high[i]:
            if present[end]:
                many += counts[numbers[end]] == 0
                counts[numbers[end]] += 1
            end += 1
        found[i] = many


def ends_by_value(
    values: Ints, present: Marks, bounds: Ints, begin: Ints, end: Ints, *, nulls_first: bool, beyond: bool
) -> Ints:
    """Where frames that values limit begin, int64[n], or with `beyond` where they end; 0 where no value is present.

    Rows are in the order of their `values` int64[n], each partition from `begin` to `end` int64[n]. A frame begins with
    the first value >= the row's of `bounds` int64[n], and ends before the first one > it.
    """
    ends = np.zeros(len(values), np.int64)
    _ends(values, present, bounds, begin, end, nulls_first, beyond, ends)
    return ends


def sums_of_frames(codes: Ints, present: Marks, low: Ints, high: Ints, counts: Ints) -> Ints | None:
    """The codes int64[n] of the sums of frames [low, high) of floats with `codes` int64[n], of those that are present.

    Each is divided by one of `counts` int64[n] and rounded once: 1 for the sum itself, more for a mean. None if one has
    no value: it holds both infinities, or leaves the range of floats.
    """
    table, cells = np.zeros((1, 3), np.int64), np.zeros((1, SEGMENTS), np.int64)
    sums = np.empty(len(low), np.int64)
    without = _sums(codes, present, low, high, counts, table, cells, np.zeros(DIGITS, np.int64), sums)
    return None if without else sums


def best_of_frames(ranks: Ints, present: Marks, low: Ints, high: Ints, *, last: bool) -> Ints:
    """Where the least, or the greatest, of `ranks` int64[n] in each frame [low, high) is; -1 if none is present."""
    best = np.empty(len(low), np.int64)
    _best(ranks, present, low, high, last, np.empty(len(low), np.int64), best)
    return best


def variances_of_frames(
    codes: Ints,
    storage: str,
    present: Marks,
    low: Ints,
    high: Ints,
    counts: Ints,
    unit: int,
    *,
    sample: bool,
    rooted: bool,
) -> npt.NDArray[np.float64]:
    """The variances float64[n] of frames [low, high) of values with `codes` int64[n], of the `counts` that are present.

    As `exactsquares.variances`; inf of one that has an infinity, and 0 of one without values, or a sample of one.
    """
    width, found = segments_in_all(storage), np.empty(len(low))
    of = KINDS[storage], present, low, high, counts, (squares_from(storage), width), scales_of(storage)
    table, cells = np.zeros((1, 3), np.int64), np.zeros((1, width), np.int64)
    _variances(codes, *of, two_floats_of(unit), sample, rooted, table, cells, found)
    return found


def ranked_in_frames(numbers: Ints, present: Marks, low: Ints, high: Ints, wanted: Ints) -> Ints:
    """Which values have the ranks `wanted` int64[w, n] in frames [low, high); -1 where there are fewer.

    Of those that are present, by their `numbers` int64[n] in the order of the values, equal ones with equal numbers.
    """
    found = np.empty(wanted.shape, np.int64)
    _numbered(numbers, present, low, high, wanted, _tree_over(numbers), found)
    return found


def modes_of_frames(numbers: Ints, present: Marks, low: Ints, high: Ints) -> Ints:
    """Which values come most often in frames [low, high), the least of several, as `ranked_in_frames`."""
    found = np.empty(len(low), np.int64)
    nothing = np.empty((0, len(low)), np.int64)
    _numbered(numbers, present, low, high, nothing, _tree_over(numbers), found.reshape(1, len(low)))
    return found


def _tree_over(numbers: Ints) -> Ints:
    most = int(numbers.max(initial=0)) + 1
    return np.zeros(2 << (most - 1).bit_length(), np.int64)


def distinct_in_frames(numbers: Ints, present: Marks, low: Ints, high: Ints) -> Ints:
    """How many distinct values frames [low, high) have, of those that are present, by their `numbers` int64[n]."""
    found = np.empty(len(low), np.int64)
    _distinct(numbers, present, low, high, np.zeros(int(numbers.max(initial=0)) + 1, np.int64), found)
    return found
