"""Last depths whose keys are met many times: a key that was met before, with the same rest of the head, is passed over.

Where the head is the variable of the last depth and others, bound above it, walks through the depths in between come
to the same head again and again: in `t(x, z) :- e(x, y), Δ(y, z), !t(x, z)` once for every y. A *stamp* per key of the
last depth remembers the *epoch* in which it was met; an epoch is one binding of the other variables of the head. So a
head that was met costs one load, not a look into `t` and a row to be sorted out. Where most heads that are met for the
first time are new to `t` as well, the look into it is left to whoever stores them.

The table takes a word per key between the least and the greatest one.
"""

from __future__ import annotations

import weakref

from lftj.join.place import locate, locate_run
from lftj.join.trie import BASE, END, POS, following
from lftj.join.walk import EPOCH, HIGH, MET, NEG_HI, PART_HI, PART_LO, STAMP, STAMP_LOW, STEPS, WRITTEN
from scantree._jit import kernel
from scantree.memory import Arena, ArenaFullError, Size, allocate, release

# Keys from which on a table is not worth its memory.
MOST = 1 << 23


@kernel
def stamped_leaf(mem, walk, d, out, room):
    """The last depth, with one participant and perhaps the head's own negation: write heads that were not met before.

    Goes on from where the participant stands; False when `out` has no more room.
    """
    depths, frames, control, regs, head = walk.depths, walk.frames, walk.control, walk.regs, walk.head
    f, own, high = walk.parts[depths[d, PART_LO]], -1, depths[d, HIGH]
    stamps, epoch, n, steps = control[STAMP] - control[STAMP_LOW], control[EPOCH], control[WRITTEN], 0
    if depths[d, PART_HI] < depths[d, NEG_HI]:
        own = walk.parts[depths[d, PART_HI]]
    there = own >= 0 and locate_run(mem, frames, own, regs)
    done = False
    while not done:
        p, e, base = frames[f, POS], frames[f, END], frames[f, BASE]
        while p < e:
            key = mem[base + p]
            if key > high:
                done = True
                break
            steps += 1
            if mem[stamps + key] != epoch:
                if n >= room:
                    break
                mem[stamps + key] = epoch
                if there and locate(mem, frames, own, key):
                    control[MET] += 1
                else:
                    for k in range(len(head)):
                        out[k, n] = regs[head[k]] if head[k] != d else key
                    n += 1
            p += 1
        frames[f, POS] = p
        if done or p < e:
            break
        done = not following(mem, frames, f)
    control[WRITTEN] = n
    control[STEPS] += steps
    return done


@kernel
def clear(mem, page, words):
    """No key was met."""
    for i in range(words):
        mem[page + i] = 0


class StampTable:
    """`page`: where the table lies; `low`: the key that its first word is of."""

    __slots__ = ("__weakref__", "low", "page")

    def __init__(self, arena: Arena, low: int, high: int) -> None:
        """Raises `ArenaFullError`."""
        words = high - low + 1
        with arena.lock:
            arena.room(Size(1, words))
            self.page, self.low = int(allocate(arena.space, words)), low
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
