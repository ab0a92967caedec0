"""Joining what changed in one atom with the rest of a body: the derivations that one changed row each takes part in.

The plan begins with the variables of the changed atom, which is not in it: each of its changed rows is a binding of
these, and the walk is kept to the subtree below it. What is walked over the versions before a change are derivations
that go, over those after it derivations that come.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.join.leapfrog import forget
from lftj.join.machine import FAILS, HOLDS
from lftj.join.place import admit, is_plain, place
from lftj.join.trie import LEVEL, REGISTER, ask_for_key
from lftj.join.triejoin import ERROR, FINISHED, FULL, NO_TRACE, OPENING, PAUSED, triejoin, write_row
from lftj.join.walk import DEPTH, ENTER, STAY, WRITTEN
from scantree._jit import kernel

Ints = npt.NDArray[np.int64]

# Cells of `state`: the number of the row, whether it is under way
AT, UNDER_WAY, STATE = 0, 1, 2
# Rows between the one under way and the one whose pages are asked for
AHEAD_ROWS = 4
# Rows after which the caller may look at limits, whatever the steps
ROWS_AT_ONCE = 1 << 14


@kernel
def _begins(rows, kinds, tops, at, kind, depth):
    """Whether row `at` is of `kind`, changes the first `depth` columns, and is the first with these keys to do so."""
    if kinds[at] != kind or tops[at] >= depth:
        return False
    earlier = at - 1
    while earlier >= 0:
        for level in range(depth):
            if rows[level, earlier] != rows[level, at]:
                return True
        if kinds[earlier] == kind and tops[earlier] < depth:
            return False
        earlier -= 1
    return True


@kernel
def join_changed(mem, walk, rows, kinds, tops, kind, depth, out, state, budget):
    """The heads of derivations that changed rows of one `kind` take part in, written to `out` int64[h, n].

    rows int64[arity, m] in order, kinds int8[m], tops int64[m]: a change (engine.trace.TraceChange) · `depth`: the
    variables that a row binds, its first columns. Stops as `triejoin` does (FINISHED, FULL, PAUSED, ERROR + status) and
    goes on from where `state` says.
    """
    n, m, plain = len(walk.depths), rows.shape[1], is_plain(walk)
    frames, control, regs = walk.frames, walk.control, walk.regs
    last = state[AT] + ROWS_AT_ONCE
    while state[AT] < m:
        at = state[AT]
        if not state[UNDER_WAY]:
            if at >= last:
                return PAUSED
            if at + AHEAD_ROWS < m:
                for f in range(len(frames)):
                    if frames[f, LEVEL] == 0 and frames[f, REGISTER] < depth:
                        ask_for_key(mem, frames, f, rows[frames[f, REGISTER], at + AHEAD_ROWS])
            if not _begins(rows, kinds, tops, at, kind, depth):
                state[AT] += 1
                continue
            if depth == n and control[WRITTEN] >= out.shape[1]:
                return FULL
            stopped = HOLDS
            for e in range(depth):
                if plain:
                    regs[e] = rows[e, at]
                elif stopped == HOLDS:
                    stopped = admit(walk, e, rows[e, at])
            if stopped > FAILS:
                return ERROR + stopped
            if stopped == FAILS or not place(mem, frames, walk, depth):
                state[AT] += 1
                continue
            if depth == n:
                write_row(walk, out)
                state[AT] += 1
                continue
            for e in range(depth):
                forget(walk, e)
            control[DEPTH], control[ENTER], control[STAY] = depth, OPENING, depth - 1
            state[UNDER_WAY] = 1
        status = triejoin(mem, walk, NO_TRACE, out, budget)
        if status != FINISHED:
            return status
        state[UNDER_WAY] = 0
        state[AT] += 1
    return FINISHED


@kernel
def keep_others(out, n, columns, rows, kinds, tops, kind):
    """Of the `n` first columns of `out` keep those without a changed row of `kind` at `columns`; how many are left.

    rows, kinds, tops: as above, of another atom, whose variables are at `columns` int64[depth] of a column of `out`.
    """
    depth, m, kept = len(columns), rows.shape[1], 0
    for i in range(n):
        lo, hi = 0, m
        while lo < hi:
            mid = (lo + hi) >> 1
            less = False
            for level in range(depth):
                a, b = rows[level, mid], out[columns[level], i]
                if a != b:
                    less = a < b
                    break
            if less:
                lo = mid + 1
            else:
                hi = mid
        found = False
        while lo < m and not found:
            same = True
            for level in range(depth):
                same = same and rows[level, lo] == out[columns[level], i]
            if not same:
                break
            found = kinds[lo] == kind and tops[lo] < depth
            lo += 1
        if not found:
            for k in range(len(out)):
                out[k, kept] = out[k, i]
            kept += 1
    return kept
