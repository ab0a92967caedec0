"""The pages of a version, read off the arena."""

from __future__ import annotations

from scantree.layout import DIRS, HEADER, ROOM
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
