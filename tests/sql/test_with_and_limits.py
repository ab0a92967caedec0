"""`with` before changes of rows, parts behind parentheses, and parameters where a number would be a position.

Each query is compared with DuckDB: as an answer, as an answer of a text that comes again, and as a view that follows
changes. Each change of rows is compared by what the tables hold then.

Catches: a name of `with` that stands for a table instead, an order or a limit behind parentheses that is lost, one
that is applied to another order, a parameter whose number is taken for a column the first time and not the second.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import lftj
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")

from tests.sql.against_duckdb import Pair, counted

# --- parentheses ------------------------------------------------------------------------------------------------------

# The order of their rows says all.
ORDERED = (
    "(select id from t order by id limit 3) limit 1",
    "(select id from t order by id desc limit 3) limit 2",
    "(select id from t order by id desc limit 2) limit 5",
    "(select id from t order by id desc limit 3) order by id",
    "(select id from t order by id desc limit 3) order by 1 limit 2",
    "(select id from t order by id desc limit 3) order by id + 1 limit 1",
    "(select id from t order by id limit 3) offset 1",
    "(select id from t order by id limit 3) offset 5",
    "(select id from t order by id desc offset 1) limit 2",
    "(select id from t order by id desc offset 1) offset 1",
    "(select id from t order by id desc limit 4 offset 1) limit 5 offset 1",
    "(select id from t order by id limit 3) limit 0",
    "(select id from t order by id) order by id desc limit 1",
    "(select id from t) order by a nulls first, id limit 3",
    "(select id from t order by id) order by a nulls first, id",
    "(select id, a from t order by a) order by id",
    "(((select id from t order by id limit 5) limit 4) order by id desc) limit 3",
    "((select id from t order by id limit 5) order by id desc limit 4) order by id limit 3",
    "(select id as k, b from t order by k limit 4) order by b nulls first, k desc limit 3",
    "(select a, count(*) as n from t group by a order by a nulls first limit 3) order by n, a nulls first limit 2",
    "(select distinct a from t order by a nulls first limit 3) order by a desc nulls first limit 2",
    "(select distinct on (a) a, id from t order by a, id desc) order by id",
    "(select distinct on (a) a, id from t order by a, id desc) order by id limit 2",
    "(select distinct on (a) a, id from t order by a nulls first, id desc) limit 2",
    "((select id from t) union (select n from u) order by 1 nulls first limit 5) order by 1 desc nulls last limit 3",
    "((values (3), (1), (2)) order by 1 limit 2) order by 1 desc",
    # a name that `as` gives goes before one that `*` gives out
    "select *, -id as id from t order by id",
    "select t.*, -id as id from t order by id limit 3",
    "select id as a, -id as id from t order by id",
    "select id, a, id from t order by id desc",
    "with x as (select id from t where id > 2) (select id from x order by id limit 3) order by id desc limit 2",
    "with x as (select id from t where id > 2) (select id from x order by id limit 3) limit 2",
    "select * from ((select id from t order by id limit 4) order by id desc limit 2) q order by id",
)
# A view gives out what it is ordered by, and has a limit where it has an offset.
ANSWERS_ONLY = (
    "(select id from t order by id desc limit 3) order by id + 1 limit 1",
    "(select id from t order by id desc offset 1) offset 1",
)
# These are compared as bags.
UNORDERED = (
    "select * from ((select id from t order by id limit 4) limit 2) q",
    "select * from ((select id from t order by id desc limit 4) limit 2 offset 1) q",
    "select * from (select *, -id as id from t order by id limit 2) q(a, b, c, d, e, f)",
    "select * from (select -id as id, t.* from t order by id limit 2) q(a, b, c, d, e, f)",
    "select * from (select *, -id as k from t order by t.id limit 2) q",
    "select * from (select t.id as id, t.*, a + 1 as k from t order by id limit 2) q(a, b, c, d, e, f, g)",
    "select * from (select * replace (-id as id) from t order by id limit 2) q",
    "select * from ((select id, a from t order by id limit 4) order by a desc nulls last, id limit 2) q",
    "select id from t where id in ((select id from t order by id desc limit 3) limit 1)",
    "select id from t where id not in ((select id from t order by id limit 3) limit 2)",
    "select id, ((select a from t order by id limit 2) order by a nulls last limit 1) as x from t",
    "select id from t where id = any ((select id from t order by id limit 3) order by id desc limit 2)",
    "((select id from t order by id limit 3) limit 1) union all (select n from u)",
    "(select n from u) union all ((select id from t order by id limit 3) order by id desc limit 1)",
    "(select n from u) except ((select id from t order by id limit 3) limit 1)",
    "((select id from t union all select n from u) order by id nulls first limit 4) union all select 9",
    "((select id from t union all select n from u) order by id nulls first limit 4) union select 9",
    "select 9 as x union all ((select id from t union all select n from u) order by 1 nulls first limit 4)",
    "select 9 as x union ((select id from t union select n from u) order by 1 nulls first limit 4 offset 1)",
    "select 9 as x union all (((select id from t union all select n from u) order by 1 nulls first) limit 3)",
    "with x as (select 1 as y) select 7 as y union all (with x as (select 2 as y) "
    "(select y from x union all select id from t) order by y limit 3)",
    "with recursive r as (((select id from t union all select n from u) order by 1 nulls first limit 3) "
    "union select id + 3 from r where id < 9) select * from r",
    "with recursive r(k) as (((select id from t union all select 4) order by 1 limit 2) "
    "union all select k + 3 from r where k < 9) select * from r",
)


@pytest.mark.parametrize("sql", ORDERED)
def test_an_ordered_query_in_parentheses(sql: str) -> None:
    pair = Pair(1)
    for come in (0, 12, 3, 3):
        pair.change(come=come)
        expected = pair.duck.execute(sql).fetchall()
        assert list(pair.db.sql(sql)) == expected


@pytest.mark.parametrize("sql", UNORDERED)
def test_another_query_with_parentheses(sql: str) -> None:
    pair = Pair(2)
    for come in (0, 12, 3, 3):
        pair.change(come=come)
        expected = counted(pair.duck.execute(sql).fetchall(), 0)
        assert counted(list(pair.db.sql(sql)), 0) == expected


@pytest.mark.parametrize("sql", [sql for sql in (*ORDERED, *UNORDERED) if sql not in ANSWERS_ONLY])
def test_a_view_of_a_query_in_parentheses_follows_changes(sql: str) -> None:
    pair = Pair(3)
    pair.db.sql(f"create view seen as {sql}")
    for come in (0, 12, 4, 4, 0):
        pair.change(come=come)
        assert counted(list(pair.db.sql("from seen")), 0) == counted(pair.duck.execute(sql).fetchall(), 0)


@pytest.mark.parametrize(
    "query",
    [
        "(select id, a from t order by id desc limit 3) limit 2",
        "((select id, a from t order by id limit 5) order by id desc limit 3) order by id limit 2",
        "with x as (select id, a from t where id > 2) (select id, a from x order by id desc limit 3) limit 2",
    ],
)
def test_rows_of_a_query_in_parentheses_are_stored(query: str) -> None:
    pair = Pair(4)
    pair.change(come=12)
    for where in (pair.db.sql, pair.duck.execute):
        where(f"create table made as {query}")
        where("create table filled (id bigint, a bigint)")
        for _ in range(2):
            where(f"insert into filled {query}")
    for table in ("made", "filled"):
        ours, theirs = list(pair.db.sql(f"from {table}")), pair.duck.execute(f"from {table}").fetchall()
        assert counted(ours, 0) == counted(theirs, 0)
        assert ours


def test_limits_that_are_parameters() -> None:
    pair = Pair(6)
    pair.change(come=12)
    for n, m in ((3, 1), (3, 1), (2, 0), (4, 9)):
        for text in (
            "(select id from t order by id desc limit $n) limit $m",
            "(select id from t order by id desc limit $n) order by id limit $m",
            "(select id from t order by id desc limit $n) offset $m",
        ):
            expected = pair.duck.execute(text.replace("$n", str(n)).replace("$m", str(m))).fetchall()
            assert list(pair.db.sql(text, n=n, m=m)) == expected


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ("select id from t order by id limit $n", 3),
        ("select id from t order by id limit 3 offset $n", 2),
        ("select id, lag(id, $n) over (order by id) from t order by id", 2),
        ("select id, lead(id, $n) over (order by id) from t order by id", -1),
        ("select id, nth_value(id, $n) over (order by id) from t order by id", 2),
        ("select id, ntile($n) over (order by id) from t order by id", 3),
        ("select id, sum(id) over (order by id rows between $n preceding and $n following) from t order by id", 1),
        ("select id, round(id / 7, $n) from t order by id", 1),
    ],
)
def test_texts_that_are_numbers_where_one_is_written_out(query: str, n: int) -> None:
    """From the command line every value comes as a text."""
    pair = Pair(6)
    pair.change(come=12)
    expected = pair.duck.execute(query.replace("$n", str(n))).fetchall()
    for _ in range(3):  # met, kept, and met with values of another kind
        assert list(pair.db.sql(query, n=str(n))) == list(pair.db.sql(query, n=n)) == expected
    for wrong in ("", "x", "1.5", "\u0663"):
        with pytest.raises(lftj.ProgramError):
            pair.db.sql(query, n=wrong)


def test_what_stands_behind_parentheses_may_be_wrong() -> None:
    db = lftj.Database()
    db.sql("create table t (id int primary key, n int)")
    with pytest.raises(lftj.ProgramError, match="there is no column 2"):
        db.sql("(select id from t order by id limit 2) order by 2")
    with pytest.raises(lftj.ProgramError, match="unknown column `n`"):
        db.sql("(select id from t order by id limit 2) order by n")
    with pytest.raises(lftj.ProgramError, match="not supported yet: `LIMIT n`"):
        db.sql("(select id from t order by id limit 2) limit n")
    with pytest.raises(lftj.ProgramError, match="not supported yet: `LIMIT n`"):
        db.sql("(select id from t order by id limit n) limit 2")


# --- with before changes ----------------------------------------------------------------------------------------------

TABLES = """
create table y (a bigint, b bigint);
create table x (a bigint);
create table k (id bigint primary key, n bigint);
insert into y values (1, 1), (2, 2), (2, 2), (3, null), (9, 5);
insert into x values (1), (null);
insert into k values (1, 10), (2, 20);
"""
CHANGES = (
    "with x as (select 9 as a) delete from y where a in (select a from x)",
    "with x as (select $v as a) delete from y where a in (select a from x)",
    "with x as (select $v as a) delete from y using x where y.a = x.a",
    "with z as (select a from x), x as (select a + $v as a from z) delete from y where exists "
    "(select 1 from x where x.a = y.a)",
    "with recursive x as (select $v as a union select a + 1 from x where a < 3) delete from y where a in (from x)",
    "with x as (select 9 as a) delete from y where a in (with x as (select 1 as a) select a from x)",
    "with z as (select 2 as c) delete from y where a in (with x as (select $v as a) select x.a + c from x, z)",
    "with x as (select 2 as a) update y set b = 0 from x where y.a = x.a",
    "with x as (select $v as a, 7 as c) update y set b = c + $v from x where y.a = x.a",
    "with x as (select $v as c) update y set b = (select c from x) where a <> 2",
    "with x as (select 3 as a) update y as w set b = -1 where w.a in (select a from x)",
    "with x as (select 2 as a union all select 3), z as (select max(a) as a from x) update y set b = z.a from z "
    "where y.a < z.a",
    "with z as (select 1 as c) insert into y with b as (select $v as d) select c, d from z, b",
    "with z as (select 1 as c) insert into y with z as (select 5 as c) select c, c from z",
    "with z as (select 1 as c) insert into y with z as (select c + $v as c from z) select c, c from z",
    "with z as (select $v as c) insert into y select c, c from z",
    "with z as (select $v as c) insert into y values ((select c from z), 4), (4, (select c + 1 from z))",
    "with y as (select $v as c) insert into y select c, c from y",
    "with z as (select $v as c) insert into y (select c, c from z limit 3) limit 1",
    "insert into y with z as (select $v as c) (select c, c from z limit 3) limit 1",
    "with z as (select $v as c) insert into y (b) (with b as (select 2 as d) select c + d from z, b order by 1 limit 2)"
    " order by 1 limit 1",
    "with recursive z as (select $v as c union select c + 1 from z where c < 4) insert into y "
    "with b as (select max(c) as d from z) select c, d from z, b",
    "with z as (select $v as c) insert into k select c, c from z on conflict (id) do update set n = excluded.n + 1",
)


@pytest.mark.parametrize("text", CHANGES)
@pytest.mark.parametrize("together", [True, False])
def test_a_change_of_rows_knows_the_names_of_its_with(text: str, together: bool) -> None:
    db, duck = lftj.Database(), duckdb_database()
    db.sql(TABLES)
    duck.execute(TABLES)
    for value in (1, 2, 2, 3):
        given = {"v": value} if "$v" in text else {}
        if together:
            with db.transaction() as tx:
                tx.sql(text, **given)
        else:
            db.sql(text, **given)
        duck.execute(text, given)
        for table in ("y", "x", "k"):
            assert Counter(db.sql(f"from {table}")) == Counter(duck.execute(f"from {table}").fetchall()), value


def test_what_an_insert_computes_in_conflicts_knows_the_names_of_its_with() -> None:
    """DuckDB has no subqueries there."""
    db = lftj.Database()
    db.sql(TABLES)
    text = """with x as (select $v as c) insert into k values (1, 5), (2, 30)
        on conflict (id) do update set n = (select c from x) where excluded.n > (select c from x)"""
    for value, expected in ((7, [(1, 10), (2, 7)]), (4, [(1, 4), (2, 4)]), (6, [(1, 4), (2, 6)])):
        db.sql(text, v=value)
        assert list(db.sql("from k")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "with y as (select 1 as a) delete from y",
        "with y as (select 1 as a) delete from y where a in (select a from y)",
        "with Y as (select 1 as a) update y as w set b = 0 from x where x.a = w.a",
    ],
)
def test_a_query_of_with_is_not_changed(text: str) -> None:
    db, duck = lftj.Database(), duckdb_database()
    db.sql(TABLES)
    duck.execute(TABLES)
    for _ in range(3):
        with pytest.raises(lftj.ProgramError) as caught:
            db.sql(text)
        assert caught.value.diagnostics[0].what == "`y` is a query of `with`, and its rows cannot be changed"
        assert caught.value.diagnostics[0].span.line == 1
    with pytest.raises(Exception, match="base table"):
        duck.execute(text)


def test_a_with_in_parentheses_does_not_hide_the_one_around_it() -> None:
    """DuckDB forgets the inner one."""
    db = lftj.Database()
    for _ in range(3):
        answer = db.sql(
            "with a as (select $v as x) (with b as (select x + 1 as y from a) select x, y from a, b limit 5) limit 2",
            v=1,
        )
        assert list(answer) == [(1, 2)]
        answer = db.sql("with a as (select 1 as x) (with a as (select x + $v as x from a) from a limit 5) limit 2", v=1)
        assert list(answer) == [(2,)]


# --- parameters that are no positions ---------------------------------------------------------------------------------

# DuckDB refuses a parameter there. A constant that is computed is no position.
CONSTANTS = (
    "select id, a from t order by $v, id",
    "select id, a from t order by $v desc, id desc",
    "select distinct a from t order by $v, a nulls first",
    "select id from t union select n from u order by $v, 1 nulls first",
    "(select id, a from t order by $v, id desc limit 4) order by $v, id limit 2",
    "select * from (select id, a from t order by $v, id desc limit 3) order by id",
    "select id, count(*) as n from t group by id order by $v, id",
    "select count(*) as n, sum(id) as s from t group by $v",
    "select a, count(*) as n from t group by $v, a order by a nulls first",
    "select $v as k, count(*) as n from t group by $v",
    "select count(*) as n from t where id < 0 group by $v",
    "select distinct on ($v) id, a from t order by id",
    "select distinct on ($v) id, a from t order by $v, id desc",
    "select distinct on ($v, a) id, a from t order by id desc",
    "select id, row_number() over (partition by $v order by id) as n from t order by $v, id",
)


@pytest.mark.parametrize("text", CONSTANTS)
@pytest.mark.parametrize("value", [2, 1, 99, -1, "a", None])
def test_a_parameter_is_no_position(text: str, value: Any) -> None:
    pair = Pair(5)
    pair.change(come=12)
    constant = {None: "(null || null)"}.get(value, f"({value!r} || '')" if isinstance(value, str) else f"({value} + 0)")
    expected = pair.duck.execute(text.replace("$v", constant)).fetchall()
    for _ in range(3):
        found = list(pair.db.sql(text, v=value))
        assert found == expected if "order by" in text else counted(found, 0) == counted(expected, 0)


def test_a_number_that_is_written_is_a_position_as_before() -> None:
    db = lftj.Database()
    db.sql("create table t (id int primary key, n int); insert into t values (1, 30), (2, 10), (3, 20)")
    for _ in range(3):
        assert list(db.sql("select id, n from t where id < $v order by 2", v=9)) == [(2, 10), (3, 20), (1, 30)]
        assert list(db.sql("select id % 2 as m, max(n) from t where id < $v group by 1 order by 1", v=9)) == [
            (0, 10),
            (1, 30),
        ]


@pytest.mark.parametrize("value", [1, 2, 9])
def test_what_is_not_grouped_is_told_alike_each_time(value: int) -> None:
    db = lftj.Database()
    db.sql("create table t (id int primary key, n int)")
    for _ in range(3):
        with pytest.raises(lftj.ProgramError, match="`id` is neither grouped nor aggregated"):
            db.sql("select id, count(*) from t group by $v", v=value)
