"""Changes by SQL against DuckDB: what tables hold after each text, as often as they hold it.

Catches: an update that sees its own rows, copies that get lost between an erase and an insert, null that is compared,
a statement that does not see those before it, a text that fails and leaves something behind.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import ArgumentError, KeyConflictError, ProgramError
from tests.conftest import JIT, examples
from tests.duckdb_databases import duckdb_database

pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

TABLES = """
create table t (a int, b int, c text);
create table k (id int primary key, b int, c text);
"""
CONSTANTS = st.sampled_from(("null", "0", "1", "2", "-1"))
TEXTS = st.sampled_from(("null", "'x'", "'y'"))
NUMBERS = st.sampled_from(("a", "b", "a + 1", "b - a", "2", "null", "case when b = 1 then a else 0 end"))
CONDITIONS = st.sampled_from(
    (
        *("a = 1", "b is null", "a < b", "c = 'x'", "a in (0, 2)", "not (a = 1)", "b between 0 and 1 or c is not null"),
        *("a in (select b from k)", "exists (select * from k where k.id = t.a)", "b = (select max(id) from k)"),
    )
)
KEYED = st.sampled_from(("id = 1", "b is null", "id > b", "c = 'y'", "id in (select a from t)"))


KINDS = (
    *("insert", "insert", "copy", "update", "delete", "put", "put", "move", "take", "empty"),
    *("upsert", "upsert", "ignore", "replace", "update from", "update from", "delete using"),
)
# What `on conflict` sets; the table's own columns are meant where none is `excluded`.
SET = st.sampled_from(("b = excluded.b", "b = b + 1, c = excluded.c", "c = k.c || excluded.c", "b = excluded.id + k.b"))
UPDATES = st.sampled_from(
    (
        "update t set b = k.b, c = k.c from k where k.id = t.a",
        "update t as x set b = y.b + x.b from k as y where y.id = x.a and (x.b is null or y.c = 'x')",
        "update k set b = g.n, c = 'g' from (select a, count(*) as n from t group by a) as g where g.a = k.id",
        "update k set b = m.id from k as m join t on t.a = m.id where m.id = k.b",
        "update t set a = o.a from (select max(a) as a from t) as o, k where k.id = t.b",
    )
)
DELETES = st.sampled_from(
    (
        "delete from t using k where k.id = t.a and k.b >= t.b",
        "delete from t as x using t as y where x.a = y.b and y.c = 'x'",
        "delete from k using t, k as o where t.a = k.id and o.id = t.b",
    )
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(KINDS))
    if kind == "insert":
        rows = draw(st.lists(st.tuples(CONSTANTS, CONSTANTS, TEXTS), min_size=1, max_size=4))
        return f"insert into t values {', '.join('({}, {}, {})'.format(*row) for row in rows)}"
    if kind == "copy":
        return f"insert into t (b, a) select a, {draw(NUMBERS)} from t where {draw(CONDITIONS)}"
    if kind == "update":
        return f"update t set b = {draw(NUMBERS)}, c = {draw(TEXTS)} where {draw(CONDITIONS)}"
    if kind == "delete":
        return f"delete from t where {draw(CONDITIONS)}"
    if kind == "put":
        ids = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
        return f"insert into k values {', '.join(f'({i}, {draw(CONSTANTS)}, {draw(TEXTS)})' for i in ids)}"
    if kind in ("upsert", "ignore", "replace"):
        ids = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=kind == "upsert"))
        if kind == "replace":
            rows = ", ".join(f"({i}, {draw(CONSTANTS)})" for i in dict.fromkeys(ids))
            return f"insert or replace into k (id, b) values {rows}"
        rows = ", ".join(f"({i}, {draw(CONSTANTS)}, {draw(TEXTS)})" for i in ids)
        if kind == "ignore":
            first, last = draw(st.sampled_from((("or ignore ", ""), ("", " on conflict (id) do nothing"))))
            return f"insert {first}into k values {rows}{last}"
        given = draw(st.sampled_from((f"values {rows}", "select a, max(b), min(c) from t where a >= 0 group by a")))
        where = draw(st.sampled_from(("", " where k.b > 0", " where excluded.b <= k.b or k.c is null")))
        return f"insert into k {given} on conflict do update set {draw(SET)}{where}"
    if kind == "update from":
        return draw(UPDATES)
    if kind == "delete using":
        return draw(DELETES)
    if kind == "move":
        return f"update k set b = id, c = coalesce(c, 'z') where {draw(KEYED)}"
    if kind == "take":
        return f"delete from k where {draw(KEYED)}"
    return draw(st.sampled_from(("delete from t", "delete from k", "truncate t")))


def contents(db: lftj.Database) -> dict[str, Counter[Any]]:
    return {
        "t": Counter({tuple(row[:-1]): row[-1] for row in db["t"]}),
        "k": Counter(map(tuple, db["k"])),
    }


@pytest.mark.skipif(not JIT, reason="interpreted kernels take a minute for it")
@examples(60, 10, deadline=None)
@given(st.lists(st.lists(statements(), min_size=1, max_size=3), min_size=1, max_size=6))
def test_texts_do_what_duckdb_does(texts: list[list[str]]) -> None:
    db, rival = lftj.Database(), duckdb_database()
    db.sql(TABLES)
    rival.execute(TABLES)
    for text in texts:
        rival.execute("begin")
        refused = False
        try:
            for statement in text:
                rival.execute(statement)
            rival.execute("commit")
        except duckdb.ConstraintException:
            refused = True
            rival.execute("rollback")
        before = contents(db)
        try:
            changed = db.sql(";\n".join(text))
        except KeyConflictError:
            assert refused
            assert contents(db) == before
            continue
        except ProgramError:
            assert refused  # a key that is there twice gives a row two values, before anybody looks at keys
            assert contents(db) == before
            continue
        if refused:
            # DuckDB looks at keys after each statement, lftj at the end of the text: what went again is not in the way.
            assert any(not statement.startswith("insert") for statement in text)
            return
        after = contents(db)
        for name in ("t", "k"):
            rows = rival.execute(f"select * from {name}").fetchall()
            assert after[name] == Counter(rows)
            assert bool(changed[name]) == (after[name] != before[name])


def small() -> lftj.Database:
    db = lftj.Database()
    db.sql("""
        create table t (a int, b double, c text not null, d decimal(6, 2));
        insert into t values (1, 0.5, 'x', 1), (1, 0.5, 'x', 1), (2, null, 'y', null)
    """)
    return db


def test_an_update_takes_all_copies() -> None:
    db = small()
    changed = db.sql("update t set a = a + 1, b = a where c = 'x'")
    assert set(db["t"]) == {(2, 1.0, "x", 1, 2), (2, None, "y", None, 1)}
    assert len(changed["t"].erased) == len(changed["t"].inserted) == 1
    db.sql("update t set c = 'x', b = 1, d = 1")
    assert list(db["t"]) == [(2, 1.0, "x", 1, 3)]


def test_a_deleted_row_goes_with_all_copies() -> None:
    db = small()
    db.sql("delete from t as r where r.c = 'x' and r.a = 1")
    assert list(db["t"]) == [(2, None, "y", None, 1)]


def test_values_are_computed_and_cast_where_they_have_to_be() -> None:
    db = small()
    db.sql("delete from t; insert into t (c, a, b, d) values ('u' || 'v', 1 + 2, 7, 0.5 + 1)")
    assert [tuple(map(str, row)) for row in db["t"]] == [("3", "7.0", "uv", "1.50", "1")]
    db.sql("insert into t select a * 2, a, c, a from t")
    assert {tuple(map(str, row)) for row in db["t"]} == {
        ("3", "7.0", "uv", "1.50", "1"),
        ("6", "3.0", "uv", "3.00", "1"),
    }


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("insert into t values (1, 2, 'x')", "3 values for 4 columns of `t`", "1:23"),
        ("insert into t (a, z) values (1, 2)", "`t` has no column `z`", "1:19"),
        ("insert into t (a, A) values (1, 2)", "column `a` is named twice", "1:19"),
        ("insert into t (a) values (1)", "column `c` of `t` cannot be null", "1:13"),
        ("insert into t values (1, 1, null, 1)", "column `c` of `t` cannot be null", ""),
        ("insert into t values ('one', 1, 'c', 1)", "column `a` of `t`: one is not a number", "1:23"),
        ("insert into t values (1, 1, 'c', 12345.5)", "column `d` of `t`: 12345.5 does not fit", "1:34"),
        ("insert into t select 1, 2.0, 'x'", "3 columns for 4 columns of `t`", "1:22"),
        ("insert into t select a, b, null, d from t", "column `c` of `t` cannot be null", ""),
        (
            "insert into t select 1, 2.0, 'x', cast(12345.5 as decimal(8, 2))",
            "column `d` of `t`: 12345.50 does",
            "",
        ),
        ("update t set z = 1", "`t` has no column `z`", "1:14"),
        ("update t set a = 1, a = 2", "`a` is set twice", "1:21"),
        ("update t set c = null", "column `c` of `t` cannot be null", ""),
        ("delete from u", "there is no table `u`", "1:13"),
        ("delete from t using u where a = b", "unknown table `u`", "1:21"),
        ("update t set a = 1 from u", "unknown table `u`", "1:25"),
        ("update t set a = n from (values (1), (2)) as u (n)", "`update ... from` gives the row t(1, 0.5", "1:34"),
        ("insert into t values (1, 1, 'c', 1) returning a", "not supported yet: `returning`", ""),
        ("insert or replace into t values (1, 1, 'c', 1)", "`insert or replace` into `t`, which has no", "1:1"),
        ("insert or ignore into t values (1, 1, 'c', 1)", "`insert or ignore` into `t`, which has no", "1:1"),
        ("insert into t values (1, 1, 'c', 1) on conflict do nothing", "`on conflict` into `t`, which has no", "1:1"),
    ],
)
def test_changes_that_are_wrong(text: str, what: str, place: str) -> None:
    db = small()
    before = list(db["t"])
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(f"{text}; delete from t")
    found = caught.value.diagnostics[0]
    assert found.what.startswith(what)
    assert str(found.span).startswith(f"<sql>:{place}")
    assert list(db["t"]) == before


@pytest.mark.parametrize(
    ("refused", "remedy", "instead"),
    [
        (
            "merge into k using s on s.id = k.id when matched then update set n = s.n",
            "`insert or replace`",
            "insert or replace into k select id, n from s where id in (select id from k)",
        ),
        (
            "insert into k values (5, 5) returning id",
            "the rows that came and went",
            "insert into k values (5, 5)",
        ),
    ],
)
def test_what_is_refused_can_be_said_otherwise(refused: str, remedy: str, instead: str) -> None:
    db, rival = lftj.Database(), duckdb_database()
    for side in (db.sql, rival.execute):
        for text in (
            "create table k (id int primary key, n int)",
            "create table s (id int primary key, n int)",
            "insert into k values (1, 10), (2, 20)",
            "insert into s values (2, 21), (3, 31)",
        ):
            side(text)
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(refused)
    assert remedy in caught.value.diagnostics[0].remedy
    db.sql(instead)
    rival.execute(instead if refused.startswith("merge") else refused)
    assert list(db["k"]) == sorted(rival.execute("select * from k").fetchall())


def test_insert_or_replace_goes_by_the_key() -> None:
    db = lftj.Database()
    db.sql("create table k (name text, id int primary key); insert into k values ('a', 1), ('b', 2)")
    changed = db.sql(
        "insert or replace into k select name || 'x', id from k where id = 2; insert into k values ('c', 3)"
    )
    assert set(changed["k"].inserted) == {("bx", 2), ("c", 3)}
    db.sql("insert or replace into k values ('u', 1), ('v', 1), ('w', 4); delete from k where id = 3")
    assert set(db["k"]) == {("v", 1), ("bx", 2), ("w", 4)}


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("on conflict (n) do nothing", "(n) is no key of `k`", "1:55"),
        ("on conflict (z) do nothing", "`k` has no column `z`", "1:55"),
        ("on conflict do update set z = 1", "`k` has no column `z`", "1:68"),
        ("on conflict do update set n = excluded.z", "`k` has no column `z`", "1:72"),
        ("on conflict (id) where n > 1 do nothing", "not supported yet: `where` behind a key", "1:"),
        ("on conflict on constraint k_pk do nothing", "not supported yet: `on conflict on constraint`", "1:"),
        ("on conflict do update set id = null", "column `id` of `k` cannot be null", "1:"),
        (", (1, 'v') on conflict do update set n = 0", "the rows to be inserted into `k` have a key twice", "1:"),
    ],
)
def test_conflicts_that_are_wrong(text: str, what: str, place: str) -> None:
    db = lftj.Database()
    db.sql("create table k (name text, id int primary key, n int); insert into k values ('a', 1, 0)")
    with pytest.raises(lftj.ProgramError) as caught:
        db.sql(f"insert into k (id, name) values (1, 'u') {text}; delete from k")
    found = caught.value.diagnostics[0]
    assert found.what.startswith(what)
    assert str(found.span).startswith(f"<sql>:{place}")
    assert list(db["k"]) == [("a", 1, 0)]


def test_of_rows_with_one_key_values_have_an_order_and_a_query_has_none() -> None:
    db = lftj.Database()
    db.sql("create table k (id int primary key, n int); create table s (id int, n int)")
    db.sql("insert into s values (1, 1), (1, 2), (3, 3), (3, 3); insert or replace into k values (6, 6), (6, 7)")
    db.sql("insert into k values (5, 5), (5, 6) on conflict do nothing")
    db.sql("insert into k select * from s where id = 3 on conflict do nothing")
    assert list(db["k"]) == [(3, 3), (5, 5), (6, 7)]
    for text in ("insert or replace into k select * from s", "insert or ignore into k select * from s"):
        with pytest.raises(lftj.ProgramError, match=r"have a key twice: that of k\(1, "):
            db.sql(text)
    with pytest.raises(lftj.ProgramError, match=r"have a key twice: that of k\(3, "):
        db.sql("insert into k select * from s where id = 3 on conflict do update set n = 0")


def test_a_limit_holds_for_the_rows_that_are_inserted() -> None:
    db = lftj.Database()
    db.sql("create table t (a int, c text); insert into t values (1, 'x'), (2, 'y'), (3, 'y'), (3, 'y')")
    db.sql("create table u (a int); insert into u select a from t order by a desc limit 1")
    assert list(db["u"]) == [(3, 1)]
    db.sql("delete from u; insert into u select 1 from t order by c desc, a limit 2 offset 1")
    assert list(db["u"]) == [(1, 2)]
    db.sql("delete from u; insert into u select a from t order by c")
    assert list(db["u"]) == [(1, 1), (2, 1), (3, 2)]


def test_begin_and_commit_stand_around_a_whole_text() -> None:
    db = small()
    changed = db.sql("begin transaction; delete from t where a = 2; commit;")
    assert len(changed["t"].erased) == 1
    assert list(db.sql("begin; select count(*) as n from t; commit")) == [(2,)]
    with pytest.raises(lftj.ProgramError, match="there is no table `u`"):
        db.sql("begin; delete from t; delete from u; commit")
    for text in (
        "begin; delete from t",
        "begin; delete from t; rollback",
        "begin; delete from t; commit; delete from t",
        "begin; delete from t; commit; begin; delete from t; commit",
        "begin; commit",
    ):
        with pytest.raises(lftj.ProgramError, match="is not a statement of lftj"):
            db.sql(text)
    with db.transaction() as tx, pytest.raises(lftj.ProgramError, match="`begin` is not a statement of lftj"):
        tx.sql("begin; delete from t; commit")
    assert len(db["t"]) == 1


def test_parameters_are_values() -> None:
    db = small()
    name = "x'; delete from t; --"
    db.sql("insert into t (a, c) values ($n, $name)", n=7, name=name)
    assert list(db.sql("select a from t where c = $name and a < $n", name=name, n=8)) == [(7,)]
    assert list(db.sql("select count(*) as n from t where c = $c", c="x")) == [(2,)]
    db.sql("delete from t where a = $a", a=1)
    assert {row[0] for row in db["t"]} == {2, 7}
    with pytest.raises(ArgumentError, match="the parameter `\\$n` has no value"):
        db.sql("select a from t where a = $n")
    with pytest.raises(ArgumentError, match="the text has no parameter `\\$m`"):
        db.sql("select a from t where a = $n", n=1, m=2)
    with pytest.raises(ArgumentError, match="none stands outside of quotes"):
        db.sql("select '$m' as x from t", m=2)
    with pytest.raises(ArgumentError, match="`\\$n` cannot be \\[1, 2\\]"):
        db.sql("select a from t where a = $n", n=[1, 2])
    with pytest.raises(lftj.ProgramError, match="a parameter without a name"):
        db.sql("select a from t where a = ?")


def test_durations_and_bytes_are_parameters() -> None:
    """Durations were refused wherever they stood, and bytes in `values`, where a text with a cast was read as hex."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, at timestamp, d interval, b blob)")
    hour = dt.timedelta(hours=1)
    db.sql("insert into t values (1, '2024-01-01', $d, $b), (2, null, $e, '00ff'::blob)", d=hour, e=-3 * hour, b=b"a\0")
    assert list(db.sql("select id, d, b from t")) == [(1, hour, b"a\0"), (2, -3 * hour, b"00ff")]
    assert list(db.sql("select at + $d as x from t where d = $d", d=hour)) == [(dt.datetime(2024, 1, 1, 1),)]
    assert list(db.sql("select id from t where b = $b", b=b"00ff")) == [(2,)]


