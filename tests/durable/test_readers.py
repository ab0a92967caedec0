"""Readers in other processes, which have texts of their own and are behind by more than the log has."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.durable import checking, database_file, refreshing
from lftj.errors import DataError, EvaluationError
from lftj.results import commit_feed
from tests.durable.shop import contents, opened
from tests.interrupt import Interrupt

SHOUTED = """
.decl n(a:number, t:symbol)
m(cat(t, "!"), a) :- n(a, t).
twice(cat(s, "?"), a) :- m(s, a).
ends(x, z) :- n(x, t), n(z, t), x < z.
"""


def test_a_reader_with_texts_of_its_own_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(SHOUTED, path=path, sync="off") as db:
        db.load("n", [(1, "a"), (2, "b")])
        db._file.flush()  # type: ignore[union-attr]
        with lftj.Database(path=path, read_only=True) as reader:
            find = reader.prepare_query("n(x, t), t = cat($s, $e)")
            assert [row[0] for row in find(s="a", e="")] == [1]
            assert list(reader.query('n(x, "zed")')) == []
            held, before = reader["twice"], sorted(reader["twice"])
            seen: list[object] = []
            reader.on_commit("m", lambda delta: seen.append((sorted(delta.inserted), sorted(delta.erased))))
            for i, text in enumerate(["zed", "c", "b!", "b!?", "zed!"], 3):
                with db.transaction() as tx:
                    tx.insert("n", [(i, text)])
                    tx.erase("n", [(1, "a")])
                db._file.flush()  # type: ignore[union-attr]
                deltas = reader.refresh()
                assert contents(reader) == contents(db)
                assert sorted(deltas["m"].inserted) == [(f"{text}!", i)]
                assert seen[-1] == ([(f"{text}!", i)], [("a!", 1)] if i == 3 else [])
                assert list(reader.query(f'n(x, "{text}")')) == [(i,)]
                assert [row[0] for row in find(s=text, e="")] == [i]
                assert list(reader.query('n(x, t), t = "never there"')) == []
            assert sorted(held) == before


def ask(db: lftj.Database) -> None:
    assert list(db.query('n(_, "milk")')) == []


def roll_back(db: lftj.Database) -> None:
    with contextlib.suppress(ZeroDivisionError), db.transaction() as tx:
        tx.insert("n", [(2, "milk")])
        raise ZeroDivisionError


@pytest.mark.parametrize("bring", [ask, roll_back])
@pytest.mark.parametrize("end", [lftj.Database.checkpoint, lftj.Database.close])
def test_texts_without_an_entry_are_taken_up(tmp_path: Path, bring: Any, end: Any) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(SHOUTED, path=path) as db, lftj.Database(path=path, read_only=True) as reader:
        with db.transaction() as tx:
            tx.insert("n", [(1, "tea")])
        reader.refresh()
        bring(db)
        end(db)
        assert sorted(reader.refresh()) == []
        assert list(reader.query('n(x, "own")')) == []
        if end is lftj.Database.checkpoint:
            with db.transaction() as tx:
                tx.insert("n", [(3, "milk")])
            assert sorted(reader.refresh()["m"].inserted) == [("milk!", 3)]
        assert contents(reader) == contents(db)


def test_a_refresh_that_fails_leaves_the_reader_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(SHOUTED, path=path) as db, lftj.Database(path=path, read_only=True) as reader:
        list(reader.query('n(x, t), t = cat("own ", "text")'))
        before = contents(reader)
        with db.transaction() as tx:
            tx.insert("n", [(1, "a"), (2, "b")])
        with monkeypatch.context() as patch:
            patch.setattr(reader, "_deliver", None)
            patch.setattr("lftj.durable.refreshing.go_on", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                reader.refresh()
        assert contents(reader) == before
        reader.refresh()
        assert contents(reader) == contents(db)


def test_a_branch_of_before_is_told_from_a_reader_that_went_on(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(SHOUTED, path=path) as db, lftj.Database(path=path, read_only=True) as reader:
        branch = reader.branch()
        with branch.transaction() as tx:
            tx.insert("n", [(7, "mine")])
        with db.transaction() as tx:
            tx.insert("n", [(1, "theirs")])
        reader.refresh()
        assert sorted(reader["m"]) == [("theirs!", 1)]
        assert sorted(branch["m"]) == [("mine!", 7)]
        with pytest.raises(DataError, match="number their texts"):
            branch.diff(reader)
        assert sorted(reader.branch().diff(reader)) == []


@pytest.mark.parametrize("own", [False, True])
def test_a_reader_of_facts_without_a_value_goes_on_once_they_are_gone(tmp_path: Path, own: bool) -> None:
    path = tmp_path / "shop.lftj"
    program = """
        .decl e(a:number, t:symbol, b:number)
        q(a, t, 10 / b) :- e(a, t, b).
        r(t) :- q(_, t, _).
        s(a) :- e(a, _, _).
    """
    with lftj.Database(program, path=path) as db:
        db.load("e", [(1, "a", 5)])
        assert list(db["r"]) == [("a",)]
        db.checkpoint()
        db.load("e", [(2, "b", 0)])
        with lftj.Database(path=path, read_only=True) as reader:
            with pytest.raises(EvaluationError):
                list(reader["q"])
            if own:
                assert not list(reader.query('e(a, t, _), t = cat("own ", "text")'))
            with db.transaction() as tx:
                tx.erase("e", [(2, "b", 0)])
                tx.insert("e", [(3, "c", 2)])
            deltas = reader.refresh()
            assert contents(reader) == contents(db)
            assert {name: sorted(deltas[name].inserted) for name in deltas} == {
                "e": [(3, "c", 2)],
                "s": [(3,)],
            }
            with pytest.raises(EvaluationError, match="the change of `r` is not known"):
                deltas["r"]
            db.load("e", [(4, "d", 0)])
            for _ in range(2):
                with pytest.raises(EvaluationError):
                    reader.refresh()
                assert sorted(reader["r"]) == [("a",), ("c",)]
            with db.transaction() as tx:
                tx.erase("e", [(4, "d", 0), (1, "a", 5)])
            deltas = reader.refresh()
            assert [list(deltas[name].erased) for name in ("r", "s")] == [[("a",)], [(1,)]]


@pytest.mark.parametrize("end", [lftj.Database.checkpoint, lambda _: None])
def test_a_refresh_tells_the_rows_of_what_was_replaced(tmp_path: Path, end: Any) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(path=path) as db, lftj.Database(path=path, read_only=True) as reader:
        db.sql("create table t(a int); insert into t values (1); create view v as select a from t group by a")
        assert sorted(reader.refresh()) == ["t", "v"]
        with db.transaction() as tx:
            tx.sql("drop view v; drop table t; create table t(b text, c int); insert into t values ('x', 2)")
            tx.sql("create view v as select b from t group by b")
        end(db)
        deltas = reader.refresh()
        assert {name: list(deltas[name].inserted) for name in deltas} == {"t": [("x", 2, 1)], "v": [("x",)]}
        assert [sorted(delta.inserted) for delta in deltas.values()] == [
            sorted(delta.inserted) for delta in tx.delta.values()
        ]
        assert not any(len(delta.erased) for delta in deltas.values())
        db.sql("create or replace view v as select b from t where c > 2 group by b")
        assert list(reader.refresh()["v"].erased) == [("x",)]


def test_a_difference_of_other_columns_is_refused(tmp_path: Path) -> None:
    with lftj.Database(path=tmp_path / "shop.lftj") as db:
        db.sql("create table t(a int); create table s(a int); insert into s values (7)")
        branch = db.branch()
        branch.sql("drop table t; create table t(b text); insert into t values ('x'); insert into s values (8)")
        for one, other in ((branch, db), (db, branch)):
            with pytest.raises(DataError, match="`t` has other columns"):
                one.diff(other)
        db.sql("drop table t")
        assert sorted(branch.diff(db)["s"].inserted) == [(8, 1)]


def test_a_reader_behind_a_load_in_bulk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was loaded as pages is in other pages by then, and those that were loaded are gone."""
    monkeypatch.setattr(database_file, "BULK", 10)
    path = tmp_path / "shop.lftj"
    program = ".decl e(a:number, b:number) f(b) :- e(_, b)."
    db = lftj.Database._sized(program, page_rows=4, directory_rows=2, path=path, retain=None)
    reader = lftj.Database._sized(page_rows=4, directory_rows=2, path=path, read_only=True)
    db.load("e", [(i, i % 7) for i in range(100)])
    with db.transaction() as tx:
        tx.erase("e", [(i, i % 7) for i in range(0, 100, 3)])
    db.checkpoint()
    reader.refresh()
    assert contents(reader) == contents(db)
    assert checking.check(path) == []
    with db.transaction() as tx:
        tx.erase("e", sorted(db["e"]))
    db.checkpoint()
    assert db._file is not None
    # the log still has the entry that named pages, which nobody needs
    assert db._file.container.connection.execute("select count(*) from segments").fetchone() == (0,)
    reader.refresh()
    assert contents(reader) == contents(db)
    reader.close()
    db.close()


