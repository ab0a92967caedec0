"""Aggregates over one body are summed in one pass: what each would be by itself, and what it reads is read once.

Catches: conditions of one aggregate that were applied to another; sums of one term that were taken for those of
another; groups that only others have; errors that were lost, or told of heads that have none; definitions that nothing
reads and that were not looked at; heads that are evaluated later from sums of before.
"""

from __future__ import annotations

import re
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import by_columns, one_pass
from lftj.evaluate.accumulators import Folding
from lftj.evaluate.one_pass import FoldedTerm, SumsByFold
from lftj.join import dense_groups
from lftj.maintain import commit, step
from tests.aggregates.test_by_columns import CONDITIONS, DECLARED, DEFINED, OPERANDS, VALUES, accepted, answers
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
        op = rng.choice(["count", "sum", "sum", "mean"])
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
            patch.setattr(one_pass, "ROOM", rng.choice([1, 20, 1 << 22]))
            patch.setattr(dense_groups, "LEAST", rng.choice([1, 256]))
            db = lftj.Database._sized(DECLARED + OTHER, columns_from=least)
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
    db = lftj.Database()
    rows = SumsByFold(
        db._evaluator, [], frozenset(), [FoldedTerm(Folding("count", 0, ""), None, frozenset(), frozenset())]
    )
    for _ in range(5):
        rows.add(np.empty((0, one_pass.ROOM // 2), np.int64))
        assert sum(part.shape[1] for part in rows._waiting) < one_pass.ROOM
    found = rows.sums()
    assert found is not None
    assert [sums.values.tolist() for sums in found.values()] == [[[5 * (one_pass.ROOM // 2)]]]


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
