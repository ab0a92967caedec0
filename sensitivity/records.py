"""Records: what the steps of a join's trace leave behind, packed into few words, written by the kernels that walk.

A step at depth d, binding t, in state (candidate c, participant i, agree a) leaves for its participant the record

    prefix      the participant's own keys in t, which name the key set it sought in
    start       c: the step looked at the keys from c on, up to the least one of that set that is >= c
    context     the other keys of t (those not computed from them)
    agree       a

so (i, start, agree) is the state to resume the leapfrog join from. The end of the sensitivity interval [c, h] is not
stored: h is the least key >= c of the very set the prefix names, so the records whose interval holds a key k are those
whose start lies in (p, k], p being the greatest key < k of the old set. A stabbing query over intervals that end where
the data says is a range query over their starts (`sensitivity.oracle`), and needs no interval tree.

Granularity, per depth: INTERVAL, a record per step; NODE, a record (prefix, context) per participant and node; POINT,
for a depth whose one candidate is computed, a record (prefix, start, context) per participant and node, sensitive to
the key `start` only; NONE, where every participant's own keys and what follows from them are the whole binding: nothing
is stored, a changed branch names its node.

A *site* is one participant of one depth. A record of a site is `words` int64 words, in which its fields are packed in
the order above, so that sorting words sorts records (`sensitivity.packing`). While a walk records, the words of the
node it is in (prefix and context) are kept in `base`, and a step only adds its start and agree.

Source of the terms: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313), section 4.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined, kernel

Ints = npt.NDArray[np.int64]

# fmt: off
NONE, NODE, POINT, INTERVAL = 0, 1, 2, 3
NAMES = ("none", "node", "point", "interval")
# Columns of `sites`: what a record of the site looks like ...
GRANULARITY, WORDS, FIELD_LO, PREFIX_HI, FIELD_HI = 0, 1, 2, 3, 4
START_WORD, START_SHIFT, START_LOW, START_BITS, AGREE_WORD, AGREE_SHIFT, AGREE_BITS = 5, 6, 7, 8, 9, 10, 11
# ... where it is in the join: trie node (frame), depth, number among the participants, trie level ...
FRAME, DEPTH, TURN, LEVEL = 12, 13, 14, 15
# ... its index, the change of its rows (`lftj.join.change_oracle`), and its part of the record buffer
ROOT, PAGE_BITS, DIR_BITS, DELTA_AT, DELTA_N, DELTA_WIDTH, AT, ROOM = 16, 17, 18, 19, 20, 21, 22, 23
SITE_WIDTH = 24
# Columns of `fields`: the register a field is read from, its word, and how it is packed: (value - low) << shift
REGISTER, WORD, SHIFT, LOW, BITS = 0, 1, 2, 3, 4
FIELD_WIDTH = 5
RAW = 64  # BITS of a field that is a whole word, as it is
# fmt: on

KEY_MIN, KEY_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Trace(NamedTuple):
    """What a recording walk writes to.

    sites int64[s, SITE_WIDTH], one per participant slot of the walk (`triejoin.Walk.parts`) · fields int64[f,
    FIELD_WIDTH] · base int64[s, w]: words of the node each site is in · buffer int64[n]: records, those of
    site s from `sites[s, AT]` on, at most `sites[s, ROOM]` · fills int64[s]: records written.
    """

    sites: Ints
    fields: Ints
    base: Ints
    buffer: Ints
    fills: Ints


@inlined
def has_room(trace, lo, hi):
    """Whether each site in [lo, hi) has room for two more records."""
    free = True
    for s in range(lo, hi):
        free &= trace.fills[s] + 2 <= trace.sites[s, ROOM]
    return free


@inlined
def start_code(site, c):
    """The start `c` as it is packed: KEY_MIN is 0, so that it takes no part in the range of the others."""
    if site[START_BITS] == RAW:
        return c
    return np.int64(0) if c == KEY_MIN else c - site[START_LOW] + 1


@inlined
def start_of(site, words, at):
    """The start of the record at `words[at:]`."""
    word = words[at + site[START_WORD]]
    if site[START_BITS] == RAW:
        return word
    code = (word >> site[START_SHIFT]) & ((np.int64(1) << site[START_BITS]) - 1)
    return KEY_MIN if code == 0 else code + site[START_LOW] - 1


@inlined
def agree_of(site, words, at):
    """How many participants agreed, in the record at `words[at:]`."""
    return (words[at + site[AGREE_WORD]] >> site[AGREE_SHIFT]) & ((np.int64(1) << site[AGREE_BITS]) - 1)


@inlined
def field_of(field, words, at):
    """The value of a field of the record at `words[at:]`."""
    word = words[at + field[WORD]]
    if field[BITS] == RAW:
        return word
    return ((word >> field[SHIFT]) & ((np.int64(1) << field[BITS]) - 1)) + field[LOW]


@inlined
def open_site(trace, s, regs):
    """Site `s` enters the node that registers `regs` name: pack what its records there have in common."""
    site, base = trace.sites[s], trace.base
    for w in range(site[WORDS]):
        base[s, w] = 0
    for f in range(site[FIELD_LO], site[FIELD_HI]):
        field = trace.fields[f]
        if field[BITS] == RAW:
            base[s, field[WORD]] = regs[field[REGISTER]]
        else:
            base[s, field[WORD]] |= (regs[field[REGISTER]] - field[LOW]) << field[SHIFT]


@inlined
def note(trace, s, c, agree):
    """Write the record of site `s` for a step from `c` with `agree` agreed (NODE: neither). There must be room."""
    site, base, buffer = trace.sites[s], trace.base, trace.buffer
    n, words = trace.fills[s], site[WORDS]
    at = site[AT] + n * words
    for w in range(words):
        buffer[at + w] = base[s, w]
    if site[GRANULARITY] != NODE:
        code = start_code(site, c)
        if site[START_BITS] == RAW:
            buffer[at + site[START_WORD]] = code
        else:
            buffer[at + site[START_WORD]] |= code << site[START_SHIFT]
        if site[GRANULARITY] == INTERVAL:
            buffer[at + site[AGREE_WORD]] |= agree << site[AGREE_SHIFT]
    trace.fills[s] = n + 1


@kernel
def range_rows(trace, s, regs, lo, hi, rows):
    """The range of records of site `s` under the prefix in `regs`.

    For INTERVAL and POINT only those whose start lies in [`lo`, `hi`]. Written to `rows` int64[2, w]: the
    least and the greatest words such a record may have, both inclusive.
    """
    site = trace.sites[s]
    words = site[WORDS]
    last, free = -1, 0  # the last word with a fixed field, and its bits below the last fixed one
    for w in range(words):
        rows[0, w] = rows[1, w] = 0
    for f in range(site[FIELD_LO], site[PREFIX_HI]):
        field = trace.fields[f]
        last, free = field[WORD], field[SHIFT]
        value = regs[field[REGISTER]]
        if field[BITS] != RAW:
            value = rows[0, last] | (value - field[LOW]) << free
        rows[0, last] = rows[1, last] = value
    if site[GRANULARITY] != NODE:
        last, free = site[START_WORD], site[START_SHIFT]
        if site[START_BITS] == RAW:
            rows[0, last], rows[1, last] = lo, hi
        else:
            rows[0, last] |= start_code(site, lo) << free
            rows[1, last] |= start_code(site, hi) << free
    if last >= 0:
        rows[1, last] |= (np.int64(1) << free) - 1
    for w in range(last + 1, words):
        rows[0, w], rows[1, w] = KEY_MIN, KEY_MAX


@inlined
def read_record(trace, s, words, at, regs):
    """Put prefix and context of the record of site `s` at `words[at:]` into `regs`."""
    site = trace.sites[s]
    for f in range(site[FIELD_LO], site[FIELD_HI]):
        field = trace.fields[f]
        regs[field[REGISTER]] = field_of(field, words, at)
