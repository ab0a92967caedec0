"""Deltas, and traces, that changed rows concern in far more steps than was estimated are given up for an evaluation."""

from __future__ import annotations

import pytest

import lftj
from lftj.evaluate import evaluator, overdue
from lftj.maintain import choose, derivations
from lftj.maintain.cost import RebuildCost

pytestmark = pytest.mark.jit_only

# Rows of vertices with one arc: so a changed row is expected to be joined with one. But vertex 1 has more.
APART = [(1_000_000 + i, 2_000_000 + i) for i in range(70_000)]


def followed(out: int, maintain: str = "auto", threads: int = 1) -> lftj.Database:
    db = lftj.Database(".decl e(a:number, b:number)", threads=threads)
    db.rules("r(x, z) :- e(x, y), e(y, z).", maintain={"r": maintain})
    db.load("e", [*APART, *((1, 10 + i) for i in range(out))])
    assert len(db["r"]) == 0
    for row in ((4_000_000, 4_500_000), (5_000_000, 6_000_000)):  # from here on it is followed
        with db.transaction() as tx:
            tx.insert("e", [row])
    return db


@pytest.mark.parametrize(("arcs", "out", "threads"), [(40, 40_000, 1), (3_000, 500, 2)])
def test_they_are_given_up(arcs: int, out: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 1.5 times the time it came to the same: there were 1,418 steps estimated for 40 rows, and 1,600,080 taken."""
    monkeypatch.setattr(choose, "LOATH", 1e9)  # the estimate keeps no change from being followed
    # Steps are counted, and how many are too many is not what a busy machine, or compiling, made of the evaluation.
    monkeypatch.setattr(RebuildCost, "measured", lambda cost, cpu: cost)
    db = followed(out, threads=threads)
    with db.transaction() as tx:
        tx.insert("e", [(3_000_000 + i, 1) for i in range(arcs)])
    how = tx.stats["heads"]["r"]
    assert how["strategy"] == "recompute"
    assert "deltas were abandoned after" in how["why"]
    assert len(tx.delta["r"].inserted) == len(db["r"]) == arcs * out
    assert (3_000_000, 10) in db["r"]
    with db.transaction() as tx:  # and go on where few derivations change
        tx.insert("e", [(6_000_000, 7_000_000)])
    assert set(tx.delta["r"].inserted) == {(5_000_000, 7_000_000)}
    with db.transaction() as tx:
        tx.erase("e", [(6_000_000, 7_000_000)])
    assert tx.stats["heads"]["r"]["strategy"] == "delta"
    assert set(tx.delta["r"].erased) == {(5_000_000, 7_000_000)}


def test_traces_are_given_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """TPC-H's query 9 turned from deltas to a trace: each 1,000 changed rows took 8 s from then on, deltas 0.01."""
    monkeypatch.setattr(choose, "LOATH", 1e9)
    monkeypatch.setattr(derivations, "MAINTENANCE_STEP", 1e9)
    monkeypatch.setattr(overdue, "FLOOR", 1_000)
    db = lftj.Database(".decl e(a:number, b:number)")
    db.rules("r(x, z) :- e(x, y), e(y, z).", granularity={"r": "node"})
    db.load("e", [*APART, *((1, 10 + i) for i in range(2_000))])
    assert len(db["r"]) == 0
    for i in range(3):
        with db.transaction() as tx:
            tx.insert("e", [(4_000_000 + 2 * i, 4_500_001 + 2 * i)])
    assert tx.stats["heads"]["r"]["strategy"] == "trace"
    arcs = [(3_000_000 + i, 1) for i in range(60)]
    for change, rows in (("insert", 60 * 2_000), ("erase", 0)):
        with db.transaction() as tx:
            getattr(tx, change)("e", arcs)
        assert len(db["r"]) == rows
        assert len(getattr(tx.delta["r"], "inserted" if rows else "erased")) == 60 * 2_000
        if rows:
            assert tx.stats["heads"]["r"]["strategy"] == "recompute"
            assert "its trace was abandoned after 1,000 steps" in tx.stats["heads"]["r"]["why"]


def test_they_go_on_where_they_are_declared() -> None:
    db = followed(40_000, "delta")
    with db.transaction() as tx:
        tx.insert("e", [(3_000_000 + i, 1) for i in range(27)])
    assert tx.stats["heads"]["r"]["strategy"] == "delta"
    assert len(db["r"]) == 27 * 40_000


def test_the_statistics_of_a_transaction_tell_what_was_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their steps come on top of those of the walk that took their place."""
    from bench import plans

    case = plans.case_of(136)  # in the order that estimates choose it takes three times the steps of another one
    monkeypatch.setattr(evaluator, "TRIED", 99)  # so no other one is tried before
    monkeypatch.setattr(overdue, "LATE", 0.1)
    monkeypatch.setattr(overdue, "FLOOR", 16)
    db = lftj.Database(".decl e(a:number, b:number)")
    db.rules(case.rule, maintain={"r": "recompute"})
    db.load("e", [(1_000, 1_000)])
    assert len(db["r"]) == 1
    with db.transaction() as tx:
        tx.insert("e", case.relations["e"].tolist())
    (rule,) = tx.stats["rules"]
    (late,) = db._state.evaluations[db._strata.of("r")[0]].plan.abandoned
    assert rule["abandoned"] == late.steps
    monkeypatch.undo()
    with db.transaction() as tx:
        tx.insert("e", [(1_000, 1_001)])
    (rule,) = tx.stats["rules"]
    assert "abandoned" not in rule
