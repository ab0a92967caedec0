"""What is asked for the rules of a head: by head, by rule, in a transaction; what is refused; what the commit tells.

Catches: an option that a commit or a removed rule loses, that reaches rules it was not given for, that changes answers.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import lftj
from lftj.errors import ArgumentError, BuilderError, UnknownRelationError
from lftj.language import parse

RULES = """
.decl e(x:number, y:number)
tri(x, y, z) :- e(x, y), e(y, z), e(x, z).
two(x, z) :- e(x, y), e(y, z).
"""
EDGES = [(i, j) for i in range(8) for j in range(8) if (3 * i + j) % 4 and i != j]


def database(**options: Any) -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=2)
    db.rules(RULES, **options)
    db.load("e", EDGES)
    return db


def strategies(db: lftj.Database, row: tuple[int, int]) -> dict[str, str]:
    """How each head followed the insertion of a row."""
    with db.transaction() as tx:
        tx.insert("e", [row])
    edges = set(db["e"])
    assert set(db["tri"]) == {(x, y, z) for x, y in edges for v, z in edges if v == y and (x, z) in edges}
    assert set(db["two"]) == {(x, z) for x, y in edges for v, z in edges if v == y}
    return {head: told["strategy"] for head, told in tx.stats["heads"].items()}


def granularities(db: lftj.Database, head: str) -> set[int]:
    held = db._kept.heads[head]
    return {site.granularity for trace in held.traces for site in trace.trace_plan.sites}


def test_ways_to_maintain() -> None:
    db = database(maintain={"tri": "recompute", "two": "trace"})
    assert strategies(db, (0, 50)) == {"tri": "recompute", "two": "trace"}
    assert set(db._kept.heads) == {"two"}
    for row in ((50, 51), (51, 0)):
        assert strategies(db, row) == {"tri": "recompute", "two": "trace"}
    assert not [key for key in db.memory()["tri"] if key.startswith("trace")]
    assert db._state.maintain == {1: "recompute", 2: "trace"}
    with db.transaction() as tx:
        tx.remove_rules("tri")
    assert db._state.maintain == {2: "trace"}


def test_ways_to_maintain_the_program_of_a_new_database() -> None:
    """`maintain` was a plain TypeError there."""
    db = lftj.Database(RULES, maintain={"two": "recompute"})
    assert db._state.maintain == {2: "recompute"}
    with pytest.raises(UnknownRelationError):
        lftj.Database(RULES, maintain={"too": "recompute"})
    with pytest.raises(ArgumentError, match="no program is given"):
        lftj.Database(maintain={"two": "recompute"})


def test_a_head_without_rules_keeps_no_trace() -> None:
    db = database(maintain={"tri": "trace", "two": "delta"})
    strategies(db, (0, 50))
    assert db.memory()["tri"]["trace: e[0,1] at z"] > 0
    with db.transaction() as tx:
        tx.remove_rules("tri")
    assert set(db.memory()["tri"]) == {"x, y, z"}
    assert set(db._kept.heads) == set(db._kept.reports) == {"two"}


def test_auto_is_no_wish() -> None:
    db = database(maintain={"tri": "auto"}, granularity={"tri": "auto"})
    assert (db._state.maintain, db._state.granularity) == ({}, {})


@pytest.mark.parametrize(("granularity", "kept"), [("node", {0, 1}), ("interval", {0, 3})])
def test_granularities(granularity: str, kept: set[int]) -> None:
    db = database(granularity={"tri": granularity}, maintain={"tri": "trace"})
    for row in ((0, 50), (50, 51), (0, 51)):
        strategies(db, row)
        assert granularities(db, "tri") == kept
    db.rules("more(x) :- e(x, _).")
    assert db._state.granularity == {1: granularity}


def test_in_a_transaction() -> None:
    db = database()
    with db.transaction() as tx:
        tx.rules("one(x) :- e(x, _).", maintain={"one": "recompute"}, granularity={"one": "node"})
    assert tx.stats["heads"]["one"]["strategy"] == "recompute"
    assert (db._state.maintain, db._state.granularity) == ({3: "recompute"}, {3: "node"})
    with db.transaction() as tx:
        tx.insert("e", [(99, 1)])
    assert tx.stats["heads"]["one"]["strategy"] == "recompute"


def test_with_the_builder() -> None:
    p = lftj.Program()
    e = p.relation("e", x=int, y=int)
    one, two = p.relations("one two")
    x, y = lftj.variables("x y")
    p.rule(one(x), e(x, ...), maintain="recompute")
    p.rule((two(x, y), one(y)), e(x, y), granularity="interval", maintain="auto")
    assert parse(p.to_text()) == p.ast()
    assert p.to_text().splitlines()[1:] == ["one(x) :- e(x, _).", "two(x, y), one(y) :- e(x, y)."]
    db = lftj.Database(p)
    assert (db._state.maintain, db._state.granularity) == ({1: "recompute"}, {2: "interval"})
    db = lftj.Database()
    db.rules(p, maintain={"one": "trace"}, granularity={"two": "node"})
    assert (db._state.maintain, db._state.granularity) == ({1: "trace", 2: "trace"}, {2: "node"})
    db = lftj.Database()
    db.rules(p, maintain={"one": "auto"})
    assert db._state.maintain == {}


WRONG = [
    (
        {"maintain": {"tri": "fast"}},
        "<rules>:3:1: maintain of `tri`: 'fast' is unknown\n"
        "  why: what rules derive follows changes by traces, delta joins or triggers, or they are evaluated again\n"
        '  do: give "auto", "trace", "delta", "triggers" or "recompute"',
    ),
    (
        {"granularity": {"two": None}},
        "<rules>:4:1: granularity of `two`: None is unknown\n"
        "  why: a trace keeps a record per node of the join, or per interval of keys that a step looked at\n"
        '  do: give "auto", "node" or "interval"',
    ),
    (
        {"maintain": {"trie": "trace"}},
        "`maintain` is given for `trie`, which no rule of this program derives\n"
        "  why: it holds for rules of the program it is given with\n"
        "  do: did you mean `tri`?",
    ),
    (
        {"granularity": {"e": "node"}},
        "`granularity` is given for `e`, which no rule of this program derives\n"
        "  why: it holds for rules of the program it is given with\n"
        "  do: name the head of a rule of the same program",
    ),
]


@pytest.mark.parametrize(("options", "told"), WRONG)
def test_what_is_refused(options: dict[str, Any], told: str) -> None:
    db = lftj.Database()
    with pytest.raises((lftj.DataError, UnknownRelationError)) as caught:
        db.rules(RULES, **options)
    assert str(caught.value) == told
    assert list(db) == []
    with pytest.raises((lftj.DataError, UnknownRelationError)) as caught, db.transaction() as tx:
        tx.rules(RULES, **options)
    assert str(caught.value) == told
    assert list(db) == []


def test_what_the_builder_refuses() -> None:
    p = lftj.Program()
    e = p.relation("e", x=int)
    (one,) = p.relations("one")
    (x,) = lftj.variables("x")
    frame = inspect.currentframe()
    assert frame is not None
    with pytest.raises(BuilderError) as caught:
        p.rule(one(x), e(x), maintain="recompte")
    assert str(caught.value) == (
        f"{__file__}:{frame.f_lineno - 2}: maintain='recompte' is unknown\n"
        "  why: what rules derive follows changes by traces, delta joins or triggers, or they are evaluated again\n"
        '  do: give "auto", "trace", "delta", "triggers" or "recompute"'
    )
    with pytest.raises(BuilderError) as caught:
        p.rule(one(x), e(x), granularity="point")
    assert str(caught.value) == (
        f"{__file__}:{frame.f_lineno - 2}: granularity='point' is unknown\n"
        "  why: a trace keeps a record per node of the join, or per interval of keys that a step looked at\n"
        '  do: give "auto", "node" or "interval"'
    )
    assert len(p.ast().items) == 1


# What a commit tells of its rules --------------------------------------------------------------------------------

RULE = {"rule", "head", "clause", "strategy", "why", "steps", "removed", "added", "surgeries", "seconds"}


def test_figures_of_rules() -> None:
    db = database(maintain={"tri": "trace", "two": "recompute"})
    db.rules(".decl f(x:number, y:number)\ntri(x, y, y) :- f(x, y), f(y, x).", maintain={"tri": "trace"})
    with db.transaction() as tx:
        assert tx.stats == {}
        tx.insert("e", [(0, 50)])
    rules = tx.stats["rules"]
    assert [(rule["head"], rule["strategy"]) for rule in rules] == [
        ("tri", "trace"),
        ("tri", "trace"),
        ("two", "recompute"),
    ]
    assert all(set(rule) == RULE for rule in rules)
    assert rules[0]["rule"] == "tri(x, y, z) :- e(x, y), e(y, z), e(x, z)."
    assert rules[0]["added"] > 0
    assert rules[1]["added"] == rules[0]["surgeries"] == 0
    heads = tx.stats["heads"]
    for key in ("steps", "removed", "added"):
        assert sum(rule[key] for rule in rules if rule["head"] == "tri") == heads["tri"][key]
    with db.transaction() as tx:
        tx.insert("e", [(50, 51)])
        tx.erase("e", EDGES[3:5])
    first, second, third = tx.stats["rules"]
    assert first["why"] == tx.stats["heads"]["tri"]["why"] == "`e` changed; its rules are declared so"
    assert first["surgeries"] > 0 < first["removed"]
    assert first["seconds"] > 0
    assert (second["steps"], second["surgeries"], second["seconds"]) == (0, 0, 0.0)  # it reads nothing that changed
    assert (third["strategy"], third["surgeries"], third["removed"]) == ("recompute", 0, 0)
    assert third["steps"] == tx.stats["heads"]["two"]["steps"] > 0
    with db.transaction() as tx:
        tx.insert("e", [(50, 51)])
    assert (tx.stats["rules"], tx.stats["heads"]) == ([], {})
