"""The commits to come, as an iterator and an asynchronous one: each once, in order, exact; and how a feed ends.

Catches: a commit that is lost or told twice, a reader that waits for ever, a feed that keeps a commit waiting, a loss
that nobody is told of.
"""

from __future__ import annotations

import asyncio
import gc
import math
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.errors import ArgumentError, DatabaseFileError, TransactionError
from tests.interrupt import InterruptedCall

PROGRAM = """
    .decl edge(a:number, b:number)  .decl other(x:number)
    two(x, z) :- edge(x, y), edge(y, z).
"""


def commit(db: lftj.Database, name: str, *rows: tuple[int, ...]) -> None:
    with db.transaction() as tx:
        tx.insert(name, list(rows))


def told(feed: Any) -> list[dict[str, list[Any]]]:
    return [{name: list(deltas[name].inserted) for name in deltas} for deltas in feed]


def test_each_commit_once_and_in_order() -> None:
    db = lftj.Database(PROGRAM)
    commit(db, "edge", (0, 1))
    feed = db.changes()
    db.load("edge", [(9, 9)])  # no commit
    commit(db, "edge", (1, 2))
    commit(db, "other", (7,))
    commit(db, "other", (7,))  # changes nothing
    feed.close()
    assert told(feed) == [{"edge": [(1, 2)], "two": [(0, 2)]}, {"other": [(7,)]}]
    assert told(feed) == []
    commit(db, "other", (8,))
    assert feed.waiting() == []


def test_named_relations_only() -> None:
    db = lftj.Database(PROGRAM)
    with db.changes("two", "other") as feed:
        commit(db, "edge", (0, 1))
        commit(db, "edge", (1, 2))
        commit(db, "other", (7,))
        (first, second) = feed.waiting()
        assert told([first, second]) == [{"two": [(0, 2)]}, {"other": [(7,)]}]
        assert list(first["edge"].inserted) == [(1, 2)]  # of the same commit, if somebody asks
        assert not first["other"]
    assert repr(feed) == "lftj.CommitFeed of other, two: 0 waiting, closed"
    with pytest.raises(lftj.Error, match="there is no relation `tow`"):
        db.changes("tow")
    with pytest.raises(lftj.Error, match="`limit` cannot be 0"):
        db.changes(limit=0)


def test_readers_in_other_threads_are_woken() -> None:
    db = lftj.Database(PROGRAM)
    feed = db.changes("other")
    found: list[dict[str, list[Any]]] = []
    reader = threading.Thread(target=lambda: found.extend(told(feed)))
    reader.start()
    for x in range(50):
        commit(db, "other", (x,))
    feed.close()
    reader.join(60)
    assert not reader.is_alive()
    assert found == [{"other": [(x,)]} for x in range(50)]


