"""Counts of blocks that were counted before: a block depends on some of the variables that are bound above it only.

`e(a,b), e(b,c), e(c,d)` in key order a, b, c, d would count what is below b again for each a that leads there, though
it depends on b alone. So a block whose variables are connected to a part of the bound ones has a memo: a table of
counts by the keys of that part, in `walk.memo` from `blocks[b, MEMO]` on:

    registers  int64[k]                the registers of these keys
    entries    int64[slots, n + k]     the count (`UNKNOWN` in an empty entry), with WEIGHING the sums, and the keys

An entry lies at the slot that the hash of its keys names, and a later one takes its place: the table never grows, and
nothing depends on what it has forgotten. A memo that answers rarely is given up.
"""

from __future__ import annotations

import numpy as np

from lftj.join.join_state import COUNT, HITS, KEYS, LOOKS_BACK, MEMO, SLOT, SLOTS, WEIGHING
from scantree._jit import inlined
from scantree.filter import SEED, mix

UNKNOWN = -1
# Values of an entry: the count, or the count and two sums.
COUNTED, WEIGHED = 1, 3
# How often a memo of n slots is asked, n times this, before it has to have answered once in so many times.
ASKED, SELDOM = 4, 8


@inlined
def counted_before(walk, block):
    """Whether the count of a block is known, which is in `blocks[block, COUNT]` then; and its sums."""
    blocks, memo, regs = walk.blocks, walk.memo, walk.regs
    at, k, values = blocks[block, MEMO], blocks[block, KEYS], WEIGHED if walk.control[WEIGHING] else COUNTED
    hashed = np.int64(SEED)
    for i in range(k):
        hashed = mix(hashed, regs[memo[at + i]])
    entry = at + k + (hashed & (blocks[block, SLOTS] - 1)) * (values + k)
    blocks[block, SLOT] = entry
    blocks[block, LOOKS_BACK] += 1
    if memo[entry] != UNKNOWN:
        i = 0
        while i < k and memo[entry + values + i] == regs[memo[at + i]]:
            i += 1
        if i == k:
            blocks[block, HITS] += 1
            for v in range(values):
                blocks[block, COUNT + v] = memo[entry + v]
            return True
    if blocks[block, LOOKS_BACK] >= ASKED * blocks[block, SLOTS]:
        if blocks[block, HITS] * SELDOM < blocks[block, LOOKS_BACK]:
            blocks[block, SLOTS] = 0
        blocks[block, LOOKS_BACK] = blocks[block, HITS] = 0
    return False


@inlined
def note_count(walk, block):
    """Keep the count of a block that has been counted, if it has a memo."""
    blocks, memo, regs = walk.blocks, walk.memo, walk.regs
    if blocks[block, SLOTS] > 0:
        at, entry, values = blocks[block, MEMO], blocks[block, SLOT], WEIGHED if walk.control[WEIGHING] else COUNTED
        for v in range(values):
            memo[entry + v] = blocks[block, COUNT + v]
        for i in range(blocks[block, KEYS]):
            memo[entry + values + i] = regs[memo[at + i]]
