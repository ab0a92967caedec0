"""Leapfrog triejoin as one generic kernel: a plan (arrays) goes in, rows or a count come out.

**The walk.** Depth d of the walk binds variable d of the key order. The atoms that hold it, its participants, each
offer the sorted keys under their own prefix, and a leapfrog join finds the keys they agree on. A match goes one depth
down; an exhausted depth goes one up. At the last depth a match is a row.

**Canonical state.** The leapfrog join of a node is in state (candidate c, turn i, agree a). One step: participant i
seeks c and lands on h. If h = c one more agrees, else a = 1 and c = h. All agreeing is a match, after which the next
participant seeks h + 1 with nothing agreed. The end of any participant ends the node. A node begins with its
participants opened: with two or more, the first one's key is the candidate already (the landing counts as the node's
opening, not as a step, as in the paper's leapfrog-init). The steps from a state depend on nothing but the state and
the key sets (design.md section 5; Leapfrog Triejoin, section 3).

**Kinds of depth.** JOIN is the above; comparisons of its variable with registers narrow it to a range of keys before
the first step. VALUE has its one candidate computed from registers (constants, repeated variables, `z = x + y`);
participants, if any, must hold it. After a match at any depth its code runs (filters and derived registers,
machine.py).

**Counting without enumerating.** Where the variables below a binding fall into groups that share no atom and no
filter, their counts multiply: the plan cuts the depths into *blocks*, a chain of depths each, with child blocks that
are counted one after the other under each binding of the chain. For rows there is one block. A last depth with one
participant counts its run without walking it.

**Existential suffix.** Depths from `until` on do not reach the head: the first row found below a binding of the head
sends the walk back to it.

The kernel can stop anywhere between two nodes and go on later, since all its state is in its arguments: when `out` is
full, and when `budget` steps are spent, so that the caller can look at signals, clocks and limits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join.machine import FAILS, HOLDS, run_code
from lftj.join.trie import (
    BASE,
    DONE,
    END,
    KEY,
    KEY_MAX,
    KEY_MIN,
    LAST_SLOT,
    POS,
    SLOT,
    UNIQUE,
    forward,
    look_ahead,
    next_,
    open_,
    run_length,
    seek,
    up,
)
from scantree._jit import inlined, kernel

Ints = npt.NDArray[np.int64]

# fmt: off
# Statuses of `triejoin`; larger ones are those of the machine plus ERROR.
FINISHED, FULL, PAUSED, OVERFLOW, ERROR = 0, 1, 2, 3, 16
# Columns of `depths`: static
KIND, PART_LO, PART_HI, MOVE_LO, MOVE_HI, VALUE_LO, VALUE_HI, CODE_LO, CODE_HI = range(9)
BLOCK, FIRST, LEAF, CHILD, AHEAD, FOLLOWS, FUSED, BOUND_LO, BOUND_HI = range(9, 18)
# ... and of the walk
CANDIDATE, TURN, AGREE, MATCHES, HIGH = 18, 19, 20, 21, 22
DEPTH_WIDTH = 24
JOIN, VALUE = 0, 1
# Kinds of `bounds`
FROM_LIMIT, ABOVE_LIMIT, TO_LIMIT, BELOW_LIMIT = 0, 1, 2, 3
# Outcomes of `_last_two`; the depth to go on with is d + outcome
LEAF_DONE, LEAF_FULL, NODE_DONE = 0, 1, 2

# Columns of `blocks`: static, then the walk's
PARENT, TOP, SIBLING, COUNT, PRODUCT = 0, 1, 2, 3, 4
BLOCK_WIDTH = 5
# Cells of `control`
DEPTH, ENTER, STEPS, OPENS, LANDED, WRITTEN, UNTIL, COUNTING = range(8)
CONTROL = 16
# fmt: on


class Walk(NamedTuple):
    """Everything a walk reads and writes.

    frames int64[f, trie.WIDTH] · depths int64[n, DEPTH_WIDTH] · parts int64[p]: frames taking part, depth by depth,
    in canonical order · moves int64[q]: frames to forget when the key of a depth moves · bounds int64[l, 2]: (kind,
    register) of comparisons that narrow a depth · blocks int64[b, BLOCK_WIDTH] · code int64[c, 4] and regs int64[r]:
    machine.py · head int64[h]: registers of the output columns · ranks int64[s]: text order of symbols · control
    int64[CONTROL] · cell float64[1].
    """

    frames: Ints
    depths: Ints
    parts: Ints
    moves: Ints
    bounds: Ints
    blocks: Ints
    code: Ints
    regs: Ints
    head: Ints
    ranks: Ints
    control: Ints
    cell: npt.NDArray[np.float64]


@kernel
def _bound_node(walk, d):
    """Narrow the keys of a node to those its comparisons with registers allow: [CANDIDATE, HIGH].

    False if there are none.
    """
    depths, bounds, regs = walk.depths, walk.bounds, walk.regs
    low, high = KEY_MIN, KEY_MAX
    for i in range(depths[d, BOUND_LO], depths[d, BOUND_HI]):
        kind, limit = bounds[i, 0], regs[bounds[i, 1]]
        if kind == ABOVE_LIMIT:
            if limit == KEY_MAX:
                return False
            limit += 1
        elif kind == BELOW_LIMIT:
            if limit == KEY_MIN:
                return False
            limit -= 1
        if kind == ABOVE_LIMIT or kind == FROM_LIMIT:
            low = max(low, limit)
        else:
            high = min(high, limit)
    depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE], depths[d, HIGH] = low, 0, 0, high
    return low <= high


@inlined
def _open_node(mem, walk, d):
    """Open every participant of depth d and bound its keys; False if there can be no match."""
    depths, parts, frames = walk.depths, walk.parts, walk.frames
    lo, hi = depths[d, PART_LO], depths[d, PART_HI]
    for i in range(lo, hi):
        if not open_(mem, frames, parts[i]):
            return False
    walk.control[OPENS] += 1
    walk.control[LANDED] += hi - lo
    depths[d, HIGH] = KEY_MAX
    if depths[d, BOUND_LO] < depths[d, BOUND_HI]:
        if not _bound_node(walk, d):
            return False
    elif hi - lo > 1:
        depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = frames[parts[lo], KEY], 1, 1
    else:
        depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = KEY_MIN, 0, 0
    return True


@inlined
def _leap(mem, walk, d):
    """Steps of the leapfrog join at depth d until the next match (True) or the end (False)."""
    depths, parts, frames, control = walk.depths, walk.parts, walk.frames, walk.control
    lo, m = depths[d, PART_LO], depths[d, PART_HI] - depths[d, PART_LO]
    c, i, agree, high = depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE], depths[d, HIGH]
    steps = 0
    found = False
    while True:
        f = parts[lo + i]
        steps += 1
        if frames[f, KEY] < c:
            if m == 1 and frames[f, KEY] + 1 == c:
                next_(mem, frames, f)
            else:
                seek(mem, frames, f, c)
        if frames[f, DONE] or frames[f, KEY] > high:
            break
        h = frames[f, KEY]
        agree = agree + 1 if h == c else 1
        c = h
        i = i + 1 if i + 1 < m else 0
        if agree == m:
            found = True
            break
    control[STEPS] += steps
    depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = c, i, agree
    return found


@inlined
def _past_match(walk, d):
    """The state after a match at depth d; False if no key can follow."""
    depths = walk.depths
    if depths[d, CANDIDATE] == KEY_MAX:
        return False
    depths[d, CANDIDATE] += 1
    depths[d, AGREE] = 0
    return True


@inlined
def _value_matches(mem, walk, d, value):
    """Whether all participants of a VALUE depth hold `value`."""
    depths, parts, frames, control = walk.depths, walk.parts, walk.frames, walk.control
    for i in range(depths[d, PART_LO], depths[d, PART_HI]):
        f = parts[i]
        control[STEPS] += 1
        if not open_(mem, frames, f):
            return False
        seek(mem, frames, f, value)
        if frames[f, DONE] or frames[f, KEY] != value:
            return False
    return True


@kernel
def _cross(mem, frames, f, c):
    """Look for `c` beyond the page the frame stands in, whose part of the run is used up.

    False at the end of the run.
    """
    if frames[f, SLOT] == frames[f, LAST_SLOT]:
        return False
    frames[f, POS] = frames[f, END] - 1
    frames[f, KEY] = mem[frames[f, BASE] + frames[f, POS]]
    seek(mem, frames, f, c)
    return frames[f, DONE] == 0


@inlined
def _pair_leaf(mem, walk, d, out, limit):
    """The last depth with two participants, from its present state: count matches, or write up to `limit` rows.

    The same steps as `_leap`, with both participants in local variables. Returns True when the node is done.
    """
    depths, parts, frames, control, regs, head = (
        walk.depths,
        walk.parts,
        walk.frames,
        walk.control,
        walk.regs,
        walk.head,
    )
    writing = control[COUNTING] == 0
    lo, turn = depths[d, PART_LO], depths[d, TURN]
    c, agree, high = depths[d, CANDIDATE], depths[d, AGREE], depths[d, HIGH]
    x, y = parts[lo + turn], parts[lo + 1 - turn]
    px, ex = np.uint64(frames[x, BASE] + frames[x, POS]), np.uint64(frames[x, BASE] + frames[x, END])
    py, ey = np.uint64(frames[y, BASE] + frames[y, POS]), np.uint64(frames[y, BASE] + frames[y, END])
    written = control[WRITTEN]
    steps, matches = 0, 0
    done = True
    while True:
        if matches == limit:
            done = False
            break
        steps += 1
        px = forward(mem, px, ex, c)
        if px == ex:
            if not _cross(mem, frames, x, c):
                break
            px, ex = np.uint64(frames[x, BASE] + frames[x, POS]), np.uint64(frames[x, BASE] + frames[x, END])
        h = mem[px]
        if h > high:
            break
        if h == c and agree == 1:
            matches += 1
            if writing:
                for k in range(len(head)):
                    out[k, written] = regs[head[k]] if head[k] != d else h
                written += 1
            if h == KEY_MAX:
                break
            c = h + 1
            agree = 0
        else:
            c = h
            agree = 1
        x, y = y, x
        px, py = py, px
        ex, ey = ey, ex
    control[STEPS] += steps
    control[WRITTEN] = written
    depths[d, MATCHES] += matches
    walk.blocks[depths[d, BLOCK], COUNT] += matches
    if not done:
        frames[x, POS], frames[y, POS] = np.int64(px) - frames[x, BASE], np.int64(py) - frames[y, BASE]
        depths[d, CANDIDATE], depths[d, AGREE], depths[d, TURN] = c, agree, 0 if x == parts[lo] else 1
    return done


@inlined
def _forget(walk, d):
    """The key of depth d moves: runs below it are stale."""
    depths, moves, frames = walk.depths, walk.moves, walk.frames
    for i in range(depths[d, MOVE_LO], depths[d, MOVE_HI]):
        up(frames, moves[i])


@inlined
def _leap_pair(mem, walk, d):
    """`_leap` for two participants, a turn of each per round.

    Every branch has its own place in the code, which is what predictors need.
    """
    depths, parts, frames, control = walk.depths, walk.parts, walk.frames, walk.control
    lo, turn = depths[d, PART_LO], depths[d, TURN]
    c, agree, high = depths[d, CANDIDATE], depths[d, AGREE], depths[d, HIGH]
    x, y = parts[lo + turn], parts[lo + 1 - turn]
    steps = 0
    found = False
    while True:
        steps += 1
        if frames[x, KEY] < c:
            seek(mem, frames, x, c)
            if frames[x, DONE]:
                break
        h = frames[x, KEY]
        if h > high:
            break
        if h == c and agree == 1:
            found, turn = True, 1 - turn
            break
        c = h
        steps += 1
        if frames[y, KEY] < c:
            seek(mem, frames, y, c)
            if frames[y, DONE]:
                break
        h = frames[y, KEY]
        if h > high:
            break
        if h == c:
            found = True
            break
        c, agree = h, 1
    control[STEPS] += steps
    depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = c, turn, 2
    return found


@inlined
def _last_two(mem, walk, d, out, stop):
    """Walk the last two depths, d and d + 1, from a state of depth d that seeks its next match.

    Both have two participants and no code. This is what the walk below would do, without its bookkeeping per match of
    depth d. Returns NODE_DONE when depth d is exhausted, LEAF_FULL when `out` is full inside a leaf, LEAF_DONE when
    steps or room are used up between two leaves.
    """
    depths, frames, control = walk.depths, walk.frames, walk.control
    counting = control[COUNTING] != 0
    room = out.shape[1]
    ahead, follows = depths[d, AHEAD], depths[d, FOLLOWS]
    while _leap_pair(mem, walk, d):
        walk.regs[d] = depths[d, CANDIDATE]
        depths[d, MATCHES] += 1
        _forget(walk, d)
        if ahead >= 0:
            look_ahead(mem, frames, ahead, follows)
        if _open_node(mem, walk, d + 1) and not _pair_leaf(
            mem, walk, d + 1, out, np.int64(-1) if counting else room - control[WRITTEN]
        ):
            return LEAF_FULL
        if control[STEPS] >= stop or (not counting and control[WRITTEN] >= room):
            return LEAF_DONE
        if not _past_match(walk, d):
            break
    return NODE_DONE


@kernel
def _count_run(mem, walk, d):
    """Keys of a depth with one participant, unwalked: the length of its run between the node's bounds."""
    depths, frames = walk.depths, walk.frames
    f = walk.parts[depths[d, PART_LO]]
    if depths[d, CANDIDATE] > KEY_MIN:
        seek(mem, frames, f, depths[d, CANDIDATE])
        if frames[f, DONE]:
            return 0
    length = run_length(mem, frames, f)
    if depths[d, HIGH] < KEY_MAX:
        seek(mem, frames, f, depths[d, HIGH] + 1)
        if not frames[f, DONE]:
            length -= run_length(mem, frames, f)
    return length