def test_writers_in_several_threads() -> None:
    db = lftj.Database(PROGRAM)
    feed = db.changes()
    writers = [
        threading.Thread(target=lambda k=k: [commit(db, "other", (k * 100 + i,)) for i in range(20)]) for k in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    feed.close()
    rows = [row for deltas in told(feed) for row in deltas["other"]]
    assert sorted(rows) == list(db["other"])
    for k in range(4):
        assert [x for (x,) in rows if x // 100 == k] == [k * 100 + i for i in range(20)]


def test_a_commit_of_a_callback_comes_after_the_one_it_follows() -> None:
    db = lftj.Database(PROGRAM)
    feed = db.changes()
    db.on_commit("other", lambda delta: commit(db, "edge", (1, 1)))
    commit(db, "other", (7,))
    feed.close()
    assert [set(deltas) for deltas in feed] == [{"other"}, {"edge", "two"}]


def test_a_reader_that_falls_behind_is_told() -> None:
    db = lftj.Database(PROGRAM)
    feed = db.changes(limit=2)
    for x in range(5):
        commit(db, "other", (x,))
    assert [next(feed)["other"].inserted == {(x,)} for x in range(2)] == [True, True]
    with pytest.raises(TransactionError) as caught:
        next(feed)
    assert str(caught.value) == (
        "3 commits of `db.changes` were not kept, and it has ended\n"
        "  why: limit=2 commits were waiting to be read, and commits do not wait for readers\n"
        "  do: read the relations as they are now and begin another `db.changes`; read it sooner, or raise limit="
    )
    assert list(feed) == []
    assert len(db["other"]) == 5


def test_waiting_has_a_time_limit() -> None:
    db = lftj.Database(PROGRAM)
    feed = db.changes()
    assert feed.waiting(0.01) == []
    threading.Timer(0.05, commit, (db, "other", (1,))).start()
    assert told(feed.waiting(60)) == [{"other": [(1,)]}]


@pytest.mark.parametrize("timeout", [math.inf, 1e12])
def test_waiting_may_take_for_ever(timeout: float) -> None:
    """It was an OverflowError of the lock."""
    db = lftj.Database(PROGRAM)
    feed = db.changes()
    threading.Timer(0.05, commit, (db, "other", (1,))).start()
    assert told(feed.waiting(timeout)) == [{"other": [(1,)]}]


@pytest.mark.parametrize("timeout", ["x", None])
def test_a_time_to_wait_is_a_number(timeout: Any) -> None:
    """It was a TypeError."""
    with pytest.raises(ArgumentError, match=r"`timeout` cannot be .*\n  why: it is a time in seconds, a number\n"):
        lftj.Database(PROGRAM).changes().waiting(timeout)


def test_it_ends_with_the_database_and_is_forgotten_with_its_holder() -> None:
    with lftj.Database(PROGRAM) as db:
        feed = db.changes()
        db.changes()
        gc.collect()
        assert len(db._feeds) == 1
        commit(db, "other", (1,))
    assert told(feed) == [{"other": [(1,)]}]
    assert len(db._feeds) == 0


@pytest.mark.parametrize("file", [None, "shop.lftj"])
def test_it_ends_when_the_database_is_closed(tmp_path: Path, file: str | None) -> None:
    db = lftj.Database(PROGRAM, path=None if file is None else tmp_path / file)
    feed, seen = db.changes(), list[Any]()
    reader = threading.Thread(target=lambda: seen.extend(told(feed)), daemon=True)
    reader.start()
    commit(db, "edge", (1, 2))
    db.close()
    reader.join(20)
    assert not reader.is_alive()
    assert seen == [{"edge": [(1, 2)]}]
    if file is not None:
        with pytest.raises(DatabaseFileError, match="is closed"):
            db.changes()


def test_asynchronous_readers() -> None:
    db = lftj.Database(PROGRAM)

    async def read(feed: Any) -> list[int]:
        found = []
        async for deltas in feed:
            found += [x for (x,) in deltas["other"].inserted]
        return found

    async def main() -> None:
        feed, both = db.changes(), db.changes("other")
        readers = [asyncio.create_task(read(feed)), *(asyncio.create_task(read(both)) for _ in range(2))]
        await asyncio.sleep(0)
        writer = threading.Thread(target=lambda: [commit(db, "other", (x,)) for x in range(20)])
        writer.start()
        await asyncio.to_thread(writer.join)
        async with aclosing(feed), both:
            pass
        alone, one, other = await asyncio.gather(*readers)
        assert alone == list(range(20))
        assert sorted(one + other) == list(range(20))  # shared between two readers

    asyncio.run(main())


def test_a_cancelled_reader_loses_nothing() -> None:
    db = lftj.Database(PROGRAM)

    async def main() -> None:
        feed = db.changes()
        reader = asyncio.create_task(anext(feed))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        commit(db, "other", (1,))
        assert list((await anext(feed))["other"].inserted) == [(1,)]
        feed.close()
        with pytest.raises(StopAsyncIteration):
            await anext(feed)

    asyncio.run(main())


def test_a_reader_whose_loop_has_ended_does_not_trouble_commits() -> None:
    db = lftj.Database(PROGRAM)
    feed = db.changes()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(anext(feed))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    commit(db, "other", (1,))
    assert told(feed.waiting()) == [{"other": [(1,)]}]
    del waiting


def test_a_feed_ends_with_its_database() -> None:
    """Its reader waited for ever for the commits of a database that nobody had any more."""
    db = lftj.Database(PROGRAM)
    feed, seen = db.changes(), list[Any]()
    reader = threading.Thread(target=lambda: seen.extend(feed), daemon=True)
    reader.start()
    commit(db, "other", (1,))
    del db
    gc.collect()
    reader.join(30)
    assert told(seen) == [{"other": [(1,)]}]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", ["for", "async for", "waiting"])
def test_an_interrupted_reader_loses_nothing(way: str) -> None:
    """What it had taken from the feed when the interrupt came was gone."""
    db = lftj.Database(PROGRAM)
    feed, found, place, there = db.changes(), list[Any](), 0, True
    while there:
        commit(db, "other", (place,))
        came: list[Any] = []
        try:
            with InterruptedCall(place) as interrupt:
                if way == "waiting":
                    came = feed.waiting()
                elif way == "for":
                    for deltas in feed:
                        came = [deltas]
                        break
                else:
                    feed.__anext__().send(None)
        except KeyboardInterrupt:
            pass
        except StopIteration as end:
            came = [end.value]
        found += told(came)
        place, there = place + 1, interrupt.done
    found += told(feed.waiting())
    assert found == [{"other": [(number,)]} for number in range(place)]
    assert place > 5
