"""Answers to single statements over one small table: as DuckDB gives them.

Catches: a cast of the text that writes a date, means of intervals and of unsigned numbers as sums of copies.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import lftj
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")
pytest.importorskip("duckdb")

TABLES = """
create table t (a int, b text, d date, ts timestamp);
insert into t values (1, 'x', '2024-01-31', '2024-01-31 22:00:00'), (2, null, null, null);
create table span (k int, iv interval);
insert into span values
    (1, interval '1' day), (1, interval '2' day), (2, null), (3, interval '-3' day), (3, interval '-4' day),
    (3, interval '-4' day);
create table big (k int primary key, u ubigint not null);
insert into big values (1, 1844674407370955161), (2, 2);
"""
QUERIES = [
    # a type in front of a text binds closer than `::`
    "select date '2024-01-31'::timestamp as x, date '2024-01-31'::text as y",
    "select timestamp '2024-01-31 23:00:00'::date as x, '2024-01-31'::date::text as y",
    "select a from t where ts::date = timestamp '2024-01-31 23:00:00'::date",
    # means over rows that may repeat, or of several cases
    "select k, avg(iv) as m from span group by k",
    "select avg(iv) as m from span where iv > interval '0' day",
    "select avg(case when a = 1 then interval '1' day else interval '2' day end) as m from t",
    "select avg(case when k = 1 then u else 3::ubigint end) as m from big",
]


def answers(text: str, **parameters: Any) -> tuple[Counter[Any], Counter[Any]]:
    """The rows of a query, in lftj and in DuckDB."""
    db, other = lftj.Database(), duckdb_database()
    db.sql(TABLES)
    other.execute(TABLES)
    asked = other.execute(text, parameters) if parameters else other.execute(text)
    return Counter(db.sql(text, **parameters)), Counter(asked.fetchall())


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_gives_what_duckdb_gives(text: str) -> None:
    got, expected = answers(text)
    assert got == expected


def test_a_view_has_the_type_to_which_a_date_is_cast() -> None:
    db = lftj.Database()
    db.sql(TABLES)
    db.sql("create view vd as select a, date '2024-01-31'::text as day from t")
    assert db["vd"].columns["day"].startswith("symbol")
