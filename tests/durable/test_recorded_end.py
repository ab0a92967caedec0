"""The end of the log: recorded before SQLite takes its write-ahead log over into the file, not with every entry."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

import lftj
from lftj.durable import care, checking, container
from lftj.errors import DatabaseFileError
from tests.durable.shop import contents, lose, opened


def alone(path: Path, to: Path) -> tuple[int, int]:
    """The last entry, and the one that is recorded, of the file without its write-ahead log; (0, 0): of none yet."""
    shutil.copy(path, to)
    raw = sqlite3.connect(to)
    try:
        last = raw.execute("select max(seq) from log").fetchone()[0] or 0
        recorded = raw.execute("select last from ends where name = 'log'").fetchone()[0]
    except sqlite3.OperationalError:  # its tables are in the write-ahead log
        return 0, 0
    finally:
        raw.close()
    return last, recorded


@pytest.mark.parametrize("sync", ["full", "normal", "off"])
def test_the_file_alone_never_has_an_entry_beyond_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    monkeypatch.setattr(container, "MOST_AHEAD", 1)
    monkeypatch.setattr(container, "MOST_UNRECORDED", 3)
    path, seen = tmp_path / "shop.lftj", set()
    with opened(path, sync=sync) as db:
        db.load("edge", [(i, i + 1) for i in range(40)])
        for i in range(30):
            with db.transaction() as tx:
                tx.insert("edge", [(i, 50 + i)])
                if i % 7 == 6:
                    tx.insert("name", [(i, f"name {i}")])
            if i % 11 == 10:
                db.checkpoint()
            last, recorded = alone(path, tmp_path / "alone.lftj")
            assert last in (0, recorded)  # 0: checkpoints drop entries
            seen.add(recorded)
        end = db.seq
    assert len(seen) >= (3 if sync == "off" else 10)  # it was taken over again and again
    last, recorded = alone(path, tmp_path / "alone.lftj")
    assert recorded == end
    assert last in (0, end)


def test_what_died_unrecorded_is_there_and_recorded_when_it_is_opened(tmp_path: Path) -> None:
    path, left = tmp_path / "made" / "shop.lftj", tmp_path / "left"
    path.parent.mkdir()
    with opened(path) as db:
        db.load("edge", [(i, i + 1) for i in range(10)])
        for i in range(5):
            with db.transaction() as tx:
                tx.insert("edge", [(i, 50 + i)])
        shutil.copytree(path.parent, left)
        now, end = contents(db), db.seq
        copied = tmp_path / "backup.lftj"
        care.backup(path, copied)
        lose(db)
    assert alone(copied, tmp_path / "alone.lftj") == (end, end)
    path = left / "shop.lftj"
    assert checking.check(path) == []
    with opened(path, read_only=True) as db:
        assert contents(db) == now
    with opened(path) as db:
        assert contents(db) == now
        last, recorded = alone(path, tmp_path / "alone.lftj")
        assert last == recorded == end


@pytest.mark.parametrize("lost", [1, 2])
def test_entries_that_are_gone_from_the_end_of_a_closed_file_are_missed(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path, retain=10)
    db.load("edge", [(i, i + 1) for i in range(10)])
    db.checkpoint()
    for i in range(5):
        with db.transaction() as tx:
            tx.insert("edge", [(i, 50 + i)])
    end = db.seq
    lose(db)  # without the checkpoint of `close`, which would have all
    with sqlite3.connect(path) as raw:
        raw.execute("delete from log where seq > ?", (end - lost,))
    raw.close()
    assert checking.check(path)
    with pytest.raises(DatabaseFileError, match="log ends with"):
        opened(path)


@pytest.mark.parametrize("earlier", [2, 3])
def test_a_file_of_an_earlier_format_is_read_and_becomes_one_of_this(tmp_path: Path, earlier: int) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path) as db:
        db.load("edge", [(1, 2)])
        now = contents(db)
    with sqlite3.connect(path) as raw:
        raw.execute(f"pragma user_version = {earlier}")
    raw.close()

    def version() -> int:
        raw = sqlite3.connect(path)
        found: int = raw.execute("pragma user_version").fetchone()[0]
        raw.close()
        return found

    with opened(path, read_only=True) as db:
        assert contents(db) == now
    with pytest.raises(DatabaseFileError, match="has a program already"):  # who is refused writes nothing
        lftj.Database._sized(".decl other(a:number)", page_rows=4, directory_rows=2, path=path)
    assert version() == earlier
    with opened(path) as db:
        with db.transaction() as tx:
            tx.insert("edge", [(2, 3)])
        now = contents(db)
    assert version() == 4
    with opened(path) as db:
        assert contents(db) == now
