"""Answers to single statements over one small table: as DuckDB gives them.

Catches: a cast of the text that writes a date, means of intervals and of unsigned numbers as sums of copies, null
that is taken for a whole number.
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
create table price (u ubigint, c decimal(9, 2));
insert into price values (7, 7), (2, 1.50), (null, 3.25), (2, null);
"""
QUERIES = [
    # a type in front of a text binds closer than `::`
    "select date '2024-01-31'::timestamp as x, date '2024-01-31'::text as y",
    "select timestamp '2024-01-31 23:00:00'::date as x, '2024-01-31'::date::text as y",
    "select a from t where ts::date = timestamp '2024-01-31 23:00:00'::date",
    # times of UTC, and doubles with an exponent, as texts
    "select cast(z as text) as x, z || '!' as y, concat(z, '!') as w "
    "from (select cast(ts as timestamptz) as z from t) q",
    "select cast(a * 1e-7 as text) as x, cast(a * 1e300 as text) as y, a * -1.5e-7 || '!' as z from t",
    # `date_trunc` keeps the zone
    "select date_trunc('hour', z) as h, date_trunc('day', z) as d, date_trunc('year', z) as y, date_trunc('day', ts) "
    "as n, date_trunc('quarter', z) as q from (select ts, cast(ts as timestamptz) as z from t) q",
    # means over rows that may repeat, or of several cases
    "select k, avg(iv) as m from span group by k",
    "select avg(iv) as m from span where iv > interval '0' day",
    "select avg(case when a = 1 then interval '1' day else interval '2' day end) as m from t",
    "select avg(case when k = 1 then u else 3::ubigint end) as m from big",
    # unsigned numbers meet decimals
    "select u from price union all select c from price",
    "select u from price except select c from price",
    "select u from price union select 1.5",
    "select coalesce(u, c) as x, u = c as y, greatest(u, c) as z, u in (c, 2.5) as w from price",
    "select a.u, b.c from price a join price b on a.u >= b.c",
    # null without a type meets values of any
    "select b from t where b not in (select null from t)",
    "select b from t where b in (select null from t) or a < any (select null from t)",
    "select b from t where b = any (select max(null) from t)",
    "select b from t where b > all (select null from t where 1 = 0)",
    "select a from t where (a, b) in (select null, null)",
    "select a from t where b = (select max(null) from t where a > 5)",
    "select a, (select n from (values (null, 1)) v(n, x) where x = a) as m from t",
    "select a from (values (1, null), (2, null)) v(p, q) join t on t.b = q",
    "select distinct a, null as b from t union all select a, b from t",
    "select x from (select distinct null as x from t) q union all select b from t",
    "select n from (values (null)) v(n) intersect select b from t",
    "select coalesce(n, b) as c, coalesce(n, d) as e from t, (select null as n from t group by n) q",
    "select case when a = 1 then (select null) else b end as c from t",
    "select x, max(n) as m from (values (1, null), (2, null)) v(x, n) group by x having max(n) is null",
    "select * from (values (null)) v(p) left join t on t.a = p",
    "select p, q, b from (values (null, 1), (null, 5)) v(p, q) full join t on a = q and b > p || 'x' and p is null",
    "select * from (values (null)) v(a) full join t using (a)",
    "select p, (select count(*) from t where a is not distinct from p or d > p) as n from (select null as p) v",
    "select p, exists (select 1 from t where a = p) as e, 2 not in (select a from t where b = p) as i "
    "from (values (null)) v(p)",
    "select v.p, s.b from (values (null, 1)) v(p, q) left join lateral (select b from t where p is null and a = q) s "
    "on s.b > v.p or v.p is null",
    "select a, n || 'x' as y from t full join (values (null, 5)) v(n, k) on a = k",
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


@pytest.mark.parametrize("value", ["q", None])
def test_a_parameter_may_be_null_in_a_list_of_texts(value: str | None) -> None:
    got, expected = answers("select b from t where b not in (select $p from t)", p=value)
    assert got == expected


def test_a_set_operation_of_two_types_is_refused_at_the_value_of_another_type() -> None:
    db = lftj.Database()
    db.sql(TABLES)
    with pytest.raises(lftj.ProgramError) as raised:
        db.sql("select a, d from t union all select a, b from t")
    found = raised.value.diagnostics[0]
    assert found.what == "`b` has values of type date and of type text"
    assert found.span.column == len("select a, d from t union all select a, ") + 1


def test_a_view_has_the_type_to_which_a_date_is_cast() -> None:
    db = lftj.Database()
    db.sql(TABLES)
    db.sql("create view vd as select a, date '2024-01-31'::text as day from t")
    assert db["vd"].columns["day"].startswith("symbol")
