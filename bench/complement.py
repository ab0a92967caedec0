"""Pairs that are missing: the cost of a complement follows its own size, not that of what it is taken of.

    python -m bench.complement [-e lftj,duckdb] [--quick]

`missing(x, y) :- v(x), v(y), !e(x, y).` over 1,000 vertices where all but 0, 10, 1,000 or 100,000 of the 1,000,000
pairs are there: evaluated, and kept up to date while one pair goes or comes, and while a vertex comes or goes (which
brings or takes its pairs). Steps are counted and do not depend on the machine; looking every pair up would take
|v| x |v| of them. The rival is DuckDB's anti join, evaluated anew. Both must find the same pairs. To
`bench/results/complement.jsonl`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench import results
from bench.cases import Bench, Line, times
from bench.graphs import Rows
from bench.maintained import apply, digest
from bench.rivals.recompute import Recomputed
from bench.updates import Batch

COMPLEMENT = results.RESULTS / "complement.jsonl"
ENGINES = ("lftj", "duckdb")
VERTICES, MISSING = 1_000, (0, 10, 1_000, 100_000)
QUICK_VERTICES, QUICK_MISSING = 40, (0, 10, 400)
#: Changes of a pair, those that the rival makes too, and evaluations.
CHANGES, ANEW, EVALUATIONS = 200, 6, 5
#: Steps of an evaluation are at most so many per vertex and missing pair, and those of a changed pair so many.
STEPS, PAIR_STEPS = 12, 8
PROGRAM = """
.decl v(x:number)
.decl e(x:number, y:number)
missing(x, y) :- v(x), v(y), !e(x, y).
"""
SQL = {
    "missing": "SELECT a.c0 AS x, b.c0 AS y FROM v a, v b "
    "WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.c0 = a.c0 AND e.c1 = b.c0)"
}
NO_VERTEX, NO_PAIR = np.empty((0, 1), np.int64), np.empty((0, 2), np.int64)


def vertices(n: int) -> Rows:
    """The vertices int64[n, 1]."""
    return np.arange(n).reshape(-1, 1)


def pairs(n: int, missing: int) -> Rows:
    """All pairs of `n` vertices but `missing` random ones."""
    codes = np.delete(np.arange(n * n), np.random.default_rng(100).choice(n * n, missing, replace=False))
    return np.stack([codes // n, codes % n], axis=1)


def changes(rows: Rows, count: int) -> Iterator[Batch]:
    """Batches of one pair: a random one goes, comes again, the next one goes, and so on."""
    rng = np.random.default_rng(101)
    for _ in range(count // 2):
        row = rows[rng.integers(0, len(rows))][None]
        yield Batch(row, NO_PAIR)
        yield Batch(NO_PAIR, row)


def ours(n: int, missing: int, count: int) -> Line:
    """The figures of lftj: `count` changes of a pair, after the one that records."""
    import lftj

    rows = pairs(n, missing)
    evaluated = []
    for _ in range(EVALUATIONS):
        db = lftj.Database(PROGRAM)
        db.load("v", vertices(n))
        db.load("e", rows)
        start = time.process_time()
        db.evaluate()
        evaluated.append(time.process_time() - start)
    (stratum,) = json.loads(db.explain("missing").json())["strata"]
    digests = {"all": _told(db["missing"].numpy())}
    first, *rest = changes(rows, count + 2)
    recorded = _timed(db, "e", first)
    took, steps = [], []
    for i, batch in enumerate(rest):
        seconds, taken = _timed(db, "e", batch)
        took.append(seconds)
        steps.append(taken)
        if i < ANEW:
            digests[f"pair {i}"] = _told(db["missing"].numpy())
    vertex = np.array([[n]])
    moves = [_timed(db, "v", batch) for batch in (Batch(NO_VERTEX, vertex), Batch(vertex, NO_VERTEX)) * 5]
    return {
        "evaluate_ms": statistics.median(evaluated) * 1e3,
        "steps": sum(rule["actual"]["steps"] for rule in stratum["rules"]),
        "record_ms": recorded[0] * 1e3,
        "record_steps": recorded[1],
        "pair": {**times(took), "steps_max": max(steps)},
        "vertex": {**times([seconds for seconds, _ in moves]), "steps_max": max(taken for _, taken in moves)},
        "digests": digests,
    }


def _timed(db: Any, name: str, batch: Batch) -> tuple[float, int]:
    """(CPU seconds, steps) of one transaction."""
    start = time.process_time()
    tx = apply(db, name, batch)
    return time.process_time() - start, tx.stats["total"]["steps"]


def _told(rows: Rows) -> str:
    return f"{len(rows)}-{digest(rows):x}"


def rival(n: int, missing: int, count: int) -> Line:
    """The figures of DuckDB, which evaluates anew."""
    rows = pairs(n, missing)
    subject = Recomputed(SQL)
    subject.load("v", vertices(n))
    subject.load("e", rows)
    evaluated, took, digests = [], [], {}
    for _ in range(EVALUATIONS):
        start = time.process_time()
        subject.evaluate()
        evaluated.append(time.process_time() - start)
    digests["all"] = _told(np.array(subject.rows("missing"), np.int64).reshape(-1, 2))
    _, *rest = batches = list(changes(rows, count + 2))
    subject.apply("e", batches[0])
    for i, batch in enumerate(rest[:ANEW]):
        start = time.process_time()
        subject.apply("e", batch)
        took.append(time.process_time() - start)
        digests[f"pair {i}"] = _told(np.array(subject.rows("missing"), np.int64).reshape(-1, 2))
    return {"evaluate_ms": statistics.median(evaluated) * 1e3, "pair": times(took), "digests": digests}


def measured(request: Line) -> Line:
    """One engine and one size of the complement: `request` has "vertices", "missing", "engine" and "quick"."""
    follow = ours if request["engine"] == "lftj" else rival
    if not request["quick"]:
        follow(QUICK_VERTICES, 10, 4)
    n, missing = request["vertices"], request["missing"]
    return {"status": "ok", "lookups": n * n, **follow(n, missing, 20 if request["quick"] else CHANGES)}


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    n = QUICK_VERTICES if quick else VERTICES
    for missing in QUICK_MISSING if quick else MISSING:
        for engine in ENGINES:
            what = {"workload": "missing pairs", "graph": f"{missing:,} missing", "mode": "complement"}
            yield {**what, "engine": engine, "vertices": n, "missing": missing, "quick": quick}


def note(line: Line) -> str:
    """The figures in one line."""
    shown = f"evaluated {line['evaluate_ms']:.2f} ms, pair {line['pair']['median_ms']:.3f} ms"
    if "steps" not in line:
        return shown
    steps = f"steps {line['steps']:,} of {line['lookups']:,}, pair {line['pair']['steps_max']}"
    vertex = f"vertex {line['vertex']['median_ms']:.3f} ms, {line['vertex']['steps_max']} steps"
    return f"{shown}; {steps}; {vertex}; record {line['record_ms']:.0f} ms"


BENCH = Bench("bench.complement", COMPLEMENT, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
