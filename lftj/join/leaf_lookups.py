"""A last depth whose keys are looked up in other atoms: in negated ones, and in those that are tested.

Delta joins mostly end in one. `t(x, z) :- e(x, y), Δ(y, z), !t(x, z)` looks every z of Δ up in a run of `t`, and the
check `t(x, z) :- e(x, y), t(y, z), Δ(x, z)` compares the rounds of the rows that it meets. The steps are those of the
walk (triejoin.py), which would come by once for every match; here the matches are a loop. `out` int64[h, n].
"""

from __future__ import annotations

from lftj.join.join_state import (
    BLOCK,
    CANDIDATE,
    COUNT,
    HIGH,
    MATCHES,
    NEG_HI,
    PART_HI,
    PART_LO,
    STEPS,
    TEST_HI,
    WRITTEN,
    write_row,
)
from lftj.join.leapfrog import MATCHED, leap_pair, past_match
from lftj.join.reposition import blocked, blocked_until, older
from lftj.join.trie import BASE, DONE, END, KEY, KEY_MAX, POS, following, seek
from scantree._jit import inlined, kernel


@inlined
def _look_up(mem, walk, d, key, out):
    """Write the row of the match `key` if what it is looked up in admits it; the key up to which all are dealt with."""
    depths, control = walk.depths, walk.control
    negated, tested = depths[d, NEG_HI] - depths[d, PART_HI], depths[d, TEST_HI] - depths[d, NEG_HI]
    walk.regs[d] = key
    depths[d, MATCHES] += 1
    control[STEPS] += negated
    if negated and blocked(mem, walk.frames, walk, d):
        passed, looked = blocked_until(mem, walk.frames, walk, d)
        control[STEPS] += looked
        return passed
    control[STEPS] += tested
    if not tested or older(mem, walk.frames, walk, d):
        write_row(walk, out)
        walk.blocks[depths[d, BLOCK], COUNT] += 1
    return key


@kernel
def looked_leaf(mem, walk, d, out, limit, stop, first):
    """The last depth, with one participant, from where that stands: write rows until there are `limit` in `out`.

    Whether the node is done; it is left, too, when `stop` steps are made. `first`: with the limit the node is done, and
    whether more keys follow is not asked.
    """
    frames, control, high = walk.frames, walk.control, walk.depths[d, HIGH]
    f, done = walk.parts[walk.depths[d, PART_LO]], False
    if frames[f, KEY] < walk.depths[d, CANDIDATE]:
        seek(mem, frames, f, walk.depths[d, CANDIDATE])
        done = frames[f, DONE] != 0
    while control[WRITTEN] < limit and control[STEPS] < stop and not done:
        fr = frames[f]
        key = fr[KEY]
        control[STEPS] += 1
        if key > high:
            return True
        passed = _look_up(mem, walk, d, key, out)
        if passed == KEY_MAX:
            return True
        if passed > key:
            seek(mem, frames, f, passed + 1)
            done = fr[DONE] != 0
        elif fr[POS] + 1 < fr[END]:
            fr[POS] += 1
            fr[KEY] = mem[fr[BASE] + fr[POS]]
        else:
            done = not following(mem, frames, f)
    if done and not (first and control[WRITTEN] == limit):
        control[STEPS] += 1  # the step that finds no more
    return done


@kernel
def looked_pair(mem, walk, d, out, limit, stop):
    """`looked_leaf` of a depth with two participants, from a state in which it seeks its next match."""
    depths, control = walk.depths, walk.control
    while control[WRITTEN] < limit and control[STEPS] < stop:
        if leap_pair(mem, walk, None, d) != MATCHED:
            return True
        depths[d, CANDIDATE] = _look_up(mem, walk, d, depths[d, CANDIDATE], out)
        if not past_match(walk, d):
            return True
    return False
