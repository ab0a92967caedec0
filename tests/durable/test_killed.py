"""Processes that write are killed at random points: what was acknowledged is there, and nothing is there by half.

Half of them die at some line of lftj/durable, which are the stages of opening, commits, checkpoints and compaction; the
others at some moment, which is as a rule one in SQLite or in the system.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lftj.durable import checking, database_file
from tests.conftest import FULL, THOROUGH
from tests.durable.shop import opened
from tests.durable.writer import write

DURABLE = str(Path(database_file.__file__).parent)
# `make thorough` kills a thousand times.
TIMES = 1000 if THOROUGH else 60 if FULL else 4
# Lines of lftj/durable that a process runs before it dies, at most; seconds that it lives, at most.
LINES, SECONDS = 4000, 0.15
# So many processes write to one file.
ON_ONE = 20


def die_at_line(number: int) -> None:
    """Kill this process when it comes to so many lines of lftj/durable, in any thread of it."""
    left = [number]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(DURABLE):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def killed(path: Path, seed: int, rng: random.Random) -> list[int]:
    """What a process said before it was killed."""
    read_end, write_end = os.pipe()
    line = rng.randrange(LINES) if seed % 2 else None
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            if line is not None:
                die_at_line(line)
            write(path, seed, lambda i: os.write(write_end, f"{i}\n".encode()))
        except BaseException as error:
            os.write(write_end, f"failed: {error!r}\n".encode())
        finally:
            os._exit(1)
    os.close(write_end)
    if line is None:
        time.sleep(rng.random() * SECONDS)
        os.kill(child, signal.SIGKILL)
    with open(read_end) as said:
        lines = said.read().split("\n")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, lines
    return [int(line) for line in lines[:-1]]


@pytest.mark.jit_only
@pytest.mark.filterwarnings("ignore:.*ends in the midst of a transaction")  # of one that was not acknowledged
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    rng = random.Random(7)
    opened(tmp_path / "shop.lftj").close()  # what it needs is compiled
    acknowledged = said = 0
    last = set[int]()  # the rows that a process wrote last, by file
    for seed in range(TIMES):
        path = tmp_path / f"{seed // ON_ONE}.lftj"
        if seed % ON_ONE == 0:
            acknowledged, last = 0, set()
        done = killed(path, seed, rng)
        said += len(done)
        acknowledged = max([acknowledged, *done])
        if not acknowledged:  # it died while it made the file
            opened(path).close()
        assert checking.check(path) == [], seed
        with opened(path, read_only=True) as db:
            edges = sorted(a for a, b in db["edge"] if a)
            assert all((a, a % 7) in db["edge"] for a in edges)
            assert edges == list(range(1, len(edges) + 1)), seed
            # A load is two loads, so the row that a process wrote last may be in one relation only.
            last.add(len(edges))
            names = {a for a, _ in db["name"]}
            assert names <= set(edges) <= names | last, seed
            assert len(edges) >= acknowledged, seed
            before = {name: sorted(db[name]) for name in ("path", "degree", "named", "lonely")}
            db._evaluator.state = db._state.made_stale(db._state.relations)
            assert {name: sorted(db[name]) for name in before} == before, seed
    assert said > TIMES // 4  # on a busy machine processes come to less before they die
