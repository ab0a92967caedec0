"""Heads that triggers keep, in whole databases: what they are over, what is over them, and what disturbs them.

Catches: a head that does not follow a recursive relation below it or is not followed by rules above it; maps that
keep what a transaction did that was discarded, failed or was interrupted; a strategy that is not taken where it fits,
or is taken where the answer would differ (an arithmetic that wraps, a term without a value, a sum out of its type).
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import lftj
from lftj.errors import DataError, EvaluationError
from lftj.triggers.maps import Maps
from tests.conftest import JIT

SALES = """
.decl orders(k:number, d:symbol, r:number)
.decl item(k:number, p:number, x:number)
revenue[d] = sum p * r : { orders(k, d, r), item(k, p, x), x < 7 }.
"""


def made(rules: str, *heads: str, **facts: list[tuple[Any, ...]]) -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(rules, maintain=dict.fromkeys(heads, "triggers"))
    for name, rows in facts.items():
        db.load(name, rows)
    return db


def strategy_of(tx: lftj.Transaction, head: str) -> str:
    """How the count or sum that `head` has the rows of was derived."""
    told = tx.stats["heads"][head]
    return str(next(iter(told.get("parts", {}).values()), told)["strategy"])


def change(db: lftj.Database, *calls: tuple[str, str, list[tuple[Any, ...]]]) -> lftj.Transaction:
    with db.transaction() as tx:
        for call, name, rows in calls:
            getattr(tx, call)(name, rows)
    return tx


def test_a_sum_over_a_join_follows() -> None:
    db = made(SALES, "revenue", orders=[(1, "mon", 2), (2, "tue", 3)], item=[(1, 10, 0), (2, 5, 9)])
    change(db, ("insert", "item", [(2, 4, 1)]))
    tx = change(db, ("insert", "item", [(1, 1, 1)]), ("erase", "item", [(2, 4, 1)]))
    assert strategy_of(tx, "revenue") == "triggers"
    assert sorted(tx.delta["revenue"].inserted) == [("mon", 22)]
    assert sorted(tx.delta["revenue"].erased) == [("mon", 20), ("tue", 12)]
    assert sorted(db["revenue"]) == [("mon", 22)]
    assert db.memory()["revenue"]["@revenue.1: triggers: maps"] > 0
    assert "follows changes by triggers, as declared" in str(db.explain("revenue"))
    assert db.explain("revenue").json()


@pytest.mark.skipif(not JIT, reason="thousands of rows, interpreted")
def test_key_orders_of_an_evaluation_go_when_maps_take_over() -> None:
    rules = """
    .decl orders(id:number, customer:number, item:number, n:number)
    .decl customer(id:number, country:number)
    sold[country] = sum n : { orders(_, c, _, n), customer(c, country) }.
    """
    db = lftj.Database(rules)
    db.load("customer", [(i, i % 5) for i in range(200)])
    db.load("orders", [(i, i * 7 % 200, i % 11, i % 3) for i in range(3000)])
    db.evaluate()
    evaluated = set(db.memory()["orders"])
    assert len(evaluated) > 1
    for i in range(3):
        change(db, ("insert", "orders", [(10_000 + i, i, 1, 100)]))
    tx = change(db, ("insert", "customer", [(1000, 1)]), ("insert", "orders", [(20_000, 1000, 1, 1)]))
    assert strategy_of(tx, "sold") == "triggers"
    assert set(db.memory()["orders"]) == {"id, customer, item, n"}
    plain = lftj.Database(rules)
    for name in ("orders", "customer"):
        plain.load(name, list(db[name]))
    assert list(db["sold"]) == list(plain["sold"])
    change(db, ("insert", "orders", [(i, 3, 1, 5) for i in range(30_000, 40_000)]))
    plain.load("orders", [(i, 3, 1, 5) for i in range(30_000, 40_000)])
    assert list(db["sold"]) == list(plain["sold"])


def test_over_a_recursive_relation_and_below_rules() -> None:
    rules = """
    .decl edge(x:number, y:number)
    .decl weight(x:number, w:number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    load[x] = sum w : { path(x, y), weight(y, w) }.
    heavy(x, s) :- load[x] = s, s > 10.
    count_of[s] = count : { load[_] = s, s > 0 }.
    """
    db = made(rules, "load", "count_of", edge=[(1, 2), (2, 3)], weight=[(2, 5), (3, 7), (4, 1)])
    plain = lftj.Database(rules)
    plain.load("edge", [(1, 2), (2, 3)])
    plain.load("weight", [(2, 5), (3, 7), (4, 1)])
    seen: list[Any] = []
    db.on_commit("load", seen.append)
    calls = (("insert", [(3, 4)]), ("erase", [(2, 3)]), ("insert", [(4, 2), (1, 3)]), ("erase", [(1, 2), (3, 4)]))
    for call, rows in calls:
        tx, other = change(db, (call, "edge", rows)), change(plain, (call, "edge", rows))
        for name in ("load", "heavy", "count_of"):
            assert sorted(db[name]) == sorted(plain[name])
            for side in ("inserted", "erased"):
                want = sorted(getattr(other.delta[name], side)) if name in other.delta else []
                assert (sorted(getattr(tx.delta[name], side)) if name in tx.delta else []) == want
    assert strategy_of(tx, "load") == "triggers"
    assert len(seen) == len(calls)


def discarded(db: lftj.Database, previewed: tuple[Any, ...]) -> None:
    """A transaction that looks at what it would do, and is discarded."""
    with db.transaction() as tx:
        tx.insert("item", [(1, 5, 0)])
        assert sorted(tx.preview()["revenue"].inserted) == [previewed]
        raise ValueError("discarded")


def test_loads_snapshots_previews_and_discarded_blocks() -> None:
    db = made(SALES, "revenue", orders=[(1, "mon", 2)], item=[(1, 10, 0)])
    change(db, ("insert", "item", [(1, 1, 0)]))
    snapshot = db.snapshot()
    with pytest.raises(ValueError, match="discarded"):
        discarded(db, ("mon", 32))
    with db.transaction() as tx:
        tx.insert("item", [(1, 6, 0)])
        tx.preview()
        tx.erase("item", [(1, 1, 0)])
    assert sorted(tx.delta["revenue"].inserted) == [("mon", 32)]
    db.load("item", [(1, 100, 1)])
    assert sorted(change(db, ("insert", "item", [(1, 1, 2)])).delta["revenue"].inserted) == [("mon", 234)]
    assert sorted(snapshot["revenue"]) == [("mon", 22)]


def test_rules_that_come_and_go() -> None:
    db = made(SALES, "revenue", orders=[(1, "mon", 2)], item=[(1, 10, 0)])
    change(db, ("insert", "item", [(1, 1, 0)]))
    with db.transaction() as tx:
        tx.rules("n[d] = count : { orders(k, d, _), item(k, _, _) }.", maintain={"n": "triggers"})
        tx.insert("item", [(1, 2, 0)])
    assert sorted(db["n"]) == [("mon", 3)]
    with db.transaction() as tx:
        tx.remove_rules("revenue")
        tx.insert("item", [(1, 3, 0)])
    tx = change(db, ("erase", "item", [(1, 10, 0)]))
    assert sorted(db["n"]) == [("mon", 3)]
    assert strategy_of(tx, "n") == "triggers"
    assert sorted(db["revenue"]) == []


def test_disturbed_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the kernel's run, before and after it: state and maps are as before."""
    db = made(SALES, "revenue", orders=[(1, "mon", 2)], item=[(1, 10, 0)])
    change(db, ("insert", "item", [(1, 1, 0)]))
    run, undo = Maps.run, Maps.undo

    def before(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    def after(*args: Any, **options: Any) -> None:
        run(*args, **options)
        raise KeyboardInterrupt

    for name, disturbed in (("run", before), ("run", after)):
        with monkeypatch.context() as patch:
            patch.setattr(Maps, name, disturbed)
            with pytest.raises(KeyboardInterrupt):
                change(db, ("insert", "item", [(1, 50, 0)]))
        assert sorted(db["revenue"]) == [("mon", 22)]
        change(db, ("insert", "item", [(1, 2, 0)]))
        assert sorted(db["revenue"]) == [("mon", 26)]
        change(db, ("erase", "item", [(1, 2, 0)]))
    with monkeypatch.context() as patch:

        def interrupted(*args: Any, **options: Any) -> None:
            undo(*args, **options)
            raise KeyboardInterrupt

        patch.setattr(Maps, "undo", interrupted)
        with pytest.raises(KeyboardInterrupt):
            discarded(db, ("mon", 32))
    change(db, ("insert", "item", [(1, 2, 0)]))
    assert sorted(db["revenue"]) == [("mon", 26)]


BIG = 2**62


def test_sums_and_products_that_no_int64_holds() -> None:
    """As without triggers: products wrap; a group without a sum is an error only where a rule asks for it."""
    db = made(SALES, "revenue", orders=[(1, "mon", 2)], item=[(1, 10, 0)])
    plain = lftj.Database(SALES)
    plain.load("orders", [(1, "mon", 2)])
    plain.load("item", [(1, 10, 0)])
    for call, name, rows in (
        ("insert", "item", [(1, 1, 0)]),
        ("insert", "item", [(1, BIG, 0)]),  # 2 * 2**62 wraps to -2**63
        ("erase", "item", [(1, BIG, 0)]),
        ("insert", "orders", [(2, "mon", 1)]),
        ("insert", "item", [(2, BIG, 0), (2, BIG - 1, 0)]),
        ("insert", "item", [(2, -BIG, 0)]),
        ("insert", "item", [(2, BIG - 2, 0), (2, 77, 1)]),
    ):
        outcome = []
        for one in (db, plain):
            try:
                change(one, (call, name, rows))
                outcome.append(None)
            except EvaluationError as error:
                outcome.append(str(error))
        assert outcome[0] == outcome[1]
        assert sorted(db["revenue"]) == sorted(plain["revenue"])


@pytest.mark.parametrize("maintain", ["triggers", "auto", "delta"])
def test_constants_whose_product_is_no_number(maintain: str) -> None:
    """A row that goes takes -2^63 back: 2^63 is no number, and commits and evaluations failed for it."""
    db = lftj.Database(".decl b(x:number)  .decl g(v:number)")
    rules = """
        s[] = sum v : { b(_), v = -9223372036854775808 }.
        t[x] = sum v * -9223372036854775808 : { b(x), g(v) }.
    """
    db.rules(rules, maintain=dict.fromkeys("st", maintain))
    least = -(2**63)
    for come, gone in (([(1,)], []), ([], [(1,)]), ([(2,)], []), ([(3,)], [(2,)])):
        with db.transaction() as tx:
            tx.insert("g", [(1,)])
            tx.insert("b", come)
            tx.erase("b", gone)
        held = [x for (x,) in db["b"]]
        assert list(db["s"]) == [(least * len(held),)]
        assert list(db["t"]) == [(x, least) for x in held]


def test_terms_without_a_value() -> None:
    rules = """
    .decl a(k:number, n:number, z:number)
    .decl b(k:number)
    s[k] = sum n / z : { a(k, n, z), b(k) }.
    """
    db = made(rules, "s", a=[(1, 10, 2)], b=[(1,)])
    change(db, ("insert", "a", [(1, 9, 3)]))
    with pytest.raises(EvaluationError, match="division by zero"):
        change(db, ("insert", "a", [(1, 1, 0)]))
    assert sorted(db["s"]) == [(1, 8)]
    change(db, ("insert", "a", [(2, 1, 0)]))  # which no row of b asks for
    change(db, ("insert", "a", [(1, 7, 7)]))
    assert sorted(db["s"]) == [(1, 9)]


@pytest.mark.parametrize("op", ["sum x / y * z", "count"])
def test_a_head_comes_back_to_triggers_once_the_row_without_a_value_is_gone(op: str) -> None:
    """It followed by deltas for good."""
    rule = f"s[k] = {op} : {{ a(k, x, y), c(k, z), x / y + z > 0 }}."
    db = made(
        f".decl a(k:number, x:number, y:number)\n.decl c(k:number, z:number)\n{rule}",
        "s",
        a=[(k, 10 * k + i, 1 + i % 3) for k in range(4) for i in range(5)],
        c=[(k, k) for k in range(3)],
    )
    plain = lftj.Database(f".decl a(k:number, x:number, y:number)\n.decl c(k:number, z:number)\n{rule}")
    for name in ("a", "c"):
        plain.load(name, list(db[name]))

    def step(*calls: tuple[str, str, list[tuple[Any, ...]]]) -> str:
        tx = change(db, *calls)
        change(plain, *calls)
        assert list(db["s"]) == list(plain["s"])
        return strategy_of(tx, "s")

    assert list(db["s"]) == list(plain["s"])
    assert step(("insert", "a", [(1, 50, 5)])) == "triggers"
    step(("insert", "a", [(9, 5, 0), (9, 6, 0)]))  # nothing joins with them
    assert step(("insert", "a", [(1, 51, 5)])) != "triggers"
    step(("erase", "a", [(9, 5, 0)]))
    assert step(("erase", "a", [(1, 51, 5)])) != "triggers"
    assert "has no value for some row" in str(db.explain("s"))
    gone = ("erase", "a", [(9, 6, 0)])
    with db.transaction() as tx:
        tx.erase(*gone[1:])
        tx.preview()
        tx.insert(*gone[1:])
    assert step(gone) == "triggers"
    assert step(("insert", "a", [(1, 52, 5)])) == "triggers"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("p[k] = min v : { e(k, v), g(v, _) }.", ""),
        ("p[k] = sum w : { e(k, v), f(v, w) }.", "adds up float"),
        ("p[k] = sum v / z : { e(k, v), g(v, z), e(z, z) }.", ""),
        ("p[k] = sum v / y : { e(k, v), e(y, k) }.", "across atoms, which is no sum or product of integers"),
        ("p[k] = count : { e(k, v), t(k, a), t(v, b), a < b }.", "compares texts of two atoms by order"),
        ("p[k] = count : { e(k, v), t(k, a), t(v, b), contains(a, b) }.", "looks for a text of one atom"),
        ("p[k] = count : { e(k, v), !g(v, _) }.", ""),
    ],
)
def test_what_does_not_fit_is_kept_otherwise(rule: str, why: str) -> None:
    declared = """
    .decl e(k:number, v:number)
    .decl f(v:number, w:float)
    .decl g(v:number, w:number)
    .decl t(v:number, w:symbol)
    """
    db, plain = made(declared + rule, "p"), lftj.Database(declared + rule)
    for one in (db, plain):
        one.load("e", [(1, 2), (2, 3), (3, 3)])
        one.load("f", [(2, 0.5), (3, 1.5)])
        one.load("g", [(2, 1), (3, 3)])
        one.load("t", [(1, "a"), (2, "ab"), (3, "abc")])
    for rows in ([(2, 2)], [(3, 1)]):
        for one in (db, plain):
            change(one, ("insert", "e", rows))
        assert sorted(db["p"]) == sorted(plain["p"])
    if why:
        from lftj.triggers.from_clauses import DoesNotFit, formulas_of

        clause = next(c for c in db._state.strata.clauses if c.aggregate is not None)
        with pytest.raises(DoesNotFit, match=why):
            formulas_of(clause, {name: db._state.relations[name].schema for name in clause.reads})
    # It said nothing of that.
    told = [line for line in str(db.explain("p")).splitlines() if "not by triggers, as `maintain` asks: it " in line]
    assert all(why in line for line in told)
    assert bool(told) == ("v / z" not in rule)  # which fits: the rows of `g` have both
    assert "not by triggers" not in str(plain.explain("p"))


