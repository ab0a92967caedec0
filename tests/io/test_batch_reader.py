"""Batches read one after the other are what `read` makes of them, or left to it.

Catches: places kept from a batch of another schema, values that do not fit taken for codes, texts interned of a batch
that is refused, bytes that are no text taken for one, columns mixed up where nobody reads some.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import lftj
from lftj import streams
from lftj.io.batch_reader import BatchReader
from lftj.io.sources import read
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable

SCHEMA = Schema("s", (Column("a", "number"), Column("t", "symbol"), Column("f", "float"), Column("u", "unsigned")))
ALL = frozenset(range(4))


def batch(n, *, shift=0, text="string", names="atfu"):
    columns = {
        "a": pa.array(range(shift, shift + n), pa.int64()),
        "t": pa.array([f"text {(i + shift) % 3}" for i in range(n)], pa.type_for_alias(text)),
        "f": pa.array([-0.0 if i % 2 else i / 4 - 1 for i in range(n)], pa.float64()),
        "u": pa.array([2**64 - 1 - i for i in range(n)], pa.uint64()),
        "x": pa.array([None] * n, pa.int64()),
    }
    return pa.record_batch({name: columns[name] for name in names})


def plain(source, symbols, only=ALL):
    return np.stack(read(source, SCHEMA, symbols, only=only).columns)


def test_batches_are_what_read_makes_of_them() -> None:
    symbols, others = SymbolTable(), SymbolTable()
    reader = BatchReader(SCHEMA, symbols, ALL)
    sources = [
        batch(5),
        batch(7, shift=3),
        batch(0),
        batch(9).slice(2, 4),
        batch(3, names="xufta"),  # other places, one column more
        batch(4, text="large_string"),
        batch(3, names="xufta"),
    ]
    for source in sources:
        assert np.array_equal(reader.read(source), plain(source, others))
    assert symbols.texts().equals(others.texts())


def test_texts_that_nobody_reads_are_not_interned() -> None:
    symbols = SymbolTable()
    codes = BatchReader(SCHEMA, symbols, frozenset({0})).read(batch(5))
    assert codes is not None
    assert codes[0].tolist() == [0, 1, 2, 3, 4]
    assert len(symbols) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"t": pa.array(["a", None])},
        {"t": pa.array([b"a", b"\xff"]).view(pa.string())},
        {"a": pa.array([1, None])},
        {"f": pa.array([1.0, float("nan")])},
        {"a": pa.array([1, 2], pa.int8())},
        {"f": pa.array([1, 2])},
        {"t": pa.array(["a", "b"]).dictionary_encode()},
        {"a": pa.array(["1", "2"])},
    ],
)
def test_what_is_not_plain_is_left_to_read(change) -> None:
    symbols = SymbolTable()
    reader = BatchReader(SCHEMA, symbols, ALL)
    columns = {name: batch(2).column(name) for name in "atfu"} | change
    assert reader.read(pa.record_batch(columns)) is None
    assert len(symbols) == 0
    assert reader.read(batch(2)) is not None
    assert reader.read(pa.table({"a": [1]})) is None


def test_a_stream_refuses_what_it_refused_before() -> None:
    c = streams.Circuit()
    c.output("o", c.input("s", a=int, t=str).select("a"))
    live = c.incremental()
    good = pa.record_batch({"a": [1], "t": ["x"]})
    assert dict(live.step({"s": good})["o"]) == {(1,): 1}
    with pytest.raises(lftj.DataError):
        live.step({"s": pa.record_batch({"a": [2], "t": pa.array([None], pa.string())})})
    with pytest.raises(lftj.DataError):
        live.step({"s": pa.record_batch({"a": [2], "b": ["x"]})})
    with pytest.raises(lftj.DataError):
        live.step({"s": pa.record_batch({"a": [2]})})
    assert dict(live.step({"s": good})["o"]) == {(1,): 1}
