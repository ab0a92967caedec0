"""Thresholds on running sums: what rules with them derive after every change, found by descents where that can be."""

from __future__ import annotations

import warnings
from random import Random

import pytest

import lftj
from lftj.errors import DataError, EvaluationError
from lftj.language.thresholds import THRESHOLDS
from tests.conftest import JIT

BOOK = """
.decl bids(id:number, broker:number, v:number, p:number)
.decl asks(id:number, broker:number, v:number, p:number)
"""
TOTALS = "tb = sum v : { bids(_, _, v, _) }, ta = sum v : { asks(_, _, v, _) }"
RULES = {
    "vwap": "vwap[] = sum p * v : { bids(_, _, v, p), t = sum w : { bids(_, _, w, _) },"
    " a = sum w : { bids(_, _, w, q), q > p }, t > 4 * a }.",
    "below": "below[] = count : { bids(_, _, v, p), t = sum w : { bids(_, _, w, _) },"
    " a = sum w : { bids(_, _, w, q), p >= q }, 3 * t - 1 <= 4 * a, v > 1 }.",
    "spread": f"spread[] = sum ap - bp : {{ bids(_, _, bv, bp), asks(_, _, av, ap), {TOTALS},"
    " bv * 6 > tb, 6 * av > ta }.",
    "missed": f"missed[] = sum ap * av - bp * bv : {{ bids(_, _, bv, bp), asks(_, _, av, ap), {TOTALS},"
    " ra = sum v : { asks(_, _, v, p), p > ap }, rb = sum v : { bids(_, _, v, p), p > bp },"
    " ta > 4 * ra, tb > 4 * rb }.",
    "scaled": f"scaled[] = sum -(ap * bv) - (2 - bp) * 3 : {{ bids(_, _, bv, bp), asks(_, _, av, ap), {TOTALS},"
    " -(6 * bv) < 0 - tb, (av - 1) * 6 > ta - 6 }.",
    "counted": "counted[] = sum 2 * p + 1 : { asks(_, 1, _, p), n = count : { asks(_, 1, _, q), q < p },"
    " a = count : { asks(_, 1, _, _) }, n < 3, a - n > 1 }.",
}


def total(rows):
    return sum(v for _, _, v, _ in rows)


def expected(bids, asks):
    """What the rules say, by loops."""
    above = lambda rows, p: sum(v for _, _, v, q in rows if q > p)  # noqa: E731
    tb, ta = total(bids), total(asks)
    best_bids = [row for row in bids if tb > 4 * above(bids, row[3])]
    best_asks = [row for row in asks if ta > 4 * above(asks, row[3])]
    large_bids, large_asks = [row for row in bids if row[2] * 6 > tb], [row for row in asks if row[2] * 6 > ta]
    mine = [row for row in asks if row[1] == 1]
    ranked = [(p, sum(1 for row in mine if row[3] < p)) for _, _, _, p in mine]
    return {
        "vwap": sum(p * v for _, _, v, p in best_bids),
        "below": sum(1 for _, _, v, p in bids if 3 * tb - 1 <= 4 * sum(w for _, _, w, q in bids if q <= p) and v > 1),
        "spread": sum(a[3] - b[3] for a in large_asks for b in large_bids),
        "missed": sum(a[2] * a[3] - b[2] * b[3] for a in best_asks for b in best_bids),
        "scaled": sum(-(a[3] * b[2]) - (2 - b[3]) * 3 for a in large_asks for b in large_bids),
        "counted": sum(2 * p + 1 for p, n in ranked if n < 3 and len(mine) - n > 1),
    }


def answers(db):
    return {name: next(iter(db[name]))[0] for name in RULES}


