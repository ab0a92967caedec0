"""The arena: what is dropped is used again, limits hold, and a failure leaves everything as it was."""

from __future__ import annotations

import contextlib
import gc
import itertools
import mmap
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scantree import buffers, memory, update, version
from scantree.check import check_arena
from scantree.memory import GRAIN, LARGE, LIMIT, TOP, Arena, ArenaFullError, Size
from scantree.scan import Monoid, Scan
from scantree.version import Store, Version
from tests.interrupt import Interrupt

SMALL = 1 << 20

# Kernels, whose types stand in their docstrings.
allocate: Any = memory.allocate
release: Any = memory.release
size_class: Any = memory.size_class
pages_wanted: Any = buffers.pages_wanted
grains_wanted: Any = update.grains_wanted


@pytest.fixture
def small_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arena, "RESERVE", SMALL)


def run_of(store: Store, start: int, n: int) -> Version:
    return store.build([np.arange(start, start + n)])


def test_an_arena_reserves_and_does_not_commit() -> None:
    """Far more than the machine has, where the system lets a process do so."""
    arena = Arena()
    assert arena.used == 0
    assert arena.space.heap[LIMIT] >= 1 << 17
    check_arena(arena, [])
    overcommit = Path("/proc/sys/vm/overcommit_memory")
    if not overcommit.exists() or overcommit.read_text().strip() == "2":
        pytest.skip("no overcommitted mappings here")
    assert arena.space.mem.nbytes == Arena.RESERVE
    assert min(1 << 40, 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) <= Arena.RESERVE


