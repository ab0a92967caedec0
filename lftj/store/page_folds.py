"""Folds by Python functions, remembered page by page.

A scan by a compiled monoid (scantree/scan.py) carries its folds in the pages. A fold by a Python function has Python
objects for elements, which no page can hold; but pages are immutable and shared between versions, so what a page folds
to is remembered beside them:

    row page -> fold of its rows         directory page -> fold of its row pages       tree over the root's entries

The tree is a scan-tree as in scan.py: node 1 is the root, node i has the children 2i and 2i + 1. Nothing is folded
before somebody asks for it. Then a run of rows costs the rows of two pages at its ends, the entries of two directory
pages and at most 2 log2(directory pages) nodes, and after a change of one row the pages on its path are folded anew:
O(log n) with the page sizes as constants.

The memory belongs to one version at a time, which it keeps alive. When the next version is asked for it *moves*: what
it knows of pages that the next version does not have is dropped before the older version is let go, because only from
then on may these pages be used again. Where the number of directory pages is the same the tree keeps every node whose
pages stayed; else it is made anew from what the directory pages fold to (directory pages come and go once per some
thousand rows, so that this costs less than one step per row). Moving works between any two versions of one store,
forwards and backwards: who reads an old version gets a right answer, only later.

Memory: one element per row page, per directory page and per tree node, and the pages of the version it belongs to.

Degenerate cases: of no rows the fold is `NOTHING`; there need not be an identity.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
sections 3.1 and 3.1.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lftj.errors import ForkError
from scantree.layout import DIRS, HEADER, ROOM
from scantree.locks import Lock
from scantree.version import Rows, Version


class _Nothing:
    """The fold of no rows, and of pages that were not folded yet."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


