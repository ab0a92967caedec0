"""Counts of blocks that were counted before: a block depends on some of the variables that are bound above it only.

`e(a,b), e(b,c), e(c,d)` in key order a, b, c, d would count what is below b again for each a that leads there, though
it depends on b alone. So a block whose variables are connected to a part of the bound ones has a memo: a table of
counts by the keys of that part, in `walk.memo` from `blocks[b, MEMO]` on:

    registers  int64[k]                the registers of these keys
    entries    int64[slots, n + k]     the count (`UNKNOWN` in an empty entry), with WEIGHING the sums, and the keys

An entry lies at the slot that the hash of its keys names, and a later one takes its place: the table never grows, and
nothing depends on what it has forgotten.

A memo that saves fewer steps than its lookups cost is left idle while its counts take few steps each, and is asked
again where they take more: so it costs at most a part of what counting does, and leaving it idle a small factor.
"""

from __future__ import annotations

import numpy as np

from lftj.join.join_state import (
    BEGAN,
    COUNT,
    HITS,
    IDLE,
    KEYS,
    LOOKS_BACK,
    MEMO,
    SLOT,
    SLOTS,
    SPENT,
    STEPS,
    WEIGHING,
)
from scantree._jit import inlined
from scantree.filter import SEED, mix

UNKNOWN = -1
# Values of an entry: the count, or the count and two sums.
COUNTED, WEIGHED = 1, 3
# Counts between two decisions about a memo; the steps of a join that a lookup takes as long as; and those of a count
# from which on a memo is asked, however rarely it answers: it may not have met most keys yet.
TRIED, LOOKUP, DEAR = 1 << 12, 4, 16


@inlined
def _decide(blocks, block):
    """Whether the memo of a block is asked from now on, by the last counts and by what the answers have saved."""
    hits = blocks[block, HITS]
    missed = blocks[block, LOOKS_BACK] - hits
    cheap = blocks[block, SPENT] < DEAR * missed
    if blocks[block, IDLE]:
        blocks[block, IDLE] = cheap
    else:
        # The share of answers to be expected once the memo is as full as it gets: it grows with the entries
        expected = min(1.0, hits * max(blocks[block, SLOTS], TRIED) / TRIED**2)
        blocks[block, IDLE] = cheap and expected * blocks[block, SPENT] < LOOKUP * missed
    blocks[block, LOOKS_BACK] = blocks[block, HITS] = blocks[block, SPENT] = 0


@inlined
def counted_before(walk, block):
    """Whether the count of a block is known, which is in `blocks[block, COUNT]` then; and its sums."""
    blocks, memo, regs = walk.blocks, walk.memo, walk.regs
    at, k, values = blocks[block, MEMO], blocks[block, KEYS], WEIGHED if walk.control[WEIGHING] else COUNTED
    blocks[block, BEGAN] = walk.control[STEPS]
    if blocks[block, LOOKS_BACK] == TRIED:
        _decide(blocks, block)
    blocks[block, LOOKS_BACK] += 1
    if blocks[block, IDLE]:
        return False
    hashed = np.int64(SEED)
    for i in range(k):
        hashed = mix(hashed, regs[memo[at + i]])
    entry = at + k + (hashed & (blocks[block, SLOTS] - 1)) * (values + k)
    blocks[block, SLOT] = entry
    if memo[entry] != UNKNOWN:
        i = 0
        while i < k and memo[entry + values + i] == regs[memo[at + i]]:
            i += 1
        if i == k:
            blocks[block, HITS] += 1
            for v in range(values):
                blocks[block, COUNT + v] = memo[entry + v]
            return True
    return False


@inlined
def note_count(walk, block):
    """Keep the count of a block that has been counted, if it has a memo."""
    blocks, memo, regs = walk.blocks, walk.memo, walk.regs
    if blocks[block, SLOTS] == 0:
        return
    blocks[block, SPENT] += walk.control[STEPS] - blocks[block, BEGAN]
    if not blocks[block, IDLE]:
        at, entry, values = blocks[block, MEMO], blocks[block, SLOT], WEIGHED if walk.control[WEIGHING] else COUNTED
        for v in range(values):
            memo[entry + v] = blocks[block, COUNT + v]
        for i in range(blocks[block, KEYS]):
            memo[entry + values + i] = regs[memo[at + i]]
