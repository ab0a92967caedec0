"""The first rows of an answer, without making the others: what all rows, sorted and cut, are.

Catches: rows that are alike in the first column of the order, and were cut; null at the wrong end; copies of a row that
were counted as one, or equal rows as two; columns that a query gives out in another order than its rule; conditions and
joins that were left out; errors of rows that are behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import by_columns
from lftj.sql import leading_rows
from lftj.sql.question import Question
from tests.conftest import examples
from tests.engine.programs import seeds

TABLES = """
create table t (k int {key}, a int, b int not null, c text not null, d decimal(6, 2), e double not null);
create table u (a int primary key, x int, y text not null)
"""
VALUES: dict[str, tuple[Any, ...]] = {
    "a": (0, None, 1, -(2**63) + 1, 2**63 - 1),
    "b": (0, 1, 2, -(2**63), 2**63 - 1),
    "c": ("b", "", "ab", "ä"),
    "d": (None, Decimal("1.50"), Decimal("-3"), Decimal(0)),
    "e": (0.0, -1.5, float("inf"), 2.25),
}
CONDITIONS = (
    *("b < 2", "t.a is not null", "c <> 'b'", "e > 0", "d is null or d > 0", "t.a = 1", "t.a <= b"),
    *("b in (select v.a from u v)", "b < (select max(v.a) from u v)", "not exists (select 1 from u v where v.x = b)"),
)


def query(rng: Random) -> str:
    joined = rng.random() < 0.4
    columns = ["t.a", "b", "c", "d", "e", "k", *(["x", "y"] if joined else [])]
    shown = rng.sample(columns, rng.choice([1, 2, 3, len(columns)]))
    conditions = rng.sample(CONDITIONS, rng.choice([0, 0, 1, 2])) + (["t.a = u.a"] if joined else [])
    where = f" where {' and '.join(f'({c})' for c in conditions)}" if conditions else ""
    distinct = rng.random() < 0.2
    ordered = rng.sample(shown if distinct else columns, rng.choice([0, 1, 1, min(2, len(shown))]))
    by = [f"{c} {rng.choice(['', 'desc'])} {rng.choice(['', 'nulls first', 'nulls last'])}" for c in ordered]
    order = f" order by {', '.join(by)}" if by else ""
    end = f" limit {rng.choice([0, 1, 2, 3, 5])}" if rng.random() < 0.9 else ""
    end += f" offset {rng.randint(0, 3)}" if rng.random() < 0.4 else ""
    tables = "t, u" if joined else "t"
    return f"select {'distinct ' if distinct else ''}{', '.join(shown)} from {tables}{where}{order}{end}"


def rows(rng: Random, n: int) -> Iterator[tuple[Any, ...]]:
    few = rng.choice([1, 2, 5])
    for k in range(n):
        yield (k, *(rng.choice(values[:few]) for values in VALUES.values()))


@given(rng=seeds)
@examples(200, 15)
def test_what_all_rows_sorted_and_cut_are(rng: Random) -> None:
    key = rng.choice(["primary key", "not null"])
    held = list(rows(rng, rng.choice([0, 5, 30, 60])))
    if key == "not null":
        held = [(rng.randint(0, 2), *row[1:]) for row in held] + rng.sample(held, len(held) // 3)
    others = [(a, rng.choice([None, 1, 2]), rng.choice("pq")) for a in VALUES["a"] if a is not None]
    questions = [query(rng) for _ in range(4)]
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_columns, "PART", rng.choice([1, 3, 100]))
        for few in (rng.choice([1, 4]), 1 << 60):
            patch.setattr(leading_rows, "FEW_TIMES", few)
            db = lftj.Database._sized(columns_from=0)
            db.sql(TABLES.format(key=key))
            db.load("t", held)
            db.load("u", others)
            answers.append([list(db.sql(question)) for question in questions])
    for question, some, every in zip(questions, *answers, strict=True):
        assert some == every, question


def test_the_other_rows_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million sales took 75 ms to give the ten dearest, and 400 with their customers' regions."""
    made: list[object] = []
    evaluate = Question._evaluate

    def noted(question: Question, *given: Any) -> None:
        made.append(question)
        evaluate(question, *given)

    monkeypatch.setattr(Question, "_evaluate", noted)
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table sale (id int, c int not null, p int not null); create table c (c int primary key, r text)")
    db.load("sale", [(i % 400, i % 10, i * 7 % 500) for i in range(500)])
    db.load("c", [(i, f"r{i}") for i in range(10)])
    dearest = sorted((-(i * 7 % 500), i % 400, f"r{i % 10}") for i in range(500))[:5]
    found = db.sql("select id, r from sale, c where sale.c = c.c order by p desc, id limit 5")
    assert list(found) == [(id, r) for _, id, r in dearest]
    assert list(db.sql("select id from sale order by id limit 2 offset 1")) == [(0,), (1,)]
    assert not made
    assert len(db.sql("select id, count(*) from sale group by id order by 2 desc limit 3")) == 3
    assert made


def test_a_row_behind_may_have_an_error() -> None:
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table t (a int not null, b int not null)")
    db.load("t", [(i, i - 20) for i in range(40)])
    with pytest.raises(EvaluationError):
        db.sql("select a, cast(9e18 as bigint) + b * b * 1000000000000000000 from t order by a limit 1")
