"""Window functions: values as DuckDB has them, after every change, of bags and with null.

Functions that tell rows apart which are alike in the order (row_number, lag, frames of rows) are ordered by all columns
here, for SQL leaves open which comes first.

Catches: peers that are told apart, a frame that leaves its partition, null counted or ordered elsewhere, copies of a
row that are one row, a partition that is not looked at although a row left it, a sum that wraps.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.maintain import by_partition
from tests.conftest import JIT
from tests.sql.against_duckdb import Pair

EVERY = {"t": "id", "u": "a, b, n", "w": "k, x"}
WRITTEN = [
    "select id, rank() over (order by a), dense_rank() over (order by a desc nulls first) from t",
    "select a, n, row_number() over (partition by b order by n, a) as place from u",
    "select *, sum(n) over (partition by a) as total from u",
    "select *, sum(n) over (partition by a order by n) as total from u",
    "select id, sum(c) over (partition by b order by d), avg(c) over (partition by b), avg(a) over () from t",
    "select k, x, sum(x) over (partition by k order by x) as total, max(x) over (order by k) from w",
    "select id, lag(b) over (order by id), lead(d, 2) over (order by id), lag(a, 1, -1) over (order by id) from t",
    "select id, lag(a, -1) over (order by id), lead(a, 0) over (order by id), lead(a, 3, id) over w from t "
    "window w as (partition by b order by id)",
    "select id, first_value(b) over w, last_value(b) over w, nth_value(b, 2) over w from t "
    "window w as (partition by a order by id rows between 1 preceding and 1 following)",
    "select id, min(b) over w, max(d) over w, count(c) over w, count(*) over w from t "
    "window w as (order by id rows between 2 preceding and 1 preceding)",
    "select id, sum(a) over (order by id rows between current row and unbounded following) from t",
    "select id, max(a) over (order by b range between current row and unbounded following) from t",
    "select id, count(*) over (order by b range between unbounded preceding and current row) from t",
    "select id, sum(a) over (order by id rows 2 preceding) from t",
    "select id, ntile(3) over (order by id), percent_rank() over (order by b), cume_dist() over (order by b) from t",
    "select id, sum(a) filter (where b = 'x') over (partition by d), count(*) filter (where a > 1) over () from t",
    "select id, a - avg(a) over (partition by b) as diff, rank() over (order by a) * 2 + id as r from t",
    "select id from t qualify row_number() over (partition by b order by a desc nulls last, id) = 1",
    "select id, row_number() over (order by id) as place from t qualify place between 2 and 4 and id > 1",
    "select distinct on (b) b, id, a from t order by b, a desc, id",
    "select distinct on (a) u.* from u order by a, b, n",
    "select distinct b, count(*) over (partition by b) as many from t",
    "select b, sum(a) as s, rank() over (order by sum(a) desc) as r from t group by b",
    "select b, count(*) as n, sum(count(*)) over () as every from t group by b having count(*) > 1",
    "select s.id, u.n from (select id, a, row_number() over (partition by a order by id) as r from t) s "
    "join u on u.a = s.a where s.r = 1",
    "select t.*, u.n, rank() over (partition by t.b order by u.n) as r from t join u on u.a = t.a",
    # frames by values, and by groups of peers
    "select id, sum(a) over (order by a range between 1 preceding and current row) from t",
    "select id, sum(a) over (order by a desc range between 1 preceding and 2 following), count(*) over (partition by b "
    "order by a desc nulls first range between 1 following and 3 following) from t",
    "select id, sum(a) over (order by a range 2 preceding), sum(a) over (order by a range between 0.5 preceding and "
    "1.5 following) from t",
    "select id, avg(c) over (order by c range between 1.5 preceding and 0.5 following) from t",
    "select id, count(*) over (order by d range between interval '2' day preceding and current row), count(*) over "
    "(order by d desc range between '1 day'::interval preceding and unbounded following) from t",
    "select id, min(a) over (partition by b order by d range between interval 1 month preceding and interval "
    "'3 days 2 hours' following) from t",
    "select id, sum(a) over (order by d + interval '1' hour range between interval '26' hour preceding and interval "
    "'0' day following) from t",
    "select k, x, sum(x) over (partition by k order by x range between 0.5 preceding and unbounded following) from w",
    "select id, last_value(id) over (order by id range between 3 preceding and 2 preceding) from t",
    "select id, count(*) over (order by a range between 2 following and 1 following) from t",
    "select b, sum(a) as s, count(*) over (order by sum(a) range between 3 preceding and 3 following) as r from t "
    "group by b",
    "select id, count(*) over w as n, sum(c) over w as s, lag(a, 1, 0) over w from t window w as (partition by b order "
    "by id range between 2 preceding and current row)",
    "select id, count(*) over (order by a groups between 1 preceding and 1 following), first_value(b) over (order by a,"
    " id groups between 1 following and unbounded following) from t",
    "select id, max(c) over (order by b, a groups 2 preceding), max(c) over (partition by b order by a groups between 2"
    " preceding and 1 preceding) from t",
    # rows without a value passed over
    "select id, last_value(a ignore nulls) over w, first_value(b ignore nulls) over w, nth_value(c, 2 ignore nulls) "
    "over w from t window w as (order by id rows between 2 preceding and 1 following)",
    "select id, last(a ignore nulls) over (partition by b order by id), first_value(d ignore nulls) over (order by id "
    "rows between 1 following and 3 following), last_value(a respect nulls) over (order by id) from t",
    "select id, lag(a ignore nulls) over w, lead(b, 2 ignore nulls) over w, lag(c, -1 ignore nulls) over w, lag(a, 0 "
    "ignore nulls) over w from t window w as (partition by d order by id)",
    "select id, lag(a, 1, -1 ignore nulls) over w, lead(c, 2, 9.5 ignore nulls) over w, lag(a, 0, 7 ignore nulls) over "
    "w from t window w as (order by id)",
    "select b, last_value(sum(a) ignore nulls) over (order by b) as s from t group by b",
    # distinct values, quantiles and variances
    "select id, count(distinct a) over (order by id rows 2 preceding), count(distinct b) over (partition by a order by "
    "id), count(distinct c) filter (where a > 1) over () from t",
    "select id, median(a) over (order by id rows 3 preceding), median(b) over (order by a range between 1 preceding and"
    " 1 following), median(d::timestamp) over (order by id rows 4 preceding) from t",
    "select id, quantile_cont(a, 0.25) over (order by id rows between 2 preceding and 2 following), quantile_disc(c, "
    "0.9) over w, quantile_disc(b, 0.5) over w, quantile_disc(d, 0) over w, quantile_cont(a, 1) filter (where c > 1) "
    "over w from t window w as (order by id rows between 4 preceding and 1 preceding)",
    "select id, stddev(a) over (order by id rows 3 preceding), var_pop(c) over (partition by b), var_samp(a) over w, "
    "stddev_pop(c) over w, variance(c) filter (where a > 1) over w from t window w as (order by id rows between 3 "
    "preceding and 1 following)",
    "select k, x, stddev_samp(x) over (partition by k order by x), var_pop(x) over (order by k) from w",
    "select k, x, median(x) over (partition by k), quantile_disc(x, 0.3) over (order by x range between 1 preceding and"
    " 1 following) from w",
    # what names stand for
    "select id, b, count(*) over v as n from t window w as (partition by b), v as (w order by id)",
    "select distinct on (b) b, id from t order by 1, 2 desc",
    "select distinct on (1) b, id from t order by b, id",
    "select distinct on (b) b, -id as id from t order by b, id + 0",
    "select distinct on (b) b, -id as id from t order by b, id",
    "select id + 10 as id from t qualify id < 5 and count(*) over () > 0",
    "select -id as id from t qualify row_number() over (order by id) = 1",
    "select upper(b) as u, rank() over (order by upper(b)) from t group by u",
    "select count(*) over () as s, b from t group by 2",
    "select b, rank() over (order by b, a) as r, a from t group by 1, 3",
    # functions that no frame is for, and those at the ends
    "select id, cume_dist() over w, sum(a) over w from t window w as (order by id rows between 1 preceding and current "
    "row)",
    "select id, lag(id, -1, 99) over (order by id), lead(id, -1, 99) over (order by id) from t",
    "select id, sum(a) over (order by id rows between current row and 9223372036854775807 following) from t",
    "select id, sum(a) over (order by id rows between 9223372036854775807 following and unbounded following) from t",
    "select id, (select sum(count(*)) over () from u where u.a = t.a) as n from t",
    "select count(*) over () from u",
    "select a from u qualify row_number() over (partition by a order by n, b) <= 2",
    "select n from (select n, row_number() over (order by n, a, b) as r from u) s where r < 4",
    "select row_number() over () * 0 from w",
    "with s as (select k, sum(x) over (partition by k) as total from w) select k, max(total) from s group by k",
    "select a from u union all select row_number() over (order by a, b, n) from u",
    "select id, (select max(r) from (select u.n, rank() over (order by u.n) as r from u where u.a = t.a) s) from t",
    "select id, rank() over (partition by a, b order by c desc, d) as r, rank() over (partition by b) as s from t",
    # conditions on values beside a row
    "select k, x from (select k, x, max(x) over (partition by k) as m from w) s where x = m",
    "select id, b from (select id, a, b, d, min(a) over (partition by b) as m from t) s where a = m and d is not null",
    "select s.id, u.n from (select id, a, max(a) over (partition by b) as m from t) s join u on u.a = s.m "
    "where s.a = s.m",
    "select count(*), max(total) from (select sum(x) over (partition by k) as total from w) s where total > 1",
    "select b, count(*) as n from (select b, row_number() over (partition by a order by b, id) as r from t) s "
    "where r <= 2 group by b",
    "select k, sum(k) as s, rank() over (order by sum(k)) as r, count(*) over () as n from w group by k",
    "select k, c, sum(c) over (order by k) as s from (select k, count(*) as c from w group by k) q",
    # copies of rows, and who reads them
    "select s, k, x, rank() over (order by s) as n from (select k, x, count(*) over (partition by k) as s from w) a",
    "select k from (select k, rank() over (order by s) as n from (select k, count(*) over (partition by k) as s from "
    "w) a) b where exists (select 1 from (select a, count(*) over (partition by a) as s from u) c where c.s < b.n)",
    "select a, n, rank() over (partition by a order by n) as r from u",
    "select n + r as s from (select n, rank() over (partition by a order by n) as r from u) s where n is not null",
    "select k, count(*) as n, sum(s) as t, min(s) as m from (select k, sum(x) over (partition by k) as s from w) q "
    "group by k",
    "select count(distinct s), count(*), avg(s) from (select k, count(*) over (partition by k) as s from w) q",
    "select distinct s from (select sum(x) over (partition by k) as s from w) q",
    "select q.s, t.id from (select a, count(*) over (partition by a) as s from u) q join t on t.a = q.s",
    "select q.a, p.a from (select a, count(*) over (partition by a) as s from u) q join u p on p.n = q.s",
    "select s from (select count(*) over (partition by a) as s from u) q union all select k from w",
    "select s from (select count(*) over (partition by a) as s from u) q except all select k from w",
    "select id from t where exists (select 1 from (select a, count(*) over () as s from u) q where q.a = t.a and s > 1"
    ")",
    "select id from t where id not in (select count(*) over (partition by a) from u)",
    "select x, max(s) over (partition by x) from (select x, count(*) over (partition by k) as s from w) q",
    "select * from (select s, x from (select x, count(*) over (partition by k) as s from w) q order by s, x limit 4) p",
    "with q as (select k, sum(x) over (partition by k) as s from w) select p.k, p.s from q p join q o on p.s < o.s",
    "select id, lag(a, 1, 2.5) over w, lead(c, 1, 1.005) over w, lag(b, 2, id) over w, lead(c, 1, a) over w, "
    "lag(d, 1, timestamp '2024-05-05 11:00:00') over w, lag(a, 1, b is null) over w from t window w as (order by id)",
    # aggregates that others say (DuckDB's count_if of no rows is null, and its any_value the first)
    "select id, bool_or(a > 1) over w, bool_and(a > 1) over w, bool_or(b = 'x') over (partition by a) from t "
    "window w as (order by id rows between 1 preceding and 1 following)",
    "select id, bool_and(a > 1) filter (where b is not null) over w, coalesce(count_if(a > 1) filter (where c > 0) "
    "over w, 0) from t window w as (partition by d order by id)",
    "select a, n, bool_or(distinct n > 0) over (partition by a) from u qualify bool_and(n > 0) over (partition by b)",
    "select id from (select id from t order by bool_or(a > 1) over (partition by b), id limit 3) s",
    "select b, bool_or(count_if(a > 1) > 0) over (), bool_or(sum(a) > 4) over (order by b) from t group by b",
    "select id, any_value(a) over (partition by a), any_value(a) filter (where c > 0) over (partition by a) from t",
    "select id, avg(c) over w, avg(a) filter (where c > 0) over w from t window w as (order by id rows 2 preceding)",
    "select k, avg(x) over (order by k), avg(x) filter (where x > 0) over (partition by k) from w",
]


@pytest.mark.parametrize("sql", WRITTEN if JIT else WRITTEN[::4])
def test_values_are_those_of_duckdb(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_partition, "MOST", 1.0)
    Pair(len(sql)).follow(sql, rounds=4, come=2)


def frames(random: Random) -> str:
    """A frame, or none."""
    low = random.choice(("unbounded preceding", "2 preceding", "1 preceding", "current row", "1 following"))
    high = random.choice(("unbounded following", "current row", "1 following", "2 following", "1 preceding"))
    places = ["unbounded preceding", "2 preceding", "1 preceding", "current row", "1 following", "2 following"]
    if high != "unbounded following" and places.index(low) > places.index(high):
        return ""
    if random.random() < 0.3:
        return f" groups between {low} and {high}"
    if random.random() < 0.3:
        low = random.choice(("unbounded preceding", "current row"))
        return f" range between {low} and {random.choice(('unbounded following', 'current row'))}"
    return f" rows between {low} and {high}"


def function(random: Random, table: str) -> str:
    """A function over a window."""
    columns = {"t": ["id", "a", "b", "c", "d"], "u": ["a", "b", "n"], "w": ["k", "x"]}[table]
    numbers = {"t": ["id", "a", "c"], "u": ["a", "n"], "w": ["k", "x"]}[table]
    column, number = random.choice(columns), random.choice(numbers)
    name = random.choice(
        ["row_number()", "rank()", "dense_rank()", f"ntile({random.randrange(1, 4)})", "count(*)", f"count({column})"]
        + [f"{op}({number})" for op in ("sum", "avg", "var_pop", "stddev")]
        + [f"count(distinct {column})", f"quantile_disc({column}, 0.{random.randrange(10)})"]
        + [f"{op}({number} > 1)" for op in ("bool_or", "bool_and")]
        + [f"{op}({column})" for op in ("min", "max", "lag", "lead", "first_value", "last_value")]
        + [f"{op}({column} ignore nulls)" for op in ("lag", "lead", "first_value", "last_value")]
    )
    part = random.sample(columns, random.randrange(3))
    partition = f"partition by {', '.join(part)}" if part else ""
    exact = name.startswith(("row_number", "ntile", "lag", "lead", "first", "last"))
    frame = "" if name.startswith(("row_number", "rank", "dense", "ntile", "lag", "lead")) else frames(random)
    by = []
    for one in random.sample(columns, random.randrange(3)):
        by.append(f"{one}{random.choice(('', ' desc', ' desc nulls first', ' nulls first'))}")
    if exact or " rows " in frame:
        by.append(EVERY[table])
    frame = frame if by else ""
    if frame and len(by) == 1 and by[0].split()[0] in numbers and random.random() < 0.5:  # two of a kind are no rows
        frame = frame.replace(" rows ", " range ").replace(" groups ", " range ")
    order = f"order by {', '.join(by)}" if by else ""
    return f"{name} over ({partition} {order}{frame})"


@pytest.mark.parametrize("seed", range(24 if JIT else 3))
def test_random_windows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(by_partition, "MOST", random.choice((1.0, 0.5)))
    pair = Pair(seed)
    for _ in range(4):
        table = random.choice(("t", "u", "w"))
        # Which of two rows that are alike has which of two values is left open, too.
        functions = ", ".join(function(random, table) for _ in range(random.choice((1, 2, 3)) if table == "t" else 1))
        pair.view(f"select *, {functions} from {table}")
    pair.change(come=8, go=0)
    pair.check()
    for _ in range(3):
        pair.change(come=random.randrange(4), go=random.randrange(3))
        pair.check()


def test_only_the_partitions_of_changed_rows_are_looked_at() -> None:
    db = lftj.Database()
    db.sql("""
        create table sale (shop int, day int, n int, primary key (shop, day));
        create view running as select shop, day, sum(n) over (partition by shop order by day) as total from sale;
    """)
    db.load("sale", [(shop, day, 1) for shop in range(50) for day in range(20)])
    db.evaluate()
    changed = db.sql("insert into sale values (7, 100, 5)")
    assert list(changed["running"].inserted) == [(7, 100, 25)]
    with db.transaction() as tx:
        tx.sql("update sale set n = 3 where shop = 9 and day = 18")
    assert list(tx.delta["running"].inserted) == [(9, 18, 21), (9, 19, 22)]
    head = next(name for name in db._strata.order if ".window" in name)
    report = db._kept.reports[head]
    assert (report.strategy, report.steps) == ("window", 20 + 20)


def test_a_sum_that_leaves_64_bits_changes_nothing() -> None:
    db = lftj.Database()
    db.sql("""
        create table t (id int primary key, n bigint);
        create view v as select id, sum(n) over (order by id) as total from t;
        insert into t values (1, 9223372036854775807), (2, -5), (3, 4);
    """)
    assert list(db["v"])[-1] == (3, 9223372036854775806)
    with pytest.raises(lftj.errors.EvaluationError, match="a sum over a window has no value"):
        db.sql("update t set n = n + 2 where id = 3")
    assert list(db["v"])[-1] == (3, 9223372036854775806)


@pytest.mark.parametrize("window", ["", "partition by g order by id"], ids=["all rows", "partitions"])
def test_a_sum_that_leaves_64_bits_names_its_view(window: str) -> None:
    query = f"select id, sum(n) over ({window}) as total from t"
    db = lftj.Database()
    db.sql("create table t (id int primary key, g int, n bigint)")
    db.sql("insert into t select r, r % 4, r from range(12) s(r)")
    db.sql(f"create view v as {query}")
    db.evaluate()
    with pytest.raises(lftj.errors.EvaluationError) as raised:
        db.sql("update t set n = 9223372036854775807 where g = 1")
    assert str(raised.value).startswith("view `v`: a sum over a window has no value\n")
    db.sql("drop view v")
    db.sql("update t set n = 9223372036854775807 where g = 1")
    with pytest.raises(lftj.errors.EvaluationError) as raised:
        db.sql(query)
    assert str(raised.value).startswith(f"<sql>:1:1: in `{query}`: a sum over a window has no value\n")


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("select sum(a) over (order by a, id range 1 preceding) from t", "a window that is ordered by 2 expressions"),
        ("select sum(a) over (order by a range id preceding) from t", "not supported yet: `id` as the end of a range"),
        ("select sum(a) over (order by a range -1 preceding) from t", "not supported yet: `-1` as the end of a range"),
        ("select sum(a) over (order by a range interval '-1 day' preceding) from t", "`interval '-1' day` as the end"),
        ("select sum(a) over (order by a range interval '1' day preceding) from t", "an interval is added to a value"),
        ("select sum(a) over (order by b range 1 preceding) from t", "not supported yet: `-` of text and bigint"),
        ("select sum(a) over (order by a groups 1.5 preceding) from t", "not supported yet: `SUM(a) OVER"),
        ("select sum(a) over w from t", "unknown window `w`"),
        ("select sum(distinct a) over () from t", "not supported yet: `sum(distinct a)` over a window"),
        ("select count(distinct a, b) over () from t", "` over a window"),
        ("select quantile_cont(b, 0.5) over () from t", "`quantile_cont(b, 0.5)` of text"),
        ("select quantile_cont(a, id) over () from t", "`id` as the fraction of a quantile"),
        ("select median(a::date) over () from t", "cast"),
        ("select stddev(b) over () from t", "`stddev(b)` of text"),
        ("select max_by(b, a) filter (where id > 1) over () from t", "not supported yet: `max_by(b, a)` over a window"),
        ("select sum(distinct a) filter (where id > 1) over () from t", "`sum(distinct a)` over a window"),
        ("select count(a, b) over () from t", "not supported yet: `count(a, b)` over a window"),
        ("select sum(b) over () from t", "`sum(b)` of text"),
        ("select ntile(0) over (order by a) from t", "not supported yet: `NTILE(0)"),
        ("select lag(a, id) over (order by a) from t", "not supported yet: `LAG(a, id)"),
        ("select sum(a ignore nulls) over (order by a) from t", "not supported yet: `ignore nulls` of `sum`"),
        ("select rank() ignore nulls over (order by a) from t", "not supported yet: `ignore nulls` of `rank`"),
        ("select rank(order by a) over (order by id) from t", "not supported yet: arguments of `rank`"),
        ("select sum(row_number() over ()) from t", "a window function within an aggregate"),
        ("select id from t order by sum(row_number() over ())", "a window function within an aggregate"),
        ("select lag(lag(a) over (order by id)) over (order by id) from t", "a window function within another"),
        ("select sum(a) over (order by sum(a) over (order by id)) from t", "a window function within another"),
        ("select lag(a) filter (where a > 5) over (order by id) from t", "`filter` of what is no aggregate"),
        ("select row_number() filter (where a > 5) over () from t", "`filter` of what is no aggregate"),
        ("select sum(a) over (order by id rows 1 following) from t", "a frame from following to current row"),
        (
            "select sum(a) over (order by id rows between unbounded preceding and unbounded preceding) from t",
            "a frame from unbounded preceding to unbounded preceding",
        ),
        ("select count(*) over w from t window w as (order by id), w as (order by a)", "`window` defines `w` twice"),
        ("select count(*) over (w order by a) from t window w as (order by id)", "`order by` of a window that `w`"),
        ("select count(*) over v from t window v as (w order by id), w as (partition by a)", "unknown window `w`"),
        ("update t set a = row_number() over ()", "a window function outside of a select"),
        ("insert into t values (1, row_number() over (), '')", "a window function outside of a select"),
        ("create table z (a int default row_number() over ())", "a window function outside of a select"),
        ("select b from t qualify b = 'x'", "`qualify` without a window function"),
        ("select * replace (row_number() over () as a) from t", "a window function in `replace`"),
        ("select count(* exclude (a)) over () from t", "`count` of some columns of `*`"),
        ("select a from t where row_number() over (order by a) = 1", "a window function stands in `where`"),
        ("select count(*) over (order by q) from t", "unknown column `q`"),
        ("select a, rank() over (order by b) from t group by a", "`b` is neither grouped nor aggregated"),
    ],
)
def test_what_is_refused_is_named(sql: str, what: str) -> None:
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, b text)")
    with pytest.raises(lftj.ProgramError) as refused:
        db.sql(sql)
    assert what in str(refused.value)
    assert "^" in str(refused.value)


def test_the_least_of_what_comes_most_often_is_the_mode() -> None:
    db = lftj.Database()
    db.sql("create table t (id int primary key, a text, x double)")
    db.sql("insert into t values (1, 'b', 1), (2, 'a', 2), (3, 'b', null), (4, 'c', 2), (5, 'c', 1), (6, null, null)")
    db.sql(
        "create view v as select id, mode(a) over w, mode(x) filter (where id > 1) over w from t window w as "
        "(order by id rows 2 preceding)"
    )
    assert list(db["v"]) == [(1, "b", None), (2, "a", 2), (3, "b", 2), (4, "a", 2), (5, "c", 1), (6, "c", 1)]
    db.sql("delete from t where id = 4")
    assert list(db["v"])[3:] == [(5, "a", 1), (6, "b", 1)]


def test_a_variance_without_a_value_changes_nothing() -> None:
    db = lftj.Database()
    db.sql(
        "create table t (id int primary key, x double); create view v as select id, var_pop(x) over (order by id "
        "rows 1 preceding) as n from t; insert into t values (1, 1e200), (2, 1e200), (3, 1e200)"
    )
    db.evaluate()
    with pytest.raises(EvaluationError, match="`var_pop` over a window has no value"):
        db.sql("insert into t values (4, -1e200)")
    with pytest.raises(EvaluationError, match="has no value"), db.transaction() as tx:
        tx.insert("t", [(4, math.inf)])
    assert [n for _, n in db["v"]] == [0, 0, 0]


def test_a_month_before_may_go_back_from_one_row_to_the_next() -> None:
    """One month before 30 March 23:00 is later than one before 31 March 01:00: both are of the last of February."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, at timestamp not null, n int not null, x double not null)")
    random, first = Random(3), dt.datetime(2024, 2, 25)
    times = sorted(first + dt.timedelta(hours=random.randrange(24 * 40)) for _ in range(120))
    rows = [(i, at, random.randrange(9), random.randrange(9) / 4) for i, at in enumerate(times)]
    db.load("t", rows)
    functions = "count(*), sum(n), max(n), median(n), count(distinct n), sum(x), var_pop(n), mode(n), first_value(id)"
    over = "over (order by at range between interval '1' month preceding and interval '1' month preceding)"
    reaching = over.replace("and interval '1' month preceding", "and current row")
    went_back = 0
    for window, open_end in ((over, False), (reaching, True)):
        text = f"select id, {', '.join(f'{f} {window}' for f in functions.split(', '))} from t order by id"
        for (i, at, _, _), found in zip(rows, db.sql(text), strict=True):
            low = month_before(at)
            own = [row for row in rows if (low <= row[1] <= at if open_end else row[1] == low)]
            went_back += i > 0 and low < month_before(rows[i - 1][1])
            numbers = sorted(n for _, _, n, _ in own)
            assert found[1] == len(own)
            if own:
                mean = Fraction(sum(numbers), len(own))
                variance = float(sum((n - mean) ** 2 for n in numbers) / len(own))
                mode = max(numbers, key=lambda n, of=numbers: (of.count(n), -n))
                median = (numbers[(len(own) - 1) // 2] + numbers[len(own) // 2]) / 2
                expected = (sum(numbers), numbers[-1], median, len({*numbers}), sum(row[3] for row in own), variance)
                assert tuple(found)[2:] == (*expected, mode, own[0][0])
    assert went_back > 3


def month_before(at: dt.datetime) -> dt.datetime:
    last = (at.replace(day=1) - dt.timedelta(days=1)).day
    return (at.replace(day=1) - dt.timedelta(days=1)).replace(day=min(at.day, last))


def test_what_is_read_several_times_is_held_once() -> None:
    db = lftj.Database()
    db.sql("""
        create table r (m int, at timestamp, r1 int, primary key (m, at));
        create view v as select *, sum(r1) over w as s, max((r1)) over w as g from r
            window w as (partition by m order by at range interval '1' hour preceding);
        insert into r values (1, '2024-01-01 00:00:00', 3), (1, '2024-01-01 00:30:00', 4);
    """)
    assert list(db["v"].columns) == ["m", "at", "r1", "s", "g"]
    assert [(row[0], *row[2:]) for row in db["v"]] == [(1, 3, 3, 3), (1, 4, 7, 4)]
    held = db._evaluator.state.relations["@v.rows1"]
    assert held.arity == 4  # the table's columns, and where the hour before began


def test_a_group_is_one_row_of_a_window() -> None:
    """Its sum is a value beside it, not how often it is there."""
    db = lftj.Database._sized(columns_from=0)
    db.sql("create table y (g int not null, n int not null); insert into y values (1, 2), (1, 3), (2, 5), (2, 5)")
    sums = db.sql("select g, sum(n) as s, rank() over (order by g) as r from y group by g")
    assert list(sums) == [(1, 5, 1), (2, 10, 2)]
    counts = db.sql("select n, c, sum(c) over () as s from (select n, count(*) as c from y group by n) q")
    assert list(counts) == [(2, 1, 4), (3, 1, 4), (5, 2, 4)]


def test_an_answer_that_does_not_fit_is_told_so() -> None:
    db = lftj.Database._sized(columns_from=0, memory_limit=500_000)
    db.sql("create table y (i int primary key, g int not null)")
    db.load("y", {"i": range(20_000), "g": [i % 7 for i in range(20_000)]})
    for columns in ("i, g", "g, i"):
        with pytest.raises(lftj.errors.MemoryLimitError, match="bytes of pages are needed"):
            db.sql(f"select {columns}, rank() over (partition by g order by i) as r from y")
    assert list(db.sql("select max(r) as m from (select rank() over (partition by g order by i) as r from y) q"))


def test_a_sum_of_decimals_has_to_fit() -> None:
    db = lftj.Database()
    db.sql("create table t (d decimal(18, 2)); insert into t values (9999999999999999.99), (9999999999999999.99)")
    with pytest.raises(lftj.errors.EvaluationError, match="a sum over a window has no value"):
        db.sql("select sum(d) over () as s from t")


def test_a_sum_that_is_the_code_of_null_is_an_error() -> None:
    """-2^63 stands for null in the column of sums; it was given out as null."""
    db = lftj.Database()
    db.sql("create table t (n bigint not null); insert into t values (-4611686018427387904), (-4611686018427387904)")
    with pytest.raises(lftj.errors.EvaluationError, match="a sum over a window has no value"):
        db.sql("select sum(n) over () as s from t")


@pytest.mark.parametrize("column", ["n", "u"])
@pytest.mark.parametrize(
    "function",
    [
        *("lag({}) over (order by k desc)", "lead({}) over (order by k)", "first_value({}) over (order by k desc)"),
        *("last_value({}) over ()", "nth_value({}, 2) over ()", "any_value({}) over (partition by k)"),
        *("{best}({}) over ()", "mode({}) over (partition by k)", "quantile_disc({}, 0.5) over (partition by k)"),
        "last_value({} ignore nulls) over ()",
    ],
)
def test_a_value_that_has_the_code_of_null_is_an_error(column: str, function: str) -> None:
    """-2^63, and the greatest number of `ubigint`, in columns without null; they were given out as null."""
    least, best = {"n": (-(2**63), "min"), "u": (2**64 - 1, "max")}[column]
    query = f"select k, {function.format(column, best=best)} as r from t"
    insert = "insert into t values (2, -9223372036854775808, 18446744073709551615)"
    what = f"{least} does not fit into a column that admits null"
    db = lftj.Database()
    db.sql("create table t (k int not null, n bigint not null, u ubigint not null)")
    db.sql(f"create view v as {query}; insert into t values (1, 5, 7)")
    before = list(db["v"])
    with pytest.raises(lftj.errors.EvaluationError, match=what):
        db.sql(insert)
    assert list(db["v"]) == before
    db.sql("drop view v")
    db.sql(insert)
    with pytest.raises(lftj.errors.EvaluationError, match=what):
        db.sql(query)
    ranked = db.sql(
        f"select k, count({column}) over () as c, row_number() over (order by {column}) as r from t order by k"
    )
    assert list(ranked) == ([(1, 2, 2), (2, 2, 1)] if column == "n" else [(1, 2, 1), (2, 2, 2)])


def test_a_mean_is_exact_where_its_sum_does_not_fit() -> None:
    """As `avg` of a group is."""
    db = lftj.Database()
    db.sql("create table t (i int primary key, n bigint, d decimal(18, 2) not null, x double)")
    numbers = [2**63 - 1, 2**63 - 1, None, -(2**63 - 1), 2**62 + 1, 5]
    doubles = [1.7e308, 1.7e308, None, 5e-324, -0.1, 2.0**-1060]
    decimals = [Decimal("9999999999999999.99"), Decimal("9999999999999999.97"), *map(Decimal, range(4))]
    columns = [numbers, decimals, doubles]
    db.load("t", [(i, *row) for i, row in enumerate(zip(*columns, strict=True))])
    over = "over (order by i rows between 1 preceding and 2 following)"
    found = list(db.sql(f"select i, avg(n) {over}, avg(d) {over}, avg(x) {over} from t order by i"))
    for i, *means in found:
        for values, mean in zip(columns, means, strict=True):
            frame = [Fraction(value) for value in values[max(i - 1, 0) : i + 3] if value is not None]
            assert mean == float(sum(frame) / len(frame))
    assert list(db.sql("select avg(n), avg(d), avg(x) from t")) == list(
        db.sql("select distinct avg(n) over (), avg(d) over (), avg(x) over () from t")
    )


def test_a_default_has_the_type_of_the_column() -> None:
    """As in DuckDB: one that is a double made doubles of all values."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, u ubigint, c decimal(9, 2), d date)")
    given = [
        "a, 1, 5e0",
        "a, 1, 2.5",
        "u, 1, 5e0",
        "u, 1, 2.5",
        "c, 1, 1.005",
        "c, 1, 3e0",
        "d, 1, timestamp '2024-01-05'",
    ]
    columns = db.sql(f"select {', '.join(f'lag({one}) over (order by id)' for one in given)} from t").columns
    types = ["number?"] * 2 + ["unsigned?"] * 2 + ["decimal(18,2)?"] * 2 + ["date?"]
    assert [*columns.values()] == types
    with pytest.raises(lftj.ProgramError, match="a cast from date to bigint"):
        db.sql("select lag(a, 1, d) over (order by id) from t")


def test_columns_are_called_as_their_functions_are_written() -> None:
    """And not as other functions that say them."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, b boolean)")
    given = ["avg(a) over ()", "lag(a, 1, 5) over (order by id)", "cume_dist() over (order by a)", "bool_or(b) over ()"]
    assert list(db.sql(f"select {', '.join(given)} from t").columns) == given
    assert list(db.sql("select sum(a) filter (where b) over () from t").columns) == ["sum(a) filter(where b) over ()"]


def test_rows_are_ordered_by_functions_that_others_say() -> None:
    """These are known as they are written by others, and the order as it was before."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, a int, b text)")
    db.load("t", [(1, 5, "x"), (2, 3, "y"), (3, 1, "x")])
    for order, expected in (
        ("bool_or(a > 3) over (partition by b), id", [2, 1, 3]),
        ("1 + cume_dist() over w desc", [1, 2, 3]),
        ("lag(a, 1, 4) over w", [2, 1, 3]),
    ):
        assert [i for (i,) in db.sql(f"select id from t window w as (order by a) order by {order}")] == expected


def test_sums_of_doubles_are_exact() -> None:
    """Each frame's sum is that of `math.fsum`, whatever stood before it."""
    values = [1e300, 0.1, -1e300, 5e-324, 0.2, -0.1, 2.0**-1060, 3.3, 1e16, 1.0, -1e16]
    db = lftj.Database()
    db.sql("create table t (i int primary key, x double)")
    db.load("t", {"i": range(len(values)), "x": values})
    found = db.sql("select i, sum(x) over (order by i rows between 2 preceding and 1 following) as s from t order by i")
    assert [s for _, s in found] == [math.fsum(values[max(i - 2, 0) : i + 2]) for i in range(len(values))]


def test_repeated_rows_are_as_often_when_they_are_asked_for_again() -> None:
    """The second question sorts what the first read as it came: it had 640 rows for 350."""
    random, db = Random(5), lftj.Database()
    db.sql("create table t (a int not null, b int primary key, c int not null, d int not null)")
    rows = {b: (random.randrange(3), b, random.randrange(5), random.randrange(4)) for b in range(350)}
    db.load("t", [*rows.values()])
    for b in range(4):
        found = Counter(db.sql("select a, d, count(*) over (partition by c order by d) as w from t"))
        frames = Counter((c, d) for _, _, c, d in rows.values())
        below = {(c, d): sum(n for (other, e), n in frames.items() if other == c and e <= d) for c, d in frames}
        assert found == Counter((a, d, below[c, d]) for a, _, c, d in rows.values())
        rows[b] = (1, b, 2, 3)
        with db.transaction() as tx:
            tx.upsert("t", [rows[b]])
