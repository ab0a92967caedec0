"""Statements of many parts: long sums, many branches of `case`, many alternatives of `or`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lftj
from lftj.errors import ProgramError
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")

from lftj.sql import cases as conjunctions
from lftj.sql.branches import QueryBody

TABLE = """
    create table t (id int primary key, a int, b int, c text, d date);
    insert into t values (1, 2, 3, 'x', '2020-01-02'), (2, 3, 1, 'y', '2020-01-03'), (3, null, 5, 'z', null),
        (4, 5, null, null, '2020-01-05'), (5, 700, 700, 'c7', '2020-02-03'), (6, null, null, 'y', null)
"""
LONG = 300


def _both(sql: str) -> None:
    """lftj and DuckDB answer alike."""
    db, duck = lftj.Database(), duckdb_database()
    db.sql(TABLE)
    duck.execute(TABLE)
    assert list(db.sql(sql)) == duck.execute(sql).fetchall()


@pytest.mark.parametrize("operator", [" + ", " - "])
def test_a_long_sum(operator: str) -> None:
    total = operator.join(["a"] * 200)
    _both(f"select id, {total} as x from t order by id")
    _both(f"select id from t where {total} > 10 order by id")
    _both(f"select sum({total}) as x from t")
    db = lftj.Database()
    db.sql(TABLE)
    db.sql(f"create view v as select {total} as x from t")
    db.sql(f"update t set b = {total} where id = 1")
    assert list(db.sql("select b from t where id = 1")) == [(400 if operator == " + " else -396,)]


def test_a_long_sum_of_intervals_and_of_constants() -> None:
    _both(f"select d + {' + '.join(['interval 1 day'] * 50)} as x from t order by id")
    _both(f"select d + ({' + '.join(['interval 1 day'] * LONG)}) as x from t order by id")
    _both(f"select {' + '.join(['1'] * 900)} as x")


@pytest.mark.parametrize(
    "statement",
    [
        "select {} from t",
        "create view v as select {} as x from t",
        "update t set b = {}",
        "select a from t where b > 1 and {} > 3",
        "insert into t select id + 9, b, {} from t",
        "create table u (a int, b int, check ({} > 3))",
    ],
)
@pytest.mark.parametrize("terms", [350, 400, 1000, 4000])
def test_a_sum_that_is_too_deep_is_refused_as_such(statement: str, terms: int) -> None:
    db = lftj.Database()
    db.sql(TABLE)
    with pytest.raises(ProgramError) as raised:
        db.sql(statement.format(" + ".join(["a"] * terms)))
    found = raised.value.diagnostics[0]
    assert found.what == "the statement is nested too deeply"
    assert found.span.column - 1 == statement.index("{")
    assert (
        found.why
        == f"{terms - 1} steps like `+` follow one another from here on, and each level takes room on the stack"
    )


WHEN = {
    "exclude one another": "a = {0} and b > {0} then c",
    "do not": "a > 40 - {0} and b > {0} then {0}",
    "may have no value": "a = {0} and b / (a + {0}) > 0.1 then c",
    "one column": "a = {0} then c",
}


@pytest.mark.parametrize("name", WHEN)
@pytest.mark.parametrize("branches", [12, 34])
def test_case_of_many_branches(name: str, branches: int) -> None:
    when = " ".join(f"when {WHEN[name].format(i + 1)}" for i in range(branches))
    _both(f"select id, case {when} end as r from t order by id")
    if "then {0}" in WHEN[name]:
        _both(f"select id from t where case {when} else -1 end < 20 order by id")


def test_rules_of_a_case_grow_with_its_branches() -> None:
    """60 branches over two columns that may be null did not end in 20 seconds."""
    clauses = []
    for branches in (40, 80):
        db = lftj.Database()
        db.sql(TABLE)
        when = " ".join(f"when a = {i} and b > {i} then c" for i in range(branches))
        db.sql(f"create view v as select id, case {when} end as r from t")
        clauses.append(len(db._state.strata.clauses))
    assert clauses[1] < 2.5 * clauses[0]


@pytest.mark.parametrize("null", ["", " not null"])
def test_a_sum_of_cases_grows_with_them(null: str) -> None:
    """The sum was 32 heads, each over all that 60 `case`s give: the view did not end in 200 seconds."""
    parts = []
    for cases in (12, 24):
        columns = ", ".join(f"c{i} int{null}" for i in range(cases + 1))
        total = " + ".join(f"case when c{i} = {i} then c{i + 1} else {i} end" for i in range(cases))
        db, duck = lftj.Database(), duckdb_database()
        for statement in (
            f"create table w (id int primary key, {columns})",
            f"insert into w select id, {', '.join(['id'] * (cases + 1))} from range(30) r(id)",
            f"create view v as select id % 3 as g, sum({total}) as s from w group by id % 3",
        ):
            db.sql(statement)
            duck.execute(statement)
        assert list(db.sql("select * from v order by g")) == duck.execute("select * from v order by g").fetchall()
        # a row of the table names all columns, and each rule has one
        parts.append(sum(len(clause.atoms) for clause in db._state.strata.clauses))
    assert parts[1] < 2.5 * parts[0]


def test_queries_of_with_that_read_one_another_do_not_repeat_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each column of each the conditions of all before it were put together: cubic, and 1.8 seconds for 80."""
    made = 0
    choices = QueryBody.choices

    def counting(*args: Any, **options: Any) -> Any:
        nonlocal made
        made += 1
        return choices(*args, **options)

    monkeypatch.setattr(QueryBody, "choices", counting)
    chain = ["q0 as (select id, a, b from t)"]
    chain += [f"q{i} as (select id, a + {i} as a, b from q{i - 1} where a <> {i})" for i in range(1, 30)]
    _both(f"with {', '.join(chain)} select * from q29 order by id")
    assert made < 60


