"""Aggregates over one body are summed in one pass: what each would be by itself, and what it reads is read once.

Catches: conditions of one aggregate that were applied to another; sums of one term that were taken for those of
another; groups that only others have; errors that were lost, or told of heads that have none; definitions that nothing
reads and that were not looked at; heads that are evaluated later from sums of before.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError, KeyConflictError
from lftj.evaluate import by_columns, folds_by_group
from lftj.evaluate.accumulators import Folding, Sums
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.folds_by_group import FoldedTerm, FoldsByGroup
from lftj.join import dense_groups, exactsum
from lftj.maintain import commit, recompute, refresh, step, triggers
from lftj.program.strata import Heads
from tests.aggregates.test_by_columns import CONDITIONS, DECLARED, DEFINED, OPERANDS, PAGES, VALUES, accepted, answers
from tests.conftest import examples
from tests.engine.programs import seeds

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

# What has no value for some rows.
PARTIAL = 4 * ("a / b > 0", "6 / a < 4", "k = a / (a - 1)")
OTHER = ".decl u(a:number) -> x:number\n"


def rules(rng: Random) -> list[tuple[str, str]]:
    """Of one body each, but for what they fold and some of their conditions."""
    most = rng.sample("abdefg", rng.choice([0, 1, 1, 2]))
    common = rng.sample(CONDITIONS, rng.choice([0, 1, 2]))
    if rng.random() < 0.3:
        common.append(rng.choice(DEFINED))
    joined = rng.random() < 0.4

    def rule(rng: Random, at: int) -> str:
        groups = most if rng.random() < 0.9 else rng.sample("abdefg", 1)
        op = rng.choice(["count", "sum", "sum", "mean", "min", "max"])
        operand = (
            "" if op == "count" else f" {rng.choice([*OPERANDS[:6], *OPERANDS, *('x' for _ in range(3) if joined)])}"
        )
        conditions = [*common, *rng.sample([*CONDITIONS, *DEFINED, *PARTIAL], rng.choice([0, 0, 1]))]
        rng.shuffle(conditions)
        read = {name for text in (operand, *conditions, *groups) for name in re.findall(r"\b[a-g]\b", text)}
        read |= {"a"} if joined else set()
        # Variables need not be called as in the other rules.
        names = {c: f"{c}{at}" if rng.random() < 0.3 and c not in groups else c for c in "abcdefg"}
        atoms = [f"t({', '.join(names[c] if c in read else '_' for c in 'abcdefg')})"]
        atoms += [f"u[{names['a']}] = x"] if joined else []

        def named(text: str) -> str:
            return re.sub(r"\b[a-g]\b", lambda found: names[found[0]], text)

        braces = ", ".join([*atoms, *map(named, conditions)])
        if groups:
            return f"h{at}[{', '.join(groups)}] = {op}{named(operand)} : {{ {braces} }}."
        return f"h{at}(n) :- n = {op}{named(operand)} : {{ {braces} }}."

    return accepted(rng, DECLARED + OTHER, rule)


@given(rng=seeds)
@examples(200, 15)
def test_what_each_is_by_itself(rng: Random) -> None:
    made = rules(rng)
    few = rng.choice([2, 3, 9])
    rows = [tuple(rng.choice(values[:few]) for values in VALUES.values()) for _ in range(rng.choice([0, 3, 12, 40]))]
    others = [(a, rng.choice([0, 1, 5])) for a in VALUES["number"] if rng.random() < 0.8]
    found = []
    for least in (0, 1 << 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_columns, "PART", rng.choice([1, 3, 100]))
            patch.setattr(folds_by_group, "ROOM", rng.choice([1, 20, 1 << 22]))
            patch.setattr(folds_by_group, "PER_GROUP", rng.choice([1, 16]))
            patch.setattr(exactsum, "VALUES", rng.choice([1, 16]))
            patch.setattr(dense_groups, "LEAST", rng.choice([1, 256]))
            db = lftj.Database._sized(DECLARED + OTHER, columns_from=least, **PAGES)
            if rng.random() < 0.5:  # what rules come to is evaluated with them
                db.load("t", rows)
                db.load("u", others)
            db.rules("\n".join(text for _, text in made))
            db.load("t", rows)
            db.load("u", others)
            db.snapshot()  # evaluates all of them
            found.append(list(answers(db, [head for head, _ in made])))
    assert found[0] == found[1], made


REPORT = """
create table sale (shop int not null, kind text not null, qty int, price decimal(10, 2) not null, weight double);
create view report as
    select shop, kind, count(*) as n, sum(qty) as items, avg(price) as mean, sum(price) as total,
        sum(price * qty) as paid, sum(weight) as load, count(*) filter (where qty > 3) as many
    from sale where price > 1 group by shop, kind
