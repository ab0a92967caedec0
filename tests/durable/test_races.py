"""What is asked of a file at the wrong moment: after it was closed, before it was made, between two states."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import lftj
from lftj.durable import care, checking
from lftj.durable.checkpoint import SavedCheckpoint
from lftj.errors import DatabaseFileError, DataError, ProgramError, TransactionError
from tests.durable.shop import PROGRAM, contents, lose, opened


def test_a_closed_file_takes_nothing(tmp_path: Path) -> None:
    db = opened(tmp_path / "shop.lftj", sync="off")
    before = contents(db)
    db.close()
    with pytest.raises(DatabaseFileError, match="is closed"), db.transaction() as tx:
        tx.insert("edge", [(7, 8)])
    with pytest.raises(DatabaseFileError, match="is closed"):
        db.at(1)
    assert contents(db) == before


def test_a_file_whose_making_was_killed_is_made(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    raw = sqlite3.connect(path)
    raw.execute("pragma journal_mode = wal")
    raw.close()
    assert path.stat().st_size
    with pytest.raises(DatabaseFileError, match=r"shop\.lftj is empty"):
        opened(path, read_only=True)
    with opened(path) as db:
        assert (0, 1) in db["edge"]


def test_a_wrong_program_lets_go_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with pytest.raises(ProgramError) as held:
        lftj.Database("p(x) :- q(x).", path=path)
    lftj.Database(".decl q(x:number) p(x) :- q(x).", path=path).close()
    assert held


def test_what_waits_is_looked_back_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lftj.durable.database_file.WAIT", 1e6)
    with opened(tmp_path / "shop.lftj", sync="off", retain=None) as db:
        before, seq = contents(db), db.seq
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])
        assert contents(db.at(seq)) == before
        assert [changed.seq for changed in db.changes("path", since=seq)] == [seq + 1]


def test_a_reader_looks_back_from_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path, retain=None) as db, opened(path, read_only=True, retain=None) as reader:
        before, seq = contents(db), db.seq
        with db.transaction() as tx:
            tx.insert("name", [(4, "later")])
        assert contents(reader.at(seq)) == before
        assert list(reader.changes("name", since=seq)) == []


def test_what_was_dropped_was_there(tmp_path: Path) -> None:
    with lftj.Database(path=tmp_path / "shop.lftj", retain=None) as db:
        db.sql("create table t(a integer); insert into t values (1), (2)")
        seq, before = db.seq, contents(db)
        db.sql("drop table t")
        db.sql("create table t(a text, b text)")
        assert contents(db.at(seq)) == before
        with pytest.raises(DataError, match="dropped"):
            list(db.changes("t", since=seq))


@pytest.mark.parametrize("before", ["create table x(s text)", "create view x as select s from t group by s"])
@pytest.mark.parametrize("after", ["create table x(d date, e int)", "create view x as select d from t group by d"])
def test_changes_of_what_was_replaced_are_refused_before_any_row(tmp_path: Path, before: str, after: str) -> None:
    with lftj.Database(path=tmp_path / "shop.lftj", retain=None) as db:
        db.sql("create table t(a int, s text, d date)")
        db.sql(before)
        seq = db.seq
        db.sql("insert into t values (3, 'tea', '2024-05-05')")
        if "table" in before:
            db.sql("insert into x values ('tea')")
        replaced = "drop table x; " if "table" in before else "drop view x; "
        db.sql(replaced + after)
        with pytest.raises(DataError, match=rf"entry {db.seq} dropped what was `x` before"):
            next(iter(db.changes("x", since=seq)))
        last = db.seq
        assert list(db.changes("x", since=last)) == []
        db.sql("insert into t values (4, 'jam', '2025-05-05')")
        if "view" in after:
            (changed,) = db.changes("x", since=last)
            assert sorted(changed.delta.inserted) == [(dt.date(2025, 5, 5),)]


def test_changes_of_a_view_that_kept_its_columns_are_told(tmp_path: Path) -> None:
    with lftj.Database(path=tmp_path / "shop.lftj", retain=None) as db:
        db.sql("create table t(a int); create view v as select a from t where a > 0 group by a")
        db.sql("insert into t values (1), (2)")
        seq = db.seq
        db.sql("create or replace view v as select a from t where a > 1 group by a")
        (changed,) = db.changes("v", since=seq)
        assert sorted(changed.delta.erased) == [(1,)]


def removed(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.remove_rules("p")


def ruled(db: lftj.Database) -> None:
    db.rules("p(x) :- e(x).")


def ruled_in_a_transaction(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.rules("p(x) :- e(x).")


def test_changes_of_what_lost_its_rules_are_refused(tmp_path: Path) -> None:
    with lftj.Database(".decl e(a:number)\np(x) :- e(x).", path=tmp_path / "shop.lftj", retain=None) as db:
        seq = db.seq
        with db.transaction() as tx:
            tx.insert("e", [(1,)])
        removed(db)
        with pytest.raises(DataError, match=f"entry {db.seq} removed the rules of `p`"):
            list(db.changes("p", since=seq))
        assert list(db.changes("p", since=db.seq)) == []


@pytest.mark.parametrize("rule", [ruled, ruled_in_a_transaction])
def test_changes_of_what_got_rules_are_refused(tmp_path: Path, rule: Callable[[lftj.Database], None]) -> None:
    with lftj.Database(".decl e(a:number)\n.decl p(a:number)", path=tmp_path / "shop.lftj", retain=None) as db:
        db.load("e", [(1,)])
        seq = db.seq
        with db.transaction() as tx:
            tx.insert("p", [(7,)])
        rule(db)
        with pytest.raises(DataError, match=f"entry {db.seq} .* its rules"):
            list(db.changes("p", since=seq))
        last = db.seq
        removed(db)
        rule(db)
        with pytest.raises(DataError, match=f"entry {db.seq} .* its rules"):
            list(db.changes("p", since=last))
        with db.transaction() as tx:
            tx.insert("e", [(2,)])
        (changed,) = db.changes("p", since=db.seq - 1)
        assert sorted(changed.delta.inserted) == [(2,)]


def test_changes_of_what_a_constraint_evaluates_are_refused_across_rules(tmp_path: Path) -> None:
    program = ".decl e(a:number)\n.decl p(a:number)\n.decl bad(a:number) empty\nbad(x) :- p(x), x > 9."
    with lftj.Database(program, path=tmp_path / "shop.lftj", retain=None) as db:
        db.load("p", [(1,)])
        with db.transaction() as tx:
            tx.insert("e", [(2,)])
        for rule in ("p(x) :- e(x).", "p(x + 1) :- e(x)."):
            seq = db.seq
            db.rules(rule)
            assert "p" not in db._state.stale
            with pytest.raises(DataError, match=f"entry {db.seq} .* its rules"):
                list(db.changes("p", since=seq))
            assert list(db.changes("p", since=db.seq)) == []


@pytest.mark.parametrize("rule", ["q(x) :- e(x, _).", "q(n) :- n = count : { f(_) }.", "q(1) :- !f(1)."])
def test_changes_of_new_rules_are_refused_where_they_may_derive_something(tmp_path: Path, rule: str) -> None:
    with lftj.Database(
        ".decl e(a:number, b:number)\n.decl f(a:number)", path=tmp_path / "shop.lftj", retain=None
    ) as db:
        db.load("e", [(1, 2)])
        db.rules(f"{rule} none(x) :- f(x).")
        made = db.seq
        with db.transaction() as tx:
            tx.insert("e", [(2, 3)])
            tx.insert("f", [(1,)])
        for since in range(made):
            with pytest.raises(DataError, match=f"entry {made} .* its rules"):
                list(db.changes("q", since=since))
        rows = set(db.at(made)["q"])
        for changed in db.changes("q", since=made):
            rows = rows - set(changed.delta.erased) | set(changed.delta.inserted)
        assert rows == set(db["q"])
        # Nothing was derived by this one: its changes are all there.
        (changed,) = db.changes("none", since=0)
        assert list(changed.delta.inserted) == [(1,)]
        # No rules are changed, but what other rules derive.
        seq = db.seq
        db.rules("other(x) :- e(x, _).")
        assert list(db.changes("q", since=seq)) == []
        db.path_counts("e", into="paths")
        assert len(db["paths"]) == 3
        with pytest.raises(DataError, match=f"entry {db.seq} .* its rules"):
            list(db.changes("paths", since=seq))


def test_changes_of_what_had_no_value_are_refused(tmp_path: Path) -> None:
    with lftj.Database(
        ".decl e(a:number, b:number)\nd(x / y) :- e(x, y).", path=tmp_path / "shop.lftj", retain=None
    ) as db:
        db.load("e", [(1, 0)])
        for row in ((4, 2), (1, 0)):
            seq = db.seq
            with db.transaction() as tx:
                tx.erase("e", [row]) if row in db["e"] else tx.insert("e", [row])
            with pytest.raises(DataError, match=f"entry {db.seq} .* no value"):
                list(db.changes("d", since=seq))
        assert sorted(db["d"]) == [(2,)]
        assert list(db.changes("d", since=db.seq)) == []


def test_loads_change_what_is_derived_in_a_way_that_is_not_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.lftj", retain=None) as db:
        seq = db.seq
        db.load("edge", [(1, 2)])
        with pytest.raises(DataError, match="by a load"):
            list(db.changes("path", since=seq))
        assert list(db.changes("path", since=db.seq)) == []


def test_all_history_keeps_no_pages_that_nothing_names(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.lftj", retain=None) as db:
        assert db._file is not None
        counted = []
        for i in range(20):
            with db.transaction() as tx:
                tx.insert("edge", [(i, i + 1)])
            db.checkpoint()
            named, count = set[int](), "select count(*) from segments"
            for saved in db._file.segments.saved.values():
                named |= saved.list.segments()
            counted.append(db._file.container.connection.execute(count).fetchone()[0] - len(named))
        assert counted == [0] * 20


def test_no_checkpoint_in_a_transaction(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.lftj") as db, pytest.raises(TransactionError, match="checkpoint"), db.transaction():
        db.checkpoint()


def test_texts_that_heads_compute_are_in_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database('.decl n(a:number, t:symbol) m(cat(t, "!"), a) :- n(a, t).', path=path) as db:
        db.load("n", [(1, "a"), (2, "b")])
        expected = sorted(db["m"])  # evaluated after the last entry: no entry brings these texts
    with lftj.Database(path=path) as db:
        assert not db._state.stale
        assert sorted(db["m"]) == expected
        with db.transaction() as tx:
            tx.insert("n", [(3, "new")])
        assert sorted(db["m"]) == [*expected, ("new!", 3)]


def test_what_was_written_without_history_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path, retain=None) as db, db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
    db = opened(path, retain=0)
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
    lose(db)
    with opened(path, retain=None) as db:
        begun = db.seq
        with pytest.raises(DataError, match=f"before entry {begun + 1} were not kept"):
            list(db.changes("path", since=begun - 1))
        with db.transaction() as tx:
            tx.insert("edge", [(3, 4)])
        (changed,) = db.changes("path", since=begun)
        assert sorted(changed.delta.inserted) == [(0, 4), (1, 4), (2, 4), (3, 4)]
        # a reader need not say what the file keeps
        with opened(path, read_only=True) as reader:
            assert [changed.seq for changed in reader.changes("path", since=begun)] == [begun + 1]


def test_what_heads_are_followed_by_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path) as db:
        db.load("edge", [(i, i + 1) for i in range(30)])
        with db.transaction() as tx:
            tx.insert("edge", [(40, 2)])
            tx.erase("edge", [(3, 4)])
        with db.transaction() as tx:
            tx.insert("name", [(i, f"name {i % 3}") for i in range(0, 30, 2)])
            tx.erase("edge", [(5, 6)])
        with db.transaction() as tx:
            tx.insert("edge", [(i, 41) for i in range(0, 12, 4)])
        followed = {head for head, kept in db._kept.heads.items() if getattr(kept, "support", None)}
        assert followed
        before = {name: set(relation.orders) for name, relation in db._state.relations.items()}
        assert any(len(orders) > 1 for orders in before.values())
        db.checkpoint(traces=True)
    for damaged in (False, True):
        if damaged:  # what is there twice is lost once
            container = care.look(path)
            last = SavedCheckpoint.last(container)
            assert last is not None
            whose = zip(last.header["versions"], last.lists, strict=True)
            id = next(min(held.segments()) for (name, *_), held in whose if name.startswith("order") and len(held.rows))
            container.close()
            with sqlite3.connect(path) as raw:
                raw.execute("update segments set body = x'00' where id = ?", (id,))
            raw.close()
            assert [finding.lost for finding in checking.check(path)] == [False]
        with opened(path) as db:
            found = {name: set(relation.orders) for name, relation in db._state.relations.items()}
            assert damaged or found == before
            assert damaged or followed <= db._kept.heads.keys()
            expected = lftj.Database._sized(PROGRAM, page_rows=4, directory_rows=2)
            expected.load("edge", sorted(db["edge"]))
            expected.load("name", sorted(db["name"]))
            for i in range(4):
                for other in (expected, db):
                    with other.transaction() as tx:
                        tx.insert("edge", [(50 + damaged, i), (i, 41)])
                        tx.erase("edge", [(10 + damaged + i, 11 + damaged + i), (4 * i, 41)])
                        tx.erase("name", [(2 * i, f"name {2 * i % 3}")])
                assert contents(db) == contents(expected)
            assert all((50 + damaged, x) in db["path"] for x in (0, 1, 2))
        assert checking.check(path) == []


def test_times_that_are_none_in_utc(tmp_path: Path) -> None:
    """The first moment of year 1, of a local time, ended in a ValueError."""
    with opened(tmp_path / "shop.lftj", retain=None) as db:
        assert contents(db.at(dt.datetime.min)) == {}
        assert contents(db.at(dt.datetime.max)) == contents(db)
