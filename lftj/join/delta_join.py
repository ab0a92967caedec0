"""Joining what changed in one atom with the rest of a body: the derivations that one changed row each takes part in.

A *variant* is the plan of one atom: it begins with the variables of that atom, which is not in it. Each changed row is
a binding of these, and the walk is kept to the subtree below it. What is walked over the versions before a change are
derivations that go, over those after it derivations that come. A derivation with several changed rows is met by the
variants of all of them, and written by the first.

Of an atom some of whose columns only count (plan/body.py) each changed row counts, and a row of output stands for as
many rows of the others as there are under their keys, less those that an earlier variant has written.

The arrays of all variants lie one behind the other, so that a change of one row is one call; `spans` says where those
of each begin. As the walk it can be stopped and taken up again anywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lftj.join.expression_vm import FAILS, HOLDS, NO_VALUE
from lftj.join.join_state import DEPTH, ENTER, LANDED, PART_HI, PART_LO, STAY, STEPS, UNTIL, WRITTEN, Walk, write_row
from lftj.join.leapfrog import forget
from lftj.join.reposition import admit, is_plain, place
from lftj.join.trie import LEVEL, OPENED, ROOT, ask_for
from lftj.join.triejoin import ERROR, FINISHED, FULL, OPENING, PAUSED, triejoin
from scantree._jit import kernel

Ints = npt.NDArray[np.int64]

# Columns of `spans`: where the part of a variant begins in each array of the walk (it ends where the next one's begins)
FRAMES, DEPTHS, PARTS, MOVES, BOUNDS, BLOCKS, CODE, REGS, HEAD = range(9)
# ... the variables that a changed row binds, whether the atom is negated, where the places of its variables in a row of
# output begin in `places`, where a row of output holds how many rows of the atom it stands for (-1: one), and how many
# variants come before it that derivations are left to
BOUND, NEGATED, PLACES, NUMBER, EARLIER = 9, 10, 11, 12, 13
SPAN = 14
# Columns of `deltas`, a row per variant: where its change lies in `changes` (rows int64[arity, m], kinds[m], tops[m],
# as in engine.trace.TraceChange), m and arity; m is 0 where nothing changed.
AT, COUNT, ARITY = 0, 1, 2
# Row of `roots`: the number of each frame's key order, -1 of one without. Rows 0 and 1 hold the roots of the numbered
# orders, before and after.
ORDER = 2
# Cells of `state`: the side (0: before, 1: after), the variant, the number of the row, whether it is under way, from
# where on rows of output have not been looked at by `_drop_earlier`, whether the change has been begun, and how many
# rows of output are of the side before
SIDE, VARIANT, ROW, UNDER_WAY, CHECKED, BEGUN, BEFORE, STATE = 0, 1, 2, 3, 4, 5, 6, 7
# Rows after which the caller may look at limits, whatever the steps
ROWS_AT_ONCE = 1 << 14
# Rows from one whose pages are asked for to the one that is joined: waiting for them is most of what a row takes
AHEAD = 4


@kernel
def _counts(changes, deltas, v, j, kind, depth):
    """Whether row `j` of the change of variant `v` is of `kind` and brings or takes the first `depth` columns."""
    at, m, arity = deltas[v, AT], deltas[v, COUNT], deltas[v, ARITY]
    return changes[at + arity * m + j] == kind and changes[at + (arity + 1) * m + j] < depth


@kernel
def _begins(changes, deltas, v, j, kind, depth, each):
    """Whether row `j` is to be joined: `each` of its kind, or those that count and are the first with their `depth`."""
    if each:
        return changes[deltas[v, AT] + deltas[v, ARITY] * deltas[v, COUNT] + j] == kind
    if not _counts(changes, deltas, v, j, kind, depth):
        return False
    at, m, arity = deltas[v, AT], deltas[v, COUNT], deltas[v, ARITY]
    if depth == arity:
        return True
    earlier = j - 1
    while earlier >= 0:
        for c in range(depth):
            if changes[at + c * m + earlier] != changes[at + c * m + j]:
                return True
        if _counts(changes, deltas, v, earlier, kind, depth):
            return False
        earlier -= 1
    return True


@kernel
def _changed(changes, deltas, v, kind, depth, places, at_places, out, i, each):
    """How many rows of the change of variant `v` row `i` of `out` holds at its places.

    `each`: of this kind; else 1 if there is one that counts.
    """
    at, m, arity = deltas[v, AT], deltas[v, COUNT], deltas[v, ARITY]
    lo, hi, found = 0, m, 0
    while lo < hi:
        mid = (lo + hi) >> 1
        less = False
        for c in range(depth):
            a, b = changes[at + c * m + mid], out[places[at_places + c], i]
            if a != b:
                less = a < b
                break
        if less:
            lo = mid + 1
        else:
            hi = mid
    while lo < m:
        for c in range(depth):
            if changes[at + c * m + lo] != out[places[at_places + c], i]:
                return found
        if each:
            found += changes[at + arity * m + lo] == kind
        elif _counts(changes, deltas, v, lo, kind, depth):
            return 1
        lo += 1
    return found


@kernel
def _drop_earlier(changes, deltas, spans, places, v, kind, out, first, n):
    """Of rows [first, n) of `out`, written by variant `v`, keep those that no EARLIER one writes; how many.

    Of rows that stand for several, keep what is left of these.
    """
    kept = first
    for i in range(first, n):
        known = False
        for u in range(spans[v, EARLIER]):
            own = -kind if spans[u, NEGATED] else kind
            depth, number = spans[u, BOUND], spans[u, NUMBER]
            if deltas[u, COUNT] == 0:
                continue
            found = _changed(changes, deltas, u, own, depth, places, spans[u, PLACES], out, i, number >= 0)
            if number >= 0:
                out[number, i] -= found
            if found > 0 and (number < 0 or out[number, i] == 0):
                known = True
                break
        if not known:
            for k in range(len(out)):
                out[k, kept] = out[k, i]
            kept += 1
    return kept


@kernel
def _ask_for(mem, own, changes, at, m, j, depth):
    """Ask for the pages where the walk `own` will look for the keys of the changed row `j`."""
    frames, depths, parts = own.frames, own.depths, own.parts
    for e in range(depth):
        for p in range(depths[e, PART_LO], depths[e, PART_HI]):
            if frames[parts[p], LEVEL] == 0:
                ask_for(mem, frames[parts[p]], changes[at + e * m + j])


@kernel
def _join_variant(mem, own, changes, deltas, v, kind, depth, each, out, state, share, shares, budget):
    """Walk what a share of the changed rows of one variant derives; its walk `own` is over the versions of one side."""
    n, m, plain = len(own.depths), deltas[v, COUNT], is_plain(own)
    at, control, regs = deltas[v, AT], own.control, own.regs
    state[ROW] = max(state[ROW], m * share // shares)
    end = m * (share + 1) // shares
    last = state[ROW] + ROWS_AT_ONCE
    control[UNTIL] = n
    while state[ROW] < end:
        j = state[ROW]
        if not state[UNDER_WAY]:
            if j >= last:
                return PAUSED
            if not _begins(changes, deltas, v, j, kind, depth, each):
                state[ROW] += 1
                continue
            if depth == n and control[WRITTEN] >= out.shape[1]:
                return FULL
            stopped = HOLDS
            for e in range(depth):
                if plain:
                    regs[e] = changes[at + e * m + j]
                elif stopped == HOLDS:
                    stopped = admit(own, e, changes[at + e * m + j])
            if stopped > FAILS:
                return ERROR + stopped
            if j + AHEAD < m:
                _ask_for(mem, own, changes, at, m, j + AHEAD, depth)
            if stopped == FAILS or not place(mem, own.frames, own, depth):
                state[ROW] += 1
                continue
            if depth == n:
                write_row(own, out)
                state[ROW] += 1
                continue
            for e in range(depth):
                forget(own, e)
            control[DEPTH], control[ENTER], control[STAY] = depth, OPENING, depth - 1
            state[UNDER_WAY] = 1
        status = triejoin(mem, own, out, budget)
        if status != FINISHED:
            return status
        state[UNDER_WAY] = 0
        state[ROW] += 1
    return FINISHED


@kernel
def _begin(walk, old, new, roots, state):
    """Forget the last change."""
    for f in range(len(old)):
        order = roots[ORDER, f]
        if order >= 0:
            old[f, ROOT], new[f, ROOT] = roots[0, order], roots[1, order]
        old[f, OPENED], new[f, OPENED] = 0, 0
    walk.control[STEPS], walk.control[LANDED], walk.control[WRITTEN] = 0, 0, 0
    walk.cell[NO_VALUE] = 0.0
    for i in range(STATE):
        state[i] = 0
    state[BEGUN] = 1


@kernel
def join_changed(mem, walk, old, new, roots, spans, places, changes, deltas, out, state, share, shares, budget):
    """Write the derivations that go and come to `out` int64[h, n], those of one side after the other.

    `walk`: all variants behind each other · `old`, `new`: its frames over the versions before and after: with
    `state[BEGUN]` 0 they are placed on the `roots` int64[3, f], and all begins · `roots`, `spans` int64[v + 1, SPAN],
    `places`, `changes`, `deltas` int64[v, 3]: above. A row of output is the head's and then every
    variable of the clause. Of the changed rows of each variant those of one share are walked, `share` of `shares` that
    are about equal: (0, 1) is all of them. FULL: the caller takes the `control[WRITTEN]` rows out of `out`, the first
    `state[BEFORE]` of which are of the side before, and sets these two and `state[CHECKED]` to 0. FINISHED: it takes
    them, and that is all. PAUSED and ERROR + status: as `triejoin`.
    """
    control = walk.control
    if state[BEGUN] == 0:
        _begin(walk, old, new, roots, state)
    while state[SIDE] < 2:
        kind = -1 if state[SIDE] == 0 else 1
        frames = old if state[SIDE] == 0 else new
        while state[VARIANT] < len(deltas):
            v = state[VARIANT]
            lo, hi = spans[v], spans[v + 1]
            status = FINISHED
            if deltas[v, COUNT] > 0:
                own = Walk(
                    frames[lo[FRAMES] : hi[FRAMES]],
                    walk.depths[lo[DEPTHS] : hi[DEPTHS]],
                    walk.parts[lo[PARTS] : hi[PARTS]],
                    walk.moves[lo[MOVES] : hi[MOVES]],
                    walk.bounds[lo[BOUNDS] : hi[BOUNDS]],
                    walk.blocks[lo[BLOCKS] : hi[BLOCKS]],
                    walk.code[lo[CODE] : hi[CODE]],
                    walk.regs[lo[REGS] : hi[REGS]],
                    walk.head[lo[HEAD] : hi[HEAD]],
                    walk.ranks,
                    control,
                    walk.cell,
                    walk.memo,
                )
                sign = -kind if lo[NEGATED] else kind
                each = lo[NUMBER] >= 0
                status = _join_variant(
                    mem, own, changes, deltas, v, sign, lo[BOUND], each, out, state, share, shares, budget
                )
                if lo[EARLIER] > 0 and control[WRITTEN] > state[CHECKED]:
                    control[WRITTEN] = _drop_earlier(
                        changes, deltas, spans, places, v, kind, out, state[CHECKED], control[WRITTEN]
                    )
                state[CHECKED] = control[WRITTEN]
                if state[SIDE] == 0:
                    state[BEFORE] = control[WRITTEN]
            if status == FULL and control[WRITTEN] < out.shape[1]:
                continue
            if status != FINISHED:
                return status
            state[VARIANT], state[ROW] = v + 1, 0
        state[SIDE], state[VARIANT] = state[SIDE] + 1, 0
    return FINISHED