def test_a_text_becomes_a_decimal_as_a_number_does() -> None:
    """Halves went to the even digit, where those of decimals and floats go away from 0."""
    db = lftj.Database()
    db.sql("create table t (s text)")
    db.load("t", [("1.005",), ("-2.5",), ("1.0049999999999999999999999",), ("2.675e0",)])
    found = list(db.sql("select s, s::decimal(5, 2) as d, '2.5'::decimal(5, 0) as c from t"))
    expected = {"1.005": "1.01", "-2.5": "-2.50", "1.0049999999999999999999999": "1.00", "2.675e0": "2.68"}
    assert {row[0]: str(row[1]) for row in found} == expected
    assert {str(row[2]) for row in found} == {"3"}
    db.sql("create table p (d decimal(8, 2)); insert into p values ('2.345'::decimal(8, 2)), ('1e2'::decimal(8, 2))")
    assert {str(row[0]) for row in db.sql("select d from p")} == {"2.35", "100.00"}


def test_a_text_in_a_blob_is_its_bytes_however_it_comes() -> None:
    """In `values` it was read as hexadecimal digits."""
    db = lftj.Database()
    db.sql("create table t (id int primary key, b blob)")
    for statement in (
        "insert into t values (1, '00ff')",
        "insert into t select 2, '00ff'",
        "insert into t values (3, '\\x00\\xff')",
        "insert or replace into t values (4, 'ab')",
    ):
        db.sql(statement)
    db.sql("insert into t values (5, $b)", b="00ff")
    assert [row for (row,) in db.sql("select id from t where b = '00ff' order by id")] == [1, 2, 5]
    assert dict(db["t"])[3] == b"\x00\xff"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select " + "9" * 5000, "does not fit into 64 bits"),
        ("select interval '" + "9" * 400 + "' day", "longer than the calendar"),
        ("select date '2024-01-01' + interval '" + "9" * 400 + "' month", "longer than the calendar"),
        ("select sum(u) from b", "may repeat"),
        ("select avg(u) from b", "may repeat"),
    ],
)
def test_numbers_that_are_too_long_or_wrap_are_refused(query: str, told: str) -> None:
    db = lftj.Database()
    db.sql("create table b (u ubigint not null); insert into b values (3), (3), (4)")
    with pytest.raises(ProgramError, match=told):
        db.sql(query)
    assert list(db.sql("select sum(cast(u as bigint)), sum(distinct u), max(u) from b")) == [(10, 7, 4)]
    with pytest.raises(ProgramError, match="valid unicode"):
        db.sql("create table s (s text); insert into s values ($s)", s="\ud800")
