"""Wall-clock time of one thread and of two in one process: triangles over a million edges.

    python -m bench.threads [-g pl1m,pl1m_skew] [--rounds 7] [--quiet 60]

One thread and two take turns, in the same run, on a database each:

    evaluate    the rule in full, over edges that have just been loaded
    batch       a transaction of the update stream (bench.updates), or a generated one behind it, by its rows

Every turn is a pair, and what is reported is the median of each side and of the pairs' ratios. A machine that does
something else beside that has no two cores to offer: after a disturbed pair the next one waits until the machine is
idle, for `--quiet` seconds at most (not after others: threads that slept take a while to be on two cores again), and
pairs during which others worked all the same are left out where there are calm ones (`calm` says how many there are,
`pairs` how many were made; both are tried for until there are enough). Results go to `bench/results/threads.jsonl`, one
line per graph and kind.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from bench import graphs, maintained, results, updates
from bench.maintained import TRIANGLE

THREADS = results.RESULTS / "threads.jsonl"
#: Rows of the batches that are measured. Of the largest ones more are generated, until enough of them were calm.
BATCHES = (100, 1_000, 10_000)
MORE = 60
#: Calm pairs that say something.
FEWEST = 3
#: Cores' worth of others' work below which the machine is idle, and a pair is calm.
IDLE = 0.2


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
        if not self.others or self.others[-1] >= IDLE:
            wait_until_idle(self.quiet)
        with Watch() as watch:
            sides = [(self.one, one), (self.two, two)]
            for times, action in sides if len(self.one) % 2 else sides[::-1]:
                times.append(clock(action))
        self.others.append(watch.others)

    @property
    def calm(self) -> list[tuple[float, float]]:
        """The pairs during which nobody else worked."""
        pairs = zip(self.one, self.two, self.others, strict=True)
        return [(one, two) for one, two, others in pairs if others < IDLE]

    def figures(self) -> dict[str, Any]:
        """For the results."""
        pairs = self.calm if len(self.calm) >= FEWEST else list(zip(self.one, self.two, strict=True))
        return {
            "pairs": len(self.one),
            "calm": len(self.calm),
            "one_ms": statistics.median(one for one, _ in pairs),
            "two_ms": statistics.median(two for _, two in pairs),
            "ratio": statistics.median(one / two for one, two in pairs),
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
    for tried in range(4 * rounds):
        if tried >= rounds and len(found["evaluate"].calm) >= rounds:
            break
        one, two = (database(threads, data.rows) for threads in (1, 2))
        found["evaluate"].take(partial(one.evaluate, "tri"), partial(two.evaluate, "tri"))
        assert len(one["tri"]) == len(two["tri"])
    published = list(updates.stream(graph, data.rows))
    largest = max(BATCHES)
    generated = updates.generated(updates.changed(data.rows, published), [(largest, MORE)], seed=22)
    for size, batches in groupby(chain(published, generated), key=lambda batch: batch.size):
        pairs = Pairs(quiet if size == largest else 0.0)
        for batch in batches:
            both = [partial(maintained.apply, db, "e", batch) for db in (one, two)]
            if size in BATCHES:
                pairs.take(*both)
            else:
                both[0](), both[1]()
            if size == largest and len(pairs.calm) >= 3 * rounds:
                break
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
                f"ratio {figures['ratio']:.2f}  ({figures['calm']} of {figures['pairs']} pairs calm)\n"
            )
            sys.stdout.flush()
            line = {"workload": "triangles", "graph": graphs.title(graph), "mode": kind, "engine": "lftj threads=2"}
            results.append(options.output, {**line, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
