"""Updates over long histories: pages stay full, single rows stay cheap, nothing effective is lost or invented.

Catches: fill that decays under random updates; an update that copies more than it touches; scratch arrays too small
for the split that meets every directory page at once.
"""

from __future__ import annotations

import contextlib

import numba
import numpy as np
import numpy.typing as npt
import pytest

from scantree import update
from scantree import version as versions
from scantree.check import check_arena
from scantree.memory import Arena
from scantree.version import Store, Version
from tests.interrupt import Interrupt
from tests.storage.pages import pages_of

JIT = not numba.config.DISABLE_JIT
ONE = np.ones(1, np.int8)


def inserted_one_by_one(version: Version, values: npt.NDArray[np.int64]) -> Version:
    for value in values:
        version, _ = version.update(np.array([[value]]), ONE)
    return version


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_ascending_appends_pack_densely(batch: int) -> None:
    n = 3000 if JIT else 300
    store = Store(Arena(), 1, page_rows=8, dir_rows=4)
    version = store.empty()
    for i in range(0, n, batch):
        version, _ = version.update(np.arange(i, i + batch)[None], np.ones(batch, np.int8))
    version.check()
    assert version.fill > 0.9


@pytest.mark.parametrize("order", ["descending", "inwards", "outwards"])
def test_other_orders_keep_half(order: str) -> None:
    n = 2000 if JIT else 200
    ascending = np.arange(n)
    values = {
        "descending": ascending[::-1],
        "inwards": np.stack([ascending, 2 * n - ascending]).T.reshape(-1),
        "outwards": np.stack([n - ascending, n + 1 + ascending]).T.reshape(-1),
    }[order]
    version = inserted_one_by_one(Store(Arena(), 1, page_rows=8, dir_rows=4).empty(), values)
    version.check()
    assert len(version) == len(values)
    assert version.fill > 0.5