class PageFolds:
    """Remembered folds of the pages of one version.

    `leaf(rows)` folds rows int64[cols, n], n > 0, in key order; `combine(a, b)` continues the fold `a` by the fold `b`
    of the rows behind. Counted since it was made: `leaves` (calls of `leaf`), `joins` (calls of `combine`). Any number
    of threads may fold; they take turns.
    """

    def __init__(self, leaf: Callable[[Rows], Any], combine: Callable[[Any, Any], Any]) -> None:
        self._leaf, self._combine = leaf, combine
        self._lock = Lock(ForkError, "a scan of the relation")
        self._busy = False
        self._source: PageFolds | None = None
        self.leaves = self.joins = 0
        self.unseen = 0
        self._forget()

    def _forget(self) -> None:
        self._version: Version | None = None
        self._pages: dict[int, Any] = {}
        self._directories: dict[int, Any] = {}
        self._dirs: list[tuple[int, int]] = []
        self._room = 1
        self._tree: list[Any] = [NOTHING, NOTHING]

    def twin(self) -> PageFolds:
        """A memory of its own for other versions; it begins with what this one knows when it is first used."""
        made = PageFolds(self._leaf, self._combine)
        made._source = self
        return made

    def __len__(self) -> int:
        """How many row pages and directory pages are remembered."""
        return len(self._pages) + len(self._directories)

    def fold(self, version: Version, lo: int, hi: int) -> Any:
        """The fold of the rows between positions `lo` and `hi` of a version; `NOTHING` of none."""
        with self._lock:
            if self._busy:
                # The function itself asks for a fold; it must not move what is being folded.
                return PageFolds(self._leaf, self._combine).fold(version, lo, hi)
            try:
                self._busy = True
                self._learn()
                if version is not self._version:
                    self._move(version)
                self.unseen = 0
                return self._run(lo, hi) if lo < hi else NOTHING
            finally:
                self._busy = False

    def check(self) -> None:
        """Fold every page anew and compare; raises `AssertionError` that shows the page. For tests only."""
        if self._version is None:
            assert not self._pages
            assert not self._directories
            return
        dirs = _entries(self._version)
        assert dirs == self._dirs, f"the version has the directory pages {dirs}, remembered are {self._dirs}"
        pages = {page: count for directory, entries in dirs for page, count in self._row_pages(directory, entries)}
        assert set(self._pages) <= set(pages), "a page that went is remembered"
        assert set(self._directories) <= {directory for directory, _ in dirs}, "a directory that went is remembered"
        for page, count in pages.items():
            known, true = self._pages.get(page, NOTHING), self._leaf(self._rows(page, 0, count))
            assert known is NOTHING or known == true, f"page {page} folds to {true}, remembered is {known}"

    # -- moving -------------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Take over what the source knows."""
        if self._source is None:
            return
        source, self._source = self._source, None
        try:
            with source._lock:
                self._version, self._room, self._dirs = source._version, source._room, source._dirs
                self._pages, self._directories = source._pages.copy(), source._directories.copy()
                self._tree = source._tree.copy()
        except BaseException:
            self._forget()
            raise

    def _move(self, version: Version) -> None:
        """Make the memory that of `version`."""
        old, new = self._dirs, _entries(version)
        before = self._version
        self._version = version
        try:
            if len(old) == len(new):
                changed = [d for d, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
                for d in changed:
                    node = self._room + d
                    while node:
                        self._tree[node] = NOTHING
                        node >>= 1
                gone, come = [old[d] for d in changed], [new[d] for d in changed]
            else:
                gone, come = old, new
                self._room = 1 << max(0, len(new) - 1).bit_length()
                self._tree = [NOTHING] * (2 * self._room)
            kept = set(come)
            stays = {page for entry in kept.difference(gone) for page, _ in self._row_pages(*entry)}
            for entry in gone:
                if entry not in kept:
                    self._directories.pop(entry[0], None)
                    for page, _ in self._row_pages(*entry):
                        if page not in stays:
                            self._pages.pop(page, None)
            self._dirs = new
        except BaseException:
            self._forget()
            raise
        del before  # only now: its pages may be used again for other rows

    # -- folding ------------------------------------------------------------------------------------------------------

    def _run(self, lo: int, hi: int) -> Any:
        assert self._version is not None
        shape = self._version.store.shape
        (d, s, p), (hd, hs, hp) = (self._unpack(pos, shape.page_bits, shape.dir_bits) for pos in (lo, hi))
        if d == hd and s == hs:
            return self._leaf_of(d, s, p, hp)
        folded: Any = NOTHING
        if p:
            folded, s = self._leaf_of(d, s, p, None), s + 1
        if d == hd:
            return self._both(folded, self._part(d, s, hs, hp))
        if s:
            folded, d = self._both(folded, self._part(d, s, None, 0)), d + 1
        folded = self._both(folded, self._span(1, 0, self._room, d, hd))
        return self._both(folded, self._part(hd, 0, hs, hp))

    def _both(self, a: Any, b: Any) -> Any:
        if a is NOTHING or b is NOTHING:
            return b if a is NOTHING else a
        self.joins += 1
        return self._combine(a, b)

    def _span(self, node: int, lo: int, hi: int, first: int, last: int) -> Any:
        """The fold of directory pages [first, last) as far as they are below `node`, which stands for [lo, hi)."""
        if first >= hi or last <= lo:
            return NOTHING
        if not (first <= lo and min(hi, len(self._dirs)) <= last):
            mid = (lo + hi) >> 1
            left = self._span(2 * node, lo, mid, first, last)
            return self._both(left, self._span(2 * node + 1, mid, hi, first, last))
        if self._tree[node] is NOTHING:
            if hi - lo == 1:
                self._tree[node] = self._directory(lo)
            else:
                mid = (lo + hi) >> 1
                left = self._span(2 * node, lo, mid, first, last)
                self._tree[node] = self._both(left, self._span(2 * node + 1, mid, hi, first, last))
        return self._tree[node]

    def _directory(self, d: int) -> Any:
        directory, _ = self._dirs[d]
        known = self._directories.get(directory, NOTHING)
        if known is NOTHING:
            known = self._directories[directory] = self._part(d, 0, None, 0)
        return known

    def _part(self, d: int, first: int, last: int | None, rows: int) -> Any:
        """The fold of entries [first, last) of directory page number `d`, and of the first `rows` rows of `last`."""
        if d == len(self._dirs):
            return NOTHING
        folded: Any = NOTHING
        for page, count in self._row_pages(*self._dirs[d])[first:last]:
            known = self._pages.get(page, NOTHING)
            if known is NOTHING:
                known = self._pages[page] = self._fold_rows(page, 0, count)
            folded = self._both(folded, known)
        return self._both(folded, self._leaf_of(d, last, 0, rows)) if last is not None and rows else folded

    def _leaf_of(self, d: int, s: int, lo: int, hi: int | None) -> Any:
        """The fold of rows [lo, hi) of a row page."""
        page, count = self._row_pages(*self._dirs[d])[s]
        return self._fold_rows(page, lo, count if hi is None else hi)

    def _fold_rows(self, page: int, lo: int, hi: int) -> Any:
        self.leaves += 1
        return self._leaf(self._rows(page, lo, hi))

    # -- pages --------------------------------------------------------------------------------------------------------

    @staticmethod
    def _unpack(pos: int, page_bits: int, dir_bits: int) -> tuple[int, int, int]:
        """(directory page, entry, row) of a position (layout.py)."""
        slot = pos >> page_bits
        return slot >> dir_bits, slot & ((1 << dir_bits) - 1), pos & ((1 << page_bits) - 1)

    def _row_pages(self, directory: int, entries: int) -> list[tuple[int, int]]:
        """(row page, rows) of every entry of a directory page."""
        assert self._version is not None
        mem, fan = self._version.store.arena.space.mem, 1 << self._version.store.shape.dir_bits
        pages, counts = mem[directory : directory + entries], mem[directory + fan : directory + fan + entries]
        return list(zip(pages.tolist(), counts.tolist(), strict=True))

    def _rows(self, page: int, lo: int, hi: int) -> Rows:
        assert self._version is not None
        store = self._version.store
        cols, bits = store.shape.cols, store.shape.page_bits
        found: Rows = store.arena.space.mem[page : page + (cols << bits)].reshape(cols, 1 << bits)[:, lo:hi]
        return found


def _entries(version: Version) -> list[tuple[int, int]]:
    """(directory page, number of its entries) of a version, in order."""
    mem, root = version.store.arena.space.mem, version.root
    dirs, room = int(mem[root + DIRS]), int(mem[root + ROOM])
    at = root + HEADER
    return list(zip(mem[at : at + dirs].tolist(), mem[at + room : at + room + dirs].tolist(), strict=True))