# What each level is, and what the innermost one is.
NESTED = {
    "abs": ("abs({} - 1)", "a"),
    "abs of decimals": ("abs({} - 1.5)", "b / 2"),
    "trunc": ("trunc({} / 2)", "a"),
    "trunc of decimals": ("trunc({} * 1.5)", "a"),
    "sign": ("sign(a - {})", "b"),
    "right": ("right({} || 'u', 3)", "c"),
    "concat_ws": ("right(concat_ws('-', {}, c), 3)", "c"),
    "substring": ("substring({} || 'uv', -4, 3)", "c"),
    "dayofyear": ("date '2021-03-01' + dayofyear({})::int", "d"),
    "date_diff": ("date_diff('month', d, d + interval ({}) month)", "a"),
    "greatest": ("greatest(least({}, b), a) + 1", "a"),
    "coalesce": ("coalesce({} + 1, b)", "a"),
    "nullif": ("nullif({} + 1, b)", "a"),
    "if": ("if({} > 2, 1, a)", "b"),
    "case of a value": ("case {} when 1 then 2 when 3 then 5 else b end", "a"),
    "case of conditions": ("case when {} between 2 and 4 then b when a is null then 3 else a end", "a"),
    "in": ("case when {} in (1, 5, b) then a else 1 end", "a"),
    "rows": ("case when ({}, a) = (5, b) then 5 else 2 end", "a"),
    "bool": ("({})::boolean::int", "a"),
    "comparisons": ("({}) = (a > 2)", "b > 2"),
    "is distinct from": ("({}) is distinct from (a > 2)", "b > 2"),
    "like": ("({})::text like 't%'", "a > 2"),
    "or, and": ("(({}) or a > 2) and b > 1", "c = 'y'"),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_nest_grows_with_its_levels(name: str) -> None:
    """`abs` of `abs`, as others, doubled at each level: 20 of them did not end."""
    level, inner = NESTED[name]
    parts = []
    for levels in (7, 14):
        nest = inner
        for _ in range(levels):
            nest = level.format(nest)
        _both(f"select id, {nest} as x from t order by id")
        db = lftj.Database()
        db.sql(TABLE)
        db.sql(f"create view v as select id, {nest} as x from t")
        parts.append(repr(db._state.strata.clauses).count("("))
    assert parts[1] < 5 * parts[0]


MANY = {
    "equal": "a = {0}",
    "mirrored": "{0} = a",
    "texts": "c = 'c{0}'",
    "dates": "d = cast('2020-01-03' as date) or d = cast('20{1}-02-03' as date)",
    "negative": "a - 10 = -{0}",
    "expressions": "a + b = {0}",
    "two columns": "a = {0} or b = {0} + 1",
    "two lists": "a = {0} or b = {0}",
    "lists": "a in ({0}, {1})",
    "with another": "(a = {0} or (c = 'y' or b = {0}))",
    "fractions": "a = {0} or a = {0}.0 or a = {0}.5",
    "with null": "a = {0} or a = null",
    "pairs": "a = {0} and b = {0} + 1",
    "ranges": "a > {0} and b <= {0}",
}
AROUND = ["{}", "not ({})", "({}) is null", "id < 4 and ({})", "id < 2 or ({})", "id > 4 or not ({}) and id < 9"]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", MANY)
def test_many_alternatives_of_or(name: str, around: str) -> None:
    each = " or ".join(MANY[name].format(i, 10 + i) for i in range(7))
    _both(f"select id, a from t where {around.format(each)} order by id")
    _both(f"select count(*) as n, max(b) as m from t where {around.format(each)}")


@pytest.mark.parametrize("around", AROUND)
def test_many_unequal_constants(around: str) -> None:
    each = " and ".join(f"a <> {i} and (c <> 'c{i}' and a not in ({i}, {i + 5}))" for i in range(LONG))
    _both(f"select id, a from t where {around.format(each)} order by id")


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", ["equal", "texts", "two lists", "lists", "with another"])
def test_equalities_joined_by_or_are_a_list(name: str, around: str) -> None:
    """500 of them were refused, as they split into 500 alternatives."""
    each = " or ".join(MANY[name].format(i, 10 + i) for i in range(500))
    _both(f"select id, a from t where {around.format(each)} order by id")


IN = {
    "casts": ("u", "2::utinyint, 2::utinyint, 4::utinyint, 7::utinyint"),
    "casts and others": ("u", "2::utinyint, 255, null, 8::utinyint, a"),
    "constants and columns": ("a", "1, b, 3, 4, null, 5"),
    "intervals": ("d - d", "0, 1, id"),
}


@pytest.mark.parametrize("name", IN)
@pytest.mark.parametrize("form", ["{}", "not ({})", "({}) is null"])
def test_lists_of_what_is_no_constant(name: str, form: str) -> None:
    """A list of casts that are computed became equalities, and these the list, without end."""
    value, listed = IN[name]
    condition = form.format(f"{value} in ({listed})")
    _both(f"select id from (select *, (id * 2)::utinyint as u from t) q where {condition} order by id")


def test_constants_of_two_types_are_compared_each_by_itself() -> None:
    db = lftj.Database()
    db.sql(TABLE)
    with pytest.raises(ProgramError, match="`x` is no bigint"):
        db.sql("select id from t where a = 1 or a = 'x'")
    assert list(db.sql("select id from t where a = 2 or a = '3' or a = 5.0 order by id")) == [(1,), (2,), (4,)]


@pytest.mark.parametrize(
    "text",
    [
        lambda n: "select id from t where " + " or ".join(f"a + {i} = b" for i in range(n)),
        lambda n: (
            f"select {', '.join(f'case when a > {i} then b when c = 1 then a end x{i}' for i in range(n))} from t"
        ),
    ],
    ids=["or", "cases"],
)
def test_conjunctions_that_grow_are_not_looked_through_again(
    text: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an `or` of n parts n conjunctions have up to n literals: a hundred of them took 4 s, 60 `case`s 6 to 14 s."""
    looked_at = []
    computed_with = conjunctions.computed_with
    monkeypatch.setattr(
        conjunctions, "computed_with", lambda literal: looked_at.append(literal) or computed_with(literal)
    )

    def literals(n: int) -> int:
        db = lftj.Database()
        db.sql("create table t (id int primary key, a int, b int, c int)")
        looked_at.clear()
        db.sql(text(n))
        return len(looked_at)

    assert literals(40) < 5 * literals(20)