@pytest.mark.parametrize("least", [0, -2])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_loops_after_every_change(seed, least):
    """With negative volumes running sums rise and fall: then it is worked out by sorting."""
    rng, rows = Random(seed), {"bids": set(), "asks": set()}
    db = lftj.Database(BOOK + "\n".join(RULES.values()))
    for step in range(60 if JIT else 12):
        with db.transaction() as tx:
            for i in range(rng.choice((1, 1, 4))):
                name = rng.choice(("bids", "asks"))
                if rows[name] and rng.random() < 0.45:
                    row = rng.choice(sorted(rows[name]))
                    rows[name].discard(row)
                    tx.erase(name, [row])
                else:
                    row = (
                        step * 10 + i,
                        rng.randrange(3),
                        rng.randrange(least if step > 20 else 0, 6),
                        rng.randrange(12),
                    )
                    rows[name].add(row)
                    tx.insert(name, [row])
        assert answers(db) == expected(**rows)
        if not step % 20:
            with pytest.raises(lftj.DataError), db.transaction(missing="error") as tx:
                _discarded(tx, step)
            assert answers(db) == expected(**rows)
    followed = {strategy for head in tx.stats["heads"].values() for strategy in _strategies(head)}
    assert ("recompute" if least else "triggers") in followed


def _discarded(tx, step):
    """A transaction that is computed, and then goes wrong."""
    tx.insert("bids", [(-step - 1, 0, 5, 5)])
    tx.preview()
    tx.erase("bids", [(-step - 2, 0, 5, 5)])


def _strategies(head):
    return {part["strategy"] for part in head.get("parts", {}).values()}


def test_prices_do_not_have_rows_of_their_own():
    db = lftj.Database(BOOK + RULES["vwap"])
    heads = db._state.strata.by_head
    assert not any(name.startswith("@vwap.3") for name in (*heads, *db._state.relations))
    (clause,) = heads["@vwap.1"]
    assert clause.aggregate.op == f"{THRESHOLDS} sum"


def test_steps_do_not_grow_with_the_prices():
    """A change takes as many statements whatever is in the book."""
    db, steps = lftj.Database(BOOK + RULES["vwap"]), []
    for n in (20, 4000 if JIT else 40):
        with db.transaction() as tx:
            tx.insert("bids", [(i, 0, 1 + i % 5, 3 * i) for i in range(n)])
        with db.transaction() as tx:
            tx.insert("bids", [(-n, 0, 2, n)])
        steps.append(tx.stats["heads"]["vwap"]["parts"]["@vwap.1"]["steps"])
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    "rule",
    [
        "q[] = sum p : { bids(_, b, _, p), asks(_, b, _, _), a = sum w : { bids(_, _, w, r), r > p }, a < 5 }.",
        "q[] = sum p : { bids(_, _, v, p), a = sum w : { bids(_, _, w, r), r > p }, a < v }.",
        "q[] = sum p : { bids(_, _, _, p), a = sum w : { bids(_, _, w, r), r != p }, a < 5 }.",
        "q[] = sum p : { bids(_, _, _, p), a = max w : { bids(_, _, w, r), r > p }, a < 5 }.",
        "q[b] = sum p : { bids(_, b, _, p), a = sum w : { bids(_, _, w, r), r > p }, a < 5 }.",
    ],
)
def test_other_rules_are_left_as_they_are(rule):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db = lftj.Database(BOOK + rule)
    assert all(clause.threshold is None for clause in db._state.strata.clauses)
    db.load("bids", [(1, 1, 2, 3), (2, 1, 3, 2)])
    db.evaluate()


EQUAL = {
    "two totals": "q[] = count : { bids(_, _, _, p), t = sum v : { bids(_, _, v, _) },"
    " t = sum v : { asks(_, _, v, _) }, p < t }.",
    "a total and a column": "q[] = count : { bids(_, _, v, p), v = sum w : { asks(_, _, w, _) },"
    " t = sum w : { bids(_, _, w, _) }, p < t }.",
    "two running sums": "q[] = count : { bids(_, _, _, p), a = sum w : { bids(_, _, w, r), r > p },"
    " a = sum w : { bids(_, _, w, r), r >= p }, a < 9 }.",
    "a running sum and a total": "q[] = count : { bids(_, _, _, p), a = sum w : { bids(_, _, w, r), r >= p },"
    " a = sum w : { asks(_, _, w, _) }, a < 9 }.",
    "a running sum and its key": "q[] = count : { bids(_, _, _, p), p = sum w : { bids(_, _, w, r), r > p }, p < 9 }.",
}


