"""Ctrl-C ends long conversions while the libraries that do them go on: in a thread of their own, or slice by slice."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.values import gate, interruptible
from lftj.values.codes import Column, Schema
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


def test_arrays_are_filled_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts become objects under Python's own lock, and Ctrl-C comes between two slices."""
    monkeypatch.setattr(gate, "CHUNK_ROWS", 10)
    symbols, sizes, decode = SymbolTable(), [], gate.decode_column

    def counted(codes: gate.Codes, type: str, symbols: SymbolTable) -> Any:
        sizes.append(len(codes))
        return decode(codes, type, symbols)

    monkeypatch.setattr(gate, "decode_column", counted)
    codes = symbols.intern([f"n{i}" for i in range(25)])
    schema = Schema("r", (Column("a", "symbol"), Column("b", "number")))
    array = gate.to_numpy(schema, [codes, np.arange(25)], symbols)
    assert array.tolist() == [(f"n{i}", i) for i in range(25)]
    assert sizes == [10, 10, 5] * 2
