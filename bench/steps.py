"""How many steps the triangle join takes, against two bounds.

    python -m bench.steps [graph ...]

1. On every graph: steps <= 2 x the sum over arcs (x, y) of min(outdegree x, outdegree y). That sum is what
   intersecting every pair of runs costs when only the shorter one is walked.
2. On complete tripartite graphs, where the number of triangles meets the AGM bound |E|^1.5: the exponent by which
   steps grow with |E| (least squares on the logarithms) is at most 1.55.

Steps are deterministic, so these figures do not depend on the machine. They go to `bench/results/steps.jsonl`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from bench import graphs, results
from bench.graphs import Rows
from bench.rivals.csr import TRIANGLE
from bench.worker import engine
from bench.workloads import by_name

BOUND = 2.0
EXPONENT = 1.55
PARTS = (8, 16, 32, 64, 128)


def min_degree_sum(rows: Rows) -> int:
    """The sum over arcs (x, y) of `rows` int64[n, 2] of the smaller of the two outdegrees."""
    if len(rows) == 0:
        return 0
    out = np.bincount(rows[:, 0], minlength=int(rows.max()) + 1)
    return int(np.minimum(out[rows[:, 0]], out[rows[:, 1]]).sum())


def growth(sizes: Sequence[int], counts: Sequence[float]) -> float:
    """The exponent k of the best fit counts ~ sizes^k."""
    return float(np.polyfit(np.log(np.asarray(sizes, float)), np.log(np.asarray(counts, float)), 1)[0])


def triangle_steps(rows: Rows) -> tuple[int, dict[str, int]]:
    """(triangles, counters) of lftj's counting query on the graph `rows`."""
    session = engine("lftj")
    session.load(TRIANGLE, {"e": rows})
    count = session.run(TRIANGLE, "count")
    return count, session.counters()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record; exit code 1 if a bound does not hold."""
    chosen = tuple(sys.argv[1:] if arguments is None else arguments) or tuple(
        c.graph for c in by_name("triangle").cases
    )
    failed = 0
    for name in chosen:
        data = graphs.load(name)
        bound = min_degree_sum(data.rows)
        count, counters = triangle_steps(data.rows)
        ratio = counters["steps"] / bound
        failed += ratio > BOUND
        taken = f"steps {counters['steps']:>13,}  bound sum {bound:>13,}  ratio {ratio:5.2f}"
        sys.stdout.write(f"{data.name:24} triangles {count:>12,}  {taken}\n")
        results.append(
            results.STEPS, {"graph": data.name, "count": count, **counters, "min_degree_sum": bound, "ratio": ratio}
        )
    sizes, steps = [], []
    for part in PARTS:
        rows = graphs.tripartite(part)
        count, counters = triangle_steps(rows)
        if count != part**3:
            raise AssertionError(f"tripartite graph of parts of {part} has {part**3} triangles, counted {count}")
        sizes.append(len(rows))
        steps.append(counters["steps"])
    exponent = growth(sizes, steps)
    failed += exponent > EXPONENT
    sys.stdout.write(f"complete tripartite, |E| {sizes}: steps {steps}, exponent {exponent:.3f}\n")
    results.append(results.STEPS, {"graph": "tripartite", "sizes": sizes, "steps": steps, "exponent": exponent})
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
