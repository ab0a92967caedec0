"""The README's table about threads, of the last line that `bench/results/threads.jsonl` holds for each measurement."""

from __future__ import annotations

from collections.abc import Callable

from bench import threads
from bench.report_upkeep import lines
from bench.tables import Table, short


def threads_table() -> str:
    """One thread and two, wall clock."""
    table = Table("triangles", "graph", "one thread, ms", "two threads, ms", "times as fast", left=2)
    for (_, graph, mode, _), line in lines(threads.THREADS).items():
        what = "full evaluation" if mode == "evaluate" else f"{int(mode.split()[1]):,} changes"
        table.add(what, graph, short(line["one_ms"]), short(line["two_ms"]), f"{line['ratio']:.2f}")
    return str(table)


TABLES: dict[str, Callable[[], str]] = {"threads": threads_table}
