"""Where much goes: edges of a closure erased at once, followed by rounds, evaluated anew, and by the choice of lftj.

    python -m bench.erased [-w right:dag5k,closure:dag5k,closure:cal,closure:wiki-Vote,stream:pl1m] [-n times]

By turns in one process, in three databases with the programs and graphs of `bench.recursion`: random edges, a part of
all, go in one transaction (CPU milliseconds, medians) and come back in the next, which is not timed. The three contents
are compared. Results go to `bench/results/erased.jsonl`; exit code 1 if contents differ, or a workload fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import maintained, recursion, results
from bench.graphs import Rows
from bench.maintained import Way
from bench.measure import timed
from bench.updates import Batch

ERASED = results.RESULTS / "erased.jsonl"
USUAL = "right:dag5k,closure:dag5k,closure:cal,closure:wiki-Vote,stream:pl1m"
#: Of the edges, those that go at once.
PARTS = (0.001, 0.005, 0.02, 0.1)
WAYS = {"rounds": Way("delta"), "anew": Way("recompute"), "choice": Way()}


def head_of(workload: str) -> str:
    """What a workload derives."""
    return "r" if workload.endswith("pl1m") else "t"


def loaded(workload: str, way: Way, edges: Rows) -> Any:
    """A database that follows a workload's head in this way."""
    kind, _, graph = workload.partition(":")
    db = maintained.database(recursion.program(kind, graph), head_of(workload), way)
    db.load("e", edges)
    if "b" in db:
        db.load("b", np.zeros((1, 1), np.int64))
    db.evaluate()
    return db


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """One workload, in this process: by part, the edges that went and what each way took, and which was chosen."""
    workload, head = request["workload"], head_of(request["workload"])
    recursion.warm(workload)
    edges = recursion.loaded(workload)["e"].numpy()
    databases = {name: loaded(workload, way, edges) for name, way in WAYS.items()}
    rng, none, figures, same = np.random.default_rng(1), edges[:0], [], True
    for part in PARTS:
        count, chosen = max(1, round(part * len(edges))), ""
        seconds: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(request["times"]):
            gone = edges[rng.choice(len(edges), count, replace=False)]
            digests = set()
            for name, db in databases.items():
                tx, took = timed(partial(maintained.apply, db, "e", Batch(gone, none)))
                seconds[name].append(took.cpu)
                digests.add(maintained.digest(db[head].numpy()))
                chosen = tx.stats["heads"][head]["strategy"]
            same = same and len(digests) == 1
            for db in databases.values():
                maintained.apply(db, "e", Batch(none, gone))
        took_ms = {name: statistics.median(taken) * 1e3 for name, taken in seconds.items()}
        figures.append({"part": part, "edges": count, "chosen": chosen, "ms": took_ms})
    return {"status": "ok" if same else "wrong", "parts": figures}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        sys.stdout.write(json.dumps(measured(json.loads(arguments[1]))) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.erased", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-w", "--workloads", default=USUAL)
    parser.add_argument("-n", "--times", type=int, default=3, help="draws of each size")
    parser.add_argument("-t", "--timeout", type=float, default=900.0, help="seconds for a workload")
    parser.add_argument("-o", "--output", type=Path, default=ERASED)
    options = parser.parse_args(arguments)
    failed = 0
    for workload in options.workloads.split(","):
        reply = maintained.answer_of("bench.erased", {"workload": workload, "times": options.times}, options.timeout)
        failed += reply["status"] != "ok"
        sys.stderr.write(f"{workload}: {reply['status']} {reply.get('reason', '')}\n")
        for figures in reply.get("parts", ()):
            shown = ", ".join(f"{name} {ms:.1f}" for name, ms in figures["ms"].items())
            sys.stderr.write(f"  {figures['edges']:9,} edges erased: {shown} ms ({figures['chosen']})\n")
        kind, _, graph = workload.partition(":")
        results.append(options.output, {"workload": kind, "graph": graph, "mode": "erased", "engine": "lftj", **reply})
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
