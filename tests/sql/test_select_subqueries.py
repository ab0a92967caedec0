"""Subqueries in expressions, correlated and not, with null on either side; set operations; recursion."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import lftj
from bench.triggers_run import differ
from tests.duckdb_databases import duckdb_database
from tests.sql.against_duckdb import Pair

SUBQUERIES = [
    "select id from t where exists (select * from u where u.a = t.a)",
    "select id from t where not exists (select * from u where u.a = t.a)",
    "select id from t where exists (select 1 from u where u.n > 4)",
    "select id from t where not exists (select 1 from u where u.n > 4)",
    # rows that are found are not counted, whatever the subquery is
    "select n from u where exists (select id from t union select n from u)",
    "select n from u where exists (select id from t where t.a = u.a union all select k from w where k = u.n)",
    "select n from u where not exists (select id from t where t.a = u.a union select k from w where k = u.n)",
    "select n, exists (select id from t order by id limit 2) as e from u",
    "select n from u where exists (select id from t order by id limit 5 offset 2)",
    "select n from u where exists (values (1), (2))",
    "select n from u where exists (values (1), (1))",
    "select n from u where not exists (values (1), (1))",
    "select n from u where n in (values (1), (1), (null)) or n not in (values (0), (0))",
    "select n from u where n > all (values (0), (0)) or n = all ((select a from t where id = 1))",
    # values that name columns of the tables beside them, or of the query around
    "select u.b, v.x from u cross join lateral (values (a), (n), (a)) v(x)",
    "select u.b, v.k, v.x from u, lateral (values ('a', u.a), ('n', u.n), ('one', 1)) v(k, x)",
    "select n, (select max(x) from (values (u.a), (n), (0)) v(x)) as m, exists (values (n)) as e from u",
    "select n from u where a in (values (n), (1)) or a > all (values (n), (n))",
    "select * from (values ((select max(n) from u), 1), (3, 2)) v(p, q)",
    # of some rows of one row there may be none
    "select id, (select count(*) from u where u.a = t.a limit 0) as n from t",
    "select id, (select count(*) from u where u.a = t.a order by 1 limit 1) as n from t",
    "select id, (select count(*) from u where u.a = t.a limit 1 offset 1) as n from t",
    "select n from u where n in (select n from u order by n desc nulls last limit 2)",
    "select n from u where n = (select n from u order by n desc nulls last, a, b limit 1)",
    "select n from u where n not in (select n from u where n is not null order by n limit 2)",
    "select n from u where (a, n) in (select a, n from u order by a, n, b limit 3)",
    "select (select n from u order by n nulls last limit 1) as m, id from t",
    "select sum((select count(*) from u where u.a = t.a)) as n from t",
    # more than conditions on the row at hand, which triggers were kept as if they were: constants, one column twice
    "select sum(id) as s from t p where b in (select 'x' from t q where q.id = p.id)",
    "select sum(p.id) as s from t p join (select distinct id, 'x' as b from t) q on q.id = p.id and q.b = p.b",
    "select count(*) as s from u where a in (select a from u where a = n)",
    "select count(*) as s from u p where exists (select 1 from u q where q.a = p.a and p.n = 3)",
    "select count(*) as s from u p where n = any (select 3 from u q where q.a = p.a)",
    "select sum(n) as s from u where a in (select a from u where b = 'x')",
    "select count(*) as s from u group by a having max(case when null then n end) = 1",
    "select sum(a) filter (where (a, b) in (select a, 'x' from u)) as s, count(*) as m from u",
    # a value of several cases against a subquery: where it is unknown was a rule of more than 1024 alternatives
    "select n, (case b when 'x' then a when 'y' then n else 3 end) in (select a from t where t.b = u.b) as i from u",
    "select case when case b when 'x' then a when 'y' then n else 3 end in (select a from t) then 1 end as c from u",
    "select n, coalesce(a, n) > all (select a from t where t.b = u.b) as g from u",
    "select n from u where ((case when a > 1 then n when b = 'x' then 2 end) <= any (select a from t)) is null",
    # one group that `having` may leave out
    "select id, (select max(n) from u where u.a = t.a having count(*) > 1) as m from t",
    "select id, (select count(*) from u where u.a = t.a having count(*) = 0) as m from t",
    "select id, coalesce((select sum(n) from u where u.a = t.a having min(n) > t.id), -1) as m from t",
    "select id from t where (select max(n) from u where u.a = t.a having sum(n) > 0) > id",
    "select id, (select 7 from u having count(*) > 1) as m from t",
    # the first rows for each value of the query around
    "select id, (select n from u where u.a = t.a order by n desc nulls last, b limit 1) as m from t",
    "select id, (select b from u where u.a = t.a order by n nulls first, b limit 1 offset 1) as m from t",
    "select id from t where exists (select 1 from u where u.a = t.a order by n limit 1 offset 2)",
    "select id from t where 5 in (select n from u where u.a = t.a order by n desc nulls last limit 2)",
    "select id, (select count(*) from (select n from u where u.a = t.a order by n limit 2) x) as m from t",
    "select id, s.n, s.b from t, lateral (select n, b from u where u.a = t.a order by n nulls first, b limit 3) s",
    "select id, s.n from t join lateral (select n from u where u.a = t.a order by b, n limit 2) s on s.n > 0",
    "select id, s.n, s.b from t left join lateral (select n, b from u where u.a = t.a) s on s.n > 0",
    "select id, s.m from t left join lateral (select max(n) as m from u where u.a = t.a) s on true",
    "select x.a, s.m from u x left join lateral (select count(*) as m from u where u.a = x.a and u.n < x.n) s "
    "on s.m > 0",
    "select id, s.* from t left join lateral (select n, b from u where u.a = t.a order by n, b limit 2) s(p, q) "
    "on true",
    "select t.id, v.a, s.c from t left join u v on v.a = t.a "
    "left join lateral (select id + v.n as c from t q where q.id = t.id) s on true",
    "select count(*) from u x left join lateral (select n from u where u.a = x.a) s on true",
    # what a side of an outer join names of the query around
    "select id, (select count(*) from (select n as x from u where u.a = t.a) q left join w on w.k = q.x) as m from t",
    "select id, (select count(q.x) from w left join (select n as x from u where u.a = t.a) q on w.k = q.x) as m from t",
    "select id, (select count(*) from (select n as x from u where u.a = t.a) q full join w on w.k = q.x) as m from t",
    "select id, (select count(*) from (select n from u where u.a = t.a) q, u left join w on w.k = u.n) as m from t",
    "select id from t where not exists (select 1 from u left join (select k from w where k = t.a) q on u.n = q.k "
    "where q.k is not null)",
    "select id, s.m from t, lateral (select count(*) as m from (select n as x from u where u.a = t.a) q left join w "
    "on w.k = q.x) s",
    # distinct rows in a set operation
    "select id, s.c from t, lateral (select distinct n as c from u where u.a = t.a union all select 0) s",
    "select id, s.c from t, lateral (select distinct n as c from u where u.a = t.a intersect select a from u) s",
    "select id from t where a not in (select distinct n from u where u.b = t.b and n is not null union select 0)",
    "select id from t where exists (select distinct n from u where u.a = t.a except select 1)",
    # a value of the query around that is null
    "select c, a in (select n from u where u.a = t.a) as z from t",
    "select a, n, n > all (select k from w where k = u.a) as z from u",
    "select a, n, n <= any (select k from w where k = u.a) as z from u",
    "select a, n from u where (n in (select k from w where k = u.a)) is null",
    "select sum(case when n in (select k from w where k = u.a) then 1 else 10 end) as z from u",
    "select count(*) as z from u where coalesce(n in (select k from w where k = u.a), true)",
    "select t.a, count(*) from t, lateral (select distinct n from u where u.a is distinct from t.a) s group by t.a",
    "select u.a, sum(s.c) from u, lateral (select count(*) as c from w where w.k is distinct from u.a) s group by u.a",
    # copies do not matter
    "select exists (select a from t except all select a from u) as x",
    "select n from u where a in (select a from u except all select a from t)",
    "select count(*) from u where not exists (select a from t intersect all select n from u)",
    # what a query within a query within a query names of the outermost
    "select id, s.m from t, lateral (select m from (select max(n) as m from u where u.a = t.a) x) s",
    "select id, s.m from t, lateral (select m + 1 as m from (select n as m from u where u.a = t.a union select 9) x) s",
    "select id, (select max(m) from (select m from (select distinct n as m from u where u.a = t.a) x) y) as m from t",
    # values of two types meet
    "select c in (select a from u) as x, id from t",
    "select id, c not in (select a from u where a is not null) as x from t",
    "select n from u where a in (select c from t)",
    "select n, a in (select c from t) as x from u",
    "select k, x in (select a from u) as y, count(*) from w group by k, x",
    # null takes the type of the other side
    "select b from u union all select null",
    "select null as d union select d from t",
    "select c, b from t except select null, b from u",
    "select null as b, n from u intersect select b, n from u",
    "select s.d from (select null as d union all select d from t) as s where s.d is not null",
    "select * from u group by all",
    "select * from u group by a, b, n",
    "select id from t where exists (select 1 from u where u.a = t.a and u.n > t.id)",
    "select id from t where exists (select 1 from u where u.a < t.a)",
    "select id from t where not exists (select 1 from u where u.a < t.a)",
    "select id from t where not exists (select 1 from u where u.a <> t.a or t.a is null)",
    "select id from t where exists (select 1 from u where u.a = t.a or t.b = u.b)",
    "select a from u where exists (select 1 from t where t.a = u.a)",
    "select a, n from u where not exists (select 1 from t where t.a = u.a and t.b = u.b)",
    "select id from t where a in (select a from u)",
    "select id from t where a not in (select a from u)",
    "select id from t where a not in (select a from u where a is not null)",
    "select id from t where a in (select a from u where u.b = t.b)",
    "select id from t where a not in (select n from u where u.b = t.b)",
    "select id from t where a not in (select a from u where a > 100)",
    "select id from t where c in (select n from u)",
    "select id from t where c not in (select n from u where n is not null)",
    "select id from t where (a, b) in (select a, b from u)",
    "select id from t where (a, b) in (select a, b from u) or not exists (select 1 from u where u.n = t.c)",
    "select id from t where exists (select 1 from u where u.a > t.a) or (a, b) in (select a, b from u)",
    "select id from t where a + 1 in (select n from u)",
    "select id from t where a + 1 not in (select n from u where n > 0)",
    "select id from t where (a in (select a from u)) is null",
    # of constants it is known to be false, whatever rows there are
    "select count(*) filter (where (2.0 in (select 0.5 from u)) is null) as c from w",
    "select max(a) as m from t where (2.0 in (select 0.5 from u where u.a = t.a)) is not false",
    "select id from t where (2.0 not in (select 0.5 from u)) is null or (2.0 in (select 0.5 from u)) is null",
    "select id from t where a = any (select n from u)",
    "select id from t where a <> all (select n from u where n is not null)",
    "select id from t where a > any (select n from u)",
    "select id from t where a >= all (select n from u where n is not null)",
    "select id from t where a > all (select n from u where u.b = t.b)",
    "select id from t where a <> any (select n from u)",
    "select id from t where a = all (select n from u where u.b = t.b)",
    "select id from t where not (a > any (select n from u where u.b = t.b))",
    "select id from t where a < (select max(n) from u)",
    "select id from t where a < (select max(n) from u where u.b = t.b)",
    "select id, (select max(n) from u where u.b = t.b) as m from t",
    "select id, (select count(*) from u where u.b = t.b) as m from t",
    "select id, (select count(*) + 1 from u where u.a = t.a) as m, b from t",
    "select id, (select sum(n) from u where u.a < t.a) as m from t",
    "select id, (select count(*) from u where u.a < t.a) as m from t",
    "select id, (select count(*) from u where u.a is not distinct from t.a) as m from t",
    "select id, (select coalesce(sum(n), -1) from u where u.b = t.b) as m from t",
    "select id, (select s.c from t s where s.id = t.a) as m from t",
    "select id from t where c > (select avg(s.c) from t s where s.b = t.b)",
    "select b, (select count(*) from u) as n from t group by b",
    "select b, count(*) from t group by b having count(*) > (select count(*) from u where u.b = t.b)",
    "select b, sum(c) from t where a in (select a from u where n > 0) group by b",
    "select id from t where exists (select 1 from u where u.a = t.a and u.n > (select min(n) from u "
    "v where v.b = u.b))",
    "select id from t where exists (select 1 from u where u.a = t.a and not exists (select 1 from w "
    "where w.k = u.n and w.k > t.id))",
    "select id from t where exists (select u.a from u group by u.a having count(*) > t.id)",
    "select id from t where a in (select a from u group by a having sum(n) > 3)",
    "select id, (select max(s.m) from (select u.n + t.id as m from u where u.a = t.a) s) as m from t",
    "select id from t where exists (select 1 from u left join w on u.n = w.k and w.k > t.id where "
    "u.a = t.a and w.x is null)",
    "select t.id from t join u on t.a = u.a and exists (select 1 from w where w.k = u.n)",
    "select id from t where (select count(*) from u where u.a = t.a) > 1 or b = 'x'",
    "select id, case when exists (select 1 from u where u.a = t.a) then 1 else 0 end as there from t",
    "select id from t where exists (select a from u union select k from w where w.k = t.id)",
]
SETS = [
    "select a from t union select a from u",
    "select a from t union all select a from u",
    "select a, b from u union all select a, b from u union all select id, b from t",
    "select a from u union select n from u union select k from w",
    "select a from t intersect select a from u",
    "select a, b from t except select a, b from u",
    "select a, b from u intersect select a, b from t",
    "select a from u intersect all select n from u",
    "select a from u except all select n from u",
    "select a from u except all select a from t",
    "select id from t except all select k from w",
    "select a from u intersect all select a from t",
    "select c from t union select n from u",
    "select n, c from u join t using (a) union all select 1, 2",
    "select a from u union all (select n from u except select k from w)",
    "select count(*) from (select a from t union all select n from u) s",
    "select a, count(*) from (select a from t union select n from u) s group by a",
    "select null as a union select a from u",
    "values (1, 'x'), (1, 'x'), (2, null)",
    "values (1), (2) union all select a from u",
]
RECURSION = [
    "with recursive r as (select 1 as x union select x + 1 from r where x < 5) select * from r",
    "with recursive r (a, b) as (select id, a from t union select r.a, t.a from r join t on r.b = "
    "t.id) select * from r",
    "with recursive r as (select a from t where id = 1 union select t.a from r join t on r.a = t.id) "
    "select t.id from t where t.a in (select a from r)",
    "with recursive r as (select id, a from t union select r.id, u.n from r join u on r.a = u.a) "
    "select id, count(*) from r group by id",
]


@pytest.mark.parametrize("sql", [*SUBQUERIES, *SETS, *RECURSION])
def test_a_view_has_the_rows_that_duckdb_gives(sql: str) -> None:
    Pair(len(sql)).follow(sql)


@pytest.mark.parametrize(("left", "cast"), [("decimal(12, 2)", False), ("decimal(12, 3)", True), ("int", False)])
def test_values_of_one_storage_meet_without_a_cast(left: str, cast: bool) -> None:
    """Decimals with as many digits behind the point are one kind of code; numbers are made decimals on the left."""
    db = lftj.Database()
    db.sql(f"""
        create table l (v {left} not null); create table r (v decimal(10, 2) not null);
        insert into l values (1), (2), (2); insert into r values (2), (3.50);
        create view v as select v, v in (select v from r) as there from l;
    """)
    assert sorted((float(value), there) for value, there in db.sql("select * from v")) == [
        (1, False),
        (2, True),
        (2, True),
    ]
    assert any(".cast" in head for head in db._strata.order) == cast


def answers_are_those_of_duckdb(statements: Sequence[str], queries: Sequence[str]) -> None:
    """Asked once, and as views that are there before the rows are."""
    db, rival = lftj.Database(), duckdb_database()
    tables = [statement for statement in statements if statement.startswith("create")]
    for statement in (*tables, *(s for s in statements if s not in tables)):
        if statement not in tables and "v0" not in db:
            for i, query in enumerate(queries):
                db.sql(f"create view v{i} as {query}")
        db.sql(statement)
        rival.execute(statement)
    for i, query in enumerate(queries):
        expected = rival.execute(query).fetchall()
        assert differ(db.sql(query), expected) == "", query
        assert differ(db.sql(f"select * from v{i}"), expected) == "", query


def test_in_an_aggregate_for_null_on_both_sides() -> None:
    """The row of null in `y` and in the parameter `z` was lost where rows are counted."""
    within = "y in (select max(u.g) from t u where u.g = z)"
    answers_are_those_of_duckdb(
        (
            "create table t (g int, x int)",
            "create table n (id int primary key, y int, z int)",
            "create table b (id int, y int, z int)",
            "insert into t values (1, 1)",
            "insert into n values (1, 1, 1), (2, null, null), (3, 3, null), (4, null, 1)",
            "insert into b select * from n",
        ),
        (
            f"select id, {within} as i from b",
            f"select count(*) as n from n where ({within}) is null",
            f"select {within} as i, count(*) as n from n group by 1",
            f"select sum(case when {within} then 1 else 10 end) as s from n",
            "select count(*) as n from n where not coalesce(y > all (select max(u.g) from t u where u.g = z), false)",
            "select n.id, t.g in (select max(u.g) from t u where u.g = t.x) as i from n left join t on n.id = t.g",
        ),
    )


T_AND_U = (
    "create table t (id int primary key, a int, b int)",
    "create table u (k int, v int)",
    "insert into t values (1, 1, 2), (2, null, 3), (3, 4, null), (4, null, null), (5, 2, 1)",
    "insert into u values (2, 10), (null, 11), (3, 12), (2, 4)",
)


def test_not_in_for_a_value_of_several_cases() -> None:
    """A row had to lack the values of all cases, of those too that are not its own."""
    case = "case when a > 1 then a else b end"
    answers_are_those_of_duckdb(
        T_AND_U,
        (
            "select id, coalesce(a, b) + 1 in (select v from u) as i from t",
            "select id, coalesce(a, b) + 1 in (select k from u) as i from t",
            "select id from t where coalesce(a, b) + 1 not in (select v from u)",
            f"select id from t where {case} not in (select v from u)",
            f"select id, {case} <> all (select v from u) as i from t",
            f"select id, {case} < any (select v from u) as i from t",
            "select id from t where (case when a > 1 then 2 else 3 end, id) not in (select w.id, w.id from t w)",
        ),
    )


def test_subqueries_about_computed_columns() -> None:
    """That may be null: they were refused."""
    answers_are_those_of_duckdb(
        T_AND_U,
        (
            "select id, (select max(v) from u where u.k = s.c) as m from (select id, a + 1 as c from t) s",
            "select id from (select id, a + 1 as c from t) s where exists (select 1 from u where u.k = s.c)",
            "select id from (select id, a + 1 as c from t) s where not exists (select 1 from u where u.k = s.c)",
            "select id, exists (select 1 from u where u.k is not distinct from s.c) as e "
            "from (select id, a + 1 as c from t) s",
            "select id, (select count(*) from u where u.k = s.c or s.c is null) as n "
            "from (select id, case when a > 1 then b end as c from t) s",
            "select id, c in (select v from u where u.k = s.c) as i from (select id, coalesce(a, b) + 1 as c from t) s",
            "select id, c from (select id, a + 1 as c from t) s where c > all (select k from u where u.v > s.c)",
            "select c, (select sum(v) from u where u.k = s.c) as m, count(*) as n "
            "from (select a + 1 as c from t) s group by c",
            "select sum((select count(*) from u where u.k = s.c)) as n from (select a + 1 as c from t) s",
            "select t.id, (select count(*) from u where u.k = s.c) as n "
            "from t left join (select id, a + 1 as c from t) s on s.id = t.a",
        ),
    )
