"""Closing a file while others are at work, and files that nobody closes.

Catches: a thread that waits for itself or for one that waits for it, a commit that returned and is not in the file, a
lock that is never let go of.
"""

from __future__ import annotations

import errno
import gc
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.durable import database_file
from lftj.errors import DatabaseFileError, TransactionError
from tests.durable.shop import opened

PROGRAM = ".decl e(x:number)"


def ends(work: Callable[[], object]) -> bool:
    """Whether some work comes to its end, in a thread of its own."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    return not thread.is_alive()


def test_the_collector_may_end_a_database_while_another_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which lets go of its lock file, for which it waited for the lock that this thread held."""
    left = lftj.Database(PROGRAM, path=tmp_path / "left.lftj")
    left.on_commit("e", lambda delta, left=left: len(left["e"]))  # a cycle
    gc.collect()  # all else
    opening = os.open

    def opens(*given: Any, **options: Any) -> int:
        gc.collect()
        return opening(*given, **options)

    def work() -> None:
        monkeypatch.setattr(os, "open", opens)
        lftj.Database(PROGRAM, path=tmp_path / "other.lftj").close()
        monkeypatch.setattr(os, "open", opening)

    del left
    assert ends(work)
    lftj.Database(path=tmp_path / "left.lftj").close()


def test_a_callback_may_close_the_file_of_a_commit_that_began_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the checkpoint, which waited for the database, which the commit holds."""
    monkeypatch.setattr(database_file, "TAIL", 0)
    monkeypatch.setattr(database_file, "TAIL_PART", 0)
    db = opened(tmp_path / "shop.lftj")
    db.on_commit("edge", lambda delta: db.close())

    def commit() -> None:
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])

    assert ends(commit)
    with opened(tmp_path / "shop.lftj") as again:
        assert (1, 2) in again["edge"]


@pytest.mark.parametrize("sync", ["off", "normal"])
def test_what_was_committed_while_another_thread_closes_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    """With sync="off", what was committed during the last checkpoint waited for a thread that had ended."""
    db = lftj.Database(PROGRAM, path=tmp_path / "shop.lftj", sync=sync)
    done, told = [(0,)], list[DatabaseFileError]()
    with db.transaction() as tx:
        tx.insert("e", done)

    def commits() -> None:
        try:
            for i in range(1, 4):
                with db.transaction() as tx:
                    tx.insert("e", [(i,)])
                done.append((i,))
        except DatabaseFileError as error:
            told.append(error)

    thread, write = threading.Thread(target=commits, daemon=True), database_file.write

    def slowly(*given: Any) -> set[int]:
        thread.start()
        thread.join(0.2)  # as long as it may: it waits for the end
        return write(*given)

    monkeypatch.setattr(database_file, "write", slowly)
    db.close()
    thread.join(30)
    assert not thread.is_alive()
    assert all("is closed" in str(error) for error in told)
    with lftj.Database(path=tmp_path / "shop.lftj") as again:
        assert sorted(again["e"]) == done


def test_several_threads_may_close(tmp_path: Path) -> None:
    db, failed = opened(tmp_path / "shop.lftj"), list[BaseException]()
    with db.transaction() as tx:
        tx.insert("edge", [(5, 6)])

    def close() -> None:
        try:
            db.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=close, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []
    with opened(tmp_path / "shop.lftj") as again:
        assert (5, 6) in again["edge"]


def test_callbacks_of_a_reader_may_wait_for_who_reads_the_file_and_may_fail(tmp_path: Path) -> None:
    """They were called in the midst of reading the file, and what they raised was told to nobody."""
    path = tmp_path / "shop.lftj"
    with opened(path, retain=None) as db, opened(path, read_only=True, retain=None) as reader:
        seen: list[Any] = []

        def called(delta: Any) -> None:
            file = reader._file
            assert file is not None
            seen.append(file.container.in_transaction())
            seen.append(ends(file.container.close))
            raise RuntimeError("no room")

        reader.on_commit("edge", called)
        with db.transaction() as tx:
            tx.insert("edge", [(5, 6)])
        with pytest.warns(RuntimeWarning, match=r"(?s)a callback of on_commit failed.*no room"):
            reader.refresh()
        assert seen == [False, True]


def test_a_full_disk_lets_go_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who could not write into the lock file held it."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened(tmp_path / "shop.lftj").close()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(DatabaseFileError, match=r"(?s)shop\.lftj-lock tells who writes.*No space left"):
            opened(tmp_path / "shop.lftj")
    opened(tmp_path / "shop.lftj").close()


@pytest.mark.parametrize("sync", ["off", "normal"])
def test_where_no_thread_can_be_started_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    """A thread that had not started was waited for, and what waited for it was never written."""
    path = tmp_path / "shop.lftj"
    opened(path).close()
    db = opened(path, sync=sync)
    monkeypatch.setattr(database_file, "TAIL", 0)
    monkeypatch.setattr(database_file, "TAIL_PART", 0)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def commit(row: tuple[int, int]) -> None:
        with db.transaction() as tx:
            tx.insert("edge", [row])

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        if sync == "off":
            with pytest.raises(RuntimeError, match="can't start new thread"):
                commit((5, 6))  # nobody would write it
        else:
            with pytest.warns(RuntimeWarning, match="no checkpoint was begun"):
                commit((5, 6))
    commit((6, 7))
    expected = sorted(db["edge"])
    assert ((5, 6) in expected) == (sync == "normal")
    db.close()
    with opened(path) as again:
        assert sorted(again["edge"]) == expected


def test_the_source_of_a_load_does_not_close_the_file(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.lftj") as db:

        def rows() -> Iterator[tuple[int, int]]:
            yield (5, 6)
            db.close()

        with pytest.raises(TransactionError, match="`close` inside `load`"):
            db.load("edge", rows())
        db.load("edge", [(5, 6)])
        assert (5, 6) in db["edge"]


def test_a_checkpoint_waits_until_the_log_is_an_eighth_of_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large file one was made for every 16 MiB of the log, and rows from everywhere change nearly all pages."""
    monkeypatch.setattr(database_file, "TAIL", 0)
    with lftj.Database(".decl wide(a:number, b:number)", path=tmp_path / "wide.lftj") as db:
        db.load("wide", [(a, a * 7_919 % 1_000_003) for a in range(60_000)])
        db.checkpoint()
        file = db._file
        assert file is not None

        def commit(first: int, rows: int) -> bool:
            """Whether a commit of so many rows led to a checkpoint."""
            before = file.checkpoint_seq
            with db.transaction() as tx:
                tx.insert("wide", [(first + a, a * 104_729 % 1_000_003) for a in range(rows)])
            if file._checkpointing is not None:
                file._checkpointing.join()
            return file.checkpoint_seq > before

        assert not commit(100_000, 1)
        assert not commit(200_000, 1_000)
        assert commit(300_000, 20_000)
        assert not commit(400_000, 1)
