"""Whether anything grows or slows down over a million transactions in a row.

    python -m bench.endurance [-n 1_000_000] [--edges 100_000]

Triangles over a power-law graph are kept up to date through single-edge transactions, half of which insert a random
absent edge and half erase a random present one, so that the graph keeps its size. Per tenth of the run: median and p99
CPU milliseconds, bytes of pages in use, resident memory. The last tenth may take 1.3 times what the first one took.
Results go to `bench/results/endurance.jsonl`; exit code 1 if the bound does not hold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import graphs, maintained, results
from bench.graphs import Rows
from bench.maintained import percentile
from bench.measure import status_mb
from bench.updates import Batch

ENDURANCE = results.RESULTS / "endurance.jsonl"
BOUND = 1.3
NONE = np.empty((0, 2), np.int64)
BLOCK = 10_000


def single_edges(rows: Rows, nodes: int, n: int, seed: int) -> Iterator[Batch]:
    """`n` changes of one edge each, inserts and erases by turns, all of them effective."""
    rng = np.random.default_rng(seed)
    codes = array("q", (rows[:, 0] * nodes + rows[:, 1]).tolist())
    present = set(codes)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        picks, drawn = rng.random(size).tolist(), rng.integers(0, nodes * nodes, size=4 * size).tolist()
        for i in range(size):
            if i % 2:
                at = int(picks[i] * len(codes))
                code, codes[at] = codes[at], codes[-1]
                codes.pop()
                present.remove(code)
                yield Batch(np.array([divmod(code, nodes)], np.int64), NONE)
                continue
            code = drawn.pop()
            while code in present or code // nodes == code % nodes:
                code = int(rng.integers(0, nodes * nodes))
            codes.append(code)
            present.add(code)
            yield Batch(NONE, np.array([divmod(code, nodes)], np.int64))


def endured(rows: Rows, nodes: int, n: int, tenths: int = 10) -> dict[str, Any]:
    """The figures of `n` transactions on the graph `rows`."""
    db = maintained.database(maintained.TRIANGLE, "tri")
    db.load("e", rows)
    db.evaluate()
    changes = single_edges(rows, nodes, n + 1, seed=51)
    maintained.apply(db, "e", next(changes))  # records
    deciles = []
    for part in range(tenths):
        took = array("d")
        for _ in range(n * part // tenths, n * (part + 1) // tenths):
            batch = next(changes)
            start = time.process_time()
            maintained.apply(db, "e", batch)
            took.append(time.process_time() - start)
        figures = maintained.index_figures(db, "tri")
        deciles.append(
            {
                "median_ms": statistics.median(took) * 1e3,
                "p99_ms": percentile(list(took), 0.99) * 1e3,
                "mean_ms": statistics.fmean(took) * 1e3,
                "pages_bytes": figures["pages_bytes"],
                "index_bytes": figures["index_bytes"],
                "records": figures["records"],
                "resident_mb": status_mb("VmRSS"),
            }
        )
        shown = f"median {deciles[-1]['median_ms']:.3f} ms  p99 {deciles[-1]['p99_ms']:.3f} ms"
        memory = f"pages {deciles[-1]['pages_bytes'] / 2**20:.1f} MB  resident {deciles[-1]['resident_mb']:.1f} MB"
        sys.stderr.write(f"tenth {part + 1:2}  {shown}  {memory}\n")
    kept = len(db["tri"])
    if kept != (again := db.query("e(x, y), e(y, z), e(x, z)").count()):
        raise AssertionError(f"{kept:,} triangles maintained, {again:,} found anew")
    return {
        "transactions": n,
        "edges": len(rows),
        "count": kept,
        "deciles": deciles,
        "ratio": deciles[-1]["median_ms"] / deciles[0]["median_ms"],
        "pages_ratio": deciles[-1]["pages_bytes"] / deciles[0]["pages_bytes"],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record; exit code 1 if the bound does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.endurance", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--transactions", default="1_000_000", help="how many transactions")
    parser.add_argument("--edges", default="100_000")
    parser.add_argument("-o", "--output", type=Path, default=ENDURANCE)
    options = parser.parse_args(arguments)
    edges = int(options.edges)
    nodes = max(8, edges // 5)
    maintained.warm()
    rows = graphs.power_law(nodes, edges, 0.55, 0.65, seed=50)
    figures = endured(rows, nodes, int(options.transactions))
    sys.stdout.write(f"last tenth / first tenth: {figures['ratio']:.3f}, pages {figures['pages_ratio']:.3f}\n")
    results.append(
        options.output,
        {
            "workload": "triangle",
            "graph": "power law",
            "mode": "endurance",
            "engine": "lftj",
            "status": "ok",
            **figures,
        },
    )
    return int(figures["ratio"] > BOUND)


if __name__ == "__main__":
    sys.exit(main())
