"""Statements that DuckDB refuses, or that lftj does not evaluate: what is wrong, and where.

Catches: an answer to what has none, a caret under a word that is right, a message about something else.
"""

from __future__ import annotations

import pytest

import lftj

pytest.importorskip("sqlglot")

TABLE = "create table t (a int, b text, d date); insert into t values (1, 'x', '2024-01-31'), (2, null, null);"
TABLE += "create table money (m decimal(9,2)); insert into money values (1.5)"
OUTER = "not supported yet: `{}` over columns of the query around only"
OF_WITH = "not supported yet: `{}` of the query around, in `w` of `with`"
CONSTANT = "not supported yet: a constant in one of several groupings"
CHAINED = "a comparison of a comparison without parentheses"
# a statement, with « and » around what is marked; what is said
CASES = [
    ("select (select «max(t.a»)) as m from t", OUTER.format("max(t.a)")),
    ("select (select «sum(t.a») from (values (1), (2)) u(x)) as s from t", OUTER.format("sum(t.a)")),
    ("select b from t where a = (select «max(t.a»))", OUTER.format("max(t.a)")),
    ("select b, (select «max(t.a») + min(x) from (values (1)) u(x)) as m from t group by b", OUTER.format("max(t.a)")),
    ("select (select (select «max(t.a»))) as m from t", OUTER.format("max(t.a)")),
    ("select a,«,» b from t", "syntax error at `,`"),
    ("select a from t group by «,»a", "syntax error at `,`"),
    ("select coalesce(«,»a) from t", "syntax error at `,`"),
    ("select 'a' «'b'» from t", "syntax error at `'b'`"),
    ("select «a < 2» = true from t", CHAINED),
    ("select a from t where not «a = 1» = true", CHAINED),
    ("select «current_date» is not null as b from t", "not supported yet: `current_date`"),
    ("select «interval» 1 month as i", "not supported yet: an interval of months as a value"),
    ("update t set a = 1, d = «'2024-02-30'»", "`2024-02-30` is no date"),
    ("update money set m = «'abc'»", "`abc` is no decimal(9,2)"),
    ("insert into money select «'abc'»", "`abc` is no decimal(9,2)"),
    ("insert into t (a, d) select a, «a > 1» from t", "not supported yet: a cast from boolean to date"),
    # what no rule reads
    ("select a from t where exists (select «nosuch» from money)", "unknown column `nosuch`"),
    ("select a from t where exists (select 1, «t.nosuch» from money where m = a)", "unknown column `t.nosuch`"),
    (
        "select a from t where not exists (select 1 where exists (select «nosuch(m») from money))",
        "unknown function `nosuch`",
    ),
    ("select a from t where exists (select «m», count(*) from money)", "`m` is neither grouped nor aggregated"),
    ("select a from t where exists (select distinct «nosuch» from t)", "unknown column `nosuch`"),
    ("select a from t where exists (select * exclude («nosuch») from t)", "`*` has no column `nosuch`"),
    ("select a from t where exists (select 1 from money order by «nosuch»)", "unknown column `nosuch`"),
    ("select a from t where a in (select a from t order by «nosuch»)", "unknown column `nosuch`"),
    ("select * from (select a from t order by «nosuch») q", "unknown column `nosuch`"),
    ("select * from (select a from t order by «3») q", "there is no column 3"),
    ("with q as (select a from t order by «nosuch») select * from q", "unknown column `nosuch`"),
    ("select a from t union all (select a from t order by «nosuch»)", "unknown column `nosuch`"),
    ("create view v as select a from t order by «nosuch»", "unknown column `nosuch`"),
    ("create view v as select a from t union select a from t order by «2»", "there is no column 2"),
    ("select a from t where exists (select 1 from money limit «1.5»)", "not supported yet: `LIMIT 1.5`"),
    (
        "with recursive r(n) as (select 1 union select n + 1 from (select n, case when n > 1 then n end as y from r) q "
        "where n < 5 and not exists (select 1 from t where a = «q.y»)) select * from r",
        "not supported yet: a subquery over the computed column `y`, which may be null",
    ),
    # what the parser does without
    ("insert into money values (1) («2»)", "something behind a row of `values`"),
    ("insert into money values (1), (2) «f (3»)", "something behind a row of `values`"),
    ("insert into money values (1), (2) «in (3»)", "something behind a row of `values`"),
    ("select * from (values (1, 2) («3, 4»))", "something behind a row of `values`"),
    ("select * from (values (1, 2)) v(p, «q» r)", "a list of columns with more than names"),
    ("delete from «t, money»", "several tables whose rows are to be changed"),
    ("delete from «t join money on a = m»", "several tables whose rows are to be changed"),
    ("select a from t where «a between 1 2»", "`between` without `and`"),
    ("select case «when» a = 1 b end from t", "syntax error: `when` without `then`"),
    ("select case when a = 1 then b «when» a = 2 'x' else 'y' end from t", "syntax error: `when` without `then`"),
    ("select a «as», b from t", "syntax error at `as`"),
    ("select a «as» 2 from t", "syntax error at `as`"),
    ("select «as» a from t", "syntax error at `as`"),
    ("select t.a from t «as» right join money on a = m", "syntax error at `as`"),
    ("select a from t where a in (1, «+»)", "syntax error at `+`"),
    ("select distinct«,» a from t", "syntax error at `,`"),
    ("select «distinct» on a, b from t", "syntax error at `distinct`"),
    ("select a from t where («a = 1 b»)", "`b` behind a value"),
    ("select * from t join (values (null), («1)) v(x») where a = x", "a join without `on` or `using`"),
    ("select * from t join lateral (select «1 as z) q»", "a join without `on` or `using`"),
    ("select * from (t join «money»)", "a join without `on` or `using`"),
    ("select sum(a) «over» from t", "syntax error at `over`"),
    ("select sum(a) over («partition by») from t", "syntax error at `partition by`"),
    ("select «sum(a) over (order by a» rows between) from t", "a frame without its ends"),
    ("select «sum(a) over (order by a rows 1») from t", "`1` as the end of a frame"),
    ("select a, b from t group by all, «b»", "`group by all` with something else"),
    ("select a, b from t order by «a», all", "`order by all` with something else"),
    ("select 1 as k, count(*) from t group by rollup («k»)", CONSTANT),
    ("select b, null as k, max(a) from t group by cube (b, «2»)", CONSTANT),
    # one name for several columns
    ("select x.a, y.a from t x join t y on x.b = y.b order by «a»", "ambiguous column `a`"),
    ("select * from t x join t y on x.b = y.b order by «b» limit 1", "ambiguous column `b`"),
    ("select a as k, d as k from t order by «k»", "ambiguous column `k`"),
    ("select * from (select a as k, d as k from t order by «k» limit 1) q", "ambiguous column `k`"),
    ("select 1 as k, 2 as k union all select 0, 3 order by «k»", "ambiguous column `k`"),
    ("select t.a from (t cross join money) «q»", "not supported yet: a name for a join in parentheses"),
    ("update t set «nosuch.a» = 1", "`set nosuch.a`, and `t` is changed"),
    ("update t u set «t.a» = 1", "`set t.a`, and `u` is changed"),
    ("select «b like 1» from t", "not supported yet: a pattern that is no constant text"),
    ("select b like 'x!' escape «'!'» from t", "the pattern `x!` ends with its escape `!`"),
    ("select b like 'x' escape «'ab'» from t", "`escape 'ab'`"),
    ("with «w(p, q») as (select 1) select * from w", "2 names for 1 column"),
    ("with «w (p») (select 1) select * from w", "`w` of `with` without `as`"),
    # a query of `with` that names columns of the query around
    ("select (with w as (select m from money where m = «t.a») select m from w) from t", OF_WITH.format("t.a")),
    ("select a from t where exists (with w as (select 1 where «b» = 'x') select * from w)", OF_WITH.format("b")),
    (
        "select * from t, lateral (with recursive w(n) as (select «a» union select n + 1 from w) select n from w) q",
        OF_WITH.format("a"),
    ),
    (
        "select a from t where a in (with recursive w(n) as (select 1 union all select n + 1 from w where n < «a») "
        "select n from w)",
        OF_WITH.format("a"),
    ),
    ("with w as (select «a») select * from t, w", "unknown column `a`"),
    ("with w(p) as (select distinct a from t) select * from w as «u(p, q»)", "2 names for 1 column"),
]


