"""Decimals with more digits than they are declared with, or than any has; views that would read themselves; `nullif`s.

Catches: a comparison that believes the digits of a cast, an error that is none of lftj's about a number of 19 digits,
a view that a cycle leaves without rows and that cannot be dropped, rules that grow fourfold with each `nullif`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

import lftj
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")

from sqlglot import parse_one

from lftj.language import ast
from lftj.sql.catalogue import catalogue_of
from lftj.sql.places import SqlText
from lftj.sql.queries import translated

TABLE = "create table d (id int primary key, x decimal(8, 2), n decimal(6, 2) not null, i bigint, f double, t text)"
ROWS = "insert into d values (1, 12345.67, 12.34, 12345, 12345.678, '12345.67'), (2, null, 0.5, null, null, null)"


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    made = lftj.Database()
    made.sql(f"{TABLE}; {ROWS}")
    return made


@pytest.fixture(scope="module")
def duck() -> Any:
    made = duckdb_database()
    made.execute(f"{TABLE}; {ROWS}")
    return made


def row(db: lftj.Database, values: str, **given: Any) -> tuple[Any, ...]:
    """What a select gives for the first row of the table."""
    (found,) = db.sql(f"select {values} from d where id = 1", **given)
    return tuple(found)


# --- casts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["x", "i", "f", "t", "12345.67", "'12345.67'", "12345", "1.2345e4", "x + 0"])
def test_comparisons_of_a_cast_agree_with_its_value(given: str, db: lftj.Database) -> None:
    cast = f"cast({given} as decimal(4, 1))"
    value, *found = row(
        db, f"{cast}, {cast} > 1000, {cast} < 1000, {cast} in (1, 12345.7, 12345), {cast} between 1 and 9"
    )
    assert value in (Decimal("12345.0"), Decimal("12345.7"))
    assert found == [True, False, True, False]


@pytest.mark.parametrize("text", ["cast($v as decimal(4, 1))", "coalesce(null::decimal(4, 1), $v)"])
def test_the_same_for_parameters(text: str, db: lftj.Database) -> None:
    for value in (Decimal("1.50"), Decimal("12345.75"), Decimal("99999.25")):
        assert row(db, f"{text} > 1000, {text} < 1000", v=value) == (value > 1000, value < 1000)


def test_the_same_behind_a_subquery_a_view_and_a_recursion(db: lftj.Database) -> None:
    cast = "cast(x as decimal(4, 1))"
    assert list(db.sql(f"select p > 1000 from (select distinct {cast} as p from d where id = 1)")) == [(True,)]
    assert list(db.sql(f"select p > 1000 from (select max({cast}) as p from d)")) == [(True,)]
    step = "select cast(1.5 as decimal(4, 1)) union select x * 10 from r where x < 10000"
    assert sorted(db.sql(f"with recursive r(x) as ({step}) select x from r")) == [
        (Decimal(value),) for value in ("1.5", "15.0", "150.0", "1500.0", "15000.0")
    ]


AS_IN_DUCKDB = [
    "cast(x as decimal(10, 2)) + 12345678.00",
    "cast(x as decimal(10, 2)) > 12345678.00",
    "cast(n as decimal(12, 2)) in (1234567890.00, 12.34)",
    "greatest(cast(n as decimal(10, 2)), 12345678.00)",
    "nullif(cast(n as decimal(10, 2)), 12345678.00)",
    "cast(i as decimal(9, 2)) = 12345, cast(f as decimal(9, 2)) >= 12345.68, cast(t as decimal(9, 2)) <> 12345.67",
    "coalesce(n, '9999.99') > 5000, case when id = 2 then n else '9999.99' end > 5000",
    "case when id = 2 then n else 9999999.99 end > 5000000, case when id = 1 then n else 9999999.99 end > 5000000",
    "'9999.99' = n, n < '9999.99', '12.34' = n",
    "1.5 < 1234567890123456789, 1234567890123456789 in (1.5, 2.5), 1.5 between 1 and 1234567890123456789",
    "x < 1234567890123456789, x = 1234567890123456789, nullif(x, 1234567890123456789)",
]


@pytest.mark.parametrize("values", AS_IN_DUCKDB)
def test_as_in_duckdb(values: str, db: lftj.Database, duck: Any) -> None:
    query = f"select id, {values} from d order by id"
    assert [tuple(row) for row in db.sql(query)] == duck.execute(query).fetchall()


def test_a_text_keeps_its_digits_in_arithmetic(db: lftj.Database) -> None:
    values = "n + '2.125', '0.5' - n, n / '0.125', n - ' -1.5e-3 ', n + '2.1000000000000000000', n * '3', 1.5 + '2.25'"
    exact = ("14.465", "-11.84", "98.72", "12.3415", "14.44", "37.02", "3.75")
    assert row(db, values) == tuple(float(text) if text == "98.72" else Decimal(text) for text in exact)


@pytest.mark.parametrize("operation", ["union", "union all", "except", "intersect"])
def test_a_text_keeps_its_digits_in_a_set_operation(operation: str, db: lftj.Database) -> None:
    texts = {Decimal("0.505"), Decimal("12.34")}
    expected = {
        "union": [Decimal("0.5"), *texts],
        "union all": [Decimal("0.5"), Decimal("12.34"), *texts],
        "except": [Decimal("0.5")],
        "intersect": [Decimal("12.34")],
    }
    second = "case when i is null then '0.505' else '12.340' end"
    found = [value for (value,) in db.sql(f"select n from d {operation} select {second} from d")]
    assert sorted(found) == sorted(expected[operation])


@pytest.mark.parametrize("query", ["select x + {} as y from d", "select x from d union select {}"])
def test_a_text_with_more_digits_than_a_decimal_has_is_not_rounded(query: str, db: lftj.Database) -> None:
    with pytest.raises(lftj.ProgramError, match=r"`0\.1234567890123456789` has more than 18 digits"):
        db.sql(query.format("'0.1234567890123456789'"))


# --- numbers of more than 18 digits ---------------------------------------------------------------------------------

REFUSED = [
    "select x + 1000000000000000000 as y from d",
    "select -1234567890123456789 + x as y from d",
    "select coalesce(x, 1000000000000000000) as y from d",
    "select greatest(x, 1000000000000000000) as y from d",
    "select case when id = 1 then x else 1000000000000000000 end as y from d",
    "select if(id = 1, 1234567890123456789, 1.5) as y from d",
    "select x from d union all select 1000000000000000000",
    "select x from d except select 1000000000000000000",
    "values (1.5), (1234567890123456789)",
    "select * from (values (1.5), (1234567890123456789)) as v(a)",
    "select 1.5 + 1234567890123456789 as y",
    "select cast(9223372036854775807 as decimal(6, 1)) as y",
    "select cast(18446744073709551615 as decimal(6, 1)) as y",
    "select cast(123456789012345678 as decimal(18, 2)) as y",
    "select cast(1234567890123456.7 as decimal(18, 4)) as y",
    "select cast(1234567890123456789 as decimal(4, 1)) > 1000 as y",
    "select sum(coalesce(x, 1234567890123456789)) as y from d",
    "select lag(x, 1, 1234567890123456789) over (order by id) as y from d",
    "update d set x = 9223372036854775807",
    "update d set x = 92233720368547758",
    "insert into d select 3, 9223372036854775807, 1, 1, 1, ''",
    "create table e (x decimal(8, 2) default 1234567890123456789)",
    "create table e (x decimal(8, 2), check (x + 1234567890123456789 > 1))",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_a_number_that_no_decimal_holds(statement: str, db: lftj.Database) -> None:
    with pytest.raises(
        lftj.ProgramError, match=r"`-?\d[\d.]+` does not fit into a decimal with \d digits? behind"
    ) as caught:
        db.sql(statement)
    (found,) = caught.value.diagnostics
    assert found.span.line == 1
    assert "up to 18 digits" in found.why
    assert "cast to double" in found.remedy


@pytest.mark.parametrize("statement", ["select x + $v as y from d", "select 1.5 + $v as y", "update d set x = $v"])
@pytest.mark.parametrize("value", [10**18, 1234567890123456789, 5 * 10**18])
def test_the_same_as_a_parameter(statement: str, value: int, db: lftj.Database) -> None:
    for _ in range(2):
        with pytest.raises(lftj.ProgramError, match=f"`{value}` does not fit into a decimal"):
            db.sql(statement, v=value)


@pytest.mark.parametrize("text", ["12345678901234567890", "1e50", "-123456789012345678"])
@pytest.mark.parametrize("value", ["cast({} as decimal(6, 1))", "x + {}", "coalesce(x, {})", "x = {}"])
def test_a_text_that_no_decimal_holds(value: str, text: str, db: lftj.Database) -> None:
    value = value.format(f"'{text}'")
    with pytest.raises(lftj.ProgramError, match=rf"`{text}` is no decimal\(") as caught:
        db.sql(f"select {value} as y from d")
    assert "up to 18 digits" in caught.value.diagnostics[0].why


# --- views that read themselves -------------------------------------------------------------------------------------

VIEWS = """
create table t (id int);
insert into t values (1), (2);
create view s as select distinct id from t;
create view r as select id from s;
create view q as select max(id) as id from r
"""


@pytest.mark.parametrize(
    ("query", "through", "where"),
    [
        ("select id from s", "", "s"),
        ("select distinct id from S where id > 1", "", "S"),
        ("select id, 1 as y from s", "", "s"),
        ("select id from r", ", through `r`", "r"),
        ("select distinct id from q", ", through `q`", "q"),
        ("select distinct id from t where id not in (select id from r)", ", through `r`", "r"),
        ("select distinct t.id from t where exists (select 1 from r where r.id = t.id)", ", through `r`", "r"),
        ("select distinct (select max(id) from q) as id from t", ", through `q`", "q"),
        ("with w as (select id from r) select id from w", ", through `r`", "r"),
        ("select id from t union select id from r", ", through `r`", "r"),
        ("select id from r order by id limit 1", ", through `r`", "r"),
    ],
)
def test_a_view_cannot_read_itself(query: str, through: str, where: str) -> None:
    db = lftj.Database()
    db.sql(VIEWS)
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(f"create or replace view s as {query}")
    (found,) = caught.value.diagnostics
    assert found.what == f"the view `s` would read itself{through}"
    assert "with recursive" in found.remedy
    assert found.span.line_text[found.span.column - 1 : found.span.end_column - 1] == where
    assert [sorted(db.sql(f"select id from {name}")) for name in "srq"] == [[(1,), (2,)], [(1,), (2,)], [(2,)]]
    db.sql("drop view q; drop view r; drop view s")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select distinct id from t where id > 1", [2]),
        ("select distinct max(id) as id from t group by id", [1, 2]),
        (
            "with recursive s(id) as (select id from t union select id + 1 from s where id < 4) select id from s",
            [1, 2, 3, 4],
        ),
        ("with s as (select id + 1 as id from t) select distinct id from s", [2, 3]),
        ("with r as (select id from t) select distinct id from r where id > 1", [2]),
    ],
)
def test_a_view_that_does_not_is_replaced_with_its_readers(query: str, expected: Sequence[int]) -> None:
    db = lftj.Database()
    db.sql(VIEWS)
    for _ in range(2):  # its parts have the names of those before
        db.sql(f"create or replace view s as {query}")
        for name in "sr":
            assert sorted(db.sql(f"select id from {name}")) == [(id,) for id in expected]
        assert list(db.sql("select id from q")) == [(max(expected),)]


# --- nested `nullif` ------------------------------------------------------------------------------------------------

LEVELS = 20
WIDE = f"create table w (id int primary key, {', '.join(f'c{n} int' for n in range(LEVELS + 1))})"


def nested(levels: int, first: str = "c0") -> str:
    """`nullif(nullif(c0, c1), c2)`, of so many levels."""
    for n in range(1, levels + 1):
        first = f"nullif({first}, c{n})"
    return first


def test_values_of_nested_nullif() -> None:
    """As in DuckDB where there are few levels; of many it takes for ever."""
    db, duck = lftj.Database(), duckdb_database()
    rows = [(n, *((n * (c + 3)) % 13 or None for c in range(LEVELS + 1))) for n in range(1, 40)]
    for at in (db.sql, duck.execute):
        at(WIDE)
        at(f"insert into w values {', '.join(map(str, rows)).replace('None', 'null')}")
    for levels in (1, 2, 5, LEVELS):
        query = f"select id, {nested(levels)} as v from w order by id"
        expected = [(row[0], None if row[1] in row[2 : levels + 2] else row[1]) for row in rows]
        assert levels > 5 or duck.execute(query).fetchall() == expected
        assert [tuple(row) for row in db.sql(query)] == expected
    above = [(id,) for id, v in expected if v is not None and v > 5]
    assert [tuple(row) for row in db.sql(f"select id from w where {nested(LEVELS)} > 5 order by id")] == above


def test_rules_of_nested_nullif_grow_with_the_levels() -> None:
    db = lftj.Database()
    db.sql(WIDE)

    def rules(levels: int) -> int:
        text = f"select id, {nested(levels)} as v from w"
        view = translated(parse_one(text, dialect="duckdb"), catalogue_of(db._state), "v", SqlText(text))
        return sum(isinstance(item, ast.Rule) for item in view.program.items)

    assert rules(LEVELS) <= 32 * LEVELS


def test_nullif_of_what_may_have_no_value_is_refused_where_it_splits_too_often() -> None:
    db = lftj.Database()
    db.sql(WIDE)
    with pytest.raises(lftj.ProgramError, match=r"splits into \d+ alternatives"):
        db.sql(f"select {nested(LEVELS, 'c0 + 1')} as v from w")


# --- expressions of `group by`, named in other ways -----------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "select g.i + 1, count(*) from d g group by i + 1",
        "select I + 1 from d group by i + 1",
        "select i + 1, sum(n) from d group by D.I + 1 having d.i + 1 > 0",
        "select i + 1 from d g group by g.i + 1 order by i + 1",
        "select coalesce(g.t, 'T') from d g group by coalesce(T, 'T') order by coalesce(t, 'T')",
        "select case when G.i > 1 then g.x else n end * 2 from d g group by case when i > 1 then x else n end",
        "select g.i + 1 from d g, d h where g.id = h.id group by g.i + 1, h.i + 1",
    ],
)
def test_groups_that_are_named_in_other_ways(query: str, db: lftj.Database, duck: Any) -> None:
    assert sorted(map(tuple, db.sql(query)), key=repr) == sorted(duck.execute(query).fetchall(), key=repr)


@pytest.mark.parametrize("other", ["g.i + 2", "h.i + 1", "coalesce(g.t, 'T')", "(select max(id) from d) + i"])
def test_other_expressions_are_no_groups(other: str, db: lftj.Database) -> None:
    with pytest.raises(lftj.ProgramError, match=r"is neither grouped nor aggregated|ambiguous"):
        db.sql(f"select {other} from d g, d h where g.id = h.id group by g.i + 1, coalesce(g.t, 't')")
