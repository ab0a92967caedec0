"""Deltas cost the pages that differ, and only those: shared pages are not read.

That deltas are right on random histories is tested in test_model.py.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from scantree import delta
from scantree.layout import DIRS, HEADER, ROOM
from scantree.memory import Arena
from scantree.version import Store, Version

JIT = not numba.config.DISABLE_JIT
kernels: Any = delta


def sizes_by_page(version: Version) -> tuple[dict[int, int], dict[int, int]]:
    """Words of (directory pages, row pages) of a version, by their offsets."""
    mem, shape = version.store.arena.space.mem, version.store.shape
    root, room = version.root, int(mem[version.root + ROOM])
    directories, pages = {}, {}
    for d in range(int(mem[root + DIRS])):
        directory = int(mem[root + HEADER + d])
        directories[directory] = (2 + shape.keys) << shape.dir_bits
        for s in range(int(mem[root + HEADER + room + d])):
            pages[int(mem[directory + s])] = shape.cols << shape.page_bits
    return directories, pages


@pytest.mark.parametrize("where", [0.0, 0.31, 0.5, 0.999])
@pytest.mark.parametrize("op", [1, -1])
def test_shared_pages_are_not_read(where: float, op: int) -> None:
    """All pages that both versions share are overwritten with nonsense: the delta of one row does not notice."""
    n = 200_000 if JIT else 2_000
    page_rows = 256 if JIT else 16
    store = Store(Arena(), 1, 1, page_rows=page_rows, dir_rows=16)
    old = store.build([np.arange(0, 2 * n, 2), np.zeros(n, np.int64)])
    key = 2 * int(where * n) + (1 if op > 0 else 0)
    new, _ = old.update(np.array([[key], [0]]), np.array([op], np.int8))
    (old_dirs, old_pages), (new_dirs, new_pages) = sizes_by_page(old), sizes_by_page(new)
    assert len(old_pages.keys() ^ new_pages.keys()) <= 4
    assert len(old_dirs.keys() ^ new_dirs.keys()) <= 4
    shared = {
        **{page: words for page, words in old_pages.items() if page in new_pages},
        **{page: words for page, words in old_dirs.items() if page in new_dirs},
    }
    assert len(shared) > 100
    mem = store.arena.space.mem
    for page, words in shared.items():
        mem[page : page + words] = -77
    for first, second, kind in ((old, new, op), (new, old, -op)):
        found = first.delta(second)
        assert found.rows.tolist() == [[key], [0]]
        assert found.kinds.tolist() == [kind]


def test_nothing_is_read_of_a_version_against_itself() -> None:
    store = Store(Arena(), 1, page_rows=2, dir_rows=2)
    version = store.build([np.arange(100)])
    directories, _ = sizes_by_page(version)
    for directory, words in directories.items():
        store.arena.space.mem[directory : directory + words] = -77
    assert version.delta(version).kinds.size == 0


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