def test_what_maps_cannot_hold_is_explained() -> None:
    db = made(".decl e(k:number, v:number) .decl g(k:number, w:number) p[k] = sum v * w : { e(k, v), g(k, w) }.", "p")
    db.load("e", [(1, 2**62), (1, 2**62 + 1)])
    db.load("g", [(1, 0)])
    change(db, ("insert", "e", [(3, 3)]))
    assert "`maintain` asks: a sum kept by triggers leaves the range of 64 bits, in" in str(db.explain("p"))
    assert "keep the head by another strategy" not in str(db.explain("p"))


def test_types_of_operands_and_keys() -> None:
    rules = """
    .decl pos(id:number, day:date, price:decimal(12,2), spent:duration, many:unsigned, who:symbol?)
    .decl fee(id:number, rate:decimal(6,2))
    .decl weight(id:number, n:number)
    cost[y, who] = sum price * rate : { pos(i, d, price, _, _, who), fee(i, rate), y = year(d) }.
    spent[day] = sum t * n : { pos(i, day, _, t, _, _), weight(i, n) }.
    mean_spent[day] = mean t : { pos(i, day, _, t, _, _), weight(i, _) }.
    mean_price[day] = mean p : { pos(i, day, p, _, _, _), weight(i, _) }.
    many[day] = sum m : { pos(i, day, _, _, m, _), weight(i, _) }.
    fixed(1, n) :- n = count : { pos(i, _, _, _, _, _), weight(i, _) }.
    """
    heads = ("cost", "spent", "mean_spent", "mean_price", "many", "fixed")
    db, plain = made(rules, *heads), lftj.Database(rules)
    from datetime import date, timedelta
    from decimal import Decimal

    def row(i: int) -> tuple[Any, ...]:
        who = None if i % 3 == 0 else f"w{i % 2}"
        return i, date(2020 + i % 2, 1, 1 + i % 2), Decimal(i) / 4, timedelta(seconds=i, microseconds=1), 7 * i, who

    for one in (db, plain):
        change(one, ("insert", "weight", [(i, i % 4) for i in range(8)]))
        change(one, ("insert", "fee", [(i, Decimal(i) / 100) for i in range(6)]))
    for i in range(10):
        for one in (db, plain):
            tx = change(one, ("insert", "pos", [row(i)]), ("erase", "pos", [row(i - 4)] if i in (5, 8) else []))
            if one is db and i == 7:
                assert {strategy_of(tx, head) for head in heads} <= {"triggers", "none"}
        for head in heads:
            assert sorted(db[head], key=str) == sorted(plain[head], key=str), head


