"""Transitive closures are run in right-linear form, as long as they have no facts of their own.

Catches: rules that are no closure and are taken for one; rounds of one form that the rules of another go on from; a
closure whose facts are left out of it; what is told of clauses that nobody wrote.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given

import lftj
from lftj.maintain import recompute
from lftj.recursion.closure import right_linear
from tests.conftest import JIT, examples
from tests.engine.programs import seeds

EDGES = ".decl e(x:number, y:number)\n"
BASE = EDGES + "t(x, y) :- e(x, y).\n"
FORMS = {
    "right": "t(x, z) :- e(x, y), t(y, z).",
    "left": "t(x, z) :- t(x, y), e(y, z).",
    "nonlinear": "t(x, z) :- t(x, y), t(y, z).",
}
RING = [(1, 2), (2, 3), (3, 4), (4, 1), (5, 6)]


def database(form: str, **sizes: int) -> lftj.Database:
    db = lftj.Database._sized(BASE + FORMS[form], **sizes)
    db.load("e", RING)
    db.evaluate()
    return db


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(y, z).", "t(x, z) :- e(x, y), t(y, z)."),
        ("t(x, z) :- t(x, y), e(y, z).  t(x, y) :- e(x, y).", "t(x, z) :- e(x, y), t(y, z)."),
        ("t(a, b) :- e(a, b).  t(p, q) :- e(o, q), t(p, o).", "t(p, q) :- e(p, o), t(o, q)."),
        ("t(x, y) :- e(x, y).  t(x, z) :- t(x, y), t(y, z).", "t(x, z) :- e(x, y), t(y, z)."),
        ("t(x, y) :- e(x, y).  t(x, z) :- t(y, z), t(x, y).", "t(x, z) :- e(x, y), t(y, z)."),
    ],
)
def test_what_a_closure_becomes(rules: str, expected: str) -> None:
    clauses = lftj.Database(EDGES + rules)._strata.of("t")
    run = right_linear(clauses)
    assert run is not None
    for written, clause in zip(clauses, run, strict=True):
        assert str(clause) == (expected if len(written.atoms) == 2 else str(written))
        # Errors and statistics name the rule that was written.
        assert (clause.text, clause.span, clause.rule) == (written.text, written.span, written.rule)


@pytest.mark.parametrize(
    "rules",
    [
        "t(x, y) :- e(x, y).  t(x, z) :- e(x, y), t(y, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(y, z), e(x, y).",
        "t(x, y) :- e(x, y).",
        "t(x, y) :- e(y, x).  t(x, z) :- t(x, y), e(y, z).",
        "t(x, x) :- e(x, x).  t(x, z) :- t(x, y), e(y, z).",
        "t(x, y) :- f(x, y).  t(x, z) :- t(x, y), e(y, z).",
        "t(x, y) :- e(x, y).  t(z, x) :- t(x, y), e(y, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(z, y).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(y, x), e(y, z).",
        "t(x, y) :- e(x, y).  t(x, y) :- t(x, y), e(y, y).",
        "t(x, y) :- e(x, y).  t(x, x) :- t(x, y), e(y, x).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, _), e(_, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, 1), e(1, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, x), e(x, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(y, z), x < z.",
        "t(x, y) :- e(x, y), x < y.  t(x, z) :- t(x, y), e(y, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(y, z), !f(x, z).",
        "t(x, y) :- e(x, y), !f(x, y).  t(x, z) :- t(x, y), t(y, z).",
        "t(x, y) :- e(x, y).  t(x, w) :- t(x, y), e(y, z), e(z, w).",
        "t(x, y) :- e(x, y).  t(x, z + 1) :- t(x, y), e(y, z), z < 9.",
        "t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(y, z).  t(x, z) :- t(x, y), t(y, z).",
        "t(x, y) :- e(x, y).  t(x, z) :- e(x, y), e(y, z).",
        ".decl t(x:number, y:number)  t(x, y) :- t(x, y).  t(x, z) :- t(x, y), t(y, z).",
        "t(x, y) :- e(x, y), f(x, y).  t(x, z) :- t(x, y), e(y, z).",
    ],
)
def test_what_is_no_closure_or_is_run_as_it_is(rules: str) -> None:
    db = lftj.Database(EDGES + ".decl f(x:number, y:number)\n" + rules)
    assert right_linear(db._strata.of("t")) is None
    assert "closure" not in str(db.explain())


def closed(edges: set[tuple[int, int]], facts: set[tuple[int, int]], form: str) -> set[tuple[int, int]]:
    """What the rules of a form derive, by their definition."""
    found = edges | facts
    while True:
        first, last = (edges if form == "right" else found), (edges if form == "left" else found)
        more = {(x, z) for x, y in first for a, z in last if a == y} - found
        if not more:
            return found
        found |= more


@examples(60, 3)
@given(seeds)
def test_the_forms_beside_each_other(rng: Random) -> None:
    """Alike without facts, each by its own rules with some, which come and go, or are loaded."""
    n, sizes = (7 if JIT else 4), {"page_rows": 4, "directory_rows": 4}
    databases = {form: database(form, **sizes) for form in FORMS}
    edges, facts = set(RING), set[tuple[int, int]]()

    def some(most: int) -> set[tuple[int, int]]:
        return {(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randrange(most))}

    for _ in range(8 if JIT else 3):
        came, went = some(4), some(4) | set(rng.sample(sorted(edges), min(2, len(edges))))
        given = some(3) if rng.random() < 0.3 else set()
        taken = facts if rng.random() < 0.3 else set()
        loaded = rng.random() < 0.2
        if loaded:
            went, taken = set(), set()
        before = {form: closed(edges, facts, form) for form in FORMS}
        edges = (edges - went) | came
        facts = (facts - taken) | given
        for form, db in databases.items():
            after = closed(edges, facts, form)
            if loaded:
                db.load("e", sorted(came))
                db.load("t", sorted(given))
            else:
                with db.transaction() as tx:
                    tx.erase("e", sorted(went))
                    tx.insert("e", sorted(came))
                    tx.erase("t", sorted(taken))
                    tx.insert("t", sorted(given))
                assert set(tx.delta["t"].inserted) == after - before[form]
                assert set(tx.delta["t"].erased) == before[form] - after
            assert set(db["t"]) == after
            assert_founded(db, edges, facts, form)


def assert_founded(db: lftj.Database, edges: set[tuple[int, int]], facts: set[tuple[int, int]], form: str) -> None:
    """Every row has a derivation from rows of smaller rounds, by the rules that are said to be run."""
    content = db._evaluator.relations["t"].content
    noted = db._evaluator.rounds.of([content])
    assert noted is not None
    assert noted.as_written or (form != "right" and not facts)
    run = form if noted.as_written else "right"
    columns = content.columns()
    rounds = dict(zip(zip(*columns.tolist(), strict=True), content.values_of(columns)[0].tolist(), strict=True))
    for (x, z), number in rounds.items():
        older = {row for row, other in rounds.items() if other < number}
        first, last = (edges if run == "right" else older), (edges if run == "left" else older)
        assert number <= noted.top
        assert (x, z) in facts or (x, z) in edges or any((x, y) in first and (y, z) in last for _, y in {*first}), (
            f"{(x, z)} of round {number}, run as {run}"
        )


@pytest.mark.parametrize("form", ["left", "nonlinear"])
def test_facts_change_the_form(form: str) -> None:
    """Once, when they come; it stays as it is when they go, until it is evaluated anew for another reason."""
    db = database(form)
    steps = []
    for verb, name in (("erase", "e"), ("insert", "t"), ("insert", "e"), ("erase", "t"), ("erase", "e")):
        with db.transaction() as tx:
            getattr(tx, verb)(name, [(2, 3)])
        told = tx.stats["heads"]["t"]
        steps.append((told["strategy"], "closure" in str(db.explain())))
        if name == "t" and verb == "insert":
            why = "its facts changed; `t` has facts: its rules are run as they are written from here on"
            assert told["why"] == why
    assert steps == [("rounds", True), ("recompute", False), *[("rounds", False)] * 3]
    db.load("e", RING)
    assert "closure" in str(db.explain())
    assert len(db["t"]) == 17


@pytest.mark.parametrize("form", ["left", "nonlinear"])
def test_a_closure_with_facts_from_the_beginning_is_run_as_it_is_written(form: str) -> None:
    db = lftj.Database(BASE + FORMS[form] + "\nt(6, 9).")
    assert "closure" not in str(db.explain())
    db.load("e", RING)
    assert set(db["t"]) == closed(set(RING), {(6, 9)}, form)
    with db.transaction() as tx:
        tx.insert("e", [(9, 10)])
    assert tx.stats["heads"]["t"]["strategy"] == "rounds"
    assert set(db["t"]) == closed({*RING, (9, 10)}, {(6, 9)}, form)


def test_a_transaction_that_fails_leaves_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database("nonlinear")

    def fails() -> None:
        with db.transaction() as tx:
            tx.insert("t", [(6, 7)])
            assert (1, 4) not in tx.preview()["t"].inserted
            assert (5, 7) in tx.preview()["t"].inserted
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    monkeypatch.setattr(recompute, "evaluate", None)
    with db.transaction() as tx:
        tx.insert("e", [(6, 7)])
    assert tx.stats["heads"]["t"]["strategy"] == "rounds"
    assert set(tx.delta["t"].inserted) == {(6, 7), (5, 7)}


def test_all_forms_take_the_same_steps() -> None:
    told = []
    for form in FORMS:
        db = database(form)
        with db.transaction() as tx:
            tx.erase("e", [(3, 4)])
            tx.insert("e", [(4, 5)])
        told.append({key: value for key, value in tx.stats["heads"]["t"].items() if key != "seconds"})
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("form", ["left", "nonlinear"])
def test_what_is_told(form: str) -> None:
    """Rules are named as they are written, their joins as they are run."""
    db = database(form)
    with db.transaction() as tx:
        tx.erase("e", [(3, 4)])
    base, step = tx.stats["rules"]
    assert (base["rule"], step["rule"]) == ("t(x, y) :- e(x, y).", FORMS[form])
    assert base["steps"] > 0
    assert step["steps"] > 0
    lines = str(db.explain()).splitlines()
    assert f"  {FORMS[form]}" in lines
    assert "    what comes with t(y, z)" in lines
    assert "    a transitive closure, run as t(x, z) :- e(x, y), t(y, z)." in lines
    assert any(line.startswith("    last commit, what goes with the loss of e(x, y): ") for line in lines)
    (stratum,) = db.explain().data["strata"]
    rule: dict[str, Any] = stratum["rules"][1]
    assert (rule["rule"], rule["clause"]) == (FORMS[form], FORMS[form])
    assert stratum["upkeep"]["closure"] == "t(x, z) :- e(x, y), t(y, z)."
    assert database("right").explain().data["strata"][0]["upkeep"]["closure"] is None


def test_rules_that_come_and_go() -> None:
    """One more rule, and it is no closure; with others it is one again."""
    db = database("left")
    with db.transaction() as tx:
        tx.rules("t(y, x) :- t(x, y).")
    assert (6, 5) in db["t"]
    assert "closure" not in str(db.explain())
    with db.transaction() as tx:
        tx.erase("e", [(2, 3)])
    assert tx.stats["heads"]["t"]["strategy"] == "rounds"
    assert {(5, 6), (6, 5), (6, 6)} <= set(db["t"])
    assert (5, 5) not in db["t"], "edges are followed in their direction"
    with db.transaction() as tx:
        tx.remove_rules("t")
    with db.transaction() as tx:
        tx.rules("t(x, y) :- e(x, y).  " + FORMS["nonlinear"])
    assert "closure" in str(db.explain())
    assert set(db["t"]) == closed({*RING} - {(2, 3)}, set(), "nonlinear")
    with db.transaction() as tx:
        tx.insert("e", [(2, 3)])
    assert tx.stats["heads"]["t"]["strategy"] == "rounds"
    assert len(db["t"]) == 17
