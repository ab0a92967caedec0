"""Trie iterators over paged relations: `open_ up next_ seek at_end key`, the six operations a leapfrog triejoin needs.

A relation is seen as a trie in its key order: level 0 holds the distinct first keys, below each of them the distinct
second keys, and so on. Read the other way: column l of the sorted rows, with runs of equal keys collapsed; the keys
under a prefix are the run of rows that start with it.

One *frame* per level of an atom is all the state there is: row f of `frames : int64[n, WIDTH]`. `ABOVE` names the
frame of the level above; atoms over the same rows whose leading variables agree share those frames. A frame knows the
run it ranges over (from its first row to the last page and the end within it) and where it stands:

    run:    FIRST_SLOT, FIRST_POS  ...  LAST_SLOT, LAST_POS (exclusive)           where: SLOT, POS, END, BASE, KEY, DONE

`SLOT` packs directory page and entry (layout.py); [POS, END) is what is left of the run in that page, and `mem[BASE +
p]` its keys. So inside a page everything is one contiguous column: resolving a run once, at `open_`, and galloping in
it afterwards is what makes the join fast.

Runs are resolved lazily and once: a frame whose parent has not moved is only rewound (`OPENED`). No key is reserved:
the end is the flag DONE. `seek` costs O(log distance) within a page, O(log pages) beyond; all six are O(log n) at
worst (Leapfrog Triejoin, section 3.3).
"""

from __future__ import annotations

import numpy as np

from scantree._jit import inlined, kernel, prefetch
from scantree.layout import DIRS, HEADER, ROOM

# fmt: off
# What a frame ranges over, fixed for the life of a join; UNIQUE: rows below a key are one; JUMP: 0, or the relation's
# jump table; ABOVE: the frame of the level above; REGISTER: where the key of its variable is:
ROOT, LEVEL, PAGE_BITS, DIR_BITS, UNIQUE, JUMP, JUMP_LOW, JUMP_HIGH = 0, 1, 2, 3, 4, 5, 6, 7
# ... in the place of its range, where there is no table, the branch filter of the level (scantree/filter.py), or 0:
FILTER, FILTER_MASK = JUMP_LOW, JUMP_HIGH
ABOVE, REGISTER = 14, 15
# The run under the parent's key (the last position is exclusive and lies in the page of the last row), and whether it
# is resolved:
FIRST_SLOT, FIRST_POS, FIRST_PAGE, LAST_SLOT, LAST_POS, OPENED = 8, 9, 10, 11, 12, 13
# Where it stands:
SLOT, POS, END, PAGE, BASE, KEY, DONE = 16, 17, 18, 19, 20, 21, 22
WIDTH = 24
# fmt: on

KEY_MIN, KEY_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max


ONE, LINEAR = np.uint64(1), np.uint64(8)
LINE = 8  # words of a cache line


@inlined
def forward(mem, p, e, c):
    """First address in [p, e) holding a key >= `c`, else e: a few linear probes, then galloping.

    In most leapfrogs most seeks move by a few keys, and a short loop is predicted better than a bisection. O(log
    distance). Addresses are unsigned: signed ones cost a sign test per access.
    """
    near = p + LINEAR
    if near > e:
        near = e
    while p < near:
        if mem[p] >= c:
            return p
        p += ONE
    step = ONE
    while p < e and mem[p] < c:
        near = p + ONE
        p += step
        step += step
    if p > e:
        p = e
    while near < p:
        mid = (near + p) >> ONE
        if mem[mid] < c:
            near = mid + ONE
        else:
            p = mid
    return p


@kernel
def gallop(mem, base, lo, hi, key):
    """First p in [lo, hi) with `mem[base + p] >= key`, else hi."""
    return np.int64(forward(mem, np.uint64(base + lo), np.uint64(base + hi), key)) - base


@inlined
def _page_of(mem, fr, slot):
    """Offset of the row page at `slot`."""
    bits = fr[DIR_BITS]
    return mem[mem[fr[ROOT] + HEADER + (slot >> bits)] + (slot & ((1 << bits) - 1))]


@inlined
def _rows_of(mem, fr, slot):
    """Rows in the page at `slot`."""
    bits = fr[DIR_BITS]
    return mem[mem[fr[ROOT] + HEADER + (slot >> bits)] + (1 << bits) + (slot & ((1 << bits) - 1))]


@inlined
def _enter(mem, fr, slot, pos, page):
    """Stand on row `pos` of `page`, the page at `slot`, which lies in the frame's run."""
    base = page + (fr[LEVEL] << fr[PAGE_BITS])
    fr[SLOT], fr[POS], fr[PAGE], fr[BASE] = slot, pos, page, base
    fr[END] = fr[LAST_POS] if slot == fr[LAST_SLOT] else _rows_of(mem, fr, slot)
    fr[KEY] = mem[base + pos]


