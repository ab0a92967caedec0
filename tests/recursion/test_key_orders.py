"""Which key orders of a recursive relation follow from round to round: those that its joins read.

Catches: key orders that were read while there were few rows, or by a query once, and are kept up by all rounds since;
one that is not what the content is when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lftj
from lftj.recursion import fixpoint
from lftj.store.stored import LaggingOrder
from scantree.memory import ArenaFullError
from scantree.version import Store, Version
from tests.engine.histories import check_stored

PROGRAM = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)
t(x, y) :- e(x, y).
t(x, z) :- e(x, y), t(y, z).
"""
BY_EITHER_END = PROGRAM.replace("e(x, y), t(y, z)", "t(x, y), t(y, z)")
N = 60
EDGES = [(x, y) for x in range(N) for y in range(x + 1, min(x + 6, N))]


def closed(program: str) -> lftj.Database:
    """The closure of a graph without cycles, with a fact of its own that hangs on to neither end."""
    db = lftj.Database._sized(program, page_rows=4, directory_rows=4)
    db.load("e", EDGES)
    db.load("t", [(-2, -1)])
    db.evaluate()
    assert len(db["t"]) == N * (N - 1) // 2 + 1
    return db


def orders(db: lftj.Database) -> list[tuple[int, ...]]:
    return list(db._state.relations["t"].orders)


def erase(db: lftj.Database, *edges: tuple[int, int]) -> int:
    """How many rows of `t` go with these edges."""
    with db.transaction() as tx:
        tx.erase("e", edges)
    assert tx.stats["heads"]["t"]["strategy"] == "rounds"
    return len(tx.delta["t"].erased)


def test_a_key_order_that_was_read_while_there_was_a_single_row() -> None:
    """All rounds kept it up, and all transactions after: the closure of dag5k took twice as long, with one fact."""
    assert orders(closed(PROGRAM)) == [(0, 1)]


def test_a_key_order_that_every_round_reads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not built anew in every round."""
    made, build = list[int](), Store.reorder

    def counted(self: Store, version: Version, columns: tuple[int, ...]) -> Version:
        made.append(len(version))
        return build(self, version, columns)

    monkeypatch.setattr(Store, "reorder", counted)
    db = lftj.Database._sized(BY_EITHER_END, page_rows=4, directory_rows=4)
    db.load("e", [(x, x + 1) for x in range(N)])
    db.load("t", [(-2 - x, -1 - x) for x in range(N)])
    db.evaluate()
    assert orders(db) == [(0, 1), (1, 0)]
    assert len(made) < db._evaluator.rounds.of([db._state.relations["t"].content]).top, made


@pytest.mark.parametrize("program", [PROGRAM, BY_EITHER_END])
def test_whatever_is_dropped_is_built_again(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads a key order finds it, even if every round drops all that there are."""
    monkeypatch.setattr(fixpoint, "OUTGROWN", 2.0)
    db = closed(program)
    before = set(db["t"])
    out = [(x, y) for x, y in EDGES if x == 3]
    erase(db, *out)
    assert set(db["t"]) == {(x, y) for x, y in before if x != 3}
    with db.transaction() as tx:
        tx.insert("e", out)
    assert set(db["t"]) == before
    check_stored(db._state.relations["t"])


def unplanned() -> lftj.Database:
    """A chain's closure, as it was evaluated."""
    db = lftj.Database._sized(PROGRAM, page_rows=4, directory_rows=4)
    db.load("e", [(x, x + 1) for x in range(N)])
    db.evaluate()
    return db


def chain() -> lftj.Database:
    """A chain's closure, the joins of which are planned before somebody asks for the other key order."""
    db = unplanned()
    erase(db, (0, 1))
    assert orders(db) == [(0, 1)]
    db._state.relations["t"].order((1, 0))
    return db


def built(db: lftj.Database) -> Any:
    """What there is of the other key order."""
    return db._state.relations["t"]._orders[1, 0]


def test_what_no_round_asks_for_waits_for_the_last() -> None:
    """A query by the second column was paid for in every round of all transactions after it."""
    db = chain()
    before = built(db)
    gone = erase(db, (5, 6))  # in five rounds: rows of 5, of 4, ...
    held = built(db)
    assert isinstance(held, LaggingOrder)
    assert held.version is before
    assert (len(held.changes), held.rows) == (1, gone)
    check_stored(db._state.relations["t"])
    # That has asked for it, and the next transaction finds it as it is now.
    before = built(db)
    erase(db, (N - 2, N - 1))
    assert built(db).version is before


def test_what_comes_back_in_another_round_is_no_change() -> None:
    db = closed(PROGRAM)
    erase(db, (9, 10))
    db._state.relations["t"].order((1, 0))
    with db.transaction() as tx:
        tx.erase("e", [(3, 8), (4, 8), (5, 8)])
    assert tx.stats["heads"]["t"]["returned"] > 0
    held = built(db)
    assert isinstance(held, LaggingOrder)
    assert held.rows == len(tx.delta["t"].erased)
    check_stored(db._state.relations["t"])


@pytest.mark.parametrize("make", [unplanned, lambda: closed(PROGRAM)], ids=["sparse", "dense"])
def test_joins_do_without_a_key_order_that_is_there_for_others(make: Callable[[], lftj.Database]) -> None:
    """They took what a query had built, and it was kept up from round to round since."""
    db = make()
    db._state.relations["t"].order((1, 0))
    erase(db, (3, 4), (3, 5))
    ((_, joins),) = db._evaluator.rounds.joins.items()
    read = {order for join in joins._made.values() for order in join.orders}
    assert ("t", (0, 1)) in read
    assert ("t", (1, 0)) not in read
    check_stored(db._state.relations["t"])


def tails(db: lftj.Database, n: int) -> None:
    """So many transactions, each of which takes rows of the closure away."""
    for x in range(n):
        assert erase(db, (N - x - 1, N - x)) > 0


def test_one_that_lags_too_far_follows() -> None:
    db = chain()
    before = built(db)
    tails(db, 3)  # by so many changes tests let a key order lag
    assert built(db).version is before
    erase(db, (5, 6))
    assert not isinstance(built(db), LaggingOrder)
    check_stored(db._state.relations["t"])


def test_what_rounds_ask_for_follows_with_them() -> None:
    db = closed(BY_EITHER_END)
    erase(db, (3, 4), (3, 5), (3, 6))
    assert not isinstance(built(db), LaggingOrder)
    check_stored(db._state.relations["t"])


def test_without_the_memory_to_follow_a_key_order_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    db = chain()
    tails(db, 3)
    late, catch_up = built(db).version, LaggingOrder.catch_up

    def full(self: LaggingOrder, columns: tuple[int, ...]) -> Any:
        if self.version is late and self.changes:
            raise ArenaFullError(2, 1)
        return catch_up(self, columns)

    with monkeypatch.context() as patch:
        patch.setattr(LaggingOrder, "catch_up", full)
        erase(db, (5, 6))
    assert orders(db) == [(0, 1)]
    check_stored(db._state.relations["t"])
