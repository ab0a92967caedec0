"""Where much goes: edges erased at once, followed by rounds, evaluated anew, and by the choice of lftj.

    python -m bench.erased [--quick]

By turns in one process, in three databases with the programs and graphs of `bench.recursion`: random edges, a part of
all, go in one transaction (CPU milliseconds, medians) and come back in the next, which is not timed. The three contents
are compared. Results go to `bench/results/erased.jsonl`; exit code 1 if contents differ, or a workload fails.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from bench import maintained, recursion, results
from bench.cases import Bench, Line
from bench.maintained import Way
from bench.measure import timed
from bench.updates import Batch

ERASED = results.RESULTS / "erased.jsonl"
#: Kind and graph of `bench.recursion`, and how many draws of each part.
WORKLOADS = {
    ("closure", "dag5k"): 3,
    ("closure", "cal"): 3,
    ("closure", "wiki-Vote"): 1,
    ("stream", "pl1m"): 3,
    ("best", "pl1m"): 3,
}
#: Of the edges, those that go at once.
PARTS = (0.001, 0.005, 0.02, 0.1)
WAYS = {"rounds": Way("delta"), "anew": Way("recompute"), "choice": Way()}


def measured(request: Line) -> Line:
    """One workload, in this process: by part, the edges that went and what each way took, and which was chosen."""
    graph = request["graph"]
    workload, head = f"{request['workload']}:{graph}", recursion.head_of(graph)
    recursion.warm(workload)
    databases = {
        name: recursion.loaded(workload, partial(maintained.database, head=head, way=way)) for name, way in WAYS.items()
    }
    for db in databases.values():
        db.evaluate()
    edges = databases["choice"]["e"].numpy()
    rng, none, figures, same = np.random.default_rng(1), edges[:0], [], True
    for part in PARTS:
        count, chosen = max(1, round(part * len(edges))), ""
        seconds: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(request["draws"]):
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


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for (kind, graph), draws in WORKLOADS.items():
        what = {"workload": kind, "graph": graph, "mode": "erased", "engine": "lftj", "quick": quick}
        if not quick or graph == "cal":
            yield {**what, "draws": 1 if quick else draws}


def note(line: Line) -> str:
    """The figures in one line: of each part what rounds, evaluating anew and the choice took, and which that is."""
    return "; ".join(
        f"{part['edges']:,} edges {'/'.join(f'{ms:.0f}' for ms in part['ms'].values())} ms ({part['chosen']})"
        for part in line["parts"]
    )


BENCH = Bench("bench.erased", ERASED, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
