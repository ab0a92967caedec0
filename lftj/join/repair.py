"""Repair: the part of a node's leapfrog join that differs is run again, in the old version and in the new.

From a state that a change concerns, both leapfrog joins are resumed. Always the one that is behind takes the next step
(both, where they are level), until they stand in the same state again: from there on they agree, up to the next
concerned state of the node. Old steps take their records out of the trace, new ones bring theirs in. A key that only
the old one matched is a task for the old trace (its subtree goes), one that only the new one matched is a task for the
new; a key both matched is none. Progress (candidate, agree) grows with every step, so a node is done in one pass.

At any time each side has at most one match that the other has not decided on: the other side is never more than a match
behind.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 4.1.
"""

from __future__ import annotations

from lftj.join.change_oracle import ERROR, NEW, OLD, write_task
from lftj.join.expression_vm import FAILS, HOLDS
from lftj.join.join_state import BOUND_HI, BOUND_LO, HIGH, NEG_HI, PART_HI, PART_LO
from lftj.join.leapfrog import bound_node, note_looks
from lftj.join.reposition import admit, admit_above, blocked, is_plain, place
from lftj.join.trie import DONE, KEY, KEY_MAX, LEVEL, OPENED, ask_for_key, open_, seek
from scantree._jit import inlined, kernel
from sensitivity.records import has_room, note, open_site

# Statuses; larger ones are those of the machine plus ERROR.
FINISHED, FULL, PAUSED, CROWDED = 0, 1, 2, 4
# Cells of `state`: the number of the concerned state, the phase, tasks written, steps taken, whether the node lives,
# how far it is repaired; per side, from OLD_AT and NEW_AT on: candidate, turn, agree, alive, whether a match waits, its
# key
AT, PHASE, TASKS, STEPS, LIVES, TO_CANDIDATE, TO_AGREE, SINCE = range(8)
OLD_AT, NEW_AT = 8, 16
CAND, TURN, AGREE, ALIVE, WAITS, MATCH = range(6)
STATE = 24
NEXT, LEAPING = 0, 1
# States between the one under repair and the one whose pages are asked for
AHEAD = 4


@kernel
def sort_states(states, order, spare, n):
    """`order` int64[n]: the rows of `states` int64[n, w] in lexicographic order; `spare` int64[n]: scratch.

    A merge sort from the bottom up that copies runs already in order: what comes site by site mostly is.
    """
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        lo = 0
        while lo < n:
            mid, hi = min(lo + width, n), min(lo + 2 * width, n)
            if mid < hi and _less(states, order[mid], order[mid - 1]):
                a, b = lo, mid
                for k in range(lo, hi):
                    if b >= hi or (a < mid and not _less(states, order[b], order[a])):
                        spare[k] = order[a]
                        a += 1
                    else:
                        spare[k] = order[b]
                        b += 1
                for k in range(lo, hi):
                    order[k] = spare[k]
            lo = hi
        width *= 2


@inlined
def _less(states, x, y):
    """Whether row `x` of `states` comes before row `y`."""
    for w in range(states.shape[1]):
        if states[x, w] != states[y, w]:
            return states[x, w] < states[y, w]
    return False


@kernel
def same_row(rows, x, y, lo, hi):
    """Whether `rows[x]` and `rows[y]` agree in the columns from `lo` to before `hi`."""
    same = True
    for w in range(lo, hi):
        same &= rows[x, w] == rows[y, w]
    return same


@kernel
def _open_side(mem, frames, walk, trace, d):
    """Open the participants of depth `d` in one version; its sites enter the node."""
    for s in range(walk.depths[d, PART_LO], walk.depths[d, PART_HI]):
        f = walk.parts[s]
        frames[f, OPENED] = 0
        open_(mem, frames, f)
        open_site(trace, s, walk.regs)
    for s in range(walk.depths[d, PART_HI], walk.depths[d, NEG_HI]):
        open_site(trace, s, walk.regs)


