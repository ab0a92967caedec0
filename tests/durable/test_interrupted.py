"""Ctrl-C at every line of what writes: what was not published is not in the file, and the next change goes on."""

from __future__ import annotations

import contextlib
import gc
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import lftj
from lftj.durable import checking, database_file
from tests.conftest import IN_CI, THOROUGH
from tests.durable.shop import PROGRAM, contents, lose
from tests.interrupt import Interrupt

DURABLE = str(Path(database_file.__file__).parent)
# Every line at first, then fewer and fewer: a step grows by one for so many lines before it, and in CI faster, where
# what is done with each line twice begins at different ones.
PART = 40 if THOROUGH else 3 if IN_CI else 8
# Where blocks begin and end, too: between a manager and its block.
BLOCKS = (DURABLE, contextlib.__file__)


def test_no_interrupt_is_where_no_signal_can_be() -> None:
    """One between a block and its manager's exit left the lock of all lock files locked, and the next open waited."""
    lock = threading.Lock()

    def locked(out: bool) -> int:
        with lock:
            for i in range(3):
                if out:
                    return i
            return 3

    for out in (False, True):
        at, interrupted = 0, True
        while interrupted:
            with contextlib.suppress(KeyboardInterrupt), Interrupt(at, (__file__,)) as interrupt:
                locked(out)
            assert not lock.locked()
            interrupted = interrupt.done
            at += 1
        assert at > 3


def commit(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
        tx.insert("name", [(1, f"text {len(db._symbols)}")])


def written(db: lftj.Database) -> None:
    """A commit as it is written, without its block."""
    tx = db.transaction()
    tx.__enter__()
    try:
        tx.insert("name", [(1, f"text {len(db._symbols)}")])
    finally:
        tx.__exit__(None, None, None)


def rules(db: lftj.Database) -> None:
    db.rules('far(x, z) :- path(x, z), !edge(x, z). name(9, "nine").')


def rules_in_a_transaction(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.rules("far(x, z) :- path(x, z), !edge(x, z).")
        tx.insert("edge", [(1, 2)])


def paths(db: lftj.Database) -> None:
    db.path_counts("edge", into="counted")


def load(db: lftj.Database) -> None:
    db.load("name", [(i, f"name {i}") for i in range(30)])


def load_some(db: lftj.Database) -> None:
    db.load("edge", [(5, 6)])


def loads(db: lftj.Database) -> None:
    with db._restoring():
        db.load("name", [(i, f"name {i}") for i in range(30)])
        db.load("edge", [(5, 6)])


def checkpoint(db: lftj.Database) -> None:
    db.checkpoint()


@pytest.mark.parametrize("sync", ["normal", "off"])
@pytest.mark.parametrize(
    "change",
    [commit, rules, rules_in_a_transaction, paths, load, load_some, loads, checkpoint],
    ids=lambda f: f.__name__,
)
def test_at_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[lftj.Database], None], sync: str
) -> None:
    monkeypatch.setattr(database_file, "BULK", 10)
    monkeypatch.setattr(database_file, "WAIT", 1e6)
    warnings.simplefilter("ignore")
    path = tmp_path / "shop.lftj"
    interrupted, at = True, 1 if IN_CI and sync == "off" else 0
    while interrupted:
        path.unlink(missing_ok=True)
        sizes = {"page_rows": 4, "directory_rows": 2}
        db = lftj.Database._sized(PROGRAM, **sizes, path=path, sync=sync, retain=None)
        db.load("edge", [(0, 2)])
        before, seq, names = contents(db), db.seq, len(db._state.relations)
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at, (DURABLE,)) as interrupt:
            change(db)
        interrupted = interrupt.done
        if not (published := change is checkpoint or db.seq > seq):
            assert contents(db) == before
            assert len(db._state.relations) == names
        after = contents(db)
        assert published or after == before
        with db.transaction() as tx:  # whatever happened, the next change is written
            tx.insert("edge", [(7, 8)])
            tx.insert("name", [(7, "seven")])
        if at % 2:
            db.checkpoint()
        last = contents(db)
        assert db._file is not None
        db._file.flush()
        lose(db)
        assert checking.check(path) == []
        with lftj.Database._sized(**sizes, path=path, sync=sync, retain=None) as again:
            assert contents(again) == last, at
            assert again.seq == db.seq
        at += 1 + at // PART
    assert at > 5


@pytest.mark.parametrize("sync", ["full", "off"])
def test_an_interrupted_close_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str) -> None:
    """What waited was taken for written, and a second `close` did nothing."""
    monkeypatch.setattr(database_file, "WAIT", 1e6)
    path, interrupted, at = tmp_path / "shop.lftj", True, 0
    while interrupted:
        path.unlink(missing_ok=True)
        db = lftj.Database(PROGRAM, path=path, sync=sync)
        commit(db)
        last, interrupted = contents(db), False
        try:
            with Interrupt(at, BLOCKS):
                db.close()
        except KeyboardInterrupt:  # what it refers to is alive, as at a prompt
            interrupted = True
            db.close()
        with lftj.Database(path=path, read_only=True) as again:
            assert contents(again) == last, at
        at += 1 + at // PART
    assert at > 50


@pytest.mark.parametrize("change", [written, load, checkpoint], ids=lambda f: f.__name__)
def test_what_follows_an_interrupted_write_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[lftj.Database], None]
) -> None:
    """A transaction of SQLite that an interrupt left open took in the commits after it, and was rolled back."""
    monkeypatch.setattr(database_file, "BULK", 10)
    path, interrupted, at = tmp_path / "shop.lftj", True, 0
    while interrupted:
        path.unlink(missing_ok=True)
        db, interrupted = lftj.Database(PROGRAM, path=path), False
        try:
            with Interrupt(at, BLOCKS):
                change(db)
        except KeyboardInterrupt:
            interrupted = True
            with db.transaction() as tx:
                tx.insert("edge", [(7, 8)])
            db.checkpoint()
            with db.transaction() as tx:
                tx.insert("name", [(8, "eight")])
            last = contents(db)
            lose(db)
            with lftj.Database(path=path) as again:
                assert contents(again) == last, at
        at += 1 + at // PART
    assert at > 20


def test_a_call_whose_end_was_interrupted_is_not_at_work() -> None:
    """Ctrl-C where the end of a load's block begins: while its traceback was there, all was "inside `load`"."""
    at, interrupted, kept = 0, True, list[KeyboardInterrupt]()
    while interrupted:
        db = lftj.Database(PROGRAM)
        with Interrupt(at, (contextlib.__file__,)) as interrupt:
            try:
                db.load("edge", [(1, 2)])
            except KeyboardInterrupt as error:
                kept.append(error)  # as at a prompt
        interrupted = interrupt.done
        with db.transaction() as tx:
            tx.insert("edge", [(7, 8)])
        db.load("edge", [(8, 9)])
        assert {(7, 8), (8, 9)} <= set(db["edge"])
        at += 1
    assert at > 10
    assert kept


def test_an_interrupted_opening_lets_go_of_the_file(tmp_path: Path) -> None:
    """The process could never open it again: it held a lock that nobody knew of."""
    path, at, interrupted = tmp_path / "shop.lftj", 0, True
    lftj.Database(PROGRAM, path=path).close()
    while interrupted:
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at, (DURABLE,)) as interrupt:
            lftj.Database(path=path).close()
        interrupted = interrupt.done
        gc.collect()
        lftj.Database(path=path).close()
        at += 1 + at // PART
    assert at > 50
