"""Scans: folds of any run of rows against Python's own, through any history, and what they cost by count."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import rule

from scantree.check import check_arena
from scantree.layout import DIRS, HEADER, ROOM
from scantree.memory import Arena
from scantree.scan import Monoid, Scan
from scantree.version import Store, Version
from tests.storage import test_model
from tests.storage.test_model import KEPT, MAX, MIN, StoreMachine

Row = tuple[int, ...]


def folded(scan: Scan, rows: list[Row]) -> int:
    """The fold of whole rows, in Python's unbounded integers."""
    if scan.monoid == Monoid.COUNT:
        return len(rows)
    column = [row[scan.column] for row in rows]
    if scan.monoid == Monoid.SUM:
        return sum(column)
    return min(column, default=MAX) if scan.monoid == Monoid.MIN else max(column, default=MIN)


def expect(version: Version, lo: int | None, hi: int | None, rows: list[Row]) -> None:
    """`version.scan(lo, hi)` is the fold of `rows`, or is refused because it does not fit."""
    assert version.store.scan is not None
    value = folded(version.store.scan, rows)
    if MIN <= value <= MAX:
        assert version.scan(lo, hi) == value
    else:
        with pytest.raises(OverflowError):
            version.scan(lo, hi)


# -- any history ------------------------------------------------------------------------------------------------------