@inlined
def _row(walk, out):
    """One row of output, from the registers."""
    regs, head, control = walk.regs, walk.head, walk.control
    n = control[WRITTEN]
    for k in range(len(head)):
        out[k, n] = regs[head[k]]
    control[WRITTEN] = n + 1


@kernel
def triejoin(mem, walk, out, budget):
    """Walk on from the state `walk` is in.

    Stops at the end (FINISHED), when `out` int64[h, n] is full (FULL) or when about `budget` steps are made (PAUSED). A
    count is left in `blocks[0, COUNT]`, rows in `out[:, : control[WRITTEN]]`; the caller empties `out` and sets WRITTEN
    to 0 before it calls again. OVERFLOW: a count exceeds int64. ERROR + s: the machine stopped with status s.
    """
    depths, parts, frames, blocks, control, regs = (
        walk.depths,
        walk.parts,
        walk.frames,
        walk.blocks,
        walk.control,
        walk.regs,
    )
    counting = control[COUNTING] != 0
    room = out.shape[1]
    d, enter = control[DEPTH], control[ENTER] != 0
    until = control[UNTIL]
    stop = control[STEPS] + budget
    status = FINISHED
    while d >= 0:
        if control[STEPS] >= stop:
            status = PAUSED
            break
        if not counting and control[WRITTEN] >= room:
            status = FULL
            break
        matched = False
        if depths[d, KIND] == JOIN:
            alive = _open_node(mem, walk, d) if enter else True
            if alive and depths[d, LEAF] and depths[d, CODE_LO] == depths[d, CODE_HI] and until > d:
                m = depths[d, PART_HI] - depths[d, PART_LO]
                if m == 2:
                    if not _pair_leaf(mem, walk, d, out, np.int64(-1) if counting else room - control[WRITTEN]):
                        enter = False
                        continue
                    alive = False
                elif m == 1 and counting and enter and frames[parts[depths[d, PART_LO]], UNIQUE]:
                    length = _count_run(mem, walk, d)
                    control[STEPS] += 1
                    depths[d, MATCHES] += length
                    blocks[depths[d, BLOCK], COUNT] += length
                    alive = False
            if alive and not enter:
                alive = _past_match(walk, d)
            if alive and depths[d, FUSED]:
                outcome = _last_two(mem, walk, d, out, stop)
                if outcome != NODE_DONE:
                    d += outcome
                    enter = False
                    continue
            elif alive:
                matched = _leap(mem, walk, d)
                regs[d] = depths[d, CANDIDATE]
        elif enter:
            stopped = run_code(walk.code, depths[d, VALUE_LO], depths[d, VALUE_HI], regs, walk.ranks, walk.cell)
            if stopped > FAILS:
                status = ERROR + stopped
                break
            matched = stopped == HOLDS and _value_matches(mem, walk, d, regs[d])
        if matched:
            depths[d, MATCHES] += 1
            _forget(walk, d)
            if depths[d, AHEAD] >= 0:
                look_ahead(mem, frames, depths[d, AHEAD], depths[d, FOLLOWS])
            enter = False
            if depths[d, CODE_LO] < depths[d, CODE_HI]:
                stopped = run_code(walk.code, depths[d, CODE_LO], depths[d, CODE_HI], regs, walk.ranks, walk.cell)
                if stopped > FAILS:
                    status = ERROR + stopped
                    break
                if stopped == FAILS:
                    continue
            if depths[d, LEAF]:
                blocks[depths[d, BLOCK], COUNT] += 1
                if not counting:
                    _row(walk, out)
                if until <= d:
                    d = until - 1
            elif depths[d, CHILD] >= 0:
                child = depths[d, CHILD]
                blocks[depths[d, BLOCK], PRODUCT] = 1
                blocks[child, COUNT] = 0
                d = blocks[child, TOP]
                enter = True
            else:
                d += 1
                enter = True
            continue
        # Depth d is exhausted.
        enter = False
        if not depths[d, FIRST]:
            d -= 1
            continue
        block = depths[d, BLOCK]
        d = blocks[block, PARENT]
        if d < 0:
            break
        outer = depths[d, BLOCK]
        count = blocks[block, COUNT]
        if count == 0:
            continue
        if np.float64(count) * np.abs(np.float64(blocks[outer, PRODUCT])) > 9.2e18:
            blocks[outer, PRODUCT] = KEY_MIN  # too large, which matters only if none of the parts after it is empty
        else:
            blocks[outer, PRODUCT] *= count
        sibling = blocks[block, SIBLING]
        if sibling >= 0:
            blocks[sibling, COUNT] = 0
            d = blocks[sibling, TOP]
            enter = True
        else:
            if np.float64(blocks[outer, COUNT]) + np.abs(np.float64(blocks[outer, PRODUCT])) > 9.2e18:
                status = OVERFLOW
                break
            blocks[outer, COUNT] += blocks[outer, PRODUCT]
    control[DEPTH], control[ENTER] = d, 1 if enter else 0
    return status
