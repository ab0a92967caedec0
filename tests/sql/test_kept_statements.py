"""Statements that come again, with other values: they do what they do when they are met for the first time.

Two databases carry out the same statements. One meets each text again and again, and keeps it; the other meets each
with another number of blanks behind it, and takes it as it stands.

Catches: a constant that stayed what it was, a type that follows the first value, a statement that outlives its tables,
an error that says other words the second time, something left behind by a statement that failed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError
from lftj.results import answers
from tests.conftest import JIT, examples

pytest.importorskip("sqlglot")

from lftj.sql import kept_statements, question, statements
from lftj.sql.results import SqlResult

TABLES = """
create table item (id int primary key, name text, price decimal(10, 2), made date, size bigint not null default 7);
create table line (item int, qty int, note text, at timestamp);
create table code (key uuid primary key, ratio double, flag boolean);
"""
VIEWS = """create view sold as
    select name, sum(qty * price) as total from line join item on line.item = item.id group by name"""
NUMBERS = st.sampled_from((0, 1, 2, 3, -1, None, 10**18, 2**62, 2**63 - 1, -(2**63) + 1, 2**64, True, 1.5))
TEXTS = st.sampled_from(("tea", "jam", "", "O'Neil", "2", "2024-01-02", "tea ", None, "%a%", "x" * 70))
DECIMALS = st.sampled_from(
    (Decimal("1.50"), Decimal("1.5"), Decimal("-3"), Decimal("0.001"), Decimal("1E+3"), 2, 0.5, None)
)
DATES = st.sampled_from((dt.date(2024, 1, 2), dt.date(1, 1, 1), dt.datetime(2024, 1, 2, 3, 4), "2024-01-02", None))
TIMES = st.sampled_from((dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.date(2024, 1, 2), "2024-01-02 03:04:05", None))
KEYS = st.sampled_from((UUID(int=1), UUID(int=2), "00000000-0000-0000-0000-000000000001", None))
VALUES = {"n": NUMBERS, "m": NUMBERS, "t": TEXTS, "p": DECIMALS, "d": DATES, "a": TIMES, "k": KEYS}
STATEMENTS = (
    "insert into item values ($n, $t, $p, $d, $m)",
    "insert into item (id, name) values ($n, $t), ($n + 1, upper($t))",
    "insert into item (id, size) select qty, $m from line where item = $n",
    "insert into item values ($n, $t, $p, $d, 1) on conflict (id) do update set name = $t, size = item.size + $m",
    "insert into item (id, name) values ($n, $t) on conflict do nothing",
    "insert or replace into item values ($n, $t, $p, $d, default)",
    "insert into line values ($n, $m, $t, $a)",
    "insert into code values ($k, $p, $n)",
    "update item set size = size + $m where id = $n",
    "update item set name = $t, price = $p, made = $d where id = $n or name = $t",
    "update item set price = price + $p where made < $d",
    "update line set note = note || $t where qty between $n and $m",
    "update line set item = i.id from item as i where i.name = $t and line.qty = $n",
    "update item set size = default where size in ($n, $m)",
    "delete from item where id = $n",
    "delete from line where item = $n and note is not null and note <> $t",
    "delete from line using item where item.id = line.item and item.size > $m",
    "delete from code where key = $k",
    "truncate line",
    "select * from item where id = $n",
    "select id, size * $m as more, $t as said from item where price > $p order by id desc limit 2",
    "select count(*), sum(qty) from line where item = $n",
    "select item, sum(qty + $m) as s, max(note) from line group by item having count(*) >= $n",
    "select name, total from sold where total > $p or name = $t",
    "select * from line where note like $t",
    "select * from line where at >= $a and qty not in ($n, $m)",
    "select * from item where exists (select 1 from line where item = item.id and qty = $n) and made <> $d",
    "select case when size > $m then $t else name end as x from item where coalesce(size, $n) = $n",
    "select l.qty, i.name from line as l left join item as i on l.item = i.id and i.size <> $m where l.qty < $n",
    "with few as (select * from item where size < $m) select name from few union select note from line where qty > $n",
    "select qty / $n as part, qty // $m as whole from line",
    "select 1 as a union select qty from line where item = $n",
    "select $n as a union select size from item where id = $m or size = $n",
    "update line set qty = qty + $m, note = coalesce(note, $t) where item = $n or qty is null",
    "select id, coalesce(price, $p) as c from item where made is null or made < $d",
    "select * from item limit $n",
    "select extract(year from $d) as y, $d + interval 1 day as next",
    "select key, ratio * $p as r from code where flag = $n or key = $k",
    "select id from item where price = $p",
    "select distinct note from line where note > $t",
)
DEFINITIONS = (
    "drop view if exists sold",
    f"drop view if exists sold; {VIEWS}",
    "drop view if exists sold; drop table item; "
    "create table item (id int, name text, price decimal(10, 3), made date, size int default 3)",
    "drop view if exists sold; drop table line; "
    "create table line (item bigint, qty bigint not null, note text, at timestamp)",
    "create or replace table code (key uuid primary key, ratio double, flag boolean, more int)",
)


def outcome(where: Any, text: str, values: dict[str, Any]) -> Any:
    """What a statement gives: rows and types, changes, or the error, but for where it stands."""
    try:
        done = where.sql(text, **values)
    except lftj.Error as error:
        return type(error).__name__, error.what, error.why, error.remedy
    if done is None:
        return None
    if isinstance(done, SqlResult):
        return done.columns, list(done)
    return {name: (sorted(map(repr, done[name].inserted)), sorted(map(repr, done[name].erased))) for name in done}


def contents(db: lftj.Database) -> dict[str, list[str]]:
    return {name: sorted(map(repr, db[name])) for name in db}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(STATEMENTS), st.fixed_dictionaries(VALUES)),
            st.tuples(st.sampled_from(STATEMENTS), st.fixed_dictionaries(VALUES)),
            st.tuples(st.sampled_from(DEFINITIONS), st.none()),
        ),
        min_size=4,
        max_size=12,
    ),
    st.integers(1, 3),
    st.booleans(),
)
@examples(24 if JIT else 2)
def test_a_statement_that_is_kept_does_what_its_text_says(steps: list[Any], times: int, together: bool) -> None:
    kept, fresh = (lftj.Database._sized(page_rows=4, directory_rows=4) for _ in range(2))
    for db in (kept, fresh):
        db.sql(TABLES + VIEWS)
        db.sql("insert into item values (1, 'tea', 1.5, '2024-01-01', 3), (2, 'jam', null, null, 4)")
        db.sql("insert into line values (1, 2, 'x', null), (1, 2, 'x', null), (2, 1, null, '2024-01-02 00:00:00')")
    number = 0
    for _ in range(times):
        with one_transaction(kept, together) as one, one_transaction(fresh, together) as other:
            for text, values in steps:
                given_values = {name: value for name, value in (values or {}).items() if f"${name}" in text}
                for repeated in range(2):
                    number += 1
                    found = outcome(one, text, given_values)
                    assert found == outcome(other, text + " " * number, given_values), (text, given_values, repeated)
        assert contents(kept) == contents(fresh)


@contextmanager
def one_transaction(db: lftj.Database, together: bool) -> Iterator[Any]:
    """One transaction for all statements, which may fail; or one for each."""
    if not together:
        yield db
        return
    try:
        with db.transaction() as tx:
            yield tx
    except lftj.Error:
        pass


def test_only_the_values_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third time on nothing is parsed, nor translated."""
    db = lftj.Database()
    db.sql(TABLES)
    texts: dict[str, Callable[[int], dict[str, Any]]] = {
        "insert into item (id, name) values ($n, $t)": lambda i: {"n": i, "t": f"item {i}"},
        "update item set size = size + $m where id = $n": lambda i: {"n": i, "m": 2},
        "insert into item (id, size) values ($n, 1) on conflict (id) do update set size = item.size + $n": lambda i: {
            "n": i
        },
        "select size from item where id = $n and name = $t": lambda i: {"n": i, "t": f"item {i}"},
        "delete from item where id = $n": lambda i: {"n": i},
    }
    for text, values in texts.items():
        for i in range(2):
            db.sql(text, **values(i))
    monkeypatch.setattr(statements, "parsed", refused)
    monkeypatch.setattr(kept_statements, "parsed", refused)
    monkeypatch.setattr(question, "translated", refused)
    insert, update, upsert, select, delete = texts
    for i in range(2, 9):
        for text in (insert, update, upsert):
            db.sql(text, **texts[text](i))
        assert list(db.sql(select, **texts[select](i))) == [(7 + 2 + i,)]
        if i % 2:
            db.sql(delete, **texts[delete](i))
    assert sorted(row[0] for row in db["item"]) == [2, 4, 6, 8]


