"""How transactions are used and misused: what each mistake is told, other threads, and who is told of commits.

Catches: a transaction that goes on after its end, a lock that is not released, a callback that harms the database, is
called twice, or out of order.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import lftj
from lftj import transaction
from lftj.errors import TransactionError, UnknownRelationError
from lftj.maintain import commit
from lftj.maintain.commit import Commit
from lftj.results import commit_feed, watching
from lftj.transaction import Transaction
from tests.interrupt import Interrupt

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
PROGRAM = ".decl e(x:number, y:number)\ntri(x, y, z) :- e(x, y), e(y, z), e(x, z)."


class Stop(Exception):
    """Raised inside a block."""


def small() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("e", EDGES)
    return db


# Misuse ---------------------------------------------------------------------------------------------------------


def test_before_and_after_the_block() -> None:
    db = small()
    tx = db.transaction()
    with pytest.raises(TransactionError) as caught:
        tx.insert("e", [(1, 1)])
    assert str(caught.value) == (
        "the transaction has not begun\n"
        "  why: changes are collected inside its block\n"
        "  do: write `with db.transaction() as tx:` and use `tx` inside"
    )
    with tx:
        with pytest.raises(TransactionError) as caught:
            tx.delta  # noqa: B018
        assert str(caught.value) == (
            "the transaction has not been committed yet\n"
            "  why: it commits at the end of its block\n"
            "  do: read `tx.delta` after the block, or call `tx.preview()`"
        )
        assert tx.stats == {}
    for use in (lambda: tx.insert("e", [(1, 1)]), lambda: tx.erase("e", []), lambda: tx.rules(""), tx.preview):
        with pytest.raises(TransactionError) as caught:
            use()
        assert str(caught.value) == (
            "the transaction has ended: it was committed\n"
            "  why: a transaction is its block, and no more can be added to it\n"
            "  do: begin another one with `with db.transaction() as tx:`"
        )
    with pytest.raises(TransactionError, match="it was committed"), tx:
        pass
    assert repr(tx) == "lftj.Transaction: committed"
    with pytest.raises(Stop), db.transaction() as tx:
        raise Stop
    with pytest.raises(TransactionError, match="it was discarded"):
        tx.delta  # noqa: B018


def test_one_inside_another() -> None:
    db = small()
    with db.transaction() as tx:
        with pytest.raises(TransactionError) as caught, db.transaction():
            pass
        assert str(caught.value) == (
            "a transaction inside another\n"
            "  why: the block of the first has not ended, and one changes the database at a time\n"
            "  do: use the transaction that is open, or begin this one after its block; where Ctrl-C came at the very "
            "end of the block, delete its name, as in `del tx`"
        )
        with pytest.raises(TransactionError) as caught:
            db.load("e", [(1, 1)])
        assert str(caught.value) == (
            "`load` inside a transaction\n"
            "  why: it would change the database while the transaction may still be discarded\n"
            "  do: use `tx.insert`, or do it outside of the block"
        )
        with pytest.raises(TransactionError) as caught:
            db.rules("x(y) :- e(y, y).")
        assert caught.value.remedy == "use `tx.rules`"
        tx.insert("e", [(7, 7)])
    assert list(tx.delta["e"].inserted) == [(7, 7)]


def test_an_error_does_not_keep_the_transaction_that_an_interrupt_kept_from_its_end() -> None:
    """Shells and notebooks keep the last error: it held the transaction, and so the next one was refused again."""
    db = small()

    def interrupt(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Transaction.__exit__.__code__:
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with db.transaction() as tx:
            tx.insert("e", [(5, 6)])
    except KeyboardInterrupt:
        sys.settrace(before)
    with pytest.raises(TransactionError, match="as in `del tx`") as shown, db.transaction():
        pass
    del tx
    with db.transaction() as tx:
        tx.insert("e", [(7, 8)])
    assert shown.value.__traceback__ is not None
    assert (5, 6) not in db["e"]
    assert (7, 8) in db["e"]


def test_unknown_relations() -> None:
    db = small()
    with db.transaction() as tx, pytest.raises(UnknownRelationError, match="did you mean `tri`"):
        tx.insert("trie", [(1, 2)])
    with pytest.raises(UnknownRelationError, match="did you mean `tri`"):
        tx.delta["trie"]
    with pytest.raises(UnknownRelationError):
        db.on_commit("trie", print)


def test_other_threads_wait() -> None:
    db = small()
    order: list[str] = []

    def other() -> None:
        with db.transaction() as tx:
            order.append("other")
            tx.insert("e", [(8, 8)])

    thread = threading.Thread(target=other)
    with db.transaction() as tx:
        thread.start()
        thread.join(0.1)
        assert list(db["tri"]) == [(1, 2, 3)]
        order.append("first")
        tx.insert("e", [(7, 7)])
    thread.join()
    assert order == ["first", "other"]
    assert list(tx.delta["e"].inserted) == [(7, 7)]
    assert (8, 8) in db["e"]


# Callbacks ------------------------------------------------------------------------------------------------------


def test_callbacks_hear_of_every_commit_in_order() -> None:
    db = small()
    heard: list[Any] = []

    def answer(delta: Any) -> None:
        heard.append(("a", sorted(delta.inserted)))
        if (9, 9) not in db["e"]:
            with db.transaction() as inner:
                inner.insert("e", [(9, 9)])
            heard.append("a ends")

    stop = db.on_commit("e", answer)
    db.on_commit("e", lambda delta: heard.append(("b", sorted(delta.inserted))))
    db.on_commit("tri", lambda delta: heard.append("tri"))
    with db.transaction() as tx:
        tx.insert("e", [(7, 8)])
    assert heard == [("a", [(7, 8)]), "a ends", ("b", [(7, 8)]), ("a", [(9, 9)]), ("b", [(9, 9)]), "tri"]
    assert list(tx.delta["e"].inserted) == [(7, 8)]
    heard.clear()
    stop()
    stop()
    with db.transaction() as tx:
        tx.insert("e", [(1, 2)])
    db.load("e", [(20, 21)])
    assert heard == []
    with db.transaction() as tx:
        tx.erase("e", [(20, 21)])
    assert heard == [("b", [])]


def test_a_callback_that_was_ended_hears_no_more() -> None:
    """Not even of the commit that is being told of, nor of one that a callback made before it was ended."""
    db = small()
    heard: list[Any] = []

    def first(delta: Any) -> None:
        heard.append("first")
        with db.transaction() as inner:
            inner.insert("e", [(9, 9)])
        stop_first()
        stop_last()

    stop_first = db.on_commit("e", first)
    stop_last = db.on_commit("e", lambda delta: heard.append("last"))
    with db.transaction() as tx:
        tx.insert("e", [(7, 8)])
    assert heard == ["first"]
    assert {(7, 8), (9, 9)} <= set(db["e"])


def test_a_callback_that_fails() -> None:
    db = small()
    heard: list[Any] = []

    def failing(delta: Any) -> None:
        raise ValueError("no")

    db.on_commit("e", failing)
    db.on_commit("e", heard.append)
    with (
        pytest.warns(
            RuntimeWarning, match=r"a callback of on_commit failed; the commit stands\n(.*\n)*ValueError: no$"
        ),
        db.transaction() as tx,
    ):
        tx.insert("e", [(7, 7)])
    assert len(heard) == 1
    assert list(tx.delta["e"].inserted) == [(7, 7)]
    assert (7, 7) in db["e"]

    def stopping(delta: Any) -> None:
        raise KeyboardInterrupt

    db.on_commit("tri", stopping)
    db.on_commit("tri", heard.append)
    with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
        tx.insert("tri", [(7, 8, 9)])
    assert len(heard) == 2
    assert (7, 8, 9) in db["tri"]
    assert (7, 8, 9) in tx.delta["tri"].inserted
    other = threading.Thread(target=lambda: db.load("tri", [(1, 1, 1)]))
    other.start()
    other.join(30)
    assert (1, 1, 1) in db["tri"]


def test_a_block_in_a_callback_keeps_other_threads_out() -> None:
    """It let go of the lock of the commit that the callback is of, and others committed in the midst of it."""
    db, seen = lftj.Database(".decl a(x:number)  .decl b(x:number)"), list[object]()

    def other() -> None:
        with db.transaction() as tx:
            tx.insert("b", [(2,)])

    thread = threading.Thread(target=other, daemon=True)

    def called(delta: Any) -> None:
        with db.transaction() as tx:
            tx.insert("b", [(1,)])
        thread.start()
        thread.join(0.2)
        seen.append(sorted(db["b"]))

    db.on_commit("a", called)
    with db.transaction() as tx:
        tx.insert("a", [(1,)])
    thread.join(30)
    assert seen == [[(1,)]]
    assert sorted(db["b"]) == [(1,), (2,)]


@pytest.mark.parametrize("call", ["transaction", "load", "rules", "sql", "apply"])
def test_the_source_of_a_load_changes_nothing(call: str) -> None:
    """What it changed was gone when the load was done."""
    db = lftj.Database(".decl e(x:number)")

    def rows() -> Iterator[tuple[int]]:
        yield (1,)
        if call == "transaction":
            with db.transaction() as tx:
                tx.insert("e", [(2,)])
        elif call == "load":
            db.load("e", [(2,)])
        elif call == "rules":
            db.rules("e(2).")
        elif call == "sql":
            db.sql("insert into e values (2)")
        else:
            db.apply([("e", 1, [(2,)])])

    with pytest.raises(TransactionError, match="inside `load`"):
        db.load("e", rows())
    assert list(db["e"]) == []
    db.load("e", [(3,)])
    with db.transaction() as tx:
        tx.insert("e", [(4,)])
    assert list(db["e"]) == [(3,), (4,)]


@pytest.mark.parametrize("watch", ["feed", "callback"])
def test_a_commit_that_is_interrupted_at_any_line_is_told_once_if_it_stands(watch: str) -> None:
    """What came while feeds were told, or between the publication and that, kept them from being told."""
    places = [transaction.__file__, commit.__file__]
    if watch == "feed":
        places += [watching.__file__, commit_feed.__file__]
    at, interrupted = 0, True
    while interrupted:
        db, seen = lftj.Database(".decl e(x:number)"), list[tuple[int, ...]]()
        db.on_commit("e", lambda delta, seen=seen: seen.extend(delta.inserted))
        feeds = [db.changes("e"), db.changes()] if watch == "feed" else []
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at, tuple(places)) as interrupt, db.transaction() as tx:
            tx.insert("e", [(1,)])
        interrupted, tx = interrupt.done, None
        told = [[row for deltas in feed.waiting() for row in deltas["e"].inserted] for feed in feeds]
        assert told == [list(db["e"])] * len(feeds), at
        assert feeds or seen == list(db["e"]), at
        at += 1
    assert at > 50


def test_an_interrupted_commit_that_stands_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feeds were not told of a commit if an interrupt came between its publication and that."""
    db, seen = lftj.Database(".decl e(x:number)"), list[object]()
    feed = db.changes("e")
    db.on_commit("e", lambda delta: seen.append(list(delta.inserted)))

    def interrupted(_: Commit) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Commit, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
            tx.insert("e", [(1,)])
    with db.transaction() as tx:
        tx.insert("e", [(2,)])
    assert sorted(db["e"]) == [(1,), (2,)]
    assert [list(delta["e"].inserted) for delta in feed.waiting()] == [[(1,)], [(2,)]]
    assert seen == [[(1,)], [(2,)]]
