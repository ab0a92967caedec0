"""Subqueries that stand for a value: which rows they are asked for, and where several values are refused."""

from __future__ import annotations

from random import Random

import pytest

import lftj
from lftj.errors import KeyConflictError
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

TABLES = "create table k (id int primary key, v int); create table e (f int, t int); create table m (x int, y int)"
E = "(select distinct t from e where f = {0})"
ASKED = [
    f"select id, {E.format('id')} as x from k",
    f"select id, {E.format('v')} as x from k",
    f"select id from k where v > 0 and v = {E.format('id')}",
    f"select id from k where (v = 1 or v is null) and {E.format('id')} > 0",
    f"select id, {E.format('id')} as x from k where v = 1 or id = 2",
    f"select id, {E.format('id')} as x from k where exists (select 1 from m where x = id)",
    f"select id, {E.format('k.id + 1')} as x from k join m on m.x = k.v",
    f"select m.x, {E.format('k.id')} as c from m left join k on k.v = m.x where m.y = 1",
    f"select m.x, k.id from m join k on k.id = m.x and k.v = {E.format('m.y')}",
    f"select v, count(*) as n, {E.format('v')} as x from k group by v",
    f"select v, count(*) as n from k group by v having v < {E.format('v')} and count(*) > 1",
    f"select sum({E.format('id')}) as s from k where v > 0",
    f"select id, case when v = 1 then {E.format('id')} else -1 end as x from k",
    f"select id, coalesce({E.format('id')}, {E.format('v')}) as x from k where id > 1",
    f"select id, (select max({E.format('m.y')}) from m where m.x = k.id) as x from k",
    f"select id, (select sum({E.format('k.id')} + y) from m where m.x = k.v) as x from k",
    f"select id from k where exists (select 1 from m where m.x = k.id and m.y = {E.format('k.id')})",
    f"select id from k where v in (select {E.format('m.y')} from m where m.x = k.id)",
    "select id, (select distinct t from e where f > k.id and t = 2) as x from k where v = 1",
    "select id, (select distinct t from e where f is not distinct from k.v) as x from k where id < 3",
    "select id, (select t from e where f = k.id union select y from m where m.x = k.id) as x from k where v > 0",
    "select id, (select sum(y) from m where x = k.id group by y % 2) as x from k where v = 2",
    "select id, (select distinct t from e join m on e.f = m.x where m.y = k.id) as x from k",
    f"select c.i, {E.format('c.i')} as x from (select id as i from k where v = 1) c",
    f"select id from k where v > 0 or id < {E.format('id')}",
]


class Both:
    """The same tables in lftj and DuckDB, changed alike."""

    def __init__(self, sql: str) -> None:
        self.db, self.duck = lftj.Database(), duckdb_database()
        self.db.sql(TABLES)
        self.duck.execute(TABLES)
        self.sql = sql
        self.db.sql(f"create view r as {sql}")

    def change(self, statement: str) -> bool:
        """Whether both make the change; each leaves all as it was where the view has two values for one."""
        before = self.rows()
        self.duck.execute("begin")
        self.duck.execute(statement)
        try:
            wanted = sorted(self.duck.execute(self.sql).fetchall(), key=str)
        except duckdb.Error:
            self.duck.execute("rollback")
            with pytest.raises(KeyConflictError):
                self.db.sql(statement)
            assert self.rows() == before
            return False
        self.duck.execute("commit")
        self.db.sql(statement)
        assert self.rows() == wanted, statement
        assert sorted(map(tuple, self.db.sql(self.sql)), key=str) == wanted
        return True

    def rows(self) -> list[tuple[object, ...]]:
        """The rows of the view."""
        return sorted(map(tuple, self.db.sql("select * from r")), key=str)


def _change(random: Random) -> str:
    """A change of one of the tables."""

    def small() -> str:
        return random.choice(["null", "1", "2", "3", "4"])

    match random.randrange(6):
        case 0:
            return f"insert into k values ({random.randint(1, 4)}, {small()}) on conflict (id) do update set v = 2"
        case 1:
            return f"delete from k where id = {random.randint(1, 4)}"
        case 2 | 3:
            return f"insert into e values ({small()}, {small()}), ({small()}, {small()})"
        case 4:
            return f"insert into m values ({small()}, {small()})"
    return f"delete from {random.choice(['e where t', 'm where y'])} = {random.randint(1, 4)}"


@pytest.mark.parametrize("sql", ASKED)
def test_several_values_are_refused_where_duckdb_refuses_them(sql: str) -> None:
    random, both = Random(sql), Both(sql)
    made = [both.change(_change(random)) for _ in range(25)]
    assert any(made)


def test_no_value_is_asked_for_that_no_row_names() -> None:
    db = lftj.Database()
    db.sql("create table t (a int, b int); create table e (f int, t int)")
    db.sql("insert into t values (2, 1); insert into e values (2, 3), (4, 5), (4, 6)")
    assert list(db.sql("select a, (select t from e where f = a) as x from t")) == [(2, 3)]
    db.sql("insert into t values (4, 1); update t set b = (select t from e where f = a) where a = 2")
    assert sorted(db.sql("select * from t")) == [(2, 3), (4, 1)]
    with pytest.raises(KeyConflictError, match="has several: 5 and 6"):
        db.sql("update t set b = (select t from e where f = a)")
    with pytest.raises(KeyConflictError, match="has several: 5 and 6"):
        db.sql("select a from t order by (select t from e where f = a)")
    assert list(db.sql("select a from t where a < 4 order by (select t from e where f = a)")) == [(2,)]


def test_a_row_that_asks_for_several_values_is_refused_later() -> None:
    db = lftj.Database()
    db.sql("create table e (f int, t int); create table k (id int primary key, v int)")
    db.sql("create view v as select k.id, (select t from e where f = k.id) as x from k; insert into k values (1, 1)")
    db.sql("insert into e values (2, 3), (2, 4)")
    with pytest.raises(KeyConflictError):
        db.sql("insert into k values (2, 0)")
    assert list(db.sql("select id from k")) == [(1,)]
    assert list(db.sql("select * from v")) == [(1, None)]
    db.sql("delete from e where t = 4; insert into k values (2, 0)")
    assert sorted(db.sql("select * from v"), key=str) == [(1, None), (2, 3)]


def test_what_has_one_value_is_not_restricted() -> None:
    """A key, an aggregate and `limit 1` say that there is one value: no relation has the values that are asked for."""
    db = lftj.Database()
    db.sql("create table e (f int primary key, t int); create table k (id int primary key, v int)")
    db.sql("create view v1 as select id, (select t from e where f = k.v) as x from k")
    db.sql("create view v2 as select id, (select max(t) from e where f = k.v) as x from k")
    db.sql("create view v3 as select id, (select t from e where f = k.v order by t limit 1) as x from k")
    db.sql("create view v4 as select id, (select e.t from e join k o on o.id = e.t where e.f = k.v) as x from k")
    assert not [name for name in db._state.relations if ".values" in name]
