"""Recursion along acyclic data whose values are decimals, times and null, against sums in plain Python.

Catches: an aggregate that adds codes of a type as those of another, a sum that leaves its type unnoticed, null counted.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given

import lftj
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.plain.evaluate import evaluate, parse

BILL = """
    .decl own(p:number) -> c:TYPE
    .decl uses(p:number, s:number, q:number)
    total[p] = own[p] + sum q * total[s] : { uses(p, s, q) }.
"""
PLAN = """
    .decl takes(t:number) -> d:duration
    .decl start(t:number) -> at:timestamp
    .decl after(t:number, u:number)
    .decl early(t:number, at:timestamp?)
    done[t] = max e : { after(t, u), done[u] = e } + d :- takes[t] = d.
    done[t] = s + d :- start[t] = s, takes[t] = d, !after(t, _).
    first[t] = min e : { after(t, u), first[u] = e ; early(t, e) }.
"""


def total(p: int, own: dict[int, Any], uses: dict[tuple[int, int], int]) -> Any:
    if p not in own:
        return None
    pieces = ((q, total(s, own, uses)) for (part, s), q in uses.items() if part == p)
    return sum((q * cost for q, cost in pieces if cost is not None), own[p])


@pytest.mark.parametrize(("type", "unit"), [("decimal(18,2)", Decimal("0.01")), ("duration", dt.timedelta(minutes=1))])
@examples(15, 2)
@given(programs.seeds)
def test_costs_are_exact(type: str, unit: Any, rng: Random) -> None:
    """Of durations there was no sum of nothing, which is 0 of a part that uses no other."""
    db = lftj.Database._sized(BILL.replace("TYPE", type), **programs.make_sizes(rng))
    own: dict[int, Any] = {}
    uses: dict[tuple[int, int], int] = {}
    for _ in range(12 if JIT else 3):
        with db.transaction() as tx:
            for _ in range(rng.randint(1, 4)):
                p, s = sorted(rng.sample(range(8), 2))
                if rng.random() < 0.5:
                    own[p] = rng.randint(-500, 500) * unit
                    tx.upsert("own", [(p, own[p])])
                elif (p, s) in uses:
                    tx.erase("uses", [(p, s, uses.pop((p, s)))])
                else:
                    uses[p, s] = rng.randint(-2, 3)
                    tx.insert("uses", [(p, s, uses[p, s])])
        want = {p: total(p, own, uses) for p in own}
        assert dict(db["total"]) == {p: cost for p, cost in want.items() if cost is not None}


def test_a_sum_beyond_18_digits_is_refused() -> None:
    db = lftj.Database(BILL.replace("TYPE", "decimal(18,2)"))
    most = Decimal("9999999999999999.99")
    db.load("own", [(1, Decimal(0)), (2, Decimal(0)), (3, most - 5), (4, Decimal(0))])
    db.load("uses", [(1, 2, 1), (2, 3, 1), (2, 4, 1)])
    assert dict(db["total"])[1] == most - 5
    with db.transaction() as tx:
        tx.upsert("own", [(4, Decimal(5))])
    assert dict(db["total"])[2] == most
    with pytest.raises(lftj.errors.EvaluationError, match="sum"), db.transaction() as tx:
        tx.upsert("own", [(4, Decimal("5.01"))])
    assert dict(db["total"])[2] == most
    assert dict(db["own"])[4] == 5


def at(hour: int) -> dt.datetime:
    return dt.datetime(2024, 5, 1, hour)


def test_the_end_of_a_plan_is_followed() -> None:
    db = lftj.Database(PLAN)
    db.load("takes", [(t, dt.timedelta(hours=t)) for t in (1, 2, 3, 4)])
    db.load("start", [(1, at(0)), (2, at(1))])
    db.load("after", [(3, 1), (3, 2), (4, 3)])
    db.load("early", [(1, at(9)), (1, None), (2, at(7)), (4, None)])
    first: dict[Any, Any] = {1: at(9), 2: at(7), 3: at(7), 4: at(7)}
    assert hours(db["done"]) == {1: at(1), 2: at(3), 3: at(6), 4: at(10)}
    assert hours(db["first"]) == first
    with db.transaction() as tx:
        tx.upsert("start", [(1, at(4))])
        tx.erase("early", [(2, at(7))])
        tx.insert("early", [(2, None)])
    assert hours(db["done"]) == {1: at(5), 2: at(3), 3: at(8), 4: at(12)}
    assert hours(tx.delta["done"].inserted) == {1: at(5), 3: at(8), 4: at(12)}
    assert hours(db["first"]) == {1: at(9), 3: at(9), 4: at(9)}


def hours(rows: Any) -> dict[Any, Any]:
    """Rows (task, time) without the zone."""
    return {t: time.replace(tzinfo=None) for t, time in rows}


@pytest.mark.filterwarnings("ignore:.*occurs only once")
@pytest.mark.parametrize("type", ["number", "symbol"])
def test_what_a_value_keeps_from_null_is_not_null_in_the_rows(type: str) -> None:
    """Of a variable that only `t[y]` keeps from null the rows held null, of which a text was computed: a crash."""
    a, b, c = "abc" if type == "symbol" else (1, 2, 3)
    rules = f"""
        .decl e(x:{type}, y:{type}?)
        .decl w(x:{type}) -> y:{type}?
        .decl t(x:{type}) -> y:{type}
        t[x] = x :- w[x] = v, n = min (max(u, x)) : {{ x < y, t[y] = u, !w(x, u), e(y, x) }}.
        t[x] = x :- e(x, y), is_null(y).
    """
    db = lftj.Database(rules)
    facts: dict[str, list[tuple[Any, ...]]] = {
        "e": [(b, a), (c, a), (c, b), (c, None)],
        "w": [(a, None), (b, c)],
    }
    for name, rows in facts.items():
        for row in rows:
            with db.transaction() as tx:
                tx.insert(name, [row])
    assert set(db["t"]) == evaluate(parse(rules), {name: set(rows) for name, rows in facts.items()})["t"]
    assert set(db["t"]) == {(a, a), (c, c)}
