"""`db.sql` and `tx.sql` from outside: what they return, views as relations, one-off queries, errors, forms.

Catches: a one-off query that leaves a relation behind, a view whose delta is not told, a replaced view that readers do
not follow, rows in another order than asked for, a raw error of sqlglot.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lftj
from lftj.errors import TransactionError
from lftj.sql import running

pytest.importorskip("sqlglot")

SHOP = """
create table sale (item text not null, qty int, day date);
create table item (name text primary key, price decimal(8, 2));
insert into item values ('tea', 3.20), ('jam', 4.50), ('ink', null);
insert into sale values ('tea', 2, '2024-05-30'), ('tea', 2, '2024-05-30'), ('jam', 1, null), ('ink', null, null);
create view revenue as select item, sum(qty) as n from sale group by item;
"""


@pytest.fixture
def shop() -> lftj.Database:
    db = lftj.Database()
    db.sql(SHOP)
    return db


def test_a_view_is_a_relation(shop: lftj.Database) -> None:
    heard = []
    shop.on_commit("revenue", heard.append)
    snapshot = shop.snapshot()
    shop.rules("many(i) :- revenue(i, n), n > 3.")
    assert {row[0] for row in shop["revenue"]} == {"tea", "jam", "ink"}
    with shop.transaction() as tx:
        tx.insert("sale", [("jam", 5, None)])
        tx.sql("delete from sale where item = 'tea'")
    assert set(tx.delta["revenue"].inserted) == {("jam", 6)}
    assert set(tx.delta["revenue"].erased) == {("jam", 1), ("tea", 4)}
    assert set(tx.delta["many"].erased) == {("tea",)}
    assert len(heard) == 1
    assert ("tea", 4) in snapshot["revenue"]
    assert set(shop.sql("select i from many")) == {("jam",)}
    assert str(shop.explain("revenue"))


def test_a_view_of_views_and_of_rules(shop: lftj.Database) -> None:
    shop.rules("big(i, n) :- revenue(i, n), n > 1.")
    shop.sql("create view top as select i, n from big union all select item, n from revenue where n > 3")
    shop.sql("create view named (thing, amount) as select i, n from top")
    assert sorted(shop.sql("select thing, amount from named")) == [("tea", 4), ("tea", 4)]
    assert list(shop["named"].columns) == ["thing", "amount", "copies"]
    shop.sql("insert into sale values ('jam', 3, null)")
    assert sorted(shop.sql("select * from named")) == [("jam", 4), ("jam", 4), ("tea", 4), ("tea", 4)]


def test_rows_come_in_the_order_that_is_asked_for(shop: lftj.Database) -> None:
    shop.sql("create table r (a int, b text)")
    shop.sql("insert into r values (2, 'b'), (null, 'c'), (1, 'a'), (2, 'a'), (1, null)")

    def rows(tail: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in shop.sql(f"select a, b from r {tail}")]

    assert rows("order by a, b") == [(1, "a"), (1, None), (2, "a"), (2, "b"), (None, "c")]
    assert rows("order by a desc, b desc") == [(2, "b"), (2, "a"), (1, "a"), (1, None), (None, "c")]
    assert rows("order by a nulls first, b desc nulls first") == [(None, "c"), (1, None), (1, "a"), (2, "b"), (2, "a")]
    assert rows("order by b limit 2 offset 1")[0][1] == "a"
    assert rows("order by a, b limit 0") == []
    assert rows("order by a desc, b limit 1") == [(2, "a")]
    assert len(rows("limit 3")) == 3
    assert [tuple(row) for row in shop.sql("select b from r order by a, b limit 2")] == [("a",), (None,)]


def test_questions_about_one_moment(shop: lftj.Database) -> None:
    snapshot = shop.snapshot()
    before = [list(shop.sql(text)) for text in ("select count(*) from item", "select name from item order by name")]
    shop.sql("delete from item where name = 'tea'")
    asked = "begin; select 1; select count(*) from item; commit"
    assert [list(snapshot.sql(asked)), list(snapshot.sql("select name from item order by name"))] == before
    assert list(snapshot.sql("select name from item where name = $name", name="tea")) == [("tea",)]
    assert list(shop.sql("select name from item where name = 'tea'")) == []


@pytest.mark.parametrize("text", ["delete from item", "select 1; create table x (a int)", "truncate item"])
def test_a_snapshot_does_not_change(shop: lftj.Database, text: str) -> None:
    snapshot = shop.snapshot()
    with pytest.raises(TransactionError, match="over a snapshot"):
        snapshot.sql(text)
    assert sorted(snapshot.sql("select name from item")) == sorted(shop.sql("select name from item"))
    with pytest.raises(lftj.ProgramError, match="unknown table `nix`"):
        snapshot.sql("select * from nix")


def test_what_was_can_be_asked_in_sql(tmp_path: Path) -> None:
    with lftj.Database(path=tmp_path / "t.lftj", retain=10) as db:
        db.sql("create table t (a int primary key); insert into t values (1), (2)")
        then = db.seq
        db.sql("delete from t where a = 1")
        assert list(db.at(then).sql("select sum(a) as s from t")) == [(3,)]
        assert list(db.at(db.seq).sql("select sum(a) as s from t")) == [(2,)]


def test_rows_are_there_as_often_as_sql_says(shop: lftj.Database) -> None:
    assert list(shop.sql("select item from sale order by item")) == [("ink",), ("jam",), ("tea",), ("tea",)]
    assert list(shop.sql("select distinct item from sale order by item")) == [("ink",), ("jam",), ("tea",)]


def test_what_columns_without_an_alias_are_called(shop: lftj.Database) -> None:
    """`count(*)` was called `*`, `1 + 1` was `1`, and `upper('ink')` was `ink`."""
    asked = "count(*), 1 + 1, upper('ink'), max(name), extract(year from date '2026-11-29'), (count(*))"
    called = ["count(*)", "1 + 1", "upper('ink')", "max(name)", "extract(year from cast('2026-11-29' as date))"]
    assert list(shop.sql(f"select {asked} from item").columns) == [*called, "(count(*))"]
    assert list(shop.sql("select name, cast(name as text), (name) from item").columns) == ["name", "name_1", "name_2"]
    shop.sql("create view many as select count(*), 1 + 1 from item")
    assert list(shop.sql('select "1 + 1", "count(*)" from many')) == [(2, 3)]
    first = shop.sql("select count(*), upper(name) from item group by name order by name limit 1")
    assert list(first.columns) == ["count(*)", "upper(name)"]
    over = shop.sql("select 1 + 1, 1 + row_number() over (order by name) from item")
    assert list(over.columns) == ["1 + 1", "1 + row_number() over (order by name)"]
    assert list(shop.sql("select count(*), name from item group by rollup (name)").columns) == ["count(*)", "name"]


def test_the_forms_of_an_answer(shop: lftj.Database) -> None:
    answer = shop.sql("select name, price, price is null as free from item order by name desc")
    assert answer.columns == {"name": "symbol", "price": "decimal(8,2)?", "free": "bool"} or list(answer.columns) == [
        "name",
        "price",
        "free",
    ]
    assert len(answer) == 3
    assert answer.arrow().column("name").to_pylist() == ["tea", "jam", "ink"]
    assert pa.table(answer).num_rows == pl.DataFrame(answer).height == len(answer.df()) == 3
    assert answer.pl()["free"].to_list() == [False, False, True]
    assert isinstance(answer.df(), pd.DataFrame)
    assert "tea" in repr(answer)
    assert "<table" in answer._repr_html_()
    assert "tea" in answer._repr_html_()
    numbers = shop.sql("select qty as q, qty as r from sale where qty > 0 order by qty").numpy()
    assert np.array_equal(numbers, [[1, 1], [2, 2], [2, 2]])
    many = lftj.Database()
    many.sql("create table n (a int)")
    many.load("n", np.arange(30).reshape(-1, 1))
    shown = repr(many.sql("select a from n order by a"))
    assert shown.splitlines()[0].strip() == "a"
    assert shown.endswith("... 20 rows more")


def test_a_query_leaves_no_trace(shop: lftj.Database) -> None:
    len(shop["revenue"])
    before, state = list(shop), shop._state
    shop.sql("select i.name, r.n from item i left join revenue r on r.item = i.name where r.n in (1, 4)")
    assert list(shop) == before
    assert shop._state is state
    shop.rules(".decl select(x:number)  select(1).")
    assert list(shop.sql("select item from revenue where n = 1")) == [("jam",)]
    assert list(shop["select"]) == [(1,)]


def test_what_is_returned(shop: lftj.Database) -> None:
    changed = shop.sql("insert into sale values ('jam', 2, null); delete from item where name = 'ink'")
    assert set(changed) == {"sale", "item", "revenue"}
    answer = shop.sql("insert into sale values ('jam', 3, null); select n from revenue where item = 'jam'")
    assert list(answer) == [(6,)]
    assert list(shop.sql("select 1 as a; select 2 as b")) == [(2,)]
    assert not shop.sql("delete from sale where item = 'nothing'")


def test_a_transaction_sees_what_it_did(shop: lftj.Database) -> None:
    with shop.transaction() as tx:
        assert tx.sql("insert into sale values ('oil', 9, null)") is None
        seen = tx.sql("select n from revenue where item = 'oil'")
        assert seen is not None
        assert list(seen) == [(9,)]
        tx.insert("sale", [("oil", 1, None)])
        tx.sql("create view oil as select qty from sale where item = 'oil'")
        seen = tx.sql("select sum(qty) as n from oil")
        assert seen is not None
        assert list(seen) == [(10,)]
        assert "oil" not in shop
        with pytest.raises(TransactionError):
            shop.sql("delete from sale")
    assert list(shop["revenue"])[2] == ("oil", 10) or ("oil", 10) in shop["revenue"]
    assert set(tx.delta["oil"].inserted) == {(9, 1), (1, 1)}


def test_views_are_replaced_and_dropped(shop: lftj.Database) -> None:
    shop.sql("create view top as select item from revenue where n > 1")
    assert list(shop.sql("select * from top")) == [("tea",)]
    changed = shop.sql("create or replace view revenue as select item, max(qty) as n from sale group by item")
    assert set(changed["revenue"].inserted) == {("tea", 2)}
    assert set(changed["revenue"].erased) == {("tea", 4)}
    assert list(shop.sql("select * from top")) == [("tea",)]
    with pytest.raises(lftj.ProgramError, match="`revenue` is read by `top`"):
        shop.sql("create or replace view revenue as select item from sale")
    with pytest.raises(lftj.ProgramError, match="`drop view`: `revenue` is read by `top`"):
        shop.sql("drop view revenue")
    with pytest.raises(lftj.ProgramError, match="`drop table`: `sale` is read by `revenue`"):
        shop.sql("drop table sale")
    with pytest.raises(lftj.ProgramError, match="there is already a view `revenue`"):
        shop.sql("create view Revenue as select 1 as a")
    shop.sql("drop view top; create or replace view revenue as select qty from sale; drop view if exists top")
    assert sorted(shop.sql("select qty from revenue where qty is not null")) == [(1,), (2,), (2,)]
    shop.sql("insert into sale values ('x', 3, null)")
    assert len(shop.sql("select qty from revenue")) == 5
    shop.sql("drop view revenue; drop table sale")
    assert list(shop) == ["item"]
    assert [name for name in shop._relations if name.startswith("@")] == []


def test_a_failed_text_leaves_everything(shop: lftj.Database) -> None:
    names, rows, state = list(shop), list(shop["sale"]), shop._state
    with pytest.raises(lftj.ProgramError):
        shop.sql("create view v as select item from sale; delete from sale; drop view revenue; select nothing from v")
    assert (list(shop), list(shop["sale"])) == (names, rows)
    assert shop._state is state


def test_tables_and_views_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(path=path) as db:
        db.sql(SHOP)
        db.sql('create view "odd names" as select item, round(sum(qty) * 1.5) from sale group by item')
        before = {name: set(db[name]) for name in db}
    with lftj.Database(path=path) as db:
        assert {name: set(db[name]) for name in db} == before
        db.sql("create or replace view revenue as select item from sale; insert into sale values ('tea', 1, null)")
        db.sql('drop view "odd names"; drop table item; create table item (id int primary key)')
        before = {name: set(db[name]) for name in db}
    with lftj.Database(path=path) as db:
        assert {name: set(db[name]) for name in db} == before
        assert len(db.sql("select * from revenue")) == 5


def test_views_with_wrong_columns_are_refused(shop: lftj.Database) -> None:
    with pytest.raises(lftj.ProgramError, match="the view `v` has two columns `A`"):
        shop.sql("create view v (a, A) as select item, qty from sale")
    with pytest.raises(lftj.ProgramError, match="1 name for 2 columns of the view `v`"):
        shop.sql("create view v (a) as select item, qty from sale")
    shop.sql("create view v as select item from sale order by item")
    assert len(shop.sql("select * from v")) == 4


@pytest.mark.parametrize(
    ("text", "what", "line", "column"),
    [
        ("select item\nfrm sale", "syntax error at `frm`", 2, 1),
        ("select item from", "syntax error at `from`", 1, 13),
        ("select ((qty) from sale", "syntax error: a parenthesis that is never closed", 1, 8),
        ("select qty) from sale", "syntax error: a parenthesis that nothing opened", 1, 11),
        ("select 'abc", "syntax error: this is never closed", 1, 8),
        ("select 1 /* and so", "syntax error: this is never closed", 1, 10),
        ('select "a from sale', "syntax error: this is never closed", 1, 8),
        ("selec 1", "syntax error at `selec`", 1, 1),
        ("", "there is no statement", 0, 0),
        ("-- nothing", "there is no statement", 0, 0),
        ("begin; delete from sale", "`begin` is not a statement of lftj", 1, 1),
        ("delete from sale; commit", "`commit` is not a statement of lftj", 1, 19),
        ("rollback", "`rollback` is not a statement of lftj", 1, 1),
        ("explain select 1", "not supported yet: `explain`", 1, 1),
        ("show tables", "not supported yet: `show`", 1, 1),
    ],
)
def test_errors_of_syntax_have_a_place(shop: lftj.Database, text: str, what: str, line: int, column: int) -> None:
    rows = list(shop["sale"])
    with pytest.raises(lftj.ProgramError) as caught:
        shop.sql(text)
    found = caught.value.diagnostics[0]
    assert found.what == what
    assert (found.span.line, found.span.column if line else 0) == (line, column)
    assert found.remedy
    assert not line or "^" in str(caught.value)
    assert list(shop["sale"]) == rows


def test_transactions_of_sql_name_the_remedy(shop: lftj.Database) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        shop.sql("begin")
    assert "with db.transaction() as tx:" in caught.value.diagnostics[0].remedy


def test_how_a_view_is_kept_may_be_asked_for(shop: lftj.Database) -> None:
    shop.sql("create view n as select item, count(*) as n from sale group by item", maintain={"n": "recompute"})
    len(shop["n"])
    with shop.transaction() as tx:
        tx.sql("insert into sale values ('tea', 1, null)")
    assert tx.stats["heads"]["n"]["strategy"] == "recompute"
    shop.sql(
        "create view s as select day, sum(qty) as n from sale where item in ('tea', 'jam') group by day",
        maintain={"s": "triggers"},
    )
    len(shop["s"])
    with shop.transaction() as tx:
        tx.sql("insert into sale values ('tea', 1, null)")
    kept = tx.stats["heads"]["s"]["parts"]
    assert "triggers" in {part["strategy"] for part in kept.values()}
    with pytest.raises(lftj.UnknownRelationError if hasattr(lftj, "UnknownRelationError") else KeyError):
        shop.sql("create view m as select 1 as a", maintain={"n": "delta"})


def test_without_the_package_the_remedy_is_told() -> None:
    code = """
