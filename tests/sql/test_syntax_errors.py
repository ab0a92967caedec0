"""Texts that the parser refuses: what is wrong, where, why, and what to do."""

from __future__ import annotations

import pytest

import lftj

SAVEPOINT = """\
  why: a transaction is a text, or a block of Python: it commits at its end, and an error undoes it
  do: write `with db.transaction() as tx:` and call `tx.sql(...)` in it: a text that fails has changed nothing, \
and the transaction may go on"""
WHOLE = {
    "select abs(1, 2) from t": """
<sql>:1:8: error: `abs` takes 1 argument at most, and has 2
    select abs(1, 2) from t
           ^^^
  why: `abs` has no use for more
  do: leave the others out""",
    "select a,\n ABS() from t": """
<sql>:2:2: error: `abs` without an argument
     ABS() from t
     ^^^
  why: it has no value without the arguments that are missing
  do: write the arguments that it takes""",
    "select a b c from t": """
<sql>:1:12: error: syntax error at `c`
    select a b c from t
               ^
  why: the statement cannot go on with `c` here
  do: see docs/sql.md for the statements that lftj understands; they are written as DuckDB writes them""",
    "begin; release savepoint x; commit": f"""
<sql>:1:8: error: `release` is not a statement of lftj
    begin; release savepoint x; commit
           ^^^^^^^
{SAVEPOINT}""",
    "savepoint x": f"""
<sql>:1:1: error: `savepoint` is not a statement of lftj
    savepoint x
    ^^^^^^^^^
{SAVEPOINT}""",
    "rollback to savepoint x": f"""
<sql>:1:1: error: `rollback` is not a statement of lftj
    rollback to savepoint x
    ^^^^^^^^^^^^^^^^^^^^^^^
{SAVEPOINT}""",
}
WITH = "".join(f", w{i} as (select a from w{i - 1 or ''})" for i in range(1, 300))
PARTS = {
    "select replace(b, upper('a', b), [1, 2]) from t": "1:19: error: `upper` takes 1 argument at most, and has 2",
    "select abs(nullif(a)) from t": "1:12: error: `nullif` with 1 argument only",
    "select pow(2) from t": "1:8: error: `pow` with 1 argument only",
    "select sum(a, (b, c)) from t": "`sum` takes 1 argument at most, and has 2",
    "select b, round(a, 1, 2) from t": "1:11: error: `round` takes 2 arguments at most, and has 3",
    "select floor(1, 2) from t": "1:14: error: `floor` takes 1 argument at most, and has 2",
    "select length(b, 'x') from t": "1:8: error: `length` takes 1 argument at most, and has 2",
    "select substring(b, 1, 2, 3) from t": "`substring` takes 3 arguments at most, and has 4",
    "select left(b, 1, 2) from t": "1:8: error: `left` takes 2 arguments at most, and has 3",
    "select id from t where contains(b, 'x', 'y')": "`contains` takes 2 arguments at most, and has 3",
    "select date_trunc('day', d, 'x') from t": "1:8: error: `date_trunc` takes 2 arguments at most, and has 3",
    "select sum(date_part('day', d, 1)) from t": "1:12: error: `date_part` takes 2 arguments at most, and has 3",
    "select a from t where datepart('day', d, (1)) > 2": "1:23: error: `datepart` takes 2 arguments at most, and has 3",
    "select date_diff('day', d, d, 'x') from t": "1:8: error: `date_diff` takes 3 arguments at most, and has 4",
    "select mod(a, 2, 3) from t": "`mod` takes 2 arguments at most, and has 3",
    "select add_months(d, 2, 3) from t": "1:8: error: `add_months` takes 2 arguments at most, and has 3",
    "select suffix(b, 'x', 'y') from t": "1:8: error: `suffix` takes 2 arguments at most, and has 3",
    "select replace(b, 'x') from t": "1:8: error: `replace` with 2 arguments only",
    "select max_by(a) from t": "1:8: error: `max_by` with 1 argument only",
    "select lpad(b, 5) from t": "1:8: error: `lpad` with 2 arguments only",
    "select rpad(b, 5, 'x', 'y') from t": "1:8: error: `rpad` takes 3 arguments at most, and has 4",
    "select ltrim(b, 'x', 'y') from t": "1:8: error: `ltrim` takes 2 arguments at most, and has 3",
    "select trunc(a, 1, 2) from t": "1:8: error: `trunc` takes 2 arguments at most, and has 3",
    "select split_part(b, 'x') from t": "1:8: error: `split_part` with 2 arguments only",
    "select split_part(b, 'x', 1, 2) from t": "1:8: error: `split_part` takes 3 arguments at most, and has 4",
    "select last_day(d, d) from t": "1:8: error: `last_day` takes 1 argument at most, and has 2",
    "select xor(a, 2, 3) from t": "1:8: error: `xor` takes 2 arguments at most, and has 3",
    "select any_value(a, b) from t": "1:8: error: `any_value` takes 1 argument at most, and has 2",
    "select count_if(a > 1, 2) from t": "1:8: error: `count_if` takes 1 argument at most, and has 2",
    "select mode() from t": "1:8: error: `mode` without an argument",
    "select mode(a, b) from t": "1:8: error: `mode` takes 1 argument at most, and has 2",
    "select log10() from t": "1:8: error: `log10` without an argument",
    "select strftime(d) from t": "1:8: error: `strftime` with 1 argument only",
    "select strftime(d, '%Y', 1) from t": "1:8: error: `strftime` takes 2 arguments at most, and has 3",
    "select abs(a +) from t": "1:15: error: syntax error at `)`",
    "select abs(a ** ) from t": "1:17: error: syntax error at `)`",
    "select 1 a b": "1:12: error: syntax error at `b`",
    "select extract(nonsense from d) from t": "1:16: error: not supported yet: the field `nonsense`",
    "select extract(hour from d) from t": "1:26: error: `d` is date",
    "select date_part('nonsense', d) from t": "1:18: error: not supported yet: the field `nonsense`",
    f"select\n {'(' * 90}a{' + 1)' * 90} from t": "<sql>:2:91: error: the statement is nested too deeply",
    f"select {'+'.join(['(a)'] * 4000)} from t": "<sql>:1:8: error: the statement is nested too deeply",
    f"select {'case when a > 1 then 2 else ' * 200}1{' end' * 200} from t": "1:5580: error: the statement is nested",
    " union all ".join(["select a from t"] * 900): "<sql>:1:17: error: the statement is nested too deeply",
    f"select a from t where {'not ' * 900} a > 1": "<sql>:1:23: error: the statement is nested too deeply",
    f"select 1;\nwith w as (select 1 as a){WITH} select a from w299": "<sql>:2:1: error: the statement is nested",
    "select nullif(a from t": "1:14: error: syntax error: a parenthesis that is never closed",
    **dict.fromkeys(
        (
            "select cast(a as int from t",
            "select max(a from t",
            "delete from t where cast(a as int = 3",
            "update t set a = cast(a as int where id = 1",
            "insert into t (id, a) values (1, cast('3' as int, 2)",
            "select extract(year from d from t",
            "select id from t where a = (select max(a from t)",
        ),
        "error: syntax error: a parenthesis that is never closed",
    ),
    "select min() from t": "1:8: error: `min` without an argument",
    "select max() over () from t": "1:8: error: `max` without an argument",
    "select max() filter (where true) from t": "1:8: error: `max` without an argument",
    "select count(distinct) from t": "1:8: error: `count` without an argument",
    "select floor()": "1:1: error: `floor` without an argument",
    "insert into t (id, a) values (@, 1)": "error: `abs` without an argument",
    "select replace('a', 'b',)": "1:8: error: `replace` with 2 arguments only",
    "select date()": "1:8: error: `date` without an argument",
    "select cast(1.5 as decimal(a, 1))": "1:31: error: not supported yet: the type `DECIMAL(A, 1)`",
    "create table q (a decimal('x'))": "1:27: error: not supported yet: the type `DECIMAL('x')`",
    "else": "1:1: error: syntax error at `else`",
    "else; delete from t": "1:1: error: syntax error at `else`",
    "select 1e400.n from t": "1:8: error: `1e400.` is no number",
    "insert into t (id, a) values (7, count(*))": "error: `count` in `values`",
    "insert into t (id, a) values (7, (select 1) + sum(3))": "error: `sum` in `values`",
    "create table q (a int, b text default not null)": "1:24: error: `default` without a value",
    "select distinct on () a from t": "1:1: error: `distinct on` without columns",
    "insert into t (id, a like b) values (7, 1)": "error: a list of columns with more than names",
    "create view v (p, 1 q) as select a, id from t": "error: a list of columns with more than names",
    "insert into t (id, a) values (7, 1 b)": "error: `b` behind a value",
    "select grouping(a, b) as g, count(*) as n from t group by rollup (a)": "`grouping` of `b`, by which nothing is gr",
    "truncate t on x": "error: not supported yet: `truncate` on a cluster",
    "truncate t cascade": "error: not supported yet: `cascade` or `restrict` in `truncate`",
    "select zz.t.a from t": "1:8: error: not supported yet: `zz.t.a`, a column with a schema",
    "select 1 is ! null": "1:13: error: syntax error at `!`",
    "delete from t where a ! in (1)": "1:23: error: syntax error at `!`",
    "select !true": "1:8: error: syntax error at `!`",
    "insert t values (7, 1, 'x', null)": "1:8: error: `insert` without `into` and a name",
    "insert or ignore t (id, a) values (7, 1)": "1:18: error: `insert` without `into` and a name",
    "with w as (select 7 as a) insert t (id) select a from w": "1:34: error: `insert` without `into` and a name",
    "insert into table t (id, a) values (7, 1)": "1:19: error: `insert` without `into` and a name",
    "insert into t set id = 7, a = 1": "1:15: error: syntax error at `set`",
    "insert into t (id, a) value (7, 1)": "1:23: error: syntax error at `value`",
    "insert into t replace using (id) values (7, 1, 'x', null)": "1:15: error: syntax error at `replace`",
    "insert into t partition (id = 7) values (7, 1, 'x', null)": "error: not supported yet: `partition` of a table",
    "insert into t (id, a) values (1, 7) on duplicate key update a = 7": "error: not supported yet: `on duplicate k",
    "with w (a) (select 1) select a from w": "1:6: error: `w` of `with` without `as`",
    "with v as (select 1), w (select 1 as a) select a from w": "1:23: error: `w` of `with` without `as`",
    "with recursive w(a) using key (a) as (select 1 union select a from w) select a from w": "`using key` in `with",
    "with recursive w(a) as (select 1 union select a from w) cycle a set c using p select a from w": "error: not sup"
    "ported yet: `search` or `cycle` behind `with`",
    "create table q (a int, b text not null) as select 1, 'x'": "1:17: error: a list of columns with more than names",
    "create table q (a int unique nulls not distinct)": "1:17: error: `unique` with something behind it",
    "create table q (a int, unique nulls not distinct (a))": "error: `unique` with something behind it",
    "create table q (a int, b int generated always as (a + 1))": "error: not supported yet: generated columns",
    "insert or into t (id, a) values (7, 1)": "1:11: error: syntax error at `into`",
    "insert into t (id, a) values (7, 1) on conflict (id) update set a = 1": "1:54: error: syntax error: `update` w",
    "insert into t (id, a) values (7, 1) on conflict update set a = 1": "1:49: error: syntax error: `update` w",
}
# What resembles these, and has a meaning.
ALLOWED = (
    "with as_ as (select 8 as a) insert into t (id) with w(a) as materialized (select a from as_) select a from w",
    "insert into t (id) (select 9)",
    "insert into t as s (id, a) from (select 10, 1)",
    "select a from t where a != 1 and '!' <> b",
    "insert or replace into t (id, a) values (1, 2)",
    "insert into t (id, a) values (1, 3) on conflict (id) do update set a = 3",
)
# What is parsed, and named by the user's words for it.
WORDS = {
    "select array_agg(b) from t": "1:8: error: not supported yet: the aggregate `array_agg`",
    "select string_agg(b, a) from t": "1:8: error: not supported yet: `string_agg(b, a)` with a separator that is no",
    "select string_agg(distinct b, ',') over () from t": "1:8: error: not supported yet: `string_agg(distinct b, ',')`",
    "select a from t where string_agg(b, ',') = 'x'": "1:23: error: `string_agg(b, ',')` is an aggregate, and stands",
    "select max(string_agg(b, ',')) from t": "1:12: error: `string_agg(b, ',')` within another aggregate",
    "select avg(interval (a) day) over () from t": "1:8: error: `avg(interval (a) day)` of interval",
    "select avg(b) over (order by a) from t": "1:8: error: `avg(b)` of text",
    "select max(a respect nulls) over () from t": "1:8: error: not supported yet: `respect nulls` of `max`",
    "select to_timestamp(a) from t": "1:8: error: not supported yet: the function `to_timestamp`",
    "select id from t where md5(b) = 'x'": "1:24: error: not supported yet: the function `md5`",
    "select substr(a, 1) from t": "1:15: error: `a` is bigint, and `substr` takes text",
    "select APPROX_QUANTILE(a, 0.5) from t": "1:8: error: not supported yet: the aggregate `approx_quantile`",
    "select skewness(a) filter (where a > 0) from t": "1:8: error: not supported yet: the aggregate `skewness`",
    "select stddev(b) filter (where a > 0) from t": "1:8: error: `stddev(b)` of text",
    "select max_by(a, b, 2) from t": "1:8: error: not supported yet: `max_by(a, b, 2)`, a list of values",
    "select CORR(a, id) from t": "1:8: error: not supported yet: the aggregate `corr`",
    "select string_agg(*) from t": "1:8: error: `string_agg(*)`",
    "select rank() from t": "1:8: error: `rank` without `over`",
    "select a from t where lag(a) > 1": "1:23: error: `lag` without `over`",
    "select max(row_number()) over () from t": "error: `row_number` without `over`",
    "select sum(a order by id) over () from t": "1:8: error: not supported yet: `order by` in `sum(a order by id)`",
    "select position(a in b) from t": "1:17: error: `a` is bigint, and `position` takes text",
    "select row_number(a) over () from t": "1:8: error: not supported yet: arguments of `row_number`",
    "select sum(a) over (order by a rows 1 preceding exclude ties) from t": "not supported yet: `exclude` in a window",
    "select sum(a) over (range 1 preceding) from t": "a range of values in a window that is ordered by nothing",
    "start transaction read only": "1:1: error: `start` is not a statement of lftj",
    "create table u (a int);\nEND": "2:1: error: `end` is not a statement of lftj",
    "abort": "1:1: error: `abort` is not a statement of lftj",
    "lock table t": "1:1: error: `lock` is not a statement of lftj",
    "execute q(1)": "1:1: error: not supported yet: `execute`",
    "summarize t": "1:1: error: not supported yet: `summarize`",
    "show tables": "1:1: error: not supported yet: `show`",
    "vacuum": "1:1: error: not supported yet: `vacuum`",
}