@pytest.mark.skipif(not JIT, reason="a hundred thousand bindings, interpreted")
def test_many_bindings_by_few_rows() -> None:
    db = made(
        """
    .decl r(a:number, b:number)
    .decl s(b:number, c:number)
    n(x) :- x = count : { r(_, b), s(b, _) }.
    """,
        "n",
        r=[(a, 0) for a in range(300)],
        s=[(0, c) for c in range(300)],
    )
    change(db, ("insert", "r", [(1000, 0)]))
    tx = change(db, ("erase", "s", [(0, 5)]))
    assert sorted(db["n"]) == [(301 * 299,)]
    assert tx.stats["total"]["steps"] < 100


def test_what_is_asked_for_is_checked() -> None:
    with pytest.raises(DataError, match='"triggers"'):
        made(SALES, "revenue").rules("q(x) :- orders(x, _, _).", maintain={"q": "trigger"})


@pytest.mark.parametrize("condition", ['s < "m"', "s <= s", 'upper(s) != "Z"', 'cat(s, "a") < "q"'])
def test_null_that_the_join_leaves_out_is_not_computed_with(condition: str) -> None:
    rules = f"""
        .decl a(s:symbol, g:number)
        .decl b(s:symbol?, x:number)
        n[g] = sum strlen(s) * x : {{ a(s, g), b(s, x), {condition} }}.
    """
    facts = {"a": [("b", 1), ("z", 1)], "b": [("b", 1), (None, 1), ("z", 2)]}
    by_triggers, anew = made(rules, "n", **facts), made(rules, **facts)
    for rows in ([], [(None, 2), ("b", 7)], [("z", 4), (None, 3)]):
        for db in (by_triggers, anew):
            change(db, ("insert", "b", rows))
        assert list(by_triggers["n"]) == list(anew["n"]) != []


