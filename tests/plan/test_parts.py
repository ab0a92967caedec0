"""Parts of rules that were taken apart: where explanations, memory and statistics show them."""

from __future__ import annotations

import re

import lftj

PROGRAM = """
    .decl e(x:number, y:number)
    deg(x, n)   :- e(x, _), n = count : { e(x, _) }.
    alone(x)    :- e(x, _), !(e(x, y), e(y, x)).
    top(m)      :- m = max n : { deg(_, n), e(n, _) }.
    low(m)      :- m = min n : { deg(_, n), e(n, _) }.
    plain(x, y) :- e(x, y).
"""


def database() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("e", [(1, 2), (1, 3), (2, 1)])
    db.evaluate()
    return db


def outline(text: str) -> list[str]:
    """The lines of an explanation that name relations and clauses."""
    kept = re.compile(r" *(stratum|part) | *@?\w+(\.\w+)*\(.*\.$|  \w+\(.*")
    return [line for line in text.splitlines() if kept.match(line) and " steps" not in line]


def test_parts_stand_under_the_rule_that_needs_them() -> None:
    db = database()
    assert outline(db.explain("deg")) == [
        "stratum 1: deg(x:number, n:number)  2 rows",
        "  deg(x, n) :- e(x, _), n = count : { e(x, _) }.",
        "    part @deg.1(x:number) -> count:number  2 rows",
        "      @deg.1(x, count) :- e(x, _w1).",
        "    deg(x, n) :- @deg.1(x, n).",
    ]
    assert outline(db.explain("alone")) == [
        "stratum 1: alone(x:number)  0 rows",
        "  alone(x) :- e(x, _), !(e(x, y), e(y, x)).",
        "    part @alone.1(x:number)  2 rows",
        "      @alone.1(x) :- e(x, y), e(y, x).",
        "    alone(x) :- e(x, _), !@alone.1(x).",
    ]
    assert outline(db.explain("plain")) == ["stratum 1: plain(x:number, y:number)  3 rows", "  plain(x, y) :- e(x, y)."]


def test_a_shared_part_stands_under_the_first_rule_that_is_shown() -> None:
    db = database()
    both, low = outline(db.explain()), outline(db.explain("low"))
    assert sum("part @top.1.all(" in line for line in both) == sum("part @top.1.all(" in line for line in low) == 1
    assert [line.split(":")[0] for line in low if line.startswith("stratum")] == ["stratum 1", "stratum 2"]
    parts = {s["name"]: [p for rule in s["rules"] for p in rule["parts"]] for s in db.explain("low").data["strata"]}
    assert parts["low"] == ["@top.1.all", "@low.1"]
    assert "@" not in db.explain().partition("key orders built:")[2]


def test_a_part_can_be_asked_for() -> None:
    assert outline(database().explain("@alone.1")) == [
        "stratum 1: @alone.1(x:number)  2 rows",
        "  @alone.1(x) :- e(x, y), e(y, x).",
    ]


def test_memory_of_parts_stands_under_their_head() -> None:
    db = database()
    assert list(db.memory()) == ["e", "deg", "alone", "top", "low", "plain", "total"]
    assert set(db.memory()["alone"]) == {"x", "@alone.1: x"}
    for row in ((3, 1), (3, 2)):
        with db.transaction() as tx:
            tx.insert("e", [row])
    kept = {held: size for held, size in db.memory()["deg"].items() if held.startswith("@deg.1: ")}
    assert kept["@deg.1: triggers: maps"] > 0
    held = [item for name, sizes in db.memory().items() if name != "total" for item in sizes.items()]
    assert sum(size for name, size in held if not name.endswith(": maps")) <= db.memory()["total"]["pages"]


def test_statistics_of_parts_stand_under_their_head() -> None:
    db = database()
    with db.transaction() as tx:
        tx.insert("e", [(2, 5)])
    heads = tx.stats["heads"]
    assert set(heads["deg"]["parts"]) == {"@deg.1"}
    assert heads["deg"]["parts"]["@deg.1"]["why"].startswith("`e` changed; ")
    assert heads["alone"]["parts"]["@alone.1"]["strategy"] == heads["alone"]["strategy"] == "recompute"
    assert "parts" not in heads["plain"]
    assert {rule["head"] for rule in tx.stats["rules"]} == set(heads)
    assert "@deg.1(x, count) :- e(x, _w1)." in {rule["clause"] for rule in tx.stats["rules"]}
    assert tx.stats["total"]["steps"] == sum(head["steps"] for head in heads.values())
    assert all(
        head["steps"] >= sum(part["steps"] for part in head.get("parts", {}).values()) for head in heads.values()
    )


def test_a_head_whose_parts_came_out_as_before_was_not_derived() -> None:
    db = lftj.Database(".decl e(x:number, y:number)\n.decl m(x:number) -> y:number\nm[x] = max y : { e(x, y) }.")
    db.load("e", [(1, 5)])
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("e", [(1, 2)])
    told = tx.stats["heads"]["m"]
    part = told["parts"]["@m.1"]
    assert (told["strategy"], told["why"]) == ("none", "what its parts hold did not change")
    assert (part["strategy"], told["steps"], told["seconds"]) == ("scan", part["steps"], part["seconds"])


def test_what_is_listed_are_the_relations_of_the_program() -> None:
    db = database()
    assert "@" not in repr(db)
    assert "@" not in repr(db.snapshot())
    assert repr(db).startswith("lftj.Database: 6 relations, 5 rules, ")
