"""Merging: a version and more rows become a version with pages of its own; one that is used up goes on the way.

Catches: rows that change their order or get lost at the end of a page; a row that was there twice, or with new values,
or one that is told to be new; a page that is given back while others read it,
or twice; pages that stay when a merge is interrupted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import version as versions
from scantree.check import check_arena
from scantree.memory import GRAIN, USED, Arena, ArenaFullError
from scantree.scan import Monoid, Scan
from scantree.version import Store, Version

Rows = npt.NDArray[np.int64]


def in_order(codes: list[int], keys: int) -> Rows:
    """A row of `keys` columns for each code, in order and distinct as the codes are."""
    base = 7
    columns = [np.array(sorted(codes), np.int64) // base ** (keys - 1 - c) for c in range(keys)]
    return np.stack([columns[0], *[column % base for column in columns[1:]]])


def with_values(rows: Rows, value: int) -> Rows:
    """The rows and one column more, the same in all."""
    return np.concatenate([rows, np.full((1, rows.shape[1]), value, np.int64)])


def split(draw: Any, keys: int) -> tuple[list[int], list[int]]:
    """Codes of rows that are there, and of rows that come."""
    codes = draw(st.sets(st.integers(0, 7**keys - 1), max_size=60))
    come = draw(st.sets(st.sampled_from(sorted(codes)))) if codes else set()
    return sorted(codes - come), sorted(come)


@given(st.data(), st.integers(1, 3), st.sampled_from([2, 4, 16]), st.sampled_from([2, 4]), st.booleans(), st.booleans())
def test_merged_equals_built(
    data: st.DataObject, keys: int, page_rows: int, dir_rows: int, fill: bool, use_up: bool
) -> None:
    there, come = split(data.draw, keys)
    again = data.draw(st.sets(st.sampled_from(there))) if there else set[int]()
    scan = data.draw(st.sampled_from([None, Scan(Monoid.SUM, keys), Scan(Monoid.COUNT, 0)]))
    store = Store(Arena(), keys, 1, page_rows=page_rows, dir_rows=dir_rows, scan=scan)
    old, added = with_values(in_order(there, keys), 3), in_order([*come, *again], keys)
    before = store.build(list(old))
    beside, _ = before.update(old[:, ::3], np.full(old[:, ::3].shape[1], -1, np.int8))  # shares pages with it
    kept = beside.columns()
    if fill:
        after, new = before.merged(added, (5,), use_up=use_up)
    else:
        after, new = before.merged(with_values(added, 5), use_up=use_up)
    after.check()
    expected = store.build(list(np.concatenate([old, with_values(in_order(come, keys), 5)], axis=1)))
    assert after.columns().tolist() == expected.columns().tolist()
    assert len(after) == len(expected)
    assert after.pages == expected.pages or again  # as many as all rows would need that were given
    assert new.tolist() == [code not in again for code in sorted([*come, *again])]
    alive = [after, expected]
    if beside is not before:  # it is where there was no row to erase
        assert beside.columns().tolist() == kept.tolist()
        alive.append(beside)
    if not use_up:
        assert before.columns().tolist() == old.tolist()
        alive.append(before)
    check_arena(store.arena, alive)


@given(
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 3), st.booleans()), max_size=12),
    st.integers(0, 70),
    st.integers(1, 4),
    st.sampled_from([16, 64]),
)
def test_runs_of_any_length_between_the_rows_that_come(
    runs: list[tuple[int, int, bool]], rest: int, keys: int, page_rows: int
) -> None:
    """Short runs of old rows are copied row by row, the rest of long ones is sought, and both end with pages."""
    there, come, again, code = list[int](), list[int](), list[int](), 0
    for old, new, met in runs:
        there += range(code, code + old)
        again += [code + old - 1] * (met and old > 0)
        come += range(code + old, code + old + new)
        code += old + new
    there += range(code, code + rest)
    store = Store(Arena(), keys, 1, page_rows=page_rows, dir_rows=4)
    before = store.assemble([with_values(in_order(there, keys), 3)])
    after, told = before.merged(in_order([*come, *again], keys), (5,))
    after.check()
    rows = np.concatenate([with_values(in_order(there, keys), 3), with_values(in_order(come, keys), 5)], axis=1)
    assert after.columns().tolist() == store.build(list(rows)).columns().tolist()
    assert told.tolist() == [code not in again for code in sorted([*come, *again])]


def large(arena: Arena | None = None) -> tuple[Version, Rows]:
    """(a version of 2,000 rows on tiny pages, 2,000 rows that go between them)."""
    rows = np.arange(4_000).reshape(1, -1)
    store = Store(arena or Arena(), 1, page_rows=4, dir_rows=4)
    return store.assemble([np.ascontiguousarray(rows[:, ::2])]), np.ascontiguousarray(rows[:, 1::2])


@pytest.mark.parametrize("use_up", [False, True])
def test_what_is_used_up_makes_room_for_what_comes(use_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of both versions were once there in full: at its peak, evaluation took half as much again."""
    before, rows = large()
    heap = before.store.arena.space.heap
    had, seen = int(heap[USED]), list[int]()
    merge = versions._build.merge

    def watched(*arguments: Any) -> Any:
        found = merge(*arguments)
        seen.append(int(heap[USED]))
        return found

    monkeypatch.setattr(versions, "MERGED_DIRS", 1)
    monkeypatch.setattr(versions._build, "merge", watched)
    after, _ = before.merged(rows, use_up=use_up)
    assert after.columns().tolist() == [list(range(4_000))]
    whole = after.memory() // (8 * GRAIN)
    assert max(seen) <= 1.02 * whole if use_up else seen[-1] >= had + 0.98 * whole
    check_arena(after.store.arena, [after] if use_up else [before, after])


@pytest.mark.parametrize("use_up", [False, True])
@pytest.mark.parametrize("call", [0, 1, 60])
def test_an_interrupted_merge_leaves_no_pages(use_up: bool, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rows = large()
    merge, calls = versions._build.merge, list[int]()

    def stopped(*arguments: Any) -> Any:
        calls.append(0)
        if len(calls) > call:
            raise KeyboardInterrupt
        return merge(*arguments)

    monkeypatch.setattr(versions, "MERGED_DIRS", 2)
    monkeypatch.setattr(versions._build, "merge", stopped)
    with pytest.raises(KeyboardInterrupt):
        before.merged(rows, use_up=use_up)
    if use_up:
        check_arena(before.store.arena, [])
    else:
        assert before.columns().tolist() == [list(range(0, 4_000, 2))]
        check_arena(before.store.arena, [before])


def test_without_memory_nothing_is_used_up() -> None:
    probe, _ = large()
    arena = Arena(limit=int(1.5 * probe.store.arena.used))
    before, rows = large(arena)
    with pytest.raises(ArenaFullError):
        before.merged(rows, use_up=True)
    assert before.columns().tolist() == [list(range(0, 4_000, 2))]
    check_arena(arena, [before])
