"""Maps in memory: hash tables with slices, many of them in one array of words.

A table has `CAP` slots of `WIDTH` words; a row of `tables.desc` describes it:

    slot    state (0 empty, 1 an entry, 2 one that went) | keys | values | per slice: next, previous (slot + 1; 0: none)

A key is looked for from the slot that its hash names, one slot after the other, up to an empty one. Maps that are
changed under the same keys are one table, with a value for each (twins.py). An entry goes when all its values are 0.
A *slice* of a map is all entries that agree in some of their keys: a list through the slots, which begins where an
*index* says, a table of its own whose value is the first slot of the list (+ 1).

Growing writes all entries into a larger region of the array; the old region is waste, until the array is full and
its owner (maps.py) copies what is in use into a larger one. Nothing here allocates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.triggers.order_kernel import Trees
from scantree._jit import inlined, kernel, prefetch

Words = npt.NDArray[np.int64]

# Columns of `desc`. FIRST: the row of the map's first index, and SLICES how many it has; LINKS: where these are in a
# slot; FIRST_ORDER and ORDERS: the same of its orders (order_kernel.py), tables from their prefixes to roots and, for
# each value, to the sum of the magnitudes in the tree; TOP: changes are logged.
OFF, CAP, COUNT, GONE, KEYS, VALUES, SLICES, FIRST, LINKS, WIDTH, TOP, ORDERS, FIRST_ORDER, FIELDS = range(14)
EMPTY, HELD, LEFT = 0, 1, 2
# A table is full where more than FULL tenths of its slots are no longer empty.
FULL = 7
LEAST = 4


class Tables(NamedTuple):
    """`mem` int64[words] · `desc` int64[tables, FIELDS] · `columns` int64[tables, most keys]: of an index, which keys.

    Of an order, the keys of the prefix and then the one that it is by. `top` int64[1]: the first word of `mem` that is
    not used · `trees`: of the orders.
    """

    mem: Words
    desc: Words
    columns: Words
    top: Words
    trees: Trees


@inlined
def hash_of(keys, at, n):
    """The hash of `n` keys from `keys[at]` on."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for i in range(n):
        h = (h ^ np.uint64(keys[at + i])) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
    return np.int64(h >> np.uint64(1))


@inlined
def find(mem, desc, t, keys, at):
    """The word where the slot of a key begins in table `t`; -1 if it has none."""
    cap, n, width, off = desc[t, CAP], desc[t, KEYS], desc[t, WIDTH], desc[t, OFF]
    slot = hash_of(keys, at, n) & (cap - 1)
    while True:
        word = off + slot * width
        state = mem[word]
        if state == EMPTY:
            return np.int64(-1)
        if state == HELD:
            same = True
            for i in range(n):
                if mem[word + 1 + i] != keys[at + i]:
                    same = False
                    break
            if same:
                return word
        slot = (slot + 1) & (cap - 1)


@inlined
def ask_for(mem, desc, t, keys, at):
    """Ask for the cache line where a key is looked for first, without waiting."""
    slot = hash_of(keys, at, desc[t, KEYS]) & (desc[t, CAP] - 1)
    prefetch(mem, desc[t, OFF] + slot * desc[t, WIDTH])


@kernel
def place(mem, desc, t, keys, at):
    """The word where a slot for a new key begins, which is now an entry with that key. The table has room."""
    cap, n, width, off = desc[t, CAP], desc[t, KEYS], desc[t, WIDTH], desc[t, OFF]
    slot = hash_of(keys, at, n) & (cap - 1)
    while mem[off + slot * width] == HELD:
        slot = (slot + 1) & (cap - 1)
    word = off + slot * width
    if mem[word] == LEFT:
        desc[t, GONE] -= 1
    mem[word] = HELD
    for i in range(n):
        mem[word + 1 + i] = keys[at + i]
    desc[t, COUNT] += 1
    return word


@kernel
def vacate(mem, desc, t, word):
    """An entry goes. Its slot is empty again if the next one is: no search passes it then."""
    cap, width, off = desc[t, CAP], desc[t, WIDTH], desc[t, OFF]
    slot = (word - off) // width
    desc[t, COUNT] -= 1
    if mem[off + ((slot + 1) & (cap - 1)) * width] != EMPTY:
        mem[word] = LEFT
        desc[t, GONE] += 1
        return
    mem[word] = EMPTY
    slot = (slot - 1) & (cap - 1)
    while mem[off + slot * width] == LEFT:
        mem[off + slot * width] = EMPTY
        desc[t, GONE] -= 1
        slot = (slot - 1) & (cap - 1)


@inlined
def _prefix(mem, tables, t, word, buffer):
    """The keys that index `t` has of the entry at `word` of its map, into `buffer`."""
    for i in range(tables.desc[t, KEYS]):
        buffer[i] = mem[word + 1 + tables.columns[t, i]]


@kernel
def link(tables, m, word, buffer):
    """Make an entry the first one of each of its slices."""
    mem, desc = tables.mem, tables.desc
    slot = (word - desc[m, OFF]) // desc[m, WIDTH] + 1
    for j in range(desc[m, SLICES]):
        t, links = desc[m, FIRST] + j, desc[m, LINKS] + 2 * j
        _prefix(mem, tables, t, word, buffer)
        head = find(mem, desc, t, buffer, 0)
        if head < 0:
            head = place(mem, desc, t, buffer, 0)
            mem[head + 1 + desc[t, KEYS]] = 0
        first = mem[head + 1 + desc[t, KEYS]]
        mem[word + links], mem[word + links + 1] = first, 0
        if first > 0:
            mem[desc[m, OFF] + (first - 1) * desc[m, WIDTH] + links + 1] = slot
        mem[head + 1 + desc[t, KEYS]] = slot


