"""What a change concerns: from tree surgeries to the parts of a trace that have to be looked at again.

The surgeries of every changed relation are matched, site by site (a site is one participant of one depth, or a negated
atom looked at there), with the nodes that looked at the changed branch: for NONE the branch itself names the node, for
NODE and POINT every record of its prefix names one, and then the question is only whether the changed key is in the
sets of all other participants, before (an erased key) or after (an inserted one). A node whose matches change so
becomes a *task*: the subtree below the match is to be enumerated, in the old trace or in the new one. For INTERVAL each
record found is a *state* from which the leapfrog join of its node is to be resumed (`lftj.join.repair`).

A node is looked at only if its binding is present both before and after. If it is present on one side only, some depth
above it has gained or lost the match that leads to it, and its whole subtree is that match's task: so no part is done
twice, whatever the order in which sites and surgeries come. A key that changed for several participants of a node is
reported by the first of them. What is inserted into the rows of a negated atom takes matches away.

Of an existential suffix a binding's search for a witness is one unit: if any part of it is concerned, and the binding
is present before and after, the whole unit is the task, on both sides.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 4.2.2.
"""

from __future__ import annotations

import numpy as np

from lftj.join.expression_vm import FAILS, HOLDS
from lftj.join.join_state import JOIN, KIND, NEG_HI, PART_HI, PART_LO, UNTIL
from lftj.join.reposition import admit, admit_above, contains, is_plain, locate, locate_run, may_contain, place
from lftj.join.trie import ABOVE as ABOVE_FRAME
from lftj.join.trie import FILTER, FILTER_MASK, KEY_MIN, REGISTER, key_before
from lftj.join.trie import LEVEL as FRAME_LEVEL
from scantree._jit import inlined, kernel
from scantree.filter import SEED, may_hold, mix, window_of
from sensitivity.oracle import ask_for_record, first_record, next_window, read_words, window
from sensitivity.records import (
    BITS,
    DELTA_AT,
    DELTA_N,
    DELTA_WIDTH,
    DEPTH,
    FIELD_HI,
    FRAME,
    GRANULARITY,
    INTERVAL,
    LEVEL,
    LOW,
    NODE,
    NONE,
    PREFIX_HI,
    RAW,
    SHIFT,
    TURN,
    WORDS,
    agree_of,
    range_rows,
    read_record,
    start_of,
)
from sensitivity.records import REGISTER as FIELD_REGISTER

# Statuses; larger ones are those of the machine plus ERROR.
DONE, FULL, PAUSED, ERROR = 0, 1, 2, 16
# Cells of `cursor`: where the search is; what it has written; what it has looked at (keys sought, records read);
# surgeries matched with sites; how many of the tasks are units
SITE, ROW, POSITION, N_TASKS, N_STATES, LOOKS, READS, SURGERIES, N_UNITS = range(9)
CURSOR = 16
# Changed branches whose index pages are asked for together
AHEAD = 8
# Sides of a task: of one trace, or of both (a unit); GONE: the unit is another task already
OLD, NEW, UNIT, GONE = 0, 1, 2, 3
# Columns of a task before its binding: side, depth of the subtree. Of a state before it: depth; after it: start, agree,
# turn.
TASK_HEAD = 2


@kernel
def write_task(walk, tasks, n, side, d):
    """Task `n`: the subtree below the binding of depths < `d` in the registers, on `side`."""
    tasks[n, 0], tasks[n, 1] = side, d
    for e in range(d):
        tasks[n, TASK_HEAD + e] = walk.regs[e]


@kernel
def _write_found(walk, tasks, site, gained, cursor):
    """A task for the match that the change of `site` gives or takes; in an existential suffix, its unit."""
    d, until, n = site[DEPTH], walk.control[UNTIL], cursor[N_TASKS]
    if d < until:
        write_task(walk, tasks, n, NEW if gained else OLD, d + 1)
    else:
        write_task(walk, tasks, n, UNIT, until)
        # Equal units are to be equal rows.
        for e in range(TASK_HEAD + until, tasks.shape[1]):
            tasks[n, e] = 0
        cursor[N_UNITS] += 1
    cursor[N_TASKS] = n + 1


@kernel
def _attempt(mem, walk, side, other, new, old, site, key, cursor):
    """Whether `key`, which changed for participant `site`, changes the matches of the node in the registers.

    `side`: frames of the versions in which the site admits the key; `other`: of those in which it does not. Returns
    HOLDS, FAILS or an error of the machine.
    """
    d, turn = site[DEPTH], site[TURN]
    parts, depths = walk.parts, walk.depths
    plain = is_plain(walk)
    if not plain:
        stopped = admit_above(walk, d)
        if stopped != HOLDS:
            return stopped
    lo, hi = depths[d, PART_LO], depths[d, PART_HI]
    for s in range(lo, depths[d, NEG_HI]):
        if s - lo != turn:
            cursor[LOOKS] += 1
            if contains(mem, side, parts[s], walk.regs, key) != (s < hi):
                return FAILS
    for s in range(lo, lo + turn):
        cursor[LOOKS] += 1
        if contains(mem, other, parts[s], walk.regs, key) != (s < hi):
            return FAILS
    until = walk.control[UNTIL]
    if d >= until:
        if not _is_unit(mem, walk, old, new):
            return FAILS
    elif not place(mem, new, walk, d) or (site[GRANULARITY] == NONE and not place(mem, old, walk, d)):
        return FAILS
    if plain:
        walk.regs[d] = key
        return HOLDS
    return admit(walk, d, key)


