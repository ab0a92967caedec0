"""The committed results: JSON lines under `bench/results/`, one per measurement, appended and never rewritten.

A line says what was measured (workload, graph, mode, engine), how it ended (`status`: ok, timeout, memory,
error) with the figures, and on what: `run` (date and commit, shared by all lines of one run), CPU, cores and
versions. `latest` picks, for every measured thing, the last line.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bench.graphs import ROOT

RESULTS = ROOT / "bench" / "results"
JOINS = RESULTS / "joins.jsonl"
STEPS = RESULTS / "steps.jsonl"

#: Distributions whose versions matter to the figures.
PACKAGES = ("lftj", "numba", "llvmlite", "numpy", "pyarrow", "duckdb", "kuzu")

Line = dict[str, Any]


@cache
def machine() -> Line:
    """What the figures were taken on."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


@cache
def run_stamp() -> Line:
    """Date (UTC) and commit of this run; `dirty` if the work tree differs from the commit."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _git("rev-parse", "--short=12", "HEAD") or "none",
        "dirty": bool(
            _git("status", "--porcelain", "--", "scantree", "sensitivity", "lftj", "bench/*.py", "bench/*/*.py")
        ),
    }


def append(path: Path, line: Line) -> None:
    """Add `line` with machine and run to the file; flushed, so an interrupted run keeps what it has measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps({**line, "run": run_stamp(), "machine": machine()}) + "\n")


def read(path: Path) -> Iterator[Line]:
    """All lines of a result file, oldest first; none if there is no file."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def key(line: Line) -> tuple[str, str, str, str]:
    """What a line measured: (workload, graph, mode, engine)."""
    return line["workload"], line["graph"], line["mode"], line["engine"]


def latest(lines: Iterable[Line]) -> dict[tuple[str, str, str, str], Line]:
    """The last line for everything measured."""
    return {key(line): line for line in lines}


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
