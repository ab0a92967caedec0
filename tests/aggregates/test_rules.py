"""Aggregates as users write them, through the life of their rules: transactions, previews, snapshots, removal."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import lftj
from tests.plain.evaluate import evaluate, parse

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

RULES = """
d(x, n) :- e(x, _), n = count : { e(x, _) }.
m(x, n) :- e(x, _), n = max y : { e(x, y) }.
"""


def strategies(tx: lftj.Transaction) -> dict[str, str]:
    parts = [part for told in tx.stats["heads"].values() for part in told.get("parts", {}).items()]
    return {name: told["strategy"] for name, told in parts if name in ("@d.1", "@m.1")}


def test_rules_come_and_go_with_transactions() -> None:
    db = lftj.Database(".decl e(x:number, y:number)")
    db.load("e", [(1, 2), (1, 3)])
    used = db.memory()
    tx = db.transaction()
    try:
        with tx:
            tx.rules(RULES)
            tx.insert("e", [(2, 2)])
            assert list(tx.preview()["d"].inserted) == [(1, 2), (2, 1)]
            raise KeyError
    except KeyError:
        assert db.memory() == used
    with db.transaction() as tx:
        tx.rules(RULES)
        tx.insert("e", [(2, 2)])
    assert (list(db["d"]), list(db["m"])) == ([(1, 2), (2, 1)], [(1, 3), (2, 2)])
    assert set(strategies(tx)) == {"@d.1", "@m.1"}
    with db.transaction() as tx:
        tx.insert("e", [(2, 7)])
    assert strategies(tx) == {"@d.1": "triggers", "@m.1": "scan"}
    held = db.snapshot()
    db.load("e", [(2, 9)])  # what was kept is outdated
    assert (list(db["d"]), list(db["m"])) == ([(1, 2), (2, 3)], [(1, 3), (2, 9)])
    with db.transaction() as tx:
        tx.erase("e", [(2, 9)])
    assert strategies(tx)["@m.1"] == "scan"
    assert list(db["m"]) == list(held["m"]) == [(1, 3), (2, 7)]
    with db.transaction() as tx:
        tx.remove_rules("m")
    with db.transaction() as tx:
        tx.insert("e", [(5, 5)])
    assert strategies(tx) == {"@d.1": "triggers"}
    assert list(db["d"]) == [(1, 2), (2, 2), (5, 1)]


CONDITIONS = ["1 = 2", "1 = 1", "x = 3, x > 2", "x = 1, x > 2", "(1 = 1 ; 2 = 3)", "f(7)", "f(x), x > 1", "!f(7)"]
OPERANDS = {"count": "", "sum": " 3", "min": " 3", "max": " 3", "mean": " 3", "cat": ' "a"'}


@pytest.mark.parametrize("op", OPERANDS)
def test_braces_without_a_variable_from_outside(op: str) -> None:
    """`e(count : { 1 = 2 }).` was 1: the empty head of what stands in its braces was taken for a row stated."""
    kind = {"mean": "float", "cat": "symbol"}.get(op, "number")
    rules = []
    for i, condition in enumerate(CONDITIONS):
        aggregate = f"{op}{OPERANDS[op]} : {{ {condition} }}"
        rules += [
            f".decl a{i}(v:{kind})  .decl b{i}() -> v:{kind}  .decl c{i}(v:{kind})  .decl d{i}(x:number, v:{kind})",
            f"a{i}({aggregate}).  b{i}[] = {aggregate}.  c{i}(v) :- v = {aggregate}.",
            f"d{i}(x, v) :- f(x), v = {aggregate}.",
        ]
    text = ".decl f(x:number)\nf(1). f(2).\n" + "\n".join(rules)
    expected, db = evaluate(parse(text)), lftj.Database(text)
    for name in (f"{letter}{i}" for letter in "abcd" for i in range(len(CONDITIONS))):
        assert set(db[name]) == expected[name], name


def test_a_fact_that_counts_nothing_leaves_other_rules_alone() -> None:
    db = lftj.Database("e(count : { 1 = 2 }).  e(z) :- z = 10 + count : { 1 > 2 }.")
    assert list(db["e"]) == [(0,), (10,)]


NEGATED = [
    "p(n) :- n = sum x : { f(x), !(x > 3, !e(_, _)) }.",
    "p(n) :- n = count : { f(x), !(x > 1, !e(x, _)) }.",
    "p(n) :- n = count : { f(x), !(!e(x, _)) }.",
    "p(n) :- n = count : { f(x), !(x > 2, !(e(x, _), e(1, _))) }.",
    "p(n) :- n = count : { f(x), (x > 2 ; !(x > 1, !e(x, _))) }.",
    "p(n) :- n = max x : { f(x), !(x > 1, !e(x, _)) }.",
    "p(x) :- f(x), n = count : { e(x, y), !(y > x, !e(y, _)) }, n > 0.",
    "p(x * 10 + n) :- f(x), n = sum y : { f(y), !(y > x, !e(_, y)), !(!e(y, _), x < 2) }.",
]


# The least and the greatest of nothing have no value.
WITHOUT_VALUE = [
    "p(x) :- f(x), !(e(_, x), x = max y : { e(x, y) }).",
    "p(x) :- f(x), !(x > 1, x <= max y : { e(x, y) }, e(x, 0)).",
    "p(x) :- f(x), !(x > 1, !(x = max y : { e(x, y) })).",
    "p(x) :- f(x), !(x > 1, (x = max y : { e(x, y) } ; e(x, 1))).",
    "p(x) :- f(x), z = x + 1, !(e(x, z), mean y : { e(_, y), y > x } < 3.5).",
    "p(x) :- f(x), !(e(x, x), max y : { e(x, y) } < min y : { e(y, x) }).",
    "p(n) :- n = count : { f(x), !(e(x, x), x < max y : { e(y, x), y != x }) }.",
    "p(x) :- f(x), !(x < 3, x = max y : { e(x, y), !(f(y), y = min z : { e(y, z) }) }).",
    "p(x) :- f(x), !(f(x), !e(x, max y : { e(y, x) })).",
    "p(x) :- f(x), !(x = max y : { e(x, y) }).",  # the opposite, of a comparison alone
    # nor is there a value to look up
    "g[x] = max y : { e(x, y) }. p(x) :- f(x), !(e(_, x), g[x] > 2).",
    "g[x] = max y : { e(x, y) }. p(x) :- f(x), !(x > 1, !f(g[x])).",
    "g[x] = max y : { e(x, y) }. p(x) :- f(x), !(x > 1, g[x] = 3), !(f(g[1]), x < 4).",
    "g[x] = max y : { e(x, y) }. p(x) :- f(x), !(f(x), (g[g[x]] > x ; x > 3 ; e(x, g[_]))).",
    "g[x] = max y : { e(x, y) }. p(n) :- n = count : { f(x), !(g[x] > 1, g[x] < 4) }.",
    "g[x] = max y : { e(x, y) }. p(x) :- f(x), !(g[x] > 2), !(x = g[x] ; f(g[x])).",  # one condition alone
]


@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "recompute"])
@pytest.mark.parametrize("rule", WITHOUT_VALUE)
def test_no_row_has_what_is_compared_with_a_value_that_is_not_there(rule: str, maintain: str) -> None:
    """Without variables of its own a negated conjunction was taken apart, and each condition had to have its values."""
    text = f".decl f(x:number)\n.decl e(x:number, y:number)\n.decl p(n:number)\n{rule}"
    rng, db = Random(rule), lftj.Database()
    db.rules(text, maintain={"p": maintain})
    follow_random_changes(db, text, rng)


@pytest.mark.parametrize("rule", NEGATED)
def test_a_negation_in_braces_that_holds_an_atom_with_wildcards(rule: str) -> None:
    """It was refused for a disjunction that nobody wrote, or each row that its wildcard stands for counted."""
    text = f".decl f(x:number)\n.decl e(x:number, y:number)\n.decl p(n:number)\n{rule}"
    follow_random_changes(lftj.Database(text), text, Random(rule))


def follow_random_changes(db: lftj.Database, text: str, rng: Random) -> None:
    """Transactions of rows of `f` and `e`; `p` is what the plain evaluator says."""
    content: dict[str, set[tuple[Any, ...]]] = {"f": set(), "e": set()}
    for _ in range(25):
        with db.transaction() as tx:
            for name, arity in (("f", 1), ("e", 2)):
                for _ in range(rng.choice((0, 1, 2))):
                    row = tuple(rng.randrange(5) for _ in range(arity))
                    if rng.random() < 0.4:
                        content[name].discard(row)
                        tx.erase(name, [row])
                    else:
                        content[name].add(row)
                        tx.insert(name, [row])
        assert set(db["p"]) == evaluate(parse(text), content)["p"]


@pytest.mark.parametrize("maintain", ["auto", "delta", "trace", "recompute"])
@pytest.mark.parametrize(
    ("type", "zero", "one"),
    [
        ("number", 0, 1),
        ("unsigned", 0, 1),
        ("float", 0.0, 0.5),
        ("decimal(6,2)", Decimal(0), Decimal("0.25")),
        ("duration", timedelta(0), timedelta(minutes=1)),
    ],
)
def test_the_sum_of_nothing_is_0_of_its_type(type: str, zero: Any, one: Any, maintain: str) -> None:
    """Of durations it was a number, which no other sum of them could be."""
    db = lftj.Database()
    db.rules(
        f"""
        .decl r(g:number)  .decl p(g:number, v:{type})
        each(g, s) :- r(g), s = sum v : {{ p(g, v) }}.
        all[] = sum v : {{ p(_, v) }}.
        twice(g, s + s) :- r(g), s = sum v : {{ p(g, v) ; p(g, v), g > 1 }}.
        """,
        maintain=dict.fromkeys(("each", "all", "twice"), maintain),
    )
    db.load("r", [(1,), (2,)])
    assert (list(db["each"]), list(db["all"])) == ([(1, zero), (2, zero)], [(zero,)])
    for change, sums in (("insert", [one, zero]), ("erase", [zero, zero])):
        with db.transaction() as tx:
            getattr(tx, change)("p", [(1, one)])
        assert list(db["each"]) == [(1, sums[0]), (2, sums[1])]
        assert list(db["all"]) == [(sums[0],)]
        assert list(db["twice"]) == [(1, sums[0] + sums[0]), (2, sums[1])]


def test_conditions_on_texts_that_rules_share_stay_what_they_are() -> None:
    """New rules took the name of a relation that another rule still read, and added to it: 2 of 1 row were counted."""
    db = lftj.Database(""".decl r(g:number, v:number, t:symbol)
        .decl s(g:number)
        low[g] = count : { r(g, _, t), s(g), strlen(t) > 1 }.
        high[g] = count : { r(g, _, t), s(g), strlen(t) > 1 }.""")
    db.load("r", [(1, 5, "a"), (1, 7, "ab")])
    db.load("s", [(1,)])
    assert list(db["high"]) == [(1, 1)]
    with db.transaction() as tx:
        tx.remove_rules("low")
    db.rules("low[g] = count : { r(g, _, t), s(g), strlen(t) > 0 }.")
    assert (list(db["low"]), list(db["high"])) == ([(1, 2)], [(1, 1)])
