"""Trie iterators: the six operations against sorted lists, on pages of two to eight rows.

Catches: a run that ends in another page or directory page than it began, a seek that stops one key early or late, the
greatest key taken for a sentinel, a jump that leaves a stale end behind, a run that is not resolved anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.join import first_key_index, trie
from scantree.memory import Arena
from scantree.version import Store, Version

Row = tuple[int, ...]
KEYS = (0, 1, 2, 3, 4, 5, -1, trie.KEY_MIN, trie.KEY_MIN + 1, trie.KEY_MAX - 1, trie.KEY_MAX)


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_key_index, "LEAST", 1)
    monkeypatch.setattr(first_key_index, "SPREAD", 64)


class Iterators:
    """The frames of all levels of one relation."""

    def __init__(self, rows: set[Row], arity: int, page_rows: int, dir_rows: int, *, jump: bool) -> None:
        self.arena = Arena()
        store = Store(self.arena, arity, page_rows=page_rows, dir_rows=dir_rows)
        listed = sorted(rows)
        columns = [np.array([row[c] for row in listed], np.int64) for c in range(arity)]
        self.version = store.build(columns, count=len(listed))
        self.mem = self.arena.space.mem
        self.frames = frames_of(self.version)
        self.table = first_key_index.jump_table(self.version) if jump and rows else None
        if self.table is not None:
            self.frames[0, trie.JUMP : trie.JUMP_HIGH + 1] = self.table.page, self.table.low, self.table.high

    def open(self, level: int) -> bool:
        return bool(trie.open_(self.mem, self.frames, level))

    def up(self, level: int) -> None:
        trie.up(self.frames, level)

    def next(self, level: int) -> None:
        trie.next_(self.mem, self.frames, level)

    def seek(self, level: int, key: int) -> None:
        trie.seek(self.mem, self.frames, level, key)

    def key(self, level: int) -> int | None:
        return None if trie.at_end(self.frames, level) else int(trie.key(self.frames, level))


def frames_of(version: Version) -> np.ndarray[Any, Any]:
    shape = version.store.shape
    frames = np.zeros((shape.keys, trie.WIDTH), np.int64)
    for level in range(shape.keys):
        frames[level, trie.ROOT], frames[level, trie.LEVEL], frames[level, trie.ABOVE] = version.root, level, level - 1
        frames[level, trie.PAGE_BITS], frames[level, trie.DIR_BITS] = shape.page_bits, shape.dir_bits
        frames[level, trie.UNIQUE] = level + 1 == shape.keys
    return frames


def keys_under(rows: set[Row], prefix: Row) -> list[int]:
    return sorted({row[len(prefix)] for row in rows if row[: len(prefix)] == prefix})


@st.composite
def relations(draw: Any) -> tuple[set[Row], int]:
    arity = draw(st.integers(1, 3))
    pools = [draw(st.sampled_from((KEYS[:2], KEYS[:6], KEYS))) for _ in range(arity)]
    return draw(st.sets(st.tuples(*(st.sampled_from(pool) for pool in pools)), min_size=1, max_size=60)), arity


SIZES = st.tuples(st.sampled_from((2, 4, 8)), st.sampled_from((2, 4)))


@given(relations(), SIZES, st.booleans(), st.data())
def test_any_walk(relation: tuple[set[Row], int], sizes: tuple[int, int], jump: bool, data: st.DataObject) -> None:
    """A random walk over the trie: down, up, along, and forward by seeks; every key compared."""
    rows, arity = relation
    it = Iterators(rows, arity, *sizes, jump=jump)
    assert it.open(0)
    path: list[tuple[list[int], int]] = [(keys_under(rows, ()), 0)]
    for _ in range(30):
        level = len(path) - 1
        keys, at = path[-1]
        assert it.key(level) == (keys[at] if at < len(keys) else None)
        moves = ["up"] if level else ["rewind"]
        if at < len(keys):
            moves += ["next", "next", "seek", "seek"] + ["open"] * 3 * (level + 1 < arity)
        match data.draw(st.sampled_from(moves)):
            case "up":
                path.pop()
            case "rewind":
                it.open(0)
                path[-1] = (keys, 0)
            case "open":
                it.up(level + 1)
                assert it.open(level + 1)
                prefix = tuple(ks[i] for ks, i in path)
                path.append((keys_under(rows, prefix), 0))
            case "next":
                it.next(level)
                path[-1] = (keys, at + 1)
            case "seek":
                key = data.draw(st.sampled_from(KEYS))
                it.seek(level, key)
                path[-1] = (keys, max(at, sum(k < key for k in keys)))


@given(relations(), SIZES, st.booleans())
def test_the_whole_trie_in_order(relation: tuple[set[Row], int], sizes: tuple[int, int], jump: bool) -> None:
    rows, arity = relation
    it = Iterators(rows, arity, *sizes, jump=jump)
    found = []

    def walk(level: int, prefix: Row) -> None:
        it.up(level)
        assert it.open(level)
        while (key := it.key(level)) is not None:
            if level + 1 == arity:
                found.append((*prefix, key))
            else:
                walk(level + 1, (*prefix, key))
            it.next(level)

    walk(0, ())
    assert found == sorted(rows)


@given(relations(), SIZES, st.booleans())
def test_run_lengths(relation: tuple[set[Row], int], sizes: tuple[int, int], jump: bool) -> None:
    """Rows from every key of every run to the run's end."""
    rows, arity = relation
    it = Iterators(rows, arity, *sizes, jump=False)
    it.open(0)
    while (first := it.key(0)) is not None:
        assert trie.run_length(it.mem, it.frames, 0) == sum(row[0] >= first for row in rows)
        if arity > 1:
            it.up(1)
            it.open(1)
            assert trie.run_length(it.mem, it.frames, 1) == sum(row[0] == first for row in rows)
        it.next(0)


