"""`from`: what lateral subqueries see, which columns a join shares, and what is to the left of it."""

from __future__ import annotations

import pytest

import lftj
from lftj.language import ast
from tests.duckdb_databases import duckdb_database
from tests.sql.against_duckdb import Pair, counted

duckdb = pytest.importorskip("duckdb")

V = "(select 99 as a, k from w) v"
# A value around that is computed, and null for some rows.
LATERAL = [
    "select q.id, l.z from (select id, a + 1 as y from t) q, lateral (select coalesce(q.y, -1) as z) l",
    "select q.id, l.z from (select id, a + 1 as y from t) q join lateral (select coalesce(q.y, -1) as z) l on true",
    "select q.id, l.z from (select id, a + 1 as y from t) q cross join lateral (select coalesce(q.y, -1) as z) l",
    "select q.id, l.n from (select id, nullif(a, 1) as y from t) q, lateral (select n from u where q.y is null) l",
    "select q.id, l.n from (select id, nullif(a, 1) as y from t) q "
    "join lateral (select n, q.y from u) l on l.y is null",
    "with q as (select id, nullif(a, 1) as y from t) "
    "select q.id, l.n from q, lateral (select n from u where q.y is null) l",
    "with q as (select id, nullif(a, 1) as y from t) select q.id, l.n from q cross join lateral "
    "(select n from u where u.a is not distinct from q.y) l",
    "select t.id, l.m, k.o from t, lateral (select nullif(t.a, 2) as m) l, lateral (select l.m as o) k",
    "select t.id, k.o from t join lateral (select nullif(t.a, 2) as m) l on true "
    "join lateral (select coalesce(l.m, t.id) as o) k on k.o > 1",
    "select q.id, l.n from (select id, case when id = 5 then 9 else a end as y from t) q, "
    "lateral (select n, coalesce(q.y, 7) as c from u) l",
    "select q.id, l.n from (select id, case when id = 5 then 9 else a end as y from t) q, "
    "lateral (select count(*) + coalesce(q.y, 7) as n from u where u.n > q.id) l",
    "select q.id, l.s from (select id, coalesce(a, id, n) as y from t left join u using (a, b)) q, "
    "lateral (select sum(k) as s from w where q.y is null or w.k = q.y) l",
    "select q.id, l.n from (select id, a + 1 as y, id + 1 as i from t) q, "
    "lateral (select n from u where u.a = q.y and u.n < q.i) l",
    "select q.id, l.y from (select id, cast(null as bigint) as y from t) q, lateral (select q.y, n from u) l",
    "select id from t where exists (select * from (select nullif(t.a, 3) as y) q, "
    "lateral (select n from u where u.a = q.y or q.y is null) l)",
    "with recursive r(n, m) as (select a, id from t union select l.x, 0 from (select n + 1 as y from r) q, "
    "lateral (select n as x from u where u.a = q.y or q.y is null) l) select * from r",
]
# `*` over a column with the name of one that a join shares, of a table that has no part in that join.
STARS = [
    f"select * from t join u using (a) cross join {V}",
    f"select * from t join u using (a, b) join {V} on k > n",
    f"select * from t natural join u cross join {V}",
    f"select * from t left join u using (a, b) cross join {V}",
    f"select * from t right join u using (a, b) cross join {V}",
    f"select * from t full join u using (a, b) cross join {V}",
    f"select * from t join u using (a) left join {V} on k = n",
    f"select * from t right join u using (a) left join {V} on k = n",
    f"select * from t natural full join u left join {V} on k = n",
    f"select * from t join u using (a, b) left join {V} on k = 4 and a = 1",
    f"select * from t join u using (a, b) full join {V} on a = k",
    f"select * from {V} right join (t join u using (a, b)) on a = k",
    f"select * exclude (id, c, d) from t join u using (a) cross join {V}",
    f"select * exclude (v.a) from t full join u using (a, b) cross join {V}",
    f"select * rename (a as z) from t join u using (a, b) cross join {V}",
    f"select * replace (a + 1 as a) from t join u using (a, b) cross join {V}",
    f"select * replace (n + 1 as n) from t join u using (a, b) cross join {V}",
    "select * replace (5 as a) from t cross join u",
    f"select *, rank() over (order by id, k) as r from t join u using (a, b) cross join {V}",
    f"select *, count(*) over (partition by v.a) as r from t full join u using (a, b) left join {V} on k = n",
    "select * from t full join u using (a, b) group by all",
    f"select *, count(*) as c from t right join u using (a, b) cross join {V} group by all",
    "select * from (select k as a, x from w) v join (t right join u using (a, b)) using (a)",
    "select * from (select k as a, x from w) v left join (t full join u using (a, b)) using (a)",
    "select * from t full join u using (a, b) full join (select k as a, x from w) v using (a)",
    "select t.*, v.* from t full join u using (a, b) join (select k as a, x from w) v using (a)",
    "select * from t join u using (a), (select k as a, x from w) v join (select 1 as a) z using (a)",
    "select *, count(*) as c from t join u using (a, b), (select 2 as a) v join (select 2 as a) z using (a) "
    "group by all",
]
# Tables in front of a comma, which have columns with the names of those that a join behind it is about.
COMMAS = [
    "select v.n as vn, t.id, u.n as un from (select 10 as n union all select 11) v, t natural join u",
    "select v.x, id, n from (select 1 as a, 5 as x) v, t join u using (a)",
    "select v.x, id, n, a from (select k as a, x from w) v, t join u using (a)",
    "select v.a, id, n from (select k as a, x from w) v, t join u using (a) where a = 1",
    "select * from (select k as a, x from w) v, t join u using (a)",
    "select * from (select k as a, x from w) v, t left join u using (a)",
    "select * from (select k as a, x from w) v, t right join u using (a)",
    "select * from (select k as a, x from w) v, t full join u using (a)",
    "select a, count(*) as c from (select k as a, x from w) v, t full join u using (a) group by a",
    "select v.n as vn, t.id, u.n as un from (select k as n from w) v, t natural left join u",
    "select v.n as vn, t.id, u.n as un from (select k as n from w) v, t natural full join u",
    "select v.a, t.id, u.n from (select k as a from w) v, t left join u using (a, b) where a > 1 or v.a = 1",
    "select * from (select k as a from w) v, t left join u using (a, b) left join (select 1 as n) z using (n)",
    "select * from (select k as a from w) v, (t join u using (a, b)) join (select 1 as n, 2 as a) z using (n)",
    "select * from (select k as a from w) v, (t left join u using (a, b)) left join (select 1 as a) z using (a)",
    "select v.k, id, n from w v, t natural join u, w natural join (select 1 as k) z",
    "select v.n, t.id from (select k as n from w) v, t join u on n = t.id",
    "select v.n, t.id, u.b from (select k as n from w) v, t left join u on n = t.id and v.n > 1",
    "select v.n, t.id from (select k as n from w) v, t left join u on exists (select * from w where k = n)",
    "select l.m, t.id from (select k as a from w) v, t join lateral (select a as m) l on true",
    "select l.m, t.id from (select k as a from w) v, t left join lateral (select a + v.a as m) l on true",
    "select id, (select count(*) from (select 1 as a) v, u join w on k = n where u.a = t.a) as c from t",
    "select id, (select count(k) from (select 1 as n) v, u left join w on k = n where u.a = t.a) as c from t",
]
# Several columns of one name in a subquery.
REPEATED = [
    "select * from (select t.a, u.a, t.b, u.b from t join u on id = n) q",
    "select a_1, q.b_1, q.a from (select t.a, u.a, t.b, u.b from t join u on id = n) q",
    "with q as (select * from t left join u on id = n) select id, a_1, b_1 from q where a_1 > 0 or b = b_1",
    "with q as (select * from t left join u on id = n) select * exclude (b_1, c) from q",
    "select * from (select distinct t.b, u.b, t.b as b_1, 1 as b from t, u) q",
    "select a_1, count(*) as c from (select t.a, u.a from t, u union all select 1, 2) q group by a_1",
    "select q.a_1 from (select t.a, u.a from t, u order by all limit 3) q",
    "select q.n from (select t.a, u.a, u.n from t, u) q(a_1) join w on k = q.a and q.a_1 = k",
]
# Joins in parentheses that begin with a subquery, or with parentheses.
NESTED = [
    "select * from ((select id, a from t) q join u on q.a = u.a)",
    "select q.id, k from ((select id, a from t) q full join u using (a)) left join w on k = n",
    "select * from w left join ((select a as k from t) q right join u on q.k = u.a) using (k)",
    "select * from w, ((select a as k from t) q full join u on q.k = u.a)",
    "select * from (((t join u using (a)) left join w on k = n))",
    "select q.id from ((select * from t) q join ((select * from u) r join w on k = n) on q.a = r.a)",
    "select q.id, z.c from ((select * from t) q join lateral (select count(*) as c from u where n > q.a) z on true)",
    "select * from t left join ((values (1, 'x'), (2, 'y')) v(p, q) left join w on k = p) on a = p",
    "select * from w, ((values (1), (3)) v(a) full join u using (a))",
    # Without parentheses, a join within another stands before the condition of that one.
    "select k, id, n from w join t right join u on t.a = u.a on k = n",
    "select k, id, n from w join t full join u on t.a = u.a on k = n or k = id",
    "select w.k, v.x, id, n from w join w v join t right join u on t.a = u.a on v.k = n on w.k = v.k",
    "select w.k, v.x, id, n from w join w v left join t full join u on t.a = u.a on v.k = n on w.k = v.k",
    "select * from (select k as n from w) v join t right join u using (a, b) using (n)",
]
# Aggregates in subqueries of names that several tables around have.
NAMED_TWICE = [
    "select id, (select max(a) from w, u where k = n) as m from t, u",
    "select t.id from t join u on t.a = (select max(a) from u where u.n = t.id)",
    "select t.id, u.n from t left join u on t.a = (select min(a) from u as v where v.b = u.b)",
    "select id from t, u group by id having count(*) < (select sum(a) from u)",
    "select id, (select sum((select count(*) from t where a = k)) from w) as s from t, u",
    "select (select sum((select count(*) from w where k = 1 and n > 0)) from u, t) as s from w",
]
# What an aggregate is of no rows, beside one of a query within.
NO_ROWS = [
    "select id, (select count(*) + (select count(*) from w) from u where u.a = t.a) as k from t",
    "select id, (select coalesce(sum(n), (select max(k) from w)) from u where u.a = t.a) as k from t",
    "select id, (select coalesce(max(n), (select count(*) from w where k > t.id)) from u where u.a = t.a) as k from t",
    "select id, (select count(*) filter (where n > 0) - (select min(k) from w where k > t.id) from u "
    "where u.a = t.a) as k from t",
    "select id, (select case when exists (select count(*) from w having count(*) > 3) then count(*) else -1 end "
    "from u where u.a = t.a) as k from t",
    "select id, (select count(*) in (select count(*) - 5 from w) from u where u.a = t.a) as k from t",
    "select id, (select count(*) from u where u.a = t.a) as k from t",
]