@kernel
def _is_unit(mem, walk, old, new):
    """Whether the binding in the registers is searched for a witness before and after."""
    until = walk.control[UNTIL]
    return place(mem, new, walk, until) and place(mem, old, walk, until)


@kernel
def _load_prefix(frames, f, regs, deltas, at, m):
    """Put the keys above the level of frame `f`, of the row of a change at `deltas[at]`, into their registers."""
    for upper in range(frames[f, FRAME_LEVEL] - 1, -1, -1):
        f = frames[f, ABOVE_FRAME]
        regs[frames[f, REGISTER]] = deltas[at + upper * m]


@kernel
def _has_prefix(frames, f, regs, deltas, at, m):
    """Whether the registers still hold what `_load_prefix` put there: what is computed may differ from it."""
    for upper in range(frames[f, FRAME_LEVEL] - 1, -1, -1):
        f = frames[f, ABOVE_FRAME]
        if regs[frames[f, REGISTER]] != deltas[at + upper * m]:
            return False
    return True


@kernel
def _start_after(mem, old, f, regs, key):
    """The least start of a step that looked at `key` in the old run of frame `f`: past the key before it."""
    if not locate_run(mem, old, f, regs):
        return KEY_MIN
    locate(mem, old, f, key)
    found, before = key_before(mem, old, f)
    return before + 1 if found else KEY_MIN


@kernel
def _write_state(walk, states, k, site, words):
    """State `k`: the node in the registers, and where the record in `words` says to resume it."""
    n, d = len(walk.depths), site[DEPTH]
    states[k, 0] = d
    for e in range(n):
        # What is computed is computed again, so that equal nodes are equal rows.
        states[k, 1 + e] = walk.regs[e] if e < d and walk.depths[e, KIND] == JOIN else 0
    states[k, n + 1], states[k, n + 2] = start_of(site, words, 0), agree_of(site, words, 0)
    states[k, n + 3] = site[TURN]


@inlined
def _held(mem, walk, side, site, key):
    """False if some other participant of the node in the registers is known not to hold `key`."""
    d = site[DEPTH]
    lo, hi = walk.depths[d, PART_LO], walk.depths[d, PART_HI]
    for s in range(lo, hi):
        if s - lo != site[TURN] and not may_contain(mem, side, walk.parts[s], walk.regs, key):
            return False
    return True


@inlined
def _sieve(trace, walk, side, site):
    """The one field of the records of `site` that decides about the only other participant; -1 if it is not so simple.

    It is where there are two participants, the other one has a branch filter, and the key above its own is read from
    one field of records of one word.
    """
    lo = walk.depths[site[DEPTH], PART_LO]
    if site[GRANULARITY] != NODE or site[WORDS] != 1 or walk.depths[site[DEPTH], PART_HI] - lo != 2 or site[TURN] > 1:
        return -1
    f = walk.parts[lo + 1 - site[TURN]]
    if side[f, FILTER] == 0 or side[f, FRAME_LEVEL] != 1:
        return -1
    for k in range(site[PREFIX_HI], site[FIELD_HI]):
        if trace.fields[k, FIELD_REGISTER] == side[side[f, ABOVE_FRAME], REGISTER] and trace.fields[k, BITS] < RAW:
            return k
    return -1


@inlined
def _sift(mem, at, k, n, last, field, table, mask, key):
    """From record `k` of `n` at address `at` on, the first that the filter lets through or that is beyond `last`."""
    shift, low, bits = field[SHIFT], field[LOW], (np.int64(1) << field[BITS]) - 1
    from_here = window_of(key)
    while k < n:
        word = mem[at + k]
        if word > last or may_hold(
            mem, table, mask, mix(np.int64(SEED), ((word >> shift) & bits) + low), key, from_here
        ):
            break
        k += 1
    return k


