"""How much of the log a file keeps: what it was opened with last, unless something else is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.durable import checking, database_file
from lftj.durable.container import Container
from lftj.errors import DataError
from tests.durable.shop import contents, lose, opened


def committed(path: Path, start: int, end: Any = lftj.Database.close, **options: Any) -> int:
    """Commit three rows and end; the number of the last entry."""
    db = opened(path, **options)
    for i in range(start, start + 3):
        with db.transaction() as tx:
            tx.insert("edge", [(i, i + 1)])
    seq = db.seq
    end(db)
    return seq


@pytest.mark.parametrize("end", [lftj.Database.close, lose])
def test_a_file_keeps_as_much_as_before(tmp_path: Path, end: Any) -> None:
    path = tmp_path / "shop.lftj"
    committed(path, 10, end, retain=None)
    first = committed(path, 20, end)
    seq = committed(path, 30, end)
    with opened(path) as db:
        assert db.seq == seq
        assert len(list(db.changes("path", since=1))) >= 9
        assert (32, 33) not in db.at(first)["path"]
        assert (22, 23) in db.at(first)["path"]


def test_a_number_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    committed(path, 10, retain=4)
    seq = committed(path, 20)
    with opened(path) as db:
        assert [changed.seq for changed in db.changes("edge", since=seq - 4)] == [seq - 3, seq - 2, seq - 1, seq]
        with pytest.raises(DataError, match="not kept any more"):
            list(db.changes("edge", since=0))
        assert db._file is not None
        assert db._file.retain == 4


@pytest.mark.parametrize("retain", [0, 2])
def test_what_is_asked_for_holds_from_then_on(tmp_path: Path, retain: int) -> None:
    path = tmp_path / "shop.lftj"
    committed(path, 10, retain=None)
    seq = committed(path, 20, retain=retain)
    for options in ({}, {"read_only": True}):
        with opened(path, **options) as db:
            assert db._file is not None
            assert db._file.retain == retain
            assert db.seq == seq
            with pytest.raises(DataError):
                db.at(seq - 4)


def test_a_new_file_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    seq = committed(path, 10)
    with opened(path) as db, pytest.raises(DataError):
        db.at(seq - 1)


@pytest.mark.parametrize(("retain", "found"), [(None, None), (7, None), (0, 0)])
def test_a_file_that_does_not_say_loses_nothing(tmp_path: Path, retain: int | None, found: int | None) -> None:
    path = tmp_path / "shop.lftj"
    committed(path, 10, retain=retain)
    container = Container(path, read_only=False, sync="full", page_rows=None)
    container.connection.execute("delete from meta where key = 'retain'")
    container.close()
    assert checking.check(path) == []
    with opened(path) as db:
        assert db._file is not None
        assert db._file.retain == found


def test_a_damaged_number_is_told(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    committed(path, 10, retain=7)
    container = Container(path, read_only=False, sync="full", page_rows=None)
    container.connection.execute("update meta set value = 0 where key = 'retain'")
    container.close()
    (damage,) = checking.check(path)
    assert damage.what == "meta retain"
    with pytest.raises(lftj.Error, match="meta retain"):
        opened(path)


@pytest.mark.parametrize("retain", ["all", -1, 1.5])
def test_other_numbers_are_refused(tmp_path: Path, retain: Any) -> None:
    with pytest.raises(lftj.Error, match="retain"):
        lftj.Database(path=tmp_path / "shop.lftj", retain=retain)


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    """What a file notes of itself."""
    container = Container(path, read_only=True, sync="full", page_rows=None)
    try:
        return container.connection.execute("select key, value from meta order by key").fetchall()
    finally:
        container.close()


@pytest.mark.parametrize("program", [".decl other(a:number)", "no program"])
@pytest.mark.parametrize("end", [lftj.Database.close, lose])
def test_who_is_refused_changes_nothing(tmp_path: Path, program: str, end: Any) -> None:
    path = tmp_path / "shop.lftj"
    seq = committed(path, 10, end, retain=None)
    before = rows_of(path)
    with pytest.raises(lftj.Error):
        lftj.Database._sized(program, page_rows=4, directory_rows=2, path=path, retain=0, sync="off")
    assert rows_of(path) == before
    committed(path, 20)
    with opened(path) as db:
        assert (10, 11) not in db.at(seq - 3)["edge"]
        assert (10, 11) in db.at(seq - 2)["edge"]


def test_history_begins_with_the_program(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    opened(path, retain=5).close()
    assert dict(rows_of(path))["history"] == 0
    with opened(path) as db:
        assert db._file is not None
        assert db._file.retain == 5


@pytest.mark.parametrize("retain", [0, 7])
def test_rules_that_came_and_went_are_not_kept_for_ever(tmp_path: Path, retain: int) -> None:
    path = tmp_path / "shop.lftj"
    for start in (0, 25):
        with opened(path, retain=retain) as db:
            for i in range(start, start + 25):
                db.sql("create view v as select a, count(*) as n from edge group by a")
                db.sql(f"create or replace view v as select a, count(*) as n from edge where b > {i} group by a")
                with db.transaction() as tx:
                    tx.rules(f"far(x) :- path({i}, x).", maintain={"far": "delta"})
                if i < 49:
                    with db.transaction() as tx:
                        tx.remove_rules("far")
                    db.sql("drop view v")
            with db.transaction() as tx:
                tx.insert("edge", [(start + 24, 100)])
            seq, kept, strategies = db.seq, contents(db), list(db._state.maintain.values())
    for read_only in (True, False):
        with opened(path, read_only=read_only) as db:
            assert db._file is not None
            assert len(db._file.steps) <= 7 + 2 * retain
            assert contents(db) == kept
            assert list(db["far"]) == [(100,)]
            assert list(db["v"]) == [(24, 1), (49, 1)]
            assert list(db._state.maintain.values()) == strategies
            if retain:
                then = db.at(seq - 4)  # before the last view was made
                assert list(then["far"]) == []
                assert "v" not in list(then)
                assert list(db.at(seq - 2)["v"]) == [(24, 1)]
    assert checking.check(path) == []


def test_names_of_types_are_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    for start in (0, 20):
        with opened(path) as db:
            for i in range(start, start + 20):
                with db.transaction() as tx:
                    tx.rules(f".type Id = number .type Ids = Id .type Own = Ids far(x) :- path({i}, x).")
                with db.transaction() as tx:
                    tx.remove_rules("far")
            if not start:
                db.rules(".decl first(x:Id)")
    with opened(path) as db:
        db.rules(".type Id = symbol .decl second(x:Id, y:Ids)")
    for _ in range(2):
        with opened(path) as db:
            assert db._file is not None
            assert len(db._file.steps) <= 9
            db.branch().rules(".decl third(x:Id, y:Ids, z:Own)")
            assert [str(db[name]._schema) for name in ("first", "second")] == [
                "first(x:number)",
                "second(x:symbol, y:number)",
            ]
    assert checking.check(path) == []


def test_what_a_crash_left_of_the_log_is_worth_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed again and again never made one: each counted from 0, and opening took ever longer."""
    path = tmp_path / "shop.lftj"
    monkeypatch.setattr(database_file, "TAIL", 2000)

    def crash(db: lftj.Database) -> None:
        if (checkpointing := db._file and db._file._checkpointing) is not None:
            checkpointing.join()
        lose(db)

    for start in range(0, 40, 3):
        committed(path, start, crash)
    with opened(path) as db:
        assert db._file is not None
        assert db._file.checkpoint_seq > 20
        assert len(db["edge"]) == 42
    assert checking.check(path) == []


def test_changes_of_rules_are_worth_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes some hundred bytes of the log, and as long to open as many rows."""
    monkeypatch.setattr(database_file, "TAIL", 1 << 18)
    with opened(tmp_path / "shop.lftj") as db:
        for _ in range(20):
            db.sql("create view v as select a from edge")
            db.sql("drop view v")
        assert db._file is not None
        assert db._file._checkpointing is not None
        db._file._checkpointing.join()
        assert db._file.checkpoint_seq > 0
