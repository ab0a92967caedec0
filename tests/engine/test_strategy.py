"""Which way a head follows a change, and why: decided by counts, so the same on every machine."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.maintain import cost
from lftj.maintain.cost import DOUBLED, FOLLOWED, MANY, RebuildCost
from lftj.store.change import Change
from tests.conftest import JIT

PROGRAM = ".decl e(x:number, y:number)  two(x, z) :- e(x, y), e(y, z)."


def ring(n: int) -> np.ndarray:
    nodes = np.arange(n)
    return np.stack([nodes, (nodes + 1) % n], axis=1)


def follow(db: lftj.Database, rows: object) -> tuple[str, str]:
    """(strategy, why) of `two` when `rows` are inserted."""
    with db.transaction() as tx:
        tx.insert("e", rows)
    how = tx.stats["heads"]["two"]
    return how["strategy"], how["why"]


def test_the_first_commit_evaluates_the_second_prepares_and_the_next_ones_follow() -> None:
    """Preparing takes longer than evaluating, and a load throws away what was prepared."""
    db = lftj.Database(PROGRAM)
    n = 50
    for start in (0, 3):
        db.load("e", ring(n) + 1_000 * start)
        steps = []
        for i in range(3):
            with db.transaction() as tx:
                tx.insert("e", [(1_000 * start, 7 + 2 * i + start)])
            steps.append(tx.stats["heads"]["two"]["steps"])
            held = db._kept.heads.get("two")
            assert (held is not None and held.seen is not None and _holds(db, held)) == (i > 0)
        assert steps[0] > n
        assert steps[1] > n
        assert steps[2] < n // 4


def _holds(db: lftj.Database, held: Any) -> bool:
    """Whether what is kept is of the contents as they are."""
    return all(ref() is db._relations[name].content for name, ref in held.seen.items())


@pytest.mark.jit_only
def test_a_bulk_change_is_evaluated_and_the_next_small_one_prepares() -> None:
    """No commit of many like it pays for what the next one throws away."""
    db = lftj.Database()
    db.rules(PROGRAM, granularity={"two": "node"})
    db.load("e", ring(30_000))
    follow(db, [(0, 7)])
    bulk = ring(11_000) + 100_000
    assert "11,000 rows changed where there are 41,001" in follow(db, bulk)[1]
    assert not db._kept.heads
    follow(db, [(0, 9)])
    assert set(db._kept.heads) == {"two"}
    follow(db, [(0, 11)])
    assert len(db["two"]) == 30_000 + 11_000 + 3 * 2


@pytest.mark.jit_only
@pytest.mark.parametrize(("seek", "followed"), [(1.0, False), (1e4, True)])
def test_of_a_bulk_change_deltas_and_evaluating_anew_are_weighed(
    seek: float, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SEEK", "ROW", "OPEN"):
        monkeypatch.setattr(cost, name, seek)
    monkeypatch.setattr(cost, "FARTHEST", 1.0)  # nothing that is measured is believed
    db = lftj.Database(PROGRAM.replace("two(x, z)", "two(x, y, z)"))
    db.load("e", ring(100_000))
    db.evaluate()
    follow(db, [(0, 7)])
    assert "two" in db._kept.heads
    _, why = follow(db, ring(11_000) + 200_000)
    assert ("two" in db._kept.heads) == followed, "more of the kind may follow"
    assert re.fullmatch(r"`e` changed; about [\d.]+ ms for 11,000 changed rows, about [\d,.]+ ms anew", why)
    follow(db, [(0, 9)])
    assert "two" in db._kept.heads
    assert len(db["two"]) == 100_000 + 11_000 + 2 * 2


def test_many_changed_rows_share_pages() -> None:
    """What deltas are expected to take grows with the rows, but less from a part of those that are read on."""
    db = lftj.Database()
    db.rules(PROGRAM, maintain={"two": "delta"})
    db.load("e", ring(5_000 if JIT else 100))
    db.evaluate()
    follow(db, [(0, 7)])
    held, read = db._kept.heads["two"], len(db["e"])

    def estimate(rows: int) -> float:
        some = Change(np.zeros((2, rows), np.int64), np.ones(rows, np.int8))
        return held.compare({"e": some}, db._relations).following - FOLLOWED

    few = max(MANY, read // 100)
    assert estimate(2 * few) / estimate(few) == pytest.approx(DOUBLED, rel=0.05)
    assert estimate(8 * few) / estimate(4 * few) == pytest.approx(DOUBLED)
    assert estimate(few) / estimate(1) == pytest.approx(few)


def test_what_was_followed_for_long_may_have_thinned_out() -> None:
    """Two million triangles, and twenty random changes of a hundred thousand edges later a few hundred."""
    dense = RebuildCost(opens=1_000, seeks=100_000, rows=5_000, stored=5_000)
    assert dense.nanoseconds(5_000, 1.0) > dense.nanoseconds(500, 0.5) > dense.nanoseconds(50, 0.5)
    assert dense.nanoseconds(5_000, 0.1) == dense.nanoseconds(5_000, 1.0), "rows of few partners changed, of many"
    assert dense.nanoseconds(6_000, 2.0) == dense.nanoseconds(5_000, 1.0), "nobody has seen more to do"
    assert RebuildCost().nanoseconds(0, 1.0) == RebuildCost().nanoseconds(10, 1.0) > 0


@pytest.mark.jit_only
def test_a_wish_for_traces_is_one_for_bulk_changes_too() -> None:
    db = lftj.Database()
    db.rules(PROGRAM, maintain={"two": "trace"})
    db.load("e", ring(30_000))
    assert follow(db, [(0, 7)]) == ("trace", "`e` changed; there is no trace of it yet: recorded")
    assert follow(db, ring(11_000) + 100_000) == ("trace", "`e` changed; its rules are declared so")


def test_what_keeps_no_trace() -> None:
    db = lftj.Database()
    db.rules(PROGRAM, maintain={"two": "recompute"})
    db.load("e", ring(10 if JIT else 5))
    assert follow(db, [(0, 3)]) == ("recompute", "`e` changed; its rules are declared so")
    db = lftj.Database(".decl e(x:number, y:number)  .decl on(x:number)  two(x, y) :- e(x, y), on(_).")
    assert follow(db, [(0, 3)]) == ("recompute", "`e` changed; a rule asks whether a relation is empty")


def test_a_record_has_as_many_words_as_its_variables_need() -> None:
    """Kernels had room for 32 words of a record, and rules of more variables had no trace."""
    n = 34
    chain = ", ".join(f"e(v{i}, v{i + 1})" for i in range(n))
    db = lftj.Database()
    db.rules(f".decl e(x:number, y:number)  two(v0, v{n}) :- {chain}.", maintain={"two": "trace"})
    wide = 1 << 62
    db.load("e", [(i * wide // n, (i + 1) * wide // n) for i in range(n)])
    assert follow(db, [(-wide, -wide + 1)])[1] == "`e` changed; there is no trace of it yet: recorded"
    assert list(db["two"]) == [(0, wide)]
    assert follow(db, [(-wide + 1, 0)])[0] == "trace"
    assert list(db["two"]) == [(-wide, wide * (n - 2) // n), (-wide + 1, wide * (n - 1) // n), (0, wide)]


def test_a_changed_row_is_charged_the_joins_of_its_own_relation() -> None:
    """Copies of a relation, as partitions have them, cost what the relation costs: not each the sum of all."""
    rows = ring(10 if JIT else 5)
    one = lftj.Database()
    one.rules(".decl e(x:number, y:number)  two(x, y, z) :- e(x, y), e(y, z).", maintain={"two": "delta"})
    copies = lftj.Database()
    declared = ".decl a(x:number, y:number)  .decl b(x:number, y:number)"
    copies.rules(f"{declared}  two(x, y, z) :- a(x, y), b(y, z).", maintain={"two": "delta"})
    steps = []
    for db, names in ((one, ("e",)), (copies, ("a", "b"))):
        for name in names:
            db.load(name, rows)
        db.evaluate()
        with db.transaction() as tx:
            for name in names:
                tx.insert(name, [(100, 101)])
        held = db._kept.heads["two"]
        change = {name: Change(np.array([[7], [8]]), np.array([1], np.int8)) for name in names}
        found, expected = held.changed(change)
        assert found == len(names)
        steps.append(expected)
        held.learn(change, 1)
        assert held.cost_correction == 1.0, "so few rows teach nothing"
        many = {name: Change(np.tile(change[name].rows, MANY), np.ones(MANY, np.int8)) for name in names}
        held.learn(many, round(3 * held.changed(many)[1]))
        assert held.cost_correction == pytest.approx(3.0, rel=0.01)
        assert held.compare(change, db._relations).rows == found
    assert steps[0] == pytest.approx(steps[1])