"""


def sales(n: int) -> list[dict[str, Any]]:
    return [
        {
            "shop": i % 7,
            "kind": "abc"[i % 3],
            "qty": None if i % 5 == 0 else i % 9,
            "price": Decimal(i % 11) / 4,
            "weight": None if i % 4 == 0 else i / 8,
        }
        for i in range(n)
    ]


def report(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The view, by loops."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["price"] > 1:
            groups.setdefault((row["shop"], row["kind"]), []).append(row)
    found = []
    for (shop, kind), own in groups.items():
        qty = [row["qty"] for row in own if row["qty"] is not None]
        paid = [row["price"] * row["qty"] for row in own if row["qty"] is not None]
        load = [row["weight"] for row in own if row["weight"] is not None]
        total = sum(row["price"] for row in own)
        mean = float(total / len(own))
        sums = [sum(values) if values else None for values in (qty, paid, load)]
        found.append((shop, kind, len(own), sums[0], mean, total, *sums[1:], sum(q > 3 for q in qty)))
    return sorted(found)


def test_a_table_is_read_once_for_all_aggregates_of_a_group_by() -> None:
    """It was read, and its groups were looked for, once for each of them."""
    db = lftj.Database._sized(columns_from=0)
    db.sql(REPORT)
    rows = sales(1000)
    db.load("sale", rows)
    assert sorted(db["report"]) == report(rows)
    read = [done.counters.steps for done in db._state.evaluations.values() if done.counters and "sale" in done.instead]
    assert sorted(read) == [0] * 5 + [len(rows)]
    with db.transaction() as tx:
        tx.erase("sale", rows[:30])
        tx.insert("sale", [{**row, "qty": 4} for row in rows[:30]])
    rows = [{**row, "qty": 4} if i < 30 else row for i, row in enumerate(rows)]
    assert sorted(db["report"]) == report(rows)


def test_rows_of_which_nothing_is_read_do_not_pile_up() -> None:
    """Two counts of one body have no column between them: all rows of a table waited to be counted at once."""
    db, room = lftj.Database(), folds_by_group.ROOM
    rows = FoldsByGroup(
        db._evaluator, [], frozenset(), [FoldedTerm(Folding("count", 0, ""), None, frozenset(), frozenset())]
    )
    for _ in range(5):
        rows.add(np.empty((0, room // 2), np.int64))
        assert sum(part.groups.shape[1] for part in rows._waiting) < room
    found = rows.folded()
    assert found is not None
    assert [sums.values.tolist() for sums in found.values() if isinstance(sums, Sums)] == [[[5 * (room // 2)]]]


def test_a_load_within_a_transaction_is_read_once_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "BULK_ROWS", 500)
    monkeypatch.setattr(step, "BULK_ROWS", 500)
    db = lftj.Database._sized(columns_from=0)
    db.sql(REPORT)
    rows = sales(1000)
    db.load("sale", rows[:20])
    assert sorted(db["report"]) == report(rows[:20])
    with db.transaction() as tx:
        tx.insert("sale", rows[20:])
    assert sorted(db["report"]) == report(rows)
    read = [done.counters.steps for done in db._state.evaluations.values() if done.counters and "sale" in done.instead]
    assert sorted(read) == [0] * 5 + [len(rows)]


def test_an_aggregate_without_a_value_does_not_hide_the_others() -> None:
    db = lftj.Database._sized(".decl t(k:number, a:number, b:number)", columns_from=0)
    db.rules("s[k] = sum a : { t(k, a, _) }. q[k] = sum (a / b) : { t(k, a, b) }. n[k] = count : { t(k, _, _) }.")
    db.load("t", [(1, 5, 0), (1, 6, 2), (2, 7, 1)])
    db.snapshot()
    assert list(db["s"]) == [(1, 11), (2, 7)]
    assert list(db["n"]) == [(1, 2), (2, 1)]
    with pytest.raises(EvaluationError, match="with k = 1, a = 5, b = 0: division by zero"):
        list(db["q"])


def test_what_is_asked_again_and_again_is_sorted_if_that_leads_to_few_rows() -> None:
    """And not for an aggregate that would take few steps by itself, beside others that read all rows."""
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table t (k int primary key, a int not null, b int not null, c int not null)")
    db.load("t", [(i, i % 1000, i % 7, i % 3) for i in range(4000)])
    few = "select sum(b) as s, sum(c) as u, count(*) as n from t where a = 5"
    every = "select b, sum(a) as s, sum(a * c) as p, count(*) as n from t where c < 2 group by b order by b"
    expected = [list(db.sql(few)), list(db.sql(every))]
    assert expected[0] == [(sum(i % 7 for i in range(5, 4000, 1000)), sum(i % 3 for i in range(5, 4000, 1000)), 4)]
    orders = []
    for _ in range(by_columns.OFTEN + 2):
        assert list(db.sql(every)) == expected[1]
        orders.append(len(db._state.relations["t"].orders))
    assert orders == [1] * len(orders)
    for _ in range(by_columns.OFTEN + 1):
        assert list(db.sql(few)) == expected[0]
    assert len(db._state.relations["t"].orders) > 1


def test_extremes_below_a_question_are_folded_from_what_derives_their_bindings() -> None:
    """These became a relation, sorted, with a column for each variable of the braces: 1.3 s for a million rows."""
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table sale (shop int not null, price double, day date not null, qty int not null)")
    rows = [(i % 20, None if i % 7 == 0 else i / 8 - 9, date(2024, 1, 1 + i % 28), i % 5) for i in range(900)]
    db.load("sale", rows)
    text = """select shop % 3 as part, count(*) as n, max(price) as most, min(day) as since,
        max(qty) filter (where price > 20) as many, sum(price) as total from sale where qty > 1 group by 1"""
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        if row[3] > 1:
            groups.setdefault(row[0] % 3, []).append(row)
    expected = []
    for part, own in groups.items():
        prices = [price for _, price, _, _ in own if price is not None]
        many = max((qty for _, price, _, qty in own if price is not None and price > 20), default=None)
        expected.append((part, len(own), max(prices), min(row[2] for row in own), many, sum(prices)))
    evaluated: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        kept = recompute.evaluate

        def evaluate(evaluator: Evaluator, heads: Heads, *args: Any, **how: Any) -> Any:
            evaluated.append(heads.name)
            return kept(evaluator, heads, *args, **how)

        patch.setattr(refresh, "evaluate", evaluate)
        assert sorted(db.sql(text)) == sorted(expected)
    assert not [name for name in evaluated if name.endswith(".all")]
    db.sql(f"create view report as {text}")
    assert sorted(db["report"]) == sorted(expected)
    with db.transaction() as tx:
        tx.erase("sale", rows[-40:])
    assert sorted(db["report"]) == sorted(db.sql(text)) != sorted(expected)


def test_extremes_of_what_is_read_elsewhere_or_has_facts() -> None:
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table t (k int not null, v int not null); insert into t values (1, 5), (1, 9), (2, 4), (3, 1)")
    over = "with x as (select k, v * 2 as w from t where v > 1 {}) select {} from x"
    assert list(db.sql(over.format("", "max(w)"))) == [(18,)]
    assert list(db.sql(over.format("", "max(w), count(distinct w)"))) == [(18, 3)]
    assert list(db.sql(over.format("union all select 7, 100", "max(w), min(w)"))) == [(100, 8)]
    assert list(db.sql(over.format("union all select 7, v from t", "max(w), min(w)"))) == [(18, 1)]
    kept = "with x as (select k, v * 2 as w from t where v > 1) select w, (select max(w) from x) from x"
    assert sorted(db.sql(kept)) == [(8, 18), (10, 18), (18, 18)]


def test_bindings_that_other_rows_decide_are_not_left_out() -> None:
    """`big` says that some row of a name has many, which need not be the row that is counted."""
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table t (name text not null, qty int not null)")
    db.load("t", [("a", 1), ("a", 9), ("b", 2), ("c", 7), ("c", 8), ("c", 1)])
    big = "with big as (select distinct {} as part from t where qty > {}) "
    over = "select count(*) as n, sum(qty) as items from t, big where {} = part"
    assert list(db.sql(big.format("name", 5) + over.format("name"))) == [(5, 26)]
    assert list(db.sql(big.format("upper(name)", 5) + over.format("upper(name)"))) == [(5, 26)]
    assert list(db.sql(big.format("qty", 5) + over.format("qty"))) == [(3, 24)]
    within = "select sum(qty) as items from t where exists (select 1 from t as u where u.qty > 5 and u.name = t.name)"
    assert list(db.sql(within)) == [(26,)]


def test_a_value_that_has_several_is_refused_below_an_extreme() -> None:
    """It is what is checked in a relation that the extreme alone reads."""
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table t (k int not null); create table u (k int not null, v int not null)")
    db.load("t", [(1,), (2,)])
    db.load("u", [(1, 5), (2, 7)])
    questions = (
        "select max((select v from u where u.k = t.k)) as most from t",
        "select max(v) as most from (select (select v from u where v < 7) as v) x",
    )
    assert [list(db.sql(text)) for text in questions] == [[(7,)], [(5,)]]
    db.load("u", [(1, 6)])
    for text in questions:
        with pytest.raises(KeyConflictError, match="stands for a value has several"):
            db.sql(text)


TEXTS = ("upper(name)", "substr(name, 1, 1)", "length(name)", "name || '!'", "round(price)", "cast(price as int)")
CHOSEN = (
    "name like '%1%'",
    "length(name) > 2",
    "price > 2",
    "qty in (1, 3)",
    "name not like 'a%'",
    "price is not null",
)
FOLDED = (
    "count(*)",
    "sum(qty)",
    "avg(price)",
    "max(price)",
    "min(qty)",
    "max(name)",
    "min(upper(name))",
    "count(distinct name)",
)


@given(rng=seeds)
@examples(60, 6)
def test_questions_about_texts_are_answered_as_views_are(rng: Random) -> None:
    """By columns, with relations of bindings left out, whatever would be evaluated by maps; or walked."""
    groups, folded = rng.sample(TEXTS, rng.choice([0, 1, 1, 2])), rng.sample(FOLDED, rng.choice([1, 2, 4]))
    folded = [f"{fold} filter (where {rng.choice(CHOSEN)})" if rng.random() < 0.3 else fold for fold in folded]
    where = " and ".join(rng.sample(CHOSEN, rng.choice([0, 1, 1, 2]))) or "true"
    shown = ", ".join(f"{term} as c{i}" for i, term in enumerate([*groups, *folded]))
    grouped = f"group by {', '.join(str(i + 1) for i in range(len(groups)))}" if groups else ""
    text = f"select {shown} from t where {where} {grouped}"
    rows = [
        (rng.choice(["a", "a1", "Ab", "b12", ""]), rng.choice([1, 2, 3]), rng.choice([None, 0.5, 2.5, 1.49]))
        for _ in range(rng.choice([0, 3, 30]))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_columns, "PART", rng.choice([1, 100]))
        patch.setattr(by_columns, "PART_OF_TEXTS", rng.choice([1, 100]))
        patch.setattr(folds_by_group, "PER_GROUP", rng.choice([1, 16]))
        if rng.random() < 0.5:
            patch.setattr(triggers.Triggers, "_is_far_dearer", lambda *_: True)
        db = lftj.Database._sized(columns_from=rng.choice([0, 0, 1 << 60]), **PAGES)
        db.sql("create table t (name text not null, qty int not null, price double)")
        db.load("t", rows)
        asked = sorted(db.sql(text), key=str)
    db = lftj.Database._sized(columns_from=1 << 60)
    db.sql(f"create table t (name text not null, qty int not null, price double); create view v as {text}")
    db.load("t", rows)
    assert sorted(db["v"], key=str) == asked, text
