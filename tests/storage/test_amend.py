"""Amending: what nobody else reads is changed in place, what others share is not, and all the rest is left to `update`.

Catches: a row moved over another one; a fence that is not the first row's key any more; a page of another version that
is written to; pages that run over or stay nearly empty; pages that are lost where a batch is amended in part.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import amend
from scantree import version as versions
from scantree.check import check_arena
from scantree.memory import GRAIN, Arena
from scantree.probe import ADD, CHANGED, ERASE, INSERTED, UPSERT
from scantree.version import Store, Version
from tests.conftest import examples
from tests.storage.pages import rows_of_pages

Rows = npt.NDArray[np.int64]
Model = dict[tuple[int, ...], int]


def held(version: Version) -> Model:
    """Value by key."""
    return {tuple(row[:-1]): row[-1] for row in version.columns().T.tolist()}


def batch_of(changes: list[tuple[tuple[int, ...], int, int]], keys: int) -> tuple[Rows, npt.NDArray[np.int8]]:
    """Changes (key, value, op) as an update takes them."""
    rows = np.array([[*key, value] for key, value, _ in changes], np.int64).reshape(len(changes), keys + 1)
    return rows.T.copy(), np.array([op for *_, op in changes], np.int8)


@given(st.data(), st.integers(1, 3), st.sampled_from([2, 4, 8]), st.sampled_from([2, 4]))
@examples(150, 15)
def test_amended_equals_updated(data: st.DataObject, keys: int, page_rows: int, dir_rows: int) -> None:
    """Batches of every kind, one after the other; some of the versions on the way are kept by somebody else."""
    store = Store(Arena(), keys, 1, page_rows=page_rows, dir_rows=dir_rows)
    key = st.tuples(*[st.integers(0, 40 if keys == 1 else 4)] * keys)
    change = st.tuples(key, st.integers(0, 2), st.sampled_from([UPSERT, ERASE, ADD]))
    version, model = store.empty(), Model()
    kept: list[tuple[Version, Model]] = []
    for turn in range(data.draw(st.integers(1, 6))):
        changes = data.draw(st.lists(change, max_size=25))
        twin = store.build(list(version.columns()))
        rows, ops = batch_of(changes, keys)
        expected, told = twin.update(rows, ops)
        version, done = version.update(rows, ops, use_up=True)
        for row, (value, op) in {row: (value, op) for row, value, op in changes}.items():
            if op == ERASE:
                model.pop(row, None)
            elif op == UPSERT or row not in model:
                model[row] = value
        version.check()
        assert held(version) == model == held(expected)
        assert done.batch.tolist() == told.batch.tolist()
        assert done.verdicts.tolist() == told.verdicts.tolist()
        if data.draw(st.booleans()):
            # The next version shares its pages with this one, which is to stay as it is.
            kept.append((version, dict(model)))
            mark = np.array([[-1]] * keys + [[10 + turn]])
            version, _ = version.update(mark, np.ones(1, np.int8))
            model[(-1,) * keys] = 10 + turn
        for other, was in kept:
            assert held(other) == was
        del expected, twin
    check_arena(store.arena, list({id(v): v for v in (version, *(other for other, _ in kept))}.values()))


def test_rows_with_room_are_put_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row per page comes, changes and goes without a page being made; the first row of all goes, too."""
    store = Store(Arena(), 1, 1, page_rows=8, dir_rows=4)
    rows = np.arange(0, 800, 2)
    version = store.build([rows, rows])
    gone = rows[np.arange(400) % 8 < 3]
    version, _ = version.update(np.stack([gone, gone]), np.full(len(gone), -1, np.int8))
    was = version.columns()
    pages, root = version.pages, version.root
    come = np.array([-5, *(first + 1 for first, n in rows_of_pages(version)[1:] if 4 <= n < 8)])
    assert len(come) > pages // 2
    monkeypatch.setattr(versions._update, "update_packed", None)  # nothing is left for it
    ones = np.ones(len(come), np.int8)
    after, done = version.update(np.stack([come, come]), ones, use_up=True)
    assert after is version
    assert (after.pages, after.root, len(after)) == (pages, root, len(was[0]) + len(come))
    assert set(done.verdicts.tolist()) == {INSERTED}
    after.check()
    after, _ = after.update(np.stack([come, come + 7]), ones, use_up=True)
    assert after.values_of(come[None, :]).tolist() == [(come + 7).tolist()]
    after, _ = after.update(np.stack([come, come]), -ones, use_up=True)
    after.check()
    assert after.columns().tolist() == was.tolist()