@kernel
def _decide(mem, frames, walk, tasks, state, side, d):
    """The match that waits on `side` is that side's alone: a task, if the rule admits it there.

    Returns the machine's status.
    """
    at = OLD_AT if side == OLD else NEW_AT
    state[at + WAITS] = 0
    walk.regs[d] = state[at + MATCH]
    stopped = HOLDS if is_plain(walk) else admit(walk, d, state[at + MATCH])
    if stopped == HOLDS and not blocked(mem, frames, walk, d):
        write_task(walk, tasks, state[TASKS], side, d + 1)
        state[TASKS] += 1
    return stopped


@inlined
def _step(mem, frames, walk, trace, tasks, state, side, d):
    """One step of one side; its record is noted, a match is set off against the other side's or waits for it.

    Returns the machine's status.
    """
    at, other = (OLD_AT, NEW_AT) if side == OLD else (NEW_AT, OLD_AT)
    lo, m = walk.depths[d, PART_LO], walk.depths[d, PART_HI] - walk.depths[d, PART_LO]
    c, i, agree = state[at + CAND], state[at + TURN], state[at + AGREE]
    f = walk.parts[lo + i]
    note(trace, lo + i, c, agree)
    state[STEPS] += 1
    if frames[f, DONE] == 0 and frames[f, KEY] < c:
        seek(mem, frames, f, c)
    if frames[f, DONE] or frames[f, KEY] > walk.depths[d, HIGH]:
        state[at + ALIVE] = 0
        return HOLDS
    h = frames[f, KEY]
    agree = agree + 1 if h == c else 1
    i = i + 1 if i + 1 < m else 0
    stopped = HOLDS
    if agree == m:
        if walk.depths[d, PART_HI] < walk.depths[d, NEG_HI]:
            walk.regs[d] = h
            stopped = HOLDS if is_plain(walk) else admit(walk, d, h)
            if stopped == HOLDS:
                note_looks(walk, trace, d, h)
        if state[other + WAITS] and state[other + MATCH] == h:
            state[other + WAITS] = 0
        else:
            if state[at + WAITS] and stopped <= FAILS:
                stopped = _decide(mem, frames, walk, tasks, state, side, d)
            state[at + WAITS], state[at + MATCH] = 1, h
        agree = 0
        if h == KEY_MAX:
            state[at + ALIVE] = 0
        else:
            h += 1
    state[at + CAND], state[at + TURN], state[at + AGREE] = h, i, agree
    return stopped


@inlined
def _behind(state, x, y):
    """Whether side `x` is behind side `y`, or level with it; a side that has ended is ahead of all."""
    if state[x + ALIVE] == 0 or state[y + ALIVE] == 0:
        return state[y + ALIVE] == 0
    if state[x + CAND] != state[y + CAND]:
        return state[x + CAND] < state[y + CAND]
    return state[x + AGREE] <= state[y + AGREE]


@inlined
def _level(state):
    """Whether both sides stand in the same state."""
    if state[OLD_AT + ALIVE] == 0 or state[NEW_AT + ALIVE] == 0:
        return state[OLD_AT + ALIVE] == state[NEW_AT + ALIVE]
    return (
        state[OLD_AT + CAND] == state[NEW_AT + CAND]
        and state[OLD_AT + TURN] == state[NEW_AT + TURN]
        and state[OLD_AT + AGREE] == state[NEW_AT + AGREE]
    )


@kernel
def _enter(mem, old, new, walk, old_trace, new_trace, states, row, state):
    """Enter the node of concerned state `row`: LIVES if its binding is present before and after.

    Returns the machine's status.
    """
    n, d = len(walk.depths), states[row, 0]
    for e in range(d):
        walk.regs[e] = states[row, 1 + e]
    state[LIVES] = 0
    stopped = HOLDS if is_plain(walk) else admit_above(walk, d)
    if stopped > FAILS:
        return stopped
    if stopped == HOLDS and n > 0 and place(mem, new, walk, d) and place(mem, old, walk, d):
        walk.depths[d, HIGH] = KEY_MAX
        if walk.depths[d, BOUND_LO] < walk.depths[d, BOUND_HI]:
            bound_node(walk, d)
        _open_side(mem, old, walk, old_trace, d)
        _open_side(mem, new, walk, new_trace, d)
        state[LIVES] = 1
    return HOLDS


