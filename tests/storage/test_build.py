"""Bulk build: every way of sorting gives the same rows, and every way of filling gives pages that are full enough.

Catches: a packing of keys that loses bits or order at the ends of the int64 range; a duplicate that wins wrongly;
pages built less than half full.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import sort
from scantree.check import check_arena
from scantree.memory import Arena
from scantree.scan import Monoid, Scan
from scantree.sort import sort_chunks, sort_rows
from scantree.version import Store, Version

MIN, MAX = -(2**63), 2**63 - 1


def expected(columns: list[npt.NDArray[np.int64]], keys: int) -> list[list[int]]:
    """Rows in key order, the last of each key."""
    last = {tuple(row[:keys]): row for row in np.array(columns).T.tolist()}
    return [last[key] for key in sorted(last)]


def wide(seed: int, n: int, *bits: int) -> list[npt.NDArray[np.int64]]:
    """Columns of `n` values, each with both ends of its range, 2^`bits` wide and somewhere else in the int64 range."""
    rng = np.random.default_rng(seed)
    columns = []
    for width in bits:
        low = int(rng.integers(MIN, MAX - (1 << width) + 1, endpoint=True)) if width < 64 else MIN
        high = low + (1 << width) - 1
        column = rng.integers(low, high, size=n, endpoint=True)
        column[[0, 1]] = high, low
        columns.append(rng.permutation(column))
    return columns


PACKINGS = {
    "one full column": (64,),
    "two halves": (32, 32),
    "uneven, 64 in all": (1, 62, 1),
    "65 bits: does not fit": (33, 32),
    "two full columns": (64, 64),
    "constant beside a full one": (0, 64),
    "full beside a constant": (64, 0),
    "constants around": (0, 64, 0),
    "all constant": (0, 0),
    "full beside one bit": (64, 1),
    "one bit beside a full one": (1, 64),
    "narrow": (3, 2, 3),
}


@pytest.mark.parametrize("bits", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("values", [0, 1, 2])
@pytest.mark.parametrize("few", [2, 1 << 20])
def test_sort_at_the_edges_of_packing(
    bits: tuple[int, ...], values: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sort, "FEW", few)
    for seed in range(3):
        columns = wide(seed, 40, *bits, *[2] * values)
        rows = sort_rows(columns, len(bits))
        assert rows.T.tolist() == expected(columns, len(bits))
        assert rows.flags.c_contiguous


@pytest.mark.parametrize("seed", range(40))
def test_sorting_rows_that_are_too_wide_to_be_packed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of any width, some with few values: in order, equal rows as given, and told whether there are any."""
    monkeypatch.setattr(sort, "FEW", 2)
    monkeypatch.setattr(sort, "ENOUGH", 2 + seed % 9)  # bits from which on columns are not parted
    rng = np.random.default_rng(seed)
    columns = []
    for width in rng.integers(0, 64, rng.integers(1, 8)):
        most = min(1 << int(width), (1 << 63) - 1)
        values = rng.integers(-most, most, 60, endpoint=True)
        columns.append(values if rng.random() < 0.4 else rng.choice(values[:3], 60))
    keys = np.array(columns, np.int64)
    order, repeats = sort.sorting(keys)
    assert order.tolist() == np.lexsort(keys[::-1]).tolist()
    assert repeats == (len(set(map(tuple, keys.T.tolist()))) < 60)