@pytest.mark.parametrize("sql", [*LATERAL, *STARS, *COMMAS, *REPEATED, *NESTED, *NAMED_TWICE, *NO_ROWS])
def test_a_query_has_the_rows_that_duckdb_gives(sql: str) -> None:
    """As a view that is there before the rows and while they change, and asked once."""
    pair = Pair(len(sql))
    pair.follow(sql)
    ours = [tuple(row) for row in pair.db.sql(sql)]
    assert counted(ours, 0) == counted(pair.duck.execute(sql).fetchall(), 0)


@pytest.mark.parametrize("sql", REPEATED)
def test_columns_have_the_names_that_duckdb_gives(sql: str) -> None:
    pair = Pair()
    assert list(pair.db.sql(sql).columns) == [column[0] for column in pair.duck.execute(sql).description]


TABLES = """create table t (id int primary key, a int); insert into t values (1, 1), (2, null);
create table u (a int, n int); insert into u values (1, 10);
create table w (k int); insert into w values (7), (8)"""


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("select v.x, id, k from (select 7 as k, 5 as x) v, t join w using (k)", "unknown column `k`"),
        ("select v.x, id, k from (select 7 as k, 5 as x) v, t left join w using (k)", "unknown column `k`"),
        ("select * from (select 7 as k) v, t natural join w", "a natural join without a column in common"),
        ("select * from (select 7 as k) v, t natural left join w", "a natural join without a column in common"),
        ("select * from (select 1 as a) v cross join t join u using (a)", "ambiguous column `a`"),
        ("select n from (select 1 as n) v, t join u using (a)", "ambiguous column `n`"),
        (
            "select a from t join u using (a), (select 1 as a) v join (select 1 as a) z using (a)",
            "ambiguous column `a`",
        ),
        ("select l.m from (select 10 as a) v, t, lateral (select a as m) l", "ambiguous column `a`"),
        ("select * exclude (a) from (select 1 as a) v cross join (select 2 as a) z", "`*` without columns"),
    ],
)
def test_refused_as_duckdb_refuses_it(sql: str, error: str) -> None:
    duck, db = duckdb_database(), lftj.Database()
    duck.execute(TABLES)
    db.sql(TABLES)
    with pytest.raises(duckdb.BinderException):
        duck.execute(sql)
    with pytest.raises(lftj.ProgramError, match=error):
        db.sql(sql)


