"""Many readers, one writer, and finalizers that run wherever the garbage collector happens to be."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numba
import numpy as np

from scantree.check import check_arena
from scantree.memory import Arena
from scantree.version import Store, Version

JIT = not numba.config.DISABLE_JIT
ROUNDS = 400 if JIT else 15


def in_threads(*bodies: Callable[[threading.Event], None]) -> tuple[Callable[[], None], list[BaseException]]:
    """Start `bodies`, which run until the event is set; returns what stops and joins them, and what they raised."""
    stop = threading.Event()
    raised: list[BaseException] = []

    def guarded(body: Callable[[threading.Event], None]) -> None:
        try:
            body(stop)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()

    def finish() -> None:
        stop.set()
        for thread in threads:
            thread.join()

    return finish, raised


def test_readers_see_complete_versions() -> None:
    """Version number i holds i in the value of every row and in its number of rows, so a mixture would show."""
    arena = Arena()
    store = Store(arena, 1, 1, page_rows=8, dir_rows=4)
    base = 200 if JIT else 20

    def rows(i: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        keys = np.arange(base + i)
        return np.stack([keys, np.full(len(keys), i)])

    current: list[Version] = [store.build(list(rows(0)))]
    reads = [0, 0, 0]

    def reader(slot: int) -> Callable[[threading.Event], None]:
        def read(stop: threading.Event) -> None:
            while not stop.is_set():
                version = current[0]
                seen = version.columns()
                i = int(seen[1, 0])
                assert np.array_equal(seen, rows(i))
                assert len(version) == base + i
                pos = version.seek([base // 2])
                assert version.row(pos) == (base // 2, i)
                assert version.count(pos) == base // 2 + i
                assert version.contains(np.array([[base + i - 1, base + i]])).tolist() == [True, False]
                newer = current[0]
                delta = version.delta(newer)
                j = int(newer.columns(limit=1)[1, 0])
                assert delta.inserted.shape[1] == j - i
                assert delta.changed.shape[1] == (base + i if j > i else 0)
                assert set(delta.before[0, delta.kinds == 0].tolist()) <= {i}
                reads[slot] += 1

        return read

    finish, raised = in_threads(*[reader(slot) for slot in range(3)])
    try:
        for i in range(1, ROUNDS):
            batch = rows(i)
            current[0], _ = current[0].update(batch, np.ones(batch.shape[1], np.int8))
            if raised:
                break
    finally:
        finish()
    assert raised == []
    assert min(reads) > 0
    current[0].check()
    check_arena(arena, current)


class Ring:
    """Keeps a version in a reference cycle: only the garbage collector can drop it."""

    def __init__(self, version: Version) -> None:
        self.version, self.me = version, self


def test_versions_collected_in_another_thread() -> None:
    arena = Arena()
    store = Store(arena, 2, page_rows=4, dir_rows=4)
    rng = np.random.default_rng(5)
    version = store.build([rng.integers(0, 50, 100), rng.integers(0, 50, 100)])
    model = set(version.rows())

    def collect(stop: threading.Event) -> None:
        while not stop.is_set():
            gc.collect(0)
            arena.collect()

    finish, raised = in_threads(collect, collect)
    try:
        for _ in range(ROUNDS):
            rows = rng.integers(0, 50, (2, 5))
            op = int(rng.choice([1, -1]))
            version, _ = version.update(rows, np.full(5, op, np.int8))
            Ring(version)
            for row in map(tuple, rows.T.tolist()):
                (model.add if op > 0 else model.discard)(row)
    finally:
        finish()
    assert raised == []
    assert set(version.rows()) == model
    version.check()
    gc.collect()
    check_arena(arena, [version])


def test_a_collection_in_the_middle_of_an_allocation() -> None:
    """A finalizer that runs while the writer holds the lock only queues what it frees."""
    arena = Arena()
    store = Store(arena, 1, page_rows=4, dir_rows=4)
    doomed, kept = store.build([np.arange(50)]), store.build([np.arange(20)])
    used = arena.used
    with arena.lock:
        size = doomed.memory()
        del doomed
        gc.collect()
        assert arena.used == used
    after, _ = kept.update(np.array([[30]]), np.ones(1, np.int8))
    assert arena.used < used
    del after
    arena.collect()
    assert arena.used == used - size


def test_writers_in_two_threads_take_turns() -> None:
    arena = Arena()
    ends: dict[int, Version] = {}

    def writer(number: int) -> Callable[[threading.Event], None]:
        def write(stop: threading.Event) -> None:
            version = Store(arena, 1, page_rows=4, dir_rows=4).empty()
            for i in range(ROUNDS):
                version, _ = version.update(np.array([[(i * 7) % 101 + number]]), np.ones(1, np.int8))
            ends[number] = version

        return write

    finish, raised = in_threads(writer(0), writer(1000))
    finish()
    assert raised == []
    for number, version in ends.items():
        version.check()
        assert version.columns()[0].tolist() == sorted({(i * 7) % 101 + number for i in range(ROUNDS)})
    check_arena(arena, list(ends.values()))
