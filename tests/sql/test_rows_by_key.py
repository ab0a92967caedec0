"""Statements about rows that are named by their keys: nothing is built for them, and no table is walked."""

from __future__ import annotations

import pytest

import lftj
from lftj.evaluate.evaluator import Evaluator

pytest.importorskip("sqlglot")

CHANGES = [
    "update t set c = c + 1 where id = 77",
    "update t set a = 5, c = b + c where id = 79 and d > 0",
    "delete from t where id < 10",
    "delete from t where id = 78 and a + b > 0",
]
CONFLICTS = [
    "insert into t values (77, 1, 2, 3, 4), (-1, 1, 2, 3, 4) on conflict do nothing",
    "insert into t values (77, 1, 2, 3, 4), (-1, 1, 2, 3, 4) on conflict (id) do update set c = t.c + excluded.c",
    "insert or replace into t (id, a) values (77, 5), (-1, 6)",
]


def table(rows: int) -> lftj.Database:
    db = lftj.Database()
    db.sql("create table t (id bigint primary key, a bigint, b bigint, c bigint, d bigint)")
    db.load("t", [(i, i % 3, i % 5, i % 7, i % 2) for i in range(rows)])
    return db


@pytest.mark.parametrize("statement", [*CHANGES, *CONFLICTS])
def test_nothing_is_built(statement: str) -> None:
    """The search for an order dropped the one that is there, and sorted all rows by others to find one row."""
    db = table(20_000)
    held = set(db.memory()["t"])
    db.sql(statement)
    assert set(db.memory()["t"]) == held == {"id, a, b, c, d"}


@pytest.mark.parametrize("statement", [*CHANGES, *CONFLICTS])
def test_the_table_is_not_walked(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`on conflict` asked for the rows whose key is not there, which derived all keys of the table."""
    steps: list[int] = []
    walk = Evaluator.walk

    def counted(*args: object, **more: object) -> object:
        found = walk(*args, **more)  # type: ignore[arg-type]
        steps[-1] += found[0].counters.steps if found[0].counters else 0
        return found

    monkeypatch.setattr(Evaluator, "walk", counted)
    for rows in (500, 5_000):
        db = table(rows)
        steps.append(0)
        db.sql(statement)
    assert 0 < steps[1] <= steps[0] + 10
