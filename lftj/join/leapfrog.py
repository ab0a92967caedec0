"""One node of the walk: its participants are opened, and its leapfrog join steps from match to match.

**Canonical state.** The leapfrog join of a node is in state (candidate c, turn i, agree a). One step: participant i
seeks c and lands on h. If h = c one more agrees, else a = 1 and c = h. All agreeing is a match, after which the next
participant seeks h + 1 with nothing agreed. The end of any participant ends the node. A node begins with its
participants opened: with two or more, the first one's key is the candidate already (the landing counts as the node's
opening, not as a step, as in the paper's leapfrog-init). The steps from a state depend on nothing but the state and
the key sets (T. Veldhuizen, Leapfrog Triejoin, arXiv 1210.0481, section 3).

**Recording.** `trace` is what the walk records to, or None. Where it records, each step of an INTERVAL depth writes its
record (`sensitivity.records`), the opening one included, and each opened node of a NODE or POINT depth one record per
participant. A negated atom, looked at after a match, writes one per node or, at an INTERVAL depth, one per look. Where
`trace` is None the compiler drops each branch that asks for it before it infers a type, so none of this is compiled.
"""

from __future__ import annotations

import numpy as np

from lftj.join.blocks import add_rows
from lftj.join.join_state import (
    ABOVE_LIMIT,
    AGREE,
    AHEAD,
    BELOW_LIMIT,
    BOUND_HI,
    BOUND_LO,
    CANDIDATE,
    COUNTING,
    FOLLOWS,
    FROM_LIMIT,
    HIGH,
    LANDED,
    MATCHES,
    MOVE_HI,
    MOVE_LO,
    NEG_HI,
    OPENS,
    PART_HI,
    PART_LO,
    STEPS,
    TURN,
    WRITTEN,
)
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
    forward,
    look_ahead,
    next_,
    open_,
    run_length,
    seek,
    up,
)
from scantree._jit import inlined, kernel
from sensitivity.records import GRANULARITY, INTERVAL, NODE, NONE, POINT, ROOM, has_room, note, open_site

# Outcomes of `leap` and `leap_pair`: no match is left, a match, or stopped before a step for want of room.
EXHAUSTED, MATCHED, STOPPED = 0, 1, 2
# Outcomes of `last_two`
LEAF_DONE, LEAF_FULL, NODE_DONE, LEAF_NEXT, NODE_STOPPED = 0, 1, 2, 3, 4


@kernel
def bound_node(walk, d):
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


@kernel
def _note_empty(mem, walk, trace, d, last):
    """Record the steps of a node at depth d whose participant `last` is the first one without keys."""
    frames, parts, c, agree = walk.frames, walk.parts, walk.depths[d, CANDIDATE], 0
    for s in range(walk.depths[d, PART_LO], last):
        note(trace, s, c, agree)
        f = parts[s]
        seek(mem, frames, f, c)
        if frames[f, DONE] or frames[f, KEY] > walk.depths[d, HIGH]:
            return
        agree = agree + 1 if frames[f, KEY] == c else 1
        c = frames[f, KEY]
    note(trace, last, c, agree)


@inlined
def note_node(trace, lo, hi, regs, point, computed):
    """The sites in [lo, hi) enter a node. Those with a record per node write it.

    They are the NODE ones, and, where the node's one key `point` is `computed`, the POINT ones.
    """
    for s in range(lo, hi):
        granularity = trace.sites[s, GRANULARITY]
        if granularity != NONE:
            open_site(trace, s, regs)
            if granularity == NODE or (computed and granularity == POINT):
                note(trace, s, point, 0)


@inlined
def note_looks(walk, trace, d, key):
    """Negated atoms are looked at for the match `key` of depth d, which is not computed: POINT sites record it."""
    for s in range(walk.depths[d, PART_HI], walk.depths[d, NEG_HI]):
        if trace.sites[s, GRANULARITY] == POINT:
            note(trace, s, key, 0)


