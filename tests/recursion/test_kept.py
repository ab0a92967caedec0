"""What is kept of a component holds for its contents, from commit to commit, and no longer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import lftj

REACHED = ".decl e(x:number, y:number)  from(1).  from(y) :- from(x), e(x, y)."
CLOSURE = ".decl e(x:number, y:number)  t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(y, z)."


def followed(program: str, head: str, *edges: tuple[int, int]) -> tuple[lftj.Database, Any]:
    """A database that has followed one more edge than it was loaded with, and what it keeps of the head."""
    db = lftj.Database(program)
    db.load("e", edges[:-1])
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("e", edges[-1:])
    return db, db._kept.heads[head]


def test_it_goes_on_from_commit_to_commit() -> None:
    db, kept = followed(REACHED, "from", (1, 2), (2, 3), (7, 8), (3, 4))
    with db.transaction() as tx:
        tx.erase("e", [(2, 3)])
    assert db._kept.heads["from"] is kept
    assert list(db["from"]) == [(1,), (2,)]
    with db.transaction() as tx:
        tx.insert("e", [(2, 7)])
        tx.insert("from", [(9,)])
    assert db._kept.heads["from"] is kept
    assert list(db["from"]) == [(1,), (2,), (7,), (8,), (9,)]


def test_a_commit_that_does_not_happen_leaves_it_as_it_was() -> None:
    db, kept = followed(REACHED, "from", (1, 2), (2, 3))
    top, seen = kept.top, kept.seen
    with suppress(ZeroDivisionError), db.transaction() as tx:
        tx.insert("e", [(3, 4)])
        assert list(tx.preview()["from"].inserted) == [(4,)]
        raise ZeroDivisionError
    assert (kept.top, kept.seen) == (top, seen)
    with db.transaction() as tx:
        tx.insert("e", [(3, 5)])
    assert db._kept.heads["from"] is kept
    assert list(db["from"]) == [(1,), (2,), (3,), (5,)]
    assert kept.top > top


def test_it_does_not_hold_for_what_a_load_has_evaluated() -> None:
    db, kept = followed(REACHED, "from", (1, 2), (2, 3))
    db.load("e", [(3, 4)])
    with db.transaction() as tx:
        tx.insert("e", [(4, 5)])
    assert tx.stats["heads"]["from"]["strategy"] == "rounds"
    assert db._kept.heads["from"] is not kept
    assert list(db["from"]) == [(1,), (2,), (3,), (4,), (5,)]


def test_a_closure_with_facts_of_its_own_is_run_as_it_is_written() -> None:
    """The rounds of the form that a closure is run in are not those of its rules."""
    db, kept = followed(CLOSURE, "t", (1, 2), (2, 3), (3, 4))
    assert not kept.joins.as_written
    with db.transaction() as tx:
        tx.insert("t", [(4, 9)])
    assert tx.stats["heads"]["t"]["strategy"] == "recompute"
    with db.transaction() as tx:
        tx.insert("e", [(9, 10)])
    assert db._kept.heads["t"].joins.as_written
    ahead = {(x, y) for x in range(1, 4) for y in range(x + 1, 5)}
    assert set(db["t"]) == {*ahead, (4, 9), (9, 10), (4, 10)}
