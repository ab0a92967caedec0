"""An evaluation keeps up the key orders that its joins read, and not those that they read while there were few rows."""

from __future__ import annotations

import pytest

import lftj
from lftj.rounds import component

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
    db = lftj.Database(program, page_rows=4, directory_rows=4)
    db.load("e", EDGES)
    db.load("t", [(-2, -1)])
    db.evaluate()
    assert len(db["t"]) == N * (N - 1) // 2 + 1
    return db


def orders(db: lftj.Database) -> list[tuple[int, ...]]:
    return list(db._state.relations["t"].orders)


def test_a_key_order_that_was_read_while_there_was_a_single_row() -> None:
    """All rounds kept it up, and all transactions after: the closure of dag5k took twice as long, with one fact."""
    assert orders(closed(PROGRAM)) == [(0, 1)]


def test_a_key_order_that_every_round_reads_is_kept() -> None:
    assert orders(closed(BY_EITHER_END)) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("program", [PROGRAM, BY_EITHER_END])
def test_whatever_is_dropped_is_built_again(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads a key order finds it, even if every round drops all that there are."""
    monkeypatch.setattr(component, "OUTGROWN", 2.0)
    db = closed(program)
    before = set(db["t"])
    with db.transaction() as tx:
        tx.erase("e", EDGES[3:4])
    with db.transaction() as tx:
        tx.insert("e", EDGES[3:4])
    assert set(db["t"]) == before
