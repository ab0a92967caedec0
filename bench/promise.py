"""The promise of the paper: maintenance takes steps in proportion to how far apart two traces are.

    python -m bench.promise [-s triangle,star] [-g uniform,hubs] [--rows 4000]

For seven shapes over three kinds of relation, with INTERVAL at every depth that has a choice: transactions from one
row to half the data, and for each of them

    steps      leapfrog steps of maintenance, keys and records looked at
    distance   records removed + records added + tree surgeries met (arXiv 1303.5313, section 5)

The promise is steps in O(distance) up to logarithms. Reported per shape and kind: the largest and the median ratio, and
the slope of log steps over log distance (1: proportional). Steps do not depend on the machine. Results go to
`bench/results/promise.jsonl`, one line per shape and kind, with every transaction's steps and distance.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench import graphs, maintained, results, updates
from bench.graphs import Rows
from bench.pattern import Pattern
from bench.workloads import by_name

PROMISE = results.RESULTS / "promise.jsonl"

#: Shapes by name: bodies, of the registry where it has them.
SHAPES = {
    "triangle": by_name("triangle").text,
    "4-cycle": by_name("4-cycle").text,
    "4-clique": by_name("4-clique").text,
    "path": by_name("filtered path").text,
    "star": by_name("star").text,
    "bowtie": by_name("bowtie").text,
    "ternary": by_name("Loomis-Whitney").text,
}
#: Of a transaction: rows changed, and what maintenance came to.
COLUMNS = ("batch", "steps", "removed", "added", "surgeries")
KINDS = ("uniform", "power law", "hubs")
ROWS = 4_000


def relation(arity: int, kind: str, rows: int, seed: int = 40) -> Rows:
    """`rows` distinct rows of a kind. Graphs have a quarter as many nodes, without loops.

    hubs: one node in 200 has most of the arcs, in both directions.
    """
    rng = np.random.default_rng(seed)
    if arity == 3:
        domain = max(4, round((rows * 4) ** (1 / 3) * 1.5))
        if kind == "hubs":
            return graphs.ternary(domain, rows, 0.8, seed)
        return graphs.ternary(domain, rows, 0.0 if kind == "uniform" else 0.4, seed)
    nodes = max(8, rows // 4)
    if kind != "hubs":
        exponent = 0.0 if kind == "uniform" else 0.45
        return graphs.power_law(nodes, rows, exponent, exponent, seed)
    hubs = max(2, nodes // 200)
    found = np.empty((0, 2), np.int64)
    while len(found) < rows:
        arcs = rng.integers(0, nodes, size=(2 * rows, 2))
        end = rng.integers(0, 4, size=2 * rows)  # the source is a hub, the target is one, or neither
        for column in (0, 1):
            at = end == column
            arcs[at, column] = rng.integers(0, hubs, size=int(at.sum()))
        found = graphs.distinct(np.concatenate([found, arcs[arcs[:, 0] != arcs[:, 1]]]))
    return np.ascontiguousarray(found[np.sort(rng.permutation(len(found))[:rows])])


def sizes(rows: int) -> list[tuple[int, int]]:
    """(rows of a batch, batches): powers of ten, and half the data."""
    below = [(size, 1 + 20 // (1 + i * 3)) for i, size in enumerate((1, 10, 100, 1_000, 10_000)) if size < rows // 2]
    return [*below, (rows // 2, 2)]


def measured(text: str, kind: str, rows: int) -> list[dict[str, int]]:
    """Every transaction of a shape on a kind of relation: batch, steps, removed, added, surgeries."""
    pattern = Pattern.parse(text)
    ((name, arity),) = pattern.arities.items()
    data = relation(arity, kind, rows)
    program = f"{pattern.declarations()}\nfound({', '.join(pattern.variables)}) :- {pattern}."
    db = maintained.database(program, "found", maintained.WAYS["lftj-interval"])
    db.load(name, data)
    db.evaluate()
    points = []
    for i, batch in enumerate(updates.generated(data, [(1, 1), *sizes(rows)], seed=41)):
        (work,) = maintained.apply(db, name, batch).stats["rules"]
        if i:  # the first transaction records
            points.append({"batch": batch.size, **{each: int(work[each]) for each in COLUMNS[1:]}})
    return points


def distance(point: dict[str, int]) -> int:
    """How far apart the traces before and after are."""
    return point["removed"] + point["added"] + point["surgeries"]


def slope(points: Sequence[dict[str, int]]) -> float:
    """The exponent k of the best fit steps ~ distance^k."""
    moved = [p for p in points if distance(p) and p["steps"]]
    far, steps = [distance(p) for p in moved], [p["steps"] for p in moved]
    return float(np.polyfit(np.log(far), np.log(steps), 1)[0]) if len(set(far)) > 1 else 1.0


def summary(points: Sequence[dict[str, int]]) -> dict[str, float]:
    """Largest and median ratio of steps to distance, and the slope."""
    ratios = [p["steps"] / max(1, distance(p)) for p in points]
    return {"ratio_max": max(ratios), "ratio_median": statistics.median(ratios), "slope": slope(points)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(prog="python -m bench.promise", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-s", "--shapes", default=",".join(SHAPES), help=f"of {', '.join(SHAPES)}")
    parser.add_argument("-g", "--graphs", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("-o", "--output", type=Path, default=PROMISE)
    options = parser.parse_args(arguments)
    everything: list[dict[str, int]] = []
    for shape in options.shapes.split(","):
        for kind in options.graphs.split(","):
            points = measured(SHAPES[shape], kind, options.rows)
            everything += points
            figures = summary(points)
            shown = "  ".join(f"{name} {value:7.2f}" for name, value in figures.items())
            sys.stdout.write(f"{shape:10} {kind:10} {shown}  distance up to {max(map(distance, points)):,}\n")
            sys.stdout.flush()
            line = {"workload": shape, "graph": kind, "mode": "promise", "engine": "lftj-interval"}
            listed = [list(point.values()) for point in points]
            results.append(options.output, {**line, "rows": options.rows, **figures, "points": listed})
    shown = "  ".join(f"{name} {value:7.2f}" for name, value in summary(everything).items())
    sys.stdout.write(f"{'all':21} {shown}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
