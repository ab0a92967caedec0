"""Snapshots: readers in other threads see committed states and nothing else, whatever the writer does.

Catches: a state seen half, a snapshot that follows the database, readers that wait for a writer or block it, key orders
that two threads build into one relation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError, UnknownRelationError
from tests.conftest import JIT

PROGRAM = """
.decl n(x:number)
.decl name(x:number, s:symbol)
pair(x, y) :- n(x), n(y).
named(s, y) :- pair(x, y), name(x, s).
"""
ROUNDS = 60 if JIT else 4


def database() -> lftj.Database:
    db = lftj.Database._sized(PROGRAM, page_rows=4, directory_rows=4)
    db.load("n", [(0,)])
    db.load("name", [(i, f"s{i}") for i in range(6)])
    return db


def test_a_snapshot_stays() -> None:
    db = database()
    snapshot = db.snapshot()
    with db.transaction() as tx:
        tx.insert("n", [(1,)])
        tx.rules("late(x) :- n(x).")
        inside = db.snapshot()
    db.load("n", [(2,)])
    for early in (snapshot, inside):
        assert list(early) == ["n", "name", "pair", "named"]
        assert list(early["pair"]) == [(0, 0)]
        assert list(early["named"]) == [("s0", 0)]
        assert early.query('n(x), name(x, s), s != "s1"').count() == 1
        assert list(early.query('n(x), name(x, s), t = cat(s, "!")')) == [(0, "s0", "s0!")]
        assert "pair" in early
        assert "late" not in early
    assert len(db["pair"]) == 9
    assert len(db.snapshot()["late"]) == 3
    with pytest.raises(UnknownRelationError, match="did you mean `pair`"):
        snapshot["pairs"]
    assert repr(snapshot) == (
        "lftj.Snapshot: 4 relations\n"
        "  n(x:number)  1 row\n"
        "  name(x:number, s:symbol)  6 rows\n"
        "  pair(x:number, y:number)  1 row\n"
        "  named(s:symbol, y:number)  1 row"
    )
    assert str(snapshot.query("pair(x, y), n(y)").explain())


def run(db: lftj.Database, readers: list[Callable[[Random], None]], write: Callable[[int], None]) -> None:
    failures: list[BaseException] = []
    done = threading.Event()
    rounds = [0] * len(readers)

    def loop(i: int) -> None:
        rng = Random(i)
        try:
            while not done.is_set() or not rounds[i]:
                readers[i](rng)
                rounds[i] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(len(readers))]
    for thread in threads:
        thread.start()
    try:
        for i in range(ROUNDS):
            write(i)
            if failures:
                break
    finally:
        done.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    assert all(rounds)


def consistent(read: Callable[[str], Any]) -> None:
    """The relations of one state: what is derived fits the facts."""
    keys = [x for (x,) in read("n")]
    assert len(keys) % 2 == 1  # the writer inserts and erases in pairs
    assert list(read("pair")) == [(x, y) for x in keys for y in keys]
    assert set(read("named")) == {(f"s{x}", y) for x in keys if x < 6 for y in keys}


def test_readers_see_committed_states_only() -> None:
    db = database()
    shared: list[Any] = [db.snapshot()]

    def by_snapshot(rng: Random) -> None:
        snapshot = db.snapshot()
        for _ in range(2):
            consistent(snapshot.__getitem__)

    def by_relation(rng: Random) -> None:
        assert len(db["n"]) % 2 == 1
        assert len(db["pair"]) in {n * n for n in range(1, 9, 2)}

    def write(i: int) -> None:
        with db.transaction() as tx:
            (tx.insert if i % 6 < 3 else tx.erase)("n", [(2 * (i % 3) + 1,), (2 * (i % 3) + 2,)])
            tx.insert("name", [(100 + i, f"new{i}")])
            tx.preview()
        shared[0] = db.snapshot()
        if i % 7 == 6:
            with db.transaction() as tx:
                tx.erase("name", [(100 + i, f"new{i}")])

    def names(rng: Random) -> None:
        snapshot = db.snapshot()
        assert snapshot.query("name(x, s), x < 6").count() == 6

    def ask(rng: Random) -> None:
        """All threads query one snapshot, which builds its key orders; new symbols come up meanwhile."""
        snapshot = shared[0]
        n = len(snapshot["n"])
        assert snapshot.query("pair(x, y), n(x)", order=rng.choice((("x", "y"), ("y", "x")))).count() == n * n
        text = f"t{rng.randrange(1000)}"
        assert snapshot.query(f'name(x, s), x < 6, t = cat(s, "{text}")').count() == 6
        assert snapshot.query(f'name(x, "s{rng.randrange(6)}")').count() == 1

    run(db, [by_snapshot, by_relation, names, ask], write)
    consistent(db.__getitem__)
    db._symbols.check()


def test_a_reader_does_not_wait_for_a_writer() -> None:
    db = database()
    len(db["named"])
    seen: list[int] = []

    def read() -> None:
        seen.append(len(db["pair"]))
        seen.append(len(db.snapshot()["pair"]))

    with db.transaction() as tx:
        tx.insert("n", [(1,)])
        thread = threading.Thread(target=read)
        thread.start()
        thread.join(30)
        assert seen == [1, 1]
    assert len(db["pair"]) == 4


def test_what_a_snapshot_holds_goes_with_it() -> None:
    db = database()
    # The first transaction records traces, which stay.
    with db.transaction() as tx:
        tx.insert("n", [(1,)])
    with db.transaction() as tx:
        tx.erase("n", [(1,)])
    before = db.memory()["total"]["pages"]
    for i in range(1, 20):
        snapshot = db.snapshot()
        snapshot.query("pair(x, y), n(x)", order=("y", "x")).count()
        with db.transaction() as tx:
            tx.insert("n", [(i,)])
        with db.transaction() as tx:
            tx.erase("n", [(i,)])
    del snapshot
    assert db.memory()["total"]["pages"] == before


LARGE = 2**63 - 1
SUMS = """
    .decl e(x:number, v:number)
    s[x] = sum v : { e(x, v) }.
    t(x) :- u(x), !(s[x] = v, v > 3).
    u(x) :- e(x, _).
    p[] = 10 / (x - 3) :- e(x, _).
