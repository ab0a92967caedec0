"""Five jobs of users, the programs in `examples/jobs/`, beside DuckDB and pandas on the same data. CPU time.

    python -m bench.jobs [JOB ...] [--turns N] [--quick]

Each engine has a process of its own. It does the job at a small size first, so that nothing is compiled later, loads
the tables, gives the first answers, and takes in changes, one after the other. lftj follows each, by the functions of
the example; the rivals change their tables, and at some of the changes evaluate the answers anew. The answers at the
beginning and at the end have to be the same rows; exit code 1 if they are not. Engines go by turns, three times
unless told otherwise, and the best of each figure counts: the machine is never quite still, and lftj's first time may
compile what only full sizes need. Each line goes to `bench/results/jobs.jsonl`.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from bench import results
from bench.graphs import ROOT
from bench.job_changes import JOBS, Change, Job, Tables
from bench.measure import reset_peak, status_mb

RECORDED = results.RESULTS / "jobs.jsonl"
#: engine -> module and class. Imported on use: no engine pays for another's imports.
ENGINES = {
    "lftj": ("bench.engines.jobs", "LftjJob"),
    "duckdb": ("bench.rivals.job_duckdb", "DuckDBJob"),
    "pandas": ("bench.rivals.job_pandas", "PandasJob"),
}
#: At so many of the changes the rivals evaluate anew.
SAMPLES = 7


class Session(Protocol):
    """An engine at a job."""

    def load(self, tables: Tables) -> None:
        """Take the tables in."""

    def answer(self) -> None:
        """Evaluate all answers."""

    def apply(self, change: Change) -> None:
        """Take a change in; of lftj, the answers follow, of others the next `answer` gives them."""

    def answers(self) -> dict[str, Any]:
        """The answers as Arrow tables."""


def session(engine: str, job: Job) -> Session:
    """A fresh session of the engine at the job."""
    module, name = ENGINES[engine]
    made: Session = getattr(importlib.import_module(module), name)(job)
    return made


def digest(table: Any) -> str:
    """A hash of the rows of an Arrow table, whatever their order, and the names and widths of columns."""
    import pyarrow as pa

    table = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    table = table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
    found = hashlib.sha256(str(table.num_rows).encode())
    for column in table.columns:
        if pa.types.is_decimal(column.type):
            whole = column.cast(pa.decimal128(38, 2)).combine_chunks()
            codes = np.frombuffer(whole.buffers()[1], np.int64)[2 * whole.offset :: 2][: len(whole)]
        elif pa.types.is_timestamp(column.type):
            codes = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        elif pa.types.is_integer(column.type):
            codes = column.cast(pa.int64()).to_numpy()
        else:
            codes = np.array(column.to_pylist(), np.str_).astype("U32")
        found.update(np.ascontiguousarray(codes).tobytes())
    return found.hexdigest()[:16]


def measured(job: Job, engine: str, size: int, changes: int) -> dict[str, Any]:
    """The figures of an engine at a job of a size."""
    if size > job.tiny:
        for seed in (1, 2):
            measured_once(job, engine, job.tiny, min(changes, 20), seed)
    return measured_once(job, engine, size, changes)


def measured_once(job: Job, engine: str, size: int, changes: int, seed: int = 1) -> dict[str, Any]:
    """As `measured`, in a process that has done such a job before."""
    tables, made = job.work(size, changes, seed)
    sampled = set(np.linspace(0, len(made) - 1, SAMPLES).astype(int).tolist())
    gc.collect()
    reset_peak()
    before = status_mb("VmRSS")
    here = session(engine, job)
    start = time.process_time()
    here.load(tables)
    loaded = time.process_time()
    here.answer()
    answered = time.process_time()
    first = {name: digest(table) for name, table in here.answers().items()}
    took = []
    for at, change in enumerate(made):
        begin = time.process_time()
        here.apply(change)
        if engine != "lftj":
            if at not in sampled:
                continue
            here.answer()
        took.append(time.process_time() - begin)
    peak = status_mb("VmHWM") - before
    last = here.answers()
    return {
        "status": "ok",
        "load_s": loaded - start,
        "first_s": answered - loaded,
        "changes": len(took),
        "change_rows": made[0].rows,
        "median_ms": float(np.median(took)) * 1000,
        "p99_ms": float(np.quantile(took, 0.99)) * 1000,
        "max_ms": max(took) * 1000,
        "rows_per_s": sum(change.rows for change in made) / len(made) * len(took) / sum(took),
        "peak_mb": peak,
        "answers": {name: table.num_rows for name, table in last.items()},
        "digests": [first, {name: digest(table) for name, table in last.items()}],
    }


def in_process(job: Job, engine: str, size: int, changes: int) -> dict[str, Any]:
    """`measured` in a process of its own."""
    request = json.dumps([job.name, engine, size, changes])
    done = subprocess.run(
        (sys.executable, "-m", "bench.jobs", "--request", request),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{engine} at {job.name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def best(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The best of every figure: the least, of rows per second the most; the rest is as in the first line."""
    line = dict(lines[0])
    for name, value in line.items():
        if isinstance(value, float):
            line[name] = (max if name == "rows_per_s" else min)(other[name] for other in lines)
    return line


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, compare and record; 1 if engines disagree."""
    parser = argparse.ArgumentParser(prog="bench.jobs")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes in this process; nothing is recorded")
    parser.add_argument("--request", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.request:
        name, engine, size, changes = json.loads(given.request)
        sys.stdout.write(json.dumps(measured(JOBS[name], engine, size, changes)) + "\n")
        return 0
    differ = False
    for job in (JOBS[name] for name in given.jobs or JOBS):
        lines: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
        for _ in range(1 if given.quick else given.turns):
            for engine, found in lines.items():
                if given.quick:
                    found.append(measured(job, engine, job.tiny, 10))
                else:
                    found.append(in_process(job, engine, job.size, job.changes))
        digests = lines["lftj"][0]["digests"]
        for engine, found in lines.items():
            if any(line["digests"] != digests for line in found):
                sys.stderr.write(f"{job.name}: {engine} differs from lftj: {found} and {digests}\n")
                differ = True
                continue
            line = best(found)
            del line["digests"]
            shown = ", ".join(f"{key} {value:,.3f}" for key, value in line.items() if isinstance(value, float))
            sys.stdout.write(f"{job.name}, {engine}: {shown}, {line['answers']}\n")
            if not given.quick:
                about = {"workload": job.name, "graph": f"{job.size}", "mode": "job", "engine": engine}
                results.append(RECORDED, {**about, **line})
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