@pytest.mark.parametrize("sql", WORDS)
def test_what_is_not_supported_is_called_as_it_is_written(sql: str) -> None:
    """Messages had the parser's names: `group_concat`, `logical_and`, `rownumber`, `alias`."""
    assert WORDS[sql] in _refusal(sql)


@pytest.mark.parametrize(
    ("sql", "remedy"),
    [
        ("select to_timestamp(a) from t", "do: rewrite it with others"),
        ("select md5(b) from t", "do: rewrite it with others"),
        ("select rank() from t", "do: write `rank(...) over (order by ...)`"),
        ("select sum(b) over () from t", "do: cast it, or take `min`, `max` or `count`"),
        ("select sum(d) over () from t", "do: take `min`, `max` or `count`"),
        ("select a from t fetch first 2 rows only", "do: write `limit` and a number"),
        ("execute q(1)", "do: call `db.sql(text, name=value)`, with `$name` in the text"),
    ],
)
def test_the_remedy_is_about_what_is_written(sql: str, remedy: str) -> None:
    """It was `trim` instead of another function, and `select` instead of `execute`."""
    assert _refusal(sql).endswith(remedy)


@pytest.mark.parametrize("sql", WHOLE)
def test_the_whole_message(sql: str) -> None:
    assert _refusal(sql) == WHOLE[sql].strip()


@pytest.mark.parametrize("sql", PARTS)
def test_what_is_wrong_is_named_with_its_place(sql: str) -> None:
    assert PARTS[sql] in _refusal(sql)


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_resembles_a_mistake_and_is_none_is_carried_out(sql: str) -> None:
    _made().sql(sql)


def test_the_parser_says_nothing_beside(caplog: pytest.LogCaptureFixture) -> None:
    """It warned that `STRPOS does not support the occurrence parameter`."""
    assert "not supported yet: a start of the search" in _refusal("select strpos(b, 'x', 1, 2) from t")
    assert not caplog.records


def _made() -> lftj.Database:
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, b text, d date); insert into t values (1, 3, 'x', null)")
    return db


def _refusal(sql: str) -> str:
    db = _made()
    before = list(db["t"])
    try:
        return _raised(db, sql)
    finally:
        assert list(db["t"]) == before


def _raised(db: lftj.Database, sql: str) -> str:
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(sql)
    return str(caught.value)
