"""What scantree shows and refuses: its names, its errors on their full text, and checks that see what is broken."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scantree
from scantree import cursor, update
from scantree.check import check_arena
from scantree.layout import DIRS, HEADER, PAGES, ROOM, ROWS
from scantree.memory import FREE, GRAIN, TOP, USED, Arena
from scantree.version import Store, Version

ROOT = Path(__file__).resolve().parents[2]


def test_the_names() -> None:
    assert scantree.__all__ == [
        "Arena",
        "ArenaFullError",
        "Delta",
        "IntervalTree",
        "Monoid",
        "Scan",
        "Store",
        "Version",
    ]
    assert [getattr(scantree, name).__name__ for name in scantree.__all__] == scantree.__all__
    assert scantree.Store is Store
    assert set(scantree.__all__) <= set(dir(scantree))
    with pytest.raises(AttributeError, match=r"^module 'scantree' has no attribute 'Tree'$"):
        scantree.Tree  # noqa: B018


def test_import_is_light_until_a_name_is_used() -> None:
    code = (
        "import sys, scantree\n"
        "assert not {'numba', 'numpy'} & set(sys.modules)\n"
        "from scantree import Store\n"
        "assert 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.jit_only
def test_no_layout_of_an_array_compiles_a_kernel_anew() -> None:
    """Each would cost the user seconds: arrays are brought into the one form that kernels are compiled for."""
    kernels: list[Any] = [update.update_packed, cursor.find_rows]
    store = Store(Arena(), 2)
    plain = np.array([[1, 2, 3], [4, 5, 6]])
    one = np.ones(3, np.int8)
    version, _ = store.empty().update(plain, one)
    version.contains(plain)
    known = [len(kernel.signatures) for kernel in kernels]
    read_only, read_only_ops = plain.copy(), one.copy()
    read_only.flags.writeable = read_only_ops.flags.writeable = False
    layouts: list[Any] = [
        read_only,
        np.asfortranarray(plain),
        plain.astype(np.int32),
        plain[:, ::-1],
        plain.astype(np.uint64),
    ]
    signs: list[Any] = [one, read_only_ops, one.astype(np.int64)]
    for rows in layouts:
        for ops in signs:
            after, _ = store.empty().update(rows, ops)
            assert sorted(after.rows()) == [(1, 4), (2, 5), (3, 6)]
            assert version.contains(rows).all()
    assert [len(kernel.signatures) for kernel in kernels] == known


REFUSED: dict[str, tuple[Callable[[Store, Version], object], str]] = {
    "page size": (lambda s, v: Store(s.arena, 1, page_rows=6), "page_rows must be a power of two, at least 2; got 6"),
    "directory size": (
        lambda s, v: Store(s.arena, 1, dir_rows=1),
        "dir_rows must be a power of two, at least 2; got 1",
    ),
    "missing column": (
        lambda s, v: s.build([np.arange(3)]),
        "3 equally long columns expected, got lengths [3]",
    ),
    "ragged columns": (
        lambda s, v: s.build([np.arange(3), np.arange(3), np.arange(2)]),
        "3 equally long columns expected, got lengths [3, 3, 2]",
    ),
    "columns of a batch": (
        lambda s, v: v.update(np.zeros((2, 4), np.int64), np.ones(4, np.int8)),
        "3 columns and an op per row expected; got (2, 4) and 4 ops",
    ),
    "ops of a batch": (
        lambda s, v: v.update(np.zeros((3, 4), np.int64), np.ones(5, np.int8)),
        "3 columns and an op per row expected; got (3, 4) and 5 ops",
    ),
    "long row": (lambda s, v: v.seek([1, 2, 3]), "a row to seek has at most 2 keys, got 3"),
    "whole rows for keys": (
        lambda s, v: v.contains(v.columns()),
        "an array of 2 key columns expected, got shape (3, 5)",
    ),
    "one key, not an array of keys": (
        lambda s, v: v.contains(np.array([1, 2])),
        "an array of 2 key columns expected, got shape (2,)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    call, text = REFUSED[case]
    store = Store(Arena(), 2, 1)
    version = store.build([np.arange(5)] * 3)
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        call(store, version)


# -- the checks, each on a version with one thing broken -------------------------------------------------------------


def sound() -> Version:
    """46 rows (0, 0), (10, 1), ... in pages of 7, 7, 7, 7, 6, 6, 6 rows, in directory pages of 3, 2, 2."""
    version = Store(Arena(), 1, 1, page_rows=8, dir_rows=4).build([np.arange(0, 460, 10), np.arange(46)])
    version.check()
    check_arena(version.store.arena, [version])
    return version


class Places:
    """Where things lie in the version of `sound`."""

    def __init__(self, version: Version) -> None:
        self.mem, self.refs, self.heap = version.store.arena.space
        self.root = version.root
        self.room = int(self.mem[self.root + ROOM])
        self.directories = [int(self.mem[self.root + HEADER + d]) for d in range(int(self.mem[self.root + DIRS]))]
        self.pages = [
            int(self.mem[directory + s])
            for d, directory in enumerate(self.directories)
            for s in range(int(self.mem[self.root + HEADER + self.room + d]))
        ]


def assign(at: Callable[[Places], int], value: int) -> Callable[[Places], None]:
    def break_it(p: Places) -> None:
        p.mem[at(p)] = value

    return break_it


def count(pages: Callable[[Places], int], value: int) -> Callable[[Places], None]:
    def break_it(p: Places) -> None:
        p.refs[pages(p) // GRAIN] = value

    return break_it


BROKEN: dict[str, tuple[Callable[[Places], None], str]] = {
    "freed root": (count(lambda p: p.root, 0), r"root \d+ is freed"),
    "freed directory": (count(lambda p: p.directories[1], 0), "directory page 1 is freed"),
    "freed page": (count(lambda p: p.pages[2], 0), r"page 0\.2 is freed"),
    "too many directories": (assign(lambda p: p.root + DIRS, 9), "9 directory pages in a root with room for 4"),
    "too many entries": (assign(lambda p: p.root + HEADER + p.room, 5), "directory page 0 has 5 entries of 4"),
    "too few entries": (assign(lambda p: p.root + HEADER + p.room, 1), "directory page 0 is underfull: 1 of 4"),
    "no rows": (assign(lambda p: p.directories[0] + 4, 0), r"page 0\.0 has 0 rows of 8"),
    "too many rows": (assign(lambda p: p.directories[0] + 4, 9), r"page 0\.0 has 9 rows of 8"),
    "too few rows": (assign(lambda p: p.directories[0] + 4, 3), r"page 0\.0 is underfull: 3 of 8"),
    "wrong fence": (
        assign(lambda p: p.directories[0] + 8 + 1, 71),
        r"page 0\.1 starts with \(70,\), its fence says \(71,\)",
    ),
    "wrong top": (
        assign(lambda p: p.root + HEADER + 2 * p.room, 1),
        r"directory page 0 starts with \(0,\), the root says \(1,\)",
    ),
    "disorder in a page": (assign(lambda p: p.pages[0] + 1, 30), r"page 0\.0: \(20,\) follows \(30,\)"),
    "repeat in a page": (assign(lambda p: p.pages[0] + 1, 0), r"page 0\.0: \(0,\) follows \(0,\)"),
    "disorder between pages": (assign(lambda p: p.pages[0] + 6, 70), r"page 0\.1: \(70,\) follows \(70,\)"),
    "wrong number of rows": (assign(lambda p: p.root + ROWS, 47), "46 rows, the root says 47"),
    "wrong number of pages": (assign(lambda p: p.root + PAGES, 8), "7 pages, the root says 8"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_check_sees(case: str) -> None:
    break_it, text = BROKEN[case]
    version = sound()
    break_it(Places(version))
    with pytest.raises(AssertionError, match=f"^{text}"):
        version.check()


def lost_page(p: Places) -> None:
    p.heap[TOP] += 1


def lost_grains(p: Places) -> None:
    p.heap[USED] += 1


def free_and_live(p: Places) -> None:
    p.mem[p.pages[3]] = 0
    p.heap[FREE + 1] = p.pages[3]


def circle(p: Places) -> None:
    free = int(p.heap[TOP]) * GRAIN
    p.heap[TOP] += 1
    p.mem[free], p.heap[FREE + 1] = free, free


def odd_reference(p: Places) -> None:
    p.mem[p.directories[0]] += 1


BROKEN_ARENA: dict[str, tuple[Callable[[Places], None], str]] = {
    "count too high": (count(lambda p: p.pages[0], 2), "reference counts differ"),
    "count too low": (count(lambda p: p.pages[0], 0), "reference counts differ"),
    "live page nobody holds": (count(lambda p: int(p.heap[TOP]) * GRAIN - GRAIN, 5), "reference counts differ"),
    "grains in no page": (lost_page, r"pages end at grain \d+, TOP is \d+, LIMIT \d+"),
    "grains counted twice": (lost_grains, r"\d+ grains in live pages, the allocator says \d+"),
    "a page free and live": (free_and_live, r"the (free|live) page at grain \d+ follows a page that ends at \d+"),
    "a free list in a circle": (circle, r"the free list of class 1 runs in a circle at page \d+"),
    "a reference into a page": (odd_reference, r"page \d+ starts within a grain"),
}


@pytest.mark.parametrize("case", BROKEN_ARENA)
def test_check_arena_sees(case: str) -> None:
    break_it, text = BROKEN_ARENA[case]
    version = sound()
    break_it(Places(version))
    with pytest.raises(AssertionError, match=f"^{text}"):
        check_arena(version.store.arena, [version])
