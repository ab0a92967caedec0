"""Queries that are refused: what is wrong, where, why, and what to do."""

from __future__ import annotations

import re

import pytest

import lftj
from lftj.errors import EvaluationError
from tests.sql.against_duckdb import Pair

WHOLE = {
    "select x from t": """
<sql>:1:8: error: unknown column `x`
    select x from t
           ^
  why: no table of `from` has it
  do: name one of `id`, `a`, `b`, `c`, `d`""",
    "select t.idd from t": """
<sql>:1:8: error: unknown column `t.idd`
    select t.idd from t
           ^^^^^
  why: no table of `from` has it
  do: did you mean `id`?""",
    "select id\nfrom tt": """
<sql>:2:6: error: unknown table `tt`
    from tt
         ^^
  why: no table, view or query of `with` has this name
  do: did you mean `t`?""",
    "select u.a from t": """
<sql>:1:8: error: unknown table `u`
    select u.a from t
           ^
  why: no table of `from` has this name
  do: name it in `from`, or correct the name""",
    "select a from t, u": """
<sql>:1:8: error: ambiguous column `a`
    select a from t, u
           ^
  why: `t` and `u` both have it
  do: say which is meant, as in `t.a`""",
    "select id, a from t group by a": """
<sql>:1:8: error: `id` is neither grouped nor aggregated
    select id, a from t group by a
           ^^
  why: a group has several rows, each with its own value of the column
  do: add it to `group by`, or take an aggregate, as `max(id)`""",
    "select a from t where sum(a) > 1": """
<sql>:1:23: error: `sum(a)` is an aggregate, and stands where each row has a value
    select a from t where sum(a) > 1
                          ^^^^^
  why: aggregates are computed of groups, after `where`
  do: put the condition into `having`, or compute it in a subquery""",
    "select a from t union select a, b from u": """
<sql>:1:8: error: a set operation over 1 and 2 columns
    select a from t union select a, b from u
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  why: both sides have equally many columns
  do: let both sides give out the same columns""",
    "select t.a from t join (select true as a) as y using (a)": """
<sql>:1:55: error: `t.a = y.a` has values of type boolean and of type bigint
    select t.a from t join (select true as a) as y using (a)
                                                          ^
  why: values of different types are compared and put together after a cast only
  do: cast one of them, as in `cast(... as boolean)`""",
    "select id from t where (id, true) in (select id, n from u)": """
<sql>:1:25: error: `TRUE = n` has values of type boolean and of type bigint
    select id from t where (id, true) in (select id, n from u)
                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  why: values of different types are compared and put together after a cast only
  do: cast one of them, as in `cast(... as boolean)`""",
    "select max(id) > 1, max(id) > true from t": """
<sql>:1:21: error: `MAX(id) > TRUE` has values of type boolean and of type bigint
    select max(id) > 1, max(id) > true from t
                        ^^^^^^
  why: values of different types are compared and put together after a cast only
  do: cast one of them, as in `cast(... as boolean)`""",
    "select abs(i) from (select interval '1' day as i) q": """
<sql>:1:12: error: `i` is interval, and `abs` takes bigint, decimal or double
    select abs(i) from (select interval '1' day as i) q
               ^
  why: values of different types are converted by a cast only
  do: compute it of bigint, decimal or double, since nothing casts interval to these""",
    "select i / 2 from (select interval '1' day as i) q": """
<sql>:1:8: error: not supported yet: `/` of interval and bigint
    select i / 2 from (select interval '1' day as i) q
           ^^^^^
  why: lftj recognises this construct and cannot evaluate it yet
  do: compute with numbers, or with times and intervals, as in `t + interval (n) day`""",
    "select i > 2 from (select interval '1' day as i) q": """
<sql>:1:8: error: `i > 2` has values of type interval and of type bigint
    select i > 2 from (select interval '1' day as i) q
           ^^^^^
  why: values of different types are compared and put together after a cast only
  do: give values of one type""",
    "select a + 1 as x from t where x > 2": """
<sql>:1:32: error: not supported yet: `x`, a name that `select` gives, in another part of the query
    select a + 1 as x from t where x > 2
                                   ^
  why: lftj recognises this construct and cannot evaluate it yet
  do: repeat the expression, or put the query into a subquery of `from` or a `with`""",
}
PARTS = {
    "select u.a from t join u on t.a = u.a join u on true": "two tables named `u`",
    "select a from (select a from t offset 3) s": "not supported yet: `offset` without `limit` in a subquery or view",
    "select * from t natural join (select b as id from u) as y": "`t.id = y.id` has values of type bigint and of type",
    "select * from t full join (select true as a) as y using (a)": "`t.a = y.a` has values of type boolean and of",
    "select id from t where b > any (select n from u)": "`b > n` has values of type bigint and of type text",
    "select rank() over (order by a) > true from t": "`RANK() OVER (ORDER BY a) > TRUE` has values of type boolean",
    "select count(*) from t group by a + 1 having upper(a + 1) = 'x'": "`a + 1` is bigint, and `upper` takes text",
    "select id from t where (a, b) > (1, 'x', 2)": "1:25: error: `(a, b) > (1, 'x', 2)` compares 2 values with 3",
    "select id from t where (a, id) < (1, 'y')": "1:28: error: `y` is no bigint",
    "select (a, b) from t": "1:9: error: not supported yet: the row `(a, b)` as a value",
    "select id from t where row(a, b) > null": "1:28: error: not supported yet: the row `(a, b)` as a value",
    "select kurtosis(a) from t": "not supported yet: the aggregate `kurtosis`",
    "select variance(b) from t": "`variance(b)` of text",
    "select var_pop(stddev(a)) from t": "`stddev(a)` within another aggregate",
    "select id from t where stddev_pop(a) > 1": "`stddev_pop(a)` is an aggregate, and stands where each row has a",
    "select sum(b) from t": "`sum(b)` of text",
    "select count(distinct a, b) from t": "not supported yet: an aggregate of several distinct columns",
    "select sum(count(*)) from t": "`count(*)` within another aggregate",
    "select bool_or(count_if(a > 1) > 0) from t": "`count_if(a > 1)` within another aggregate",
    "select arg_max(a, b, 3) from t": "not supported yet: `arg_max(a, b, 3)`, a list of values",
    "select string_agg(b, a) from t": "not supported yet: `string_agg(b, a)` with a separator that is no text",
    "select string_agg(b, ',' order by b desc) from t": "not supported yet: texts in descending order within an",
    "select string_agg(distinct b, ',' order by a) from t": "with `distinct` and another order",
    "select string_agg(b, ',', 'x' order by a, b) from t": "`string_agg` takes 2 arguments at most, and has 3",
    "select string_agg(b, ',' order by count(*)) from t": "`count(*)` within another aggregate",
    "select quantile_cont(a, 1.5) from t": "`1.5` as the fraction of a quantile",
    "select quantile_disc(a, 0.1234567891) from t": "`0.1234567891` as the fraction of a quantile",
    "select quantile_disc(b, b) from t": "`b` as the fraction of a quantile",
    "select quantile_cont(a, [0.1, 0.2]) from t": "not supported yet: `quantile_cont` with a list of fractions",
    "select quantile_cont(b, 0.5) from t": "`quantile_cont(b, 0.5)` of text",
    "select percentile_disc(0.5) within group (order by a desc) from t": "not supported yet: `percentile_disc(0.5)` in "
    "descending order",
    "select percentile_cont(0.5) within group (order by a, id) from t": "not supported yet: `percentile_cont(0.5)` of "
    "several values",
    "select mode() within group (order by a desc) from t": "not supported yet: `mode()` in descending order",
    "select mode(a) within group (order by b) from t": "1:8: error: not supported yet: `mode(a)` within a group",
    "select avg(a) within group (order by b) from t": "1:8: error: not supported yet: `avg(a)` within a group",
    "select mode(sum(a)) from t": "1:13: error: `sum(a)` within another aggregate",
    "select id from t where mode(a) = 1": "1:24: error: `mode(a)` is an aggregate, and stands where each row has a",
    "select median(sum(a)) from t": "`sum(a)` within another aggregate",
    "select arg_max(a, sum(a)) from t": "`sum(a)` within another aggregate",
    "select arg_max(a, b) over () from t": "not supported yet: `arg_max(a, b)` over a window",
    "select count_if(distinct a > 1) from t": "not supported yet: `distinct` in `count_if`",
    "select id from t where bool_or(a > 1)": "`bool_or(a > 1)` is an aggregate, and stands where each row has a value",
    "select id from t where count(*) filter (where a > 1) > 0": "is an aggregate, and stands where each row has a",
    "select a from t group by a with rollup": "not supported yet: `rollup`",
    "select a, rank() over () from t group by rollup (a)": "a window function over several groupings",
    "select count(*) from t group by cube (id, a, b, c, d, id + 1, a + 1)": "`group by` with 128 groupings",
    "select a from t group by 3": "there is no column 3",
    "select a from t order by 4": "there is no column 4",
    "select distinct a from t order by b": "not supported yet: `order by` what the query does not give out",
    "select a from t union select b from u": "has values of type bigint and of type text",
    "select id, a, id from t union by name select a from u": "1:15: error: two columns named `id` in a side of `union",
    "select id from t union all by name select a, n as A from u": "1:46: error: two columns named `A` in a side of",
    "select b from t union by name select a as b from u": "1:38: error: `a` has values of type bigint and of type text",
    "select a from t intersect by name select a from u": "not supported yet: `intersect by name`",
    "with recursive r(x, y) as (select 1 as x, 2 as y union by name select y, x from r) select * from r": "not "
    "supported yet: `union by name` in the recursive query `r`",
    "select id from t where (a, b) in (select a from u)": "2 values against a subquery with 1 columns",
    "select id from t where (a, b) not in (select a, b from u)": "`not in` of several columns that may be null",
    "select id from t where (a, b) <> all (select a, b from u)": "`<> all` of several columns that may be null\n",
    "select (a, b) in (select a, b from u) from t": "`in` of several columns that may be null, where it is not true",
    "select id from t where ((a, b) = any (select a, b from u)) is null": "`= any` of several columns that may be null",
    "select (select a, b from u) from t": "a subquery with 2 columns as a value",
    "select * from t natural join w": "a natural join without a column in common",
    "select * from t join u using (id)": "unknown column `id`",
    "select * from t asof join u on t.a > u.a": "not supported yet: `asof join`",
    "with recursive r as (select 1 as x union select max(x) + 1 from r) select * from r": "an aggregate in the step",
    "with recursive r as (select 1 as x union all select a.x + b.x from r a, r b) select * from r": "a step of `union "
    "all` that does not name the recursive query `r` once in `from`",
    "select * exclude (z) from t": "`*` has no column `z`",
    "select * exclude (u.a) from t": "`*` has no column `u.a`",
    "select * exclude (a) replace (1 as a) from t": "`*` changes the column `a` twice",
    "select * from range(20000)": "a series of more than 10,000 values",
    "select * from generate_series(1, 5, 0)": "a series whose step is 0",
    "select * from range(1.5)": "not supported yet: a series of other values than numbers or times",
    "select * from t, range(a)": "unknown column `a`",
    "select * from read_csv('x')": "in `from`",
    "select * from s.t": "not supported yet: `s.t` in `from`",
    "values (1), (1, 2)": "rows of different lengths in `values`",
    "select a from t qualify a = 1": "`qualify` without a window function",
    "select a from t tablesample 10%": "not supported yet: `sample` of a table",
    "select *": "`*` without `from`",
    "select x.* from t": "unknown table `x`",
    "select * from (select a, b from t) s (x, y, z)": "3 names for 2 columns",
    "select id from t where exists (select 1 from u where u.q = t.a)": "unknown column `u.q`",
    "select a + 1 as X, x + 1 as y from t": "1:20: error: not supported yet: `x`, a name that `select` gives",
    "select a + 1 as x from t order by x + 1": "1:35: error: not supported yet: `x`, a name that `select` gives",
    "select a, count(*) as n from t group by a having n > 1": "1:50: error: not supported yet: `n`, a name",
    "select a + 1 as x, rank() over (order by id) as r from t where x > 2": "1:64: error: not supported yet: `x`, a na",
    "select a + 1 as x, sum(x) over () from t": "1:24: error: not supported yet: `x`, a name that `select` gives",
    "select a + 1 as x from t where exists (select 1 from u where u.a = x)": "1:68: error: not supported yet: `x`, a",
    "select a + 1 as x from t where t.x > 2": "1:32: error: unknown column `t.x`",
    "select x + 1 as x from t": "1:8: error: unknown column `x`",
    "select a + 1 as x from t, (select x as y) s": "1:35: error: unknown column `x`",
}