@pytest.mark.skipif(not JIT, reason="a hundred thousand rows, interpreted")
@pytest.mark.parametrize("asked", [None, "triggers"])
def test_groups_of_billions_of_bindings(asked: str | None) -> None:
    """They were declined from 2^31 on, and their join enumerated: an order book of a million orders never ended."""
    heads, body = ("n", "t", "m"), "{ r(a, b), s(b, c) }"
    db = lftj.Database(".decl r(a:number, b:number)  .decl s(b:number, c:number)")
    db.rules(
        f"n[b] = count : {{ r(_, b), s(b, _) }}.  t[b] = sum a - 2 * c : {body}.  m[b] = mean 3 * a - c : {body}.",
        maintain=dict.fromkeys(heads, asked or "auto"),
    )
    left, right = list(range(50_000)), list(range(100, 50_100))
    db.apply([("r", 1, [(a, 7) for a in left]), ("s", 1, [(7, c) for c in right])])
    for turn in range(3):
        bindings = len(left) * len(right)
        total = sum(left) * len(right) - 2 * sum(right) * len(left)
        mean = (3 * sum(left) * len(right) - sum(right) * len(left)) / bindings
        assert [list(db[head]) for head in heads] == [[(7, bindings)], [(7, total)], [(7, mean)]]
        change(db, ("erase", "r", [(left.pop(), 7)]), ("insert", "s", [(7, turn)]))
        right.append(turn)