@pytest.mark.parametrize("maintain", ["auto", "triggers", "recompute"])
@pytest.mark.parametrize("rule", EQUAL.values(), ids=EQUAL)
def test_one_variable_for_two_results_says_that_they_are_equal(rule, maintain):
    """It was dropped where thresholds are folded into the clause, under every strategy."""
    db = lftj.Database(BOOK)
    db.rules(rule, maintain={"q": maintain})
    for bids, asks in (((2, 3), (3, 4)), (7,)), (((2, 3), (3, 4)), (5,)), (((3, 0), (3, 3), (0, 9)), (3,)):
        with db.transaction() as tx:
            for name in ("bids", "asks"):
                tx.erase(name, list(db[name]))
            tx.insert("bids", [(i, 0, v, p) for i, (v, p) in enumerate(bids)])
            tx.insert("asks", [(i, 0, v, 0) for i, v in enumerate(asks)])
        ours, theirs = sum(v for v, _ in bids), sum(asks)
        above = [(p, sum(w for w, r in bids if r > p), sum(w for w, r in bids if r >= p)) for _, p in bids]
        expected = {
            "two totals": sum(1 for _, p in bids if ours == theirs and p < ours),
            "a total and a column": sum(1 for v, p in bids if v == theirs and p < ours),
            "two running sums": sum(1 for _, a, b in above if a == b < 9),
            "a running sum and a total": sum(1 for _, _, b in above if b == theirs < 9),
            "a running sum and its key": sum(1 for p, a, _ in above if p == a < 9),
        }
        (name,) = (name for name, text in EQUAL.items() if text == rule)
        assert list(db["q"]) == [(expected[name],)], (bids, asks)


@pytest.mark.parametrize("maintain", [None, "triggers"])
def test_sums_over_the_same_relation_have_maps_of_their_own(maintain):
    """A threshold counted as a head of their body, and every commit ended in a KeyError."""
    rules = [RULES["vwap"], RULES["below"], "all[] = sum v : { bids(_, _, v, _) }."]
    db = lftj.Database(BOOK)
    for rule in rules:
        head = rule.partition("[")[0]
        db.rules(rule, maintain=None if maintain is None else {head: maintain})
    db.load("bids", [(i, 0, i % 7, i) for i in range(50)])
    db.evaluate()
    for i in range(3):
        with db.transaction() as tx:
            tx.insert("bids", [(100 + i, 0, 3, 100 + i)])
        alone = lftj.Database(BOOK + " ".join(rules))
        alone.load("bids", list(db["bids"]))
        assert [list(db[name]) for name in ("vwap", "below", "all")] == [
            list(alone[name]) for name in ("vwap", "below", "all")
        ]
        assert list(db["all"]) == [(sum(row[2] for row in db["bids"]),)]


def test_the_rule_can_be_removed_and_come_again():
    db = lftj.Database(BOOK + RULES["vwap"])
    db.load("bids", [(1, 0, 4, 10), (2, 0, 1, 20)])
    assert list(db["vwap"]) == [(60,)]
    with db.transaction() as tx:
        tx.remove_rules("vwap")
        tx.insert("bids", [(3, 0, 100, 30)])
    assert len(db["vwap"]) == 0
    with db.transaction() as tx:
        tx.rules(RULES["vwap"])
    assert list(db["vwap"]) == [(3000,)]
    with db.transaction() as tx:
        tx.erase("bids", [(3, 0, 100, 30)])
    assert list(db["vwap"]) == [(60,)]


