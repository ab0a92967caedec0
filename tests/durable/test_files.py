"""Opening files: what is there, what is made, what is refused, and who may write."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import lftj
from lftj.durable import care
from lftj.errors import DatabaseFileError, DataError, EvaluationError, KeyConflictError
from tests.durable.shop import PROGRAM, contents, lose, opened


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path) as db:
        db.load("edge", [(1, 2), (2, 3)])
        with db.transaction() as tx:
            tx.insert("name", [(1, "ann"), (9, "bo")])
            tx.upsert("price", [("tea", 3.5)])
        before = contents(db)
    with opened(path) as db:
        assert db._state.stale == frozenset()
        assert contents(db) == before
        with db.transaction() as tx:
            tx.erase("edge", [(1, 2)])
        assert sorted(tx.delta["path"].erased) == [(0, 2), (0, 3), (1, 2), (1, 3)]


def test_a_process_that_died_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    db.load("edge", [(1, 2), (2, 3)])
    with db.transaction() as tx:
        tx.insert("name", [(1, "ann")])
        tx.rules("far(x, z) :- path(x, z), !edge(x, z).")
    before = contents(db)
    lose(db)
    with opened(path) as again:
        assert contents(again) == before


@pytest.mark.parametrize(
    ("name", "row", "bad"),
    [("div", (2, 0), EvaluationError), ("degree", (7, 1), KeyConflictError)],
    ids=["no value", "two values"],
)
def test_a_load_of_what_a_rule_has_no_value_for_keeps_nobody_out(
    tmp_path: Path, name: str, row: tuple[int, int], bad: type[lftj.Error]
) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    db.rules("div(x / y) :- edge(x, y).")
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
        tx.insert("degree", [(7, 9)])
    db.checkpoint()
    db.load("edge", [row])
    paths = sorted(db["path"])
    with pytest.raises(bad):
        list(db[name])
    with opened(path, read_only=True) as reader:
        assert sorted(reader["path"]) == paths
    lose(db)
    with opened(path) as again:
        assert sorted(again["path"]) == paths
        with pytest.raises(bad):
            list(again[name])
        with again.transaction() as tx:
            tx.erase("edge", [row])
        assert (sorted(again["div"]), sorted(again["degree"])) == ([(0,)], [(0, 1), (1, 1), (7, 9)])


def test_loads_that_hold_a_constraint_together_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lftj.durable.database_file.BULK", 3)
    (tmp_path / "child.facts").write_text("1\n2\n")
    (tmp_path / "parent.facts").write_text("1\n2\n3\n")
    path = tmp_path / "shop.lftj"
    db = lftj.Database(
        """
        .decl child(c:number)
        .input child
        .decl parent(p:number)
        .input parent
        .decl orphan(c:number) empty
        orphan(c) :- child(c), !parent(c).
        """,
        path=path,
    )
    db.checkpoint()
    db.read_inputs(tmp_path)
    with lftj.Database(path=path, read_only=True) as reader:
        assert sorted(reader["child"]) == [(1,), (2,)]
    lose(db)
    with lftj.Database(path=path) as again:
        assert (len(again["child"]), len(again["parent"]), len(again["orphan"])) == (2, 3, 0)


def test_a_failed_transaction_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    seq = db.seq
    with pytest.raises(KeyConflictError), db.transaction() as tx:
        tx.insert("price", [("tea", 1.0), ("tea", 2.0)])
    with pytest.raises(DataError), db.transaction(missing="error") as tx:
        tx.erase("edge", [(5, 6)])
    assert db.seq == seq
    before = contents(db)
    lose(db)
    with opened(path) as again:
        assert contents(again) == before


def test_one_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    with pytest.raises(DatabaseFileError, match="in use: this process"):
        opened(path)
    script = (
        f"import lftj\ntry:\n    lftj.Database(path={str(path)!r})\nexcept lftj.Error as error:\n    print(error.what)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    # the page shape of the tests is told first, or who writes
    assert f"process {os.getpid()}" in told or "page_rows" in told
    lose(db)
    opened(path).close()


def test_the_writer_that_died_is_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    script = f"import lftj, os\ndb = lftj.Database({PROGRAM!r}, path={str(path)!r})\nos._exit(0)"
    subprocess.run([sys.executable, "-c", script], check=True)
    # The file that names the writer is there, and no longer locked: whoever has its number, or its host's name, now.
    lock = path.with_name("shop.lftj-lock")
    lock.write_text(f"{os.getpid()} another-host")
    with lftj.Database(path=path) as db:
        assert list(db["path"]) == [(0, 1)]
    assert not lock.exists()


def test_a_writer_in_another_container_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    script = f"import sys, lftj\ndb = lftj.Database(path={str(path)!r})\nprint(flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    path.with_name("shop.lftj-lock").write_text("1 other-host")
    try:
        with pytest.raises(DatabaseFileError, match="process 1 on other-host"):
            lftj.Database(path=path)
    finally:
        process.communicate()
    lftj.Database(path=path).close()


def test_a_reader_does_not_let_go_of_the_writers_lock(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path):
        opened(path, read_only=True).close()
        with pytest.raises(DatabaseFileError, match="in use"):
            opened(path)
        script = f"import lftj\ntry: lftj.Database(path={str(path)!r})\nexcept lftj.Error as error: print(error.what)"
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        assert f"process {os.getpid()} writes to it" in told


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    path, link = tmp_path / "shop.lftj", tmp_path / "link.lftj"
    with opened(path) as db:
        link.symlink_to(path)
        with pytest.raises(DatabaseFileError, match="in use"):
            opened(link)
        expected = contents(db)
    with opened(link) as db:
        assert contents(db) == expected


def test_where_nothing_may_be_written(tmp_path: Path) -> None:
    """A read-only folder: whoever wants to write is told what to do, whoever wants to read can."""
    path = tmp_path / "shop.lftj"
    with opened(path) as db:
        expected = contents(db)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    child = os.fork()
    if child == 0:  # root may write anywhere
        code = 1
        try:
            for folder in [*tmp_path.parents][:3]:  # of pytest, and of one of its processes
                folder.chmod(0o755)
            os.setgid(65534)
            os.setuid(65534)
            with opened(path, read_only=True) as db:
                code = 2 if contents(db) != expected or db.refresh() else 0
            try:
                opened(path)
            except DatabaseFileError as error:
                code |= 0 if "read_only=True" in str(error) else 4
        finally:
            os._exit(code)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        tmp_path.chmod(0o755)


def test_a_file_with_something_to_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    opened(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("create trigger t after insert on log begin delete from symbols; end")
    raw.close()
    with pytest.raises(DatabaseFileError, match="trigger t is not what lftj made"):
        opened(path)


def test_a_forked_process_may_not_write(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    child = os.fork()
    if child == 0:
        try:
            with db.transaction() as tx:
                tx.insert("edge", [(7, 8)])
        except DatabaseFileError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with db.transaction() as tx:
        tx.insert("edge", [(7, 8)])
    db.close()


def test_readers_follow(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    reader = opened(path, read_only=True)
    seen: list[object] = []
    reader.on_commit("path", lambda delta: seen.append(sorted(delta.inserted)))
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
        tx.insert("name", [(1, "ann")])
    assert sorted(reader["path"]) == [(0, 1)]
    deltas = reader.refresh()
    assert sorted(deltas["path"].inserted) == [(0, 2), (1, 2)]
    assert seen == [[(0, 2), (1, 2)]]
    db.load("edge", [(2, 3)])
    db.checkpoint()  # the entries since are gone
    reader.refresh()
    assert contents(reader) == contents(db)
    with pytest.raises(DatabaseFileError, match="read-only"), reader.transaction() as tx:
        tx.insert("edge", [(4, 5)])
    assert contents(reader) == contents(db)
    with pytest.raises(DatabaseFileError, match="one writer"):
        db.refresh()
    reader.close()
    db.close()


def _other_database(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("create table t(a)")
    raw.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b"edge\t1\t2\n" * 100), "cannot open"),
        (_other_database, "no database of lftj"),
    ],
)
def test_what_is_no_database_is_refused(tmp_path: Path, make, words: str) -> None:
    path = tmp_path / "other"
    make(path)
    with pytest.raises(DatabaseFileError, match=words):
        lftj.Database(path=path)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_reader_is_not_told_to_make_a_file(tmp_path: Path, read_only: bool) -> None:
    _other_database(tmp_path / "other")
    with pytest.raises(DatabaseFileError, match="no database of lftj") as caught:
        lftj.Database(path=tmp_path / "other", read_only=read_only)
    assert caught.value.remedy.endswith("lftj made" if read_only else "or of one that is not there yet")


def test_other_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    opened(path).close()
    with pytest.raises(DatabaseFileError, match="page_rows"):
        lftj.Database(path=path)
    with sqlite3.connect(path) as raw:
        raw.execute("pragma user_version = 99")
    raw.close()
    with pytest.raises(DatabaseFileError, match="format 99") as caught:
        opened(path)
    assert "upgrade lftj" in str(caught.value)
    with sqlite3.connect(path) as raw:
        raw.execute("pragma user_version = 1")
    raw.close()
    with pytest.raises(DatabaseFileError, match="format 1, and this lftj reads formats 2 to 4") as caught:
        opened(path)
    assert "open it with the lftj that wrote it" in str(caught.value)


def test_a_missing_file_is_not_made_for_readers(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFileError, match="no file"):
        lftj.Database(path=tmp_path / "shop.lftj", read_only=True)
    assert not (tmp_path / "shop.lftj").exists()


def test_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    opened(path).close()
    with pytest.raises(DatabaseFileError, match="has a program already"):
        lftj.Database._sized(".decl e(a:number)", page_rows=4, directory_rows=2, path=path)
    opened(path).close()


def test_ways_to_keep_heads_are_those_of_the_file(tmp_path: Path) -> None:
    program, path = ".decl e(a:number, b:number)  two(x, z) :- e(x, y), e(y, z).", tmp_path / "two.lftj"
    lftj.Database(program, maintain={"two": "recompute"}, path=path).close()
    for maintain in (None, {}, {"two": "recompute"}):
        with lftj.Database(program, maintain=maintain, path=path) as db:
            assert list(db._state.maintain.values()) == ["recompute"]
    with pytest.raises(DatabaseFileError, match="keeps its heads in other ways than `maintain` says"):
        lftj.Database(program, maintain={"two": "delta"}, path=path)
    lftj.Database(path=path).close()


def test_circuits_are_refused(tmp_path: Path) -> None:
    from lftj import streams

    with opened(tmp_path / "shop.lftj") as db, pytest.raises(DatabaseFileError, match="circuit"):
        db.attach(streams.from_rules(".decl edge(a:number, b:number)  back(y, x) :- edge(x, y)."))


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    assert db._file is not None
    connection = db._file.container.connection
    before = contents(db)
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages + 1}")
    rows = [(i, f"name {i}") for i in range(20_000)]
    with pytest.raises(DatabaseFileError, match="write to") as caught, db.transaction() as tx:
        tx.insert("name", rows)
    assert "room on the disk" in str(caught.value)
    with pytest.raises(DatabaseFileError):
        db.load("name", rows)
    assert contents(db) == before
    connection.execute("pragma max_page_count = 1000000")
    with db.transaction() as tx:
        tx.insert("name", rows[:10])
    after = contents(db)
    lose(db)
    with opened(path) as again:
        assert contents(again) == after


def test_loads_in_bulk_are_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lftj.durable import database_file

    monkeypatch.setattr(database_file, "BULK", 10)
    path = tmp_path / "shop.lftj"
    db = lftj.Database._sized(".decl e(a:number, b:number)", page_rows=4, directory_rows=2, path=path)
    db.load("e", [(i, i * i) for i in range(1000)])
    lose(db)
    db = lftj.Database._sized(page_rows=4, directory_rows=2, path=path)
    assert sorted(db["e"]) == [(i, i * i) for i in range(1000)]
    with db.transaction() as tx:
        tx.erase("e", [(5, 25)])
    assert db._file is not None
    written = "select sum(rows) from segments"
    assert db._file.container.connection.execute(written).fetchone() == (1000,)
    db.checkpoint()
    # pages that did not change were not written again
    assert 1000 < db._file.container.connection.execute(written).fetchone()[0] <= 1000 + 16
    db.close()


def test_memory_does_not_import_sqlite() -> None:
    script = "import lftj, sys; lftj.Database('.decl e(a:number) e(1).')['e']; assert 'sqlite3' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_closed_database_says_so(tmp_path):
    db = lftj.Database(".decl e(x:number)", path=tmp_path / "a.lftj")
    db.close()
    with pytest.raises(lftj.Error) as caught:
        db.load("e", [(1,)])
    assert str(caught.value) == (
        f"{tmp_path / 'a.lftj'} is closed\n"
        "  why: `close` was called, or its `with` block has ended; what was in memory can still be read\n"
        "  do: open it again, as in lftj.Database(path=...)"
    )


@pytest.mark.parametrize("sync", ["full", "normal", "off"])
@pytest.mark.parametrize("away", ["moved", "removed", "replaced"])
def test_a_file_that_is_moved_while_it_is_open(tmp_path: Path, sync: str, away: str) -> None:
    """What was committed last is in the log beside the old name, and was not in the file under its new one."""
    path, other = tmp_path / "shop.lftj", tmp_path / "moved.lftj"
    db = opened(path, sync=sync)
    db.load("edge", [(1, 2)])
    path.rename(other)
    if away == "replaced":
        path.write_bytes(b"")
    if sync == "full":
        with pytest.raises(DatabaseFileError, match="was moved, replaced or removed"), db.transaction() as tx:
            tx.insert("edge", [(3, 4)])
        assert (3, 4) not in set(db["edge"])
    with pytest.raises(DatabaseFileError, match="was moved, replaced or removed"):
        db.checkpoint()
    with pytest.raises(DatabaseFileError, match=r"was moved, replaced or removed[\s\S]*move the file back"):
        db.close()
    if away != "removed":
        other.replace(path)  # as the error says
        with opened(path) as again:
            assert ((1, 2) in set(again["edge"])) == (sync != "off")


@pytest.mark.parametrize("sync", ["full", "normal", "off"])
def test_a_process_that_goes_to_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    db = opened(Path("shop.lftj"), sync=sync, retain=None)
    assert db.path == "shop.lftj"
    monkeypatch.chdir("sub")
    with db.transaction() as tx:
        tx.insert("edge", [(3, 4)])
    db.checkpoint()
    care.compact(db)
    with db.transaction() as tx:
        tx.insert("edge", [(4, 5)])
    expected = contents(db)
    db.close()
    assert [*Path().iterdir()] == []
    with opened(tmp_path / "shop.lftj") as again:
        assert contents(again) == expected


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    (tmp_path / "sub").rmdir()
    with pytest.raises(DatabaseFileError, match="from the root on"):
        lftj.Database(path="shop.lftj")
    monkeypatch.undo()
