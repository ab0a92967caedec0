"""`check`, `unique`, foreign keys and defaults of tables, against DuckDB and a check in plain Python.

Catches: a constraint that null breaks or that null evades, one that holds for SQL and not for loads and transactions, a
refusal that leaves something behind, a constraint that is lost with a file or outlives its table, a default that is
another value than the one that was written.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import ConstraintError, EvaluationError, KeyConflictError
from tests.conftest import JIT, examples
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

TABLES = (
    "create table p (id int primary key, n int unique, c text default 'x' check (c <> 'z' or n > 1))",
    """create table f (a int default 1 references p, b int default 0, check (b < 3), unique (a, b),
        foreign key (b) references p (n))""",
)
SMALL = st.sampled_from(("null", "0", "1", "2", "3", "default"))
TEXTS = st.sampled_from(("null", "'x'", "'z'", "default"))


@st.composite
def statements(draw: st.DrawFn) -> str:
    kind = draw(
        st.sampled_from(("p", "p", "p", "f", "f", "f", "columns", "blank", "update", "delete", "upsert", "ignore"))
    )
    key = draw(st.integers(0, 4))
    if kind == "p":
        return f"insert into p values ({key}, {draw(SMALL)}, {draw(TEXTS)})"
    if kind == "f":
        rows = ", ".join(f"({draw(SMALL)}, {draw(SMALL)})" for _ in range(draw(st.integers(1, 2))))
        return f"insert into f values {rows}"
    if kind == "columns":
        return draw(
            st.sampled_from((f"insert into p (id) values ({key})", f"insert into f (b) values ({draw(SMALL)})"))
        )
    if kind == "blank":
        return "insert into f default values"
    if kind == "update":
        return draw(
            st.sampled_from(
                (
                    f"update p set n = {draw(SMALL)} where id = {key}",
                    f"update p set c = {draw(TEXTS)} where n < 2",
                    f"update f set a = {draw(SMALL)} where b = {draw(st.integers(0, 2))}",
                    "update f set b = default where a is null",
                    "update p set c = f.b from f where f.a = p.id and f.b = 1",
                )
            )
        )
    if kind == "delete":
        return draw(
            st.sampled_from(
                (f"delete from p where id = {key}", "delete from f where b = 0", "delete from f using p where a = n")
            )
        )
    values = f"values ({key}, {draw(SMALL)}, {draw(TEXTS)})"
    if kind == "upsert":
        named = draw(st.sampled_from(("id", "n")))
        return f"insert into p {values} on conflict ({named}) do update set c = excluded.c"
    more = draw(st.lists(st.tuples(st.integers(0, 4), SMALL, TEXTS), max_size=3))
    rows = "".join(f", ({i}, {n}, {c})" for i, n, c in more)
    if rows:  # DuckDB leaves out what is in conflict with a row that is itself left out
        return f"insert into p {values}{rows} on conflict (id) do nothing"
    return f"insert into p {values} on conflict do nothing"


def holds(p: Counter[Any], f: Counter[Any]) -> bool:
    """Whether the contents of the tables are as their constraints have it."""
    ids, numbers = [row[0] for row in p.elements()], [row[1] for row in p.elements() if row[1] is not None]
    keys = [row for row in f.elements() if None not in row]
    return (
        len(ids) == len(set(ids))
        and len(numbers) == len(set(numbers))
        and not any(c == "z" and n is not None and n <= 1 for _, n, c in p)
        and all(a is None or a in ids for a, _ in f)
        and all(b is None or (b < 3 and b in numbers) for _, b in f)
        and len(keys) == len(set(keys))
    )


def contents(db: lftj.Database) -> tuple[Counter[Any], Counter[Any]]:
    return Counter(map(tuple, db["p"])), Counter({tuple(row[:-1]): row[-1] for row in db["f"]})


@pytest.mark.skipif(not JIT, reason="interpreted kernels take a minute for it")
@examples(80, 10, deadline=None)
@given(st.lists(statements(), min_size=3, max_size=12))
def test_statements_are_refused_where_duckdb_refuses_them(made: list[str]) -> None:
    db, rival = lftj.Database(), duckdb_database()
    for table in TABLES:
        db.sql(table)
        rival.execute(table)
    for statement in made:
        before = contents(db)
        refused = False
        try:
            rival.execute(statement)
        except duckdb.ConstraintException:
            refused = True
        try:
            with db.transaction() as tx:
                tx.sql(statement)
                if refused:
                    # DuckDB looks at each row on its way, and refuses some changes after which everything holds.
                    tx.preview()
                    raise LookupError
        except (ConstraintError, KeyConflictError):
            assert refused, statement
        except lftj.ProgramError:  # null where a column does not admit it
            assert refused, statement
        except LookupError:
            with db.branch() as other:
                other.sql(statement)
                assert holds(*contents(other)), statement
        assert holds(*contents(db))
        if refused:
            assert contents(db) == before
        else:
            theirs = tuple(Counter(rival.execute(f"select * from {name}").fetchall()) for name in ("p", "f"))
            assert contents(db) == theirs, statement


SHOP = """
    create table item (id int primary key, name text unique, price decimal(6, 2) check (price > 0) default 1.5);
    create table sale (item int not null references item (id), qty int default 1, day date default '2024-01-01',
        constraint plausible check (qty < 100 or day is null));
    insert into item values (1, 'tea', 3), (2, 'jam', default);
    insert into sale (item) values (1), (1);
