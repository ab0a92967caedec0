"""Tables of SQL: what `create table` declares, what it refuses and where, keys, and what `drop` takes.

Catches: a type, a null or a key that is declared as another, a promise that nobody keeps, a table
that is half there after an error, rows of a dropped table that come back with a new one of its name.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pytest

import lftj
from lftj.errors import EvaluationError, KeyConflictError
from lftj.language import ast
from lftj.sql.catalogue import Catalogue

pytest.importorskip("sqlglot")


def shown(db: lftj.Database) -> list[str]:
    return [str(db._relations[name].schema) for name in db]


def test_what_create_table_declares() -> None:
    db = lftj.Database()
    db.sql("""
        create table sale (item text not null, qty int, at timestamp, price decimal(10, 2) not null);
        create table city (id bigint primary key, name varchar(20), founded date not null);
        create table road (src int, dst int, km double, primary key (dst, src));
        create table kinds (a ubigint, b float, c boolean, d interval, e uuid, f blob, g timestamptz,
            h decimal, i smallint);
    """)
    assert shown(db) == [
        "sale(item:symbol, qty:number?, at:timestamp?, price:decimal(10,2)) -> copies:number",
        "city(id:number, name:symbol?, founded:date)",
        "road(src:number, dst:number, km:float?)",
        'kinds(a:unsigned?, b:float?, c:bool?, d:duration?, e:uuid?, f:bytes?, g:timestamp("UTC")?,'
        " h:decimal(18,3)?, i:number?) -> copies:number",
    ]
    assert db._relations["sale"].schema.bag
    assert db._relations["road"].schema.key == (1, 0)
    catalogue = Catalogue(db._schemas(), db._strata.by_head)
    road, sale = catalogue.table("ROAD"), catalogue.table("sale")
    assert road is not None
    assert sale is not None
    assert road.key == ("dst", "src")
    assert [column.name for column in sale.columns] == ["item", "qty", "at", "price"]
    assert (sale.bag, sale.view, sale.key) == (True, False, ())


@pytest.mark.parametrize(("type", "most"), [("utinyint", 255), ("usmallint", 65535), ("uinteger", 4294967295)])
def test_a_small_unsigned_type_has_the_range_of_duckdb(type: str, most: int) -> None:
    db = lftj.Database()
    db.sql(f"create table t (id int primary key, u {type}); insert into t values (1, 0), (2, {most}), (3, null)")
    assert list(db.sql(f"select cast(u as {type}) as u from t order by id")) == [(0,), (most,), (None,)]
    for wrong in (-1, most + 1):
        shown = f"`t` breaks `check (u BETWEEN 0 AND {most})`: id = {{}}, u = {wrong}"
        with pytest.raises(lftj.DataError) as broken:
            db.sql(f"insert into t values (4, {wrong})")
        assert broken.value.what == shown.format(4)
        with pytest.raises(lftj.DataError) as broken, db.transaction() as tx:
            tx.upsert("t", [(1, wrong)])
        assert broken.value.what == shown.format(1)
        for value in (str(wrong), f"'{wrong}'"):
            with pytest.raises(lftj.ProgramError) as refused:
                db.sql(f"insert into t values (4, cast({value} as {type}))")
            assert refused.value.what == f"`{wrong}` is no {type}"
        with pytest.raises(EvaluationError):
            db.sql(f"select cast(u + id * $more as {type}) from t where id = 2", more=1 if wrong > 0 else -wrong - most)
    assert list(db["t"]) == [(1, 0), (2, most), (3, None)]


@pytest.mark.parametrize(
    ("to", "fit", "beyond"),
    [
        ("utinyint", "n between 0 and 255", {"256": "`256` is not from 0 to 255", "-1": "`-1` is not from 0 to 255"}),
        ("ubigint", "n >= 0", {"-1": "`-1` is less than 0"}),
        ("bigint", "u < 256", {"u": f"`{2**63}` is greater than {2**63 - 1}"}),
    ],
)
def test_casts_of_whole_numbers_make_no_texts(to: str, fit: str, beyond: dict[str, str]) -> None:
    """Each number that was cast came into the dictionary as a text, and what was wrong with it was said of a text."""
    db = lftj.Database()
    db.sql("create table t (n bigint not null, u ubigint not null); insert into t values (0, 0), (255, 255), (-1, 0)")
    db.sql("insert into t values (256, 9223372036854775808), (9223372036854775807, 18446744073709551615)")
    value = "u" if to == "bigint" else "n"
    found = list(db.sql(f"select {value}::{to} as x from t where {fit} and n < 256 order by 1"))
    assert found == ([(0,), (0,), (255,)] if to == "bigint" else [(0,), (255,)])
    for number, what in beyond.items():
        where = "u > 256" if number == "u" else f"n = {number}"
        with pytest.raises(EvaluationError) as raised:
            db.sql(f"select {value}::{to} as x from t where {where}")
        assert raised.value.what == what
        assert "text" not in str(raised.value)
    assert len(db._evaluator.symbols) == 0


@pytest.mark.parametrize(("other", "name"), [("uint8", "utinyint"), ("uint16", "usmallint"), ("uint64", "ubigint")])
def test_names_of_unsigned_types_that_say_how_many_bits_they_have(other: str, name: str) -> None:
    made = []
    for type in (other, name):
        db = lftj.Database()
        db.sql(f"create table t (a {type})")
        made.append((shown(db), list(db._relations)))
    assert made[0] == made[1]


@pytest.mark.parametrize("name", ["d  e\t", "d, c", '"d""', "d,", ")("])
def test_a_key_of_columns_with_blanks_and_signs_in_their_names(name: str) -> None:
    db, other = lftj.Database(), '"' + name.replace('"', '""') + '"'
    db.sql(f'create table t ("A (b)" int, c int, {other} int, primary key ({other}, "A (b)"))')
    db.sql(f'insert into t values (1, 2, 3); insert into t values (4, 5, 3) on conflict ({other}, "A (b)") do nothing')
    with pytest.raises(KeyConflictError):
        db.sql("insert into t values (1, 9, 3)")
    assert list(db["t"]) == [(1, 2, 3), (4, 5, 3)]


def test_a_key_as_earlier_versions_wrote_it() -> None:
    """In files: without quotes, whatever blanks names have."""
    names = tuple(ast.Attribute(name, "number", ast.NOWHERE) for name in ("a b", "c"))
    db = lftj.Database()
    db.rules(ast.Program((ast.Declaration("t", names, ("primary-key (a b, c)",), ast.NOWHERE),)))
    assert db._state.relations["t"].schema.key == (0, 1)


def test_constants_of_every_type() -> None:
    db = lftj.Database()
    db.sql("""
        create table t (n int, u ubigint, f double, s text, b boolean, d date, ts timestamp, p decimal(8, 2), i uuid);
        insert into t values
            (-1, 7, 1.5, 'it''s', true, '2024-05-31', timestamp '2024-05-31 10:00:00', 1.5,
             '123e4567-e89b-12d3-a456-426614174000'),
            (null, null, null, null, null, null, null, null, null),
            (2, 0, -3, '', false, date '0001-01-01', '2024-05-31', -0.25, null);
    """)
    assert set(db["t"]) == {
        (
            *(-1, 7, 1.5, "it's", True, dt.date(2024, 5, 31), dt.datetime(2024, 5, 31, 10), Decimal("1.50")),
            *(UUID("123e4567-e89b-12d3-a456-426614174000"), 1),
        ),
        (*[None] * 9, 1),
        (2, 0, -3.0, "", False, dt.date(1, 1, 1), dt.datetime(2024, 5, 31), Decimal("-0.25"), None, 1),
    }


@pytest.mark.parametrize(
    ("text", "feature", "place"),
    [
        ("create table t (a int generated always as identity)", "identity columns", "1:17"),
        ("create table t (a struct(x int))", "the type `struct(x int)`", "1:26"),
        ("create table t (a decimal(30, 2))", "the type `DECIMAL(30, 2)`", "1:27"),
        ("create temporary table t (a int)", "temporary tables", "1:24"),
        ("create table t (a int) with no data", "`with no data`", "1:14"),
        ("create table s.t (a int)", "names with a schema in front", "1:14"),
        ("create index i on t (a)", "`create index`", "1:14"),
        ("alter table t add column b int", "`alter`", "1:1"),
        ("drop table if exists t cascade", "`cascade`", "1:1"),
        ("drop schema s", "`drop schema`", "1:1"),
        ("vacuum", "`vacuum`", "1:1"),
    ],
)
def test_what_is_refused_by_name(text: str, feature: str, place: str) -> None:
    db = lftj.Database()
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(f"{text}; create table other (a int)")
    assert caught.value.diagnostics[0].what == f"not supported yet: {feature}"
    assert str(caught.value.diagnostics[0].span).startswith(f"<sql>:{place}")
    assert list(db) == []


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("create table t (a int, A text)", "column `A` of `t` is declared twice", "give every column its own name"),
        (
            "create table t (a int, primary key (b))",
            "the primary key of `t` names `b`, which is no column",
            "name columns of the table",
        ),
        (
            "create table t (a int primary key, b int primary key)",
            "`t` has two primary keys",
            "write one `primary key (a, b)` behind the columns",
        ),
        (
            "create table City (a int)",
            "there is already a table `city`",
            "choose another name, or `drop table city` first",
        ),
        ("drop table cty", "there is no table `cty`", "did you mean `city`?"),
        ("drop view city", "`city` is a table, not a view", "write `drop table city`"),
    ],
)
def test_definitions_that_are_wrong(text: str, what: str, remedy: str) -> None:
    db = lftj.Database()
    db.sql("create table city (id int primary key, name text)")
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(text)
    found = caught.value.diagnostics[0]
    assert (found.what, found.remedy) == (what, remedy)
    assert found.span.line == 1
    assert shown(db) == ["city(id:number, name:symbol?)"]


def test_if_exists_and_if_not_exists() -> None:
    db = lftj.Database()
    db.sql("create table t (a int); create table if not exists T (b text); drop table if exists u")
    assert shown(db) == ["t(a:number?) -> copies:number"]
    db.sql("drop table if exists t, u")
    assert list(db) == []


def test_a_table_of_the_same_name_begins_empty() -> None:
    db = lftj.Database()
    db.sql("create table t (a int); insert into t values (1), (1)")
    db.sql("drop table t; create table t (a text primary key, b int); insert into t values ('x', 1)")
    assert list(db["t"]) == [("x", 1)]
    db.sql("drop table t; create table t (a text primary key, b int)")
    assert list(db["t"]) == []
    db.sql("insert into t values ('y', 2)")
    assert list(db["t"]) == [("y", 2)]


def test_a_failed_text_leaves_the_table_that_it_dropped() -> None:
    db = lftj.Database()
    db.sql("create table t (a int); insert into t values (1), (1)")
    with pytest.raises(lftj.ProgramError):
        db.sql("drop table t; create table t (a text); insert into t values ('x'); insert into u values (1)")
    assert list(db["t"]) == [(1, 2)]
    with db.transaction() as tx:
        tx.sql("insert into t values (2)")
        with pytest.raises(lftj.ProgramError):
            tx.sql("drop table t; insert into t values ('x')")
        tx.sql("insert into t values (3)")
    assert list(db["t"]) == [(1, 2), (2, 1), (3, 1)]


def test_keys_are_checked_when_the_text_ends() -> None:
    db = lftj.Database()
    db.sql("create table city (name text, id int primary key); insert into city values ('Rome', 1), ('Oslo', 2)")
    for text in ("insert into city values ('Bonn', 2)", "insert into city values ('Bonn', 3), ('Bari', 3)"):
        with pytest.raises(KeyConflictError, match="two rows with the key id = "):
            db.sql(text)
    for text in ("insert into city values ('Oslo', 2)", "insert into city values ('Bonn', 3), ('Bonn', 3)"):
        with pytest.raises(KeyConflictError, match=r"would have the row city\(.*\) twice"):
            db.sql(text)
    assert set(db["city"]) == {("Rome", 1), ("Oslo", 2)}
    db.sql("delete from city; insert into city values ('Bonn', 2)")
    assert list(db["city"]) == [("Bonn", 2)]


def test_a_table_as_a_query() -> None:
    db = lftj.Database()
    db.sql("""
        create table u (a int not null, copies text);
        insert into u values (1, 'x'), (1, 'x'), (2, null);
        create table t as select a, copies, a * 1.5 as f, null as n from u;
        create table first (p, q) as select * from u order by a desc limit 2;
        create table if not exists first as select 1;
        create table like_u as from u with no data;
        create table twice as select a, a from u;
    """)
    assert shown(db)[1:] == [
        "t(a:number?, copies:symbol?, f:decimal(18,1)?, n:number?) -> copies_1:number",
        "first(p:number?, q:symbol?) -> copies:number",
        "like_u(a:number?, copies:symbol?) -> copies_1:number",
        "twice(a:number?, a_1:number?) -> copies:number",
    ]
    assert list(db["first"]) == [(1, "x", 1), (2, None, 1)]
    assert list(db["t"]) == [(1, "x", Decimal("1.5"), None, 2), (2, None, Decimal("3.0"), None, 1)]
    assert not len(db["like_u"])
    with pytest.raises(lftj.ProgramError, match="1 name for 2 columns of the table `s`"):
        db.sql("create table s (p) as select * from u")
    with pytest.raises(lftj.ProgramError, match="there is already a table `t`"):
        db.sql("create table t as select 1")


def test_a_table_in_the_place_of_another() -> None:
    db = lftj.Database()
    db.sql("create or replace table t (a int); insert into t values (1), (2)")
    db.sql("create or replace table t as select a + 1 as b from t")
    assert list(db["t"]) == [(2, 1), (3, 1)]
    db.sql("create or replace table t (a text primary key); create view v as select a from t")
    assert list(db["t"]) == []
    for text, what in (
        ("create or replace table t as select 1", "`create or replace table`: `t` is read by `v`"),
        ("create or replace table v as select 1", "there is already a view `v`"),
    ):
        with pytest.raises(lftj.ProgramError) as caught:
            db.sql(text)
        assert caught.value.diagnostics[0].what == what
    with pytest.raises(lftj.ProgramError):
        db.sql("drop view v; create or replace table t as select 1 as n; insert into t values ('x')")
    assert shown(db) == ["t(a:symbol)", "v(a:symbol)"]


def test_relations_of_rules_are_tables() -> None:
    db = lftj.Database(".decl edge(src:number, dst:number)  .decl price(item:symbol) -> cost:float")
    db.sql("insert into edge values (1, 2), (1, 2), (2, 3); insert into price (cost, item) values (1.5, 'tea')")
    assert list(db["edge"]) == [(1, 2), (2, 3)]
    assert db["price"]["tea"] == 1.5
    with pytest.raises(KeyConflictError):
        db.sql("insert into price values ('tea', 2)")
    db.rules("twice(x, z) :- edge(x, y), edge(y, z).")
    with pytest.raises(lftj.ProgramError, match="`twice` is a view, and its rows cannot be changed"):
        db.sql("insert into twice values (1, 2)")
    with pytest.raises(lftj.ProgramError, match="`drop table`: `edge` is read by `twice`"):
        db.sql("drop table edge")
    assert list(db["twice"]) == [(1, 3)]


VIEWS = {
    "grouped": "select item, sum(qty) as n from sale group by item",
    "distinct_rows": "select distinct item, qty from sale",
    "bag": "select item, qty from sale",
}


@pytest.mark.parametrize("query", VIEWS.values(), ids=VIEWS)
def test_nothing_is_put_into_a_view(query: str) -> None:
    db = lftj.Database()
    db.sql(f"create table sale (item int, qty int); insert into sale values (1, 2); create view v as {query}")
    rows = [(5, 5)]
    for put in (
        lambda: db.apply([("v", "+1", rows)]),
        lambda: db.apply([("v", -1, [(1, 2)])]),
        lambda: db.load("v", rows),
        lambda: db.rules("v(x, y) :- sale(x, y, _)." if query != VIEWS["bag"] else "v[x, y] = 1 :- sale(x, y, _)."),
        lambda: db.sql("insert into v values (5, 5)"),
        lambda: db.sql("delete from v"),
    ):
        with pytest.raises(lftj.Error, match=r"view|derive"):
            put()
    assert list(db.sql("select * from v")) == [(1, 2)]


def test_a_view_of_constants_is_a_view() -> None:
    db = lftj.Database()
    db.sql("create view one as select 1 as x")
    db.sql("create or replace view one as select 2 as x")
    assert list(db["one"]) == [(2,)]
    with pytest.raises(lftj.ProgramError, match="`one` is a view"):
        db.sql("insert into one values (3)")
    db.sql("drop view one")


def test_a_view_that_can_have_no_rows_is_a_view() -> None:
    db = lftj.Database()
    db.sql("create table t (a int not null); create view v as select distinct a from t where false")
    for put in (
        lambda: db.apply([("v", "+1", [(5,)])]),
        lambda: db.load("v", [(5,)]),
        lambda: db.rules("v(a) :- t(a, _)."),
        lambda: db.sql("insert into v values (5)"),
    ):
        with pytest.raises(lftj.Error, match="is a view"):
            put()
    assert list(db["v"]) == []
    db.sql("insert into t values (1); create or replace view v as select distinct a from t")
    assert list(db["v"]) == [(1,)]


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_table_goes_with_the_rules_that_read_it(evaluated: bool) -> None:
    """Rules that had not been evaluated yet were, once what they read was gone: a KeyError."""
    db = lftj.Database(".decl n(x:number, v:number?)  h[x] = max v : { n(x, v) }.  g(x) :- n(x, _).")
    db.load("n", [(1, 2), (1, None)])
    if evaluated:
        db.evaluate()
    with db.transaction() as tx:
        tx.remove_rules("h")
        tx.remove_rules("g")
        tx.sql("drop table n")
    assert list(tx.delta["h"].erased) == [(1, 2)]
    assert list(tx.delta["g"].erased) == [(1,)]
    assert set(db) == {"h", "g"}
    assert not len(db["h"])
