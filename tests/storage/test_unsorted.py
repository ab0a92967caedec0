"""Unsorted versions: what versions of the same rows are, as soon as somebody asks for their order, and before.

Catches: a length, or columns, that are not those of the rows; rows that are sorted twice, or given back twice; columns
that are read as they came after others saw them in order, of which some are missing; copies that are lost.
"""

from __future__ import annotations

from collections import Counter
from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree.check import check_arena
from scantree.memory import Arena, ArenaFullError
from scantree.unsorted import UnsortedVersion
from scantree.version import Store
from tests.conftest import examples


@given(st.data(), st.integers(1, 3), st.sampled_from([2, 4, 8]))
@examples(150, 15)
def test_it_is_the_version_of_its_rows(data: st.DataObject, cols: int, page_rows: int) -> None:
    store = Store(Arena(), cols, page_rows=page_rows, dir_rows=2)
    rows = data.draw(st.lists(st.tuples(*[st.integers(-5, 5)] * cols), unique=True, max_size=40))
    given_rows = np.array(rows, np.int64).reshape(len(rows), cols).T.copy()
    found, sorted_ = UnsortedVersion(store, given_rows), store.build(list(given_rows))
    assert (len(found), found.count(), found.waits) == (len(rows), len(rows), True)
    wanted = data.draw(st.lists(st.integers(0, cols - 1), min_size=1, max_size=3))
    size = data.draw(st.integers(0, 9))
    for _ in range(2):
        chunks = list(found.column_chunks(wanted, size))
        assert all(chunk.shape[1] <= max(size, page_rows) for chunk in chunks)
        read = np.concatenate([np.empty((len(wanted), 0), np.int64), *chunks], axis=1)
        assert sorted(zip(*read.tolist(), strict=True)) == sorted(tuple(row[c] for c in wanted) for row in rows)
        assert found.some_columns(wanted).tolist() == read.tolist()
        # In order, from here on.
        assert found.columns().tolist() == sorted_.columns().tolist()
        assert not found.waits
    assert found.seek(rows[0] if rows else [0]) == sorted_.seek(rows[0] if rows else [0])
    order = tuple(data.draw(st.permutations(range(cols))))
    moved = store.reorder(UnsortedVersion(store, given_rows), order)
    assert moved.columns().T.tolist() == sorted([row[c] for c in order] for row in rows)
    following, changes = found.update(given_rows, np.full(len(rows), -1, np.int8))
    assert (len(following), len(changes.verdicts)) == (0, len(rows))
    found.check()
    check_arena(store.arena, [sorted_, moved, *{found, following}])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 3)), max_size=30))
@examples(100, 10)
def test_copies_add_up_when_it_is_sorted(rows: list[tuple[int, int, int]]) -> None:
    store = Store(Arena(), 2, 1, page_rows=2, dir_rows=2)
    given_rows = np.array(rows, np.int64).reshape(len(rows), 3).T.copy()
    found, wanted = UnsortedVersion(store, given_rows, counted=True), Counter[tuple[int, int]]()
    for a, b, copies in rows:
        wanted[a, b] += copies
    assert found.some_columns((0, 2)).tolist() == given_rows[[0, 2]].tolist()
    assert found.columns().T.tolist() == sorted([*row, copies] for row, copies in wanted.items())
    assert (len(found), found.count()) == (len(wanted), len(wanted))
    found.check()
    check_arena(store.arena, [found])


def test_copies_add_up_before_another_key_order_is_made() -> None:
    """There are fewer rows then: the others were whatever had been sorted before."""
    arena = Arena()
    store, other = Store(arena, 3), Store(arena, 3)
    many = np.array([[i % 30, i % 31, 1] for i in range(3_000)]).T
    made = other.reorder(UnsortedVersion(store, many, counted=True), (1, 0, 2))
    counts = Counter((i % 31, i % 30) for i in range(3_000))
    assert list(zip(*made.columns().tolist(), strict=True)) == sorted((*key, n) for key, n in counts.items())


def test_one_of_two_readers_sorts() -> None:
    for _ in range(20):
        store = Store(Arena(), 2, page_rows=4, dir_rows=4)
        found = UnsortedVersion(store, np.arange(400, dtype=np.int64)[::-1].reshape(2, 200).copy())
        begin, seen = Barrier(4), list[int]()

        def read(found: UnsortedVersion = found, begin: Barrier = begin, seen: list[int] = seen) -> None:
            begin.wait()
            seen.append(found.row(0)[0])

        threads = [Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [200] * 4
        check_arena(store.arena, [found])


def test_without_memory_it_waits_on(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(Arena(), 1, page_rows=4, dir_rows=4)
    found = UnsortedVersion(store, np.array([[3, 1, 2]], np.int64))

    def full(*_: object) -> None:
        raise ArenaFullError(2, 1)

    with monkeypatch.context() as patch:
        patch.setattr(store.arena, "room", full)
        with pytest.raises(ArenaFullError):
            found.columns()
    assert found.waits
    assert found.some_columns((0,)).tolist() == [[3, 1, 2]]
    assert found.columns().tolist() == [[1, 2, 3]]
    with pytest.raises(AttributeError, match="no attribute 'roots'"):
        found.__getattr__("roots")
