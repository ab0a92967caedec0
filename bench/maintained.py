"""A database whose rules are maintained in a way that is chosen: what the benchmarks of maintenance share.

`database` makes one, `warm` compiles what transactions need, `index_figures` says what the traces of a head hold,
`apply` makes one transaction of a batch, `answer_of` runs one measurement in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Literal, NamedTuple

import numpy as np

from bench.graphs import ROOT, Rows
from bench.updates import Batch

TRIANGLE = """
.decl e(x:number, y:number)
tri(x, y, z) :- e(x, y), e(y, z), e(x, z).
"""

Maintain = Literal["trace", "delta", "recompute"]
Granularity = Literal["node", "interval"]


class Way(NamedTuple):
    """How a head is maintained; None leaves it to the planner."""

    maintain: Maintain | None = None
    granularity: Granularity | None = None


PLANNED = Way()
#: Ways by the name under which their results are filed.
WAYS = {
    "lftj": PLANNED,
    "lftj-node": Way("trace", "node"),
    "lftj-interval": Way("trace", "interval"),
    "lftj-delta": Way("delta"),
    "lftj-recompute": Way("recompute"),
}


def database(program: str, head: str, way: Way = PLANNED) -> Any:
    """A `lftj.Database` with `program`, whose `head` is maintained in this way."""
    import lftj

    db = lftj.Database()
    db.rules(
        program,
        maintain={head: way.maintain} if way.maintain else None,
        granularity={head: way.granularity} if way.granularity else None,
    )
    return db


def apply(db: Any, relation: str, batch: Batch) -> Any:
    """One transaction with the changes of `batch`; the transaction, committed."""
    with db.transaction() as tx:
        if len(batch.erase):
            tx.erase(relation, batch.erase)
        if len(batch.insert):
            tx.insert(relation, batch.insert)
    return tx


def warm() -> None:
    """Compile (or load) all kernels that recording and maintaining a trace, and evaluating, need."""
    rows = np.stack([np.arange(300) % 20, np.arange(300) // 20], axis=1)
    database(TRIANGLE, "tri").prepare()
    for way in (WAYS["lftj-interval"], WAYS["lftj-node"], WAYS["lftj-delta"]):
        db = database(TRIANGLE, "tri", way)
        db.load("e", rows[:200])
        db.evaluate()
        for half in (rows[200:201], rows[202:290]):
            tx = apply(db, "e", Batch(rows[: len(half)], half))
            tx.delta["tri"].inserted.numpy()


def index_figures(db: Any, head: str) -> dict[str, Any]:
    """Records and bytes of the sensitivity indexes of `head`, by site and in total; bytes of all else of its traces."""
    held = db._kept.heads.get(head)
    sites, records, size, rest = {}, 0, 0, 0
    if held is not None:
        rest = held.support_bytes()
        for trace in held.parts:
            for s in trace.indexes.packings:
                count, memory = trace.indexes.count(s), trace.indexes.memory(s)
                sites[trace.site_name(s)] = {"records": count, "bytes": memory}
                records, size = records + count, size + memory
    return {
        "sites": sites,
        "records": records,
        "index_bytes": size,
        "bytes_per_record": size / records if records else 0.0,
        "support_and_filter_bytes": rest,
        "pages_bytes": db.memory()["total"]["pages"],
    }


def digest(rows: Rows) -> int:
    """A number that sets of rows int64[n, k] share only if they are equal (or by a chance of 2^-64)."""
    mixed = np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        for i in range(rows.shape[1]):
            mixed = (mixed ^ rows[:, i].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return int(mixed.sum(dtype=np.uint64)) if len(rows) else 0


def percentile(values: list[float], share: float) -> float:
    """The least of `values` that at least this `share` of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, int(np.ceil(share * len(ordered))) - 1)]


def answer_of(module: str, request: dict[str, Any], timeout: float) -> dict[str, Any]:
    """What `python -m module --one REQUEST` answers: a JSON object, the last line of its stdout.

    {"status": "timeout" or "error", ...} if there is none.
    """
    command = [sys.executable, "-m", module, "--one", json.dumps(request)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "limit": timeout}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"status": "error", "reason": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    reply: dict[str, Any] = json.loads(lines[-1])
    return reply