@kernel
def _match(mem, walk, old, new, trace, s, key, gained, tasks, states, cursor, rows, words, stop):
    """Match a changed branch, its prefix in the registers, with the records of site `s`.

    `gained`: the site admits `key` from now on. Goes on from `cursor[POSITION]`; -1: at the first record.
    """
    site, regs = trace.sites[s], walk.regs
    side, other = (new, old) if gained else (old, new)
    granularity, plain = site[GRANULARITY], is_plain(walk)
    if cursor[POSITION] < 0:
        low = _start_after(mem, old, site[FRAME], regs, key) if granularity == INTERVAL else key
        range_rows(trace, s, regs, low, key, rows)
        cursor[POSITION] = first_record(mem, site, rows)
    sieve = _sieve(trace, walk, side, site) if plain else -1
    sifted = walk.parts[walk.depths[site[DEPTH], PART_LO] + 1 - site[TURN]] if sieve >= 0 else 0
    while True:
        at, n = window(mem, site, cursor[POSITION])
        k = -1
        while k + 1 < n:
            k += 1
            if sieve >= 0:
                first = k
                k = _sift(
                    mem,
                    at,
                    k,
                    n,
                    rows[1, 0],
                    trace.fields[sieve],
                    side[sifted, FILTER],
                    side[sifted, FILTER_MASK],
                    key,
                )
                cursor[READS] += k - first
                if k == n:
                    break
            if cursor[N_TASKS] == len(tasks) or cursor[N_STATES] == len(states):
                cursor[POSITION] += k
                return FULL
            if cursor[LOOKS] + cursor[READS] >= stop:
                cursor[POSITION] += k
                return PAUSED
            if not read_words(mem, site, at + k, rows, words):
                return DONE
            cursor[READS] += 1
            read_record(trace, s, words, 0, regs)
            if granularity == INTERVAL:
                if site[DEPTH] < walk.control[UNTIL]:
                    _write_state(walk, states, cursor[N_STATES], site, words)
                    cursor[N_STATES] += 1
                    continue
                stopped = HOLDS if plain else admit_above(walk, site[DEPTH])
                if stopped > FAILS:
                    return ERROR + stopped
                if stopped == HOLDS and _is_unit(mem, walk, old, new):
                    _write_found(walk, tasks, site, gained, cursor)
                continue
            if plain and sieve < 0 and not _held(mem, walk, side, site, key):
                continue
            stopped = _attempt(mem, walk, side, other, new, old, site, key, cursor)
            if stopped > FAILS:
                return ERROR + stopped
            if stopped == HOLDS:
                _write_found(walk, tasks, site, gained, cursor)
        if n == 0:
            return DONE
        cursor[POSITION] = next_window(mem, site, cursor[POSITION], n)


@kernel
def _look_ahead(mem, walk, frames, trace, s, deltas, j, rows):
    """Ask for the index pages that the changed branches from `j` on will be looked up in."""
    site = trace.sites[s]
    m, at, level = site[DELTA_N], site[DELTA_AT], site[LEVEL]
    for k in range(j, min(j + AHEAD, m)):
        if deltas[at + (site[DELTA_WIDTH] + 1) * m + k] <= level:
            _load_prefix(frames, site[FRAME], walk.regs, deltas, at + k, m)
            key = deltas[at + level * m + k]
            range_rows(trace, s, walk.regs, key, key, rows)
            ask_for_record(mem, site, rows)


@kernel
def concern(mem, walk, old, new, trace, deltas, tasks, states, cursor, rows, words, budget):
    """Find the tasks and states of a change; goes on from where `cursor` says until DONE.

    `old`, `new`: frames of the walk over the versions before and after. `deltas` int64[...]: per changed relation and
    key order its columns, then kinds, then tops (scantree/surgery.py); `trace.sites[s, DELTA_AT]` says where. `tasks`
    int64[t, 2 + n] and `states` int64[s, n + 4] receive what is found: FULL when one of them is, PAUSED after about
    `budget` looks. `rows` int64[2, w], `words` int64[w], of the widest record: scratch.
    """
    sites, regs = trace.sites, walk.regs
    stop = cursor[LOOKS] + cursor[READS] + budget
    s, j = cursor[SITE], cursor[ROW]
    status = DONE
    while s < len(sites):
        site = sites[s]
        m, at, level, f = site[DELTA_N], site[DELTA_AT], site[LEVEL], site[FRAME]
        kinds_at, tops_at = at + site[DELTA_WIDTH] * m, at + (site[DELTA_WIDTH] + 1) * m
        while j < m:
            if j % AHEAD == 0 and m > 1 and cursor[POSITION] < 0 and site[GRANULARITY] != NONE:
                _look_ahead(mem, walk, old, trace, s, deltas, j, rows)
            if deltas[tops_at + j] > level:
                j += 1
                continue
            key = deltas[at + level * m + j]
            negated = site[TURN] >= walk.depths[site[DEPTH], PART_HI] - walk.depths[site[DEPTH], PART_LO]
            gained = (deltas[kinds_at + j] > 0) != negated
            _load_prefix(old, f, regs, deltas, at + j, m)
            if cursor[POSITION] < 0:
                cursor[SURGERIES] += 1
            if site[GRANULARITY] != NONE:
                status = _match(mem, walk, old, new, trace, s, key, gained, tasks, states, cursor, rows, words, stop)
                if status != DONE:
                    break
                cursor[POSITION] = -1
                j += 1
                continue
            if cursor[N_TASKS] == len(tasks):
                status = FULL
                break
            cursor[READS] += 1
            side, other = (new, old) if gained else (old, new)
            stopped = _attempt(mem, walk, side, other, new, old, site, key, cursor)
            if stopped > FAILS:
                status = ERROR + stopped
                break
            if stopped == HOLDS and _has_prefix(old, f, regs, deltas, at + j, m):
                _write_found(walk, tasks, site, gained, cursor)
            j += 1
        if status != DONE:
            break
        s += 1
        j = 0
    cursor[SITE], cursor[ROW] = s, j
    return status