@inlined
def open_node(mem, walk, trace, d):
    """Open every participant of depth d and bound its keys; False if there can be no match."""
    depths, parts, frames = walk.depths, walk.parts, walk.frames
    lo, hi = depths[d, PART_LO], depths[d, PART_HI]
    if trace is not None:
        note_node(trace, lo, depths[d, NEG_HI], walk.regs, KEY_MIN, False)
    for i in range(lo, hi):
        if not open_(mem, frames, parts[i]):
            if trace is not None and steps_recorded(walk, trace, d):
                depths[d, HIGH], depths[d, CANDIDATE] = KEY_MAX, KEY_MIN
                if depths[d, BOUND_LO] == depths[d, BOUND_HI] or bound_node(walk, d):
                    _note_empty(mem, walk, trace, d, i)
            return False
    walk.control[OPENS] += 1
    walk.control[LANDED] += hi - lo
    depths[d, HIGH] = KEY_MAX
    if depths[d, BOUND_LO] < depths[d, BOUND_HI]:
        if not bound_node(walk, d):
            return False
    elif hi - lo > 1:
        if trace is not None and steps_recorded(walk, trace, d):
            note(trace, lo, KEY_MIN, 0)
        depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = frames[parts[lo], KEY], 1, 1
    else:
        depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = KEY_MIN, 0, 0
    return True


@inlined
def room_for(walk, trace, d):
    """Whether a node of depth d can be opened without running out of room for its records."""
    return has_room(trace, walk.depths[d, PART_LO], walk.depths[d, NEG_HI])


@inlined
def steps_recorded(walk, trace, d):
    """Whether every step of depth d is recorded."""
    return trace.sites[walk.depths[d, PART_LO], GRANULARITY] == INTERVAL


@inlined
def leap(mem, walk, trace, d):
    """Steps of the leapfrog join at depth d until the next match (MATCHED) or the end (EXHAUSTED).

    STOPPED before a step whose record has no room.
    """
    depths, parts, frames, control = walk.depths, walk.parts, walk.frames, walk.control
    lo, m = depths[d, PART_LO], depths[d, PART_HI] - depths[d, PART_LO]
    c, i, agree, high = depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE], depths[d, HIGH]
    noting = trace is not None and steps_recorded(walk, trace, d)
    steps = 0
    outcome = EXHAUSTED
    while True:
        f = parts[lo + i]
        if trace is not None and noting:
            if not has_room(trace, lo + i, lo + i + 1):
                outcome = STOPPED
                break
            note(trace, lo + i, c, agree)
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
            outcome = MATCHED
            break
    control[STEPS] += steps
    depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = c, i, agree
    return outcome


@inlined
def past_match(walk, d):
    """The state after a match at depth d; False if no key can follow."""
    depths = walk.depths
    if depths[d, CANDIDATE] == KEY_MAX:
        return False
    depths[d, CANDIDATE] += 1
    depths[d, AGREE] = 0
    return True


