"""The table about threads: medians over the runs that `bench/results/threads.jsonl` holds."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench import results, threads
from bench.results import Line
from bench.tables import Table, short


def runs() -> dict[tuple[str, str], list[Line]]:
    """The lines of every graph and kind, one per run."""
    found: dict[tuple[str, str], list[Line]] = {}
    for line in results.read(threads.THREADS):
        found.setdefault((line["graph"], line["mode"]), []).append(line)
    return found


def threads_table() -> str:
    """One thread and two, wall clock. Two cores of a machine that others share: the ratio differs from run to run."""
    table = Table(
        "triangles", "graph", "one thread, ms", "two threads, ms", "times as fast", "least", "most", "runs", left=2
    )
    for (graph, mode), lines in runs().items():
        what = "full evaluation" if mode == "evaluate" else f"{int(mode.split()[1]):,} changes"
        one, two, ratios = ([line[each] for line in lines] for each in ("one_ms", "two_ms", "ratio"))
        middle = f"**{statistics.median(ratios):.2f}**"
        ends = f"{min(ratios):.2f}", f"{max(ratios):.2f}", str(len(lines))
        table.add(what, graph, short(statistics.median(one)), short(statistics.median(two)), middle, *ends)
    return str(table)


TABLES: dict[str, Callable[[], str]] = {"threads": threads_table}