@kernel
def _following(mem, fr, slot):
    """The slot after `slot`."""
    bits, root = fr[DIR_BITS], fr[ROOT]
    d, s = slot >> bits, slot & ((1 << bits) - 1)
    if s + 1 < mem[root + HEADER + mem[root + ROOM] + d]:
        return slot + 1
    return (d + 1) << bits


@kernel
def _page_before(mem, fr, level, lo_slot, hi_slot, key):
    """The last slot in [lo_slot, hi_slot] whose fence at `level` is < `key`; `lo_slot` if there is none after it.

    All slots after lo_slot lie inside one run, so their fences agree above `level` and ascend at it. Gallops: first
    inside the directory page of `lo_slot`, then over the root, then inside one directory page.
    """
    bits, root = fr[DIR_BITS], fr[ROOT]
    fan, mask = 1 << bits, (1 << bits) - 1
    room = mem[root + ROOM]
    d, s, hd, hs = lo_slot >> bits, lo_slot & mask, hi_slot >> bits, hi_slot & mask
    if d < hd:
        tops = root + HEADER + (2 + level) * room
        if mem[tops + d + 1] < key:
            d, s = gallop(mem, tops, d + 1, hd + 1, key) - 1, 0
    directory = mem[root + HEADER + d]
    last = hs if d == hd else mem[root + HEADER + room + d] - 1
    s = gallop(mem, directory + (2 + level) * fan, s + 1, last + 1, key) - 1
    return (d << bits) | s


@kernel
def run_end(mem, fr):
    """(slot, pos) where the run of the frame's current key ends.

    The page holding its last row, and one past it there.
    """
    key, slot, pos, end = fr[KEY], fr[SLOT], fr[POS], fr[END]
    if fr[UNIQUE]:
        return slot, pos + 1
    if key == KEY_MAX:
        return fr[LAST_SLOT], fr[LAST_POS]
    if fr[JUMP]:
        after = mem[fr[JUMP] + 2 * (key - fr[JUMP_LOW]) + 3]
        if after >> fr[PAGE_BITS] == slot:
            return slot, after & ((1 << fr[PAGE_BITS]) - 1)
        end = fr[LAST_POS] if slot == fr[LAST_SLOT] else _rows_of(mem, fr, slot)
    p = gallop(mem, fr[BASE], pos, end, key + 1)
    if p < end or slot == fr[LAST_SLOT]:
        return slot, p
    slot = _page_before(mem, fr, fr[LEVEL], slot, fr[LAST_SLOT], key + 1)
    if slot == fr[SLOT]:
        return slot, end
    hi = fr[LAST_POS] if slot == fr[LAST_SLOT] else _rows_of(mem, fr, slot)
    return slot, gallop(mem, _page_of(mem, fr, slot) + (fr[LEVEL] << fr[PAGE_BITS]), 0, hi, key + 1)


@inlined
def open_(mem, frames, f):
    """Range over the keys under the parent's current key (level 0: over all), standing on the first.

    False if there is none.

    Only level 0 of an empty relation has none. A run that is resolved already is only rewound.
    """
    fr = frames[f]
    if fr[OPENED] == 0:
        if fr[LEVEL] == 0:
            root = fr[ROOT]
            dirs = mem[root + DIRS]
            if dirs == 0:
                fr[DONE] = 1
                return False
            s = mem[root + HEADER + mem[root + ROOM] + dirs - 1] - 1
            slot = ((dirs - 1) << fr[DIR_BITS]) | s
            fr[FIRST_SLOT], fr[FIRST_POS], fr[FIRST_PAGE] = 0, 0, _page_of(mem, fr, 0)
            fr[LAST_SLOT], fr[LAST_POS] = slot, _rows_of(mem, fr, slot)
        else:
            above = frames[fr[ABOVE]]
            slot, pos = run_end(mem, above)
            fr[FIRST_SLOT], fr[FIRST_POS], fr[FIRST_PAGE] = above[SLOT], above[POS], above[PAGE]
            fr[LAST_SLOT], fr[LAST_POS] = slot, pos
        fr[OPENED] = 1
    fr[DONE] = 0
    _enter(mem, fr, fr[FIRST_SLOT], fr[FIRST_POS], fr[FIRST_PAGE])
    return True


@kernel
def ask_for(mem, fr, key):
    """Ask for the first keys of the page in which the frame `fr`, of level 0, will look for `key`."""
    root, bits = fr[ROOT], fr[DIR_BITS]
    dirs = mem[root + DIRS]
    if dirs == 0:
        return
    last = mem[root + HEADER + mem[root + ROOM] + dirs - 1] - 1
    slot = _page_before(mem, fr, 0, 0, ((dirs - 1) << bits) | last, key)
    page = _page_of(mem, fr, slot)
    for at in range(page, page + _rows_of(mem, fr, slot), LINE):
        prefetch(mem, at)