def refused(*args: Any, **options: Any) -> Any:
    raise AssertionError("it is parsed and translated again")


def test_texts_that_come_once_drop_nothing_that_is_kept() -> None:
    db = lftj.Database()
    db.sql(TABLES)
    ask = "select name from item where id = $n"
    for i in range(2):
        db.sql(ask, n=i)
    held = {key for key, kept in db._known.items() if isinstance(kept, kept_statements.KeptStatement)}
    for i in range(kept_statements.KNOWN + 10):
        kept_statements.kept_statement(db, f"select {i} as n", {})
    assert held
    assert held <= db._known.keys()


def test_what_is_asked_again_and_again_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that were kept after it drove it out, and the memory of what was met with it."""
    for module in (answers, kept_statements):
        monkeypatch.setattr(module, "KEPT_QUERIES", 32)
    db = lftj.Database()
    db.sql("create table t (a int)")
    for i in range(3 * kept_statements.KEPT_QUERIES):
        for _ in range(2):
            db.sql(f"select {i} from t")
        db.sql("select a from t")
        if i == 1:
            kept, _ = kept_statements.kept_statement(db, "select a from t", {})
            assert kept is not None
    assert kept_statements.kept_statement(db, "select a from t", {})[0] is kept
    assert kept_statements.kept_statement(db, f"select {i} from t", {})[0] is not None
    assert len(db._known) <= kept_statements.KEPT_QUERIES


def test_a_reader_asks_again_after_others_have_written(tmp_path: Path) -> None:
    """Codes of texts are others then."""
    path = tmp_path / "shop.lftj"
    ask = "select id from item where name = $t and name <> 'none'"
    with lftj.Database(path=path) as db:
        db.sql(TABLES)
        db.sql("insert into item (id, name) values (1, 'tea')")
        with lftj.Database(path=path, read_only=True) as reader:
            for name in ("tea", "unheard", "of", "tea"):
                assert list(reader.sql(ask, t=name)) == ([(1,)] if name == "tea" else [])
            db.sql("insert into item (id, name) values (2, 'jam'), (3, 'unheard'), (4, 'none')")
            reader.refresh()
            for name, id in (("jam", 2), ("unheard", 3), ("tea", 1)):
                assert list(reader.sql(ask, t=name)) == [(id,)]
            assert list(reader.sql(ask, t="none")) == []


def test_an_error_tells_of_the_text_each_time() -> None:
    db = lftj.Database()
    db.sql(TABLES)
    for number in (0, 1, 2, 0, 3):
        if number:
            db.sql("insert into item (id, size) values ($n, 6 // $n)", n=number)
            continue
        with pytest.raises(EvaluationError) as caught:
            db.sql("insert into item (id, size) values ($n, 6 // $n)", n=number)
        assert "<sql>:1:" in str(caught.value) or "6 / 0" in str(caught.value)
    assert sorted(row[0] for row in db["item"]) == [1, 2, 3]
