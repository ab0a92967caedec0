"""Stores and versions: the Python face of the paged storage.

A `Store` fixes the shape of a relation's rows (key columns, value columns, page sizes) and the arena they live in. It
makes `Version`s:

    empty or built    -> a version: an immutable sorted set of rows
    version.update()  -> the next version, sharing every page no change touched (the same one if nothing changed)
    last reference    -> the pages that only this version held go back to the arena

Two versions of one store compare by `delta`. A row is `keys` key columns, unique and sorted by them, and optional value
columns carried along; a value may change without moving its row. A store may keep a scan (scan.py) of one column, and
its versions then fold any run of rows.

Complexity, n rows, m changes: build O(n log n), update O(m log n) plus the touched pages, seek and scan O(log n), delta
O(pages not shared), len O(1). Threads: any number may read versions; updates and builds are serialised by the arena's
lock; a large update is made by all threads of the arena's crew, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree import amend as _amend
from scantree import buffers as _buffers
from scantree import build as _build
from scantree import delta as _delta
from scantree import memory as _memory
from scantree import parts as _parts
from scantree import scan as _scan
from scantree import sort as _sort
from scantree import update as _update
from scantree.layout import DIRS, HEADER, PAGES, ROWS, Shape
from scantree.memory import Arena, Size, Words, packed
from scantree.packed import PackedArguments
from scantree.reading import Reading, plain
from scantree.reorder import packed_in_order
from scantree.scan import Monoid, Scan

Column = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]


class Delta(NamedTuple):
    """Differences between two versions.

    `rows` int64[cols, n] in key order; `kinds` int8[n]: 1 inserted, -1 erased, 0 changed in value; `before`
    int64[values, n]: the old values of changed rows (undefined elsewhere).
    """

    rows: Rows
    before: Rows
    kinds: npt.NDArray[np.int8]

    @property
    def inserted(self) -> Rows:
        """Rows only the new version has."""
        return self.rows[:, self.kinds == _delta.INSERTED]

    @property
    def erased(self) -> Rows:
        """Rows only the old version has."""
        return self.rows[:, self.kinds == _delta.ERASED]

    @property
    def changed(self) -> Rows:
        """Rows whose values changed, with their new values."""
        return self.rows[:, self.kinds == _delta.CHANGED]


_INT64, _INT8 = np.dtype(np.int64), np.dtype(np.int8)
# Rows that are put into another order at a time.
MOVED_ROWS = 1 << 14
# Directory pages that are merged at a time.
MERGED_DIRS = 64
# What the last columns of rows that have all of them are filled with.
_NO_FILL = np.empty(0, np.int64)


class Changes(NamedTuple):
    """What an update really did, per change of the batch in key order.

    `verdicts` int8[m]: NOTHING, INSERTED, ERASED or CHANGED of update.py.
    """

    batch: Rows
    verdicts: npt.NDArray[np.int8]


class UpdateBuffers(NamedTuple):
    """What an update writes in: `work` as of `buffers.scratch`; `packed`: that, with the heap and the shape."""

    work: _buffers.Work
    packed: PackedArguments


class Store:
    """Rows of `keys` key columns and `values` value columns.

    `page_rows` and `dir_rows` are powers of two; tests force them tiny. `scan`: what versions keep folded; without one
    they cost nothing for it. `hidden`: rows are read without their values, and a change of values only is none.
    """

    def __init__(
        self,
        arena: Arena,
        keys: int,
        values: int = 0,
        *,
        page_rows: int = 256,
        dir_rows: int = 64,
        scan: Scan | None = None,
        hidden: bool = False,
    ) -> None:
        for name, size in (("page_rows", page_rows), ("dir_rows", dir_rows)):
            if size < 2 or size & (size - 1):
                raise ValueError(f"{name} must be a power of two, at least 2; got {size}")
        self.arena = arena
        self.scan = scan
        self.hidden = hidden
        self.shape = Shape(keys, keys + values, page_rows.bit_length() - 1, dir_rows.bit_length() - 1)
        if scan is not None:
            if scan.monoid != Monoid.COUNT and not 0 <= scan.column < keys + values:
                raise ValueError(f"a scan folds one of the columns 0 to {keys + values - 1}; got {scan.column}")
            # Plain ints: for an enum numba would compile every kernel anew.
            self.shape = self.shape._replace(folds=scan.monoid.folds, monoid=int(scan.monoid), column=int(scan.column))
        self.packed = packed(self.shape)
        self._prepared: UpdateBuffers | None = None

    def empty(self) -> Version:
        """The version without rows."""
        return self.build([np.empty(0, np.int64)] * self.shape.cols, count=0)

    def build(self, columns: Sequence[Column], count: int | None = None) -> Version:
        """A fresh version of the given rows, in any order; of equal keys the last wins.

        `count`, the number of rows, is needed only without columns.
        """
        shape = self.shape
        if len(columns) != shape.cols or len({len(c) for c in columns}) > 1:
            raise ValueError(f"{shape.cols} equally long columns expected, got lengths {[len(c) for c in columns]}")
        if shape.cols == 0:
            return self.assemble([np.empty((0, min(1, count or 0)), np.int64)])
        return self.assemble([_sort.sort_rows(columns, shape.keys)])

    def assemble(self, chunks: Sequence[Rows]) -> Version:
        """A fresh version of rows that are distinct and in key order already.

        They come in chunks int64[cols, n] and are copied once, into their pages.
        """
        with self._laid_out(sum(chunk.shape[1] for chunk in chunks)) as (version, plan):
            for chunk in chunks:
                rows = plain(chunk)
                _build.write_rows(self.arena.space, version.root, self.shape, rows, 0, rows.shape[1], _NO_FILL, plan)
        return version

    def gather(self, chunks: list[Rows]) -> Version:
        """A fresh version of the distinct rows of all `chunks` int64[cols, n], cols > 0, in any order.

        All columns are keys. The list is emptied.
        """
        found = _sort.packed_chunks(chunks)
        return self.assemble([_sort.sort_unpacked(chunks)]) if found is None else self._of_words(*found)

    def _of_words(self, packed: npt.NDArray[np.uint64], low: Column, bits: Column) -> Version:
        """A fresh version of `packed` rows, sorted and distinct, as sort.py packs them."""
        with self._laid_out(len(packed)) as (made, plan), np.errstate(over="ignore"):
            _build.write_packed(self.arena.space, made.root, self.shape, packed, low, bits, plan)
        return made

    def reorder(self, version: Version, columns: tuple[int, ...]) -> Version:
        """A fresh version of the keys of `version`, whose store may be another: of these columns, in this order.

        No two rows may be alike in them.
        """
        found = packed_in_order(version, columns) if self.shape.cols == len(columns) else None
        if found is not None:
            return self._of_words(*found)
        rows = version.columns()
        n = rows.shape[1]
        if n < _sort.FEW or self.shape.cols != len(columns):
            return self.build([rows[c] for c in columns], count=n)
        order, _ = _sort.sorting(rows, columns)
        part = np.empty((len(columns), min(n, MOVED_ROWS)), np.int64)
        with self._laid_out(n) as (made, plan):
            # Some at a time: all of them once more would be as much memory as the pages. "clip" makes no copy of them.
            for at in range(0, n, MOVED_ROWS):
                places = order[at : at + MOVED_ROWS]
                for c, column in enumerate(columns):
                    rows[column].take(places, out=part[c, : len(places)], mode="clip")
                _build.write_rows(self.arena.space, made.root, self.shape, part, 0, len(places), _NO_FILL, plan)
        return made

    @contextmanager
    def _laid_out(self, n: int) -> Iterator[tuple[Version, Words]]:
        """(a version with room for `n` rows, what is left to do of it) for whoever writes them inside the block."""
        shape, space = self.shape, self.arena.space
        pages = _build.pages_for(n, shape.page_bits)
        dirs = _build.pages_for(pages, shape.dir_bits)
        with self.arena.lock:
            self.arena.room(*self._sizes(pages, dirs, dirs))
            # A version at once: if the rest is interrupted, its pages go back.
            version = Version(self, int(_build.lay_out(space, shape, n, dirs)))
            yield version, _build.plan_for(n, pages, dirs)
            if shape.folds:
                _scan.fold_version(space.mem, version.root, shape)

    def prepare(self, m: int, dirs: int) -> UpdateBuffers:
        """What an update of `m` changes to a version with so many directory pages writes in.

        Kept for the next update: whoever holds the arena's lock has it.
        """
        prepared, shape = self._prepared, self.shape
        if prepared is None or prepared.work[2].shape[1] < _buffers.tops_for(shape, m, dirs):
            work = _buffers.scratch(shape, m, dirs)
            words = PackedArguments(*self.arena.space, *work, np.array(shape, np.int64))
            self._prepared = prepared = UpdateBuffers(work, words)
        return prepared

    def amends(self, m: int) -> bool:
        """Whether `m` changes to a version that is used up are made in place: there is no scan, nor a crew for them."""
        return not self.shape.folds and (m < _parts.LEAST or self.arena.crew is None)

    def _sizes(self, pages: int, dirs: int, entries: int) -> tuple[Size, Size, Size]:
        """What `Arena.room` is asked for: row pages, directory pages, and a root of `entries` entries."""
        shape = self.shape
        return (
            Size(pages, shape.cols << shape.page_bits),
            Size(dirs, (2 + shape.keys + shape.folds) << shape.dir_bits),
            Size(1, HEADER + (2 + shape.keys + 2 * shape.folds) * max(4, 1 << max(0, entries - 1).bit_length())),
        )


class Version(Reading):
    """An immutable sorted set of rows. Made by `Store.build` and `Version.update`, never directly.

    `edition`: how often it was changed in place, for whoever keeps something about a version that may be used up.
    """

    __slots__ = ("__weakref__", "_own", "_rows", "edition")

    def __init__(self, store: Store, root: int) -> None:
        self.store, self.root, self._own, self.edition = store, root, True, 0
        self._rows = -1  # once somebody has asked how many; before that, and after a change in place, -1

    def __len__(self) -> int:
        if self._rows < 0:
            self._rows = int(self.store.arena.space.mem[self.root + ROWS])
        return self._rows

    def __del__(self) -> None:
        # Not a finalizer of weakref: making and calling those is a tenth of what a transaction of one row takes.
        if getattr(self, "_own", False):  # False, too, of one whose making was interrupted
            store = self.store
            store.arena.gone.append((self.root, store.packed))

    @classmethod
    def borrowed(cls, store: Store, root: int) -> Version:
        """A version of pages that somebody else holds and gives back: valid for as long as they do."""
        # Never its own, not even for a moment: an interrupt between the two would drop what somebody else holds.
        version = cls.__new__(cls)
        version.store, version.root, version._own, version.edition, version._rows = store, root, False, 0, -1
        return version

    def release(self) -> None:
        """Hand the pages over to whoever asked for this: they no longer go back with the version."""
        self._own = False

    def update(
        self, batch: Rows, ops: npt.NDArray[np.int8], *, use_up: bool = False, in_order: bool = False
    ) -> tuple[Version, Changes]:
        """The version after `batch` int64[cols, m] is applied.

        `ops` int8[m]: 1 inserts the row (or gives it new values), 2 inserts it if its key is not there, -1 erases its
        key (whatever its values). Any order; of changes to equal keys the last wins. Inserting what is there and
        erasing what is not changes nothing: if no change has an effect the version itself is returned. Raises
        `ArenaFullError` and leaves everything as it was if memory does not suffice. `use_up`: nobody reads this version
        any more, and what it holds alone may be written to (amend.py); it may be the one that is returned, and is lost
        where this raises. `in_order`: the batch has distinct keys, in order.
        """
        store, shape = self.store, self.store.shape
        if batch.shape != (shape.cols, len(ops)):
            raise ValueError(f"{shape.cols} columns and an op per row expected; got {batch.shape} and {len(ops)} ops")
        # By identity: comparing a dtype with a type takes as long as the rest of this together.
        usual = batch.dtype is _INT64 and ops.dtype is _INT8 and batch.flags.carray and ops.flags.carray
        if not usual or not (in_order or len(ops) == 1):
            batch, ops = in_key_order(batch, ops, shape.keys)
        m = len(ops)
        verdicts = np.empty(m, np.int8)
        if m == 0:
            return self, Changes(batch, verdicts)
        if use_up and store.amends(m):
            return self._amended(batch, ops, verdicts)
        return self._next(batch, ops, verdicts), Changes(batch, verdicts)

    def _next(self, batch: Rows, ops: npt.NDArray[np.int8], verdicts: npt.NDArray[np.int8]) -> Version:
        """The version after `batch` int64[cols, m], m > 0, in key order; `verdicts` int8[m] are written."""
        store, arena, m = self.store, self.store.arena, len(ops)
        arena.touched += m
        with arena.lock:
            if m >= _parts.LEAST and arena.crew is not None:
                made = _parts.update_in_parts(store, self.root, batch, ops, verdicts, arena.crew)
                if made:
                    return self if made == self.root else Version(store, made)
            if len(arena.gone) >= (_memory.TOGETHER if m < _memory.MANY else 1):
                arena.collect()
            prepared = store._prepared or store.prepare(m, 0)
            # Whoever is interrupted before the kernel begins must not take what the last one made for its own.
            prepared.work[3][_buffers.MADE] = 0
            following = Version.borrowed(store, self.root)
            try:
                root = _update.update_packed(prepared.packed.words, self.root, batch, ops, verdicts, False)
                if root == _update.NO_ROOM:
                    prepared = self._with_room(m)
                    root = _update.update_packed(prepared.packed.words, self.root, batch, ops, verdicts, True)
                # Nothing is called from the kernel's end on: no signal comes between.
                following.root, following._own = root, root != self.root
            except BaseException:  # Ctrl-C while the kernel ran is raised here
                if made := int(prepared.work[3][_buffers.MADE]):
                    _memory.drop(arena.space, made, store.shape)
                raise
        return following if following._own else self

    def _with_room(self, m: int) -> UpdateBuffers:
        """What an update of `m` changes writes in, once there is room for what it makes. Raises `ArenaFullError`."""
        self.store.arena.room(*self.wanted(m))
        return self.store.prepare(m, self.dirs)

    def wanted(self, m: int) -> tuple[Size, Size, Size]:
        """The pages that an update of `m` changes may make: what `Arena.room` is asked for."""
        rows, directories = _buffers.pages_wanted(self.store.shape, m, self.dirs, self.pages)
        return self.store._sizes(rows, directories, self.dirs + directories)

    def _amended(
        self, batch: Rows, ops: npt.NDArray[np.int8], verdicts: npt.NDArray[np.int8]
    ) -> tuple[Version, Changes]:
        """The version after `batch`, in key order: this one as far as that can be, which is used up."""
        arena = self.store.arena
        self.edition, self._rows = self.edition + 1, -1
        with arena.lock:
            left = _amend.amend_pages(self.store, self.root, batch, ops, verdicts)
        if not left:
            return self, Changes(batch, verdicts)
        rest, told = verdicts == _amend.LEFT, np.empty(left, np.int8)
        following = self._next(np.compress(rest, batch, axis=1), ops[rest], told)
        verdicts[rest] = told
        if following is not self:
            # At once: as long as they are this one's too, pages that the next has of it are not to be written to.
            with arena.lock:
                _memory.drop_dirs(arena.space, self.root, self.store.shape)
        return following, Changes(batch, verdicts)

    def delta(self, new: Version) -> Delta:
        """What `new` has gained and lost against this version; both of one store. Skips the pages they share."""
        if new.store is not self.store:
            raise ValueError("only versions of one store can be compared")
        shape, mem = self.store.shape, self.store.arena.space.mem
        state = np.zeros(6, np.int64)
        rows, before, kinds = [], [], []
        size, status = 256, _delta.FULL
        while status == _delta.FULL:
            r = np.empty((shape.cols, size), np.int64)
            b = np.empty((shape.cols - shape.keys, size), np.int64)
            k = np.empty(size, np.int8)
            n, status = _delta.difference(mem, self.root, new.root, shape, state, r, b, k)
            rows.append(r[:, :n])
            before.append(b[:, :n])
            kinds.append(k[:n])
            size = min(size * 4, 1 << 18)
        delta = Delta(np.concatenate(rows, axis=1), np.concatenate(before, axis=1), np.concatenate(kinds))
        if self.store.hidden:
            moved = delta.kinds != _delta.CHANGED
            return Delta(delta.rows[: shape.keys, moved], delta.before[:, moved], delta.kinds[moved])
        return delta

    def merged(
        self, rows: Rows, fill: Sequence[int] = (), *, use_up: bool = False
    ) -> tuple[Version, npt.NDArray[np.bool_]]:
        """(the version with more rows int64[cols - fill, n], in pages of its own, which of them are new, bool[n]).

        They come distinct and in key order, and have key columns; of a key that is there the row stays as it is.
        `fill`: the last columns of all these rows. `use_up`: nobody reads this version any more, and its pages go back
        on the way, also if this is interrupted. One pass over both: for batches so large that `update` would touch
        every page. Raises `ArenaFullError`; then this version is as it was.
        """
        store, shape, space = self.store, self.store.shape, self.store.arena.space
        rows, last, new = plain(rows), np.array(fill, np.int64), np.ones(rows.shape[1], np.bool_)
        total = len(self) + rows.shape[1]
        pages = _build.pages_for(total, shape.page_bits)
        dirs = _build.pages_for(pages, shape.dir_bits)
        plan = _build.plan_for(total, pages, dirs)
        with store.arena.lock:
            store.arena.room(*store._sizes(pages, dirs, dirs))
            version = Version(store, int(_build.lay_out(space, shape, total, dirs)))
            old, d, at = int(space.mem[self.root + DIRS]), 0, 0
            if use_up:
                self.release()
            try:
                while at < rows.shape[1] or d < old:
                    upto = min(old, d + MERGED_DIRS)
                    at = _build.merge(space, self.root, version.root, shape, rows, at, last, plan, d, upto, use_up, new)
                    d = upto
                _build.finish(space.mem, version.root, shape, plan)
                if shape.folds:
                    _scan.fold_version(space.mem, version.root, shape)
            finally:
                if use_up:
                    _memory.drop(space, self.root, shape)
        return version, new

    def overwrite(self, rows: Rows) -> bool:
        """Let this version hold `rows` int64[cols, n], distinct and in key order, from now on, if it can.

        For whoever made it and is the only one to read it. It can where it has one row page, and that has room for n >
        0 rows: the work of making a version is left out.
        """
        store, mem, n = self.store, self.store.arena.space.mem, rows.shape[1]
        if store.shape.folds or mem[self.root + PAGES] != 1 or not 0 < n <= 1 << store.shape.page_bits:
            return False
        self.edition, self._rows = self.edition + 1, -1
        _update.overwrite(mem, self.root, store.shape, rows if rows.flags.carray else plain(rows))
        return True

    def check(self) -> None:
        """Rebuild what is redundant and compare; raises `AssertionError` that shows the state. For tests only."""
        from scantree.check import check_version

        check_version(self)


def in_key_order(batch: Rows, ops: npt.NDArray[np.int8], keys: int) -> tuple[Rows, npt.NDArray[np.int8]]:
    """The batch sorted by key, one change per key: the last one given."""
    m = len(ops)
    if m > 1 and keys == 0:
        batch, ops = batch[:, m - 1 :], ops[m - 1 :]
    batch, ops = plain(batch), np.ascontiguousarray(ops, np.int8)
    if m > 1 and keys > 0:
        state = _sort.order_of(batch[:keys])
        repeats = state == 1
        if state == 0:
            order, repeats = _sort.sorting(batch[:keys])
            batch, ops = batch.take(order, axis=1), ops[order]
        if repeats:
            keep = np.empty(m, np.bool_)
            _sort.last_of_equal(batch[:keys], keep)
            batch, ops = batch.compress(keep, axis=1), ops[keep]
    return batch, ops if ops.flags.writeable else ops.copy()
