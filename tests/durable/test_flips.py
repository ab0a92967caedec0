"""A bit, or a byte, of the file or of its write-ahead log that flips, anywhere; rows that are deleted from its tables.

Either all answers are right, or an error names what is damaged: never another error, never a wrong answer. The last
transaction of a write-ahead log cannot be told from one that the power went in: a warning says that it is left out.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lftj.durable import checking, write_ahead_log
from lftj.errors import DatabaseFileError, DataError
from tests.conftest import FULL, IN_CI, THOROUGH
from tests.durable.shop import Contents, contents, lose, opened

FLIPS = 4000 if THOROUGH else 15 if not FULL else 40 if IN_CI else 80
TABLES = ["meta", "log", "symbols", "segments", "checkpoints", "deltas", "ends"]


class Image(NamedTuple):
    """A database file as a process that died left it: its files, and what it held after each entry that is kept."""

    path: Path
    seen: dict[int, Contents]

    def copied(self, to: Path) -> Path:
        """A copy to damage."""
        for file in self.path.parent.iterdir():
            if not file.name.endswith(("-shm", "-lock")):
                shutil.copy(file, to / file.name)
        return to / self.path.name


def made(folder: Path, retain: int | None, checkpoint: bool) -> Image:
    """A database with something in every table, part of it in the write-ahead log alone if there is no checkpoint."""
    path, seen = folder / "made" / "shop.lftj", {}
    path.parent.mkdir(parents=True)
    db = opened(path, retain=retain)
    db.load("edge", [(i, i + 1) for i in range(40)])
    db.load("name", [(i, f"name {i}") for i in range(0, 60, 3)])
    db.evaluate()
    start = db.seq
    for i in range(8):
        if i == 5 and checkpoint:
            db.checkpoint(traces=True)
        with db.transaction() as tx:
            tx.insert("edge", [(i, 50 + i)])
            tx.insert("name", [(70 + i, f"more {i}")])
        seen[db.seq] = contents(db)
    image = Image(folder / "left" / "shop.lftj", seen if retain is None else {db.seq: seen[db.seq]})
    image.path.parent.mkdir()
    assert db._file is not None
    if checkpoint:
        db._file.container.take_over()
    Image(path, {}).copied(image.path.parent)
    lose(db)
    assert start < min(image.seen)
    return image


@pytest.fixture(scope="module", params=[(0, True), (None, True), (None, False)], ids=["kept", "history", "log"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return made(tmp_path_factory.mktemp("image"), *request.param)


def outcome(image: Image, path: Path, *, read_only: bool) -> str:
    """What a damaged copy answers: "right", or "told" by an error or a warning; anything else fails."""
    told = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            told |= bool(checking.check(path))
        except DatabaseFileError:
            told = True
        try:
            with opened(path, read_only=read_only) as db:  # history is kept where it was
                left_out = any("midst of a transaction" in str(w.message) for w in caught)
                now = contents(db)
                if left_out:
                    return "told"
                assert now == image.seen[max(image.seen)]
                for seq, then in image.seen.items():
                    assert contents(db.at(seq)) == then
                if len(image.seen) > 1:
                    since = min(image.seen)
                    rows = set(image.seen[since]["path"])
                    for changed in db.changes("path", since=since):
                        rows = (rows - set(changed.delta.erased)) | set(changed.delta.inserted)
                        assert sorted(rows) == image.seen[changed.seq]["path"]
                    assert rows == set(now["path"])
        except DatabaseFileError:
            assert told, "`lftj check` finds nothing, and the file cannot be opened"
        except DataError:
            assert told, "`lftj check` finds nothing, and history is not there"
    return "told" if told else "right"


def flip(path: Path, rng: random.Random) -> int:
    """Flip one bit of a file, or all bits of one byte at random; returns where."""
    size = path.stat().st_size
    # The heads of pages and frames are small, and rarely hit by chance.
    at = rng.randrange(size) if rng.random() < 0.7 else rng.randrange(size // 4096) * 4096 + rng.randrange(120)
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << rng.randrange(8) if rng.random() < 0.7 else rng.randrange(1, 256))]))
    return at


def test_flips_anywhere(image: Image, tmp_path: Path) -> None:
    rng, told = random.Random(len(image.seen)), 0
    log = write_ahead_log.log_path(image.path)
    files = [image.path, log] if log.exists() and log.stat().st_size else [image.path]
    for i in range(FLIPS):
        folder = tmp_path / str(i)
        folder.mkdir()
        path = image.copied(folder)
        target = folder / files[i % len(files)].name
        at = flip(target, rng)
        try:
            told += outcome(image, path, read_only=i % 4 < 2) == "told"
        except BaseException as error:
            error.add_note(f"byte {at} of {target.name}")
            raise
        shutil.rmtree(folder)
    assert told > FLIPS // 20


def deletions() -> Iterator[tuple[str, str]]:
    for table in TABLES:
        yield table, f"delete from {table}"
        for end in ("min", "max"):
            key = {"meta": "key", "ends": "name", "segments": "id", "symbols": "first"}.get(table, "seq")
            yield table, f"delete from {table} where {key} = (select {end}({key}) from {table})"
        yield table, f"drop table {table}"


@pytest.mark.parametrize("read_only", [False, True])
def test_rows_that_are_deleted(image: Image, tmp_path: Path, read_only: bool) -> None:
    told = set()
    for i, (table, sql) in enumerate(deletions()):
        folder = tmp_path / str(i)
        folder.mkdir()
        path = image.copied(folder)
        raw = sqlite3.connect(path, isolation_level=None)
        raw.execute(sql)
        raw.close()
        try:
            if outcome(image, path, read_only=read_only) == "told":
                told.add(table)
        except BaseException as error:
            error.add_note(sql)
            raise
        shutil.rmtree(folder)
    kept = set(TABLES) - ({"deltas"} if len(image.seen) == 1 else set())
    assert told >= kept - {"checkpoints", "segments"}, told
