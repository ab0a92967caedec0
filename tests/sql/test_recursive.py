"""`with recursive`: rows as often as DuckDB has them, after every change of what they are derived from.

Catches: a row derived in two ways that is there once, rows whose null meets no null on the way, rows that are both
begun with and derived, a cycle that is found late or where there is none, and texts along the way that stay behind.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import lftj
from tests.duckdb_databases import duckdb_database

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

Row = tuple[Any, ...]
TABLES = (
    "create table e (a bigint, b bigint, w bigint)",
    "create table k (id bigint primary key, boss bigint, name varchar not null)",
    "create table s (a bigint, n bigint)",
)
QUERIES = {
    "numbers": "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select * from r",
    "twice from the start": "with recursive r(n) as (values (1), (1) union all select n + 1 from r where n < 3) "
    "select * from r",
    "two steps": "with recursive r(n) as (select 1 union all "
    "(select n + 1 from r where n < 4 union all select n + 2 from r where n < 4)) select * from r",
    "days": "with recursive r(n, d) as (select 1, date '2024-02-28' union all select n + 1, d + 1 from r where n < 3) "
    "select * from r",
    "walks": "with recursive r(a, b) as (select a, b from e union all select r.a, e.b from r join e on r.b = e.a) "
    "select * from r",
    "walks from rows of a table": "with recursive r as (select a, n from s union all "
    "select e.b, r.n from r join e on r.a = e.a) select * from r",
    "walks from no row": "with recursive r(p, q) as (select a, b from e where false union all "
    "select r.p, e.b from r join e on r.q = e.a) select * from r",
    "walks from rows of the step": "with recursive r as (select a, b from e where 1 = 2 union "
    "(select r.a, e.b from r join e on r.b = e.a union select a, null from s)) select a, b from r",
    "walks with null": "with recursive r as (select a, n from s union all "
    "select e.b, e.w from r join e on r.a is not distinct from e.a) select * from r",
    "lengths": "with recursive r as (select a, 0 as far from s union all "
    "select e.b, far + 1 from r join e on r.a = e.a where far < 3) select far, count(*), count(distinct a) from r "
    "group by far",
    "tree": "with recursive r as (select id, name, 0 as depth from k where boss is null union all "
    "select k.id, k.name, r.depth + 1 from k join r on k.boss = r.id) select depth, count(*) from r group by depth",
    "texts": "with recursive r as (select id, name as path from k where boss is null union all "
    "select k.id, r.path || '/' || k.name from k join r on k.boss = r.id) select * from r",
    "each text once": "with recursive r as (select id, name as path from k where boss is null union "
    "select k.id, r.path || '/' || k.name from k join r on k.boss = r.id) select * from r",
    "below a join": "select k.name, r.b from k join (with recursive r as (select a, b from e union all "
    "select r.a, e.b from r join e on r.b = e.a) select * from r) r on r.a = k.id",
}


class Both:
    """The tables in a database and in DuckDB. Edges of `e` go upwards, and so does `k.boss`, so no walk comes back."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.db, self.duck = lftj.Database(), duckdb_database()
        for table in TABLES:
            self.both(table)

    def both(self, text: str) -> None:
        self.db.sql(text)
        self.duck.execute(text)

    def changed(self, text: str) -> None:
        """Let the database do what a text says; the delta of the view is what it changes of that."""
        before = set(map(tuple, self.db["v"]))
        delta = self.db.sql(text)["v"]
        after = set(map(tuple, self.db["v"]))
        assert (set(map(tuple, delta.erased)), set(map(tuple, delta.inserted))) == (before - after, after - before)

    def row(self, table: str) -> str:
        pick, low = self.random.choice, self.random.randrange(5)
        high = self.random.randrange(low + 1, 7)
        if table == "e":
            return f"({pick((low, low, 'null'))}, {high}, {pick((1, 2, 'null'))})"
        return f"({pick((low, high, 'null'))}, {pick((0, 1, 'null'))})"

    def change(self) -> None:
        """Some rows come and go, each change by a statement of its own or all in one."""
        texts = []
        for table in ("e", "s"):
            texts += [f"insert into {table} values {self.row(table)}" for _ in range(self.random.randrange(4))]
            texts += [f"delete from {table} where a = {self.random.randrange(6)}"] * self.random.randrange(2)
        person = self.random.randrange(1, 7)
        boss = self.random.choice(("null", "null", *range(person)))
        name = self.random.choice("xyz")
        texts.append(f"insert or replace into k values ({person}, {boss}, '{name}')")
        texts += [f"delete from k where id = {self.random.randrange(7)}"] * self.random.randrange(2)
        self.random.shuffle(texts)
        for text in [";".join(texts)] if self.random.random() < 0.5 else texts:
            self.changed(text)
        self.duck.execute(";".join(texts))


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_there_as_often_as_in_duckdb(name: str) -> None:
    both, query = Both(name), QUERIES[name]
    both.db.sql(f"create view v as {query}")
    for _ in range(12):
        theirs = Counter(both.duck.execute(query).fetchall())
        assert Counter(map(tuple, both.db.sql("select * from v"))) == theirs
        assert Counter(map(tuple, both.db.sql(query))) == theirs
        both.change()