@kernel
def key_before(mem, frames, f):
    """(whether there is one, the greatest key of the run before where the frame stands); of all if it is at the end."""
    fr = frames[f]
    if fr[OPENED] == 0:
        return False, KEY_MIN
    slot, pos = (fr[LAST_SLOT], fr[LAST_POS]) if fr[DONE] else (fr[SLOT], fr[POS])
    if slot == fr[FIRST_SLOT] and pos == fr[FIRST_POS]:
        return False, KEY_MIN
    if pos == 0:
        bits = fr[DIR_BITS]
        if slot & ((1 << bits) - 1):
            slot -= 1
        else:
            d = (slot >> bits) - 1
            slot = (d << bits) | (mem[fr[ROOT] + HEADER + mem[fr[ROOT] + ROOM] + d] - 1)
        pos = _rows_of(mem, fr, slot)
    return True, mem[_page_of(mem, fr, slot) + (fr[LEVEL] << fr[PAGE_BITS]) + pos - 1]


@kernel
def following(mem, frames, f):
    """Stand on the first row of the run's next page; False if there is none."""
    fr = frames[f]
    if fr[SLOT] == fr[LAST_SLOT]:
        return False
    slot = _following(mem, fr, fr[SLOT])
    _enter(mem, fr, slot, 0, _page_of(mem, fr, slot))
    return True


@kernel
def full_until(mem, frames, f):
    """(the greatest key k such that the run holds every key from the present one to k, pages looked at).

    Keys of a run ascend, so all keys between two rows are there if and only if they differ by as much as the rows'
    places do: a page is passed in one comparison, and bisected where the first gap is. Nothing moves.
    """
    fr = frames[f]
    slot, pos, end, base, pages = fr[SLOT], fr[POS], fr[END], fr[BASE], 1
    if fr[UNIQUE] == 0 or (pos + 1 < end and mem[base + pos + 1] != fr[KEY] + 1):
        return fr[KEY], pages
    while mem[base + end - 1] - mem[base + pos] == end - 1 - pos:
        last = mem[base + end - 1]
        if slot == fr[LAST_SLOT]:
            return last, pages
        slot = _following(mem, fr, slot)
        pos, end = 0, fr[LAST_POS] if slot == fr[LAST_SLOT] else _rows_of(mem, fr, slot)
        base = _page_of(mem, fr, slot) + (fr[LEVEL] << fr[PAGE_BITS])
        pages += 1
        if last == KEY_MAX or mem[base] != last + 1:
            return last, pages
    lo, hi = pos, end - 1
    while hi - lo > 1:
        mid = (lo + hi) >> 1
        if mem[base + mid] - mem[base + pos] == mid - pos:
            lo = mid
        else:
            hi = mid
    return mem[base + lo], pages


@inlined
def up(frames, f):
    """Forget the run: the parent is about to move, the next `open_` resolves it anew."""
    frames[f, OPENED] = 0


@inlined
def _jump(mem, fr, key):
    """`seek` by the jump table (`fill_jump`).

    Of a key that is there nothing else is touched, END is left to `run_end`.
    """
    if key > fr[JUMP_HIGH]:
        fr[DONE] = 1
        return
    at = fr[JUMP] + 2 * (key - fr[JUMP_LOW])
    bits = fr[PAGE_BITS]
    target = mem[at + 1]
    slot, pos = target >> bits, target & ((1 << bits) - 1)
    page = mem[at] - pos
    fr[SLOT], fr[POS], fr[PAGE], fr[BASE] = slot, pos, page, page
    fr[KEY] = key if mem[at + 3] != target else mem[page + pos]


@kernel
def _seek_far(mem, frames, f, key):
    """`seek` for a key that is not in what is left of the present page."""
    fr = frames[f]
    if fr[SLOT] == fr[LAST_SLOT]:
        fr[DONE] = 1
        return
    slot = _page_before(mem, fr, fr[LEVEL], _following(mem, fr, fr[SLOT]), fr[LAST_SLOT], key)
    page = _page_of(mem, fr, slot)
    end = fr[LAST_POS] if slot == fr[LAST_SLOT] else _rows_of(mem, fr, slot)
    p = gallop(mem, page + (fr[LEVEL] << fr[PAGE_BITS]), 0, end, key)
    if p < end:
        _enter(mem, fr, slot, p, page)
    elif slot == fr[LAST_SLOT]:
        fr[DONE] = 1
    else:
        # The page's fence is below the key and the next page's is not.
        slot = _following(mem, fr, slot)
        _enter(mem, fr, slot, 0, _page_of(mem, fr, slot))


