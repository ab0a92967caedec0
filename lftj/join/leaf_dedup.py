"""Last depths whose keys are met many times: a key that was met before, with the same rest of the head, is passed over.

Where the head is the variable of the last depth and others, bound above it, walks through the depths in between come
to the same head again and again: in `t(x, z) :- e(x, y), Δ(y, z), !t(x, z)` once for every y. A *stamp* per key of the
last depth remembers the *epoch* in which it was met; an epoch is one binding of the other variables of the head. So a
head that was met costs one load, not a look into `t` and a row to be sorted out.

**The head's own rows.** The heads of an epoch that are in `t` already are one run of it. A short run is stamped as a
whole before the first head is met, with the negated epoch; a long one is looked into, head by head, until it would have
been less to stamp it. Where most heads that are met for the first time are new to `t` as well, `t` is left to whoever
stores them.

**Two depths at once.** If the depth before the last one is of no part of the head, and one of its two participants has
a jump table and the last depth's run below it, the two are one loop over flat columns (`stamped_two`): this is where
closures and their like spend a large round.

The table takes a word per key between the least and the greatest one.
"""

from __future__ import annotations

import weakref

import numpy as np

from lftj.join.join_state import (
    CANDIDATE,
    EPOCH,
    HIGH,
    LANDED,
    LOOKS,
    MATCHES,
    MET,
    NEG_HI,
    OPENS,
    OWN_EPOCH,
    OWN_ROWS,
    PART_HI,
    PART_LO,
    STAMP,
    STAMP_HIGH,
    STAMP_LOW,
    STEPS,
    WRITTEN,
)
from lftj.join.leapfrog import EXHAUSTED, MATCHED, STOPPED, cross
from lftj.join.reposition import locate, locate_run
from lftj.join.trie import (
    ABOVE,
    BASE,
    DONE,
    END,
    FIRST_POS,
    FIRST_SLOT,
    JUMP,
    JUMP_HIGH,
    JUMP_LOW,
    KEY,
    LAST_POS,
    LAST_SLOT,
    ONE,
    PAGE_BITS,
    POS,
    following,
    forward,
    open_,
    seek,
)
from scantree._jit import inlined, kernel
from scantree.memory import Arena, ArenaFullError, Size, allocate, release

# Keys from which on a table is not worth its memory.
MOST = 1 << 23
# The head's own run is stamped at once if it has no more rows than this, else after a look for every so many of them: a
# look takes as long as stamping some 16 keys that lie in a row.
FEW, WORTH = 64, 16
# In the place of looks: the run is stamped, or there is none.
ALL = -1
TWO = np.uint64(2)


@kernel
def _begin(mem, walk, own):
    """Find the head's own run of the present epoch, and stamp it if it is short."""
    frames, control = walk.frames, walk.control
    control[OWN_EPOCH], control[LOOKS] = control[EPOCH], ALL
    if locate_run(mem, frames, own, walk.regs) and open_(mem, frames, own):
        fr = frames[own]
        pages = fr[LAST_SLOT] - fr[FIRST_SLOT]
        control[OWN_ROWS] = (pages << fr[PAGE_BITS]) + fr[LAST_POS] - fr[FIRST_POS]
        if control[OWN_ROWS] <= FEW:
            _stamp_own(mem, walk, own)
        else:
            control[LOOKS] = 0


@kernel
def _stamp_own(mem, walk, own):
    """Stamp the keys of the head's own run that were not met in the present epoch with the negated epoch."""
    frames, control = walk.frames, walk.control
    low, high, stamps, epoch = control[STAMP_LOW], control[STAMP_HIGH], control[STAMP], control[EPOCH]
    open_(mem, frames, own)
    more = True
    while more:
        base = frames[own, BASE]
        for p in range(base + frames[own, POS], base + frames[own, END]):
            key = mem[p]
            if low <= key <= high and mem[stamps + key - low] != epoch:
                mem[stamps + key - low] = -epoch
        more = following(mem, frames, own)
    control[LOOKS] = ALL


@kernel
def _is_there(mem, walk, own, key):
    """Whether the head's own run, which is not stamped, has `key`. After many looks it is stamped."""
    control = walk.control
    there = locate_run(mem, walk.frames, own, walk.regs) and locate(mem, walk.frames, own, key)
    control[LOOKS] += 1
    if control[LOOKS] * WORTH >= control[OWN_ROWS]:
        _stamp_own(mem, walk, own)
    return there


@inlined
def _own(walk, d):
    """The frame of the head's own negation in the last depth, d; -1 if it is left out."""
    depths = walk.depths
    return walk.parts[depths[d, PART_HI]] if depths[d, PART_HI] < depths[d, NEG_HI] else -1


@kernel
def stamped_leaf(mem, walk, d, out, room):
    """The last depth, with one participant and perhaps the head's own negation: write heads that were not met before.

    Goes on from where the participant stands; False when `out` has no more room.
    """
    depths, frames, control, regs, head = walk.depths, walk.frames, walk.control, walk.regs, walk.head
    f, own = walk.parts[depths[d, PART_LO]], _own(walk, d)
    stamps, epoch, n, steps = control[STAMP] - control[STAMP_LOW], control[EPOCH], control[WRITTEN], 0
    if own >= 0 and control[OWN_EPOCH] != epoch:
        _begin(mem, walk, own)
    done = False
    while not done:
        p, e, base = frames[f, POS], frames[f, END], frames[f, BASE]
        while p < e:
            key = mem[base + p]
            steps += 1
            stamp = mem[stamps + key]
            if stamp != epoch:
                if n >= room:
                    break
                mem[stamps + key] = epoch
                if stamp == -epoch or (own >= 0 and control[LOOKS] != ALL and _is_there(mem, walk, own, key)):
                    control[MET] += 1
                else:
                    for k in range(len(head)):
                        out[k, n] = regs[head[k]] if head[k] != d else key
                    n += 1
            p += 1
        frames[f, POS] = p
        if p < e:
            break
        done = not following(mem, frames, f)
    control[WRITTEN] = n
    control[STEPS] += steps
    return done


