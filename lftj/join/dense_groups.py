"""Sums of groups that lie close together: each has its place in a table, so that nothing is sorted.

    group columns x in 3..5, y in 0..1      (3,0) (3,1) (4,0) (4,1) (5,0) (5,1)

The places of groups are in their order. A table with no more places than there are bindings is passed once at the end.
Of a column whose values lie apart, as those of days that are timestamps, the steps between them are counted.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from scantree._jit import kernel
from scantree.sort import ranges

Ints = npt.NDArray[np.int64]

# Bindings from which on looking at their ranges is worth it.
LEAST = 256
# Values of a column whose steps are not looked at, and the widest range whose differences are codes.
NARROW, WIDEST = 64, 1 << 63


@kernel
def _step(column, least):
    """The greatest step by which all values of `column` int64[m] are reached from `least`, their least; at least 1."""
    step = np.int64(0)
    for i in range(len(column)):
        rest = column[i] - least
        if step:
            rest %= step
        while rest:
            step, rest = rest, step % rest
        if step == 1:
            break
    return max(step, np.int64(1))


@kernel
def _add_up(rows, least, steps, spans, weights, flipped, half, table, met):
    """Add the bindings int64[k.., m], of k columns of groups from `least` on in `steps`, to the places of their groups.

    These are in `table` int64[places, w], with room for `spans` steps of each column. It holds, of w = 1, the sum of
    the weights; of w = 3 also those of the weighted high and low words, of `half` bits, of row k of `rows`, whose bits
    `flipped` are turned over first. `met` bool[places]: which groups there are.
    """
    k, wide = len(spans), table.shape[1] > 1
    low_bits = (np.int64(1) << half) - 1
    for i in range(rows.shape[1]):
        at = 0
        for c in range(k):
            value = rows[c, i] - least[c]
            at = at * spans[c] + (value if steps[c] == 1 else value // steps[c])
        met[at] = True
        table[at, 0] += weights[i]
        if wide:
            value = rows[k, i] ^ flipped
            high = value >> half
            if flipped != 0:
                high &= low_bits
            table[at, 1] += weights[i] * high
            table[at, 2] += weights[i] * (value & low_bits)


def dense_sums(rows: Ints, groups: int, weights: Ints, flipped: int, half: int, wide: bool) -> tuple[Ints, Ints] | None:
    """(the distinct groups int64[k, g] in order, their sums int64[1 or 3, g]) of bindings int64[k.., m].

    None where they do not lie close together. `wide`: row k is summed in two words, of which the lower one has `half`
    bits, after its bits `flipped` were turned over; no sum of products with a word may leave 64 bits.
    """
    m = rows.shape[1]
    if m < LEAST:
        return None
    rows, weights = np.ascontiguousarray(rows), np.ascontiguousarray(weights)
    least, most = ranges(rows[:groups])
    steps = [1] * groups
    spans = [high - low + 1 for low, high in zip(least.tolist(), most.tolist(), strict=True)]
    if math.prod(spans) > m and max(spans) <= WIDEST:
        steps = [int(_step(rows[c], least[c])) if spans[c] > NARROW else 1 for c in range(groups)]
        spans = [(span - 1) // step + 1 for span, step in zip(spans, steps, strict=True)]
    if (places := math.prod(spans)) > m:
        return None
    table, met = np.zeros((places, 3 if wide else 1), np.int64), np.zeros(places, np.bool_)
    apart = np.array(steps, np.int64)
    _add_up(rows, least, apart, np.array(spans, np.int64), weights, np.int64(flipped), half, table, met)
    at = np.flatnonzero(met)
    sums = np.ascontiguousarray(table[at].T)
    found = np.empty((groups, len(at)), np.int64)
    for c in reversed(range(groups)):
        at, place = np.divmod(at, spans[c])
        found[c] = place * steps[c] + least[c]
    return found, sums