@pytest.mark.parametrize(("marked", "what"), CASES)
def test_a_statement_is_refused_where_it_is_wrong(marked: str, what: str) -> None:
    begin, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    db = lftj.Database()
    db.sql(TABLE)
    with pytest.raises(lftj.ProgramError) as raised:
        db.sql(text)
    found = raised.value.diagnostics[0]
    assert found.what == what
    assert (found.span.column - 1, found.span.end_column - 1) == (begin, end)


def test_what_resembles_these_is_no_error() -> None:
    db = lftj.Database()
    db.sql(TABLE)
    assert list(db.sql("select 'a'\n'b' as x")) == [("ab",)]
    assert list(db.sql("select a, from t where (a = 1) = true")) == [(1,)]
    db.sql("create table flag (f boolean); insert into flag values (null); update flag set f = 1 = 1")
    assert list(db.sql("select f from flag")) == [(True,)]
    assert list(db.sql("select a from t where exists (select 1 / 0, t.a, t.* from money order by m)")) == [(1,), (2,)]
    assert list(db.sql('select a as "as", case when a between (+1) and 1 then b end as x from t where (a = 1)')) == [
        (1, "x")
    ]
    assert list(db.sql("select over, q.left from (select 1 as over, 2 as left) as q inner join t on over = a")) == [
        (1, 2)
    ]
    assert list(db.sql("create view v as from t; create table w as from t limit 0")["v"].inserted) == list(db["v"])
    assert list(db.sql("update t u set u.a = a + 1 where a = 2")["t"].inserted) == [(3, None, None, 1)]
    assert list(db.sql("with w(p) as (select 1, 2) select p from w")) == [(1,)]


def test_what_stands_instead_of_a_query_of_with_that_names_the_query_around() -> None:
    """As the refusal says: the query in `from`; of a recursive one, the table within it."""
    db = lftj.Database()
    db.sql(TABLE)
    assert list(db.sql("select a, (select max(n) from (select t.a + 1 as n) w) as m from t order by a")) == [
        (1, 2),
        (2, 3),
    ]
    recursive = "with recursive w(a, n) as (select a, a from t union select a, n + 1 from w where n < 3)"
    assert list(db.sql(f"{recursive} select a, (select count(*) from w where w.a = t.a) from t order by a")) == [
        (1, 3),
        (2, 2),
    ]


def test_what_stands_instead_of_a_computed_column_in_a_recursive_step() -> None:
    """As the refusal says: without null where it is computed, or computed where it is compared."""
    db = lftj.Database()
    db.sql(TABLE)
    step = "select n + 1 from {} q where n < 5 and not exists (select 1 from t where a = {})"
    for rows, value in (
        ("(select * from (select n, case when n > 2 then n end as y from r) p where y is not null)", "q.y"),
        ("r", "case when n > 2 then n end"),
    ):
        query = f"with recursive r(n) as (select 3 union {step.format(rows, value)}) select * from r order by n"
        assert list(db.sql(query)) == [(3,), (4,), (5,)]
