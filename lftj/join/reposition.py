"""Placing a walk on a binding, without walking there: what maintenance does before it looks at a node again.

A frame is *located* on a key by a seek from where it stands, where that is possible: changes come in key order, so most
of the time it is. A frame knows by the position its run begins at whether it belongs to the key its parent stands on.
"""

from __future__ import annotations

import numpy as np

from lftj.join.expression_vm import FAILS, HOLDS, run_code
from lftj.join.join_state import (
    BOUND_HI,
    BOUND_LO,
    CANDIDATE,
    CODE_HI,
    CODE_LO,
    HIGH,
    JOIN,
    KIND,
    LIMIT,
    LIMIT_AT,
    LIMIT_IN,
    MARKING,
    NEG_HI,
    PART_HI,
    PART_LO,
    TEST_HI,
    VALUE_HI,
    VALUE_LO,
)
from lftj.join.leapfrog import bound_node
from lftj.join.trie import (
    ABOVE,
    BASE,
    DONE,
    FILTER,
    FILTER_MASK,
    FIRST_POS,
    FIRST_SLOT,
    KEY,
    LEVEL,
    OPENED,
    PAGE_BITS,
    POS,
    REGISTER,
    SLOT,
    full_until,
    open_,
    seek,
)
from scantree._jit import inlined, kernel
from scantree.filter import SEED, may_hold, mix, window_of


@inlined
def locate(mem, frames, f, key):
    """Move frame `f`, whose parent stands on its key, to the least key >= `key`; whether that is `key`."""
    fr = frames[f]
    if fr[OPENED] and fr[LEVEL] > 0:
        above = frames[fr[ABOVE]]
        if fr[FIRST_SLOT] != above[SLOT] or fr[FIRST_POS] != above[POS]:
            fr[OPENED] = 0
    if (fr[OPENED] == 0 or fr[DONE] or fr[KEY] > key) and not open_(mem, frames, f):
        return False
    if fr[KEY] < key:
        seek(mem, frames, f, key)
    return fr[DONE] == 0 and fr[KEY] == key


@kernel
def locate_run(mem, frames, f, regs):
    """Locate the frames above `f` on the keys in `regs`; whether all of them are there, so that `f` has a run."""
    level = frames[f, LEVEL]
    for upper in range(level):
        above = frames[f, ABOVE]
        for _ in range(level - upper - 1):
            above = frames[above, ABOVE]
        if not locate(mem, frames, above, regs[frames[above, REGISTER]]):
            return False
    return True


@inlined
def may_contain(mem, frames, f, regs, key):
    """False if the branch filter of frame `f` knows that there is no branch of its keys in `regs` and `key`."""
    fr = frames[f]
    if fr[FILTER] == 0:
        return True
    h = np.int64(SEED)
    level = fr[LEVEL]
    if level == 1:
        h = mix(h, regs[frames[fr[ABOVE], REGISTER]])
    else:
        for upper in range(level):
            above = fr[ABOVE]
            for _ in range(level - upper - 1):
                above = frames[above, ABOVE]
            h = mix(h, regs[frames[above, REGISTER]])
    return may_hold(mem, fr[FILTER], fr[FILTER_MASK], h, key, window_of(key))


@kernel
def contains(mem, frames, f, regs, key):
    """Whether the relation of frame `f` holds the branch of the keys in `regs` above `f`, and `key`."""
    return locate_run(mem, frames, f, regs) and locate(mem, frames, f, key)


@kernel
def blocked(mem, frames, walk, d):
    """Whether a negated atom that is looked at in depth `d` has a row for the binding in the registers."""
    depths, parts, regs = walk.depths, walk.parts, walk.regs
    found = False
    for s in range(depths[d, PART_HI], depths[d, NEG_HI]):
        found = found or contains(mem, frames, parts[s], regs, regs[d])
    return found


