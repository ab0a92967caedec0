"""The table about replayed streams: of each the newest line of this code and of the code before."""

from __future__ import annotations

from collections.abc import Callable

from bench import replay, results
from bench.results import Line
from bench.tables import Table, short

SHOWN = {
    "book": "order book: ten heads over orders and trades, new texts all the time",
    "tpch": "TPC-H-like: seven heads over tables of 8, 9 and 16 columns",
}


def cells(line: Line | None) -> tuple[str, str, str]:
    """Changes per second and the milliseconds of a change: median and 99th percentile."""
    if line is None or line["status"] != "ok":
        return ("–",) * 3
    return f"{line['per_second']:,.0f}", short(line["median_ms"]), short(line["p99_ms"])


def replay_table() -> str:
    """One change a transaction, before and after."""
    latest = results.latest(results.read(replay.REPLAY))
    table = Table(
        "stream", "rows", "before, changes/s", "median, ms", "p99, ms", "now, changes/s", "median, ms", "p99, ms"
    )
    for workload, shown in SHOWN.items():
        before, now = (latest.get((workload, "stream", "one change", engine)) for engine in ("before", "lftj"))
        rows = f"{now['rows']:,}" if now is not None and now["status"] == "ok" else "–"
        per_second, *times = cells(now)
        table.add(shown, rows, *cells(before), f"**{per_second}**", *times)
    return str(table)


TABLES: dict[str, Callable[[], str]] = {"replay": replay_table}