@pytest.mark.parametrize("gone", [[0, 1], [2, 4, 5, 9], [0, 3, 10, 15], [13, 14, 15]])
def test_several_rows_of_a_page_go_at_once(gone: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies between them moves up, by as many places as rows before it went."""
    store = Store(Arena(), 1, 1, page_rows=32, dir_rows=4)
    keys = np.arange(300)
    version = store.build([keys, keys])
    erased = np.array([first + i for first, _ in rows_of_pages(version)[:-1] for i in gone])
    monkeypatch.setattr(versions._update, "update_packed", None)  # nothing is left for it
    after, _ = version.update(np.stack([erased, erased]), np.full(len(erased), ERASE, np.int8), use_up=True)
    after.check()
    assert after is version
    assert after.columns().tolist() == [np.setdiff1d(keys, erased).tolist()] * 2


@pytest.mark.parametrize(("every", "gone", "fewer"), [(2, 4, 1), (2, 7, 18), (1, 4, 12), (1, 6, 27), (1, 7, 35)])
def test_nearly_empty_pages_share_with_those_beside_them(
    every: int, gone: int, fewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many rows go from every page, or every other one: rows move between pages, or a page goes, the first, too."""
    store = Store(Arena(), 1, 1, page_rows=8, dir_rows=64)
    keys = np.arange(252)
    version = store.build([keys, keys + 7])
    assert rows_of_pages(version) == [(first, 7) for first in range(0, 252, 7)]
    other, _ = version.update(np.array([[0], [1]]), np.ones(1, np.int8))  # its first page, and the rest shared
    monkeypatch.setattr(versions._update, "update_packed", None)  # nothing is left for it
    erased = keys[(keys // 7 % every == 0) & (keys % 7 < gone) & (keys < 251)]
    after, _ = other.update(np.stack([erased, erased]), np.full(len(erased), ERASE, np.int8), use_up=True)
    after.check()
    left = np.setdiff1d(keys, erased)
    assert after.columns().tolist() == [left.tolist(), (left + 7).tolist()]
    assert other.pages == 36 - fewer
    assert version.columns().tolist() == [keys.tolist(), (keys + 7).tolist()]
    check_arena(store.arena, [version, after])


def test_pages_of_a_half_full_directory_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them may go, but rows move from one to the other."""
    store = Store(Arena(), 1, page_rows=8, dir_rows=4)
    keys = np.arange(252)
    version = store.build([keys])
    pages = keys // 7
    gone = keys[(pages % 3 == 2) & (pages < 33)]  # one of the three pages of each directory page but the last
    version, _ = version.update(gone[None, :], np.full(len(gone), ERASE, np.int8), use_up=True)
    assert version.pages == 22 + 3
    monkeypatch.setattr(versions._update, "update_packed", None)  # nothing is left for it
    few = keys[(pages % 3 == 0) & (pages < 33) & (keys % 7 < 4)]
    after, _ = version.update(few[None, :], np.full(len(few), ERASE, np.int8), use_up=True)
    after.check()
    assert after.pages == 22 + 3
    assert after.columns()[0].tolist() == np.setdiff1d(keys, np.concatenate([gone, few])).tolist()


@pytest.mark.parametrize(("dir_rows", "seed"), [(4, 1), (4, 2), (64, 3), (64, 4)])
def test_all_rows_go(dir_rows: int, seed: int) -> None:
    """From everywhere or from the right end; every page and directory page is half full until the last row goes."""
    rng = np.random.default_rng(seed)
    store = Store(Arena(), 1, page_rows=8, dir_rows=dir_rows)
    left = np.arange(1_000)
    version = store.build([left])
    while len(left):
        n = max(1, len(left) // 3)
        gone = np.sort(rng.permutation(left)[:n] if rng.random() < 0.7 else left[-n:])
        version, _ = version.update(gone[None, :], np.full(n, ERASE, np.int8), use_up=True)
        version.check()
        left = np.setdiff1d(left, gone)
        assert version.columns()[0].tolist() == left.tolist()
    check_arena(store.arena, [version])


def test_full_pages_are_cut_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there is memory for, and room in their directory; the rest is left for `update`."""
    store = Store(Arena(), 1, 1, page_rows=8, dir_rows=64)
    keys = np.arange(0, 320, 2)
    version = store.build([keys[keys % 16 == 0]] * 2)
    for turn in range(1, 8):  # ascending rows of one batch after the other fill the pages to the brim
        rows = keys[keys % 16 == 2 * turn]
        version, _ = version.update(np.stack([rows, rows]), np.ones(len(rows), np.int8))
    full = [first for first, n in rows_of_pages(version)[:-1] if n == 8]
    assert len(full) > 2
    version, _ = version.update(np.stack([keys, keys + 1]), np.ones(len(keys), np.int8))  # all pages are its own now
    come, pages, root = np.array(full) + 1, version.pages, version.root
    monkeypatch.setattr(amend, "CUT_PART", 1)
    monkeypatch.setattr(versions._update, "update_packed", None)
    after, _ = version.update(np.stack([come, come]), np.ones(len(come), np.int8), use_up=True)
    assert (after.root, after.pages, len(after)) == (root, pages + len(full), len(keys) + len(full))
    after.check()
    assert after.columns()[0].tolist() == sorted([*keys.tolist(), *come.tolist()])
    check_arena(store.arena, [after])


@pytest.mark.parametrize("call", ["_next", "drop_dirs"])
def test_what_is_used_up_goes_where_amending_is_interrupted(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after what was left is applied: no page stays that nobody holds."""
    store = Store(Arena(), 1, page_rows=4, dir_rows=4)
    version = store.build([np.arange(0, 400, 2)])
    owner = versions.Version if call == "_next" else versions._memory

    def stopped(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, call, stopped)
    with pytest.raises(KeyboardInterrupt):
        version.update(np.arange(1, 400, 2)[None, :], np.ones(200, np.int8), use_up=True)
    monkeypatch.undo()
    del version
    check_arena(store.arena, [])


def test_pages_of_others_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are touched, and the directory pages above them; what is written to them afterwards copies nothing."""
    store = Store(Arena(), 1, 1, page_rows=8, dir_rows=4)
    keys = np.arange(400)
    version = store.build([keys, keys])
    other, _ = version.update(np.array([[0], [-1]]), np.ones(1, np.int8))  # its first page, and the rest shared
    touched, root = np.array([first for first, _ in rows_of_pages(other)[20:31:2]]), other.root
    monkeypatch.setattr(versions._update, "update_packed", None)  # nothing is left for it
    ones, used = np.ones(len(touched), np.int8), store.arena.used
    after, done = other.update(np.stack([touched, touched + 7]), ones, use_up=True)
    assert (after, after.root, set(done.verdicts.tolist())) == (other, root, {CHANGED})
    assert store.arena.used - used == 8 * GRAIN * (len(touched) + 5)  # a grain each, and five directory pages above
    assert version.columns().tolist() == [keys.tolist()] * 2
    assert after.values_of(touched[None, :]).tolist() == [(touched + 7).tolist()]
    check_arena(store.arena, [version, after])
    used = store.arena.used
    after, _ = after.update(np.stack([touched, touched + 8]), ones, use_up=True)
    after, _ = after.update(np.stack([touched + 1, touched]), -ones, use_up=True)
    assert (store.arena.used, len(after)) == (used, 400 - len(touched))
    assert version.columns().tolist() == [keys.tolist()] * 2
    after.check()
    check_arena(store.arena, [version, after])


def test_pages_of_others_are_not_written_to() -> None:
    store = Store(Arena(), 1, page_rows=4, dir_rows=4)
    version = store.build([np.arange(0, 400, 2)])
    other, _ = version.update(np.array([[1]]), np.ones(1, np.int8))
    was = version.columns().tolist()
    after, _ = other.update(np.arange(1, 400, 2)[None, :], np.ones(200, np.int8), use_up=True)
    assert version.columns().tolist() == was
    assert after.columns().tolist() == [list(range(400))]
    del other  # which has nothing but its root left
    check_arena(store.arena, [version, after])
