"""Deltas cost the pages that differ, and only those: shared pages are not read.

That deltas are right on random histories is tested in test_model.py.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest

from scantree import delta
from scantree.memory import Arena
from scantree.version import Store, Version
from tests.storage.pages import pages_of

JIT = not numba.config.DISABLE_JIT
kernels: Any = delta


class Reads:
    """A view of `mem` that notes which words are read. Only interpreted kernels take it."""

    def __init__(self, mem: npt.NDArray[np.int64]) -> None:
        self.mem = mem
        self.words: list[int] = []

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return ReadsFrom(self, int(at.start))
        self.words.append(int(at))
        return self.mem[at]


class ReadsFrom:
    """What `mem[start:]` is to `Reads`."""

    def __init__(self, reads: Reads, start: int) -> None:
        self.reads, self.start = reads, start

    def __getitem__(self, at: int) -> Any:
        return self.reads[self.start + at]


def words_read(old: Version, new: Version) -> tuple[list[int], list[int]]:
    """(words read for the delta of two versions, first key of what it finds)."""
    shape = old.store.shape
    reads = Reads(old.store.arena.space.mem)
    rows, before, kinds = np.empty((shape.cols, 9), np.int64), np.empty((1, 9), np.int64), np.empty(9, np.int8)
    n, status = kernels.difference(reads, old.root, new.root, shape, np.zeros(6, np.int64), rows, before, kinds)
    assert status == kernels.DONE
    return reads.words, rows[0, :n].tolist()


def words_of(pages: dict[int, int]) -> set[int]:
    return {word for page, words in pages.items() for word in range(page, page + words)}


@pytest.mark.parametrize("where", [0.0, 0.31, 0.5, 0.999])
@pytest.mark.parametrize("op", [1, -1])
def test_one_row_makes_few_pages_differ(where: float, op: int) -> None:
    n, page_rows = (200_000, 256) if JIT else (2_000, 16)
    store = Store(Arena(), 1, 1, page_rows=page_rows, dir_rows=16)
    old = store.build([np.arange(0, 2 * n, 2), np.zeros(n, np.int64)])
    key = 2 * int(where * n) + (1 if op > 0 else 0)
    new, _ = old.update(np.array([[key], [0]]), np.array([op], np.int8))
    (old_dirs, old_pages), (new_dirs, new_pages) = pages_of(old), pages_of(new)
    assert len(old_pages.keys() ^ new_pages.keys()) <= 4
    assert len(old_dirs.keys() ^ new_dirs.keys()) <= 4
    assert len(old_pages.keys() & new_pages.keys()) > 100
    for first, second, kind in ((old, new, op), (new, old, -op)):
        found = first.delta(second)
        assert found.rows.tolist() == [[key], [0]]
        assert found.kinds.tolist() == [kind]


@pytest.mark.skipif(JIT, reason="needs interpreted kernels")
@pytest.mark.parametrize("where", [0.0, 0.31, 0.5, 0.999])
@pytest.mark.parametrize("op", [1, -1])
def test_shared_pages_are_not_read(where: float, op: int) -> None:
    """Word by word: nothing of a shared row page, nor of a shared directory page but its first entry."""
    n = 2_000
    store = Store(Arena(), 1, 1, page_rows=16, dir_rows=16)
    old = store.build([np.arange(0, 2 * n, 2), np.zeros(n, np.int64)])
    key = 2 * int(where * n) + (1 if op > 0 else 0)
    new, _ = old.update(np.array([[key], [0]]), np.array([op], np.int8))
    (old_dirs, old_pages), (new_dirs, new_pages) = pages_of(old), pages_of(new)
    shared_pages = {page: words for page, words in old_pages.items() if page in new_pages}
    shared_dirs = {page + 1: words - 1 for page, words in old_dirs.items() if page in new_dirs}
    assert len(shared_pages) > 100
    assert len(shared_dirs) > 5
    for first, second in ((old, new), (new, old)):
        words, found = words_read(first, second)
        assert found == [key]
        assert len(words) > 20
        assert not words_of({**shared_pages, **shared_dirs}) & set(words)


@pytest.mark.skipif(JIT, reason="needs interpreted kernels")
def test_a_version_against_itself_reads_its_root() -> None:
    version = Store(Arena(), 1, page_rows=2, dir_rows=2).build([np.arange(100)])
    directories, pages = pages_of(version)
    words, found = words_read(version, version)
    assert found == []
    assert not words_of({**pages, **{page + 1: size - 1 for page, size in directories.items()}}) & set(words)


def test_reshaped_pages_report_nothing() -> None:
    """The same rows in other pages: all is read, nothing reported."""
    store = Store(Arena(), 1, page_rows=4, dir_rows=4)
    bulk = store.build([np.arange(200)])
    step = store.empty()
    for i in range(199, -1, -1):
        step, _ = step.update(np.array([[i]]), np.ones(1, np.int8))
    assert bulk.pages != step.pages
    assert bulk.delta(step).kinds.size == 0


@pytest.mark.parametrize("space", [1, 2, 3, 7])
def test_a_full_buffer_is_resumed(space: int) -> None:
    store = Store(Arena(), 1, 1, page_rows=2, dir_rows=2)
    old = store.build([np.arange(20), np.arange(20)])
    batch = np.array([[1, 3, 5, 6, 7, 30, 31, 32], [1, 0, 0, 0, 0, 9, 9, 9]])
    new, _ = old.update(batch, np.array([-1, -1, 1, 1, 1, 1, 1, 1]))
    state, found = np.zeros(6, np.int64), []
    status = kernels.FULL
    calls = 0
    while status == kernels.FULL:
        rows, before, kinds = np.empty((2, space), np.int64), np.empty((1, space), np.int64), np.empty(space, np.int8)
        n, status = kernels.difference(
            store.arena.space.mem, old.root, new.root, store.shape, state, rows, before, kinds
        )
        assert n <= space
        found += rows[0, :n].tolist()
        calls += 1
    assert found == [1, 3, 5, 6, 7, 30, 31, 32]
    assert calls >= 8 // space


def test_large_deltas() -> None:
    """More differences than the first buffer holds."""
    n = 3000
    store = Store(Arena(), 2)
    empty, full = store.empty(), store.build([np.arange(n), np.arange(n)])
    found = empty.delta(full)
    assert found.inserted.tolist() == full.columns().tolist()
    assert full.delta(empty).erased.tolist() == full.columns().tolist()


def test_versions_of_two_stores_do_not_compare() -> None:
    arena = Arena()
    with pytest.raises(ValueError, match=r"^only versions of one store can be compared$"):
        Store(arena, 1).empty().delta(Store(arena, 1).empty())
