"""lftj's choice of a strategy beside those that are forced, by turns.

    python -m bench.pairs [--only cells] [-s shape, shape] [-g pl1m,pl1m_skew] [-n batches of a size]

Databases in one process get the same transactions, one right after the other and in every order by turns: a machine
that changes its speed between two processes by a fifth cannot tell what takes a fifth longer. Batches of the published
sizes go to the planner's choice, to delta joins and to traces; larger ones to the choice, to deltas and to
re-evaluation. The cells (cells.py) are shapes of rules over random relations, and go to the choice and to every
strategy that fits. Results go to `bench/results/pairs.jsonl`; exit code 1 if a median is over `WORST_RATIO` times that
of the best other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, permutations, product
from pathlib import Path
from typing import Any

from bench import cells, graphs, results, updates
from bench.cells import WORST_RATIO
from bench.latency import STREAMED, Maintained, cpu_of
from bench.maintained import answer_of
from bench.updates import Batch

PAIRS = results.RESULTS / "pairs.jsonl"
#: Rows per batch: from where lftj maintains still to half of the data.
SIZES = (20_000, 50_000, 100_000, 200_000, 500_000)
BEFORE = 3
#: Strategies that the planner's choice is compared with, and of how many batches of a published size at most.
FORCED = ("lftj-delta", "lftj-interval")
LARGE = ("lftj-delta", "lftj-recompute")
PUBLISHED = {1: 200, 10: 100, 100: 30, 1_000: 12, 10_000: 5}


def loaded(graph: graphs.Dataset, engines: Sequence[str]) -> list[Maintained]:
    """A database for each of `engines`, evaluated."""
    subjects = [Maintained(engine) for engine in engines]
    for subject in subjects:
        subject.load(graph.rows)
        subject.evaluate()
    return subjects


def by_turns(subjects: Sequence[Maintained], batches: Iterable[Batch]) -> list[list[float]]:
    """What the transactions with `batches` took each of the subjects, in milliseconds.

    Each comes first by turns, and after each other: what one leaves in the caches serves the next, or is in its way.
    """
    took: list[list[float]] = [[] for _ in subjects]
    turns = list(permutations(range(len(subjects))))
    for i, batch in enumerate(batches):
        for k in turns[i % len(turns)]:
            took[k].append(cpu_of(lambda k=k, batch=batch: subjects[k].apply(batch)) * 1e3)
    return took


def chosen(subject: Maintained) -> str:
    """How the last transaction of a subject was followed."""
    (how,) = subject.last.stats["heads"].values()
    return str(how["strategy"])


def published(graph: str, sizes: Mapping[int, int] = PUBLISHED) -> dict[str, Any]:
    """Per size: what each of so many transactions took by lftj's choice and by the forced strategies."""
    data = graphs.load(graph)
    engines = ("lftj", *FORCED)
    subjects = loaded(data, engines)
    measured = []
    for size, group in groupby(updates.stream(graph, data.rows), key=lambda batch: batch.size):
        if size in sizes:
            # The first transaction records the trace; all are applied, for the next ones are of what they leave.
            batches = list(group)
            by_turns(subjects, batches[:1])
            took = by_turns(subjects, batches[1 : 1 + sizes[size]])
            ms = dict(zip(engines, took, strict=True))
            measured.append({"size": size, "strategy": chosen(subjects[0]), "ms": ms})
            for subject in subjects:
                for batch in batches[1 + sizes[size] :]:
                    subject.apply(batch)
    counts = {subject.evaluate() for subject in subjects}
    return {"status": "ok" if len(counts) == 1 else "wrong", "count": counts.pop(), "published": measured}


