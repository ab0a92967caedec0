"""Bits that flip: what is damaged is named, what can be made again is, and nothing wrong is ever answered."""

from __future__ import annotations

import shutil
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pytest

import lftj
from lftj.durable import care, checking
from lftj.durable.container import FORMAT
from lftj.durable.log_mark import NO_LOG, Mark
from lftj.errors import DatabaseFileError
from tests.durable.shop import contents, opened

BODIES = {"log": "entry", "symbols": "texts", "segments": "body", "checkpoints": "body", "deltas": "delta"}


def made(path: Path, retain: int | None) -> dict[str, list[tuple[object, ...]]]:
    """A database with everything in its file; what it holds."""
    with opened(path, retain=retain) as db:
        db.load("edge", [(i, i + 1) for i in range(40)])
        db.load("name", [(i, f"name {i}") for i in range(0, 60, 3)])
        for i in range(5):
            with db.transaction() as tx:
                tx.insert("edge", [(i, 50 + i)])
        found = contents(db)
        db.checkpoint()
        with db.transaction() as tx:
            tx.insert("edge", [(60, 61)])
            tx.insert("name", [(60, "sixty")])
        found = contents(db)
    return found


def flip(path: Path, table: str, row: int, at: float) -> bool:
    """Flip a bit of a row's body; whether there is such a row."""
    body = BODIES[table]
    with closing(sqlite3.connect(path)) as raw, raw:
        rows = raw.execute(f"select {body} from {table}").fetchall()
        if row >= len(rows):
            return False
        old = rows[row][0]
        place = min(len(old) - 1, int(at * len(old)))
        new = old[:place] + bytes([old[place] ^ 4]) + old[place + 1 :]
        raw.execute(f"update {table} set {body} = ? where {body} = ?", (new, old))
    return True


@pytest.mark.parametrize("retain", [0, None])
@pytest.mark.parametrize("table", sorted(BODIES))
def test_nothing_damaged_is_answered_from(tmp_path: Path, table: str, retain: int | None) -> None:
    flipped, whole = 0, tmp_path / "whole.lftj"
    expected = made(whole, retain)
    assert not whole.with_name("whole.lftj-wal").exists()  # it was closed: a copy of the file is a copy of it all
    for row in range(12):
        for at in (0.0, 0.4, 0.99):
            path = tmp_path / f"{row} {at}.lftj"
            shutil.copy(whole, path)
            if not flip(path, table, row, at):
                continue
            flipped += 1
            assert checking.check(path) != []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                try:
                    with opened(path, read_only=True) as db:
                        assert contents(db) == expected
                except DatabaseFileError:
                    pass
        if row > 3 and not flipped:
            break
    assert flipped or (table in ("log", "deltas") and retain == 0)


def test_what_can_be_made_again_is(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    expected = made(path, None)
    flip(path, "checkpoints", 0, 0.5)
    (finding,) = checking.check(path)
    assert not finding.lost
    with pytest.warns(RuntimeWarning, match="read from the log"), opened(path) as db:
        assert contents(db) == expected
    assert checking.check(path) == []


def test_derived_pages_are_evaluated_again(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    expected = made(path, 0)
    with sqlite3.connect(path) as raw:
        count = raw.execute("select count(*) from segments").fetchone()[0]
    raw.close()
    again = 0
    for row in range(count):
        other = tmp_path / f"{row}.lftj"
        care.backup(path, other)
        flip(other, "segments", row, 0.5)
        (finding, *_) = checking.check(other)
        if finding.lost:
            with pytest.raises(DatabaseFileError, match="segments"):
                opened(other)
            continue
        again += 1
        with pytest.warns(RuntimeWarning, match="evaluated again"), opened(other) as db:
            assert contents(db) == expected
    assert again


def test_a_derived_relation_that_is_wrong_is_found(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with lftj.Database(".decl e(a:number) p(x) :- e(x). q(x) :- p(x), x > 1. e(1). e(2).", path=path) as db:
        db.evaluate()
        relation = db._state.relations["q"]
        wrong = relation.successor(relation.declared_store().empty(), relation.facts)
        db._evaluator.state = db._state._replace(relations={**db._state.relations, "q": wrong})
    assert checking.check(path) == []
    with lftj.Database(path=path, read_only=True) as kept, lftj.Database(path=path, read_only=True) as anew:
        found = checking.check(path, opened=(kept, anew))
    assert [damage.what for damage in found] == ["`q` is not what its rules derive"]


@pytest.mark.parametrize("format", [3, FORMAT])
def test_a_backup_says_that_it_is_a_copy(tmp_path: Path, format: int) -> None:
    path, copy = tmp_path / "shop.lftj", tmp_path / "copy.lftj"
    opened(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"pragma user_version = {format}")
    raw.close()
    care.backup(path, copy)
    with sqlite3.connect(copy) as raw:
        (mark,) = raw.execute("select value from meta where key = 'log'").fetchone()
    raw.close()
    assert Mark.read(mark).salt == NO_LOG


def test_a_backup_is_a_database(tmp_path: Path) -> None:
    path, copy = tmp_path / "shop.lftj", tmp_path / "copy.lftj"
    with opened(path) as db:
        db.load("edge", [(1, 2)])
        expected = contents(db)
        care.backup(path, copy)
        with db.transaction() as tx:
            tx.insert("edge", [(2, 3)])
    with opened(copy) as other:
        assert contents(other) == expected
    with pytest.raises(DatabaseFileError, match="there already"):
        care.backup(path, copy)
