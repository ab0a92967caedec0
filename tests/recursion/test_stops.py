"""Recursion that is stopped: by a time limit, a memory limit, Ctrl-C, an error of a term. What was stays, to the page.

Catches: rows of a round that stay behind, a database that is stuck in the middle, an endless computation that nobody
can end, a message that does not say where it was.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError, MemoryLimitError, TimeoutExpired
from lftj.join.run import Limits
from lftj.recursion.fixpoint import Fixpoint
from scantree.memory import Arena
from scantree.version import Store, Version
from tests.conftest import JIT
from tests.injected import Sweep, fails_at

COUNTER = ".decl b(x:number)\nn(x) :- b(x).\nn(x + 1) :- n(x)."
CLOSURE = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).\nfar(x) :- t(1, x), !e(1, x)."
CHAIN = [(i, i + 1) for i in range(1, 13)]
EXPECTED = {(x, y) for x in range(1, 14) for y in range(x + 1, 14)}


def contents(db: lftj.Database) -> dict[str, list[Any]]:
    return {name: list(db[name]) for name in db}


def warm() -> None:
    """Compiling takes longer than these tests wait."""
    db = lftj.Database(COUNTER.replace("n(x).", "n(x), x < 5."))
    for rows in ([(0,)], [(3,)]):
        with db.transaction() as tx:
            tx.insert("b", rows)
        db.evaluate()
    with db.transaction() as tx:
        tx.erase("b", [(0,)])


def check_told(error: TimeoutExpired) -> None:
    text = str(error)
    assert "n(x + 1) :- n(x)." in text
    assert "round" in text
    assert "time limit" in text
    assert "do: bound the values that the rule computes" in text


def test_an_endless_computation_is_stopped_by_a_time_limit() -> None:
    warm()
    db = lftj.Database(COUNTER)
    db.load("b", [(0,)])
    with pytest.raises(TimeoutExpired) as caught:
        db.evaluate(timeout=0.3)
    check_told(caught.value)
    assert list(db["b"]) == [(0,)]
    with db.transaction() as tx:
        tx.erase("b", [(0,)])
    with pytest.raises(EvaluationError, match="not known"):
        _ = tx.delta["n"].inserted
    assert list(db["n"]) == []


def test_an_endless_transaction_is_stopped_by_a_time_limit() -> None:
    warm()
    db = lftj.Database(COUNTER)
    db.evaluate()
    before, state = contents(db), db._state
    with pytest.raises(TimeoutExpired) as caught, db.transaction(timeout=0.3) as tx:
        tx.insert("b", [(7,)])
    check_told(caught.value)
    assert db._state is state
    with db.transaction(timeout=0.3) as tx:
        tx.insert("b", [(7,)])
        with pytest.raises(TimeoutExpired):
            tx.preview()
        tx.erase("b", [(7,)])
    assert contents(db) == before


def test_an_endless_computation_is_stopped_by_a_memory_limit() -> None:
    db = lftj.Database._sized(COUNTER, memory_limit=1 << (19 if JIT else 16), page_rows=64 if JIT else 4)
    db.evaluate()
    before = contents(db)
    with pytest.raises(MemoryLimitError) as caught, db.transaction() as tx:
        tx.insert("b", [(7,)])
    assert "n(x + 1) :- n(x)." in str(caught.value)
    assert "round" in str(caught.value)
    assert contents(db) == before


@pytest.mark.jit_only
def test_ctrl_c_stops_an_endless_computation() -> None:
    warm()
    db = lftj.Database(COUNTER)
    db.load("b", [(0,)])
    main = threading.main_thread().ident
    assert main is not None
    pressed: list[float] = []
    timer = threading.Timer(0.4, lambda: (pressed.append(time.monotonic()), signal.pthread_kill(main, signal.SIGINT)))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        db.evaluate()
    (place,) = stopped.value.__notes__
    assert "in `n(x + 1) :- n(x).`, round " in place
    assert time.monotonic() - pressed[0] < 5  # not a measurement: it ended
    assert list(db["b"]) == [(0,)]


def closed() -> lftj.Database:
    db = lftj.Database._sized(CLOSURE, page_rows=4, directory_rows=4)
    db.load("e", CHAIN)
    db.evaluate()
    return db


def change(tx: Any) -> None:
    """Rows that go, rows that come back another way, rows that are new."""
    tx.erase("e", [(5, 6)])
    tx.insert("e", [(13, 14), (4, 7), (14, 1)])


def after() -> dict[str, list[Any]]:
    db = closed()
    with db.transaction() as tx:
        change(tx)
    fresh = lftj.Database(CLOSURE)
    fresh.load("e", [*(edge for edge in CHAIN if edge != (5, 6)), (13, 14), (4, 7), (14, 1)])
    assert contents(db) == contents(fresh)
    return contents(db)


STEPS: list[tuple[Any, str]] = [
    (Version, "update"),
    (Store, "assemble"),
    (Limits, "look"),
    (Arena, "room"),
    (Fixpoint, "run"),
    (Fixpoint, "grow"),
    (Fixpoint, "go_on"),
]


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_stop_at_every_step_of_maintenance(
    owner: Any, name: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every round, and between all of them: nothing has happened, and the next try succeeds."""
    expected, db = after(), closed()
    before, state = contents(db), db._state
    assert set(db["t"]) == EXPECTED
    sweep, number = Sweep(owner, name, after=late), 0
    while True:
        number += 1
        with monkeypatch.context() as patch:
            sweep.inject(patch, KeyboardInterrupt())
            try:
                with db.transaction() as tx:
                    change(tx)
            except KeyboardInterrupt as stop:
                stop.__traceback__ = None
            else:
                break
        assert db._state is state
        assert contents(db) == before
    assert number > 1
    assert contents(db) == expected


