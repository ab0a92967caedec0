"""Patterns: reading them, and what they are called in each language. Catches a join condition lost in translation."""

from __future__ import annotations

import pytest

from bench.pattern import Pattern


def test_reads_atoms_and_comparisons() -> None:
    pattern = Pattern.parse("e(x,y), t(y, p, z), x < y, z != 3")
    assert pattern.variables == ("x", "y", "p", "z")
    assert pattern.arities == {"e": 2, "t": 3}
    assert str(pattern) == "e(x, y), t(y, p, z), x < y, z != 3"
    assert Pattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize("text", ["", "x < y", "e(x,y), !e(y,x)", "e(x,y) e(y,z) :- 3"])
def test_refuses_what_it_does_not_cover(text: str) -> None:
    with pytest.raises(ValueError, match="not a pattern"):
        Pattern.parse(text)


def test_as_rule() -> None:
    pattern = Pattern.parse("e(x,y), t(y,p,z), x < 5")
    assert pattern.declarations() == ".decl e(c0:number, c1:number)\n.decl t(c0:number, c1:number, c2:number)"


def test_as_sql() -> None:
    pattern = Pattern.parse("e(x,y), e(y,z), e(x,z), x != z, y < 7")
    where = "a0.c1 = a1.c0 AND a0.c0 = a2.c0 AND a1.c1 = a2.c1 AND a0.c0 <> a1.c1 AND a0.c1 < 7"
    assert pattern.sql() == f"SELECT a0.c0 AS x, a0.c1 AS y, a1.c1 AS z FROM e a0, e a1, e a2 WHERE {where}"
    assert pattern.sql_count() == f"SELECT count(*) FROM e a0, e a1, e a2 WHERE {where}"
    assert Pattern.parse("e(x,y)").sql() == "SELECT a0.c0 AS x, a0.c1 AS y FROM e a0"


def test_as_cypher() -> None:
    pattern = Pattern.parse("e(x,y), e(y,z), x < 5, x != z")
    assert pattern.cypher_count() == (
        "MATCH (x:V)-[r0:e]->(y:V), (y:V)-[r1:e]->(z:V) WHERE x.id < 5 AND x.id <> z.id RETURN count(*)"
    )
    labelled = Pattern.parse("t(x,p,y), t(y,p,z)")
    assert labelled.cypher_count() == (
        "MATCH (x:V)-[r0:t]->(y:V), (y:V)-[r1:t]->(z:V) WHERE r0.label = r1.label RETURN count(*)"
    )


def test_cypher_names_what_it_cannot_say() -> None:
    assert Pattern.parse("e(x,y), t(y,p,z)").cypher_gap() is None
    assert Pattern.parse("t(x,y,z), t(y,z,w)").cypher_gap() == (
        "a variable is both a vertex and an edge label: a ternary relation is no edge of a property graph"
    )
    assert Pattern.parse("q(a,b,c,d)").cypher_gap() == "only arcs and labelled arcs are edges of a property graph"
