"""The write-ahead log of a process that died, beside a file that took the place of its own: it is not applied."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lftj
from lftj.durable import care, checking, container, log_mark
from lftj.durable.write_ahead_log import is_there, log_path
from lftj.errors import DatabaseFileError
from tests.durable.shop import contents, lose, opened


def commit(db: lftj.Database, *nodes: int) -> None:
    """Commit an edge from each of the nodes, one by one."""
    for node in nodes:
        with db.transaction() as tx:
            tx.insert("edge", [(node, node + 1)])


def left_by(path: Path, to: Path) -> Path:
    """The files as they are now, as a process that died now leaves them, in a folder of their own."""
    to.mkdir(parents=True)
    for file in (path, log_path(path)):
        if file.exists():
            shutil.copy(file, to / file.name)
    return to / path.name


def died(path: Path, to: Path, *nodes: int, **options: object) -> Path:
    """What is left of a file whose writer dies after these commits; it is as it was then, and the writer ended."""
    db = opened(path, **options)
    commit(db, *nodes)
    left = left_by(path, to)
    lose(db)
    return left


COPIES: dict[str, Callable[[Path, Path], object]] = {"backup": care.backup, "copy": shutil.copy}


@pytest.mark.parametrize("how", sorted(COPIES))
@pytest.mark.parametrize("ahead", [4000, 1])
def test_a_backup_that_replaces_a_file_does_not_get_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, ahead: int
) -> None:
    monkeypatch.setattr(container, "MOST_AHEAD", ahead)
    monkeypatch.setattr(container, "MOST_UNRECORDED", 3)
    path, copy = tmp_path / "shop.lftj", tmp_path / "copy.lftj"
    with opened(path) as db:
        commit(db, 1)
        expected = contents(db)
    COPIES[how](path, copy)
    left = died(path, tmp_path / "left", *range(100, 110))
    assert is_there(left)
    shutil.copy(copy, left)
    files = {file.name: file.read_bytes() for file in left.parent.iterdir()}
    with pytest.raises(DatabaseFileError, match=r"is not that of") as caught:
        opened(left)
    assert caught.value.remedy is not None
    assert f"remove {log_path(left)} and shop.lftj-shm" in caught.value.remedy
    for look in (
        lambda: opened(left, read_only=True),
        lambda: checking.check(left),
        lambda: care.backup(left, tmp_path / "another.lftj"),
        lambda: list(care.log(left)),
    ):
        with pytest.raises(DatabaseFileError, match=r"is not that of"):
            look()
    assert {name: (left.parent / name).read_bytes() for name in files} == files  # nobody has written
    log_path(left).unlink()
    with opened(left) as db:
        assert contents(db) == expected


def test_the_log_of_a_file_is_its_own_however_often_it_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("MOST_AHEAD", 1), ("MOST_UNRECORDED", 1), ("RENEWED", 4)):
        monkeypatch.setattr(container, name, value)
    monkeypatch.setattr(log_mark, "KNOWN", 16)
    path = tmp_path / "shop.lftj"
    with opened(path) as db:
        for i in range(60):
            commit(db, 100 + i)
            with opened(left_by(path, tmp_path / f"left {i}"), read_only=True) as reader:
                assert contents(reader) == contents(db)


def test_a_process_that_dies_as_it_begins_to_write_leaves_a_log_that_is_known(tmp_path: Path) -> None:
    path, stages = tmp_path / "shop.lftj", 0
    for number, start in enumerate(("new", "closed", "died", "died before a commit")):
        if start.startswith("died"):
            left = died(path, tmp_path / start, *([50] if start == "died" else []))
            path = left
        db = opened(path)
        assert db._file is not None
        seen, lefts = [contents(db)], []

        def stage(_: str, lefts: list[Path] = lefts, path: Path = path, start: str = start) -> None:
            lefts.append(left_by(path, tmp_path / f"{start} {len(lefts)}"))

        db._file.container.connection.set_trace_callback(stage)
        commit(db, 60 + number)
        db._file.container.connection.set_trace_callback(None)
        seen.append(contents(db))
        for left in lefts:
            assert checking.check(left) == []
            for read_only in (True, False):
                with opened(left, read_only=read_only) as again:
                    assert contents(again) in seen
        stages += len(lefts)
        commit(db, 80 + number)
        with opened(left_by(path, tmp_path / f"{start} at the end")) as again:
            assert contents(again) == contents(db)
        db.close()
    assert stages > 20


def test_a_reader_that_keeps_the_log_from_being_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "PATIENCE", 100)  # that SQLite has with the reader, each time
    path = tmp_path / "shop.lftj"
    with opened(path) as db:
        commit(db, 1)
    reader = opened(path, read_only=True)
    assert reader._file is not None
    held = reader._file.container.connection
    for round in range(3):
        held.execute("begin")
        held.execute("select count(*) from log").fetchone()
        db = opened(path)
        commit(db, 10 + round)
        now = contents(db)
        left = left_by(path, tmp_path / f"left {round}")
        lose(db)
        held.execute("rollback")
        with opened(left) as again:
            assert contents(again) == now
    reader.close()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_backup_is_made_beside_nothing_that_sqlite_takes_for_its_own(tmp_path: Path, end: str) -> None:
    path, to = tmp_path / "shop.lftj", tmp_path / "old.lftj"
    opened(path).close()
    beside = to.with_name(to.name + end)
    beside.write_bytes(b"left")
    with pytest.raises(DatabaseFileError, match=r"old\.lftj" + end + " is there, and .*old.lftj is not"):
        care.backup(path, to)
    assert not to.exists()
    assert beside.read_bytes() == b"left"


def test_no_file_is_made_beside_the_log_of_one_that_is_gone(tmp_path: Path) -> None:
    path = died(tmp_path / "shop.lftj", tmp_path / "left", 5)
    away = path.rename(path.with_name("away.lftj"))
    with pytest.raises(DatabaseFileError, match=r"there is no file .*, and its write-ahead log is there"):
        opened(path)
    assert is_there(path)
    away.rename(path)  # as the error says
    with opened(path) as db:
        assert (5, 6) in db["edge"]
