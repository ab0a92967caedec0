"""Semi and anti joins, as DuckDB has them, while rows come and go.

Catches: a row that is kept once for each match, rows that an unknown condition matches, tables of the right side that
the rest of the query sees, and names after `on` that are taken for those of another table.
"""

from __future__ import annotations

import pytest

import lftj
from tests.sql.against_duckdb import Pair

pytest.importorskip("duckdb")

QUERIES = [
    "select * from t semi join u on t.a=u.a",
    "select * from t semi join u using (a)",
    "select * from t anti join u using (a, b)",
    "select * from t anti join u on t.a=u.a and n > 0",
    "select * from t semi join u on t.id=4",
    "select b, count(*) from u anti join t on t.a = u.a and t.b = u.b group by b",
    "select id from t natural semi join u",
    "select * from u natural anti join t",
    "select id from t semi join u on true where t.id>2",
    "select id, x.n from t semi join u on t.a=u.a join u x on x.a=t.a",
    "select * from t join u x on x.a=t.a semi join u y on y.n=x.n+1",
    "select * from t semi join u on t.a=u.a anti join u on t.id=u.a",
    "select * from t semi join (select a from u where n>0) s using (a)",
    "select t.id from t, u x semi join w y on t.id=y.k",
    "select t.id, x.n from t, u x anti join t y on x.a=y.a and y.id <> x.n",
    "select t.id, x.n from t left join u x on x.a=t.a semi join u y on y.n=x.n",
    "select t.id, x.n from t left join u x on x.a=t.a anti join u y on y.n=x.n",
    "select t.id, x.n from t right join u x on x.a=t.a anti join u y on y.n=x.n+1",
    "select a from t join u x using (a) semi join u y using (a)",
    "select id from t where id in (select t.id from t anti join u on t.id=u.a)",
    "select id, (select count(*) from u semi join w on w.k = u.n where u.a = t.a) from t",
    "select id, n from t anti join w on k = id left join u on u.a = t.a",
    "select id, n from t left join (u semi join w on u.n = w.k) on u.a = t.a",
    "select id, n from t full join u using (a) anti join w on k = n",
    "select u.a, n from u semi join t on t.a is not distinct from u.a",
    "select t.id from t semi join u on t.a = u.a or t.b = u.b",
    "select t.id from t anti join u on t.a < u.a or u.n is null",
    "select distinct b from u semi join (select k, count(*) as c from w group by k) s on s.k = u.a and c > 1",
    "select id from t anti join (t x join u on x.a = u.n) on x.id = t.id",
    "select id from t semi join w on id + k = 5",
    "select id, x from t semi join u using (a) left join w on k = a where x is null",
    "with s as (select a from u where n = 1) select id from t anti join s using (a)",
    "select id from t semi join (values (1), (2)) v(a) using (a)",
    "select id from t semi join (select 1) s on true",
    "select id from t anti join u on false",
    "select id from t semi join u on null",
    "select id from t anti join u on u.b || 'x' = t.b",
    "select a, sum(n) as s from u anti join w on k = a and x > 0.5 group by a",
]
REFUSED = {
    "select n from t semi join u on t.a = u.a": "1:8: error: unknown column `n`",
    "select u.n from t semi join u on t.a = u.a": "1:8: error: unknown table `u`",
    "select id from t semi join u on a = 1": "1:33: error: ambiguous column `a`",
    "select id from t semi join u": "1:28: error: a join without `on` or `using`",
    "select id from t anti join u using (n)": "1:37: error: unknown column `n`",
    "select id from t natural anti join w": "1:36: error: a natural join without a column in common",
    "select id from t semi join u t on t.a = t.a": "1:28: error: two tables named `t`",
    "select id from t semi join (select id from u) s on true": "1:36: error: unknown column `id`",
    "select id from t anti join lateral (select 1 from u where u.a = t.a) s on true": "1:44: error: not supported yet: "
    "`lateral` in `anti join`",
    "select id from t left semi join u on t.a = u.a": "error: not supported yet: `left semi join`",
    "with recursive r(x) as (select 1 union select id from t anti join r on id = x + 2) select * from r": "rows that "
    "are not there of the recursive query `r` in its own step",
}


@pytest.mark.parametrize("sql", QUERIES)
def test_a_view_has_the_rows_that_duckdb_gives(sql: str) -> None:
    Pair(len(sql)).follow(sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_wrong_is_named_with_its_place(sql: str) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        Pair().view(sql)
    assert REFUSED[sql] in str(caught.value)