@kernel
def _look_ahead(mem, frames, walk, states, row):
    """Ask for the pages that the participants without a prefix will resume state `row` in."""
    d, start = states[row, 0], states[row, len(walk.depths) + 1]
    for s in range(walk.depths[d, PART_LO], walk.depths[d, PART_HI]):
        if frames[walk.parts[s], LEVEL] == 0:
            ask_for_key(mem, frames, walk.parts[s], start)


@kernel
def repair(mem, old, new, walk, old_trace, new_trace, states, order, n_states, tasks, state, budget):
    """Resume the concerned `states`, in their `order`, until all are repaired; goes on from where `state` says.

    `old`, `new`: frames over the versions before and after. Records that go are written to `old_trace`, those that come
    to `new_trace` (CROWDED when one has no room), tasks to `tasks` from `state[TASKS]` on (FULL); PAUSED after about
    `budget` steps.
    """
    n = len(walk.depths)
    stop = state[STEPS] + budget
    while True:
        if state[PHASE] == NEXT:
            if state[AT] == n_states:
                return FINISHED
            if state[STEPS] >= stop:
                return PAUSED
            row = order[state[AT]]
            if state[AT] + AHEAD < n_states:
                _look_ahead(mem, new, walk, states, order[state[AT] + AHEAD])
            start, agree = states[row, n + 1], states[row, n + 2]
            if state[AT] == 0 or not same_row(states, row, order[state[AT] - 1], 0, n + 1):
                state[STEPS] += 1
                stopped = _enter(mem, old, new, walk, old_trace, new_trace, states, row, state)
                if stopped > FAILS:
                    return ERROR + stopped
            elif state[LIVES] and (
                start < state[TO_CANDIDATE] or (start == state[TO_CANDIDATE] and agree < state[TO_AGREE])
            ):
                state[AT] += 1
                continue
            if not state[LIVES]:
                state[AT] += 1
                continue
            for at in (OLD_AT, NEW_AT):
                state[at + CAND], state[at + TURN], state[at + AGREE] = start, states[row, n + 3], agree
                state[at + ALIVE], state[at + WAITS] = 1, 0
            state[PHASE], state[SINCE] = LEAPING, state[STEPS]
        row = order[state[AT]]
        d = states[row, 0]
        lo, hi, end = walk.depths[d, PART_LO], walk.depths[d, PART_HI], walk.depths[d, NEG_HI]
        status = FINISHED
        while state[SINCE] == state[STEPS] or not _level(state):
            if state[TASKS] + 4 > len(tasks):
                status = FULL
                break
            if not has_room(old_trace, lo, end) or not has_room(new_trace, lo, end):
                status = CROWDED
                break
            if state[STEPS] >= stop:
                status = PAUSED
                break
            old_turn, new_turn = _behind(state, OLD_AT, NEW_AT), _behind(state, NEW_AT, OLD_AT)
            stopped = HOLDS
            if old_turn and state[OLD_AT + ALIVE]:
                stopped = _step(mem, old, walk, old_trace, tasks, state, OLD, d)
            if stopped <= FAILS and new_turn and state[NEW_AT + ALIVE]:
                stopped = _step(mem, new, walk, new_trace, tasks, state, NEW, d)
            if stopped > FAILS:
                status = ERROR + stopped
                break
        if status != FINISHED:
            return status
        if state[TASKS] + 2 > len(tasks):
            return FULL
        for side in (OLD, NEW):
            if state[(OLD_AT if side == OLD else NEW_AT) + WAITS]:
                stopped = _decide(mem, old if side == OLD else new, walk, tasks, state, side, d)
                if stopped > FAILS:
                    return ERROR + stopped
        if state[OLD_AT + ALIVE]:
            state[TO_CANDIDATE], state[TO_AGREE] = state[OLD_AT + CAND], state[OLD_AT + AGREE]
        else:
            state[TO_CANDIDATE], state[TO_AGREE] = KEY_MAX, hi - lo
        state[PHASE] = NEXT
        state[AT] += 1
