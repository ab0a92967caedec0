"""Joins with what has one row for each row of the largest relation, by its columns: what a walk gives.

Catches: rows of other relations that were lost, doubled or taken for those of another key; keys that nothing declares
and that the data do not have; null beside a number with the same code; conditions of one part that were applied to
another; constants that were forgotten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import by_columns, column_reading
from lftj.join import row_table
from lftj.join.row_table import RowTable
from tests.aggregates.test_by_columns import DECLARED, PAGES, VALUES, accepted, answers
from tests.conftest import examples
from tests.engine.programs import seeds

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

OTHERS = """
.decl u(a:number) -> x:number
.decl v(d:symbol, x:number) -> w:decimal(6,2)
.decl s(g:unsigned, q:symbol)
.decl n(b:number?, z:number)
.decl m(b:number)
.decl k(a:number, d:symbol)
.decl r(a:number, x:number, y:number)
"""
NUMBERS, TEXTS = VALUES["number"], VALUES["symbol"]
# What each atom needs to be bound, and its text, sometimes with a constant.
ATOMS = {
    "u[a] = x": "a",
    "u[a] = 1": "a",
    "v[d, x] = w": "dx",
    "v[d, 1] = w": "d",
    "s(g, q)": "g",
    's(g, "x")': "g",
    "s(g, _)": "g",
    "n(b, z)": "b",
    "n(b, 2)": "b",
    "m(b)": "b",
    "k(a, d)": "ad",
    "r(a, a, _)": "a",
    "r(a, x, x)": "a",
    "r(x, x, x)": "x",
}
TYPES = {**dict(zip("abcdefg", VALUES, strict=True)), "x": "number", "w": "decimal(6,2)", "q": "symbol", "z": "number"}
CONDITIONS = (
    "x > 0",
    "x < a",
    "a / x > 0",
    "w > 1.0d",
    'q != "x"',
    "z > x",
    "z < 2",
    "a > 0",
    "b != 1",
    "y = x + a, y > 1",
)


def rule(rng: Random, at: int) -> str:
    atoms = rng.sample(list(ATOMS), rng.choice([1, 1, 2, 3]))
    conditions = rng.sample(CONDITIONS, rng.choice([0, 0, 1, 2]))
    body = ", ".join([*atoms, *conditions])
    named = set(re.findall(r"\b[a-gxwqzy]\b", body))
    free = sorted((named & TYPES.keys()) | set(rng.sample("abdefg", 2)))
    read = {*named, *free}
    t = f"t({', '.join(c if c in read else '_' for c in 'abcdefg')})"
    groups = rng.sample(free, min(len(free), rng.choice([0, 1, 2])))
    op = rng.choice(["count", "sum", "mean", "rows", "rows"])
    if op == "rows":
        return f"h{at}({', '.join(groups or free)}) :- {t}, {body}."
    numbers = [v for v in free if TYPES[v] in ("number", "decimal(6,2)", "number?")]
    operand = "" if op == "count" else rng.choice([*numbers, *(f"{v} * {v}" for v in numbers), "a"])
    if operand and "a" in operand and "a" not in read:
        t = t.replace("t(_", "t(a", 1)
    head = f"h{at}[{', '.join(groups)}] = {{}}." if groups else f"h{at}(i) :- i = {{}}."
    return head.format(f"{op} {operand} : {{ {t}, {body} }}")


def rows(rng: Random) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    yield "t", [tuple(rng.choice(values) for values in VALUES.values()) for _ in range(rng.randint(0, 12))]
    yield "u", [(a, rng.choice(NUMBERS)) for a in rng.sample(NUMBERS, 4)]
    pairs = [(d, x) for d in TEXTS for x in NUMBERS]
    yield "v", [(*pair, rng.choice(VALUES["decimal(6,2)"])) for pair in rng.sample(pairs, rng.randint(0, 12))]
    some = rng.sample(VALUES["unsigned"], 3) + rng.choices(VALUES["unsigned"], k=rng.choice([0, 0, 2]))
    yield "s", [(g, rng.choice(TEXTS)) for g in some]
    others = rng.sample(VALUES["number?"], 2) + rng.choices(VALUES["number?"], k=rng.choice([0, 0, 2]))
    yield "n", [(b, rng.choice((0, 2, 5))) for b in others]
    yield "m", [(b,) for b in rng.sample(NUMBERS, 4)]
    yield "k", [(rng.choice(NUMBERS), rng.choice(TEXTS)) for _ in range(4)]
    yield "r", [tuple(rng.choices(NUMBERS[:3], k=3)) for _ in range(rng.choice([3, 12]))]


@given(rng=seeds)
@examples(300, 20)
def test_what_a_walk_gives(rng: Random) -> None:
    rules = accepted(rng, DECLARED + OTHERS, rule)
    given_rows = list(rows(rng))
    found = []
    for least, part in ((0, rng.choice([1, 3, 100])), (1 << 60, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_columns, "PART", part)
            patch.setattr(by_columns, "MANY", 99)
            patch.setattr(column_reading, "UNDECLARED", 1 << 60)
            program = DECLARED + OTHERS + "\n".join(made for _, made in rules)
            db = lftj.Database._sized(program, columns_from=least, **PAGES)
            for name, held in given_rows:
                db.load(name, held)
            db._kept.passing = True  # as of a question: what is followed is walked first
            found.append(list(answers(db, [head for head, _ in rules])))
    assert found[0] == found[1], rules


def shop() -> lftj.Database:
    db = lftj.Database._sized(columns_from=0)
    db.sql(
        "create table sale (id int primary key, customer int not null, price int not null, day date not null);"
        "create table customer (id int primary key, region int not null);"
        "create table region (id int not null, name text not null)"
    )
    db.load("sale", [(i, i * 7 % 30, i, date(2024, 1, 1 + i % 9)) for i in range(200)])
    db.load("customer", [(i, i % 4) for i in range(30)])
    db.load("region", [(i, f"r{i}") for i in range(4)])
    return db


BY_REGION = (
    "select region.name, sum(price) as total from sale, customer, region where sale.customer = customer.id and "
    "customer.region = region.id and sale.price > 3 group by region.name order by region.name"
)


def totals(db: lftj.Database) -> list[tuple[str, int]]:
    found = Counter[str]()
    for sale, customer, price, _ in db["sale"]:
        assert sale == price
        found[f"r{dict(db['customer'])[customer]}"] += price if price > 3 else 0
    return sorted(found.items())


def test_a_star_is_asked_without_sorting_it() -> None:
    """The fact table was sorted by the key of a dimension, and planning it took as long again."""
    db = shop()
    assert list(db.sql(BY_REGION)) == totals(db)
    assert len(db._state.relations["sale"].orders) == len(db._state.relations["customer"].orders) == 1


def test_a_star_that_is_asked_again_and_again_is_sorted_where_that_leads_to_few() -> None:
    db = shop()
    of_one = "select sum(price) as s from sale, customer where sale.customer = customer.id and customer.id = {}"
    for i in range(by_columns.OFTEN + 2):  # of another customer each time
        assert list(db.sql(of_one.format(i))) == [(sum(p for p in range(200) if p * 7 % 30 == i),)]
        assert list(db.sql(BY_REGION)) == totals(db)
        if i < by_columns.OFTEN - 2:
            assert len(db._state.relations["sale"].orders) == 1
    assert len(db._state.relations["sale"].orders) == 2  # by customer; what reads all rows sorts none


def test_a_view_of_a_star_follows_changes() -> None:
    db = shop()
    db.sql(
        f"create view total as {BY_REGION}; create view of_region as select customer, name from customer, region, sale"
        " where customer.id = sale.customer and region = region.id".replace("select customer,", "select sale.id,")
    )
    for i in range(6):
        with db.transaction() as tx:
            tx.insert("sale", [(500 + i, i, 500 + i, date(2024, 2, 1))])
            tx.erase("sale", [(i, i * 7 % 30, i, date(2024, 1, 1 + i % 9))])
            tx.upsert("customer", [(i, (i + 1) % 4)])
        assert sorted(db["total"]) == totals(db)
        names = {sale: f"r{dict(db['customer'])[customer]}" for sale, customer, _, _ in db["sale"]}
        assert {row[0]: row[1] for row in db["of_region"]} == names


def test_explain_says_what_was_looked_up() -> None:
    db = lftj.Database._sized(
        ".decl sale(id:number, customer:number, price:number)  .decl region(customer:number) -> region:number "
        "total[r] = sum p : { sale(_, c, p), region[c] = r }.",
        columns_from=0,
    )
    db.load("sale", [(i, i % 5, i) for i in range(40)])
    db.load("region", [(i, i % 2) for i in range(4)])
    assert dict(db["total"]) == {r: sum(i for i in range(40) if i % 5 < 4 and i % 5 % 2 == r) for r in (0, 1)}
    said = "without a walk: `sale` is read by columns, for each row with its row of `region` by c"
    assert said in db.explain("total")
    with db.transaction() as tx:
        tx.insert("region", [(4, 7)])
    assert (7, sum(range(4, 40, 5))) in db["total"]


def test_a_key_order_that_users_give_is_walked() -> None:
    db = lftj.Database._sized(columns_from=0)
    rules = ".decl e(a:number, b:number)  .decl f(b:number) -> c:number  h(a, c) :- e(a, b), f[b] = c."
    db.rules(rules, key_orders={"h": ("b", "c", "a")}, maintain={"h": "recompute"})
    db.load("e", [(i, i % 3) for i in range(9)])
    db.load("f", [(i, -i) for i in range(2)])
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("f", [(2, -2)])
    assert set(db["h"]) == {(i, -(i % 3)) for i in range(9)}
    assert "key order b, c, a  (forced)" in db.explain("h")


def test_rows_of_a_view_that_was_read_by_columns_are_followed() -> None:
    """It has no plan of a walk; following by deltas is planned when the first change comes."""
    db = lftj.Database._sized(
        ".decl sale(id:number, customer:number)  .decl region(customer:number) -> region:number "
        "of(i, r) :- sale(i, c), region[c] = r.",
        maintain={"of": "delta"},
        columns_from=0,
    )
    db.load("sale", [(i, i % 5) for i in range(40)])
    db.load("region", [(i, i % 2) for i in range(5)])
    db._kept.passing = True  # as of a question
    assert set(db["of"]) == {(i, i % 5 % 2) for i in range(40)}
    assert db._state.evaluations[db._state.strata.of("of")[0]].plan is None
    db._kept.passing = False
    for at in range(3):
        with db.transaction() as tx:
            tx.erase("region", [(at, at % 2)])
        assert set(tx.delta["of"].erased) == {(i, at % 2) for i in range(40) if i % 5 == at}
    assert set(db["of"]) == {(i, i % 5 % 2) for i in range(40) if i % 5 > 2}


def test_a_term_without_a_value_is_an_error_only_where_rows_meet() -> None:
    db = lftj.Database._sized(
        ".decl e(a:number, b:number)  .decl f(a:number) -> x:number h[b] = sum y : { e(a, b), f[a] = x, y = b / x }.",
        columns_from=0,
    )
    db.load("e", [(1, 4), (2, 9), (2, 3)])
    db.load("f", [(1, 2), (3, 0)])
    assert list(db["h"]) == [(4, 2)]
    db.load("f", [(2, 0)])
    with pytest.raises(EvaluationError, match="division by zero"):
        list(db["h"])


@given(rng=seeds)
@examples(200, 20)
def test_row_tables_find_the_row_of_a_key(rng: Random) -> None:
    k, n = rng.randint(1, 3), rng.randint(0, 40)
    ends = [-(2**63), 2**63 - 1]
    low, high = rng.choice([(0, 50), (-5, 5), (-(2**62), 2**62)])
    values = [rng.randint(low, high) for _ in range(60)] + (ends if rng.random() < 0.3 else [])
    drawn = [tuple(rng.choice(values) for _ in range(k)) for _ in range(n)]
    keys = drawn if rng.random() < 0.2 else list(dict.fromkeys(drawn))
    asked = [tuple(rng.choice(values) for _ in range(k)) for _ in range(20)] + keys[:5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_table, "PLACES", rng.choice([0, 4]))
        made = RowTable.of(np.array(keys, np.int64).reshape(len(keys), k).T)
    assert (made is None) == (len(set(keys)) < len(keys))
    if made is not None:
        found = made.rows(np.array(asked, np.int64).T)
        assert found.tolist() == [keys.index(key) if key in keys else -1 for key in asked]
