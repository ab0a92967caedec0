"""Whole numbers at the ends of 64 bits: DuckDB's value, or an error where DuckDB has one; never another number.

Catches: arithmetic that wraps, a result that is the code of null and so becomes null, a sum over products that is kept
by triggers or deltas and leaves its type unnoticed, an overflow that leaves something of its transaction behind.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from tests.conftest import JIT
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.skipif(not JIT, reason="interpreted kernels take long for it")

MOST = 2**63 - 1
LEAST = -(2**63)
ENDS = (-MOST, 1 - MOST, -(2**62), -(2**32), -3, -1, 0, 1, 2, 3, 2**31, 2**32, 2**62, MOST - 1, MOST)
EXPRESSIONS = ("x + y", "x - y", "x * y", "-x", "abs(x)", "x // (y + 0)", "x + 1", "x - 1", "1 - x", "x * 3 - y")
EXPRESSIONS += ("round(x, -1)", "round(x, -18)", "round(x, -19)", "round(x, -20)", "round(x - y, -3)")
TABLE = "create table t (x bigint not null, y bigint)"


class Both:
    """A database and DuckDB with the same tables."""

    def __init__(self, *tables: str) -> None:
        self.db, self.duck = lftj.Database(), duckdb_database()
        for table in tables:
            self.db.sql(table)
            self.duck.execute(table)

    def insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        """The same rows into both."""
        self.db.sql(f"insert into {table} values {', '.join(str(row).replace('None', 'null') for row in rows)}")
        self.duck.executemany(f"insert into {table} values ({', '.join('?' * len(rows[0]))})", rows)

    def answers(self, query: str) -> tuple[Any, Any]:
        """What both say; None is an error."""
        return _or_error(lambda: list(self.db.sql(query))), _or_error(lambda: self.duck.execute(query).fetchall())


def _or_error(asked: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]] | None:
    try:
        return sorted(asked(), key=repr)
    except (EvaluationError, duckdb.OutOfRangeException):
        return None


def null_or(value: int | None) -> str:
    return "null" if value is None else str(value)


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("where", [False, True], ids=["select", "where"])
def test_values_and_errors_are_those_of_duckdb(text: str, where: bool) -> None:
    """Row by row; but no result is the least number, which is null's code."""
    pairs = [(x, y) for x, y in product(ENDS, (*ENDS, None)) if y != 0 or "//" not in text]
    both = Both(f"{TABLE}")
    both.insert("t", pairs)
    fine = []
    for x, y in pairs:
        query = f"select {text} as z from (select cast({x} as bigint) as x, cast({null_or(y)} as bigint) as y)"
        made = _or_error(lambda query=query: both.duck.execute(query).fetchall())
        if made is not None and made != [(LEAST,)]:
            fine.append((x, y))
            continue
        if y is None and "y" in text:
            continue  # null, where DuckDB may have an error
        one = (
            f"select {text} as z from t where x = {x} and y is not distinct from {null_or(y)}"
            if not where
            else (f"select x from t where x = {x} and y is not distinct from {null_or(y)} and {text} > 5")
        )
        assert _or_error(lambda one=one: list(both.db.sql(one))) is None, (x, y)
    both = Both(TABLE)
    both.insert("t", fine)
    query = f"select x, {text} as z from t" if not where else f"select x, y from t where {text} > 5"
    ours, theirs = both.answers(query)
    assert ours is not None
    assert ours == theirs