def test_a_checkpoint_beside_that_fails_fails_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_file, "TAIL", 0)
    monkeypatch.setattr(database_file, "TAIL_PART", 0)
    with opened(tmp_path / "shop.lftj") as db:
        file = db._file
        assert file is not None

        def failing(*_: object) -> None:
            raise EvaluationError("no room", why="the disk is full", remedy="make some")

        def commit(a: int) -> None:
            with db.transaction() as tx:
                tx.insert("edge", [(a, a + 1)])
            if file._checkpointing is not None:
                file._checkpointing.join()

        with monkeypatch.context() as patch:
            patch.setattr(database_file, "write", failing)
            with pytest.warns(RuntimeWarning, match="no checkpoint was made.*no room"):
                commit(1)
            commit(2)  # not tried again at once: it would warn
        before = file.checkpoint_seq
        commit(3)
        assert file.checkpoint_seq == before
        monkeypatch.setattr(file, "_retry", 0.0)
        commit(4)
        assert file.checkpoint_seq == db.seq


def test_what_is_taken_up_is_told_once_wherever_an_interrupt_comes(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.lftj") as db:
        reader = opened(tmp_path / "shop.lftj", read_only=True)
        seen, feed, places = list[Any](), reader.changes(), (refreshing.__file__, commit_feed.__file__)
        reader.on_commit("edge", lambda delta: seen.extend(delta.inserted))
        at, interrupted = 0, True
        while interrupted:
            with db.transaction() as tx:
                tx.insert("edge", [(at, -1)])
            with contextlib.suppress(KeyboardInterrupt), Interrupt(at, places) as interrupt:
                reader.refresh()
            interrupted = interrupt.done
            reader.refresh()
            assert (at, -1) in reader["edge"]
            at += 1
        assert at > 20
        assert seen == [(i, -1) for i in range(at)]
        assert [row for deltas in feed.waiting() for row in deltas["edge"].inserted] == seen
        reader.close()


def test_a_reader_of_a_view_that_was_replaced_follows_further_changes(tmp_path: Path) -> None:
    """What it kept of the view before was of a part that is gone: the second refresh raised a KeyError."""
    path = tmp_path / "views.lftj"
    with lftj.Database(".decl e(a:number, b:number)", path=path) as db:
        db.load("e", [(1, 2)])
        db.sql("create view v as select a, count(*) as n from e group by a")
        db.evaluate()
        with lftj.Database(path=path, read_only=True) as reader:
            for folded in ("count(*)", "sum(b)", "count(*)"):
                with db.transaction() as tx:
                    tx.insert("e", [(1, len(db["e"]) + 2)])
                db.sql(f"create or replace view v as select a, {folded} as n from e group by a")
                for _ in range(2):
                    reader.refresh()
                    assert list(reader["v"]) == list(db["v"])
                    with db.transaction() as tx:
                        tx.insert("e", [(2, len(db["e"]) + 2)])
            reader.refresh()
            assert list(reader["v"]) == list(db["v"])
