"""How much maintenance looks at: suspects, and the derivations of each, by counts that no machine changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from lftj.recursion import variant_plans
from tests.conftest import JIT

REACH = """
.decl e(x:number, y:number)
.decl b(x:number)
r(x) :- b(x).
r(y) :- r(x), e(x, y).
"""
WIDE = 2_000 if JIT else 12


def erased(db: lftj.Database, row: tuple[int, int]) -> dict[str, Any]:
    """What the statistics say of `r` when an edge goes."""
    with db.transaction() as tx:
        tx.erase("e", [row])
    told: dict[str, Any] = tx.stats["heads"]["r"]
    return told


def test_what_supports_nothing_makes_no_suspect() -> None:
    """An edge back to a row that is older than where it comes from is not why that row is there."""
    db = lftj.Database(REACH)
    db.load("b", [(0,)])
    db.load("e", [(0, 1), (1, 2), (2, 3), (3, 1), (3, 0)])
    db.evaluate()
    for back in ((3, 1), (3, 0)):
        told = erased(db, back)
        assert (told["strategy"], told["examined"], told["returned"]) == ("rounds", 0, 0)
    assert sorted(db["r"]) == [(0,), (1,), (2,), (3,)]
    assert erased(db, (0, 1))["examined"] == 3
    assert sorted(db["r"]) == [(0,)]


def test_a_suspect_is_cleared_by_its_first_derivation() -> None:
    """A target of many edges is looked at through one or two of them, not through all."""
    db = lftj.Database(REACH)
    db.load("b", [(0,)])
    middle = range(1, WIDE + 1)
    db.load("e", [(0, x) for x in middle] + [(x, WIDE + 1) for x in middle])
    db.evaluate()
    told = erased(db, (WIDE // 2, WIDE + 1))
    assert (told["examined"], told["returned"]) == (1, 0)
    assert told["steps"] < 40
    assert len(db["r"]) == WIDE + 2


def test_what_had_no_derivation_is_not_asked_for_one_again() -> None:
    """Rows that go because nothing else derives them are looked at once: they are no candidates for coming back."""
    db = lftj.Database(REACH)
    db.load("b", [(0,)])
    db.load("e", [(0, 1)] + [(1, x) for x in range(2, WIDE + 2)])
    db.evaluate()
    told = erased(db, (0, 1))
    assert (told["examined"], told["returned"]) == (WIDE + 1, 0)
    assert told["steps"] < 6 * WIDE + 100
    assert sorted(db["r"]) == [(0,)]


def test_what_was_derived_from_younger_rows_comes_back() -> None:
    """A row that a longer way derives besides goes with the shorter one, and comes back; what has none stays away."""
    db = lftj.Database(REACH)
    db.load("b", [(0,)])
    db.load("e", [(0, 1), (1, 2), (0, 3), (3, 4), (4, 5), (5, 1), (1, 6), (6, 3)])
    db.evaluate()
    told = erased(db, (0, 1))
    assert (told["examined"], told["returned"]) == (3, 3)
    assert len(db["r"]) == 7
    assert erased(db, (5, 1))["returned"] == 0
    assert sorted(db["r"]) == [(0,), (3,), (4,), (5,)]


def test_an_erased_fact_that_a_rule_derives_too_comes_back() -> None:
    """A fact is not examined when it is erased: what else derives it is asked for afterwards."""
    db = lftj.Database(REACH + "\nr(1). r(2). r(3).")
    db.load("b", [(0,)])
    db.load("e", [(0, 1), (3, 2)])
    db.evaluate()
    with db.transaction() as tx:
        tx.erase("r", [(1,), (3,)])
    assert (tx.stats["heads"]["r"]["examined"], tx.stats["heads"]["r"]["returned"]) == (0, 1)
    assert sorted(db["r"]) == [(0,), (1,), (2,)]


def test_what_a_member_without_columns_supported_comes_back_with_it() -> None:
    """Of the row without columns a walk tells nothing, so that all it may derive is asked for."""
    db = lftj.Database("""
        .decl e(x:number, y:number)
        .decl b(x:number)
        r(x) :- b(x).
        r(y) :- r(x), e(x, y), go().
        s(y) :- r(x), e(x, y).
        r(y) :- s(x), e(x, y).
        go() :- r(1).
        go() :- s(9).
    """)
    db.load("b", [(0,), (1,)])
    db.load("e", [(0, 2), (2, 4), (0, 8), (8, 6), (6, 9)])
    db.evaluate()
    assert len(db["go"]) == 1
    before = {name: sorted(db[name]) for name in ("r", "s")}
    with db.transaction() as tx:
        tx.erase("b", [(1,)])
    assert len(db["go"]) == 1
    assert sorted(db["r"]) == [row for row in before["r"] if row != (1,)]
    assert sorted(db["s"]) == before["s"]
    with db.transaction() as tx:
        tx.erase("e", [(6, 9)])
    assert len(db["go"]) == 0
    assert sorted(db["r"]) == [(0,), (4,), (6,)]
    assert sorted(db["s"]) == [(2,), (8,)]


@pytest.mark.jit_only
def test_a_derivation_is_found_by_looking_where_most_rows_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a row of a dense closure one of the first middle points will do; joined, all are gone through."""
    n, found = 150, {}
    edges = [(x, (x + k) % n) for x in range(n) for k in (*range(1, n // 2), n - 1)]
    for part in (0.0, variant_plans.LOOKED):
        monkeypatch.setattr(variant_plans, "LOOKED", part)
        db = lftj.Database(".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- e(x, y), t(y, z).")
        db.load("e", edges)
        db.evaluate()
        with db.transaction() as tx:
            tx.erase("e", edges[:1])
        told = tx.stats["heads"]["t"]
        (check,) = (join for join in last_joins(db, "t") if join["finds"] == "other support of t(x, z)")
        assert check["rows"] == told["examined"] > 1
        assert list(db._state.relations["t"].orders) == [(0, 1)]
        assert len(db["t"]) == n * n
        assert check["looked_up"] == (["t(y, z)"] if part else [])
        found["".join(check["key_order"])] = check["steps"]
    assert 2 * found["xzy"] < found["xyz"]


@pytest.mark.jit_only
def test_where_few_rows_are_there_looks_take_no_more_steps_than_a_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of the many middle points lead on: whichever way the planner takes, it is not much the longer one."""
    x, y = np.arange(1_000).repeat(40), np.random.default_rng(1).integers(0, 4_000, 40_000)
    middle = np.arange(4_000)
    edges = [np.stack([x, 1_000 + y]), np.stack([1_000 + middle, 5_000 + middle])]
    steps = []
    for part in (variant_plans.LOOKED, 0.0):
        monkeypatch.setattr(variant_plans, "LOOKED", part)
        db = lftj.Database(".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- e(x, y), t(y, z).")
        db.load("e", np.concatenate(edges, axis=1).T)
        db.evaluate()
        with db.transaction() as tx:
            tx.erase("e", [(1_000, 5_000)])
        (check,) = (join for join in last_joins(db, "t") if join["finds"] == "other support of t(x, z)")
        steps.append(check["steps"])
    chosen, joined = steps
    assert chosen <= 1.2 * joined


def last_joins(db: lftj.Database, head: str) -> list[dict[str, Any]]:
    """What the joins of a component did in the last commit."""
    return [join for rule in db.explain(head).data["strata"][0]["rules"] for join in rule["follows_by"]["ran"]]
