"""The number whose code is that of null, in columns that admit null and in others; and null's own group and queries.

Catches: a row with null that is lost for such a number or found by it, an error for one where null cannot be, null
derived from a constant.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

import lftj
from tests.conftest import JIT
from tests.plain.evaluate import Undefined, evaluate, parse


@pytest.mark.parametrize(("type", "extreme"), [("number", str(-(2**63))), ("unsigned", f"{2**64 - 1}u")])
@pytest.mark.parametrize("rule", ["h(X) :- e(_).", "h(X).", "h(null) :- e(_).  h(X) :- e(_)."])
def test_a_head_with_the_value_whose_code_is_null_is_refused(type: str, extreme: str, rule: str) -> None:
    """It was null."""
    declared = "" if "null" in rule else f".decl h(x:{type}?)  "
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database(f".decl e(y:{type})  {declared}{rule.replace('X', extreme)}")
    assert f"of `h` never holds {extreme.removesuffix('u')}" in caught.value.what
    assert caught.value.remedy == f"write `null`, or declare the column `{type}`"


def test_the_null_group_of_two_aggregates_has_a_zero() -> None:
    """With one aggregate it had; the relation with the zeros of several left it out."""
    least = -(2**63)
    db = lftj.Database(""".decl v(k:number, x:number?)  .decl r(x:number)
        h(k, m, n) :- v(k, x), m = count : { v(x, _) }, n = count : { r(x) }, or_null(x).""")
    db.load("v", [(0, None), (1, 1), (2, 5), (least, 7)])
    db.load("r", [(5,), (least,)])
    assert list(db["h"]) == [(least, 0, 0), (0, 0, 0), (1, 1, 0), (2, 0, 1)]
    with db.transaction() as tx:
        tx.insert("r", [(1,)])
        tx.erase("v", [(0, None)])
    assert list(db["h"]) == [(least, 0, 0), (1, 1, 1), (2, 0, 1)]


@pytest.mark.parametrize(("type", "extreme"), [("number", -(2**63)), ("unsigned", 2**64 - 1)])
@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "triggers", "recompute"])
def test_the_value_whose_code_is_null_is_not_null_where_none_can_be(type: str, extreme: int, maintain: str) -> None:
    """`is_null` held of it, and `coalesce` gave the other value."""
    rules = {
        "a": "a(x) :- n(x), is_null(x).",
        "b": "b(x) :- n(x), !is_null(x).",
        "c": "c(coalesce(x, 3)) :- n(x).",
        "d": "d(coalesce(x, y)) :- n(x), m(y).",
        "e": "e(x) :- n(x), coalesce(x, 1) != 1.",
        "f": "f(k) :- k = count : { n(x), is_null(x) }.",
        "g": "g(x) :- n(x), !(is_null(x), m(_)).",
    }
    db = lftj.Database(f".decl n(x:{type})  .decl m(x:{type}?)")
    db.rules("  ".join(rules.values()), maintain=dict.fromkeys(rules, maintain))
    for _ in range(2):
        with db.transaction() as tx:
            tx.insert("n", [(4,), (extreme,)])
            tx.insert("m", [(None,), (4,)])
        found = {name: {x for (x,) in db[name]} for name in rules}
        both = {4, extreme}
        assert found == {"a": set(), "b": both, "c": both, "d": both, "e": both, "f": {0}, "g": both}
        assert not db.query("n(x), is_null(x)")
        assert len(db.query("n(x), !is_null(x), coalesce(x, 1) != 1")) == 2
        with db.transaction() as tx:
            tx.erase("n", [(extreme,)])


def test_a_group_of_several_aggregates_may_be_the_number_whose_code_is_null() -> None:
    """The relation with zeros had a column that admits null, where the group of the braces may be, and refused it."""
    least = -(2**63)
    db = lftj.Database(""".decl r(x:number?, y:number)  .decl v(x:number)
        h(x, s, n) :- v(x), s = sum y : { r(x, y) }, n = count : { r(x, y), y > 2 }.""")
    db.load("r", [(None, 1), (2, 2), (2, 3)])
    db.load("v", [(2,), (least,)])
    assert list(db["h"]) == [(least, 0, 0), (2, 5, 1)]


NEGATIONS = (
    "n(c, x), !q(x)",
    "n(c, x), !r(x)",
    "m(c, x), !r(x)",
    "n(c, x), !q(x), !r(x)",
    "n(c, x), n(d, y), !s(x, y), !s(y, _), !q(y)",
    "n(c, x), !s(_, x)",
    "n(c, x), !q(x), or_null(x)",
    "n(c, x), !r(x), or_null(x)",
    "m(c, x), !r(x), or_null(x)",
    "n(c, x), !q(x), is_null(x)",
    "m(c, x), !r(max(x, x))",
)


@pytest.mark.parametrize(("type", "extreme"), [("number", -(2**63)), ("unsigned", 2**64 - 1), ("float", 0.5)])
def test_queries_negate_as_rules_do(type: str, extreme: float) -> None:
    """Rows with null were lost where a column without null had the number of its code; others were refused."""
    rng, values = Random(type), (extreme, 1, 2)
    columns = {"n": (type, True), "m": (type, False), "q": (type, False), "r": (type, True), "s": (type, True)}
    text = "".join(f".decl {name}(c:number, x:{type}{'?' * null})  " for name, (type, null) in columns.items())
    text = text.replace("r(c:number, ", "r(").replace("q(c:number, ", "q(").replace("s(c:number", f"s(c:{type}")
    for _ in range(8 if JIT else 1):
        db, facts = lftj.Database(text), dict[str, set[Any]]()
        for name, (_, null) in columns.items():
            last = [None if null and rng.random() < 0.3 else rng.choice(values) for _ in range(4)]
            last = [None if null and type != "float" and value == extreme else value for value in last]
            first = values if name == "s" else range(3)
            facts[name] = {(value,) if name in "qr" else (rng.choice(first), value) for value in last}
            db.load(name, list(facts[name]))
        for query in NEGATIONS:
            names = [name for name in "cxdy" if re.search(rf"\b{name}\b", query)]
            expected = evaluate(parse(f"{text}\np({', '.join(names)}) :- {query}."), facts)["p"]
            asked = db.query(query)
            assert len(asked) == len(expected)
            assert set(asked) == expected
            assert len(list(asked)) == len(expected)
            given = db.prepare_query(query.replace("(c, ", "($c, ", 1))(c=1)
            assert set(given) == {row[1:] for row in expected if row[0] == 1}


def test_a_query_has_so_many_negations_with_null() -> None:
    db = lftj.Database(".decl n(a:number?, b:number?, c:number?, d:number?, e:number?, f:number?, g:number?)")
    row = (None, 1, 2, 3, 4, 5, 6)
    db.load("n", [row])
    assert list(db.query("n(a, b, c, d, e, f, 6), !n(a, b, c, d, e, f, _)")) == [row[:-1]]
    with pytest.raises(lftj.ProgramError, match="7 negated variables") as caught:
        db.query("n(a, b, c, d, e, f, g), !n(a, b, c, d, e, f, g)")
    assert "write a rule" in caught.value.remedy
    db.rules("h(a, b, c, d, e, f, g) :- n(a, b, c, d, e, f, g), !n(a, b, c, d, e, f, g).")
    assert list(db.query("h(a, b, c, d, e, f, g)")) == [row]
    assert list(db.query("n(a, b, c, d, e, f, g), !n(a, b, c, d, e, f, g), !is_null(g)")) == [row]


@pytest.mark.parametrize("op", ["count : { B }", "sum y : { B }", "max y : { B }", "mean y : { B }"])
def test_a_group_of_alternatives_may_be_the_number_whose_code_is_null(op: str) -> None:
    """The relation of the bindings had a column that admits null, for one alternative, and refused it of the other."""
    least = -(2**63)
    text = ".decl r(x:number?, y:number)  .decl v(x:number)  .decl h(x:number, n:N)\n"
    text = text.replace("N", "float" if op.startswith("mean") else "number")
    text += f"h(x, n) :- v(x), n = {op.replace('B', 'r(x, y) ; v(x), y = 3')}."
    facts = {"r": {(None, 1), (2, 2), (2, 7)}, "v": {(2,), (least,)}}
    db = lftj.Database(text)
    for name, rows in facts.items():
        db.load(name, list(rows))
    assert set(db["h"]) == evaluate(parse(text), facts)["h"]
    assert any(x == least for x, _ in db["h"])


@pytest.mark.parametrize(("kind", "extreme"), [("number", -(2**63)), ("unsigned", 2**64 - 1)])
@pytest.mark.parametrize("maintain", ["auto", "recompute"])
def test_what_is_folded_of_alternatives_may_have_the_code_of_null(kind: str, extreme: int, maintain: str) -> None:
    """It was refused: the relation of the bindings admitted null, which is left out of what is folded."""
    braces = ("{ (a(k, x) ; b(k, x)), g(k) }", "{ c(k, x), g(k) ; a(k, x), k > 0 }")
    rules = [f"h{i}(k, v) :- g(k), v = {op} x : {braces[i % 2]}." for i, op in enumerate(["sum", "max", "sum", "min"])]
    text = f".decl a(k:number, x:{kind})  .decl b(k:number, x:{kind}?)  .decl g(k:number)\nc(k, x) :- b(k, x).\n"
    db = lftj.Database()
    db.rules(text + "\n".join(rules), maintain={f"h{i}": maintain for i in range(4)})
    db.load("g", [(1,), (2,), (3,)])
    db.load("b", [(1, None), (2, None), (3, 5)])
    for first in (True, False):
        with db.transaction() as tx:
            tx.insert("a", [(1, extreme if first else 7)])
            tx.erase("a", [(1, extreme)] if not first else [])
        value = extreme if first else 7
        for i in (0, 2):
            assert list(db[f"h{i}"]) == [(1, value), (2, 0), (3, 5)]
        for i in (1, 3):
            assert list(db[f"h{i}"]) == [(1, value), (3, 5)]


@pytest.mark.parametrize(("type", "extreme", "op"), [("number", -(2**63), "max"), ("unsigned", 2**64 - 1, "min")])
def test_what_is_proposed_in_a_recursion_is_no_number_whose_code_is_null(type: str, extreme: int, op: str) -> None:
    """The fuzz failed: of the plain evaluator only the best value had to fit into the column."""
    text = f""".decl b(x:number, v:{type})  .decl e(x:number, y:number, l:{type})  .decl d(x:number) -> v:{type}?
        d[y] = {op} v : {{ b(y, v) ; d[x] = c, e(x, y, l), v = {"min" if op == "max" else "max"}(c, l) }}."""
    facts = {"b": {(0, 5), (1, 3)}, "e": {(0, 1, extreme)}}
    with pytest.raises(Undefined):
        evaluate(parse(text), facts)
    db = lftj.Database(text)
    db.load("b", [(0, 5), (1, 3)])
    with (
        pytest.raises(lftj.Error, match=f"{extreme} does not fit into a column that admits null"),
        db.transaction() as tx,
    ):
        tx.insert("e", [(0, 1, extreme)])
    with db.transaction() as tx:
        tx.insert("e", [(0, 1, 4)])
    assert set(db["d"]) == evaluate(parse(text), {**facts, "e": {(0, 1, 4)}})["d"]