def test_names_that_select_gives_are_known_to_group_by_order_by_and_windows() -> None:
    pair = Pair()
    pair.db.load("t", [(1, 5, None, None, None), (2, 4, None, None, None)])
    for sql, rows in {
        "select a + 1 as x, count(*) as n from t group by x order by x": [(5, 1), (6, 1)],
        "select a + 1 as a from t where a > 4": [(6,)],
        "select id, rank() over (order by id) as r from t qualify r = 2": [(2, 2)],
    }.items():
        assert list(pair.db.sql(sql)) == rows


@pytest.mark.parametrize("sql", WHOLE)
def test_the_whole_message(sql: str) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        Pair().view(sql)
    assert str(caught.value) == WHOLE[sql].strip()


@pytest.mark.parametrize("sql", PARTS)
def test_what_is_wrong_is_named_with_its_place(sql: str) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        Pair().view(sql)
    assert PARTS[sql] in str(caught.value)
    assert caught.value.where.startswith("<sql>:1:")


@pytest.mark.parametrize("union", ["union", "union all"])
def test_a_constant_that_stands_for_null_is_refused_in_words_of_sql(union: str) -> None:
    """The message named a head that nobody wrote, and no place."""
    db = lftj.Database()
    db.sql("create table k (u ubigint, n bigint); insert into k values (1, 1), (null, null)")
    for sql, value in (
        (f"select u from k {union} select 18446744073709551615", "18446744073709551615"),
        (f"select n from k {union} select 5 {union} select '-9223372036854775808'", "-9223372036854775808"),
        (
            f"with recursive r(n) as (select u from k {union} select 18446744073709551615 from r) select * from r",
            "18446744073709551615",
        ),
    ):
        with pytest.raises(lftj.ProgramError) as caught:
            db.sql(sql)
        assert f"`{value}" in caught.value.what
        assert "in a column of a set operation that may be null" in caught.value.what
        assert sql[caught.value.diagnostics[0].span.column - 1 :].lstrip("'").startswith(value)
    # Where null cannot be it is a value, and no row of the other side is it.
    assert list(db.sql(f"select coalesce(u, 0) from k {union} select 18446744073709551615")) == [
        (0,),
        (1,),
        (2**64 - 1,),
    ]
    assert not list(db.sql("select u from k intersect select 18446744073709551615"))


