"""Updates by several threads: rows and verdicts of one thread, invariants at the seams, no page lost.

Catches: a seam that leaves a page less than half full, a change at a fence that belongs to two parts or to none, pages
handed to a thread that do not come back, a failed update that leaves something behind.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given

from scantree import parts
from scantree.check import check_arena
from scantree.crew import Crew, Shift
from scantree.memory import Arena, ArenaFullError
from scantree.scan import Monoid, Scan
from scantree.version import Store, Version
from tests.conftest import FULL, examples
from tests.engine.programs import seeds
from tests.injected import fails_at

SCANS = (None, None, Scan(Monoid.SUM, 0), Scan(Monoid.COUNT, 0), Scan(Monoid.MAX, 0))


def store_of(rng: Random, arena: Arena, keys: int, values: int, scan: Scan | None, sizes: tuple[int, int]) -> Store:
    return Store(arena, keys, values, page_rows=sizes[0], dir_rows=sizes[1], scan=scan)


@examples(150, 10)
@given(seeds)
def test_histories_are_those_of_one_thread(rng: Random) -> None:
    keys, values, scan = rng.choice((1, 2)), rng.choice((0, 1)), rng.choice(SCANS)
    sizes = rng.choice((2, 4)), rng.choice((2, 4))
    domain = rng.choice((10, 40, 200)) if keys == 1 else rng.choice((4, 8, 16))
    alone, together = Arena(), Arena()
    together.crew = Crew(rng.choice((2, 3, 5)))
    least, parts.LEAST = parts.LEAST, 1
    try:
        one, many = (store_of(rng, arena, keys, values, scan, sizes).empty() for arena in (alone, together))
        kept = [many]
        for _ in range(10 if FULL else 5):
            m, erases = rng.choice((1, 3, 10, 40, 150)), rng.choice((0.1, 0.3, 0.8, 1.0))
            rows = [[rng.randrange(domain) for _ in range(keys)] + [rng.randrange(3)] * values for _ in range(m)]
            batch = np.array(rows, np.int64).T.reshape(keys + values, m)
            ops = np.array([-1 if rng.random() < erases else 1 for _ in range(m)], np.int8)
            before = many
            one, expected = one.update(batch, ops)
            many, done = many.update(batch, ops)
            assert np.array_equal(done.batch, expected.batch)
            assert np.array_equal(done.verdicts, expected.verdicts)
            assert np.array_equal(many.columns(), one.columns())
            assert (many is before) == (not done.verdicts.any())
            many.check()
            kept = [*kept, many] if many is not before and rng.random() < 0.7 else [many]
            del before
            check_arena(together, kept)
    finally:
        parts.LEAST = least


def full(rows: int, limit: int | None = None) -> Version:
    arena = Arena(limit)
    arena.crew = Crew(2)
    return Store(arena, 1, page_rows=4, dir_rows=4).build([np.arange(0, 2 * rows, 2)])


BATCH, OPS = np.arange(1, 401, 4)[None], np.ones(100, np.int8)


def test_large_updates_are_made_in_parts(forced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    version = full(200)
    taken: list[int] = []
    taking = parts.take_in
    monkeypatch.setattr(parts, "take_in", lambda *args: (taken.append(1), taking(*args)))
    after, _ = version.update(BATCH, OPS)
    assert taken == [1]
    assert len(after) == 300


def test_where_memory_is_short_one_thread_makes_it(forced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    version = full(200)
    arena = version.store.arena
    fails_at(monkeypatch, arena, "room", 1, ArenaFullError(1, 1), after=False)
    after, _ = version.update(BATCH, OPS)
    assert len(after) == 300
    check_arena(arena, [version, after])


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", ["wait", "look"])
def test_an_update_that_is_stopped_leaves_nothing(
    forced: None, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    version = full(200)
    with monkeypatch.context() as patch:
        error = KeyboardInterrupt() if name == "wait" else MemoryError()
        fails_at(patch, Shift, name, number, error, after=False)
        try:
            after = version.update(BATCH, OPS)[0]
        except (KeyboardInterrupt, MemoryError):
            after = version
    version.check()
    check_arena(version.store.arena, [version] if after is version else [version, after])
    assert len(version.update(BATCH, OPS)[0]) == 300


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", ["give_back", "take_in", "finish"])
def test_an_update_that_fails_at_its_end_leaves_nothing(
    forced: None, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    version = full(200)
    # Kernels that call `finish` are compiled while it is one: by an update that changes rows, and the same again.
    full(200).update(BATCH, OPS)[0].update(BATCH, OPS)
    with monkeypatch.context() as patch:
        fails_at(patch, parts, name, 1, KeyboardInterrupt(), after=after)
        with pytest.raises(KeyboardInterrupt):
            version.update(BATCH, OPS)
    check_arena(version.store.arena, [version])
