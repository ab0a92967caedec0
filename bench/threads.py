"""Wall-clock time of one thread and of two in one process: triangles over a million edges.

    python -m bench.threads [-g pl1m,pl1m_skew] [--rounds 7] [--quiet 60]

One thread and two take turns, in the same run, on a database each:

    evaluate    the rule in full, over edges that have just been loaded
    batch       a transaction of the update stream (bench.updates), or a generated one behind it, by its rows

Every turn is a pair, and what is reported is the median of each side and of the pairs' ratios. A machine that does
something else beside that has no two cores to offer: a turn waits until it is idle, for `--quiet` seconds at most, and
`busy` says how many cores' worth of others' work there was during the pairs, in the median. Results go to
`bench/results/threads.jsonl`, one line per graph and kind.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench import graphs, maintained, results, updates
from bench.maintained import TRIANGLE

THREADS = results.RESULTS / "threads.jsonl"
#: Rows of the batches that are measured, and how many are applied at most.
BATCHES = {100: 20, 1_000: 20, 10_000: 21}
#: Cores' worth of others' work below which the machine is idle.
IDLE = 0.15


def cores_busy() -> float:
    """CPU seconds that all cores have worked since the machine was started; 0 where the system does not say."""
    try:
        with open("/proc/stat", encoding="utf-8") as stat:
            user, nice, system, _, _, irq, soft, steal, *_ = map(int, stat.readline().split()[1:])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


class Watch:
    """What others did on this machine while the block ran, in cores."""

    def __enter__(self) -> Watch:
        self._started, self._busy, self._own = time.perf_counter(), cores_busy(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._started
        self.others = max(0.0, cores_busy() - self._busy - time.process_time() + self._own) / seconds


def wait_until_idle(seconds: float) -> None:
    """Wait until nobody else works, for so many seconds at most."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with Watch() as watch:
            time.sleep(0.3)
        if watch.others < IDLE:
            return


def clock(action: Callable[[], Any]) -> float:
    """Wall-clock milliseconds of one call."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


class Pairs:
    """Turns of one thread and two, and what others did meanwhile."""

    def __init__(self, quiet: float) -> None:
        self.quiet = quiet
        self.one: list[float] = []
        self.two: list[float] = []
        self.others: list[float] = []

    def take(self, one: Callable[[], Any], two: Callable[[], Any]) -> None:
        """A turn of both, in the other order than the last time."""
        wait_until_idle(self.quiet)
        with Watch() as watch:
            sides = [(self.one, one), (self.two, two)]
            for times, action in sides if len(self.one) % 2 else sides[::-1]:
                times.append(clock(action))
        self.others.append(watch.others)

    def figures(self) -> dict[str, Any]:
        """For the results."""
        return {
            "pairs": len(self.one),
            "one_ms": statistics.median(self.one),
            "two_ms": statistics.median(self.two),
            "ratio": statistics.median(one / two for one, two in zip(self.one, self.two, strict=True)),
            "busy": statistics.median(self.others),
        }


def database(threads: int, rows: graphs.Rows) -> Any:
    """A database with the edges and the rule."""
    import lftj

    db = lftj.Database(TRIANGLE, threads=threads)
    db.load("e", rows)
    return db


def measured(graph: str, rounds: int, quiet: float) -> dict[str, Pairs]:
    """The pairs of a graph, by kind."""
    data = graphs.load(graph)
    found = {"evaluate": Pairs(quiet)}
    for _ in range(rounds):
        one, two = (database(threads, data.rows) for threads in (1, 2))
        found["evaluate"].take(lambda one=one: len(one["tri"]), lambda two=two: len(two["tri"]))
        assert len(one["tri"]) == len(two["tri"])
    published = list(updates.stream(graph, data.rows))
    largest = max(BATCHES)
    more = [(largest, BATCHES[largest] - sum(batch.size == largest for batch in published))]
    generated = updates.generated(updates.changed(data.rows, published), more, seed=22)
    for size, batches in groupby((*published, *generated), key=lambda batch: batch.size):
        pairs = Pairs(quiet if size == largest else 0.0)
        for i, batch in enumerate(batches):
            if i < BATCHES.get(size, 0):
                pairs.take(lambda b=batch: maintained.apply(one, "e", b), lambda b=batch: maintained.apply(two, "e", b))
            else:
                maintained.apply(one, "e", batch), maintained.apply(two, "e", batch)
        if pairs.one:
            found[f"batch {size}"] = pairs
    assert one["tri"] == two["tri"]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(prog="python -m bench.threads", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-g", "--graphs", default="pl1m,pl1m_skew", help="graphs with update streams")
    parser.add_argument("--rounds", type=int, default=7, help="full evaluations of each")
    parser.add_argument("--quiet", type=float, default=30.0, help="seconds to wait for an idle machine, per pair")
    parser.add_argument("-o", "--output", type=Path, default=THREADS)
    options = parser.parse_args(arguments)
    maintained.warm()
    for graph in options.graphs.split(","):
        for kind, pairs in measured(graph, options.rounds, options.quiet).items():
            figures = pairs.figures()
            sys.stdout.write(
                f"{graph:10} {kind:12} one thread {figures['one_ms']:8.2f} ms, two {figures['two_ms']:8.2f} ms, "
                f"ratio {figures['ratio']:.2f}  ({figures['pairs']} pairs, others' work {figures['busy']:.2f} cores)\n"
            )
            sys.stdout.flush()
            line = {"workload": "triangles", "graph": graphs.title(graph), "mode": kind, "engine": "lftj threads=2"}
            results.append(options.output, {**line, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