class ScanMachine(StoreMachine):
    """The random life of test_model.py for stores with a scan, whose versions `check` compares after every step."""

    def some_scan(self, choice: int) -> Scan:
        cols = self.keys + self.values
        return Scan(Monoid(choice % 4 + 1), choice // 4 % cols) if cols else Scan(Monoid.COUNT)

    @rule(data=st.data(), which=st.integers(0, KEPT))
    def scan(self, data: st.DataObject, which: int) -> None:
        version, model = self.pick(which)
        rows = [key + values for key, values in model.items()]
        expect(version, None, None, rows)
        for row in self.some_rows(data, 2):
            prefix = row[: data.draw(st.integers(0, self.keys))]
            past = version.seek_past(prefix)
            assert version.count(0, past) == sum(key[: len(prefix)] <= prefix for key in model)
            assert version.store.scan is not None
            assert version.exact_scan(past, version.end()) == folded(version.store.scan, rows[version.count(0, past) :])
        asked = sorted(row[: data.draw(st.integers(0, self.keys))] for row in self.some_rows(data, 6))
        ranks = [(version.seek(row), model.bisect_left(row)) for row in asked]
        ranks.sort()
        for (lo, first), (hi, last) in pairwise(ranks):
            expect(version, lo, hi, rows[first:last])
            assert version.count(lo, hi) == last - first
            if lo < hi:
                expect(version, hi, lo, [])


TestScan: Any = ScanMachine.TestCase
TestScan.settings = test_model.TestStore.settings


@given(
    monoid=st.sampled_from(Monoid),
    values=st.lists(st.integers(MIN, MAX) | st.integers(-3, 3), max_size=60),
    page_rows=st.sampled_from([2, 4]),
)
def test_every_run(monoid: Monoid, values: list[int], page_rows: int) -> None:
    store = Store(Arena(), 1, 1, page_rows=page_rows, dir_rows=2, scan=Scan(monoid, 1))
    version = store.build([np.arange(len(values)), np.array(values, np.int64)])
    version.check()
    rows = list(version.rows())
    at = [version.seek((i,)) for i in range(len(values) + 1)]
    step = 1 if len(values) < 20 else 7
    for i in range(0, len(at), step):
        for j in range(len(at)):
            expect(version, at[i], at[j], rows[i:j])


# -- the paper's examples ---------------------------------------------------------------------------------------------

SALES = [(1, 1, 5), (1, 2, 8), (1, 3, 3), (2, 1, 7), (2, 2, 12), (2, 3, 9), (2, 4, 1), (3, 1, 20), (3, 2, 4), (4, 1, 6)]


def test_greatest_sales_of_a_region() -> None:
    """Section 3.1: the maximum over the records of region 2 is a scan of one interval of keys, kept up to date."""
    store = Store(Arena(), 2, 1, page_rows=2, dir_rows=2, scan=Scan(Monoid.MAX, 2))
    version = store.build([np.array(column) for column in zip(*SALES, strict=True)])
    assert version.scan(version.seek((2,)), version.seek((3,))) == 12
    after, _ = version.update(np.array([[2], [2], [6]]), np.array([1], np.int8))
    assert after.scan(after.seek((2,)), after.seek((3,))) == 9
    assert version.scan(version.seek((2,)), version.seek((3,))) == 12
    check_arena(store.arena, [version, after])


# -- sums -------------------------------------------------------------------------------------------------------------


def sums(values: list[int]) -> Version:
    store = Store(Arena(), 1, 1, page_rows=2, dir_rows=2, scan=Scan(Monoid.SUM, 1))
    return store.build([np.arange(len(values)), np.array(values, np.int64)])


def test_partial_sums_may_leave_int64() -> None:
    """Every page of this version overflows; all together they do not."""
    version = sums([MAX, MAX, MAX, MAX, MIN, MIN, MIN, MIN, 4, 3])
    version.check()
    assert version.scan() == 3


@pytest.mark.parametrize(("values", "total"), [([MAX, 1, -1], MAX), ([MIN, -1, 1], MIN), ([MAX, MIN], -1), ([], 0)])
def test_sums_at_the_limits(values: list[int], total: int) -> None:
    assert sums(values).scan() == total


@pytest.mark.parametrize("values", [[MAX, 1], [MIN, -1], [MAX] * 20, [MIN] * 20])
def test_a_sum_that_does_not_fit_is_refused(values: list[int]) -> None:
    version = sums(values)
    version.check()
    with pytest.raises(OverflowError, match=r"^the sum of column 1 over these rows does not fit into 64 bits$"):
        version.scan()
    assert version.exact_scan(version.begin(), version.end()) == sum(values)


# -- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("monoid", Monoid)
@pytest.mark.parametrize("n", [10, 100, 1000, 3000])
def test_cost_is_logarithmic(monoid: Monoid, n: int) -> None:
    """At most the rows of two pages, the entries of two directory pages and two nodes per level of the root's tree."""
    page_rows, dir_rows = 4, 4
    store = Store(Arena(), 1, page_rows=page_rows, dir_rows=dir_rows, scan=Scan(monoid))
    version = store.build([np.arange(n)])
    dirs = int(store.arena.space.mem[version.root + DIRS])
    assert dirs > n // 20
    rng = np.random.default_rng(n)
    for _ in range(50):
        lo, hi = sorted(rng.integers(0, n + 1, size=2).tolist())
        looked = np.zeros(2, np.int64)
        value = version.scan(version.seek((lo,)), version.seek((hi,)), looked)
        assert value == folded(Scan(monoid), [(i,) for i in range(lo, hi)])
        assert looked[0] <= 2 * (dir_rows - 1) + 2 * math.ceil(math.log2(max(2, dirs)))
        assert looked[1] <= 2 * page_rows


def test_a_store_without_scan_pays_nothing() -> None:
    columns = [np.arange(5000), np.arange(5000)]
    plain = Store(Arena(), 1, 1, page_rows=8, dir_rows=8).build(columns)
    by_monoid = {m: Store(Arena(), 1, 1, page_rows=8, dir_rows=8, scan=Scan(m, 1)).build(columns) for m in Monoid}
    mem, room = plain.store.arena.space.mem, int(plain.store.arena.space.mem[plain.root + ROOM])
    assert plain.store._sizes(1, 1, room)[1:] == ((1, 3 * 8), (1, HEADER + 3 * room))
    assert mem[plain.root + DIRS] < room
    assert all(plain.memory() < version.memory() for version in by_monoid.values())


# -- what is refused, and what the check sees -------------------------------------------------------------------------


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^a scan folds one of the columns 0 to 2; got 3$"):
        Store(Arena(), 2, 1, scan=Scan(Monoid.MAX, 3))
    Store(Arena(), 0, scan=Scan(Monoid.COUNT))
    with pytest.raises(ValueError, match=r"^a row to seek has at most 1 keys, got 2$"):
        Store(Arena(), 1).empty().seek_past((1, 2))
    text = "this store keeps no scan; make it with Store(..., scan=Scan(monoid, column))"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Store(Arena(), 1).empty().scan()
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Store(Arena(), 1).empty().exact_scan(0, 0)


@pytest.mark.parametrize("monoid", Monoid)
def test_check_sees_a_wrong_fold(monoid: Monoid) -> None:
    version = Store(Arena(), 1, 1, page_rows=4, dir_rows=4, scan=Scan(monoid, 1)).build([np.arange(60), np.arange(60)])
    version.check()
    mem, root, shape = version.store.arena.space.mem, version.root, version.store.shape
    directory, room = int(mem[root + HEADER]), int(mem[root + ROOM])
    inner = root + HEADER + (3 + shape.folds) * room + 1
    leaf = root + HEADER + 3 * room + 1
    for at, text in (
        (directory + 3 * 4 + 1, r"page 0\.1 folds to"),
        (leaf, rf"node {room + 1} of the root folds to"),
        (inner, "node 1 of the root folds to"),
    ):
        mem[at] += 1
        with pytest.raises(AssertionError, match=f"^{text}"):
            version.check()
        mem[at] -= 1
    if monoid == Monoid.SUM:
        mem[directory + 4 * 4] += 1 << 32
        mem[directory + 3 * 4] -= 1
        with pytest.raises(AssertionError, match=r"^the low part \d+ of a sum is not below 2\^32"):
            version.check()


@pytest.mark.jit_only
def test_stores_with_and_without_scan_share_compiled_kernels() -> None:
    from scantree import scan, update

    for kept in (None, Scan(Monoid.MAX), Scan(Monoid.SUM, 1)):
        version = Store(Arena(), 1, 1, scan=kept).build([np.arange(9), np.arange(9)])
        version, _ = version.update(np.array([[3], [7]]), np.array([1], np.int8))
        if kept is not None:
            version.scan(version.seek((2,)), version.seek((5,)))
    kernels: list[Any] = [update.update_packed, scan.fold_range, scan.fold_version]
    assert [len(kernel.signatures) for kernel in kernels] == [1, 1, 1]