def test_a_sum_out_of_range_is_an_error_and_changes_nothing():
    db = lftj.Database(BOOK + RULES["vwap"])
    db.load("bids", [(1, 0, 2**31, 2**31)])
    assert list(db["vwap"]) == [(2**62,)]
    with pytest.raises(EvaluationError, match="out of the range"), db.transaction() as tx:
        tx.insert("bids", [(2, 0, 2**31, 2**31)])
    assert list(db["vwap"]) == [(2**62,)]


def test_a_negative_value_in_a_running_sum_is_named():
    db = lftj.Database(BOOK + RULES["vwap"])
    with db.transaction() as tx:
        tx.insert("bids", [(1, 0, 5, 5)])
    with db.transaction() as tx:
        tx.insert("bids", [(2, 0, -1, 6)])
    reasons = [part["why"] for head in tx.stats["heads"].values() for part in head.get("parts", {}).values()]
    assert any("it adds negative numbers" in why for why in reasons), reasons


@pytest.mark.parametrize("declared", ["auto", "triggers"])
def test_triggers_go_on_when_the_negative_value_is_gone(declared: str) -> None:
    db = lftj.Database(BOOK)
    db.rules(RULES["vwap"], maintain={"vwap": declared})
    rows = {(1, 0, 5, 5)}
    followed = []
    for gone, come in ((), (2, 0, -1, 6)), ((), (3, 0, 2, 7)), ((2, 0, -1, 6), (4, 0, 3, 6)), ((), (5, 0, 1, 8)):
        with db.transaction() as tx:
            tx.insert("bids", [*rows, come])
            if gone:
                tx.erase("bids", [gone])
        rows = (rows | {come}) - {gone}
        assert list(db["vwap"]) == [(expected(rows, set())["vwap"],)]
        followed.append({strategy for head in tx.stats["heads"].values() for strategy in _strategies(head)})
    assert "triggers" not in followed[1]
    assert "triggers" in followed[3]
    log = db.apply([("bids", "insert", [(6, 0, 1, 9)])], watch=["vwap"]).logs["vwap"]
    assert next(iter(db["vwap"]))[0] in log.to_pylist()[-1].values()


def test_watching_while_a_negative_value_is_there_says_so() -> None:
    """It said to have it maintained by triggers, which it was."""
    db = lftj.Database(BOOK)
    db.rules(RULES["vwap"], maintain={"vwap": "triggers"})
    for events in [[(1, 0, 5, 5), (2, 0, -1, 6)], [(3, 0, 2, 7)]]:
        with pytest.raises(DataError, match="triggers cannot follow it for now: it adds negative numbers") as told:
            db.apply([("bids", "insert", events)], watch=["vwap"])
        assert "maintain=" not in str(told.value)
        db.apply([("bids", "insert", events)])
    db.apply([("bids", "delete", [(2, 0, -1, 6)])])
    done = db.apply([("bids", "insert", [(4, 0, 3, 8)])], watch=["vwap"])
    assert [tuple(row.values()) for row in done.logs["vwap"].to_pylist()] == [(0, 14, -1), (0, 24, 1)]


def test_one_that_reads_a_relation_twice_is_explained() -> None:
    """Its atoms say what it reads, one for each relation: what the head names may be in the other one."""
    db = lftj.Database(
        ".decl a(v:number, p:number)  .decl b(w:number, q:number)"
        "h[] = sum v : { a(v, p), t = count : { b(_, _) }, s = sum w : { a(w, q), q < p }, s < t }."
    )
    assert "by triggers" in str(db.explain("h"))
    db.load("a", [(1, 2), (3, 4)])
    db.load("b", [(1, 2), (3, 4)])
    assert list(db["h"]) == [(4,)]
    assert "by triggers" in str(db.explain())
    with pytest.raises(lftj.ProgramError, match="`a` -> `h` -> `a`, through the aggregate `sum`"):
        db.rules("a(v, v) :- h[] = v.")