def test_versions_of_small_updates_wait_for_few_others() -> None:
    """A call of their own took as long as dropping two: several go together, and their pages are used again."""
    arena = Arena()
    version = run_of(Store(arena, 1, page_rows=8, dir_rows=8), 0, 500)
    tops = list[int]()
    for i in range(100):
        version, _ = version.update(np.array([[1_000 + i // 2]]), np.array([-1 if i % 2 else 1], np.int8))
        assert len(arena.gone) <= memory.TOGETHER
        tops.append(int(arena.space.heap[TOP]))
    assert tops[-1] == tops[3 * memory.TOGETHER]
    check_arena(arena, [version])


def test_a_large_update_has_the_pages_of_the_version_before_the_last() -> None:
    """They waited for others, and large updates went through memory that the system had to back first."""
    arena = Arena()
    current = run_of(Store(arena, 1, page_rows=8, dir_rows=16), 0, 4_000)
    used = []
    for i in range(24):
        rows = np.arange(i % 2, 4_000, 13)[None]
        current, _ = current.update(rows, np.full(rows.shape[1], -1 if i % 4 < 2 else 1, np.int8))
        used.append(arena.ever_used)
    assert used[-1] < 1.1 * used[0]


def test_dropped_versions_make_room_for_new_ones() -> None:
    arena = Arena()
    store = Store(arena, 2, page_rows=8, dir_rows=8)
    rng = np.random.default_rng(3)
    base = store.build([np.arange(300), np.arange(300)])
    after_first = 0
    for cycle in range(8):
        kept = [base]
        for _ in range(10):
            rows = rng.integers(0, 300, (2, 20))
            kept.append(kept[-1].update(rows, rng.choice(np.array([1, -1], np.int8), 20))[0])
        kept.append(store.build([rng.permutation(500), np.arange(500)]))
        check_arena(arena, list({id(version): version for version in kept}.values()))
        peak = int(arena.space.heap[TOP])
        del kept
        check_arena(arena, [base])
        assert arena.used == base.memory()
        assert cycle == 0 or peak <= after_first * 1.1
        after_first = after_first or peak
    del base
    check_arena(arena, [])
    assert arena.used == 0


def test_the_same_work_again_takes_no_new_memory() -> None:
    arena = Arena()
    store = Store(arena, 1, page_rows=4, dir_rows=4)
    tops = []
    for _ in range(5):
        version = run_of(store, 0, 400)
        for i in range(100):
            version, _ = version.update(np.array([[i * 4]]), np.full(1, -1, np.int8))
        del version
        arena.collect()
        assert arena.used == 0
        tops.append(int(arena.space.heap[TOP]))
    assert len(set(tops)) == 1


def test_a_version_dropped_before_its_descendants() -> None:
    arena = Arena()
    store = Store(arena, 1, page_rows=4, dir_rows=4)
    first = run_of(store, 0, 200)
    second, _ = first.update(np.array([[1000]]), np.ones(1, np.int8))
    third, _ = second.update(np.array([[50]]), np.full(1, -1, np.int8))
    del second
    check_arena(arena, [first, third])
    del first
    check_arena(arena, [third])
    assert arena.used == third.memory()
    assert third.columns()[0].tolist() == [i for i in range(200) if i != 50] + [1000]


def test_stores_of_all_shapes_share_an_arena() -> None:
    arena = Arena()
    versions = []
    for keys in range(4):
        for values in range(2):
            store = Store(arena, keys, values, page_rows=8, dir_rows=4)
            versions.append(store.build([np.arange(100)] * (keys + values), 100))
    check_arena(arena, versions)
    assert sum(version.memory() for version in versions) == arena.used
    del versions[::2]
    check_arena(arena, versions)


@pytest.mark.parametrize("change", ["build", "update"])
def test_a_full_arena_stays_as_it_was(change: str) -> None:
    arena = Arena(limit=200_000)
    store = Store(arena, 1, page_rows=8, dir_rows=8)
    version = run_of(store, 0, 500)
    rows, used, heap = list(version.rows()), arena.used, arena.space.heap.copy()
    steps: dict[str, Callable[[], Any]] = {
        "build": lambda: run_of(store, 0, 5_000),
        "update": lambda: version.update(np.arange(5_000)[None], np.ones(5_000, np.int8)),
    }
    with pytest.raises(ArenaFullError) as caught:
        steps[change]()
    assert isinstance(caught.value, MemoryError)
    assert caught.value.limit == 200_000
    assert caught.value.needed > caught.value.limit
    assert str(caught.value) == f"{caught.value.needed:,} bytes of pages needed, the limit is 200,000"
    assert (arena.used, list(version.rows())) == (used, rows)
    assert np.array_equal(arena.space.heap, heap)
    version.check()
    check_arena(arena, [version])
    # What fits is still possible, and so is everything once the limit is raised.
    after, _ = version.update(np.array([[7_000]]), np.ones(1, np.int8))
    arena.limit = None
    larger = steps[change]()
    check_arena(arena, [version, after, larger[0] if isinstance(larger, tuple) else larger])


def test_dropping_makes_room_under_a_limit() -> None:
    arena = Arena(limit=100_000)
    store = Store(arena, 1, page_rows=8, dir_rows=8)
    version: Version | None = run_of(store, 0, 500)
    with pytest.raises(ArenaFullError):
        run_of(store, 0, 800)
    del version
    check_arena(arena, [run_of(store, 0, 800)])


@pytest.mark.usefixtures("small_reservation")
def test_free_pages_serve_when_the_reservation_is_handed_out() -> None:
    """Once nothing was handed out again after the reservation had been used to its end, however much of it was free."""
    arena = Arena()
    store = Store(arena, 1, page_rows=8, dir_rows=8)
    versions: list[Version] = []

    def fill_up() -> None:
        while True:
            versions.append(run_of(store, len(versions), 50))

    with pytest.raises(ArenaFullError) as caught:
        fill_up()
    assert caught.value.limit == SMALL
    assert str(caught.value) == f"{caught.value.needed:,} bytes of pages needed, the limit is 1,048,576"
    check_arena(arena, versions)
    alive = len(versions)
    assert alive > 100
    top = int(arena.space.heap[TOP])
    del versions[::2]
    while len(versions) < alive:
        versions.append(run_of(store, len(versions), 50))
        check_arena(arena, versions)
    assert arena.space.heap[TOP] == top
    with pytest.raises(ArenaFullError):
        versions.append(run_of(store, 0, 100))
    check_arena(arena, versions)


@pytest.mark.usefixtures("small_reservation")
def test_a_free_page_is_promised_once() -> None:
    """Row and directory pages of one size class share a free list: what one takes the other does not get."""
    arena = Arena()
    grains = SMALL // 512 - 1
    each = 3 * GRAIN
    arena.room(grains * GRAIN - GRAIN)
    pages = [allocate(arena.space, each) for _ in range(grains // 3)]
    for page in pages[:10]:
        assert release(arena.space, page, each)
    arena.room(Size(5, each), Size(5, each - 1))
    with pytest.raises(ArenaFullError):
        arena.room(Size(10, each), Size(10, each - 1))
    with pytest.raises(ArenaFullError):
        arena.room(10 * each)


def test_a_refused_reservation_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = mmap.mmap, []

    def grant_a_gigabyte(fileno: int, length: int, **how: int) -> mmap.mmap:
        asked.append(length)
        if length > 1 << 30:
            raise OSError(12, "Cannot allocate memory")
        return real(fileno, length, **how)

    monkeypatch.setattr(mmap, "mmap", grant_a_gigabyte)
    monkeypatch.setattr(Arena, "RESERVE", 1 << 40)
    arena = Arena()
    assert asked[1:12] == [1 << bits for bits in range(40, 29, -1)]
    assert arena.space.mem.nbytes == 1 << 30
    store = Store(arena, 1)
    check_arena(arena, [run_of(store, 0, 5000)])
    with pytest.raises(ArenaFullError, match=r"the limit is 1,073,741,824$"):
        arena.room(1 << 30)


def test_counts_that_are_refused_bound_the_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """If only the reference counts get less than asked for, no page without a count is handed out."""
    real = mmap.mmap
    granted: list[int] = []

    def grant_less_and_less(fileno: int, length: int, **how: int) -> mmap.mmap:
        if granted and length > 1 << 30:
            raise OSError(12, "Cannot allocate memory")
        granted.append(length)
        return real(fileno, SMALL, **how)

    monkeypatch.setattr(mmap, "mmap", grant_less_and_less)
    monkeypatch.setattr(Arena, "RESERVE", 1 << 40)
    arena = Arena()
    assert granted == [1 << 40, 1 << 30]
    with pytest.raises(ArenaFullError, match=r"the limit is 137,438,953,472$"):
        arena.room(1 << 34)
    arena.room((1 << 34) - 10 * GRAIN)


def test_an_arena_goes_with_its_last_reference() -> None:
    """Queued drops once held their arena in a cycle: a hundred dead databases could use up the address space."""
    gc.collect()
    gc.disable()
    try:
        arena = Arena()
        version = run_of(Store(arena, 1), 0, 10)
        gone = weakref.ref(arena)
        del version
        assert arena.gone
        del arena
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("versions", "call"), [(1, 0), (memory.AT_ONCE + 1, 0), (memory.AT_ONCE + 1, 1)])
def test_an_interrupted_sweep_goes_on(versions: int, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had taken from the queue once waited for the next version that was dropped."""
    arena = Arena()
    store = Store(arena, 1)
    kept, gone = run_of(store, 0, 10), [run_of(store, i, i + 10) for i in range(versions)]
    drop_all, calls = memory.drop_all, list[int]()

    def stopped(*arguments: Any) -> None:
        calls.append(0)
        if len(calls) == call + 1:
            raise KeyboardInterrupt
        drop_all(*arguments)

    monkeypatch.setattr(memory, "drop_all", stopped)
    gone.clear()
    with pytest.raises(KeyboardInterrupt):
        arena.collect()
    check_arena(arena, [kept])


def test_an_interrupt_as_a_version_is_borrowed_leaves_the_pages_to_their_holder() -> None:
    """For a moment it had them for its own: Ctrl-C in `db.memory()` gave the records of a trace back, still in use."""
    arena = Arena()
    kept, at, interrupted = run_of(Store(arena, 1), 0, 10), 0, True
    while interrupted:
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at, (version.__file__,)) as interrupt:
            made = Version.borrowed(kept.store, kept.root)
        interrupted, at = interrupt.done, at + 1
        check_arena(arena, [kept])
    assert at > 1
    assert made.columns()[0].tolist() == list(range(10))


def test_hundreds_of_arenas_fit_into_a_process() -> None:
    """A terabyte for each once used up all addresses at the 128th, for whatever else wanted memory too."""
    if Arena.RESERVE > 1 << 38:
        pytest.skip("a machine of very much memory")
    arenas = [Arena() for _ in range(300)]
    assert {arena.space.mem.nbytes for arena in arenas} == {arenas[0].space.mem.nbytes}


def test_address_space_of_dead_arenas_is_collected_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first refusal may be for want of address space that arenas in reference cycles hold."""
    real, events = mmap.mmap, []

    def refuse_once(fileno: int, length: int, **how: int) -> mmap.mmap:
        events.append("asked")
        if len(events) == 1:
            raise OSError(12, "Cannot allocate memory")
        return real(fileno, SMALL, **how)

    monkeypatch.setattr(mmap, "mmap", refuse_once)
    monkeypatch.setattr(gc, "collect", lambda: events.append("collected"))
    assert Arena().space.heap[LIMIT] == Arena.RESERVE // 512
    assert events == ["asked", "collected", "asked", "asked"]


def test_no_reservation_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(_: int, length: int, **__: int) -> mmap.mmap:
        asked.append(length)
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        Arena()
    assert asked[-1] == 1 << 26


@pytest.mark.parametrize(
    "grains",
    [1, 2, 63, 64, LARGE - 1, LARGE, LARGE + 1, 2 * LARGE - 1, 2 * LARGE, 2 * LARGE + 1, 1 << 20, (1 << 20) + 1],
)
def test_sizes_are_counted_as_they_are_handed_out(grains: int) -> None:
    _, rounded = size_class(grains)
    assert Size(3, grains * GRAIN).grains == 3 * rounded >= 3 * grains
    assert Size(1, (grains - 1) * GRAIN + 1).grains == rounded
    assert rounded < 2 * grains


@pytest.mark.parametrize("scan", [None, Scan(Monoid.COUNT), Scan(Monoid.MAX, 0)])
@pytest.mark.parametrize(("keys", "values"), [(0, 0), (0, 1), (1, 0), (2, 1), (7, 9)])
def test_a_kernel_asks_for_what_is_asked_for_from_python(keys: int, values: int, scan: Scan | None) -> None:
    """A kernel counts the grains of an update by itself, so that most updates need not ask for room."""
    if scan is not None and scan.monoid != Monoid.COUNT and keys + values == 0:
        pytest.skip("no column to fold")
    store = Store(Arena(), keys, values, page_rows=8, dir_rows=4, scan=scan)
    for m, dirs, pages in itertools.product((1, 3, 100, 5_000), (0, 1, 40, 3_000), (0, 1, 60, 90_000)):
        rows, directories = pages_wanted(store.shape, m, dirs, pages)
        sizes = store._sizes(rows, directories, dirs + directories)
        assert grains_wanted(store.shape, m, dirs, pages) == sum(size.grains for size in sizes)


def test_kernels_hand_out_no_more_than_the_limit() -> None:
    """Where the limit is near the kernel leaves it to Python, which says so; and a limit that is lifted is none."""
    arena = Arena()
    version = run_of(Store(arena, 1), 0, 1_000)
    row, one = np.array([[5_000]]), np.ones(1, np.int8)
    arena.limit = arena.used + GRAIN * 8
    with pytest.raises(ArenaFullError):
        version.update(row, one)
    check_arena(arena, [version])
    arena.limit = None
    assert len(version.update(row, one)[0]) == 1_001


def test_pages_without_words_have_a_place_too() -> None:
    assert Size(2, 0).grains == 2


def test_large_roots_are_promised_whole() -> None:
    """Roots beyond LARGE grains are rounded up to a power of two; they once were counted without."""
    arena = Arena()
    store = Store(arena, 1, page_rows=2, dir_rows=2)
    n = 200_000
    sizes = store._sizes(n, n // 2, n // 2)
    assert sizes[2].grains == 1 << 13
    assert sizes[2].words == 8 + 3 * (1 << 17)


def test_large_pages_are_used_again() -> None:
    arena = Arena()
    words = (LARGE + 5) * GRAIN
    arena.room(Size(2, words))
    first = allocate(arena.space, words)
    assert arena.used == 2 * LARGE * 512
    assert release(arena.space, first, words)
    assert allocate(arena.space, words + 100) == first
    assert release(arena.space, first, words + 100)
    assert arena.used == 0
    check_arena(arena, [])
