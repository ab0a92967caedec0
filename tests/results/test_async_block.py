"""`async with db.transaction()`: commits beside the event loop, and cancellation that leaves the state as it was.

Catches: a loop that stands still while a commit is computed, a deadlock between tasks, or between tasks and threads, a
half-made or a cancelled commit that took effect, a lock that is never given back.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.errors import TransactionError
from lftj.transaction import Transaction

PROGRAM = """
    .decl edge(a:number, b:number)  .decl other(x:number)
    two(x, z) :- edge(x, y), edge(y, z).
"""


def free(db: lftj.Database) -> bool:
    """Whether another thread may write."""
    done: list[bool] = []

    def write() -> None:
        with db.transaction() as tx:
            tx.insert("other", [(-1,)])
            tx.erase("other", [(-1,)])
        done.append(True)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(30)
    return bool(done) and db._open is None


class Slow:
    """Commits that take until they are let go, or are stopped."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        computed = Transaction._computed

        def slow(tx: Transaction) -> Any:
            if threading.current_thread().name == "lftj commit":
                self.began.set()
                assert self.go.wait(60)
            return computed(tx)

        patch.setattr(Transaction, "_computed", slow)

    async def has_begun(self) -> None:
        while not self.began.is_set():
            await asyncio.sleep(0.001)


def test_commits_and_tells_what_changed() -> None:
    db = lftj.Database(PROGRAM)
    heard: list[threading.Thread] = []
    db.on_commit("two", lambda delta: heard.append(threading.current_thread()))

    async def main() -> None:
        async with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])
            await asyncio.sleep(0)
            tx.insert("edge", [(2, 3)])
            assert list(tx.preview()["two"].inserted) == [(1, 3)]
            assert list(db["edge"]) == []
        assert list(tx.delta["two"].inserted) == [(1, 3)]
        assert tx.stats["heads"]["two"]["added"] >= 0

    asyncio.run(main())
    assert list(db["two"]) == [(1, 3)]
    assert heard == [threading.current_thread()]
    assert free(db)


def test_other_tasks_run_while_a_commit_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    db, slow = lftj.Database(PROGRAM), Slow(monkeypatch)

    async def commits() -> None:
        async with db.transaction() as tx:
            tx.insert("other", [(1,)])

    async def main() -> None:
        task = asyncio.create_task(commits())
        await slow.has_begun()
        for _ in range(5):
            await asyncio.sleep(0.001)
            assert list(db["other"]) == []
        slow.go.set()
        await task
        assert list(db["other"]) == [(1,)]

    asyncio.run(main())
    assert free(db)


def test_tasks_take_turns() -> None:
    db = lftj.Database(PROGRAM)
    inside = 0

    async def one(x: int) -> None:
        nonlocal inside
        async with db.transaction() as tx:
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.001)
            tx.insert("other", [(x,)])
            inside -= 1

    async def main() -> None:
        await asyncio.gather(*(one(x) for x in range(10)))

    asyncio.run(main())
    assert list(db["other"]) == [(x,) for x in range(10)]


def test_threads_wait_for_the_block_and_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    db, slow = lftj.Database(PROGRAM), Slow(monkeypatch)
    order: list[str] = []

    def write() -> None:
        db.load("other", [(5,)])
        order.append("load")
        with db.transaction() as tx:
            tx.insert("other", [(6,)])
        order.append("thread")

    async def main() -> None:
        async with db.transaction() as tx:
            tx.rules("three(x) :- other(x).")  # a commit that puts the whole program in place
            thread = threading.Thread(target=write)
            thread.start()
            await asyncio.sleep(0.02)
            tx.insert("other", [(4,)])
            asyncio.get_running_loop().call_later(0.05, slow.go.set)
        order.append("task")
        await asyncio.to_thread(thread.join)

    asyncio.run(main())
    assert sorted(order) == ["load", "task", "thread"]
    assert list(db["three"]) == [(4,), (5,), (6,)]
    assert free(db)