def test_a_value_of_several_rows_is_an_error_that_names_them() -> None:
    pair = Pair()
    pair.db.load("t", [(7, 1, None, None, None)])
    pair.db.load("u", [(1, "x", 5), (1, "y", 5)])
    pair.view("select id, (select n from u where u.a = t.a) as n from t", "v")
    assert list(pair.db["v"]) == [(7, 5)]
    with pytest.raises(lftj.DataError, match="two values under one key"), pair.db.transaction() as tx:
        tx.insert("u", [(1, "x", 6)])
    assert len(pair.db["u"]) == 2


INCOMPLETE = {
    "insert into k": "`insert` without rows",
    "update k": "`update` without `set`",
    "update k where id = 1": "`update` without `set`",
    "select from k": "`select` without columns",
    "create view v as select from k": "`select` without columns",
    "select id from k where id not in": "`in` without a list",
    "select id from k where id in ()": "`in` without a list",
    "select c, count(*) from k group by": "`group by` without columns",
    "select id from k order by id limit 50%": "a percentage in `limit`",
    "select max(id, 2) from k": "`max` of two arguments",
    "select max(*) from k": "`max(*)`",
    "select count(distinct *) from k": "`count(distinct *)`",
    "select substring('abc') as x": "`substring` of a text alone",
    "with x as (select 1 as a), X as (select 2 as a) select * from x": "`with` names `X` twice",
    'create table "@x" (a int)': "`@x` cannot name a table or view",
    'create view "@v" as select 1 as a': "`@v` cannot name a table or view",
    "with recursive r(n) as (select 1 union select id from k left join r on n = id) select * from r": "an outer join",
    "with recursive r(n) as (select 1 union select id from k where id not in (select n from r)) "
    "select * from r": "`not`",
}


