"""Words sorted by their digits: as Python sorts them, however many bits, words to pass to, and words alike.

Catches: a digit that is left out or taken twice (a last one of few bits), words that are passed back where passes are
odd, parts of no words or one, all words alike, a place beyond the stack of parts.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import radix_sort, sort
from scantree.consolidate import counted
from scantree.radix_sort import sort_words
from tests.conftest import JIT

USUAL = {name: getattr(radix_sort, name) for name in ("ROOM", "SMALL")}
BITS = (1, 2, 7, 8, 9, 11, 12, 33, 63, 64)


def _tiny(patch: pytest.MonkeyPatch, room: int, narrow: int, wide: int) -> None:
    """Room for few words, few words that are put in place one by one, digits of few bits."""
    for name, size in {"ROOM": room, "NARROW": narrow, "WIDE": wide, "MANY": 6, "FEW": 2, "SMALL": 0}.items():
        patch.setattr(radix_sort, name, size)
    patch.setattr(radix_sort, "_kept", threading.local())


@given(st.data(), st.sampled_from(BITS), st.sampled_from((1, 4, 16, 64)), st.integers(1, 3), st.integers(1, 12))
def test_it_is_what_python_gives(data: st.DataObject, bits: int, room: int, narrow: int, wide: int) -> None:
    word = st.integers(0, 2**bits - 1) | st.sampled_from((0, 1, 2**bits - 1, 2 ** (bits - 1)))
    words = np.array(data.draw(st.lists(word, max_size=60)), np.uint64)
    expected = sorted(words.tolist())
    with pytest.MonkeyPatch.context() as patch:
        _tiny(patch, room, narrow, wide)
        sort_words(words, bits)
    assert words.tolist() == expected


@given(st.lists(st.integers(0, 5), max_size=60), st.sampled_from((1, 4, 64)), st.sampled_from((2, 8)))
def test_what_ascends_already_is_left_out(values: list[int], room: int, narrow: int) -> None:
    """The place of each word is in its lowest bits."""
    words = np.array([value << 6 | place for place, value in enumerate(values)], np.uint64)
    expected = sorted(words.tolist())
    with pytest.MonkeyPatch.context() as patch:
        _tiny(patch, room, narrow, 2)
        sort_words(words, 9, rising=6)
    assert words.tolist() == expected


@pytest.mark.parametrize("bits", [1, 20, 41, 64])
def test_more_words_than_there_is_room_for(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the usual sizes: parted by the highest digits first."""
    for name, size in USUAL.items():
        monkeypatch.setattr(radix_sort, name, size)
    rng = np.random.default_rng(bits)
    n = 3 * USUAL["ROOM"] if JIT else 1_500
    drawn = rng.integers(0, 2**64, n, np.uint64) >> np.uint64(64 - bits)
    for words in (drawn, drawn | drawn[0], np.where(np.arange(n) == 7, 0, drawn.max())):
        expected = np.sort(words)
        sort_words(words, bits)
        assert np.array_equal(words, expected)


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1), st.integers(-(2**40), 2**40)), min_size=2))
def test_rows_are_sorted_by_their_keys_and_stay_otherwise_as_given(rows: list[tuple[int, int, int]]) -> None:
    columns = np.ascontiguousarray(np.array(rows, np.int64).T)
    with pytest.MonkeyPatch.context() as patch:
        _tiny(patch, 4, 2, 3)
        patch.setattr(sort, "FEW", 1)
        order, repeats = sort.sorting(columns[:2])
        distinct = sort.sort_rows(columns.copy(), 3)
    assert order.tolist() == sorted(range(len(rows)), key=lambda row: rows[row][:2])
    assert repeats == (len({row[:2] for row in rows}) < len(rows))
    assert list(zip(*distinct.tolist(), strict=True)) == sorted(set(rows))


def test_every_thread_has_room_of_its_own() -> None:
    n = 20_000 if JIT else 1_200
    rows = [np.random.default_rng(seed).integers(0, 2**62, n, np.uint64) for seed in range(12)]
    expected = [np.sort(words) for words in rows]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda words: sort_words(words, 62), rows))
    assert all(np.array_equal(words, ordered) for words, ordered in zip(rows, expected, strict=True))


@given(st.lists(st.lists(st.tuples(*[st.integers(-2, 2)] * 2), max_size=20), min_size=1, max_size=4), st.booleans())
def test_rows_are_counted(chunks: list[list[tuple[int, int]]], packed: bool) -> None:
    rows = [np.array(chunk, np.int64).reshape(-1, 2).T for chunk in chunks]
    given = Counter(row for chunk in chunks for row in chunk)
    with pytest.MonkeyPatch.context() as patch:
        _tiny(patch, 4, 2, 3)
        patch.setattr(sort, "FEW", 1 if packed else 1 << 20)
        found = counted(rows)
    assert [tuple(row) for row in found.T.tolist()] == sorted((*row, n) for row, n in given.items())
    assert rows == []