def paired(graph: str, batches: int, sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Per size: what each of `batches` transactions took by lftj's choice, by delta joins and anew, in milliseconds."""
    data = graphs.load(graph)
    engines = ("lftj", *LARGE)
    subjects = loaded(data, engines)
    stream = groupby(updates.stream(graph, data.rows), key=lambda batch: batch.size)
    before = [batch for _, group in stream for batch in list(group)[:BEFORE]]
    for batch in before:
        for subject in subjects:
            subject.apply(batch)
    rows = updates.changed(data.rows, before)
    measured = []
    wanted = [(size, batches) for size in sizes if size <= len(rows) // 2]
    for size, group in groupby(updates.generated(rows, wanted, seed=21), key=lambda batch: batch.size):
        took = by_turns(subjects, group)
        ms = dict(zip(engines, took, strict=True))
        measured.append({"size": size, "strategy": chosen(subjects[0]), "ms": ms})
    counts = {subject.evaluate() for subject in subjects}
    return {"status": "ok" if len(counts) == 1 else "wrong", "count": counts.pop(), "sizes": measured}


def choice_ratio(figures: dict[str, Any]) -> float:
    """The median by lftj's choice, by the least of the forced strategies."""
    medians = {engine: statistics.median(ms) for engine, ms in figures["ms"].items()}
    return float(medians.pop("lftj") / min(medians.values()))


def in_cells(shape: str) -> dict[str, Any]:
    """The cells of a shape, ground by ground."""
    grounds = [ground for ground in cells.GROUNDS if ground.shape == shape]
    return {"grounds": [{"size": g.size, "hubs": g.hubs, **cells.measured(g)} for g in grounds]}


def _record_cells(shape: str, output: Path) -> bool:
    """Measure, print and record the cells of a shape; whether the choice was too dear, or an answer wrong."""
    reply = answer_of("bench.pairs", {"shape": shape}, 600.0)
    failed = "grounds" not in reply
    for ground in reply.get("grounds", ()):
        skew = "hubs" if ground["hubs"] else "uniform"
        failed |= ground["status"] != "ok"
        for cell in ground["cells"]:
            worst = cells.ratio(cell)
            failed |= worst > WORST_RATIO
            medians = " ".join(f"{how} {statistics.median(ms):.3f}" for how, ms in cell["ms"].items())
            sys.stderr.write(
                f"{shape:22} {ground['size']:>9,} {skew:7} {cell['changes'] or 'loaded':>6} {worst:5.2f}  {medians}  "
                f"{cell['strategy']}\n"
            )
    if failed and "grounds" not in reply:
        sys.stderr.write(f"{shape}: {reply}\n")
    line = {"workload": "cells", "graph": shape, "mode": "cells", "engine": "lftj", "status": "ok", **reply}
    results.append(output, line)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        request = json.loads(arguments[1])
        if "shape" in request:
            found: dict[str, Any] = in_cells(request["shape"])
            sys.stdout.write(json.dumps(found) + "\n")
            return 0
        found = published(request["graph"]) if request["published"] else paired(request["graph"], request["batches"])
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.pairs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("graphs", "cells"), help="of the two parts")
    parser.add_argument("-s", "--shapes", default="", help="cells of shapes that begin so")
    parser.add_argument("-g", "--graphs", default=",".join(STREAMED), help=f"of {', '.join(STREAMED)}")
    parser.add_argument("-n", "--batches", type=int, default=7, help="of every size")
    parser.add_argument("-o", "--output", type=Path, default=PAIRS)
    options = parser.parse_args(arguments)
    failed = False
    for shape in cells.SHAPES if options.only != "graphs" else ():
        if shape.startswith(options.shapes):
            failed |= _record_cells(shape, options.output)
    if options.only == "cells":
        return int(failed)
    for graph, forced in product(options.graphs.split(","), (True, False)):
        request = {"graph": graph, "batches": options.batches, "published": forced}
        reply = answer_of("bench.pairs", request, 900.0)
        for figures in (*reply.get("published", ()), *reply.get("sizes", ())):
            worst = choice_ratio(figures)
            sys.stderr.write(
                f"{graph:10} {figures['size']:>9,} rows  {worst:.2f} × the better, {figures['strategy']}\n"
            )
            failed |= worst > WORST_RATIO
        failed |= reply["status"] != "ok"
        mode = "choice" if forced else "pairs"
        line = {"workload": "triangle", "graph": graphs.title(graph), "mode": mode, "engine": "lftj", **reply}
        results.append(options.output, line)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