@pytest.mark.parametrize("when", ["in the block", "while it is computed", "twice", "at the start"])
def test_cancellation_leaves_the_state_as_it_was(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = lftj.Database(PROGRAM)
    db.load("edge", [(1, 2)])
    before = list(db["two"]), db._state
    slow = Slow(monkeypatch)

    async def commits() -> None:
        async with db.transaction() as tx:
            tx.insert("edge", [(2, 3)])
            if when == "in the block":
                await asyncio.sleep(60)

    async def main() -> None:
        feed = db.changes()
        task = asyncio.create_task(commits())
        if when == "at the start":
            task.cancel()
        elif when == "in the block":
            await asyncio.sleep(0.02)
            task.cancel()
        else:
            await slow.has_begun()
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()  # it waits until the computation has stopped
            if when == "twice":
                task.cancel()
                await asyncio.sleep(0.01)
        slow.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert feed.waiting() == []

    asyncio.run(main())
    assert (list(db["two"]), db._state) == before
    assert free(db)
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
    assert list(tx.delta["two"].inserted) == [(1, 3)]


@pytest.mark.jit_only
def test_cancellation_stops_a_long_commit() -> None:
    """The join of this commit has 64 million rows, and each look at the time would end it."""
    db = lftj.Database(PROGRAM + "three(w, x, y, z) :- edge(w, x), edge(x, y), edge(y, z).")
    keys = np.arange(1500)
    edges = np.stack([np.repeat(keys, 40), np.tile(keys[:40], 1500)], axis=1)
    list(db["three"])
    db.evaluate()

    async def commits() -> None:
        async with db.transaction() as tx:
            tx.insert("edge", edges)

    async def main() -> float:
        task = asyncio.create_task(commits())
        await asyncio.sleep(0.3)
        assert not task.done()
        began = time.process_time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.process_time() - began

    asyncio.run(main())
    assert len(db["edge"]) == len(db["three"]) == 0
    assert free(db)


def test_what_is_raised_discards() -> None:
    db = lftj.Database(PROGRAM + "  half(1 / x) :- other(x).")
    list(db["half"])

    async def raises() -> None:
        async with db.transaction() as tx:
            tx.insert("other", [(1,)])
            raise RuntimeError("the source broke off")

    async def fails() -> None:
        async with db.transaction() as tx:
            tx.insert("other", [(0,)])

    with pytest.raises(RuntimeError, match="broke off"):
        asyncio.run(raises())
    with pytest.raises(lftj.Error, match="half"):
        asyncio.run(fails())
    assert list(db["other"]) == []
    assert free(db)


def test_what_would_wait_for_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    db, slow = lftj.Database(PROGRAM), Slow(monkeypatch)

    async def commits() -> None:
        async with db.transaction() as tx:
            tx.insert("other", [(1,)])

    async def main() -> None:
        async with db.transaction():
            with pytest.raises(TransactionError, match="a transaction inside another"):
                async with db.transaction():
                    pass
            with pytest.raises(TransactionError, match="`load` inside a transaction"):
                db.load("other", [(1,)])
            slow.go.set()
        with db.transaction(), pytest.raises(TransactionError, match="a transaction inside another"):
            async with db.transaction():
                pass
        slow.began.clear()
        slow.go.clear()
        task = asyncio.create_task(commits())
        await slow.has_begun()
        asyncio.get_running_loop().call_later(0.02, slow.go.set)
        await asyncio.sleep(0.01)
        task_lock = threading.Timer(0.05, slow.go.set)
        task_lock.start()
        with pytest.raises(TransactionError, match="`load` inside a transaction"):
            db.load("other", [(2,)])  # from the thread of the loop, which publishes
        await task
        task_lock.join()
        tx = db.transaction()
        async with tx:
            pass
        with pytest.raises(TransactionError, match="the transaction has ended"):
            async with tx:
                pass

    asyncio.run(main())
    assert list(db["other"]) == [(1,)]
    assert free(db)


def test_reads_while_a_commit_is_computed_wait_and_are_right() -> None:
    db = lftj.Database(PROGRAM)

    async def commits(x: int) -> None:
        async with db.transaction() as tx:
            tx.insert("edge", [(x, x + 1)])

    async def main() -> None:
        for x in range(20):
            task = asyncio.create_task(commits(x))
            await asyncio.sleep(0)
            db.query("edge(x, y), edge(y, z)").count()
            await task
            assert db.query("edge(x, y), edge(y, z)").count() == x

    asyncio.run(main())


def test_a_block_whose_loop_is_closed_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that its thread had given up was released once more by the next block, which ran without it."""
    db, slow = lftj.Database(PROGRAM), Slow(monkeypatch)

    async def commits() -> None:
        async with db.transaction() as tx:
            tx.insert("other", [(1,)])

    loop = asyncio.new_event_loop()
    task = loop.create_task(commits())
    loop.run_until_complete(slow.has_begun())
    loop.close()
    (computing,) = (thread for thread in threading.enumerate() if thread.name == "lftj commit")
    slow.go.set()
    computing.join(30)
    task.get_coro().close()
    del task, computing
    gc.collect()
    assert free(db)
    with db.transaction() as tx:
        tx.insert("other", [(2,)])
    assert (2,) in db["other"]
    assert free(db)
