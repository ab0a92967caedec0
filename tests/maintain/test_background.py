"""What commits do while what they need is compiled by another process: nothing of it shows but the strategy.

Catches: a second process beside the first; a commit that waits, or answers otherwise; a database that never records a
trace because a process died.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lftj import Database
from lftj.maintain import background
from scantree import _jit

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no process is started elsewhere")

# In the place of compiling: wait until somebody says that it is done.
WAITING = """
import sys, time
from pathlib import Path
while not Path(sys.argv[1], "done").exists():
    time.sleep(0.01)
"""
RULES = ".decl e(x:number, y:number)  t(x, y, z) :- e(x, y), e(y, z), e(x, z).  e(1, 2).  e(2, 3)."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache without kernels, as far as the process is concerned, which does not compile but waits."""
    monkeypatch.setattr(_jit, "CACHE_DIR", tmp_path)
    monkeypatch.setattr(_jit, "is_compiled", lambda kernel: False)
    monkeypatch.setattr(background, "_is_wanted", lambda: True)
    monkeypatch.setattr(background, "_state", background._Background())
    monkeypatch.setattr(background, "_CODE", WAITING.replace("sys.argv[1]", repr(str(tmp_path))))
    yield tmp_path
    (tmp_path / "done").touch()
    until_over()


def until_over() -> None:
    while background.is_busy():
        time.sleep(0.01)


def strategy(db: Database, row: tuple[int, int]) -> tuple[str, str]:
    with db.transaction() as tx:
        tx.insert("e", [row])
    head = tx.stats["heads"]["t"]
    return head["strategy"], head["why"]


def test_heads_are_evaluated_again_until_it_is_done(folder: Path) -> None:
    db = Database(RULES)
    assert len(db["t"]) == 0
    assert background._state.child > 0
    assert strategy(db, (1, 3))[1].endswith(background.COMPILING)
    assert not db._kept.heads
    assert list(db["t"]) == [(1, 2, 3)]
    (folder / "done").touch()
    until_over()
    assert background.COMPILING not in strategy(db, (3, 4))[1]
    strategy(db, (2, 4))
    assert set(db._kept.heads) == {"t"}
    assert list(db["t"]) == [(1, 2, 3), (2, 3, 4)]


def test_a_trace_that_is_asked_for_is_recorded_at_once(folder: Path) -> None:
    db = Database()
    db.rules(RULES, maintain={"t": "trace"})
    assert len(db["t"]) == 0
    assert strategy(db, (1, 3))[1].endswith("recorded")


def test_there_is_one_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    background.begin()
    first = background._state
    with monkeypatch.context() as patch:  # as another process, or this one later
        patch.setattr(background, "_state", background._Background())
        background.begin()
        assert background._state.child == 0
        assert background.is_busy()
    assert first.child > 0


def test_it_is_over_when_the_process_dies(folder: Path) -> None:
    background.begin()
    assert background.is_busy()
    os.kill(background._state.child, signal.SIGKILL)
    until_over()
    background.begin()
    assert not background.is_busy()


def test_a_cache_that_cannot_be_written_starts_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    monkeypatch.setattr(_jit, "CACHE_DIR", folder / "file" / "kernels")
    background.begin()
    assert background._state.child == 0
    assert not background.is_busy()


def test_where_none_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(background.config, "BOUNDSCHECK", 0)
    monkeypatch.setattr(background.arguments, "cores", lambda: 2)
    monkeypatch.setenv("LFTJ_BACKGROUND", "1")
    assert background._is_wanted()
    with monkeypatch.context() as patch:
        patch.setattr(background.arguments, "cores", lambda: 1)
        assert not background._is_wanted()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/usr/bin/program")
        assert not background._is_wanted()
    monkeypatch.setenv("LFTJ_BACKGROUND", "0")
    assert not background._is_wanted()