def test_a_lateral_subquery_over_what_is_computed_is_merged() -> None:
    """It needs no head of its own, but for the null that such a value may be."""
    sql = "select q.id, l.n from (select id, a + 1 as y from t) q, lateral (select id as n from t where a = q.y) l"
    rules = [item for item in Pair().view(sql).program.items if isinstance(item, ast.Rule)]
    assert [head.name for rule in rules for head in rule.heads] == ["@v0.one_of1", "v0"]


# What asks for rows that are not there, for a value that may be null: that of w is not, and may be the least number.
WITHOUT_ROWS = [
    "select id, k from t left join w on a = k",
    "select id, k from w right join t on a = k",
    "select id from t where not exists (select 1 from w where k = t.a)",
    "select id from t left join w on a is not distinct from k where k is null",
    "select id, (select count(*) from w where k = t.a) as n from t",
    "select id, a in (select k from w) as z from t",
    "select a from t except select k from w",
    "select k from w except select a from t",
    "select count(*) as n from t left join w on a = k where k is null",
]


@pytest.mark.parametrize("sql", WITHOUT_ROWS)
def test_null_meets_no_row_with_the_least_number(sql: str) -> None:
    """A row with null was lost from a left join where the other table had the number whose code is that of null."""
    tables = """
        create table t (id bigint primary key, a bigint); insert into t values (1, null), (2, 7), (3, 4);
        create table w (k bigint not null); insert into w values (7)"""
    db, duck = lftj.Database(), duckdb_database()
    db.sql(f"{tables}; create view v as {sql}")
    duck.execute(tables)
    for change in ("insert into w values (-9223372036854775807 - 1)", "delete from w where k = 7", "delete from w"):
        db.sql(change)
        duck.execute(change)
        expected = counted(duck.execute(sql).fetchall(), 0)
        assert counted([tuple(row) for row in db.sql("select * from v")], 0) == expected
        assert counted([tuple(row) for row in db.sql(sql)], 0) == expected
