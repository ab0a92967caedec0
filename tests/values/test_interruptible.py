"""Ctrl-C ends long conversions while the libraries that do them go on: in a thread of their own, or slice by slice."""

from __future__ import annotations

import signal
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.values import arrow_arrays, gate, interruptible
from lftj.values import symbols as symbol_table
from lftj.values.codes import encode_float
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable

ROWS = [(f"n{i}", i) for i in (3, 1, 2)]


@pytest.fixture
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruptible, "FEW_ROWS", 0)


def named() -> lftj.Database:
    db = lftj.Database(".decl e(a:symbol, b:number)")
    db.load("e", ROWS)
    return db


@pytest.mark.usefixtures("every_size")
def test_results_and_errors_come_through() -> None:
    assert interruptible.interruptible(1, lambda a, b: (a, b, threading.current_thread().name), 1, b=2) == (
        1,
        2,
        "lftj conversion",
    )
    with pytest.raises(ZeroDivisionError):
        interruptible.interruptible(1, lambda: 1 // 0)


def test_few_rows_need_no_thread() -> None:
    assert interruptible.interruptible(1, threading.current_thread) is threading.main_thread()


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("read", [list, set, lambda r: r.numpy(), lambda r: r.arrow(), lambda r: r.df()])
def test_ctrl_c_ends_the_reading_of_a_relation_while_its_rows_are_sorted(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[lftj.Relation], Any]
) -> None:
    """`list(rel)` of millions of rows answered when all of them were sorted."""
    relation, may_end = named()["e"], threading.Event()
    ranks = SymbolTable.ranks

    def endless(symbols: SymbolTable) -> Any:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
        assert may_end.wait(60), "nobody was interrupted"
        return ranks(symbols)

    monkeypatch.setattr(SymbolTable, "ranks", endless)
    with pytest.raises(KeyboardInterrupt):
        read(relation)
    may_end.set()
    monkeypatch.setattr(SymbolTable, "ranks", ranks)
    assert list(relation) == sorted(ROWS)
    assert {tuple(row) for row in relation.numpy()} == set(ROWS)


ARRAYS = [("symbol", "number"), ("symbol", "symbol"), ("number", "float"), ("float", "float"), ("symbol",), ()]


@pytest.mark.parametrize("types", ARRAYS)
@pytest.mark.parametrize("rows", [0, 1, 10, 25])
def test_arrays_are_filled_in_slices(monkeypatch: pytest.MonkeyPatch, types: tuple[str, ...], rows: int) -> None:
    """Texts become objects under Python's own lock, and Ctrl-C comes between two slices."""
    monkeypatch.setattr(gate, "CHUNK_ROWS", 10)
    symbols, sizes, decode = SymbolTable(), [], gate.decode_column

    def counted(codes: gate.Codes, type: str, symbols: SymbolTable) -> Any:
        sizes.append(len(codes))
        return decode(codes, type, symbols)

    monkeypatch.setattr(gate, "decode_column", counted)
    texts = symbols.intern([f"n{i}" for i in range(rows)])
    schema = Schema("r", tuple(Column(f"c{i}", type) for i, type in enumerate(types)))
    codes = {"symbol": texts, "number": np.arange(rows), "float": encode_float(np.arange(rows) / 2)}
    array = gate.to_numpy(schema, [codes[type] for type in types], symbols, rows=rows)
    values = {"symbol": [f"n{i}" for i in range(rows)], "number": range(rows), "float": [i / 2 for i in range(rows)]}
    expected = list(zip(*(values[type] for type in types), strict=True)) if types else [()] * rows
    assert [tuple(row) for row in array.tolist()] == expected
    assert (array.flags.owndata, array.flags.c_contiguous, array.flags.writeable) == (True, True, True)
    assert sizes == [size for size in {0: [], 1: [1], 10: [10], 25: [10, 10, 5]}[rows] for _ in types]


def test_ctrl_c_ends_the_filling_of_an_array_after_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of rows with objects was made at once: numpy fills every row, 0.1 to 0.2 s for two million."""
    rows, decoded = 200_000, list[int]()
    decode = gate.decode_column

    def interrupted(codes: gate.Codes, type: str, symbols: SymbolTable) -> Any:
        decoded.append(len(codes))
        signal.raise_signal(signal.SIGINT)
        return decode(codes, type, symbols)

    monkeypatch.setattr(gate, "decode_column", interrupted)
    symbols = SymbolTable()
    codes = np.zeros(rows, np.int64) + symbols.intern_one("a")
    schema = Schema("r", (Column("a", "symbol"), Column("b", "number")))
    tracemalloc.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            gate.to_numpy(schema, [codes, codes], symbols)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded == [gate.CHUNK_ROWS]
    assert most < rows * 16 // 2, "there was room for all rows before the first was decoded"


def test_texts_that_came_one_by_one_become_an_array_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbol_table, "SHORT", 10)
    symbols, sizes, texts = SymbolTable(), list[int](), arrow_arrays.texts
    for i in range(25):
        symbols.intern_one(f"n{i}")

    def counted(given: Any) -> Any:
        sizes.append(len(given))
        return texts(given)

    monkeypatch.setattr(arrow_arrays, "texts", counted)
    assert symbols.texts().to_pylist() == [f"n{i}" for i in range(25)]
    assert [size for size in sizes if size] == [10, 10, 5]
    monkeypatch.undo()
    symbols.intern_one("last")
    assert symbols.decode(np.array([25, 0])).to_pylist() == ["last", "n0"]
    symbols.check()