@kernel
def _fill(walk, d, out, column, first, last):
    """The heads [first, last) of `out`, of which `column` holds the keys of depth d: their other columns."""
    regs, head = walk.regs, walk.head
    for k in range(len(head)):
        if head[k] != d:
            value = regs[head[k]]
            for i in range(first, last):
                out[k, i] = value
        elif k != column:
            for i in range(first, last):
                out[k, i] = out[column, i]


@kernel
def stamped_two(mem, walk, d, out, stop):
    """The last two depths, d and a stamped one, from a state of depth d that seeks its next match.

    Depth d has two participants: one is walked, the other has a jump table and the last depth's runs below it. A run
    that lies in one page is read where the table says it is, and no frame moves. What the keys of the run have to do
    with stamps is computed, not branched on: which of them are new is hard to predict.

    Returns EXHAUSTED; STOPPED when `stop` steps are made; MATCHED at a key whose run is left to `stamped_leaf`: it goes
    over pages, or there is not room for all of it, or the head's own rows are looked into.
    """
    depths, frames, control = walk.depths, walk.frames, walk.control
    lo, own = depths[d, PART_LO], _own(walk, d + 1)
    g = frames[walk.parts[depths[d + 1, PART_LO]], ABOVE]
    f = walk.parts[lo] if walk.parts[lo] != g else walk.parts[lo + 1]
    c, high = max(depths[d, CANDIDATE], frames[g, JUMP_LOW]), min(depths[d, HIGH], frames[g, JUMP_HIGH])
    if frames[f, KEY] < c:
        seek(mem, frames, f, c)
    if frames[f, DONE]:
        return EXHAUSTED
    page_bits, table = frames[g, PAGE_BITS], frames[g, JUMP] - 2 * frames[g, JUMP_LOW]
    stamps, epoch = control[STAMP] - control[STAMP_LOW], control[EPOCH]
    ready = own < 0 or (control[OWN_EPOCH] == epoch and control[LOOKS] == ALL)
    column = 0
    while walk.head[column] != d + 1:
        column += 1
    found, room, first, most = out[column], out.shape[1], control[WRITTEN], stop - control[STEPS]
    n, met, steps, matches = first, 0, 0, 0
    outcome = EXHAUSTED
    p, e = np.uint64(frames[f, BASE] + frames[f, POS]), np.uint64(frames[f, BASE] + frames[f, END])
    while True:
        if p == e:
            if not cross(mem, frames, f, c):
                break
            p, e = np.uint64(frames[f, BASE] + frames[f, POS]), np.uint64(frames[f, BASE] + frames[f, END])
        key = mem[p]
        if key > high:
            break
        if steps >= most:
            outcome = STOPPED
            break
        steps += 2
        at = np.uint64(table + 2 * key)
        begin, end = mem[at + ONE], mem[at + ONE + TWO]
        if begin == end:  # there is no such key; the table says where the next one is
            c = mem[mem[at]]
            p = forward(mem, p, e, c)
            continue
        if not ready:
            if control[OWN_EPOCH] != epoch:
                _begin(mem, walk, own)
            ready = control[LOOKS] == ALL
        length = end - begin
        if not ready or begin >> page_bits != end >> page_bits or n + length > room:
            outcome = MATCHED
            break
        matches += 1
        steps += length
        r = np.uint64(mem[at] + (1 << page_bits))
        last = r + np.uint64(length)
        while r < last:
            x = mem[r]
            address = np.uint64(stamps + x)
            stamp = mem[address]
            mem[address] = epoch
            found[np.uint64(n)] = x
            n += int(stamp != epoch) & int(stamp != -epoch)
            met += int(stamp == -epoch)
            r += ONE
        c = key + 1
        p = forward(mem, p, e, c)
    if outcome != EXHAUSTED:
        c = mem[p]
        frames[f, POS], frames[f, KEY] = np.int64(p) - frames[f, BASE], c
        if outcome == MATCHED:
            seek(mem, frames, g, c)
    depths[d, CANDIDATE] = c
    _fill(walk, d + 1, out, column, first, n)
    depths[d, MATCHES] += matches
    control[WRITTEN] = n
    control[STEPS] += steps
    control[MET] += met
    control[OPENS] += matches
    control[LANDED] += matches
    return outcome


@kernel
def clear(mem, page, words):
    """No key was met."""
    for i in range(words):
        mem[page + i] = 0


class StampTable:
    """`page`: where the table lies; `low`, `high`: the keys that its first and last words are of."""

    __slots__ = ("__weakref__", "high", "low", "page")

    def __init__(self, arena: Arena, low: int, high: int) -> None:
        """Raises `ArenaFullError`."""
        words = high - low + 1
        with arena.lock:
            arena.room(Size(1, words))
            self.page, self.low, self.high = int(allocate(arena.space, words)), low, high
        space, page = arena.space, self.page
        finalizer = weakref.finalize(self, arena.drop_later, lambda: release(space, page, words))
        finalizer.atexit = False
        clear(space.mem, page, words)


def stamp_table(arena: Arena, low: int, high: int) -> StampTable | None:
    """A table for the keys from `low` to `high`; None if it would be too large."""
    if high - low >= MOST:
        return None
    try:
        return StampTable(arena, low, high)
    except ArenaFullError:
        return None