def churn(version: Version, changes: int, domain: int, seed: int, checks: int) -> set[int]:
    """Random single-row changes, half of them erases; returns the fill after each tenth; compares with a set."""
    rng = np.random.default_rng(seed)
    model = set(version.columns()[0].tolist())
    fills = []
    for i, (value, op) in enumerate(zip(rng.integers(0, domain, changes), rng.choice([1, -1], changes), strict=True)):
        version, changed = version.update(np.array([[value]]), np.array([op], np.int8))
        before = len(model)
        (model.add if op > 0 else model.discard)(int(value))
        assert (changed.verdicts[0] != 0) == (len(model) != before)
        if (i + 1) % (changes // checks) == 0:
            version.check()
            assert version.columns()[0].tolist() == sorted(model)
            fills.append(version.fill)
    assert min(fills) > 0.5, fills
    check_arena(version.store.arena, [version])
    return model


@pytest.mark.parametrize(("page_rows", "dir_rows"), [(2, 2), (4, 4), (8, 2), (4, 32)])
def test_random_updates_do_not_degrade_tiny_pages(page_rows: int, dir_rows: int) -> None:
    store = Store(Arena(), 1, page_rows=page_rows, dir_rows=dir_rows)
    changes = 30_000 if JIT and page_rows == dir_rows == 4 else 6_000 if JIT else 200
    churn(store.build([np.arange(0, 800, 2)]), changes, 800, page_rows, 5)


@pytest.mark.jit_only
def test_random_updates_do_not_degrade() -> None:
    store = Store(Arena(), 1)
    churn(store.build([np.arange(0, 120_000, 2)]), 200_000, 120_000, 1, 5)


def test_a_change_to_every_other_full_directory_page() -> None:
    """Each of them splits; the scratch array for the new root once had no room for that and was written past its end.

    (A batch of m changes was thought to make m / (half a directory page) directory pages at most.)
    """
    dirs, fan, cap = 24, 16, 2
    store = Store(Arena(), 1, page_rows=cap, dir_rows=fan)
    full = inserted_one_by_one(store.empty(), np.arange(0, 2 * dirs * fan * cap, 2))
    assert full.fill == 1.0
    assert len(pages_of(full)[0]) == dirs
    batch = np.arange(1, 2 * dirs * fan * cap, 2 * 2 * fan * cap)
    after, changes = full.update(batch[None], np.ones(len(batch), np.int8))
    after.check()
    assert len(pages_of(after)[0]) == dirs + len(batch) == dirs + dirs // 2
    assert changes.verdicts.tolist() == [1] * len(batch)
    check_arena(store.arena, [full, after])


@pytest.mark.parametrize("op", [1, -1])
def test_a_single_row_copies_few_pages(op: int) -> None:
    """Two row pages and two directory pages at most, beside the root, wherever the row is."""
    n = 20_000 if JIT else 1_000
    store = Store(Arena(), 2, page_rows=8, dir_rows=16)
    version = store.build([np.arange(n), np.arange(n)])
    directories, pages = pages_of(version)
    for at in np.linspace(0, n - 1, 30).astype(int):
        used = store.arena.used
        row = np.array([[at], [at if op < 0 else -1]])
        after, _ = version.update(row, np.array([op], np.int8))
        after.check()
        new_directories, new_pages = pages_of(after)
        assert len(new_pages.keys() - pages.keys()) <= 2
        assert len(new_directories.keys() - directories.keys()) <= 2
        assert store.arena.used - used == after.memory() - (
            len(pages.keys() & new_pages.keys()) * 512 + len(directories.keys() & new_directories.keys()) * 512
        )
        del after
        store.arena.collect()
        assert store.arena.used == used


def test_one_batch_of_everything() -> None:
    """A batch much larger than the version, before, between and behind its rows, and one that erases it all."""
    store = Store(Arena(), 1, 1, page_rows=4, dir_rows=4)
    n = 3000 if JIT else 150
    version = store.build([np.arange(0, n, 7), np.zeros(len(range(0, n, 7)), np.int64)])
    everything, _ = version.update(np.stack([np.arange(-n, 2 * n), np.ones(3 * n, np.int64)]), np.ones(3 * n, np.int8))
    everything.check()
    assert everything.columns()[0].tolist() == list(range(-n, 2 * n))
    assert set(everything.columns()[1].tolist()) == {1}
    nothing, changes = everything.update(everything.columns()[:, ::-1], np.full(3 * n, -1, np.int8))
    nothing.check()
    assert len(nothing) == 0
    assert set(changes.verdicts.tolist()) == {2}
    check_arena(store.arena, [version, everything, nothing])


def test_the_last_change_to_a_key_wins() -> None:
    store = Store(Arena(), 1, 1)
    version = store.build([np.array([1, 2]), np.array([10, 20])])
    batch = np.array([[1, 2, 3, 1, 2, 3, 4], [11, 0, 33, 12, 22, 0, 44]])
    after, changes = version.update(batch, np.array([1, -1, 1, 1, 1, -1, 1]))
    assert list(after.rows()) == [(1, 12), (2, 22), (4, 44)]
    assert changes.batch[0].tolist() == [1, 2, 3, 4]
    assert changes.verdicts.tolist() == [3, 3, 0, 1]
    same, _ = after.update(np.array([[1, 9], [12, 0]]), np.array([1, -1]))
    assert same is after


def test_an_empty_batch_is_the_same_version() -> None:
    version = Store(Arena(), 1).build([np.arange(3)])
    after, changes = version.update(np.empty((1, 0), np.int64), np.empty(0, np.int8))
    assert after is version
    assert changes.verdicts.size == 0


@pytest.mark.parametrize("left", [1, 4, 8, 9])
@pytest.mark.parametrize("fan", [4, 8])
def test_thinned_directory_pages_take_in_the_next(fan: int, left: int) -> None:
    """Erasing all but a few rows of one directory page must not leave a page that is less than half full."""
    store = Store(Arena(), 1, page_rows=4, dir_rows=fan)
    version = inserted_one_by_one(store.empty(), np.arange(6 * fan * 4))
    assert len(pages_of(version)[0]) == 6
    for d in range(6):
        gone = np.arange(d * fan * 4 + left, (d + 1) * fan * 4)
        after, _ = version.update(gone[None], np.full(len(gone), -1, np.int8))
        after.check()
        assert after.columns()[0].tolist() == sorted(set(range(6 * fan * 4)) - set(gone.tolist()))
        check_arena(store.arena, [version, after])


def test_an_update_that_is_stopped_before_it_begins_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an update writes in is kept for the next: it must not take what the last one made for its own."""
    arena = Arena()
    before = Store(arena, 1, page_rows=4, dir_rows=2).build([np.arange(20)])
    after, _ = before.update(np.array([[100]]), ONE)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(update, "update_packed", stop)
        with pytest.raises(KeyboardInterrupt):
            after.update(np.array([[200]]), ONE)
    arena.collect()
    check_arena(arena, [before, after])
    assert after.columns()[0].tolist() == [*range(20), 100]


def test_an_update_that_is_stopped_anywhere_leaves_no_pages() -> None:
    """Between the kernel and the version of what it made, nobody had these pages."""
    arena = Arena()
    before, at, interrupted = Store(arena, 1, page_rows=4, dir_rows=2).build([np.arange(20)]), 0, True
    before.update(np.array([[100]]), ONE)  # what it writes in is made once
    while interrupted:
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at, (versions.__file__,)) as interrupt:
            after, _ = before.update(np.array([[100]]), ONE)
        interrupted, at = interrupt.done, at + 1
        if interrupted:
            check_arena(arena, [before])
    assert at > 10
    assert after.columns()[0].tolist() == [*range(20), 100]
    check_arena(arena, [before, after])
