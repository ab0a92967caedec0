"""Relations that are dropped, and made again with other columns, while somebody holds what was made of the first.

Catches: rows of a feed that are stored as other values, by the columns of the second; deltas and queries that are read
by them, or end in an IndexError of numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.errors import ArgumentError, DataError, ProgramError, UnknownRelationError

pytest.importorskip("sqlglot")

NAMES = "create table names (s text primary key); insert into names values ('p'), ('q'), ('r');"
FIRST = "create table v (a int primary key, b text not null);"
SECONDS = (
    "drop table v; create table v (a text primary key, b int not null);",
    "drop table v; create table v (a int primary key, b date not null);",
    "drop table v; create table v (a text, b text, c text, primary key (a));",
    "drop table v; create table v (a int);",
)


def database(path: Path | None = None) -> lftj.Database:
    db = lftj.Database(path=path)
    db.sql(FIRST + NAMES)
    return db


@pytest.mark.parametrize("second", SECONDS)
def test_a_feed_ends_where_its_relation_was_replaced(second: str, tmp_path: Path) -> None:
    db = database(tmp_path / "v.lftj")

    def replace(report: Any) -> None:
        if report.commits == 1:
            db.sql(second)

    feed = [{"a": i, "b": "q", "op": "c"} for i in (1, 2)]
    with pytest.raises(DataError, match="`v` was replaced while rows for it were read") as raised:
        db.load_changes("v", feed, op="op", batch_rows=1, on_commit=replace)
    assert raised.value.report.offset == 1
    assert list(db["v"]) == []
    db.close()
    with lftj.Database(path=tmp_path / "v.lftj") as db:
        assert list(db["v"]) == []


@pytest.mark.parametrize("second", SECONDS)
@pytest.mark.parametrize("call", ["insert", "erase", "upsert"])
def test_a_source_that_replaces_its_relation_gives_it_no_rows(second: str, call: str) -> None:
    db = database()

    def rows(tx: lftj.Transaction) -> Iterator[tuple[int, str]]:
        yield 1, "p"
        tx.sql(second)
        yield 2, "q"

    with pytest.raises(DataError, match="`v` was replaced"), db.transaction() as tx:
        getattr(tx, call)("v", rows(tx))
    assert list(db["v"]) == []
    assert db["v"].columns == {"a": "number", "b": "symbol"}


def test_a_source_that_drops_its_relation() -> None:
    db = database()

    def rows(tx: lftj.Transaction) -> Iterator[tuple[int, str]]:
        tx.sql("drop table v")
        yield 1, "p"

    with pytest.raises(UnknownRelationError, match="there is no relation `v`"), db.transaction() as tx:
        tx.insert("v", rows(tx))
    assert list(db["v"]) == []


@pytest.mark.parametrize("second", [*SECONDS, "drop table v;"])
def test_a_delta_stays_what_was_committed(second: str) -> None:
    db = database()
    feed = db.changes("v")
    with db.transaction() as tx:
        tx.insert("v", [(1, "r"), (2, "q")])
    applied = db.apply([("v", "-1", [(2, "q")])])
    db.sql(second)
    told = feed.waiting()
    assert len(told) == 2
    for first in (told[0], tx.delta):
        assert list(first) == ["v"]
        assert list(first["v"].inserted) == [(1, "r"), (2, "q")]
        assert first["v"].inserted.columns == {"a": "number", "b": "symbol"}
        assert "Delta of v(a:number, b:symbol): 2 inserted" in repr(first)
    for then in (told[1], applied.delta):
        assert list(then["v"].erased) == [(2, "q")]


def test_a_preview_stays_what_it_was() -> None:
    db = database()
    with db.transaction() as tx:
        tx.insert("v", [(1, "r")])
        shown = tx.preview()
        tx.sql(SECONDS[2])
        assert list(shown["v"].inserted) == [(1, "r")]
        again = tx.preview()
        assert again["v"].inserted.columns == {"a": "symbol", "b": "symbol?", "c": "symbol?"}


def test_a_reader_tells_what_changed_though_it_was_dropped_since(tmp_path: Path) -> None:
    path = tmp_path / "v.lftj"
    with database(path) as db, lftj.Database(path=path, read_only=True) as reader:
        feed = reader.changes("v")
        db.sql("insert into v values (1, 'r')")
        told = reader.refresh()
        db.sql(SECONDS[0])
        reader.refresh()
        assert list(told["v"].inserted) == [(1, "r")]
        assert list(feed.waiting()[0]["v"].inserted) == [(1, "r")]


def test_a_query_is_checked_again_where_its_relations_were_replaced() -> None:
    db = database()
    db.sql("insert into v values (1, 'p')")
    asked = [db.query("v(x, y)") for _ in range(4)]
    given = db.query("v($k, y)", k=1)
    numbers = db.query("v(x, _), x > 0")
    db.sql(SECONDS[0] + "insert into v values ('r', 7)")
    assert list(asked[0]) == [("r", 7)]
    assert asked[1].count() == 1
    assert asked[2].relation().columns == {"x": "symbol", "y": "number"}
    assert "v(x, y)" in str(asked[3].explain())
    with pytest.raises(ArgumentError, match=r"`\$k` cannot be 1"):
        list(given)
    with pytest.raises(ProgramError, match="type conflict: `x` is symbol"):
        len(numbers)
    asked = [db.query("v(x, y)") for _ in range(3)]
    db.sql("drop table v")
    for ask in (list, len, lambda query: query.explain()):
        with pytest.raises(ProgramError, match="unknown relation `v`"):
            ask(asked.pop())


def test_a_query_over_a_view_that_was_replaced() -> None:
    db = database()
    db.sql("insert into v values (1, 'p'), (2, 'q'); create view w as select a, b from v")
    asked = db.query("w(x, y)")
    db.sql("create or replace view w as select a, a + 1 as b from v")
    assert list(asked) == [(1, 2), (2, 3)]