@kernel
def older(mem, frames, walk, d):
    """Whether the rows of all atoms tested at depth `d` are there, with rounds (values) below the limit.

    With `control[MARKING]` a row's own limit, which is not negative, is marked where one is there and not below it: it
    is inverted in place, and means the same from there on.
    """
    depths, parts, regs = walk.depths, walk.parts, walk.regs
    passed, limit, f, marking = True, walk.control[LIMIT], walk.control[LIMIT_AT], False
    at = 0 * limit  # a literal would be a type of its own
    if f >= 0:
        fr = frames[f]
        passed = contains(mem, frames, f, regs, regs[fr[REGISTER]])
        at = fr[BASE] + fr[POS] + (1 << fr[PAGE_BITS])
        limit = max(mem[at], ~mem[at])
        marking = walk.control[MARKING] != 0
        regs[walk.control[LIMIT_IN]] = limit
    for s in range(depths[d, NEG_HI], depths[d, TEST_HI]):
        f = parts[s]
        fr = frames[f]
        passed = passed and contains(mem, frames, f, regs, regs[fr[REGISTER]])
        # The column behind the last key is the value.
        if passed and mem[fr[BASE] + fr[POS] + (1 << fr[PAGE_BITS])] >= limit:
            passed = False
            if marking:
                mem[at] = ~limit
                walk.control[MARKING] += 1
    return passed


@kernel
def blocked_until(mem, frames, walk, d):
    """(the greatest key of depth `d` up to which all are blocked, beginning with the blocked one; pages looked at).

    This iterates the complement of a negated atom: where its keys are consecutive, none of them is looked at. Its cost
    is that of the complement, but for a comparison per page (arXiv 1303.5313, section 3.1.2, uses a scan-tree instead).
    """
    depths, parts, regs = walk.depths, walk.parts, walk.regs
    last, looked = regs[d], 0
    for s in range(depths[d, PART_HI], depths[d, NEG_HI]):
        if contains(mem, frames, parts[s], regs, regs[d]):
            until, pages = full_until(mem, frames, parts[s])
            last, looked = max(last, until), looked + pages
    return last, looked


@kernel
def place(mem, frames, walk, d):
    """Locate all participants of the depths above `d` on the binding in the registers; whether the atoms admit it."""
    depths, parts, regs = walk.depths, walk.parts, walk.regs
    for e in range(d):
        for p in range(depths[e, PART_LO], depths[e, PART_HI]):
            if not locate(mem, frames, parts[p], regs[e]):
                return False
        if depths[e, PART_HI] < depths[e, NEG_HI] and blocked(mem, frames, walk, e):
            return False
    return True


@inlined
def is_plain(walk):
    """Whether the rule computes and compares nothing, so that every key is admitted as it is."""
    return len(walk.code) == 0 and len(walk.bounds) == 0


@kernel
def admit(walk, d, key):
    """Whether `key` at depth `d` satisfies what the rule computes and compares there; its derived registers are set.

    Returns HOLDS, FAILS or a status of the machine. The registers of the depths above are those of a node.
    """
    depths, regs = walk.depths, walk.regs
    if depths[d, KIND] != JOIN:
        stopped = run_code(walk.code, depths[d, VALUE_LO], depths[d, VALUE_HI], regs, walk.ranks, walk.cell)
        if stopped != HOLDS:
            return stopped
        if regs[d] != key:
            return FAILS
    else:
        regs[d] = key
        if depths[d, BOUND_LO] < depths[d, BOUND_HI]:
            if not bound_node(walk, d):
                return FAILS
            if key < depths[d, CANDIDATE] or key > depths[d, HIGH]:
                return FAILS
    return run_code(walk.code, depths[d, CODE_LO], depths[d, CODE_HI], regs, walk.ranks, walk.cell)


@kernel
def admit_above(walk, d):
    """`admit` for every depth above `d`, from the registers of those that are not computed."""
    depths, regs = walk.depths, walk.regs
    for e in range(d):
        if depths[e, KIND] != JOIN:
            stopped = run_code(walk.code, depths[e, VALUE_LO], depths[e, VALUE_HI], regs, walk.ranks, walk.cell)
            if stopped != HOLDS:
                return stopped
        stopped = admit(walk, e, regs[e])
        if stopped != HOLDS:
            return stopped
    return HOLDS
