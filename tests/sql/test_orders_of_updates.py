"""Statements that name a row by its key find it in the order that is there."""

from __future__ import annotations

import pytest

import lftj

STATEMENTS = [
    "update t set c = c + 1 where id = 77",
    "update t set a = 5, c = b + c where id = 79 and d > 0",
    "delete from t where id < 10",
    "delete from t where id = 78 and a + b > 0",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_nothing_is_built(statement: str) -> None:
    """The search for an order dropped the one that is there, and sorted all rows by others to find one row."""
    db = lftj.Database()
    db.sql("create table t (id bigint primary key, a bigint, b bigint, c bigint, d bigint)")
    db.load("t", [(i, i % 3, i % 5, i % 7, i % 2) for i in range(20_000)])
    held = set(db.memory()["t"])
    db.sql(statement)
    assert set(db.memory()["t"]) == held == {"id, a, b, c, d"}
