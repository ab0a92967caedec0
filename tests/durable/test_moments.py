"""Moments before what is kept, after what a reader has, and entries that are dropped while they are read."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

import lftj
from lftj.durable.container import Container
from lftj.errors import DataError
from tests.durable.shop import lose, opened


def now() -> dt.datetime:
    """This moment, and nothing else is done in it."""
    time.sleep(0.002)
    moment = dt.datetime.now(dt.UTC)
    time.sleep(0.002)
    return moment


def committed(db: lftj.Database, count: int) -> list[tuple[dt.datetime, int]]:
    """Commit so many rows; moments after each, and how many there were."""
    found = []
    for _ in range(count):
        with db.transaction() as tx:
            tx.insert("edge", [(100 + len(db["edge"]), 1)])
        found.append((now(), len(db["edge"])))
    return found


@pytest.mark.parametrize("retain", [0, 2, None])
@pytest.mark.parametrize("end", [lftj.Database.close, lose])
def test_a_moment_has_the_state_of_then_or_none(tmp_path: Path, retain: int | None, end: object) -> None:
    path, before = tmp_path / "shop.lftj", now()
    db = opened(path, retain=retain)
    moments = committed(db, 6)
    db.checkpoint()
    moments += committed(db, 2)
    assert callable(end)
    end(db)
    moments.append((now(), moments[-1][1]))
    for read_only in (True, False):  # which makes a checkpoint
        with opened(path, read_only=read_only) as db:
            # What was then is known from the last entry on that was dropped.
            kept = 9 if retain is None else retain + (2 if end is lftj.Database.close else 4)
            for moment, _ in moments[: 9 - kept]:
                with pytest.raises(DataError, match="not kept any more"):
                    db.at(moment)
            for moment, count in moments[9 - kept :]:
                assert len(db.at(moment)["edge"]) == count
            if retain is None:
                assert "edge" not in list(db.at(before))
            else:
                with pytest.raises(DataError, match="not kept any more"):
                    db.at(before)


def test_a_file_that_does_not_say_when_it_dropped_what(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path)
    ((moment, _),) = committed(db, 1)
    db.close()
    container = Container(path, read_only=False, sync="full", page_rows=None)
    container.connection.execute("delete from meta where key = 'dropped'")
    container.close()
    with opened(path, read_only=True) as db:
        assert len(db.at(now())["edge"]) == 2  # it was so when the checkpoint was made
        with pytest.raises(DataError, match="not kept any more"):
            db.at(moment - dt.timedelta(seconds=1))


@pytest.mark.parametrize("name", ["edge", "degree"])
def test_entries_that_are_dropped_while_they_are_read(tmp_path: Path, name: str) -> None:
    with opened(tmp_path / "shop.lftj", retain=3, sync="normal") as db:
        for i in range(300):
            with db.transaction() as tx:
                tx.insert("edge", [(i + 100, i)])
        changes = db.changes(name, since=1)
        seen = [next(changes).seq]
        db.checkpoint()
        with pytest.raises(DataError, match="what came after entry 257 is not kept any more"):
            seen.extend(changed.seq for changed in changes)
        assert seen == list(range(2, 258))


@pytest.mark.parametrize("retain", [0, None])
def test_a_reader_that_is_behind_is_told_to_refresh(tmp_path: Path, retain: int | None) -> None:
    path = tmp_path / "shop.lftj"
    db = opened(path, retain=retain)
    ((then, _),) = committed(db, 1)
    reader = opened(path, read_only=True)
    assert len(reader.at(now())["edge"]) == 2
    committed(db, 1)
    db.checkpoint()
    for when in (now(), db.seq):
        with pytest.raises(DataError, match=f"entry {db.seq} is in the file, and this reader is at entry {reader.seq}"):
            reader.at(when)
    assert len(reader.at(reader.seq)["edge"]) == 2
    if retain is None:
        assert len(reader.at(then)["edge"]) == 2
    with pytest.raises(DataError, match="there is no entry 99 yet"):
        reader.at(99)
    reader.refresh()
    assert len(reader.at(now())["edge"]) == 3
    reader.close()
    db.close()
