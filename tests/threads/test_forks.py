"""Processes that are forked: they go on where nobody else was at work, and are told where somebody was.

Catches: a child that waits for ever for a thread that it does not have, one that goes on with what that thread had half
done, and one that is refused though nobody was at work.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj import streams
from lftj.durable import writer_lock
from lftj.errors import DatabaseFileError, ForkError
from scantree.locks import LostLockError
from scantree.memory import Arena

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]
PROGRAM = ".decl e(a:number, b:number)  t(x, y) :- e(x, y), e(y, _).  .decl s(word:symbol)"
ROWS = [(1, 2), (2, 3), (3, 1)]


def database(**options: Any) -> lftj.Database:
    db = lftj.Database(PROGRAM, **options)
    db.load("e", ROWS)
    db.load("s", [("a",)])
    return db


def in_child(work: Callable[[], object]) -> str:
    """What `work` gives, or raises, in a forked process; it has ten seconds."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    with open(reads, encoding="utf-8") as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child waited for ever"
    return said


@contextmanager
def elsewhere(inside: AbstractContextManager[Any]) -> Iterator[None]:
    """Another thread is inside of this."""
    begun, ends = threading.Event(), threading.Event()

    def work() -> None:
        with inside:
            begun.set()
            ends.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    try:
        yield
    finally:
        ends.set()
        thread.join()


def written(db: lftj.Database) -> str:
    with db.transaction() as tx:
        tx.insert("e", [(5, 5)])
    return f"wrote {sorted(tx.delta['t'].inserted)}"


def test_a_child_is_told_of_a_transaction_that_was_open_in_another_thread() -> None:
    """It waited for ever for the end of the block."""
    db = database()
    db.evaluate()
    with elsewhere(db.transaction()):
        said = in_child(lambda: written(db))
    assert said == str(f"ForkError: {ForkError('the database')}")
    assert "another thread was at work" in said
    assert "spawn" in said
    assert written(db) == "wrote [(5, 5)]"


@pytest.mark.parametrize(
    "work",
    [
        lambda db: len(db["t"]),
        lambda db: db.load("e", [(7, 7)]),
        lambda db: db.rules("u(x) :- t(x, _)."),
        lambda db: db.query("t(x, y)").count(),
        lambda db: db.snapshot(),
        lambda db: db.branch(),
        lambda db: db.explain(),
        lambda db: db.close() or db.memory(),
    ],
)
def test_a_child_is_told_whatever_it_waits_for(work: Callable[[lftj.Database], object]) -> None:
    db = database()
    with elsewhere(db.transaction()):
        assert in_child(lambda: work(db)).startswith("ForkError: the database ")


def test_a_child_reads_what_was_there_while_another_thread_wrote() -> None:
    db = database()
    db.evaluate()
    snapshot = db.snapshot()
    with elsewhere(db.transaction()):
        assert in_child(lambda: (list(db["t"]), list(db["s"]), len(snapshot["e"]))) == str((ROWS, [("a",)], 3))


def test_a_child_goes_on_where_no_other_thread_was_at_work() -> None:
    db = database()
    snapshot = db.snapshot()
    with elsewhere(threading.Lock()):
        assert in_child(lambda: written(db)) == "wrote [(5, 5)]"
        assert in_child(lambda: snapshot.query("t(x, y)").count()) == "3"
    assert len(db["e"]) == 3


def test_a_child_goes_on_with_a_block_of_the_thread_that_forked() -> None:
    db = database()
    with db.transaction() as tx:
        tx.insert("e", [(8, 8)])

        def ended() -> int:
            tx.__exit__(None, None, None)
            return len(tx.delta["e"].inserted)

        assert in_child(ended) == "1"
        assert in_child(lambda: in_child(ended)) == "1"
    assert len(db["e"]) == 4


def test_a_child_of_a_child_is_told_as_well() -> None:
    db, other = database(), database()
    with elsewhere(db.transaction()):
        assert in_child(lambda: in_child(lambda: written(db))).startswith("ForkError: the database ")
        assert in_child(lambda: in_child(lambda: written(other))) == "wrote [(5, 5)]"


