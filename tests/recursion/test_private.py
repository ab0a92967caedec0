"""A component uses up the versions it made itself, and no others."""

from __future__ import annotations

import lftj
from tests.conftest import JIT

PROGRAM = """
.decl r(x:number, y:number)
.decl g(y:number, z:number)
r(x, z) :- r(x, y), g(y, z).
"""
MANY = 300 if JIT else 12


def test_a_key_order_that_an_empty_change_left_is_not_used_up() -> None:
    """It was taken for the evaluation's own: what came next was merged into the pages of the state before."""
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(PROGRAM, maintain={"r": "recompute"})
    db.load("r", [(x, x + 1) for x in range(MANY)])
    db.evaluate()
    before = db._state.relations["r"]
    order = before.order((1, 0))
    was, facts = order.columns().tolist(), sorted(db["r"])
    assert before.content.store.hidden, "its rows have rounds, and are the facts alone"
    with db.transaction() as tx:
        tx.insert("g", [(x + 1, 1_000 + x) for x in range(MANY)])
    assert tx.stats["heads"]["r"]["strategy"] == "recompute"
    assert sorted(db["r"]) == sorted([*facts, *((x, 1_000 + x) for x in range(MANY))])
    order.check()
    assert order.columns().tolist() == was
    assert before.content.columns().T.tolist() == [list(row) for row in facts]
