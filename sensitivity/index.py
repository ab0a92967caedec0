"""The sensitivity indexes of a trace: per site the packed records, sorted, in versioned pages.

    build()    once the trace is recorded: records in the order of the walk are sorted in bulk
    stage()    after a change: records that go are taken out and records that come put in, giving new roots; the
               present ones stay as they are
    adopt()    the staged roots become the present ones

What is staged owns its pages: they go back to the arena with it, or, once adopted, those that only the roots before it
held. So an interruption at any moment, in whoever holds it, loses none.

A record is a row without values, its words the key. Nobody but the trace reads its indexes, so one root per site is all
there is to hold: no version outlives the next commit. All sites are brought up to date by one kernel.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined, kernel
from scantree.buffers import STATE
from scantree.layout import DIRS, HEADER, PAGES, Shape
from scantree.layout import ROWS as ROWS_OF
from scantree.memory import Arena, drop
from scantree.probe import ERASED, INSERTED
from scantree.sort import sort_rows
from scantree.update import update
from scantree.version import Store, Version
from sensitivity.oracle import index_shape, shape_of
from sensitivity.packing import Packing
from sensitivity.records import AT, DIR_BITS, PAGE_BITS, ROOT, WORDS, Trace

Ints = npt.NDArray[np.int64]

# Records of one word that a kernel sorts by insertion; more are sorted by numpy before.
FEW = 48


@inlined
def _compare(x, i, y, j, words):
    """-1, 0 or 1: the record at `x[i:]` against the one at `y[j:]`."""
    for w in range(words):
        if x[i + w] < y[j + w]:
            return -1
        if x[i + w] > y[j + w]:
            return 1
    return 0


@kernel
def _sort_few(buffer, at, n, words):
    """Sort the `n` records of `words` words at `buffer[at:]` in place, by insertion."""
    for i in range(1, n):
        j = i
        while j > 0 and _compare(buffer, at + j * words, buffer, at + (j - 1) * words, words) < 0:
            for w in range(words):
                x, y = at + j * words + w, at + (j - 1) * words + w
                buffer[x], buffer[y] = buffer[y], buffer[x]
            j -= 1


@kernel
def _merge(old, old_at, n_old, new, new_at, n_new, words, batch, ops):
    """Merge sorted records that go (`old`) with those that come (`new`) into a batch; what is in both stays.

    Writes `batch` int64[...], word by word for m records each, and `ops` int8[m]; returns m. The batch is written
    twice: the first pass counts.
    """
    m = 0
    for write in range(2):
        i, j, k = 0, 0, 0
        while i < n_old or j < n_new:
            if i == n_old:
                order = 1
            elif j == n_new:
                order = -1
            else:
                order = _compare(old, old_at + i * words, new, new_at + j * words, words)
            if order == 0:
                i += 1
                j += 1
                continue
            if write:
                for w in range(words):
                    batch[w * m + k] = old[old_at + i * words + w] if order < 0 else new[new_at + j * words + w]
                ops[k] = order
            k += 1
            if order < 0:
                i += 1
            else:
                j += 1
        m = k
    return m


@kernel
def stage_sites(space, sites, old, old_fills, new, new_fills, places, batch, ops, verdicts, work, roots, counts):
    """Take records out of the indexes of `sites` and put others in.

    `old`, `new` int64[...]: the records of both sides, those of site s from `places[s]` (old) and `places[n + s]` (new)
    on, `old_fills[s]` and `new_fills[s]` of them; sorted here if they are few, else by the caller. `batch`, `ops`,
    `verdicts`: scratch for the largest site. `work` int64[...]: scratch for `update`. Writes the new roots to
    `roots` int64[n], and records that went and came to `counts` int64[2]. The caller has checked `room`.
    """
    n = len(roots)
    for s in range(n):
        site = sites[s]
        words = site[WORDS]
        roots[s] = site[ROOT]
        if old_fills[s] == 0 and new_fills[s] == 0:
            continue
        if old_fills[s] <= FEW:
            _sort_few(old, places[s], old_fills[s], words)
        if new_fills[s] <= FEW:
            _sort_few(new, places[n + s], new_fills[s], words)
        m = _merge(old, places[s], old_fills[s], new, places[n + s], new_fills[s], words, batch, ops)
        if m == 0:
            continue
        shape = shape_of(site)
        rows, verdict = batch[: words * m].reshape((words, m)), verdicts[:m]
        pages, dirs = words * (4 << shape.page_bits), (2 + words) * (4 << shape.dir_bits)
        tops = (len(work) - pages - dirs - STATE) // (2 + words)
        scratch = (
            work[:pages].reshape((words, 4 << shape.page_bits)),
            work[pages : pages + dirs].reshape((2 + words, 4 << shape.dir_bits)),
            work[pages + dirs : pages + dirs + (2 + words) * tops].reshape((2 + words, tops)),
            work[len(work) - STATE :],
        )
        roots[s] = update(space, site[ROOT], shape, rows, ops[:m], verdict, scratch)
        for j in range(m):
            if verdict[j] == ERASED:
                counts[0] += 1
            elif verdict[j] == INSERTED:
                counts[1] += 1


@kernel
def room_for(mem, roots, words, page_bits, dir_bits, m):
    """(words of pages, words of `work`, words of the longest record) that `m` changes to every index may take.

    `roots`, `words` int64[n]: of the sites; root 0: no index.
    """
    page, fan = 1 << page_bits, 1 << dir_bits
    wanted, work, longest = 0, 0, 1
    for s in range(len(roots)):
        k, root = words[s], roots[s]
        if root == 0:
            continue
        dirs = mem[root + DIRS]
        touched = min(m, mem[root + PAGES]) * 3 + 2 * m // page + 4
        touched_dirs = min(touched, dirs * 3 + 2 * touched // fan + 4)
        tops = dirs + min(dirs, m) + m // fan + 8
        wanted += touched * (k * page + 64) + touched_dirs * ((2 + k) * fan + 64) + 2 * (HEADER + (2 + k) * 2 * tops)
        work = max(work, k * 4 * page + (2 + k) * (4 * fan + tops) + STATE)
        longest = max(longest, k)
    return wanted, work, longest


@kernel
def drop_sites(space, words, page_bits, dir_bits, gone, kept):
    """Give back the pages of the roots in `gone` int64[n] that are not in `kept`, site by site.

    `words` int64[n]: those of a record of each site.
    """
    for s in range(len(gone)):
        if gone[s] != kept[s] and gone[s] != 0:
            drop(space, gone[s], index_shape(words[s], page_bits, dir_bits))


class Staged:
    """New `roots`, and how many records went and came (`removed`, `added`).

    Pages that only `roots` hold, and `kept` do not, are given back when it goes.
    """

    __slots__ = ("_give_back", "added", "kept", "removed", "roots")

    def __init__(self, roots: Ints, give_back: Callable[[Ints, Ints], None]) -> None:
        self.roots, self.kept = roots.copy(), roots.copy()
        self.removed = self.added = 0
        self._give_back = give_back

    def __del__(self) -> None:
        if hasattr(self, "_give_back"):  # it was interrupted before it was made otherwise
            self._give_back(self.roots, self.kept)


class SensitivityIndexes:
    """The indexes of the sites of one trace; sites without one have root 0."""

    def __init__(self, arena: Arena, sites: int, *, page_rows: int = 256, dir_rows: int = 64) -> None:
        self.arena = arena
        self.packings: dict[int, Packing] = {}
        self.roots = np.zeros(sites, np.int64)
        self._bits = (page_rows.bit_length() - 1, dir_rows.bit_length() - 1)
        self._work: Ints = np.empty(0, np.int64)
        self._words = np.zeros(sites, np.int64)
        space, held, words, bits = arena.space, self.roots, self._words, self._bits
        # The arena is not named: a queued release must not keep it alive.
        finalizer = weakref.finalize(
            self, arena.drop_later, lambda: drop_sites(space, words, *bits, held, np.zeros_like(held))
        )
        finalizer.atexit = False

        def give_back(gone: Ints, kept: Ints) -> None:
            arena.drop_later(lambda: drop_sites(space, words, *bits, gone, kept))

        self._give_back = give_back

    def shape(self, s: int) -> Shape:
        """The shape of the rows of site `s`."""
        words = self.packings[s].words
        return Shape(words, words, *self._bits)

    def build(self, s: int, packing: Packing, flat: Ints) -> None:
        """Make the index of site `s`: the records in `flat` int64[n * words], one after the other, in any order."""
        if packing.words == 1:
            # No two steps of a trace leave the same record, so sorting is all.
            flat.sort()
            rows = flat[None, :]
        else:
            rows = sort_rows(list(flat.reshape(-1, packing.words).T), packing.words)
        self.put(s, packing, rows)

    def put(self, s: int, packing: Packing, rows: Ints) -> None:
        """Make the index of site `s` of packed records in order, `rows` int64[words, n]."""
        store = Store(self.arena, packing.words, page_rows=1 << self._bits[0], dir_rows=1 << self._bits[1])
        version = store.assemble([rows])
        with self.arena.lock:
            version.release()
            self.packings[s] = packing
            self._words[s], self.roots[s] = packing.words, version.root

    def write_roots(self, rows: Ints) -> None:
        """Tell the sites of a recorder where their indexes are."""
        rows[:, ROOT] = self.roots
        rows[:, PAGE_BITS], rows[:, DIR_BITS] = self._bits

    def stage(self, old: Trace, new: Trace, drained: Sequence[Sequence[Sequence[Ints]]]) -> Staged:
        """Take out the records in `old` and put in those in `new`; what was drained of both sides comes on top."""
        n = len(self.roots)
        buffers, fills, places = [], [], np.empty(2 * n, np.int64)
        most = 0
        for side, (trace, chunks) in enumerate(zip((old, new), drained, strict=True)):
            if any(chunks):
                buffer, counts, starts = _gathered(trace, chunks)
            else:
                buffer, counts, starts = trace.buffer, trace.fills, trace.sites[:, AT]
            places[side * n : side * n + n] = starts
            largest = max(counts.tolist())
            if largest > FEW:
                self._sort(buffer, counts, starts)
            most += largest
            buffers.append(buffer)
            fills.append(counts)
        staged = Staged(self.roots, self._give_back)
        counts = np.zeros(2, np.int64)
        with self.arena.lock:
            words = self._room(most)
            stage_sites(
                self.arena.space,
                old.sites,
                buffers[0],
                fills[0],
                buffers[1],
                fills[1],
                places,
                np.empty(most * words, np.int64),
                np.empty(most, np.int8),
                np.empty(most, np.int8),
                self._work,
                staged.roots,
                counts,
            )
        staged.removed, staged.added = int(counts[0]), int(counts[1])
        return staged

    def _room(self, m: int) -> int:
        """Make sure of pages and scratch for `m` changes to every index; the words of the longest records."""
        wanted, work, words = room_for(self.arena.space.mem, self.roots, self._words, *self._bits, m)
        self.arena.room(int(wanted))
        if len(self._work) < work:
            self._work = np.empty(work, np.int64)
        return int(words)

    def _sort(self, buffer: Ints, counts: Ints, starts: Ints) -> None:
        """Sort the records of the sites that have more than a kernel sorts by insertion."""
        for s, packing in self.packings.items():
            n, at = int(counts[s]), int(starts[s])
            if n > FEW:
                part = buffer[at : at + n * packing.words]
                if packing.words == 1:
                    part.sort()
                else:
                    rows = part.reshape(n, packing.words)
                    part[:] = rows[np.lexsort(rows.T[::-1])].reshape(-1)

    def adopt(self, staged: Staged) -> None:
        """The staged roots become the present ones; `staged` is left with those they replace."""
        before = self.roots.copy()
        # Nothing is called from here on: no signal comes between.
        self.roots[:] = staged.roots
        staged.roots, staged.kept = before, staged.roots

    def repacked(self, packings: Mapping[int, Packing]) -> SensitivityIndexes:
        """The same records in other packings, apart from these."""
        page_rows, dir_rows = 1 << self._bits[0], 1 << self._bits[1]
        made = SensitivityIndexes(self.arena, len(self.roots), page_rows=page_rows, dir_rows=dir_rows)
        for s, packing in packings.items():
            made.build(s, packing, np.ascontiguousarray(packing.pack(self.records(s)).T).reshape(-1))
        return made

    def _view(self, s: int) -> Version:
        shape = self.shape(s)
        store = Store(self.arena, shape.keys, page_rows=1 << shape.page_bits, dir_rows=1 << shape.dir_bits)
        return Version.borrowed(store, int(self.roots[s]))

    def records(self, s: int) -> Ints:
        """All records of site `s`, unpacked: int64[fields, n], fields being prefix, start, context, agree; in order."""
        return self.packings[s].unpack(self._view(s).columns())

    def words(self, s: int) -> Ints:
        """A copy of the packed records of site `s`, in order: int64[words, n]."""
        return self._view(s).columns()

    def count(self, s: int) -> int:
        """Records of site `s`."""
        return int(self.arena.space.mem[int(self.roots[s]) + ROWS_OF]) if self.roots[s] else 0

    def memory(self, s: int) -> int:
        """Bytes of pages of site `s`, directory and slack included."""
        return self._view(s).memory()

    def check(self) -> None:
        """The pages are sound, and no record has bits outside its fields. For tests."""
        for s, packing in self.packings.items():
            self._view(s).check()
            words = self._view(s).columns()
            assert np.array_equal(packing.pack(packing.unpack(words)), words), packing


def _gathered(trace: Trace, chunks: Sequence[Sequence[Ints]]) -> tuple[Ints, Ints, Ints]:
    """(records, records per site, where each site begins) of what was drained, the buffer included."""
    parts: list[Ints] = []
    counts, starts = np.zeros(len(trace.fills), np.int64), np.zeros(len(trace.fills), np.int64)
    at = 0
    for s, drained in enumerate(chunks):
        words, begin = int(trace.sites[s, WORDS]), int(trace.sites[s, AT])
        starts[s] = at
        for part in (*drained, trace.buffer[begin : begin + int(trace.fills[s]) * words]):
            parts.append(part)
            at += len(part)
        counts[s] = (at - starts[s]) // max(1, words)
    return np.concatenate(parts), counts, starts
