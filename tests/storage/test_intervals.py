"""Interval trees: stabbing queries against a plain list, through any history, and what they cost by count."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scantree.check import check_arena
from scantree.intervals import DONE, FULL, IntervalTree, interval_store, stab
from scantree.layout import ROOM
from scantree.memory import Arena
from scantree.scan import Monoid, Scan
from scantree.version import Store
from tests.storage.test_model import MAX, MIN, as_rows

Row = tuple[int, ...]


def holding(rows: list[Row], prefix: Row, key: int) -> list[Row]:
    """The rows under `prefix` that hold `key`, in order."""
    k = len(prefix)
    return sorted(row for row in rows if row[:k] == prefix and row[k] <= key <= row[k + 1])


def listed(found: npt.NDArray[np.int64]) -> list[Row]:
    return [tuple(row) for row in found.T.tolist()]


def tree_of(
    rows: list[Row], *, prefix: int = 0, payload: int = 0, page_rows: int = 2, dir_rows: int = 2
) -> IntervalTree:
    store = interval_store(Arena(), prefix, payload, page_rows=page_rows, dir_rows=dir_rows)
    return IntervalTree(store.build(list(as_rows(rows, prefix + 2 + payload))))


# -- examples ---------------------------------------------------------------------------------------------------------


def test_the_papers_question_which_intervals_contain_10() -> None:
    """Section 3.2 and Figure 2: a handful of integer intervals, "What intervals contain 10?"."""
    intervals = [(1, 3), (2, 10), (3, 6), (5, 20), (7, 9), (8, 11), (10, 10), (10, 15), (11, 12), (14, 30)]
    tree = tree_of(intervals)
    tree.check()
    assert listed(tree.stab((), 10)) == [(2, 10), (5, 20), (8, 11), (10, 10), (10, 15)]
    after, _ = tree.update(np.array([[5, 9], [20, 13]]), np.array([-1, 1], np.int8))
    after.check()
    assert listed(after.stab((), 10)) == [(2, 10), (8, 11), (9, 13), (10, 10), (10, 15)]
    assert listed(tree.stab((), 10)) == [(2, 10), (5, 20), (8, 11), (10, 10), (10, 15)]


def test_ends_of_the_keys() -> None:
    rows = [(MIN, MIN), (MIN, 0), (MIN, MAX), (0, 0), (0, MAX), (1, -1), (MAX, MAX), (MAX, MIN)]
    tree = tree_of(rows)
    for key in (MIN, MIN + 1, -1, 0, 1, MAX - 1, MAX):
        assert listed(tree.stab((), key)) == holding(rows, (), key)


def test_ends_of_the_prefixes() -> None:
    """A max-scan at the edge of a prefix also covers its neighbours, whose ends reach everything."""
    far = [(p, i, MAX) for p in (MIN, -1, 1, MAX) for i in range(5)]
    near = [(0, i, i) for i in range(9)]
    tree = tree_of(far + near, prefix=1)
    for prefix in (MIN, MIN + 1, -2, -1, 0, 1, 2, MAX - 1, MAX):
        for key in (MIN, -1, 0, 3, 4, 8, 9, MAX):
            assert listed(tree.stab((prefix,), key)) == holding(far + near, (prefix,), key)


def test_a_prefix_that_starts_within_a_directory_page_which_falls_short() -> None:
    """The descent leaves such a page for one whose entries it must read from the first on."""
    for before in range(10):
        for reaching in range(24):
            rows = [(0, i, i) for i in range(before)] + [(1, i, MAX if i == reaching else i) for i in range(24)]
            tree = tree_of(rows, prefix=1, page_rows=4, dir_rows=4)  # three of four filled by a build
            assert listed(tree.stab((1,), 100)) == [(1, reaching, MAX)]


def test_nothing() -> None:
    empty = IntervalTree(interval_store(Arena(), 1, 1, page_rows=2, dir_rows=2).empty())
    empty.check()
    assert len(empty) == 0
    assert empty.stab((3,), 4).shape == (4, 0)
    assert empty.memory() > 0
    same, _ = empty.update(np.array([[1], [2], [3], [4]]), np.array([-1], np.int8))
    assert same is empty


def test_values_are_carried_along() -> None:
    store = interval_store(Arena(), values=1, page_rows=2, dir_rows=2)
    tree = IntervalTree(store.build([np.array([1, 2, 3]), np.array([5, 2, 9]), np.array([70, 80, 90])]))
    assert listed(tree.stab((), 4)) == [(1, 5, 70), (3, 9, 90)]
    after, _ = tree.update(np.array([[1], [5], [71]]), np.array([1], np.int8))
    assert listed(after.stab((), 4)) == [(1, 5, 71), (3, 9, 90)]


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^a prefix of 2 keys expected, got 1$"):
        tree_of([], prefix=2).stab((1,), 0)
    text = "an interval tree needs a version of a store made by interval_store(...)"
    for scan in (None, Scan(Monoid.MIN, 1), Scan(Monoid.MAX, 0), Scan(Monoid.MAX, 2)):
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            IntervalTree(Store(Arena(), 2, 1, scan=scan).empty())


# -- any intervals ----------------------------------------------------------------------------------------------------

keys = st.integers(0, 12) | st.sampled_from([MIN, MAX])


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), keys, keys, st.integers(0, 1)), max_size=80),
    page_rows=st.sampled_from([2, 4]),
    size=st.integers(1, 4),
    prefix=st.integers(0, 2),
    key=keys,
)
def test_any_buffer_is_resumed(rows: list[Row], page_rows: int, size: int, prefix: int, key: int) -> None:
    tree = tree_of(rows, prefix=1, payload=1, page_rows=page_rows)
    expected = holding(list(set(rows)), (prefix,), key)
    assert listed(tree.stab((prefix,), key)) == expected
    store = tree.version.store
    state, looked, got = np.zeros(3, np.int64), np.zeros(2, np.int64), []
    asked, status = np.array([prefix, key], np.int64), FULL
    while status == FULL:
        out = np.empty((4, size), np.int64)
        n, status = stab(store.arena.space.mem, tree.version.root, store.shape, asked, state, out, looked)
        assert status == DONE or n == size
        got += listed(out[:, :n])
    assert got == expected
    again = stab(store.arena.space.mem, tree.version.root, store.shape, asked, state, out, looked)
    assert again == (0, DONE)


class IntervalMachine(RuleBasedStateMachine):
    """Kept trees, each beside its set of rows."""

    kept: list[tuple[IntervalTree, frozenset[Row]]]

    @initialize(
        prefix=st.integers(0, 2),
        payload=st.integers(0, 1),
        page_rows=st.sampled_from([2, 4]),
        dir_rows=st.sampled_from([2, 4]),
        domain=st.sampled_from([4, 12, 200]),
    )
    def found(self, prefix: int, payload: int, page_rows: int, dir_rows: int, domain: int) -> None:
        self.prefix, self.payload, self.domain = prefix, payload, domain
        self.store = interval_store(Arena(), prefix, payload, page_rows=page_rows, dir_rows=dir_rows)
        self.kept = [(IntervalTree(self.store.empty()), frozenset())]

    def some_rows(self, seed: int, n: int) -> list[Row]:
        rng = np.random.default_rng(seed)
        start = rng.integers(0, self.domain, size=(n, 1))
        end = np.where(rng.random((n, 1)) < 0.05, MAX, start + rng.geometric(0.2, size=(n, 1)) - 1)
        parts = [rng.integers(0, 3, size=(n, self.prefix)), start, end, rng.integers(0, 2, size=(n, self.payload))]
        return [tuple(row) for row in np.hstack(parts).tolist()]

    def keep(self, tree: IntervalTree, rows: frozenset[Row]) -> None:
        self.kept = [*self.kept[-4:], (tree, rows)]

    @rule(seed=st.integers(0, 2**32), n=st.integers(0, 150))
    def build(self, seed: int, n: int) -> None:
        rows = self.some_rows(seed, n)
        self.keep(IntervalTree(self.store.build(list(as_rows(rows, self.store.shape.cols)))), frozenset(rows))

    @rule(which=st.integers(0, 4), seed=st.integers(0, 2**32), n=st.integers(1, 60), share=st.floats(0, 1))
    def change(self, which: int, seed: int, n: int, share: float) -> None:
        """New rows come, and a share of the old ones goes."""
        tree, rows = self.kept[which % len(self.kept)]
        rng = np.random.default_rng(seed)
        gone = [row for row in sorted(rows) if rng.random() < share]
        new = [row for row in self.some_rows(seed, n) if row not in gone]
        batch = as_rows(gone + new, self.store.shape.cols)
        after, _ = tree.update(batch, np.array([-1] * len(gone) + [1] * len(new), np.int8))
        self.keep(after, (rows - frozenset(gone)) | frozenset(new))

    @precondition(lambda self: len(self.kept) > 1)
    @rule(which=st.integers(0, 4))
    def drop(self, which: int) -> None:
        self.kept.pop(which % len(self.kept))

    @rule(data=st.data(), which=st.integers(0, 4))
    def ask(self, data: st.DataObject, which: int) -> None:
        tree, rows = self.kept[which % len(self.kept)]
        prefix = data.draw(st.tuples(*[st.integers(0, 3)] * self.prefix))
        key = data.draw(st.integers(-1, self.domain + 20) | st.just(MAX))
        assert listed(tree.stab(prefix, key)) == holding(list(rows), prefix, key)

    @invariant()
    def holds(self) -> None:
        for tree, rows in getattr(self, "kept", []):
            tree.check()
            assert len(tree) == len(rows)
        if hasattr(self, "kept"):
            check_arena(self.store.arena, list({id(tree.version): tree.version for tree, _ in self.kept}.values()))


TestIntervals: Any = IntervalMachine.TestCase
TestIntervals.settings = settings(stateful_step_count=20)


# -- what it costs ----------------------------------------------------------------------------------------------------


def cost(tree: IntervalTree, prefix: Row, key: int) -> tuple[int, int, int]:
    """(matches, entries, rows) of a stabbing query."""
    looked = np.zeros(2, np.int64)
    matches = tree.stab(prefix, key, looked).shape[1]
    return matches, int(looked[0]), int(looked[1])


def hold_to_the_law(tree: IntervalTree, prefix: Row, key: int) -> int:
    """Entries and rows within the bounds that intervals.py states; returns the matches."""
    matches, entries, rows = cost(tree, prefix, key)
    shape, mem = tree.version.store.shape, tree.version.store.arena.space.mem
    nodes = 3 * math.ceil(math.log2(int(mem[tree.version.root + ROOM]))) + 2
    assert rows <= (matches + 2) << shape.page_bits
    assert entries <= (matches + 2 << shape.dir_bits) + (matches + 3) * nodes
    return matches


@pytest.mark.parametrize("n", [50, 500, 3000])
@pytest.mark.parametrize("length", [1, 10, 1000])
def test_cost_is_logarithmic_plus_matches(n: int, length: int) -> None:
    rng = np.random.default_rng(n + length)
    start = rng.integers(0, 5 * n, size=n)
    rows = np.stack([rng.integers(0, 2, size=n), start, start + rng.integers(0, length, size=n), np.arange(n)])
    tree = tree_of(listed(rows), prefix=1, payload=1, page_rows=4, dir_rows=4)
    matched = [hold_to_the_law(tree, (p,), key) for p in (0, 1, 2) for key in rng.integers(0, 5 * n, size=20).tolist()]
    assert length == 1 or sum(matched) > 0


@pytest.mark.parametrize("n", [100, 1000, 4000])
def test_one_match_among_many_costs_a_path(n: int) -> None:
    """Every interval starts before the key and a single one, wherever it lies, reaches it."""
    short = [(i, i) for i in range(n)]
    for long in (0, n // 3, n - 1):
        tree = tree_of([*short[:long], (long, MAX), *short[long + 1 :]])
        assert hold_to_the_law(tree, (), 2 * n) == 1
        assert sum(cost(tree, (), 2 * n)[1:]) <= 10 * math.log2(n) + 20


def test_no_match_among_many_costs_a_path() -> None:
    for n in (100, 1000, 4000):
        tree = tree_of([(i, i) for i in range(n)])
        matches, entries, rows = cost(tree, (), 2 * n)
        assert (matches, rows) == (0, 0)
        assert entries <= 3 * math.log2(n) + 2


def test_the_scans_of_other_prefixes_cost_nothing() -> None:
    """Under prefix 0 nothing reaches the key, under its neighbours everything does."""
    rows = [(p, i, MAX if p else i) for p in (-1, 0, 1) for i in range(1000)]
    tree = tree_of(rows, prefix=1)
    assert hold_to_the_law(tree, (0,), 5000) == 0
