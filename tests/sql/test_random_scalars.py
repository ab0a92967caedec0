"""Random expressions and predicates of SQL, compared with DuckDB row by row: values, true, false and unknown.

Catches: cases that overlap or leave a row out, where `case`, `coalesce`, `or` and `not` stand within one another.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lftj
from lftj.errors import ProgramError
from tests.conftest import examples

pytest.importorskip("sqlglot")
pytest.importorskip("duckdb")

from tests.sql.scalar_cases import COLUMNS, ROWS, duckdb_table, keys, values
from tests.sql.test_scalars import alike

NUMBERS = st.sampled_from(["i", "j", "d", "e", "f", "2", "-1", "0", "1.5", "0.005", "null::int", "null::decimal(9,2)"])
TEXTS = st.sampled_from(["s", "w", "'abc'", "'PROMO'", "''", "null::varchar"])
DAYS = st.sampled_from(["t", "u", "date '1995-01-31'", "null::date"])
BOOLS = st.sampled_from(
    ["b", "true", "null::boolean", "(i is null)", "(s like '%a%')", "(i in (2, 5))", "(d not in (1.5, null))"]
)


def of(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: template.format(*found))


def deeper(depth: int) -> tuple[st.SearchStrategy[str], ...]:
    """Strategies for numbers, texts, days and bools of some depth."""
    if depth == 0:
        return NUMBERS, TEXTS, DAYS, BOOLS
    n, s, t, b = deeper(depth - 1)
    same = {"n": n, "s": s, "t": t}
    choices = {
        name: [
            of("case when {} then {} when {} then {} else {} end", b, part, b, part, part),
            of("case when {} then {} end", b, part),
            of("coalesce({}, {})", part, part),
            of("nullif({}, {})", part, part),
            of("greatest({}, {})", part, part),
            of("least({}, {}, {})", part, part, part),
        ]
        for name, part in same.items()
    }
    numbers = st.one_of(
        n,
        *choices["n"],
        of("({} + {})", n, n),
        of("({} - {})", n, n),
        of("({} * 3)", n),
        of("abs({})", n),
        of("(- {})", NUMBERS),
        of("length({})", s),
        of("year({})", t),
        of("round({}, 1)", n),
    )
    texts = st.one_of(s, *choices["s"], of("({} || {})", s, s), of("substring({}, 2, 2)", s), of("upper({})", s))
    texts |= of("strftime({}, '%d.%m. %a')", t)
    days = st.one_of(t, *choices["t"], of("({} + interval '1' month)::date", t), of("({} - 3)", t))
    bools = st.one_of(
        b,
        *(of(f"({{}} {op} {{}})", part, part) for op in ("=", "<>", "<", ">=") for part in (n, s, t)),
        *(of(f"({{}} {op} {{}})", b, b) for op in ("and", "or", "=", "is distinct from")),
        of("(not {})", b),
        of("({} or {} or {})", b, b, b),
        of("(({0} and {1}) or ({0} and {2}))", b, b, b),
        of("({} between {} and {})", n, n, n),
        of("({} in ({}, {}))", n, n, n),
        of("({} is null)", n),
        of("({} is not true)", b),
        of("({} is null)", b),
        of("({} like 'a%')", s),
        of("({} not ilike '%O%')", s),
    )
    return numbers, texts, days, bools


_N, _S, _T, _B = deeper(2)


@pytest.fixture(scope="module")
def duck() -> Any:
    return duckdb_table()


@examples(60)
@given(text=st.one_of(_N, _S, _T))
def test_values(duck: Any, text: str) -> None:
    try:
        found = values(text)
    except ProgramError as error:
        if "splits into" not in str(error):
            raise
        return
    expected = duck.execute(f"select k, {text} from t order by k").fetchall()
    assert [k for k, _ in found] == [k for k, _ in expected]
    assert all(alike(one, two) for (_, one), (_, two) in zip(found, expected, strict=True)), (found, expected)


@examples(60)
@given(text=_B)
def test_predicates(duck: Any, text: str) -> None:
    expected = dict(duck.execute(f"select k, {text} from t order by k").fetchall())
    for truth in (True, False, None):
        try:
            found = keys(text, truth)
        except ProgramError as error:
            if "splits into" not in str(error):
                raise
            return
        assert found == [k for k, value in expected.items() if value is truth], truth


QUERIES = (
    "select {x} as x, k from t where {p}",
    "select {x} as x, count(*) as n, sum(i) as s from t where {p} group by {x}",
    "select count({x}) as n, max(case when {p} then {x} end) as m from t",
    "select a.k as k, b.k as l from t a join t b on a.j = b.j and (a.k < b.k or exists (select 1 from t where {p}))",
)


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    made = lftj.Database()
    made.sql(f"create table t ({', '.join(f'{name} {sql}' for name, sql, _ in COLUMNS)})")
    made.load("t", ROWS)
    return made


@examples(25)
@given(query=st.sampled_from(QUERIES), x=st.one_of(_N, _S, _T), p=_B)
def test_queries(duck: Any, db: lftj.Database, query: str, x: str, p: str) -> None:
    assume(not ("group by {x}" in query and x.removeprefix("-").isdigit()))  # that is a position
    text = query.format(x=x, p=p)
    try:
        found = list(db.sql(text))
    except ProgramError as error:
        if "splits into" not in str(error):
            raise
        return
    expected = sorted(duck.execute(text).fetchall(), key=repr)
    pairs = list(zip(sorted(found, key=repr), expected, strict=True))
    assert all(alike(one, two) for row, other in pairs for one, two in zip(row, other, strict=True)), pairs
