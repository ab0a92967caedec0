"""Rows under a prefix whose next key lies in an interval: a key and a span of time, say.

    rows (key, time, ...)     prefix (key), low 10, high 20     the rows of the key from 10 to 20, both included

The interval is closed. One seek finds its first row, the rest are its neighbours: O(log n) and the rows copied.
"""

from __future__ import annotations

from scantree._jit import kernel
from scantree.cursor import end_pos, seek_from, seek_lub
from scantree.layout import compare
from scantree.prefix import DONE, FULL, address_at, following


@kernel
def copy_between(mem, root, shape, lows, highs, first, state, out):
    """Copy the rows under each prefix whose next key is in an interval, with the number of the interval.

    `lows` int64[m, k + 1]: prefixes of k keys, each followed by the least next key, in order · `highs` int64[m]: the
    greatest next key of each · `first` > 0: only so many rows of each · `out` int64[cols + 1, n] takes the rows, the
    number last · `state` int64[4]: the interval to go on with, the position (from 1; 0: to be sought), how many rows
    of it are copied, and where it began (from 1); zeros to begin, kept between calls. Returns (rows copied, status):
    FULL means call again with the same state.
    """
    cap = 1 << shape.page_bits
    m, k = lows.shape[0], lows.shape[1] - 1
    end, done = end_pos(mem, root, shape), 0
    while state[0] < m:
        j = state[0]
        if state[1] > 0:
            pos = state[1] - 1
        elif state[3] > 0:
            # Intervals may overlap, but none begins before the one before it.
            pos = seek_from(mem, root, shape, lows[j], state[3] - 1)
            state[3] = pos + 1
        else:
            pos = seek_lub(mem, root, shape, lows[j])
            state[3] = pos + 1
        copied = state[2]
        while pos < end and (first == 0 or copied < first):
            at = address_at(mem, root, shape, pos)
            if compare(mem, at, cap, lows[j], 1, k) != 0 or mem[at + k * cap] > highs[j]:
                break
            if done == out.shape[1]:
                state[1], state[2] = pos + 1, copied
                return done, FULL
            for c in range(shape.cols):
                out[c, done] = mem[at + c * cap]
            out[shape.cols, done] = j
            done += 1
            copied += 1
            pos = following(mem, root, shape, pos)
        state[0] += 1
        state[1] = 0
        state[2] = 0
    return done, DONE