def test_a_child_is_told_of_pages_that_another_thread_was_making() -> None:
    """A key order that is built in a reading thread holds the arena, not the database."""
    db = database()
    db.evaluate()
    with elsewhere(db._arena.lock):
        assert in_child(lambda: written(db)).startswith("ForkError: the pages of the database ")
        assert in_child(lambda: len(db["t"])) == "3"
    with elsewhere(db._symbols._lock):
        assert in_child(lambda: list(db["s"])).startswith("ForkError: the texts of the database ")
        assert in_child(lambda: list(db["e"])) == str(ROWS)


def test_a_child_is_told_of_snapshots_feeds_and_circuits_of_other_threads() -> None:
    db = database()
    snapshot, feed, circuit = db.snapshot(), db.changes(), streams.Circuit()
    with elsewhere(snapshot._lock), elsewhere(feed._changed), elsewhere(circuit._lock):
        assert in_child(lambda: snapshot.query("t(x, y)").count()).startswith("ForkError: the snapshot ")
        assert in_child(feed.waiting).startswith("ForkError: the feed of commits ")
        assert in_child(circuit.step).startswith("ForkError: the circuit ")


def test_an_arena_alone_has_an_error_of_its_own() -> None:
    arena = Arena()
    with elsewhere(arena.lock):
        said = in_child(arena.collect)
    assert said == f"LostLockError: {LostLockError('the pages of the database')}"


@pytest.mark.jit_only
def test_a_child_is_told_of_kernels_that_another_thread_compiled() -> None:
    """numba's lock is one for all: a database of the child's own waited for ever."""
    from numba.core.compiler_lock import global_compiler_lock

    def fresh_kernel() -> None:
        from scantree._jit import kernel

        @kernel
        def doubled(n: int) -> int:
            return n + n

        with global_compiler_lock:
            doubled(2)

    with elsewhere(global_compiler_lock):
        assert in_child(fresh_kernel).startswith("LostLockError: the compiler of kernels ")
        assert in_child(lambda: database()._guarded(fresh_kernel)).startswith("ForkError: the compiler of kernels ")
        assert in_child(lambda: in_child(fresh_kernel)).startswith("LostLockError: the compiler of kernels ")


def test_a_child_is_told_of_a_file_whatever_its_parent_did_with_it(tmp_path: Path) -> None:
    with database(path=tmp_path / "shop.lftj") as db:
        with elsewhere(db._file.container.lock):  # type: ignore[union-attr]
            assert "was opened by process" in in_child(lambda: written(db))
            assert "was opened by process" in in_child(db.checkpoint)
        with elsewhere(db._file._checkpoints):  # type: ignore[union-attr]
            assert in_child(lambda: db.load("e", [(i, i) for i in range(60_000)])).startswith("DatabaseFileError: ")
    with pytest.raises(DatabaseFileError, match="is closed"):
        written(db)


def test_a_child_opens_files_whatever_its_parent_was_opening(tmp_path: Path) -> None:
    """It waited for the thread that took, or released, the lock of some file."""
    with elsewhere(writer_lock._GUARD):
        assert in_child(lambda: len(database(path=tmp_path / "own.lftj")["e"])) == "3"


def test_a_child_is_told_of_an_asynchronous_block_of_its_parent() -> None:
    """Its task does not exist there, though the lock is that of the thread that forked."""
    db = database()

    async def wrote() -> str:
        async with db.transaction() as tx:
            tx.insert("e", [(6, 6)])
        return "wrote"

    async def forks() -> str:
        async with db.transaction():
            return await asyncio.create_task(child())

    async def child() -> str:
        def work() -> str:
            asyncio._set_running_loop(None)
            return asyncio.run(wrote())

        return in_child(work)

    assert asyncio.run(forks()).startswith("ForkError: the database ")
