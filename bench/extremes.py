"""min and max while the current extreme is erased, again and again: steps, and CPU time of a transaction.

    python -m bench.extremes [-e lftj,heap] [--quick]

Two groups of 1,000 to 1,000,000 values each; every transaction erases the row of the least (the greatest) value of one
of them, so that the next one has to be found. Steps are counted, and do not depend on the machine: they may grow with
the logarithm of the group only. The rival makes a heap of the surviving values each time and takes its top. Both must
find the same values. To `bench/results/extremes.jsonl`; exit code 1 if they differ.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np

from bench import results
from bench.cases import Bench, Line, times
from bench.graphs import Rows

EXTREMES = results.RESULTS / "extremes.jsonl"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK = (100, 1_000, 10_000)
MODES, ENGINES = ("min", "max"), ("lftj", "heap")
ERASES, HEAP_VALUES = 200, 5_000_000
#: Steps may grow by so many each time the group doubles: halvings in two relations and below two heads.
PER_DOUBLING = 4.0


def program(mode: str) -> str:
    """`best[g]`: the least or the greatest value of a group."""
    return f"""
        .decl r(g:number, t:number, v:number)
        .decl best(g:number) -> v:number
        best[g] = {mode} v : {{ r(g, _, v) }}.
        """


def relation(n: int) -> Rows:
    """Rows (group, t, value) of two groups, the values of each all different and in no order."""
    rng = np.random.default_rng(90)
    values = np.concatenate([rng.permutation(n) * 3 - n for _ in range(2)])
    return np.stack([np.repeat(np.arange(2), n), np.tile(np.arange(n), 2), values], axis=1)


def in_order(rows: Rows, mode: str) -> Rows:
    """The rows of group 0, those that are to be erased first."""
    own = rows[rows[:, 0] == 0]
    ordered: Rows = own[np.argsort(own[:, 2] if mode == "min" else -own[:, 2])]
    return ordered


def ours(n: int, mode: str, erases: int) -> Line:
    """The figures of lftj."""
    import lftj

    rows = relation(n)
    db = lftj.Database(program(mode))
    db.load("r", rows)
    db.evaluate()
    took: list[float] = []
    steps: list[int] = []
    found: list[int] = []
    for row in in_order(rows, mode)[: erases + 1].tolist():
        start = time.process_time()
        with db.transaction() as tx:
            tx.erase("r", [tuple(row)])
        took.append(time.process_time() - start)
        steps.append(tx.stats["total"]["steps"])
        best: dict[int, int] = dict(db["best"])
        found.append(best[0])
    # The first transaction makes the key order and records.
    return {"size": n, **times(took[1:]), "steps_max": max(steps[1:]), "found": found[1:]}


def heaps(n: int, mode: str, erases: int) -> Line:
    """The figures of a heap that is made of the survivors each time; fewer erases where it takes long."""
    sign = 1 if mode == "min" else -1
    values = (in_order(relation(n), mode)[:, 2] * sign).tolist()
    took, found = [], []
    for i in range(2, 2 + max(3, min(erases, HEAP_VALUES // n))):
        start = time.process_time()
        heap = values[i:]
        heapq.heapify(heap)
        took.append(time.process_time() - start)
        found.append(heap[0] * sign)
    return {"size": n, **times(took), "found": found}


def measured(request: Line) -> Line:
    """One engine and one of min and max, all sizes: `request` has "mode", "engine" and "quick"."""
    quick, mode = request["quick"], request["mode"]
    follow = ours if request["engine"] == "lftj" else heaps
    erases = 20 if quick else ERASES
    if not quick:
        follow(50, mode, 5)
    sizes = [follow(n, mode, erases) for n in (QUICK if quick else SIZES)]
    digests = {f"{m['size']}.{i}": str(value) for m in sizes for i, value in enumerate(m.pop("found"))}
    return {"status": "ok", "sizes": sizes, "digests": digests}


def growth(line: Line) -> float:
    """The steps that each doubling of the group adds."""
    first, last = line["sizes"][0], line["sizes"][-1]
    return float((last["steps_max"] - first["steps_max"]) / np.log2(last["size"] / first["size"]))


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for mode in MODES:
        for engine in ENGINES:
            yield {"workload": "extreme", "graph": "permutations", "mode": mode, "engine": engine, "quick": quick}


def note(line: Line) -> str:
    """The figures in one line."""
    sizes = line["sizes"]
    return "  ".join(f"{m['size']:,}: {m['median_ms']:.3f} ms, {m.get('steps_max', '-')} steps" for m in sizes)


BENCH = Bench("bench.extremes", EXTREMES, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