@kernel
def unlink(tables, m, word, buffer):
    """Take an entry out of its slices."""
    mem, desc = tables.mem, tables.desc
    off, width = desc[m, OFF], desc[m, WIDTH]
    for j in range(desc[m, SLICES]):
        t, links = desc[m, FIRST] + j, desc[m, LINKS] + 2 * j
        after, before = mem[word + links], mem[word + links + 1]
        if after > 0:
            mem[off + (after - 1) * width + links + 1] = before
        if before > 0:
            mem[off + (before - 1) * width + links] = after
            continue
        _prefix(mem, tables, t, word, buffer)
        head = find(mem, desc, t, buffer, 0)
        if after > 0:
            mem[head + 1 + desc[t, KEYS]] = after
        else:
            vacate(mem, desc, t, head)


@kernel
def has_room(desc, t):
    """Whether a table takes one more entry."""
    return (desc[t, COUNT] + desc[t, GONE] + 1) * 10 <= desc[t, CAP] * FULL


@kernel
def room_for_one(tables, m, buffer):
    """Make room for one more entry in a map and its indexes; returns the words that are missing, 0 if it has it."""
    desc = tables.desc
    for j in range(desc[m, SLICES]):
        if not has_room(desc, desc[m, FIRST] + j):
            missing = _rehash(tables, desc[m, FIRST] + j)
            if missing > 0:
                return missing
    if has_room(desc, m):
        return np.int64(0)
    missing = _rehash(tables, m)
    if missing == 0 and desc[m, SLICES] > 0:
        _relink(tables, m, buffer)
    return missing


@kernel
def _rehash(tables, t):
    """Write the entries of a table into a new region, of twice the slots if entries take most of them."""
    cap = tables.desc[t, CAP]
    return _move(tables, t, cap * 2 if (tables.desc[t, COUNT] + 1) * 20 > cap * FULL else cap)


@kernel
def _move(tables, t, slots):
    """Write the entries of a table into a new region of `slots`; returns the words that are missing, 0 if it could."""
    mem, desc = tables.mem, tables.desc
    cap, width, old = desc[t, CAP], desc[t, WIDTH], desc[t, OFF]
    if tables.top[0] + slots * width > len(mem):
        return slots * width
    new = tables.top[0]
    tables.top[0] += slots * width
    for word in range(new, new + slots * width, width):
        mem[word] = EMPTY
    desc[t, OFF], desc[t, CAP], desc[t, COUNT], desc[t, GONE] = new, slots, 0, 0
    for word in range(old, old + cap * width, width):
        if mem[word] == HELD:
            to = place(mem, desc, t, mem, word + 1)
            for i in range(1 + desc[t, KEYS], width):
                mem[to + i] = mem[word + i]
    return np.int64(0)


@kernel
def shrink(tables, m, buffer):
    """Move a map and its indexes where they have far too many slots; returns the words that are missing."""
    desc = tables.desc
    for j in range(desc[m, SLICES]):
        missing = _shrink(tables, desc[m, FIRST] + j)
        if missing > 0:
            return missing
    slots = desc[m, CAP]
    missing = _shrink(tables, m)
    if missing == 0 and desc[m, CAP] < slots and desc[m, SLICES] > 0:
        _relink(tables, m, buffer)
    return missing


@kernel
def _shrink(tables, t):
    """Move a table that has four times as many slots as its entries need; returns the words that are missing."""
    desc = tables.desc
    slots = np.int64(LEAST)
    while (desc[t, COUNT] + 1) * 10 > slots * FULL:
        slots = slots * 2
    if slots * 4 > desc[t, CAP]:
        return np.int64(0)
    return _move(tables, t, slots)


@kernel
def _relink(tables, m, buffer):
    """Make the slices of a map anew, whose entries are elsewhere now."""
    mem, desc = tables.mem, tables.desc
    for j in range(desc[m, SLICES]):
        t = desc[m, FIRST] + j
        for word in range(desc[t, OFF], desc[t, OFF] + desc[t, CAP] * desc[t, WIDTH], desc[t, WIDTH]):
            mem[word] = EMPTY
        desc[t, COUNT] = desc[t, GONE] = 0
    for word in range(desc[m, OFF], desc[m, OFF] + desc[m, CAP] * desc[m, WIDTH], desc[m, WIDTH]):
        if mem[word] == HELD:
            link(tables, m, word, buffer)


@kernel
def read_entries(mem, desc, t, out):
    """The entries of a table into `out` int64[keys + values, entries]."""
    n, at = desc[t, KEYS] + desc[t, VALUES], 0
    for word in range(desc[t, OFF], desc[t, OFF] + desc[t, CAP] * desc[t, WIDTH], desc[t, WIDTH]):
        if mem[word] == HELD:
            for i in range(n):
                out[i, at] = mem[word + 1 + i]
            at += 1


@kernel
def read_values(mem, desc, t, value, keys, out):
    """A value of keys int64[n, keys] in a table, 0 where it has none, into `out` int64[n]."""
    n = desc[t, KEYS]
    flat = keys.reshape(-1)
    for i in range(len(out)):
        word = find(mem, desc, t, flat, i * n)
        out[i] = mem[word + 1 + n + value] if word >= 0 else 0
