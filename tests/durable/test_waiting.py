"""With sync="off" a commit returns before it is written: whoever comes next is told if that cannot be done."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.durable import checking
from lftj.errors import DatabaseFileError
from tests.conftest import ROOT
from tests.durable.shop import PROGRAM, contents, lose, opened


def full(tmp_path: Path) -> lftj.Database:
    """A database whose file cannot grow, with a commit that waits, and could not be written beside."""
    db = opened(tmp_path / "shop.lftj", sync="off")
    assert db._file is not None
    db._file.flush()  # the program
    connection = db._file.container.connection
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages}")
    with db.transaction() as tx:
        tx.insert("name", [(i, f"a name that takes some room, number {i}") for i in range(2000)])
    deadline = time.monotonic() + 20
    while not db._file._failed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert db._file._failed
    return db


def commit(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(7, 8)])


@pytest.mark.parametrize("act", [commit, lftj.Database.checkpoint, lftj.Database.close])
def test_a_write_that_failed_beside_is_told(tmp_path: Path, act: Any) -> None:
    db = full(tmp_path)
    assert db._file is not None
    before = contents(db)
    with pytest.raises(DatabaseFileError, match=rf"entry {db.seq} is in memory only") as caught:
        act(db)
    assert "room on the disk" not in str(caught.value)
    assert contents(db) == before
    assert ("`close` try again" in caught.value.remedy) is (act is not lftj.Database.close)
    if act is lftj.Database.close:
        assert "closed without them, and this database can still be read" in caught.value.remedy
        other = lftj.Database(PROGRAM)
        other.load("name", db["name"])
        db["name"].to_parquet(tmp_path / "name.parquet")
        assert len(other["name"]) >= 2000
        with opened(tmp_path / "shop.lftj") as again:
            assert not len(again["name"])
        return
    db._file.container.connection.execute("pragma max_page_count = 1000000")
    commit(db)
    after = contents(db)
    db.close()
    with opened(tmp_path / "shop.lftj") as again:
        assert contents(again) == after
        assert (7, 8) in again["edge"]


def test_what_could_be_written_later_is_no_error(tmp_path: Path) -> None:
    db = full(tmp_path)
    assert db._file is not None
    db._file.container.connection.execute("pragma max_page_count = 1000000")
    before = contents(db)
    db.close()
    with opened(tmp_path / "shop.lftj") as again:
        assert contents(again) == before


@pytest.mark.parametrize("end", [lftj.Database.close, lose])
def test_a_commit_that_failed_while_others_wait_damages_nothing(tmp_path: Path, end: Any) -> None:
    db = full(tmp_path)
    seq = db.seq
    with pytest.raises(DatabaseFileError, match="in memory only"):
        commit(db)
    with contextlib.suppress(DatabaseFileError):  # `close` cannot write it either
        end(db)
    with opened(tmp_path / "shop.lftj") as again:
        assert again.seq == seq - 1
        assert not len(again["name"])
    assert checking.check(tmp_path / "shop.lftj") == []


def test_what_waits_is_written_when_nobody_has_the_database_any_more(tmp_path: Path) -> None:
    """The thread that writes it found the database gone, and what waited was never written."""
    path = tmp_path / "shop.lftj"
    opened(path).close()
    db = opened(path, sync="off")
    with db.transaction() as tx:
        tx.insert("name", [(1, "ann"), (2, "bob")])
    expected = contents(db)
    del db, tx
    gc.collect()
    with opened(path) as again:
        assert contents(again) == expected


def test_what_waits_is_written_when_the_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    code = (
        "import lftj, sys\n"
        "db = lftj.Database('.decl e(x:number)', path=sys.argv[1], sync='off')\n"
        "with db.transaction() as tx:\n"
        "    tx.insert('e', [(7,)])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=ROOT)
    with lftj.Database(path=path) as db:
        assert list(db["e"]) == [(7,)]
