"""The index of texts: the numbers are those that a dict would give, through growth, repeats and failures.

Catches: texts that differ in length or last bytes only, slots that are full or collide, arrays that begin in the middle
of their buffers, arrays given out that change when the index grows, an interruption between two chunks.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from lftj.values import symbols as module
from lftj.values import text_index
from lftj.values.symbols import SymbolTable, stage
from lftj.values.text_index import TextIndex
from scantree import texts as text_kernels


def array(texts):
    return pa.array(texts, pa.large_string())


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(text_index, "CHUNK", 5)
    monkeypatch.setattr(text_index, "LEAST", 1)


def drawn(rng, count):
    words = ["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefgi", "\0", "\0\0", "é", "日本", "x" * 40, "x" * 41]
    return [rng.choice(words) + rng.choice(["", "", str(rng.randrange(30))]) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_those_of_a_dict(seed):
    rng, index, known = random.Random(seed), TextIndex(), {}
    views = []
    for _ in range(12):
        texts = drawn(rng, rng.randrange(14))
        given = array(["front", *texts, "end"]).slice(1, len(texts))
        assert index.find(given).tolist() == [known.get(text, -1) for text in texts]
        expected = [known.setdefault(text, len(known)) for text in texts]
        assert index.add(given).tolist() == expected
        assert index.texts().to_pylist() == list(known)
        views.append((index.texts(), list(known)))
    for view, texts in views:
        assert view.to_pylist() == texts


@pytest.mark.parametrize("value", [7, 2**64 - 1])
def test_texts_that_collide_are_told_apart(value, monkeypatch):
    # Those of the greatest hash begin at the last slot, and go on at the first.
    def alike(data, ends, first, hashes):
        hashes[:] = value

    monkeypatch.setattr("scantree.texts.hash_texts", alike)
    index = TextIndex()
    texts = [str(i) for i in range(30)]
    assert index.add(array(texts)).tolist() == list(range(30))
    assert index.add(array(texts[::-1])).tolist() == list(range(29, -1, -1))


def test_no_text_is_hashed_again_when_slots_become_more(monkeypatch):
    hashed, hash_texts = [], text_kernels.hash_texts

    def counting(data, ends, first, hashes):
        hashed.append(len(hashes))
        hash_texts(data, ends, first, hashes)

    monkeypatch.setattr("scantree.texts.hash_texts", counting)
    index = TextIndex()
    slots = {len(index._slots)}
    for i in range(0, 100, 4):
        index.add(array([str(j) for j in range(i, i + 4)]))
        slots.add(len(index._slots))
    assert len(slots) > 4
    assert sum(hashed) == 100


def test_an_addition_that_fails_adds_nothing(monkeypatch):
    index, known = TextIndex(), [f"known {i}" for i in range(7)]
    index.add(array(known))
    room = TextIndex._make_room
    calls = []

    def failing(self, more, size):
        calls.append(more)
        if len(calls) == 3:
            raise KeyboardInterrupt
        room(self, more, size)

    monkeypatch.setattr(TextIndex, "_make_room", failing)
    with pytest.raises(KeyboardInterrupt):
        index.add(array([f"new {i}" for i in range(20)]))
    assert index.texts().to_pylist() == known
    assert index.find(array(["new 0", "known 3"])).tolist() == [-1, 3]
    assert index.add(array(["other", "new 0", "known 6"])).tolist() == [7, 8, 6]


@pytest.mark.parametrize("small", [0, 3, 1_000])
def test_tables_with_and_without_index_agree(small, monkeypatch):
    monkeypatch.setattr(module, "SMALL", small)
    rng, table, known = random.Random(small), SymbolTable(), {}
    for turn in range(30):
        texts = drawn(rng, rng.randrange(1, 9))
        if turn % 3 == 0:
            assert [table.code(text) for text in texts] == [known.get(text, -1) for text in texts]
            codes = [table.intern_one(text) for text in texts]
        elif turn % 3 == 1:
            assert table.lookup(texts).tolist() == [known.get(text, -1) for text in texts]
            codes = table.intern(texts).tolist()
        else:
            codes = table.encode(pa.array(texts)).tolist()
        assert codes == [known.setdefault(text, len(known)) for text in texts]
        assert table.text(codes[0]) == texts[0]
        table.check()


def test_short_columns_are_interned_as_they_are_and_long_ones_by_their_distinct_texts(monkeypatch):
    monkeypatch.setattr(module, "SHORT", 4)
    assert stage(["b", "a", "b"]).indices is None
    long = stage(["b", "a", "b", "a", "b"])
    assert long.texts.to_pylist() == ["b", "a"]
    table = SymbolTable()
    assert table.encode(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert table.encode(["c", "a", "b", "a", "c"]).tolist() == [2, 1, 0, 1, 2]


@pytest.mark.parametrize(("distinct", "reduced"), [(20, True), (400, True), (999, False), (1_000, False)])
def test_long_columns_of_mostly_distinct_texts_are_interned_as_they_are(monkeypatch, distinct: int, reduced: bool):
    """Whether every tenth row has a text that came before tells."""
    monkeypatch.setattr(module, "SHORT", 4)
    monkeypatch.setattr(module, "SAMPLED", 100)
    rows = random.Random(1).sample([f"text {i % distinct}" for i in range(1_000)], 1_000)
    assert (stage(rows).indices is not None) == reduced
    table, known = SymbolTable(), dict[str, int]()
    assert table.encode(rows).tolist() == [known.setdefault(text, len(known)) for text in rows]


def test_kernels_are_compiled_for_read_only_arrays_alone() -> None:
    """As most of Arrow's are; those made of Python's buffers are not, and compiled everything once more."""
    whole = array(["a", "bc"])
    _, ends, data = whole.buffers()
    copied = [pa.py_buffer(bytearray(buffer.to_pybytes())) for buffer in (ends, data)]
    read_only = [pa.py_buffer(buffer.to_pybytes()) for buffer in (ends, data)]
    given = [pa.Array.from_buffers(pa.large_string(), 2, [None, *two]) for two in (copied, read_only)]
    assert [one.buffers()[2].is_mutable for one in given] == [True, False]
    for one in [*given, whole, whole.slice(2), array([]), array([""])]:
        assert not any(held.flags.writeable for held in text_index._buffers(one))