def test_an_empty_relation_cannot_be_opened() -> None:
    it = Iterators(set(), 2, 4, 4, jump=False)
    assert not it.open(0)
    assert trie.at_end(it.frames, 0)


def test_reopening_without_up_rewinds() -> None:
    rows = {(1, 5), (1, 6), (2, 7)}
    it = Iterators(rows, 2, 2, 2, jump=False)
    it.open(0)
    it.open(1)
    it.next(1)
    assert it.key(1) == 6
    it.open(1)
    assert it.key(1) == 5
    it.next(0)
    it.up(1)
    it.open(1)
    assert it.key(1) == 7


def test_next_after_a_jump() -> None:
    """A jump lands in another page and leaves its end open; `next_` compared with the end of the page before.

    The old page had four rows, the new one three: the fourth, left over from a split, was given out as a key.
    """
    rows = {(k, v) for k in range(12) for v in (0,) * 1}
    it = Iterators(rows, 2, 4, 4, jump=True)
    assert it.table is not None
    version, _ = it.version.update(np.array([[5], [0]]), np.array([-1], np.int8))
    fresh = Iterators(set(), 2, 4, 4, jump=False)
    fresh.arena, fresh.version, fresh.mem = it.arena, version, it.mem
    fresh.frames = frames_of(version)
    fresh.table = first_key_index.jump_table(version)
    assert fresh.table is not None
    fresh.frames[0, trie.JUMP : trie.JUMP_HIGH + 1] = fresh.table.page, fresh.table.low, fresh.table.high
    fresh.open(0)
    found = []
    fresh.seek(0, 4)
    while (key := fresh.key(0)) is not None:
        found.append(key)
        fresh.next(0)
    assert found == [4, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("jump", [False, True])
def test_a_run_over_many_directory_pages(jump: bool) -> None:
    rows = {(1, v) for v in range(100)} | {(0, 0), (2, 0), (3, trie.KEY_MAX)}
    it = Iterators(rows, 2, 2, 2, jump=jump)
    it.open(0)
    it.seek(0, 1)
    it.up(1)
    it.open(1)
    for key in (0, 1, 7, 50, 51, 98, 99):
        it.seek(1, key)
        assert it.key(1) == key
    it.seek(1, 100)
    assert it.key(1) is None
    it.next(0)
    assert it.key(0) == 2
    it.next(0)
    it.up(1)
    it.open(1)
    assert it.key(1) == trie.KEY_MAX
    it.next(1)
    assert it.key(1) is None