@pytest.mark.parametrize("few", [2, 1 << 20])
def test_an_order_is_the_callers_to_keep(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sorted next does not touch it: it was in the memory in which a thread packs rows."""
    monkeypatch.setattr(sort, "FEW", few)
    keys = np.arange(100, dtype=np.int64)[None, ::-1].copy()
    order, _ = sort.sorting(keys)
    for rows in (keys[:, 1:], np.concatenate([keys, keys], axis=1)):
        sort.sorting(rows)
        sort.sort_rows(rows, 1)
        sort.permuted(rows, (0,))
        assert order.tolist() == list(range(100))[::-1]


@pytest.mark.parametrize("bits", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("cuts", [[], [0, 7], [300], [1, 1, 299, 350]])
@pytest.mark.parametrize("few", [2, 1 << 20])
def test_chunks_are_sorted_as_their_rows(
    bits: tuple[int, ...], cuts: list[int], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sort, "FEW", few)
    rows = np.array(wide(2, 400, *bits))
    rows[:, 200:] = rows[:, :200]
    known = expected(list(rows), len(bits))
    ordered = np.array(known, np.int64).T
    for columns in (rows, ordered, np.repeat(ordered, 2, axis=1), ordered[:, ::-1]):
        chunks = list(np.split(columns, cuts, axis=1))  # parts of an array, which are not contiguous
        chunks[0].flags.writeable = False
        assert sort_chunks(chunks).T.tolist() == known
        assert chunks == []
    alone = [np.ascontiguousarray(ordered)]
    assert sort_chunks([*alone]) is alone[0]


@pytest.mark.parametrize("few", [1, 1 << 20])
@pytest.mark.parametrize("most", [0, 3, 1 << 40])
def test_equal_rows_keep_their_order(few: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort, "FEW", few)
    rng = np.random.default_rng(most)
    for n in (1, 2, 3, 9, 100):
        keys = rng.integers(-most, most, (2, n), endpoint=True)
        order, repeats = sort.sorting(keys)
        assert order.tolist() == np.lexsort(keys[::-1]).tolist()
        assert repeats or len(set(zip(*keys.tolist(), strict=True))) == n
        if n < few:
            assert repeats == (len(set(zip(*keys.tolist(), strict=True))) < n)


@pytest.mark.parametrize("keys", [1, 2])
def test_rows_in_order_are_not_sorted(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort, "_bit_widths", lambda *_: pytest.fail("sorted again"))
    ascending = [np.arange(9) // 3, np.arange(9)][-keys:]
    assert sort_rows(ascending, keys).T.tolist() == expected(ascending, keys)
    repeated = [np.repeat(column, 2) for column in ascending] + [np.arange(18)]
    assert sort_rows(repeated, keys).T.tolist() == expected(repeated, keys)


def test_the_columns_given_stay_as_they_are() -> None:
    columns = [np.array([3, 1, 2, 1]), np.array([1, 2, 3, 2])]
    before = [column.copy() for column in columns]
    store = Store(Arena(), 2)
    built = [store.build(columns), store.assemble([np.stack([np.arange(4), np.arange(4)])])]
    assert np.array_equal(columns, before)
    assert [len(version) for version in built] == [3, 4]


@given(
    st.integers(0, 4).flatmap(
        lambda keys: st.tuples(
            st.just(keys),
            st.integers(0, 2).flatmap(
                lambda values: st.lists(
                    st.tuples(
                        *[st.one_of(st.integers(0, 3), st.sampled_from([MIN, MAX]))] * keys,
                        *[st.integers(0, 9)] * values,
                    )
                ).map(lambda rows: np.array(rows, np.int64).reshape(len(rows), keys + values))
            ),
        )
    ),
    st.sampled_from([2, 4, 16]),
)
def test_bulk_build_equals_incremental_build(case: tuple[int, npt.NDArray[np.int64]], size: int) -> None:
    keys, rows = case
    store = Store(Arena(), keys, rows.shape[1] - keys, page_rows=size, dir_rows=size)
    bulk = store.build(list(rows.T), len(rows))
    step = store.empty()
    for row in rows:
        step, _ = step.update(row[:, None], np.ones(1, np.int8))
    batch, _ = store.empty().update(rows.T, np.ones(len(rows), np.int8))
    for version in (bulk, step, batch):
        version.check()
        assert list(version.rows()) == [tuple(row) for row in expected(list(rows.T), keys)] if keys else True
        assert list(version.rows()) == list(bulk.rows())
        assert bulk.delta(version).kinds.size == 0
    check_arena(store.arena, [bulk, step, batch])


@pytest.mark.parametrize("page_rows", [2, 4, 8, 16, 32, 64, 256])
def test_built_pages_are_half_full_at_least(page_rows: int) -> None:
    """61 rows on pages of 64 once became two pages of 31 and 30, 241 entries two directory pages of 121 and 120.

    (Cutting at 15/16 of a page even where one page holds all.)
    """
    store = Store(Arena(), 1, page_rows=page_rows, dir_rows=2)
    sizes = {*range(20), *(page_rows * pages + extra for pages in (1, 2, 3) for extra in range(-page_rows // 8 - 2, 3))}
    for n in sorted(sizes):
        if n >= 0:
            version = store.build([np.arange(n)])
            version.check()
            assert len(version) == n
            assert version.fill >= 0.5 or version.pages == 1 or n == 0


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 13, 60, 61, 64, 65, 121, 300])
def test_assembled_equals_sorted(n: int) -> None:
    store = Store(Arena(), 2, 1, page_rows=4, dir_rows=8)
    columns = [np.arange(n) // 3, np.arange(n), np.arange(n) * 7]
    shuffled = np.random.default_rng(n).permutation(n)
    whole: Any = np.array(columns)
    one = store.assemble([whole])
    two = store.assemble([whole[:, : n // 3], whole[:, n // 3 : n // 3], whole[:, n // 3 :]])
    three = store.build([column[shuffled] for column in columns])
    for version in (one, two, three):
        version.check()
        assert version.columns().tolist() == [column.tolist() for column in columns]


@pytest.mark.parametrize("keys", [0, 1, 2])
@pytest.mark.parametrize("values", [0, 1])
def test_a_page_is_written_again(keys: int, values: int) -> None:
    """More rows or fewer, in the pages that are there; not more than one page holds, and not none."""
    arena = Arena()
    store = Store(arena, keys, values, page_rows=4, dir_rows=2)
    most = 4 if keys else 1
    version = store.assemble([np.full((keys + values, 1), 9, np.int64)])
    used = arena.used
    for n, first in ((most, -5), (1, 7), (min(2, most), MAX - 2)):
        rows = np.array([np.arange(first, first + n)] * (keys + values), np.int64).reshape(keys + values, n)
        assert version.overwrite(rows)
        version.check()
        assert len(version) == n
        assert version.columns().tolist() == rows.tolist()
        assert version.contains(rows[:keys]).all()
        assert not version.contains(rows[:keys] - 11).any() or not keys
    assert not version.overwrite(rows[:, :0])
    assert arena.used == used
    if keys:
        assert not version.overwrite(np.array([np.arange(5)] * (keys + values), np.int64))
        two = store.assemble([np.array([np.arange(5)] * (keys + values), np.int64)])
        assert not two.overwrite(rows)
        assert len(two) == 5
    assert version.columns().tolist() == rows.tolist()


def test_a_page_with_a_scan_is_not_written_again() -> None:
    store = Store(Arena(), 1, scan=Scan(Monoid.SUM, 0))
    version = store.assemble([np.array([[1, 2]], np.int64)])
    assert not version.overwrite(np.array([[3]], np.int64))
    assert list(version.rows()) == [(1,), (2,)]


def test_a_page_exactly() -> None:
    store = Store(Arena(), 1, page_rows=8, dir_rows=2)
    version = store.build([np.arange(8)])
    assert (version.pages, version.fill) == (1, 1.0)
    assert version.begin() == 0
    assert version.end() == 1 << 4


def test_empty() -> None:
    for keys, values in itertools.product(range(4), range(2)):
        store = Store(Arena(), keys, values)
        version = store.empty()
        version.check()
        assert (len(version), version.pages, version.fill) == (0, 0, 0.0)
        assert version.begin() == version.end() == version.seek([5] * keys) == version.seek([])
        assert list(version.rows()) == list(version.chunks()) == []
        assert version.columns().shape == (keys + values, 0)
        assert version.contains(np.zeros((keys, 3), np.int64)).tolist() == [False] * 3
        assert version.delta(version).rows.shape == (keys + values, 0)
        with pytest.raises(IndexError, match=r"^the position is at the end$"):
            version.row(version.begin())


def test_no_columns_at_all() -> None:
    """The relation of arity 0 has one possible row, ()."""
    store = Store(Arena(), 0)
    true, false = store.build([], 5), store.build([], 0)
    assert [list(true.rows()), list(false.rows())] == [[()], []]
    assert true.contains(np.empty((0, 2), np.int64)).tolist() == [True, True]
    none = np.empty((0, 1), np.int64)
    assert [len(v) for v in (false.update(none, np.array([1]))[0], true.update(none, np.array([-1]))[0])] == [1, 0]
    assert true.update(none, np.array([1]))[0] is true
    assert false.delta(true).kinds.tolist() == [1]
    assert true.delta(false).kinds.tolist() == [-1]
    assert (true.seek(()), true.row(true.begin())) == (0, ())


def test_values_without_keys() -> None:
    """One row at most, and its values may change: a global counter."""
    store = Store(Arena(), 0, 2)
    version = store.build([np.array([1, 3]), np.array([2, 4])])
    assert list(version.rows()) == [(3, 4)]
    after, changes = version.update(np.array([[5, 7], [6, 8]]), np.ones(2, np.int8))
    assert changes.verdicts.tolist() == [3]
    assert list(after.rows()) == [(7, 8)]
    delta = version.delta(after)
    assert (delta.changed.tolist(), delta.before.tolist()) == ([[7], [8]], [[3], [4]])


def content(version: Version) -> Any:
    return version.columns().tolist()


@pytest.mark.parametrize("layout", ["transposed", "strided", "int32", "read-only"])
def test_arrays_of_any_layout(layout: str) -> None:
    rows = np.arange(24).reshape(12, 2) % 7
    layouts: dict[str, Any] = {
        "transposed": rows.T,
        "strided": np.repeat(rows, 2, axis=0)[::2].T,
        "int32": rows.T.astype(np.int32),
        "read-only": rows.T.copy(),
    }
    given_rows = layouts[layout]
    given_rows.flags.writeable = False
    store = Store(Arena(), 2)
    version = store.build(list(given_rows))
    other, _ = store.empty().update(given_rows, np.ones(12, np.int8))
    assert content(version) == content(other) == np.array(sorted({tuple(r) for r in rows.tolist()})).T.tolist()
    assert other.contains(given_rows).all()
    as_given: Any = version.columns().astype(given_rows.dtype)
    assembled = store.assemble([as_given])
    assert content(assembled) == content(version)