def test_the_least_number_is_an_error_and_never_null() -> None:
    db = lftj.Database()
    db.sql(TABLE)
    with db.transaction() as tx:
        tx.insert("t", [(LEAST, 1)])
    for text in ("x - y", "-x", "y - x", "-y - x", "x * y", "abs(x)", "x // (0 - y)", "x * -1", "1 - x", "x - 1"):
        with pytest.raises(EvaluationError, match="64 bits"):
            db.sql(f"select {text} as z from t")
    assert list(db.sql("select x + y as z, x // 2 as h from t")) == [(LEAST + 1, LEAST // 2)]


def test_an_operation_says_its_numbers() -> None:
    db = lftj.Database()
    db.sql(f"{TABLE}; insert into t values ({MOST}, 2)")
    with pytest.raises(EvaluationError) as caught:
        db.sql("select x * y as z from t")
    assert str(caught.value).splitlines()[0].endswith(f"`{MOST} * 2` does not fit into 64 bits")
    assert "nothing was changed" in str(caught.value)
    with pytest.raises(lftj.ProgramError, match="not supported yet: `\\+` of ubigint"):
        db.sql("create table u (x ubigint); create view v as select x + x as y from u")


VIEWS = {
    "products": "select b.g, sum(a.x * b.y) as s, count(*) as n from a join b on a.k = b.k group by b.g",
    "sums": "select sum(a.x + b.y) as s from a join b on a.k = b.k where b.y is not null",
    "conditions": "select count(*) as n from a join b on a.k = b.k where a.x - b.y > 3",
    "means": "select b.g, avg(a.x * 2) as m from a join b on a.k = b.k group by b.g",
    "rows": "select a.k, a.x * 3 - b.y as z from a join b on a.k = b.k",
}
TABLES = (
    "create table a (k bigint not null, x bigint not null)",
    "create table b (k bigint, y bigint, g bigint not null)",
)
START = {"a": [(1, 5), (1, 5), (2, 7), (3, -4)], "b": [(1, 3, 1), (2, 4, 1), (2, None, 2), (3, 9, 2), (3, 9, 2)]}
#: Each overflows in every view: by what is added to a, or to b, or by a new row that meets one that was large before.
LARGE: tuple[list[tuple[str, tuple[Any, ...]]], ...] = (
    [("a", (2, MOST)), ("b", (2, -3, 1))],
    [("b", (1, MOST, 2)), ("a", (1, -MOST)), ("a", (1, MOST))],
)


@pytest.mark.parametrize("maintain", [None, "triggers", "delta", "recompute"])
@pytest.mark.parametrize("view", VIEWS)
def test_an_overflow_leaves_the_view_as_it_was(view: str, maintain: str | None) -> None:
    both = Both(*TABLES)
    both.db.sql(f"create view v as {VIEWS[view]}", maintain=None if maintain is None else {"v": maintain})
    for name, rows in START.items():
        both.insert(name, rows)

    def check() -> list[tuple[Any, ...]]:
        rows = sorted(both.db.sql("select * from v"), key=repr)
        assert rows == _or_error(lambda: both.duck.execute(VIEWS[view]).fetchall())
        return rows

    before = check()
    for rows in LARGE:
        both.duck.execute("begin")
        for name, row in rows:
            both.duck.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
        assert _or_error(lambda: both.duck.execute(VIEWS[view]).fetchall()) is None
        both.duck.execute("rollback")
        with pytest.raises(EvaluationError):
            both.db.sql("; ".join(f"insert into {name} values {row}".replace("None", "null") for name, row in rows))
        assert sorted(both.db.sql("select * from v"), key=repr) == before
        with pytest.raises(EvaluationError):
            both.db.apply([(name, "+1", [row]) for name, row in rows])
        assert sorted(both.db.sql("select * from v"), key=repr) == before
        both.insert("a", [(3, 2)])
        both.insert("b", [(1, -8, 2)])
        before = check()
    both.db.sql("delete from a where x = 5; update b set y = y + 1 where k = 3")
    both.duck.execute("delete from a where x = 5; update b set y = y + 1 where k = 3")
    check()


def test_a_statement_that_overflows_changes_nothing() -> None:
    db = lftj.Database()
    db.sql(f"{TABLE}; insert into t values (1, 1), ({MOST}, 2)")
    before = list(db["t"])
    for text in ("update t set y = x + 1", "insert into t select x * 2, y from t", "delete from t where x + y > 0"):
        with pytest.raises(EvaluationError, match="64 bits"):
            db.sql(f"insert into t values (7, 7); {text}")
        assert list(db["t"]) == before


@pytest.mark.parametrize("condition", ["b.s <= b.s", "b.s < 'm'", "upper(b.s) < b.s"])
def test_triggers_compare_no_null_with_a_text(condition: str) -> None:
    """Conditions on a table's own columns are worked out for all its rows, in the order in which they need another."""
    view = f"select g, count(*) as n from a join b on a.k = b.k where {condition} group by g"
    both = Both("create table a (k int, g int)", "create table b (k int, s text)")
    both.db.sql(f"create view v as {view}", maintain={"v": "triggers"})
    both.insert("a", [(1, 1), (2, 1), (2, 2)])
    for rows in ([(1, "b"), (1, None), (2, "z")], [(2, None), (2, "c")]):
        both.insert("b", rows)
        assert sorted(both.db.sql("select * from v")) == sorted(both.duck.execute(view).fetchall())


@pytest.mark.parametrize(
    "query",
    [
        "select x from least union all select y from other",
        "select x from least union select y from other",
        "select least.x from other left join least on x <= y",
        "select x from least full join other on x = y",
        "select nullif(x, 1) as x from least",
        "select min(x) as x from least",
        "select (select min(x) from least) as x",
    ],
)
def test_the_least_number_does_not_become_null_beside_null(query: str) -> None:
    """A column that is `not null` may hold -2^63; where a view admitted null it came out as null."""
    db = lftj.Database()
    db.sql("create table least (x bigint not null); create table other (y bigint)")
    db.sql("insert into other values (null), (2)")
    db.sql(f"create view v as {query}")
    before = list(db["v"])
    with pytest.raises(EvaluationError, match="does not fit into a column that admits null"), db.transaction() as tx:
        tx.insert("least", [(LEAST,), (1,)])
    assert list(db["v"]) == before
    assert not list(db["least"])
    db.sql("insert into least values (-9223372036854775807)")
    assert (LEAST + 1,) in list(db.sql("select * from v"))


def test_a_product_with_the_least_number_is_told_as_one() -> None:
    """The same term decides whether it goes into a column that admits null: that was told here too."""
    db = lftj.Database()
    db.sql("create table least (x bigint not null)")
    db.load("least", [(LEAST,)])
    with pytest.raises(EvaluationError, match=r"`1 \* -9223372036854775808` does not fit into 64 bits"):
        db.sql("select 1 * x as y from least")


def test_the_least_number_does_not_become_null_in_a_rule() -> None:
    db = lftj.Database(".decl a(x:number) .decl p(x:number?)  p(x) :- a(x).")
    db.load("a", [(LEAST,)])
    with pytest.raises(EvaluationError, match="does not fit into a column that admits null"):
        db.evaluate("p")


def test_an_error_of_a_commit_names_the_view(tmp_path: Path) -> None:
    """By rows that no statement of SQL brings, and after the file was opened again, too."""
    with lftj.Database(path=tmp_path / "views.lftj") as db:
        db.sql("""
            create table t (id int primary key, a int, b int);
            create view share as select id, a // b as q from t;
            insert into t values (1, 6, 2);
        """)
    with lftj.Database(path=tmp_path / "views.lftj") as db:
        with pytest.raises(lftj.errors.EvaluationError) as raised, db.transaction() as tx:
            tx.insert("t", [(2, 6, 0)])
        assert str(raised.value).startswith("view `share`: in `share(id, ")
        assert list(db["share"]) == [(1, 3)]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("cast(x as utinyint)", "`256` is not from 0 to 255"),
        ("cast(-x as uinteger)", "`-256` is not from 0 to 4294967295"),
        ("cast(-x as ubigint)", "`-256` is less than 0"),
        ("cast(u as bigint)", f"`18446744073709551614` is greater than {MOST}"),
        (f"x + {MOST}", f"`256 + {MOST}` does not fit into 64 bits"),
        (f"-x - {MOST}", f"`-256 + -{MOST}` does not fit into 64 bits"),
    ],
)
def test_casts_are_told_as_casts(value: str, said: str) -> None:
    """They are sums that leave 64 bits outside of their ranges, and were told as these."""
    db = lftj.Database()
    db.sql("create table t (x bigint, u ubigint); insert into t values (256, 18446744073709551614)")
    with pytest.raises(EvaluationError) as caught:
        db.sql(f"select {value} as y from t")
    assert said in str(caught.value).splitlines()[0]
    assert "_w" not in str(caught.value)  # a column that nothing names
    assert "copies" not in str(caught.value)  # how often a row is there