def test_changes_of_copies_are_exact() -> None:
    db = lftj.Database()
    db.sql("""
        create table uses (part text not null, of text not null);
        create view within as with recursive r(part) as (
            select part from uses where of = 'bike'
            union all select uses.part from r join uses on uses.of = r.part
        ) select part, count(*) as n from r group by part;
        insert into uses values ('wheel', 'bike'), ('wheel', 'bike'), ('frame', 'bike'), ('spoke', 'wheel');
    """)
    assert list(db["within"]) == [("frame", 1), ("spoke", 2), ("wheel", 2)]
    changed = db.sql("insert into uses values ('spoke', 'wheel'), ('bolt', 'frame'), ('bolt', 'spoke')")["within"]
    assert (list(changed.erased), list(changed.inserted)) == ([("spoke", 2)], [("bolt", 5), ("spoke", 4)])
    changed = db.sql("delete from uses where part = 'wheel'")["within"]
    assert (list(changed.erased), list(changed.inserted)) == (
        [("bolt", 5), ("spoke", 4), ("wheel", 2)],
        [("bolt", 1)],
    )


def test_a_row_that_comes_from_itself_is_refused() -> None:
    db = lftj.Database()
    db.sql("""
        create table e (a int not null, b int not null);
        create view far as with recursive r(x) as (select 1 union all select e.b from r join e on e.a = r.x)
            select x from r;
        insert into e values (1, 2), (2, 3), (7, 8), (8, 7);
    """)
    assert list(db.sql("select x from far order by x")) == [(1,), (2,), (3,)]
    with pytest.raises(lftj.errors.CycleError) as refused:
        db.sql("insert into e values (3, 2)")
    assert str(refused.value) == (
        "a row of the recursive query in `far` is derived from itself: (2) -> (3) -> (2)\n"
        "  why: with `union all` it would be there without end; nothing was changed\n"
        "  do: write `union`, which has each row once, or leave out one of the rows that lead round the cycle"
    )
    assert refused.value.cycle == (2, 3, 2)
    db.sql("insert into e values (3, 4)")
    assert list(db.sql("select x from far order by x desc limit 1")) == [(4,)]


def test_the_start_and_the_step_may_give_the_same_row() -> None:
    db = lftj.Database()
    db.sql("""
        create table s (a int, n int); create table e (a int, b int);
        create view v as with recursive r as (select a, n from s union all
            select e.b, r.n from r join e on r.a = e.a) select * from r;
        insert into s values (1, null), (2, null), (2, null); insert into e values (1, 2);
    """)
    assert list(db["v"]) == [(1, None, 1), (2, None, 3)]
    db.sql("delete from e")
    assert list(db["v"]) == [(1, None, 1), (2, None, 2)]
    db.sql("delete from s where a = 2; insert into e values (1, 2), (1, 2)")
    assert list(db["v"]) == [(1, None, 1), (2, None, 2)]


def test_columns_have_the_names_they_are_given() -> None:
    query = "with recursive r(n, on_day) as (select 1, date '2024-01-31' union all select n + 1, on_day + 1 from r "
    answer = lftj.Database().sql(f"{query} where n < 2) select * from r order by n")
    assert list(answer.columns) == ["n", "on_day"]
    assert list(answer) == [(1, dt.date(2024, 1, 31)), (2, dt.date(2024, 2, 1))]


@pytest.mark.parametrize(
    "step",
    [
        "select n + 1 from r where n in (select n from r)",
        "select distinct n + 1 from r where n < 3",
        "select a.n + 1 from r a join r b on a.n = b.n where a.n < 3",
    ],
)
def test_a_step_of_union_all_goes_from_row_to_row(step: str) -> None:
    text = f"with recursive r(n) as (select 1 union all ({step}) ) select * from r"
    with pytest.raises(lftj.ProgramError, match="not supported yet: a step of `union all` that does not name"):
        lftj.Database().sql(text)


def test_a_query_that_may_be_recursive_need_not_be() -> None:
    assert sorted(lftj.Database().sql("with recursive r(n) as (select 1 union all select 7) select * from r")) == [
        (1,),
        (7,),
    ]


@pytest.mark.parametrize("union", ["union", "union all"])
def test_a_statement_that_comes_again_has_its_own_values(union: str) -> None:
    """The joins of a recursion are kept, with the codes of constants: the third value was the second's again."""
    db, duck = lftj.Database(), duckdb_database()
    for step in ("x + 1 from r where x < $a", "x + $a from r where x < 9"):
        text = f"with recursive r(x) as (select 1 {union} select {step}) select x from r"
        for a in (3, 4, 2, 6, 1):
            assert Counter(db.sql(text, a=a)) == Counter(duck.execute(text, {"a": a}).fetchall())
    db.sql("create table o (x int)")
    for a in (3, 5, 2, 4):
        db.sql(
            f"insert into o with recursive r(x) as (select 1 {union} select x + 1 from r where x < $a) select x from r",
            a=a,
        )
        assert sorted(db.sql("select x from o")) == [(x,) for x in range(1, a + 1)]
        db.sql("delete from o")