@inlined
def value_matches(mem, walk, trace, d, value):
    """Whether all participants of a VALUE depth hold `value`."""
    depths, parts, frames, control = walk.depths, walk.parts, walk.frames, walk.control
    if trace is not None:
        note_node(trace, depths[d, PART_LO], depths[d, NEG_HI], walk.regs, value, True)
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
def cross(mem, frames, f, c):
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
def pair_leaf(mem, walk, trace, d, out, limit):
    """The last depth with two participants, from its present state: count matches, or write up to `limit` rows.

    The same steps as `leap`, with both participants in local variables. Returns True when the node is done;
    False when `limit` matches are made or the next step's record has no room.
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
    noting = trace is not None and steps_recorded(walk, trace, d)
    sx, sy = lo + turn, lo + 1 - turn
    steps, matches = 0, 0
    done = True
    while True:
        if matches == limit or (trace is not None and noting and trace.fills[sx] >= trace.sites[sx, ROOM]):
            done = False
            break
        if trace is not None and noting:
            note(trace, sx, c, agree)
        steps += 1
        px = forward(mem, px, ex, c)
        if px == ex:
            if not cross(mem, frames, x, c):
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
        sx, sy = sy, sx
        px, py = py, px
        ex, ey = ey, ex
    control[STEPS] += steps
    control[WRITTEN] = written
    depths[d, MATCHES] += matches
    add_rows(walk, d, matches)
    if not done:
        frames[x, POS], frames[y, POS] = np.int64(px) - frames[x, BASE], np.int64(py) - frames[y, BASE]
        depths[d, CANDIDATE], depths[d, AGREE], depths[d, TURN] = c, agree, 0 if x == parts[lo] else 1
    return done


@inlined
def forget(walk, d):
    """The key of depth d moves: runs below it are stale."""
    depths, moves, frames = walk.depths, walk.moves, walk.frames
    for i in range(depths[d, MOVE_LO], depths[d, MOVE_HI]):
        up(frames, moves[i])


@inlined
def leap_pair(mem, walk, trace, d):
    """`leap` for two participants, a turn of each per round.

    Every branch has its own place in the code, which is what predictors need.
    """
    depths, parts, frames, control = walk.depths, walk.parts, walk.frames, walk.control
    lo, turn = depths[d, PART_LO], depths[d, TURN]
    c, agree, high = depths[d, CANDIDATE], depths[d, AGREE], depths[d, HIGH]
    x, y = parts[lo + turn], parts[lo + 1 - turn]
    noting = trace is not None and steps_recorded(walk, trace, d)
    steps = 0
    outcome = EXHAUSTED
    while True:
        if trace is not None and noting:
            if not has_room(trace, lo, lo + 2):
                outcome = STOPPED
                break
            note(trace, lo + turn, c, agree)
        steps += 1
        if frames[x, KEY] < c:
            seek(mem, frames, x, c)
            if frames[x, DONE]:
                break
        h = frames[x, KEY]
        if h > high:
            break
        if h == c and agree == 1:
            outcome, turn, agree = MATCHED, 1 - turn, 2
            break
        c = h
        if trace is not None and noting:
            note(trace, lo + 1 - turn, c, 1)
        steps += 1
        if frames[y, KEY] < c:
            seek(mem, frames, y, c)
            if frames[y, DONE]:
                break
        h = frames[y, KEY]
        if h > high:
            break
        if h == c:
            outcome, agree = MATCHED, 2
            break
        c, agree = h, 1
    control[STEPS] += steps
    depths[d, CANDIDATE], depths[d, TURN], depths[d, AGREE] = c, turn, agree
    return outcome


@inlined
def last_two(mem, walk, trace, d, out, stop):
    """Walk the last two depths, d and d + 1, from a state of depth d that seeks its next match.

    Both have two participants and no code. This is what the walk would do, without its bookkeeping per match of depth
    d. Returns NODE_DONE when depth d is exhausted; LEAF_FULL inside a leaf, LEAF_DONE after one, when steps or room are
    used up; LEAF_NEXT at a match whose leaf has no room to record, NODE_STOPPED before such a step of depth d.
    """
    depths, frames, control = walk.depths, walk.frames, walk.control
    counting = control[COUNTING] != 0
    room = out.shape[1]
    ahead, follows = depths[d, AHEAD], depths[d, FOLLOWS]
    while True:
        outcome = leap_pair(mem, walk, trace, d)
        if outcome != MATCHED:
            return NODE_DONE if outcome == EXHAUSTED else NODE_STOPPED
        walk.regs[d] = depths[d, CANDIDATE]
        depths[d, MATCHES] += 1
        forget(walk, d)
        if ahead >= 0:
            look_ahead(mem, frames, ahead, follows)
        if trace is not None and not room_for(walk, trace, d + 1):
            return LEAF_NEXT
        if open_node(mem, walk, trace, d + 1) and not pair_leaf(
            mem, walk, trace, d + 1, out, np.int64(-1) if counting else room - control[WRITTEN]
        ):
            return LEAF_FULL
        if control[STEPS] >= stop or (not counting and control[WRITTEN] >= room):
            return LEAF_DONE
        if not past_match(walk, d):
            return NODE_DONE


@kernel
def count_run(mem, walk, d):
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
