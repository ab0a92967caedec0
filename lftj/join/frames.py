"""Frames of window functions: where values say that they end, and sums of floats and extremes over them, in one pass.

    rows        4  7  1  3  8  2          in the order of the window
    frames      [low, high) of each row, neither of which ever goes back from one row to the next

Values enter a frame at its end and leave at its beginning, so that each is looked at twice, however long frames are. A
sum is exact whatever came and went (exactsum.py), and rounded for each row. Of extremes those wait, in a queue, that
will be the best when all before them have left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.join.exactsum import DIGITS, INFINITE, SEGMENTS, add_float, round_digits
from scantree._jit import kernel

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


@kernel
def _ends(values, present, bounds, begin, end, nulls_first, beyond, ends):
    """`ends` int64[n]: the first row from `begin` on, up to `end`, with a value >= the row's bound; `beyond`: > it.

    Of rows in the order of their values, whose bounds never go back within one partition. What is not `present` comes
    before all values, or behind them, and has no end.
    """
    at = 0
    for i in range(len(values)):
        if i == 0 or begin[i] != begin[i - 1]:
            at = begin[i]
        if not present[i]:
            continue
        while at < end[i]:
            if present[at]:
                if values[at] > bounds[i] or (values[at] == bounds[i] and not beyond):
                    break
            elif not nulls_first:
                break
            at += 1
        ends[i] = at


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
        if low[i] >= end:  # nothing that was in the frame before is in this one
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
        if low[i] >= end:
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


def ends_by_value(
    values: Ints, present: Marks, bounds: Ints, begin: Ints, end: Ints, *, nulls_first: bool, beyond: bool
) -> Ints:
    """Where frames that values limit begin, int64[n], or with `beyond` where they end; 0 where no value is present.

    Rows are in the order of their `values` int64[n], each partition from `begin` to `end` int64[n]. A frame begins with
    the first value >= the row's of `bounds` int64[n], which are in order, too, and ends before the first one > it.
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
