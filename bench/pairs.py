"""No transaction much dearer than evaluating anew: large batches, with lftj's choice and with re-evaluation by turns.

    python -m bench.pairs [-g pl1m,pl1m_skew] [-n batches of a size]

Two databases in one process get the same transactions, one right after the other and each first by turns: a machine
that changes its speed between two processes by a fifth cannot tell what takes a fifth longer. A few batches of every
published size come first. Results go to `bench/results/pairs.jsonl`; exit code 1 if a median is over `WORST_RATIO`
times that of re-evaluation.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench import graphs, results, updates
from bench.latency import STREAMED, Maintained, cpu_of
from bench.maintained import answer_of

PAIRS = results.RESULTS / "pairs.jsonl"
#: What a transaction may take of the time of evaluating anew.
WORST_RATIO = 1.2
#: Rows per batch: from where lftj maintains still to half of the data.
SIZES = (20_000, 50_000, 100_000, 200_000, 500_000)
BEFORE = 3


def paired(graph: str, batches: int, sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Per size: what each of `batches` transactions took by lftj's choice and anew, in milliseconds."""
    data = graphs.load(graph)
    subjects = [Maintained("lftj"), Maintained("lftj-recompute")]
    for subject in subjects:
        subject.load(data.rows)
        subject.evaluate()
    stream = groupby(updates.stream(graph, data.rows), key=lambda batch: batch.size)
    before = [batch for _, group in stream for batch in list(group)[:BEFORE]]
    for batch in before:
        for subject in subjects:
            subject.apply(batch)
    rows = updates.changed(data.rows, before)
    measured = []
    wanted = [(size, batches) for size in sizes if size <= len(rows) // 2]
    for size, group in groupby(updates.generated(rows, wanted, seed=21), key=lambda batch: batch.size):
        took: tuple[list[float], list[float]] = ([], [])
        for i, batch in enumerate(group):
            for k in (0, 1) if i % 2 else (1, 0):
                took[k].append(cpu_of(lambda k=k, batch=batch: subjects[k].apply(batch)) * 1e3)
        (how,) = subjects[0].last.stats["heads"].values()
        measured.append({"size": size, "strategy": how["strategy"], "chosen_ms": took[0], "anew_ms": took[1]})
    return {"status": "ok", "count": subjects[0].evaluate(), "sizes": measured}


def ratio(figures: dict[str, Any]) -> float:
    """The median by lftj's choice, by that of re-evaluation."""
    return float(statistics.median(figures["chosen_ms"]) / statistics.median(figures["anew_ms"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        request = json.loads(arguments[1])
        sys.stdout.write(json.dumps(paired(request["graph"], request["batches"])) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.pairs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-g", "--graphs", default=",".join(STREAMED), help=f"of {', '.join(STREAMED)}")
    parser.add_argument("-n", "--batches", type=int, default=7, help="of every size")
    parser.add_argument("-o", "--output", type=Path, default=PAIRS)
    options = parser.parse_args(arguments)
    failed = False
    for graph in options.graphs.split(","):
        reply = answer_of("bench.pairs", {"graph": graph, "batches": options.batches}, 900.0)
        for figures in reply.get("sizes", ()):
            sys.stderr.write(
                f"{graph:10} {figures['size']:>9,} rows  {ratio(figures):.2f} × anew, {figures['strategy']}\n"
            )
            failed |= ratio(figures) > WORST_RATIO
        failed |= reply["status"] != "ok"
        line = {"workload": "triangle", "graph": graphs.title(graph), "mode": "pairs", "engine": "lftj", **reply}
        results.append(options.output, line)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
