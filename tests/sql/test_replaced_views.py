"""`create or replace view` of a view that others read: what may change, and what is refused.

Catches: a view of constants that cannot be replaced, a message that names columns where copies or null differ.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

import lftj

pytest.importorskip("sqlglot")

TABLE = "create table t (a int, b int not null); insert into t values (1, 1), (2, 2), (2, 2), (null, 3)"
KEPT = [
    ("select 1 as a", "select 2 as a", [(2,)]),
    ("select 1 as a", "select distinct b as a from t", [(1,), (2,), (3,)]),
    ("select distinct b as a from t", "select 7 as a", [(7,)]),
    ("select distinct b from t where false", "select distinct b from t", [(1,), (2,), (3,)]),
    ("select distinct b from t where a = null", "select 7 as b", [(7,)]),
    ("select 1.50 as a", "select 2.25 as a", [(Decimal("2.25"),)]),
    ("select 1 as a union all select 1", "select 3 as a union all select 4", [(3,), (4,)]),
    (
        "select * from (values (1, null)) v(a, b)",
        "select * from (values (5, null), (6, 7)) v(a, b)",
        [(5, None), (6, 7)],
    ),
]
REFUSED = [
    ("select b from t", "select distinct b from t", "whose rows are there once each"),
    ("select distinct b from t", "select b from t", "whose rows may repeat"),
    ("select b from t", "select nullif(b, 5) as b from t", "whose column `b` may be null"),
    ("select a from t", "select coalesce(a, 5) as a from t", "whose column `a` is never null"),
    ("select a from t", "select a as b from t", "with other columns"),
    ("select b from t", "select 'x' as b from t", "with other columns"),
    ("select distinct a, b from t", "select distinct b, a from t", "with the columns in another order"),
]


def made(query: str) -> lftj.Database:
    """A database with a view of a query, and one that reads it."""
    db = lftj.Database()
    db.sql(f"{TABLE}; create view v as {query}; create view w as select * from v")
    return db


@pytest.mark.parametrize(("before", "after", "rows"), KEPT)
def test_what_reads_a_view_follows_another_definition(before: str, after: str, rows: list[tuple[object, ...]]) -> None:
    db = made(before)
    db.sql(f"create or replace view v as {after}")
    assert sorted(db.sql("select * from w")) == rows
    db.sql(f"create or replace view v as {before}")
    assert sorted(map(str, db["w"])) == sorted(map(str, made(before)["w"]))


@pytest.mark.parametrize(("before", "after", "said"), REFUSED)
def test_a_definition_that_readers_would_not_understand_is_refused(before: str, after: str, said: str) -> None:
    db = made(before)
    rows = list(db["w"])
    with pytest.raises(lftj.ProgramError) as raised:
        db.sql(f"create or replace view v as {after}")
    assert raised.value.diagnostics[0].what == f"another definition {said}: `v` is read by `w`"
    assert list(db["w"]) == rows