def test_a_text_is_not_repeated_beyond_memory() -> None:
    """A mistyped number would have taken the machine's memory before anybody could interrupt it."""
    db = lftj.Database()
    db.sql("create table t (s text, n bigint primary key); create view v as select n, repeat(s, n) as r from t")
    db.sql("insert into t values ('ab', 2), ('c', -1), (null, 3)")
    assert set(db["v"]) == {(2, "abab"), (-1, ""), (3, None)}
    with pytest.raises(lftj.errors.EvaluationError, match="it would have 2,000,000,000 characters"):
        db.sql("insert into t values ('de', 1000000000)")
    assert len(db["v"]) == len(db["t"]) == 3


UNSIGNED = (
    "create table t (id int primary key, u ubigint, i bigint)",
    f"insert into t values (1, 0, 3), (2, 5, -5), (3, {MOST}, {MOST}), (4, {2**63}, 0), (5, {2**64 - 2}, 7)",
    "insert into t values (6, null, 1)",
)


@pytest.mark.parametrize("constant", [0, 5, MOST, 2**63, 2**64 - 2])
def test_whole_constants_from_zero_are_unsigned_beside_unsigned_numbers(constant: int) -> None:
    """They were bigints, so that `coalesce(u, 0)` and `case ... then u else 0 end` were refused."""
    both = Both(*UNSIGNED)
    for text in (
        *(f"u {op} {constant}" for op in ("=", "<>", "<", ">=", "is distinct from")),
        *(f"u in ({constant}, 7)", f"u not in ({constant})", f"u between {constant} and 9", f"{constant} in (u, 3)"),
        *(f"coalesce(u, {constant})", f"nullif(u, {constant})", f"greatest(u, {constant})", f"least({constant}, u)"),
        *(f"case when id > 2 then u else {constant} end", f"case u when {constant} then {constant} else u end"),
        *(f"if(i > 0, {constant}, u)", f"u % {constant or 1}", f"u // {constant or 1}", f"{constant} < {2**63 + 1}"),
        *(f"(u, 1) in (({constant}, 1))", f"coalesce(null, 3, u, {constant})"),
    ):
        ours, theirs = both.answers(f"select id, {text} as x from t where u is not null")
        assert ours is not None, text
        assert ours == theirs, text
    for query in (
        f"select u from t union select {constant}",
        f"select {constant} as x union all select u from t",
        f"select {constant} as x except select u from t where id > 1",
        f"select id, x from t join (values ({constant}), (7), ({2**63})) v(x) on x = u",
        f"select lag(u, 1, {constant}) over (order by id) as x from t",
    ):
        ours, theirs = both.answers(query)
        assert ours is not None, query
        assert ours == theirs, query
    both.db.sql(f"create view v as select id, coalesce(u, {constant}) as x from t")
    both.db.sql(f"update t set u = case when id = 2 then {constant} end where id in (2, 3)")
    assert sorted(both.db["v"])[1:3] == [(2, constant), (3, constant)]


def test_constants_below_zero_are_compared_with_unsigned_numbers_and_stored_in_no_column_of_them() -> None:
    both = Both(*UNSIGNED)
    for text in (
        "u > -1",
        "u = -1",
        "u in (-1, 5)",
        "u not in (-1, 5)",
        "u between -3 and 5",
        "nullif(u, -1)",
        "-1 < u",
    ):
        ours, theirs = both.answers(f"select id, {text} as x from t")
        assert ours is not None, text
        assert ours == theirs, text
    assert list(both.db.sql(f"select -1 < {2**63} as a, {2**63} <= -1 as b")) == [(True, False)]
    for statement, what in {
        "update t set u = -1": "`-1` is no ubigint",
        "insert into t select 9, -1, 2": "`-1` is no ubigint",
        f"select cast({2**63} as bigint) as x from t": f"`{2**63}` is no bigint",
        f"select id from t where i > -{2**63}": f"`-{2**63}` does not fit into 64 bits",
        "select coalesce(u, -1) as x from t": "has values of type bigint and of type ubigint",
    }.items():
        with pytest.raises(lftj.ProgramError, match=what) as raised:
            both.db.sql(statement)
        assert "^" in str(raised.value)