@pytest.mark.skipif(not JIT, reason="many rows, interpreted")
def test_a_join_that_becomes_empty_is_evaluated() -> None:
    """Each row that goes ran through thousands of others: 6 s for what evaluating finds at once."""
    rng = Random(1)
    a = {(rng.randrange(999), rng.randrange(999), rng.randrange(999)) for _ in range(3_000)}
    db = lftj.Database(".decl b(i:number, x:number)  .decl a(k:number, w:number, y:number)")
    db.rules("by[i] = sum w : { b(i, x), a(_, w, y), y < x }.")
    db.load("a", sorted(a))
    db.load("b", sorted({(rng.randrange(999), rng.randrange(999)) for _ in range(1_000)}))
    list(db["by"])
    for i in range(3):
        tx = change(db, ("insert", "b", [(-i, 500)]))
    for _ in range(2):
        tx = change(db, ("erase", "a", sorted(a)))
        assert list(db["by"]) == []
        assert tx.stats["total"]["steps"] < 100_000
        change(db, ("insert", "a", sorted(a)))
        change(db, ("insert", "b", [(-9, 500)]))


@pytest.mark.parametrize("filled_in", [0.0, 1e9])
def test_maps_that_took_long_are_not_given_up_for_a_little(filled_in: float) -> None:
    """Evaluating one key takes less than following 1,000 rows; but the next row would have all of them filled again."""
    db = lftj.Database(".decl e(y:number, x:number)  .decl f(y:number)  h[y] = sum x : { f(y), e(y, x) }.")
    db.load("e", [(i % 200, i) for i in range(4_000)])
    db.load("f", [(3,)])
    assert len(db["h"]) == 1
    for x in (4_000, 4_001):
        with db.transaction() as tx:
            tx.insert("e", [(3, x)])
    db._kept.heads["@h.1"].body.filled_in = filled_in  # type: ignore[attr-defined]
    with db.transaction() as tx:
        tx.insert("e", [(i % 200, i) for i in range(5_000, 6_000)])
    assert (strategy_of(tx, "h") == "triggers") == (filled_in > 0)
    assert ("and about 1,000.0 ms for its maps after that" in tx.stats["heads"]["h"]["parts"]["@h.1"]["why"]) == (
        filled_in > 0
    )
    values = [*range(4_000), *range(5_000, 6_000)]
    assert list(db["h"]) == [(3, sum(x for x in values if x % 200 == 3) + 8_001)]