@inlined
def seek(mem, frames, f, key):
    """Move forward to the least key >= `key` of the run; DONE if there is none. Never moves back."""
    fr = frames[f]
    if fr[KEY] >= key:
        return
    if fr[JUMP]:
        _jump(mem, fr, key)
        return
    end = fr[END]
    p = gallop(mem, fr[BASE], fr[POS], end, key)
    if p < end:
        fr[POS] = p
        fr[KEY] = mem[fr[BASE] + p]
        return
    _seek_far(mem, frames, f, key)


@kernel
def next_(mem, frames, f):
    """Move to the next key of the run; DONE if there is none."""
    fr = frames[f]
    if fr[JUMP]:  # a jump leaves END open
        fr[END] = fr[LAST_POS] if fr[SLOT] == fr[LAST_SLOT] else _rows_of(mem, fr, fr[SLOT])
    slot, pos = run_end(mem, fr)
    if slot == fr[SLOT] and pos < fr[END]:
        fr[POS] = pos
        fr[KEY] = mem[fr[BASE] + pos]
    elif slot == fr[LAST_SLOT] and pos == fr[LAST_POS]:
        fr[DONE] = 1
    else:
        if pos >= _rows_of(mem, fr, slot):
            slot, pos = _following(mem, fr, slot), 0
        _enter(mem, fr, slot, pos, _page_of(mem, fr, slot))


@kernel
def at_end(frames, f):
    """Whether the run is exhausted."""
    return frames[f, DONE] != 0


@kernel
def key(frames, f):
    """The current key; only while not at the end."""
    return frames[f, KEY]


@kernel
def run_length(mem, frames, f):
    """Rows from where the frame stands to the end of its run."""
    fr = frames[f]
    slot, total = fr[SLOT], fr[END] - fr[POS]
    while slot != fr[LAST_SLOT]:
        slot = _following(mem, fr, slot)
        total += fr[LAST_POS] if slot == fr[LAST_SLOT] else _rows_of(mem, fr, slot)
    return total


@kernel
def fill_jump(mem, root, dir_bits, page_bits, table, low, high):
    """Write the jump table of a version.

    For each k from `low` to `high` + 1, two words about the least row whose first key is >= k: its address at
    `mem[table + 2 * (k - low)]` and its position in the next word.

    `low` and `high` are the least and greatest first keys. One pass over the first columns. This is the index array
    of a CSR graph for as long as one evaluation needs it: a random `seek` at level 0 costs one cache line instead of
    a walk through the fences.
    """
    dirs, fan = mem[root + DIRS], 1 << dir_bits
    k = low
    for d in range(dirs):
        directory = mem[root + HEADER + d]
        for s in range(mem[root + HEADER + mem[root + ROOM] + d]):
            page = mem[directory + s]
            for p in range(mem[directory + fan + s]):
                while k <= mem[page + p]:
                    at = table + 2 * (k - low)
                    mem[at] = page + p
                    mem[at + 1] = (((d << dir_bits) | s) << page_bits) | p
                    k += 1
    mem[table + 2 * (high + 1 - low) + 1] = (dirs << dir_bits) << page_bits


@inlined
def look_ahead(mem, frames, f, g):
    """Ask for the memory that the next matches of a depth will need.

    Frame `f` walks its run, frame `g` follows it by jump table.

    The entry of the key after the next, and the row the next key's entry points to. On graphs larger than the cache
    this hides most of both misses.
    """
    p, end = frames[f, POS], frames[f, END]
    base, table, low, high = frames[f, BASE], frames[g, JUMP], frames[g, JUMP_LOW], frames[g, JUMP_HIGH]
    if p + 2 < end:
        k = mem[base + p + 2]
        if low <= k <= high:
            prefetch(mem, table + 2 * (k - low))
        k = mem[base + p + 1]
        if low <= k <= high:
            prefetch(mem, mem[table + 2 * (k - low)] + (1 << frames[g, PAGE_BITS]))


@kernel
def ask_for_key(mem, frames, f, key):
    """Ask for the page where frame `f`, of level 0, would find `key`; nothing moves.

    Changes lie all over the memory. Asking for the pages of those to come while one is dealt with hides most of the
    wait for them.
    """
    fr = frames[f]
    root, bits = fr[ROOT], fr[DIR_BITS]
    dirs, room, fan = mem[root + DIRS], mem[root + ROOM], 1 << bits
    if dirs == 0:
        return
    d = max(np.int64(1), gallop(mem, root + HEADER + 2 * room, 0, dirs, key)) - 1
    directory = mem[root + HEADER + d]
    s = max(np.int64(1), gallop(mem, directory + 2 * fan, 0, mem[root + HEADER + room + d], key)) - 1
    page = mem[directory + s]
    for at in range(page, page + (1 << fr[PAGE_BITS]), 2 * LINE):
        prefetch(mem, at)
