"""The power goes: whatever the disk has of what was not synced, what had returned is there, and nothing is by half."""

from __future__ import annotations

import random
import shutil
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import lftj
from lftj.durable import care, checking, database_file
from lftj.errors import DatabaseFileError
from tests.conftest import FULL, THOROUGH
from tests.durable.disk import Disk, Event, after_a_crash
from tests.durable.shop import Contents, contents, lose, opened

CRASHES, FAILURES = (3000, 300) if THOROUGH else (100, 15) if FULL else (15, 3)
Step = Callable[[lftj.Database], object]


def steps(rng: random.Random) -> Iterator[Step]:
    """What a process does to its database, one thing after the other."""
    for i in range(rng.randrange(6, 14)):
        edges = [(rng.randrange(20), rng.randrange(20)) for _ in range(rng.randrange(1, 4))]
        yield rng.choice(
            [
                lambda db, edges=edges, i=i: commit(db, edges, [(i, f"name {i}")]),
                lambda db, edges=edges: commit(db, edges, []),
                lambda db, i=i: commit(db, [], [(i, "x" * 3000)]),
                lambda db, edges=edges: db.load("edge", edges),
                lambda db, i=i: db.load("name", [(k, f"{k} of {i}") for k in range(30)]),
                lambda db: db.checkpoint(),
                change_rules,
                lambda db: care.compact(db) if rng.random() < 0.5 else db.checkpoint(),
            ]
        )


def commit(db: lftj.Database, edges: list[tuple[int, int]], names: list[tuple[int, str]]) -> None:
    with db.transaction() as tx:
        tx.erase("edge", sorted(db["edge"])[:1])
        tx.insert("edge", edges)
        tx.insert("name", names)


def change_rules(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.remove_rules("far") if db._state.strata.of("far") else tx.rules("far(x, z) :- path(x, z), !edge(x, z).")


def recorded(path: Path, seed: int, sync: str, patch: pytest.MonkeyPatch) -> list[Event]:
    """What the disk was asked while a process did all steps twice, closing the file in between."""
    disk, rng = Disk(f"disk {seed}"), random.Random(seed)
    with patch.context() as patched:
        patched.setattr(sqlite3, "connect", disk.connect)
        for _ in range(2):
            db = opened(path, sync=sync, retain=None if seed % 2 else 0)
            disk.done(contents(db))
            for step in steps(rng):
                step(db)
                disk.done(contents(db))
            if rng.random() < 0.7:
                db.close()
            else:
                lose(db)
            disk.done(contents(db))
    return disk.events


def states_at(events: list[Event], number: int) -> tuple[list[Contents], Contents]:
    """What had returned before event `number`, all of it; and what the step in the midst of it leads to."""
    before = [event.note for event in events[:number] if event.what == "done"]
    after = next((event.note for event in events[number:] if event.what == "done"), None)
    return before, after if after is not None else before[-1]


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_what_had_returned_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str) -> None:
    monkeypatch.setattr(database_file, "BULK", 10)
    found = Counter[str]()
    events: list[Event] = []
    for seed in range(CRASHES):
        rng = random.Random(seed)
        if seed % 20 == 0:
            folder = tmp_path / f"made {seed}"
            folder.mkdir()
            events = recorded(folder / "shop.lftj", seed // 20, sync, monkeypatch)
        number = rng.randrange(len(events) + 1)
        folder = tmp_path / f"left {seed}"
        folder.mkdir()
        path = folder / "shop.lftj"
        for name, held in after_a_crash(events[:number], rng).items():
            (folder / name).write_bytes(held)
        before, after = states_at(events, number)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", RuntimeWarning)
            warnings.filterwarnings("ignore", ".*encountered in scalar")  # where kernels are interpreted
            if path.exists() and path.stat().st_size and before:
                assert checking.check(path) == [], (seed, number)
            with opened(path) as db:
                now = contents(db)
        assert all("midst of a transaction" in str(warning.message) for warning in told)
        found["told"] += bool(told)
        if sync == "full":
            assert now in [*before[-1:], after], (seed, number)
        else:
            assert now in [*before, after], (seed, number)
        found["last" if before and now == before[-1] else "next" if now == after else "earlier"] += 1
        shutil.rmtree(folder)
    assert found["last"] > CRASHES // 5
    assert found["next"] or CRASHES < 100, found


ERRORS = {"full": apsw.FullError, "broken": apsw.IOError}


@pytest.mark.parametrize("why", sorted(ERRORS))
def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """A call of the disk fails, or some in turn: what raised is not there, what returned is, and so is what follows."""
    monkeypatch.setattr(database_file, "BULK", 10)
    raised = 0
    for seed in range(FAILURES):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        path, disk, retain = folder / "shop.lftj", Disk(f"{why} {seed}"), None if seed % 2 else 0
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", disk.connect)
            db = opened(path, retain=retain)
            for step in steps(rng):
                before, seq = contents(db), db.seq
                disk.fail(rng.randrange(12), rng.choice([1, 1, 1, 5]), ERRORS[why])
                try:
                    step(db)
                except DatabaseFileError:
                    raised += 1
                    assert contents(db) == before, seed
                    assert db.seq == seq
                disk.fail(-1, 0, ERRORS[why])
            if seed % 3:
                commit(db, [(7, 8)], [(99, "last")])
            else:
                db.checkpoint()
            last, seq = contents(db), db.seq
            files = after_a_crash(disk.events, rng)
            lose(db)
        if seed % 4 > 1:
            for name, held in files.items():
                (folder / name).write_bytes(held)
        assert checking.check(path) == []
        with opened(path, retain=retain) as db:
            assert contents(db) == last
            assert db.seq == seq
        shutil.rmtree(folder)
    assert raised > FAILURES