import sys
sys.modules["sqlglot"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "sqlglot" else found(name, *more)
import lftj
try:
    lftj.Database().sql("select 1")
except lftj.errors.Error as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == (
        "SQL needs the package sqlglot, which is not installed\n"
        "  why: lftj parses SQL with it, and rules without it\n"
        '  do: pip install "lftj[sql]"\n'
    )


def test_a_version_of_sqlglot_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_installed", lambda: (30, 19, 5))
    with pytest.raises(running.MissingPackageError) as caught:
        lftj.Database().sql("select 1")
    told = str(caught.value)
    assert told.startswith("SQL needs sqlglot 30.20 or later, and 30.")
    assert told.endswith('  do: pip install "lftj[sql]"')


def test_importing_lftj_imports_no_parser() -> None:
    code = "import sys, lftj; lftj.Database('.decl e(x:number)'); print('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_misspelt_word_is_named_with_what_was_meant(shop: lftj.Database) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        shop.sql("create tabel t (a int)")
    assert (
        str(caught.value)
        == """<sql>:1:8: error: syntax error at `tabel`
    create tabel t (a int)
           ^^^^^
  why: a word of SQL is due here, and `tabel` is none that has a meaning in this place
  do: did you mean `table`?"""
    )


@pytest.mark.parametrize(
    ("text", "column", "remedy"),
    [
        ("creat table t (a int)", 1, "did you mean `create`?"),
        ("create vew v as select 1 as x", 8, "did you mean `view`?"),
        ("drop tabel sale", 6, "did you mean `table`?"),
        ("selct * from sale", 1, "did you mean `select`?"),
        ("select * form sale", 10, "did you mean `from`?"),
        ("select * from sale wher qty = 1", 20, "did you mean `where`?"),
        ("select item from sale gruop by item", 23, "did you mean `group`?"),
        ("select item from sale order item", 23, "write `order by`"),
        ("select item from sale order by item dsec", 37, "did you mean `desc`?"),
        ("select item from sale limt 3", 23, "did you mean `limit`?"),
        ("select * from sale jon other on a = b", 20, "did you mean `join`?"),
        ("select * from sale left other on a = b", 20, "write `left join`"),
        ("insert int sale values (1)", 8, "did you mean `into`?"),
        ("insert into sale vales (1)", 18, "did you mean `values`?"),
        ("updat sale set qty = 1", 1, "did you mean `update`?"),
        ("delete form sale", 8, "did you mean `from`?"),
        ("create table t (a int primay key)", 23, "did you mean `primary`?"),
        ("create table t (a int not nul)", 27, "did you mean `null`?"),
        ("create table t (a itn)", 17, "did you mean `int`?"),
        ("drop sale", 1, "write `drop table ...` or `drop view ...`"),
        ("explain select 1", 1, "call `db.explain(view)`, or `lftj explain report.sql view` in the shell"),
    ],
)
def test_what_is_meant_is_suggested(shop: lftj.Database, text: str, column: int, remedy: str) -> None:
    """A suggestion is only made if the statement can be read with it."""
    with pytest.raises(lftj.ProgramError) as caught:
        shop.sql(text)
    found = caught.value.diagnostics[0]
    assert (found.span.line, found.span.column, found.remedy) == (1, column, remedy)


@pytest.mark.parametrize("join", ["join", "inner join", "left join", "full join"])
def test_a_join_says_which_rows_belong_together(shop: lftj.Database, join: str) -> None:
    with pytest.raises(lftj.ProgramError, match="a join without `on` or `using`"):
        shop.sql(f"select 1 as x from sale a {join} sale b")
    assert len(shop.sql("select 1 as x from sale a, sale b")) == len(shop.sql("select 1 as x from sale")) ** 2
