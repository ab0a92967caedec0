"""The executable invariants of a version (layout.py) and of an arena (memory.py); tests call them after every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scantree.layout import DIRS, HEADER, PAGES, ROOM, ROWS
from scantree.memory import CLASSES, FREE, GRAIN, LARGE, LIMIT, TOP, USED, Size
from scantree.scan import KEY_MAX, KEY_MIN, Monoid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scantree.memory import Arena
    from scantree.scan import Scan
    from scantree.version import Version


def check_version(version: Version) -> None:
    """Counts, fences, order, fill, references, scan of `version`; raises `AssertionError` naming what does not hold."""
    shape = version.store.shape
    mem, refs, _ = version.store.arena.space
    root, fan, cap = version.root, 1 << shape.dir_bits, 1 << shape.page_bits
    dirs, room = int(mem[root + DIRS]), int(mem[root + ROOM])
    assert refs[root // GRAIN] > 0, f"root {root} is freed"
    assert 0 <= dirs <= room, f"{dirs} directory pages in a root with room for {room}"
    total, pages, previous = 0, 0, None
    for d in range(dirs):
        directory, entries = int(mem[root + HEADER + d]), int(mem[root + HEADER + room + d])
        assert refs[directory // GRAIN] > 0, f"directory page {d} is freed"
        assert 1 <= entries <= fan, f"directory page {d} has {entries} entries of {fan}"
        assert entries >= fan // 2 or d + 1 == dirs, f"directory page {d} is underfull: {entries} of {fan}"
        for s in range(entries):
            page, count = int(mem[directory + s]), int(mem[directory + fan + s])
            last = d + 1 == dirs and s + 1 == entries
            assert refs[page // GRAIN] > 0, f"page {d}.{s} is freed"
            assert 1 <= count <= cap, f"page {d}.{s} has {count} rows of {cap}"
            assert count >= cap // 2 or last, f"page {d}.{s} is underfull: {count} of {cap}"
            keys = [mem[page + c * cap : page + c * cap + count] for c in range(shape.keys)]
            rows = list(zip(*(k.tolist() for k in keys), strict=True)) if keys else [()] * count
            fence = tuple(int(mem[directory + (2 + c) * fan + s]) for c in range(shape.keys))
            assert rows[0] == fence, f"page {d}.{s} starts with {rows[0]}, its fence says {fence}"
            if s == 0:
                top = tuple(int(mem[root + HEADER + (2 + c) * room + d]) for c in range(shape.keys))
                assert top == fence, f"directory page {d} starts with {fence}, the root says {top}"
            for row in rows:
                assert previous is None or previous < row, f"page {d}.{s}: {row} follows {previous}"
                previous = row
            total += count
            pages += 1
    assert total == mem[root + ROWS], f"{total} rows, the root says {mem[root + ROWS]}"
    assert pages == mem[root + PAGES], f"{pages} pages, the root says {mem[root + PAGES]}"
    if version.store.scan is not None:
        _check_scan(version, version.store.scan)


def _check_scan(version: Version, scan: Scan) -> None:
    """Fold every row anew, upwards through entries and nodes of the scan-tree, and compare."""
    shape = version.store.shape
    mem, root, fan, cap = version.store.arena.space.mem, version.root, 1 << shape.dir_bits, 1 << shape.page_bits
    dirs, room = int(mem[root + DIRS]), int(mem[root + ROOM])

    def fold(folds: list[int]) -> int:
        if scan.monoid == Monoid.MIN:
            return min(folds, default=KEY_MAX)
        return max(folds, default=KEY_MIN) if scan.monoid == Monoid.MAX else sum(folds)

    def stored(at: int, stride: int) -> int:
        if shape.folds == 1:
            return int(mem[at])
        low = int(mem[at + stride])
        assert 0 <= low < 1 << 32, f"the low part {low} of a sum is not below 2^32"
        return (int(mem[at]) << 32) + low

    nodes = {room + d: fold([]) for d in range(dirs, room)}
    for d in range(dirs):
        directory, below = int(mem[root + HEADER + d]), []
        for s in range(int(mem[root + HEADER + room + d])):
            page, count = int(mem[directory + s]), int(mem[directory + fan + s])
            column = page + shape.column * cap
            below.append(count if scan.monoid == Monoid.COUNT else fold(mem[column : column + count].tolist()))
            said = stored(directory + (2 + shape.keys) * fan + s, fan)
            assert said == below[-1], f"page {d}.{s} folds to {below[-1]}, its entry says {said}"
        nodes[room + d] = fold(below)
    for node in range(2 * room - 1, 0, -1):
        if node < room:
            nodes[node] = fold([nodes[2 * node], nodes[2 * node + 1]])
        column = (2 + shape.keys + shape.folds) * room + node if node < room else (1 + shape.keys) * room + node
        said = stored(root + HEADER + column, room)
        assert said == nodes[node], f"node {node} of the root folds to {nodes[node]}, the root says {said}"


def check_arena(arena: Arena, versions: list[Version]) -> None:
    """Reference counts and the allocator against the given versions, which must be all that lives in the arena.

    Every grain handed out lies in exactly one page, live or free; live pages are those the versions reach, referred to
    as often as their counts say.
    """
    arena.collect()
    mem, refs, heap = arena.space
    top = int(heap[TOP])
    live: dict[int, Size] = {}
    expected: dict[int, int] = {}

    def refer(page: int, words: int) -> bool:
        assert page % GRAIN == 0, f"page {page} starts within a grain"
        expected[page] = expected.get(page, 0) + 1
        size = live.setdefault(page, Size(1, words))
        assert size.grains == Size(1, words).grains, f"page {page} is used as {size.words} and as {words} words"
        return expected[page] == 1

    for version in versions:
        shape, root = version.store.shape, version.root
        room = int(mem[root + ROOM])
        assert refer(root, HEADER + (2 + shape.keys + 2 * shape.folds) * room), f"two versions have the root {root}"
        for d in range(int(mem[root + DIRS])):
            directory = int(mem[root + HEADER + d])
            if refer(directory, (2 + shape.keys + shape.folds) << shape.dir_bits):
                for s in range(int(mem[root + HEADER + room + d])):
                    refer(int(mem[directory + s]), shape.cols << shape.page_bits)
    found = {int(g) * GRAIN: int(refs[g]) for g in np.flatnonzero(refs[:top])}
    assert found == expected, f"reference counts differ: {set(found.items()) ^ set(expected.items())}"

    used = sum(size.grains for size in live.values())
    assert used == heap[USED], f"{used} grains in live pages, the allocator says {heap[USED]}"
    spans = [(page // GRAIN, size.grains, "live") for page, size in live.items()]
    spans += [(page // GRAIN, grains, "free") for page, grains in _free_pages(arena)]
    behind = 1
    for start, grains, kind in sorted(spans):
        assert start == behind, f"the {kind} page at grain {start} follows a page that ends at {behind}"
        behind = start + grains
    assert behind == top <= heap[LIMIT], f"pages end at grain {behind}, TOP is {top}, LIMIT {heap[LIMIT]}"


def _free_pages(arena: Arena) -> Iterator[tuple[int, int]]:
    """(page, grains) of every page on a free list."""
    mem, _, heap = arena.space
    for size_class in range(CLASSES):
        page = int(heap[FREE + size_class])
        seen = set()
        while page:
            assert page not in seen, f"the free list of class {size_class} runs in a circle at page {page}"
            seen.add(page)
            yield page, size_class if size_class < LARGE else 1 << (size_class - LARGE)
            page = int(mem[page])
