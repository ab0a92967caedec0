"""The rows of a version in another key order: the same as sorting them, whatever their ranges.

Catches: a value at the end of its range that takes one bit too many, a column of one value, a carry from one column
into another, pages filled otherwise than by a build, values of rows that are hidden taken for keys.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import radix_sort, reorder, sort, version
from scantree.memory import Arena, ArenaFullError
from scantree.reorder import packed_in_order
from scantree.version import Store
from tests.conftest import JIT

LEAST, MOST = -(2**63), 2**63 - 1
COLUMNS = (
    st.integers(0, 3),
    st.integers(-5, 5),
    st.integers(2**40, 2**40 + 9),
    st.integers(LEAST, LEAST + 3),
    st.integers(MOST - 3, MOST),
    st.just(7),
    st.sampled_from((LEAST, 0, MOST)),
)


@given(
    st.data(),
    st.integers(1, 4),
    st.sampled_from((2, 4, 16)),
    st.sampled_from((2, 8)),
    st.booleans(),
)
def test_it_is_what_sorting_gives(data: st.DataObject, keys: int, page_rows: int, dir_rows: int, hidden: bool) -> None:
    columns = [data.draw(st.sampled_from(COLUMNS)) for _ in range(keys)]
    rows = data.draw(st.lists(st.tuples(*columns), max_size=40))
    order = data.draw(st.permutations(range(keys)))
    arena = Arena(64 << 20)
    sizes = {"page_rows": page_rows, "dir_rows": dir_rows}
    given_rows = np.array(sorted(set(rows)), np.int64).reshape(-1, keys).T
    values = np.arange(given_rows.shape[1])[None, :] if hidden else np.empty((0, given_rows.shape[1]), np.int64)
    source = Store(arena, keys, int(hidden), hidden=hidden, **sizes).assemble([np.concatenate([given_rows, values])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reorder, "FEW", 0)
        patch.setattr(sort, "FEW", 1)
        patch.setattr(radix_sort, "SMALL", 0)
        patch.setattr(version, "MOVED_ROWS", 3)
        made = Store(arena, keys, **sizes).reorder(source, tuple(order))
        permuted = sort.permuted(given_rows, tuple(order))
    made.check()
    expected = sorted(tuple(row[c] for c in order) for row in set(rows))
    assert list(made.rows()) == expected
    assert list(zip(*permuted.tolist(), strict=True)) == expected
    for column in range(keys):
        held = {row[column] for row in rows}
        assert source.ends(column) == ((min(held), max(held)) if held else None)
    built = Store(arena, keys, **sizes).build([given_rows[c] for c in order])
    assert (made.pages, made.fill) == (built.pages, built.fill)


def test_words_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted rows are not in the words that the next sort of the thread writes to."""
    monkeypatch.setattr(sort, "FEW", 1)
    monkeypatch.setattr(sort, "KEPT", 100)
    rng = np.random.default_rng(5)
    kept = []
    for n in (3, 90, 20, 150, 100, 70):
        rows = rng.permutation(4 * n)[: 2 * n].reshape(2, n).astype(np.int64)
        kept.append((sort.sort_rows(rows, 2), sorted(zip(*rows.tolist(), strict=True))))
        assert len(sort.words_for(n)) == n
    assert all(list(zip(*made.tolist(), strict=True)) == expected for made, expected in kept)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_many_rows(order: tuple[int, ...]) -> None:
    """More than one page, and than one directory page, of the usual size."""
    rng = np.random.default_rng(3)
    n = 60_000 if JIT else 2_000
    rows = np.unique(rng.integers(-(2**20), 2**20, (3, n)), axis=1)
    arena = Arena(64 << 20)
    source = Store(arena, 3).assemble([rows])
    assert packed_in_order(source, order) is not None
    made = Store(arena, 3).reorder(source, order)
    made.check()
    expected = rows[list(order)]
    assert np.array_equal(made.columns(), expected[:, np.lexsort(expected[::-1])])


def test_what_does_not_fit_into_words_is_sorted_otherwise() -> None:
    rows = np.array([[LEAST, 0, MOST] * 100, range(300)], np.int64)
    arena = Arena(64 << 20)
    source = Store(arena, 2).build(list(rows))
    assert packed_in_order(source, (1, 0)) is None
    made = Store(arena, 2).reorder(source, (1, 0))
    assert np.array_equal(made.columns(), rows[::-1])


def test_without_memory_nothing_is_left() -> None:
    arena = Arena(1 << 20)
    source = Store(arena, 2).build([np.arange(40_000), np.arange(40_000)[::-1]])
    used = arena.used
    with pytest.raises(ArenaFullError):
        Store(arena, 2).reorder(source, (1, 0))
    arena.collect()
    assert arena.used == used


@pytest.mark.jit_only
def test_an_interruption_gives_the_pages_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    arena = Arena(64 << 20)
    source = Store(arena, 2).build([np.arange(4_000), np.arange(4_000)[::-1]])
    used = arena.used
    monkeypatch.setattr(version._build, "write_packed", stop)
    with pytest.raises(KeyboardInterrupt):
        Store(arena, 2).reorder(source, (1, 0))
    arena.collect()
    assert arena.used == used