"""


def test_what_has_no_value_keeps_no_other_relation_from_a_snapshot() -> None:
    """Taking it raised."""
    db = lftj.Database(SUMS)
    db.load("e", [(1, 2), (1, LARGE)])
    snapshot = db.snapshot()
    assert (list(snapshot["u"]), list(snapshot["p"])) == ([(1,)], [(-5,)])
    assert list(snapshot.query("u(x), p(v)")) == [(1, -5)]
    assert list(snapshot.sql("select * from u")) == [(1,)]
    assert "s(x:number) -> c1:number  not evaluated" in repr(snapshot)
    assert "not evaluated" in snapshot._repr_html_()
    with db.transaction() as tx:
        tx.erase("e", [(1, LARGE)])
    for name in ("s", "t"):
        for _ in range(2):
            with pytest.raises(EvaluationError, match="sum of a group is out of the range"):
                len(snapshot[name])
            with pytest.raises(EvaluationError, match="sum of a group is out of the range"):
                snapshot.query(f"{name}(x{', _' * (name == 's')})").count()
    assert (list(db["s"]), list(db["t"]), list(db.snapshot()["s"])) == ([(1, 2)], [(1,)], [(1, 2)])
    with pytest.raises(EvaluationError), db.transaction() as tx:
        tx.insert("e", [(1, LARGE)])
    db.load("e", [(1, LARGE)])
    with pytest.raises(EvaluationError):
        db.evaluate()


@pytest.mark.parametrize("opened_again", [False, True])
def test_what_had_no_value_keeps_no_other_relation_from_a_moment(tmp_path: Path, opened_again: bool) -> None:
    db = lftj.Database(SUMS, path=tmp_path / "sums.lftj", retain=None)
    with db.transaction() as tx:
        tx.insert("e", [(1, 2)])
    before = db.seq
    db.load("e", [(1, LARGE), (4, 4)])
    between = db.seq
    with db.transaction() as tx:
        tx.erase("e", [(1, LARGE)])
    after = db.seq
    if opened_again:
        db.close()
        db = lftj.Database(path=tmp_path / "sums.lftj")
    for moment, rows in ((before, [(1, 2)]), (after, [(1, 2), (4, 4)])):
        assert list(db.at(moment)["s"]) == rows
    then = db.at(between)
    assert (list(then["u"]), list(then["e"])) == ([(1,), (4,)], [(1, 2), (1, LARGE), (4, 4)])
    with pytest.raises(EvaluationError, match="sum of a group is out of the range"):
        len(then["t"])
    db.close()
