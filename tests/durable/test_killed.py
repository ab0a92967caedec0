"""Processes that write are killed at random points: what was acknowledged is there, and nothing is there by half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lftj.durable import checking
from tests.durable.shop import opened

ROOT = Path(__file__).resolve().parent.parent.parent
# `make thorough` kills a thousand times.
TIMES = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 12


@pytest.mark.jit_only
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    rng = random.Random(7)
    path = tmp_path / "shop.lftj"
    acknowledged = 0
    for seed in range(TIMES):
        command = [sys.executable, "-m", "tests.durable.writer", str(path), str(seed)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if seed % 4:  # else it is killed while it starts
            process.stdout.readline()
        time.sleep(rng.random() ** 2 * 0.6)
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].splitlines()
        done = [int(line) for line in lines if line.isdigit()]
        acknowledged = max([acknowledged, *done])
        if not path.exists() or not path.stat().st_size:
            continue
        assert checking.check(path) == []
        with opened(path, read_only=True) as db:
            edges = sorted(a for a, b in db["edge"] if a)
            assert all((a, a % 7) in db["edge"] for a in edges)
            assert edges == list(range(1, len(edges) + 1))
            # a load is two loads, so the last row may be in one relation only
            assert len(edges) - len(db["name"]) in (0, 1)
            assert len(edges) >= acknowledged
            before = {name: sorted(db[name]) for name in ("path", "degree", "named", "lonely")}
            db._evaluator.state = db._state.made_stale(db._state.relations)
            assert {name: sorted(db[name]) for name in before} == before