@pytest.mark.parametrize("union", ["union", "union all"])
def test_a_recursion_starts_from_no_row_where_parameters_are_unlike(union: str) -> None:
    db = lftj.Database()
    db.sql("create table e (a int, b int); insert into e values (1, 2), (2, 3)")
    step = "select r.p, e.b from r join e on r.q = e.a"
    text = f"with recursive r(p, q) as (select a, b from e where $low <= $high {union} {step}) select * from r"
    for high in (0, None):
        assert list(db.sql(text, low=1, high=high)) == []
    assert sorted(db.sql(text, low=1, high=1)) == [(1, 2), (1, 3), (2, 3)]


def test_the_step_is_cast_to_the_types_of_the_start() -> None:
    text = "with recursive r(n) as (select 1 union all select n * 1.5 from r where n < 10) select * from r"
    assert Counter(lftj.Database().sql(text)) == Counter(duckdb.sql(text).fetchall())


def test_a_decimal_of_the_step_may_have_more_digits_than_the_start() -> None:
    """The step's condition was taken for true whatever the value, as no decimal of the start's type reaches it."""
    text = "with recursive r(n) as (select 2.5 union select n + 4 from r where n < 12) select n from r"
    assert sorted(lftj.Database().sql(text, timeout=60)) == [(Decimal(n),) for n in ("2.5", "6.5", "10.5", "14.5")]


@pytest.mark.parametrize(
    "step",
    [
        "select t from e where f <> all (select n from r)",
        "select t from e where (f in (select n from r)) = false",
        "select case when exists (select 1 from r where n = f) then t else 0 end from e",
        "select t from e, (select max(n) as m from r) q where f = m",
        "select t from e where (select count(*) from r where n = f) > 0",
        "select t from e where f < any (select n from r)",
        "select n + 1 from r where n < (select max(t) from e where f <= n)",
        "select n + 1 from r where not exists (select 1 from e where f > r.n)",
        "select row_number() over () from r where n < 3",
        "select t from e, (select distinct on (n) n from r) q where f = n",
        "(select n + 1 from r where n < 3 union all select 7)",
    ],
)
def test_a_step_that_rows_to_come_may_take_back_is_told_in_words_of_sql(step: str) -> None:
    db = lftj.Database()
    db.sql("create table e (f int, t int); insert into e values (1, 2), (2, 3)")
    with pytest.raises(lftj.ProgramError) as refused:
        db.sql(f"with recursive r(n) as (select 1 union {step}) select * from r")
    found = refused.value.diagnostics[0]
    assert found.what.startswith("not supported yet: ")
    assert "of the recursive query `r` in its own step" in found.what
    assert found.span.column == len("with recursive ") + 1


@pytest.mark.parametrize(
    "query",
    [
        "with q(x) as (select 1) select x from q union select n + 1 from r where n < 4",
        "with q(x) as (select 1) select x from q union all select n + x from r, q where n < 4",
        "with q(x) as (select 1), z as (select x from q) select x from z union all "
        "(with q(x) as (select 2) select n + x from r, q where n < 4)",
        "select 1 union select n + 1 from r where n < 3 and exists (select r.n, f from e where f = n)",
        "select 1 union select v.x from e, lateral (values (f), (t)) v(x) where f in (select n from r)",
    ],
)
def test_start_and_step_know_what_a_query_knows(query: str) -> None:
    db, duck = lftj.Database(), duckdb_database()
    for one in (db.sql, duck.execute):
        one("create table e (f int, t int); insert into e values (1, 2), (2, 3)")
    text = f"with recursive r(n) as ({query}) select * from r"
    assert Counter(db.sql(text)) == Counter(duck.execute(text).fetchall())


@pytest.mark.parametrize("shown", ["x, y from r", "x, count(*) as n from r group by x"])
def test_a_view_is_dropped_with_the_query_that_reads_itself(shown: str) -> None:
    """It was taken for one that is still read, by itself, and what it reads could not be dropped any more."""
    db = lftj.Database()
    for _ in range(2):
        db.sql("create table t (b int, c int)")
        db.sql("insert into t values (1, 2), (2, 3)")
        before = set(db._state.relations)
        db.sql(
            "create view v as with recursive r(x, y) as "
            f"(select b, c from t union select r.x, t.c from r join t on r.y = t.b) select {shown}"
        )
        assert len(db["v"])
        db.sql("drop view v")
        assert set(db._state.relations) == before
        db.sql("drop table t")
