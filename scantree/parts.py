"""Batch update by several threads: a version is cut between directory pages, each thread makes a part of the next one.

    cut       directory pages [d, e) of the old version, and the changes that belong to them, are one part
    make      each part passes over its pages as an update of its own would (update.py), with its own buffers and with
              pages handed to it from the arena, and stops with what its buffers hold at the end
    join      from right to left: what a part made is a version for a moment, which the part before it passes over
              without a change, as if these were the old pages that come next

So joining costs what passing over unchanged directory pages costs, a reference each, but for the one or two at which
the buffers of the left part still hold something; and the invariants of update.py hold at the seams as they do
elsewhere. The rows are those of an update by one thread, and so are the verdicts; where its pages end may differ.

The arena's allocator is not thread-safe: each thread has a heap of its own, with free lists that are topped up, under a
lock, before they may run out, and handed back in the end. The reference counts of the pages of a part concern nobody
else. The caller holds the arena's lock for all of them.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from scantree import update as _update
from scantree._jit import kernel
from scantree.buffers import MADE, NEXT, PROBED, SPARE_DIRS, SPARE_PAGES, Work, pages_wanted, scratch
from scantree.crew import Crew, Shift, apart
from scantree.layout import DIRS, HEADER, PAGES, ROOM, ROWS, Shape, compare, dir_words, last_at_most, page_words
from scantree.memory import CLASSES, FREE, ArenaFullError, Heap, Words, allocate, drop, release
from scantree.probe import NOTHING
from scantree.update import ANY, finish, pass_over

if TYPE_CHECKING:
    from scantree.version import Store

Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]

# Changes from which on it is worth it: of a thousand, a millisecond for one thread, two gain nothing (bench.threads).
LEAST = 2_000
# Directory pages for which pages are handed out at a time: threads that wait for each other here lose more than some
# pages handed out in vain cost.
AT_ONCE = 16


@kernel
def cut(mem, root, shape, batch, j):
    """(the directory page that change `j` of `batch` int64[cols, m] belongs to, the first change that does)."""
    m = batch.shape[1]
    flat = batch.reshape(-1)
    room = mem[root + ROOM]
    fences = root + HEADER + 2 * room
    d = last_at_most(mem, fences, room, 0, mem[root + DIRS], flat[j:], m, shape.keys)
    lo, hi = 0, j
    while lo < hi:
        mid = (lo + hi) >> 1
        if compare(mem, fences + d, room, flat[mid:], m, shape.keys) > 0:
            lo = mid + 1
        else:
            hi = mid
    return d, lo


@kernel
def top_up(space, own, shape, work, pages, directories):
    """Hand free pages over from `space` to the heap `own`, until so many of either kind may be made."""
    state = work[3]
    while state[SPARE_PAGES] < pages:
        release(own, allocate(space, page_words(shape)), page_words(shape))
        state[SPARE_PAGES] += 1
    while state[SPARE_DIRS] < directories:
        release(own, allocate(space, dir_words(shape)), dir_words(shape))
        state[SPARE_DIRS] += 1


@kernel
def give_back(space, own, shape, work):
    """Hand what is left of the pages of `own` back to `space`, where the part goes on from here."""
    state = work[3]
    while state[SPARE_PAGES] > 0:
        release(space, allocate(own, page_words(shape)), page_words(shape))
        state[SPARE_PAGES] -= 1
    while state[SPARE_DIRS] > 0:
        release(space, allocate(own, dir_words(shape)), dir_words(shape))
        state[SPARE_DIRS] -= 1


@kernel
def take_in(space, shape, left, right, nothing, no_ops, no_verdicts):
    """Let the part `left` pass over all that `right` has made, and `right` be empty.

    `left`, `right`: `work` of update.py, whose pages were given back · `nothing` int64[cols, 0], `no_ops` and
    `no_verdicts` int8[0].
    """
    root = finish(space, shape, right, 0)
    state = left[3]
    state[NEXT], state[PROBED] = 0, 0
    first = root - root  # a literal would be a type of its own
    end = space.mem[root + DIRS]
    pass_over(space, root, shape, nothing, no_ops, no_verdicts, left, first, end, ANY, ANY)
    right[3][:] = 0
    drop(space, root, shape)


@kernel
def undo(space, shape, work):
    """Drop what a part, whose pages were given back, has made."""
    state = work[3]
    drop(space, state[MADE] if state[MADE] != 0 else finish(space, shape, work, 0), shape)
    state[:] = 0


def _seams(mem: Words, root: int, shape: Shape, batch: Rows, threads: int) -> list[tuple[int, int]]:
    """(directory page, first change) with which all parts but the first begin; each has about as many changes."""
    seams: list[tuple[int, int]] = []
    for i in range(1, threads):
        d, j = (int(at) for at in cut(mem, root, shape, batch, batch.shape[1] * i // threads))
        if d > (seams[-1][0] if seams else 0):
            seams.append((d, j))
    return seams


class _Part(NamedTuple):
    """Directory pages [lo, hi), the changes that belong to them, and what the part is made with."""

    lo: int
    hi: int
    batch: Rows
    ops: Kinds
    verdicts: Kinds
    work: Work
    heap: Heap


def _scratch(shape: Shape, m: int, dirs: int) -> Work:
    rows, entries, tops, state = scratch(shape, m, dirs)
    return apart(rows), apart(entries), apart(tops), apart(state)


def _parts(
    seams: list[tuple[int, int]], space: Heap, shape: Shape, batch: Rows, ops: Kinds, verdicts: Kinds, dirs: int
) -> list[_Part]:
    ends = [(0, 0), *seams, (dirs, len(ops))]
    return [
        _Part(
            lo,
            hi,
            np.ascontiguousarray(batch[:, first:after]),
            ops[first:after],
            apart(verdicts[first:after]),
            # The first one takes in all others, whose seams may take a directory page or two more.
            _scratch(shape, len(ops), dirs + 2 * len(ends)),
            Heap(space.mem, space.refs, apart(np.zeros(FREE + CLASSES, np.int64))),
        )
        for (lo, first), (hi, after) in pairwise(ends)
    ]


def update_in_parts(store: Store, root: int, batch: Rows, ops: Kinds, verdicts: Kinds, crew: Crew) -> int:
    """The root of the next version, as `update.update` makes it; 0 if it cannot be made so.

    That is where all changes belong to one directory page, or memory is short. `batch` int64[cols, m], `ops` int8[m]
    and `verdicts` int8[m] (written) as there. The caller holds the arena's lock.
    """
    arena, shape, m = store.arena, store.shape, len(ops)
    space = arena.space
    dirs, pages = int(space.mem[root + DIRS]), int(space.mem[root + PAGES])
    seams = _seams(space.mem, root, shape, batch, crew.threads) if dirs > 1 and shape.keys > 0 else []
    if not seams:
        return 0
    # What may be made of a directory page and what the buffers hold before it: all pages but the last are half full.
    most = (2 << shape.dir_bits) + (2 * m >> shape.page_bits) + 8
    most_dirs = (4 * m >> (shape.page_bits + shape.dir_bits)) + 18
    wanted = most + (AT_ONCE << shape.dir_bits), most_dirs + 2 * AT_ONCE
    rows, directories = pages_wanted(shape, m, dirs, pages)
    parts = len(seams) + 1
    try:
        sizes = store._sizes(rows + parts * wanted[0], directories + parts * wanted[1], dirs + directories)
        arena.room(*sizes, *(sizes[2],) * parts)
    except ArenaFullError:
        return 0
    made = _parts(seams, space, shape, batch, ops, verdicts, dirs)
    gate = threading.Lock()

    def work(i: int, shift: Shift) -> None:
        part = made[i]
        d = part.lo
        given = (part.batch, part.ops, part.verdicts, part.work)
        _update.begin(space.mem, root, shape, *given)
        while d < part.hi:
            shift.look(0)
            with gate:
                top_up(space, part.heap, shape, part.work, *wanted)
            d = pass_over(part.heap, root, shape, *given, d, part.hi, most, most_dirs)

    shift = crew.shift(work, parts, first=1)
    try:
        with shift:
            work(0, shift)
            while not shift.over:
                shift.wait(1.0)
        for part in made:
            assert part.work[3][SPARE_PAGES] >= 0 <= part.work[3][SPARE_DIRS], "more pages were made than handed out"
            give_back(space, part.heap, shape, part.work)
        np.concatenate([part.verdicts for part in made], out=verdicts)
        if not (verdicts != NOTHING).any():
            for part in made:
                undo(space, shape, part.work)
            return root
        none = (np.empty((shape.cols, 0), np.int64), ops[:0], verdicts[:0])
        for left, right in zip(made[-2::-1], made[:0:-1], strict=True):
            take_in(space, shape, left.work, right.work, *none)
        rows = int(space.mem[root + ROWS]) + int(_update.growth(verdicts))
        return int(finish(space, shape, made[0].work, rows))
    except BaseException:
        for part in made:
            give_back(space, part.heap, shape, part.work)
            undo(space, shape, part.work)
        raise