@pytest.mark.parametrize("name", ["run", "grow"])
def test_a_stop_at_every_round_of_evaluation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 0
    while True:
        number += 1 if JIT else 5
        db = lftj.Database._sized(CLOSURE, page_rows=4, directory_rows=4)
        db.load("e", CHAIN)
        with monkeypatch.context() as patch:
            fails_at(patch, Fixpoint, name, number, KeyboardInterrupt(), after=number % 2 == 0)
            try:
                db.evaluate()
            except KeyboardInterrupt as stop:
                stop.__traceback__ = None
            else:
                break
        assert list(db["e"]) == CHAIN
        assert set(db["t"]) == EXPECTED
    assert number > 8
    assert set(db["t"]) == EXPECTED


def test_a_memory_limit_leaves_the_state_and_smaller_changes_go_through() -> None:
    db = lftj.Database._sized(CLOSURE, page_rows=8, memory_limit=1 << 20)
    db.load("e", CHAIN)
    db.evaluate()
    before = contents(db)
    with pytest.raises(MemoryLimitError), db.transaction() as tx:
        tx.insert("e", [(i, i + 1) for i in range(13, 400)])
    assert contents(db) == before
    with db.transaction() as tx:
        tx.insert("e", [(13, 14)])
    assert len(db["t"]) == len(EXPECTED) + 13


def test_a_term_without_a_value_in_a_later_round() -> None:
    """Only the third round meets the divisor 0; the transaction fails as a whole, and says where."""
    db = lftj.Database(".decl e(x:number, y:number)\nd(4) :- e(0, 0).\nd(12 / x - 3) :- d(x), e(x, _).")
    with db.transaction() as tx:
        tx.insert("e", [(0, 0), (1, 1)])
    assert list(db["d"]) == [(4,)]
    before = contents(db)
    with pytest.raises(EvaluationError) as caught, db.transaction() as tx:
        tx.insert("e", [(4, 0)])
    assert "division by zero" in str(caught.value)
    assert "d(12 / x - 3) :- d(x), e(x, _)." in str(caught.value)
    assert contents(db) == before
    with db.transaction() as tx:
        tx.insert("e", [(4, 0)])
        tx.erase("e", [(0, 0)])
    assert list(db["d"]) == []