"""


def shop() -> lftj.Database:
    db = lftj.Database()
    db.sql(SHOP)
    return db


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("insert into item values (3, 'tea', 1)", '`item` breaks `unique (name)`: name = "tea", rows = 2'),
        (
            "insert into item values (3, 'ink', 0)",
            '`item` breaks `check (price > 0)`: id = 3, name = "ink", price = 0.00d',
        ),
        (
            "update sale set qty = 100 where item = 1",
            "`sale` breaks `plausible`, `check (qty < 100 OR day IS NULL)`: item = 1, qty = 100, day = @2024-01-01",
        ),
        (
            "delete from item where id = 1",
            "`sale` breaks `foreign key (item) references item (id)`: item = 1, qty = 1, day = @2024-01-01",
        ),
    ],
)
def test_what_a_broken_constraint_says(text: str, what: str) -> None:
    db = shop()
    with pytest.raises(ConstraintError) as caught:
        db.sql(f"{text}; insert into item values (9, null, 1)")
    assert caught.value.what == what
    assert caught.value.relation in ("item", "sale")
    assert len(db["item"]) == 2


def test_constraints_hold_however_rows_come() -> None:
    db = shop()
    with pytest.raises(ConstraintError), db.transaction() as tx:
        tx.insert("sale", [(7, 1, None)])
    with pytest.raises(ConstraintError):
        db.load("sale", [(7, 1, None)])
    with pytest.raises(ConstraintError):
        db.apply([("item", -1, [(1, "tea", 3)])])
    with pytest.raises(ConstraintError), db.transaction() as tx:
        tx.upsert("item", [(2, "tea", 1)])
    db.sql("insert into sale values (7, 1, null); insert into item values (7, null, null), (8, null, null)")
    assert len(db["item"]) == 4
    with db.branch() as branch, pytest.raises(ConstraintError):
        branch.sql("delete from item where id = 7")


def test_a_default_stands_where_nothing_is_said() -> None:
    db = lftj.Database()
    db.sql("""
        create table t (a int default -3, b text not null default 'x' || 'y', c decimal(6, 2) default 1,
            d timestamp default '2024-01-31', e double default 2, f bool default null, g int);
        insert into t default values;
        insert into t (a, b) values (default, 'b');
        insert into t (g) select 5;
        update t set b = default where b = 'b';
    """)
    assert {tuple(map(str, row)) for row in db["t"]} == {
        ("-3", "xy", "1.00", "2024-01-31 00:00:00", "2.0", "None", "None", "2"),
        ("-3", "xy", "1.00", "2024-01-31 00:00:00", "2.0", "None", "5", "1"),
    }
    db.sql("drop table t; create table t (a int default 4, b int default 5); insert into t (b) values (1)")
    assert list(db["t"]) == [(4, 1, 1)]
    db.sql("drop table t; create table t (a int, b int); insert into t (b) values (1)")
    assert list(db["t"]) == [(None, 1, 1)]


def test_what_conflicts_is_left_out_row_by_row() -> None:
    db = lftj.Database()
    db.sql("create table t (a int unique, b int unique, c int); insert into t values (1, 1, 0)")
    # The second is in conflict with the first, the third with the second only, the fourth with the table.
    db.sql("insert into t values (2, 2, 0), (2, 3, 0), (3, 3, 0), (4, 1, 0), (4, 4, 0) on conflict do nothing")
    assert sorted(row[:2] for row in map(tuple, db["t"])) == [(1, 1), (2, 2), (3, 3), (4, 4)]
    db.sql("insert into t values (null, null, 5), (null, null, 5), (1, null, 5), (null, 9, 5) on conflict do nothing")
    assert sorted((row[1:] for row in map(tuple, db["t"]) if row[2] == 5), key=str) == [(9, 5, 1), (None, 5, 2)]
    db.sql("insert into t values (null, null, 5), (null, 9, 6) on conflict (b) do update set c = excluded.c")
    assert sorted((row[1:] for row in map(tuple, db["t"]) if row[2] >= 5), key=str) == [(9, 6, 1), (None, 5, 3)]
    with pytest.raises(lftj.ProgramError, match="have a key twice"):
        db.sql("insert into t select a + 10, 10, c from t where a in (1, 2) on conflict do nothing")
    db.sql("insert into t select a, 10, c from t where a in (1, 2) on conflict do nothing")
    assert 10 not in {row[1] for row in db["t"]}


def test_a_table_that_is_referred_to_stays() -> None:
    db = shop()
    for text in ("drop table item", "create or replace table item (id int primary key)"):
        with pytest.raises(lftj.ProgramError, match="`item` is read by `sale`"):
            db.sql(text)
    db.sql("create view revenue as select name, sum(qty * price) as n from sale join item on item = id group by name")
    db.sql("drop view revenue")
    with pytest.raises(ConstraintError):
        db.sql("delete from item")
    db.sql("drop table sale; delete from item; drop table item")
    assert list(db._relations) == []
    db.sql(SHOP)
    assert len(db["sale"]) == 1


def test_a_file_keeps_constraints_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with lftj.Database(path=path) as db:
        db.sql(SHOP)
        db.sql("create table gone (a int default 1 unique); drop table gone")
    for checkpoint in (True, False):
        with lftj.Database(path=path) as db:
            db.sql("insert into sale (item) values (2)")
            assert db.sql("select qty from sale where item = 2").columns == {"qty": "number?"}
            for text in ("delete from item where id = 2", "insert into item (id, name) values (5, 'jam')"):
                with pytest.raises(ConstraintError):
                    db.sql(text)
            with pytest.raises(ConstraintError):
                db.load("sale", [(9, 1, None)])
            if checkpoint:
                db.checkpoint()
    with lftj.Database(path=path) as db:
        assert Counter({row[:-1]: row[-1] for row in map(tuple, db["sale"])}).total() == 4
        with pytest.raises(lftj.ProgramError, match="is read by"):
            db.sql("drop table item")
        db.sql("drop table sale; drop table item")
    with lftj.Database(path=path) as db:
        assert list(db._relations) == []


def test_a_table_explains_its_constraints() -> None:
    db = shop()
    shown = str(db.explain("sale"))
    assert "@sale.check2(" in shown
    assert "@sale.foreign1(" in shown
    assert "@item.unique1" not in shown
    assert list(db) == ["item", "sale"]


def test_a_check_without_a_value_is_an_error() -> None:
    db = lftj.Database()
    db.sql("create table t (a int, check (10 / a > 1)); insert into t values (3), (null)")
    with pytest.raises(EvaluationError, match="division by zero") as caught:
        db.sql("insert into t values (0)")
    assert caught.value.where.startswith("table `t`: `check (10 / a > 1)`")
    assert len(db["t"]) == 2


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        (
            "create table t (a int references item (name))",
            "`a` of `t` and `name` of `item` have different types",
            "1:34",
        ),
        (
            "create table t (a decimal(6, 2) references item (price))",
            "`foreign key (a) references item (price)` refers",
            "1:",
        ),
        (
            "create table t (a int references sale)",
            "`foreign key (a) references sale` refers to no key of `sale`",
            "1:34",
        ),
        ("create table t (a int references none)", "there is no table `none`", "1:34"),
        ("create table t (a int references item (x))", "`foreign key (a) references item (x)` refers to no key", "1:"),
        (
            "create table t (a int, b int, foreign key (a, b) references item)",
            "`foreign key (a, b) references item` has",
            "",
        ),
        ("create table t (a int references item on delete cascade)", "not supported yet: `on delete cascade`", "1:34"),
        ("create table t (a int, unique (a, z))", "`unique (a, z)` of `t` names `z`, which is no column", "1:"),
        ("create table t (a int check (z > 1))", "unknown column `z`", "1:30"),
        ("create table t (a int check (a > (select 1)))", "a subquery in `check`", "1:"),
        ("create table t (a int check (sum(a) > 1))", "an aggregate in `check`", "1:"),
        ("create table t (a int default b)", "the default of `a` is no constant", "1:31"),
        ("create table t (a int default 'one')", "`one` is no bigint", "1:31"),
        ("create table t (a int not null default null)", "column `a` of `t` cannot be null", "1:"),
        ("insert into sale (qty) values (1)", "column `item` of `sale` cannot be null", "1:13"),
        ("insert into sale default values", "column `item` of `sale` cannot be null", "1:13"),
        ("update sale set item = default", "column `item` of `sale` cannot be null", "1:"),
        ("insert into sale values (default, 1, null)", "column `item` of `sale` cannot be null", "1:"),
        (
            'create table "a.b" (a int unique)',
            "not supported yet: a constraint or default of a table with a dot",
            "1:14",
        ),
        (
            "insert or replace into item values (1, 'tea', 1)",
            "`insert or replace` into `item`, which has several keys",
            "1:1",
        ),
    ],
)
def test_definitions_and_changes_that_are_wrong(text: str, what: str, place: str) -> None:
    db = shop()
    before = list(db._relations)
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(f"{text}; drop table sale")
    found = caught.value.diagnostics[0]
    assert found.what.startswith(what)
    assert str(found.span).startswith(f"<sql>:{place}")
    assert list(db._relations) == before
