"""The pages of a version, read off the arena."""

from __future__ import annotations

from scantree.layout import DIRS, HEADER, ROOM, dir_count, dir_of
from scantree.version import Version


def pages_of(version: Version) -> tuple[dict[int, int], dict[int, int]]:
    """Words of (directory pages, row pages) of a version, by their offsets."""
    mem, shape = version.store.arena.space.mem, version.store.shape
    root, room = version.root, int(mem[version.root + ROOM])
    directories, pages = {}, {}
    for d in range(int(mem[root + DIRS])):
        directory = int(mem[root + HEADER + d])
        directories[directory] = (2 + shape.keys + shape.folds) << shape.dir_bits
        for s in range(int(mem[root + HEADER + room + d])):
            pages[int(mem[directory + s])] = shape.cols << shape.page_bits
    return directories, pages


def rows_of_pages(version: Version) -> list[tuple[int, int]]:
    """(first key, rows) of each row page, in order."""
    mem, fan = version.store.arena.space.mem, 1 << version.store.shape.dir_bits
    found = []
    for d in range(int(mem[version.root + DIRS])):
        directory = dir_of(mem, version.root, d)
        for s in range(dir_count(mem, version.root, d)):
            found.append((int(mem[mem[directory + s]]), int(mem[directory + fan + s])))
    return found
