"""Heads that are evaluated by their maps: several aggregates over one relation, which would be sorted for each of them.

Catches: a relation of many columns that is copied once for each aggregate of a `group by` (TPC-H's query 1 over 540,000
lines: 1.7 s, by maps 0.4), and heads that are evaluated again at the first change all the same.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.join.run import Limits
from lftj.maintain import delta
from lftj.maintain.refresh import refresh
from lftj.maintain.step import KeptHeads

TABLE = ".decl w(k:number, g:number, x:number, y:number, d:number)\n"
SEVERAL = """
    n[g] = count : { w(_, g, _, _, d), d < 5 }.
    s[g] = sum x : { w(_, g, x, _, d), d < 5 }.
    t[g] = sum x * k : { w(k, g, x, _, d), d < 5 }.
    m[g] = mean y : { w(_, g, _, y, d), d < 5 }.
"""
HEADS = ("n", "s", "t", "m")
Row = tuple[Any, ...]


def rows_of(seed: int, n: int) -> list[Row]:
    rng = Random(seed)
    return [(k, rng.randrange(4), rng.randrange(-9, 9), rng.randrange(40), rng.randrange(7)) for k in range(n)]


def by_loops(rows: list[Row]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {name: {} for name in HEADS}
    for g in range(4):
        group = [row for row in rows if row[1] == g and row[4] < 5]
        if group:
            found["n"][g] = len(group)
            found["s"][g] = sum(x for _, _, x, _, _ in group)
            found["t"][g] = sum(k * x for k, _, x, _, _ in group)
            found["m"][g] = sum(y for _, _, _, y, _ in group) / len(group)
    return found


def test_one_pass_evaluates_them_and_the_first_change_is_followed() -> None:
    db, rows = lftj.Database(TABLE + SEVERAL), rows_of(1, 200)
    db.load("w", rows)
    assert {name: dict(db[name]) for name in HEADS} == by_loops(rows)
    assert list(db._relations["w"].orders) == [(0, 1, 2, 3, 4)]  # it was sorted by nothing else
    for turn in range(3):
        come = (1000 + turn, turn, 7, 5, turn)
        with db.transaction() as tx:
            tx.insert("w", [come])
            tx.erase("w", [rows.pop()])
        rows.append(come)
        rows.sort()
        assert {name: dict(db[name]) for name in HEADS} == by_loops(rows)
        told = [part for head in tx.stats["heads"].values() for part in head.get("parts", {"": head}).values()]
        assert {"triggers"} <= {part["strategy"] for part in told} <= {"triggers", "alias", "none"}


def test_a_sum_that_no_column_holds_is_an_error_as_ever() -> None:
    db = lftj.Database(TABLE + SEVERAL)
    db.load("w", [(k, 1, 2**62, 5, 1) for k in range(4)])
    assert dict(db["n"]) == {1: 4}
    for _ in range(2):
        with pytest.raises(EvaluationError):
            list(db["s"])
    with db.transaction() as tx:
        tx.erase("w", [(k, 1, 2**62, 5, 1) for k in range(3)])
    assert dict(db["s"]) == {1: 2**62}


@pytest.mark.parametrize(
    "rules",
    [
        "n[k] = count : { w(k, _, _, _, _) }.  s[k] = sum x : { w(k, _, x, _, _) }.",  # in the order that is there
        "s[g] = sum x : { w(_, g, x, _, _) }.",  # one order
        SEVERAL + "read(g, x) :- w(_, g, x, _, _), w(_, x, g, _, _).",
    ],
)
def test_orders_that_are_there_or_few_are_read(rules: str) -> None:
    """The answers are right either way."""
    db, anew, rows = lftj.Database(TABLE + rules), lftj.Database(TABLE), rows_of(2, 100)
    heads = [head for head in ("n", "s", "t", "m", "read") if head in db]
    anew.rules(rules, maintain=dict.fromkeys(heads, "recompute"))
    for made in (db, anew):
        made.load("w", rows)
    for turn in range(3):
        for head in heads:
            assert sorted(db[head]) == sorted(anew[head])
        for made in (db, anew):
            with made.transaction() as tx:
                tx.erase("w", rows[10 * turn : 10 * turn + 5])


JOINED = ".decl r(a:number, b:number)\n.decl t(b:number, c:number)\n"


@pytest.mark.jit_only
@pytest.mark.parametrize(("degree", "planned"), [(2, 0), (1500, 1)])
def test_deltas_are_planned_only_where_the_join_may_be_far_dearer(
    degree: int, planned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To create a view of a sum over three tables of some rows took 80 ms, of which that was most."""
    calls: list[str] = []
    deltas_of = delta.deltas_of

    def counted(*given: Any) -> Any:
        calls.append("")
        return deltas_of(*given)

    monkeypatch.setattr(delta, "deltas_of", counted)
    db = lftj.Database(JOINED + "s[1] = sum a * c : { r(a, b), t(b, c) }.")
    db.load("r", [(i, i // degree) for i in range(2 * degree)])
    db.load("t", [(i // degree, i) for i in range(2 * degree)])
    kept = KeptHeads(passing=True)
    refresh(db._evaluator, ("s",), lambda _: Limits(), kept=kept)
    groups = [[*range(i * degree, (i + 1) * degree)] for i in range(2)]
    assert list(db["s"]) == [(1, sum(sum(group) ** 2 for group in groups))]
    assert (len(calls), len(kept.heads)) == (planned, planned)  # the maps, where each row meets so many


def test_a_view_of_small_tables_is_made_without_a_plan_of_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlglot")

    def refused(*given: Any) -> Any:
        raise AssertionError("deltas are planned")

    db = lftj.Database()
    db.sql("create table r (a int, b int); create table t (b int, c int)")
    rows = ", ".join(f"({i}, {i % 3})" for i in range(9))
    db.sql(f"insert into r values {rows}; insert into t select b, a from r")
    with monkeypatch.context() as patched:
        patched.setattr(delta, "deltas_of", refused)
        db.sql("create view v as select r.b, sum(r.a * t.c) as x from r join t on r.b = t.b group by r.b")
    assert "triggers" in str(db.explain("v"))
    found = {b: [a for a in range(9) if a % 3 == b] for b in range(3)}
    assert dict(db["v"]) == {b: sum(own) ** 2 for b, own in found.items()}
