"""Lagging: changes that wait are made when somebody reads, where nobody else holds the version before in its pages.

Catches: a version that somebody holds and that is written to; changes that are lost, or made twice, where a reader is
interrupted or has no memory; a length that is not that of the rows; two readers that both make the changes.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import amend
from scantree.check import check_arena
from scantree.lagging import LaggingVersion, update_later
from scantree.memory import Arena, ArenaFullError
from scantree.version import Store, Version
from tests.conftest import examples

Rows = npt.NDArray[np.int64]
Model = set[tuple[int, ...]]


def held(version: Version) -> Model:
    return set(map(tuple, version.columns().T.tolist()))


def later(version: Version, gone: Model, come: Model) -> Version:
    """The version without the rows of `gone`, which it has, and with those of `come`, which it has not."""
    rows = [*gone, *come]
    ops = np.array([-1] * len(gone) + [1] * len(come), np.int8)
    batch = np.array(rows, np.int64).reshape(len(rows), version.store.shape.cols).T.copy()
    following, done = update_later(version, batch, ops)
    told = zip(map(tuple, done.batch.T.tolist()), done.verdicts.tolist(), strict=True)
    assert sorted(told) == sorted([(row, 2) for row in gone] + [(row, 1) for row in come])
    return following


@given(st.data(), st.integers(1, 3), st.sampled_from([2, 4, 8]), st.sampled_from([2, 4]))
@examples(150, 15)
def test_lagging_equals_updated(data: st.DataObject, keys: int, page_rows: int, dir_rows: int) -> None:
    """Changes one after the other, some read at once and some not; some of the versions are kept by somebody else."""
    store = Store(Arena(), keys, page_rows=page_rows, dir_rows=dir_rows)
    row = st.tuples(*[st.integers(0, 40 if keys == 1 else 4)] * keys)
    version, model = store.empty(), Model()
    kept: list[tuple[Version, Model]] = []
    for _ in range(data.draw(st.integers(1, 8))):
        named = data.draw(st.sets(row, max_size=25))
        version = later(version, named & model, named - model)
        model = model ^ named
        assert len(version) == len(model)
        if data.draw(st.booleans()):
            assert held(version) == model
            version.check()
        if data.draw(st.booleans()):
            kept.append((version, model))
        for other, was in kept:
            assert len(other) == len(was)
            if data.draw(st.booleans()):
                assert held(other) == was
    assert held(version) == model
    assert all(held(other) == was for other, was in kept)
    version.check()
    check_arena(store.arena, list({id(v): v for v in (version, *(other for other, _ in kept))}.values()))


def rows_of(n: int) -> Model:
    return {(i, i * 7 % 10) for i in range(n)}


def built(n: int = 1_000) -> tuple[Version, Model]:
    """A version of two columns, in pages of eight rows, and its rows."""
    model = rows_of(n)
    store = Store(Arena(), 2, page_rows=8, dir_rows=4)
    return store.build(list(np.array(sorted(model)).T)), model


def replaced(model: Model) -> tuple[Model, Model]:
    """(rows of many pages, and as many that are to come in their place)."""
    gone = {row for row in model if row[0] % 10 == 3}
    return gone, {(a, b + 1) for a, b in gone}


def test_pages_that_nobody_else_has_are_written_to() -> None:
    version, model = built()
    (gone, come), root, used = replaced(model), version.root, version.store.arena.used
    version = later(version, gone, come)
    assert held(version) == model - gone | come
    version.store.arena.collect()
    assert (version.root, version.store.arena.used) == (root, used)


def test_a_version_that_somebody_holds_stays_as_it_is() -> None:
    before, model = built()
    gone, come = replaced(model)
    version = later(before, gone, come)
    assert held(version) == model - gone | come
    assert held(before) == model
    check_arena(before.store.arena, [before, version])


@pytest.mark.parametrize("held_before", [False, True])
@pytest.mark.parametrize(("owner", "name"), [(amend, "amend_pages"), (Version, "update")])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_reader_leaves_the_rows_to_the_next(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool, held_before: bool
) -> None:
    """Also where the changes were made in place, and where some were left for `update`: pages that run over."""
    version, model = built()
    before = version if held_before else None
    gone, _ = replaced(model)
    come = {(a, -b) for a in range(0, 1_000, 50) for b in range(1, 12)}
    version = later(version, gone, come)
    assert isinstance(version, LaggingVersion)
    function: Callable[..., Any] = getattr(owner, name)

    def interrupted(*args: Any, **options: Any) -> Any:
        if after:
            function(*args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        if name == "amend_pages" and held_before:
            version.settle()  # it is not asked for
        else:
            with pytest.raises(KeyboardInterrupt):
                version.settle()
    assert held(version) == model - gone | come
    if before is not None:
        assert held(before) == model
    version.check()
    version.store.arena.collect()
    check_arena(version.store.arena, [version] if before is None else [before, version])


def test_memory_is_looked_for_when_changes_begin_to_wait() -> None:
    version, model = built()
    gone, come = replaced(model)
    arena = version.store.arena
    arena.limit = arena.used
    with pytest.raises(ArenaFullError):
        later(version, gone, come)
    assert held(version) == model
    arena.limit = None
    following = later(version, gone, come)
    arena.limit = arena.used
    with pytest.raises(ArenaFullError):
        len(following.columns())  # somebody holds the version before
    assert held(version) == model
    arena.limit = None
    assert held(following) == model - gone | come


def test_several_threads_read_what_lags() -> None:
    for _ in range(20):
        version, model = built()
        gone, come = replaced(model)
        version, barrier, found = later(version, gone, come), Barrier(3), []

        def read(version: Version = version, barrier: Barrier = barrier, found: list[Model] = found) -> None:
            barrier.wait()
            found.append(held(version))

        threads = [Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [model - gone | come] * 3