@pytest.mark.parametrize(("text", "told"), INCOMPLETE.items(), ids=INCOMPLETE)
def test_what_the_parser_takes_and_sql_does_not(text: str, told: str) -> None:
    """A row of nulls was inserted, all rows were given where a list was missing, and Python's errors were raised."""
    db = lftj.Database()
    db.sql("create table k (id int primary key, c text); insert into k values (1, 'x')")
    with pytest.raises(lftj.ProgramError, match=re.escape(told)) as caught:
        db.sql(text)
    assert "<sql>:1:" in str(caught.value)
    assert list(db["k"]) == [(1, "x")]


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("insert into k (id, nope) values (1, 2)", "1:20", "`k` has no column `nope`"),
        ("insert into k (id,\n  c, ID) select 1, 2, 3", "2:6", "column `id` is named twice"),
        ("insert into k values (1, 2) on conflict (id, nope) do nothing", "1:46", "`k` has no column `nope`"),
        ("update k set id = 2, nope = 1", "1:22", "`k` has no column `nope`"),
    ],
)
def test_a_column_that_a_change_cannot_name_is_marked(text: str, place: str, told: str) -> None:
    """Of `insert` the table and all columns were marked, of `on conflict` the first one."""
    db = lftj.Database()
    db.sql("create table k (id int primary key, c text)")
    with pytest.raises(lftj.ProgramError, match=re.escape(f"<sql>:{place}: error: {told}")):
        db.sql(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("update k set a = 10 / a", "in `update k set a = 10 / a` with id = 1, a = 0: division by zero"),
        ("select (select a from k) as x", "a subquery that stands for a value has several: 0 and 3"),
        ("select id from k where 9223372036854775807 + a > 0", "`9223372036854775807 + 3` does not fit into 64 bits"),
        ("select (select a from k order by a limit 2) as x", "a subquery that stands for a value has several: 0 and 3"),
        ("select (select a from k union select 7) as x", "a subquery that stands for a value has several"),
    ],
)
def test_what_fails_when_it_is_computed_names_the_statement(text: str, told: str) -> None:
    """Errors named a rule that nobody wrote."""
    db = lftj.Database()
    db.sql("create table k (id int primary key, a int not null); insert into k values (1, 0), (2, 3)")
    for _ in range(3):
        with pytest.raises(EvaluationError, match=re.escape(told)) as caught:
            db.sql(text)
        assert "<sql>:1:" in str(caught.value)
        assert "<rules>" not in str(caught.value)
        assert "in the body" not in str(caught.value)


def test_an_error_of_a_rule_below_a_statement_is_told_as_the_rules_own() -> None:
    db = lftj.Database(".decl e(x:number, y:number)  q(x, z) :- e(x, y), z = 6 / y.")
    db.sql("create table seen (x int)")
    db.load("e", [(1, 0)])
    texts = (
        "select x from q where x > 0",
        "insert into seen select x from q",
        "delete from seen where x in (select x from q)",
    )
    for text in texts:
        for _ in range(3):
            with pytest.raises(
                EvaluationError, match=re.escape("in `q(x, z) :- e(x, y), z = 6 / y.` with x = 1, y = 0")
            ):
                db.sql(text)
            with pytest.raises(EvaluationError, match="<rules>:1:30"), db.transaction() as tx:
                tx.sql(text)
