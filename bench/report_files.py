"""The table about databases in files: commits, loads, opening, checkpoints and history (bench.durable)."""

from __future__ import annotations

from typing import Any

from bench import durable, results
from bench.tables import Table

RATE_OF_SQLITE, TIME_OF_MEMORY, LOAD, OPEN, FIRST = 0.7, 1.3, 1.5, 3.0, 10.0


def _found(part: str, **given: Any) -> dict[str, Any] | None:
    """The newest line of a part that says what is `given`."""
    lines = [line for line in results.read(durable.DURABLE) if line["part"] == part]
    return next((line for line in reversed(lines) if all(line[key] == value for key, value in given.items())), None)


def files_table() -> str:
    """What a file costs, beside SQLite and beside memory; wall time."""
    table = Table("figure", "measured", "aim")
    for sync in ("full", "normal", "off"):
        if line := _found("commits", sync=sync):
            times = f"{line['lftj_us']:.0f} µs, SQLite {line['sqlite_us']:.0f}, in memory {line['memory_us']:.0f}"
            ratio, aim = f"{line['rate_of_sqlite']:.2f} of SQLite's rate", f"{RATE_OF_SQLITE}"
            if sync == "off":
                ratio, aim = f"{line['time_of_memory']:.1f} times as in memory", f"{TIME_OF_MEMORY}"
            table.add(f'a commit of one row, `sync="{sync}"`', f"{times}: {ratio}", aim)
            if sync != "off" and "most_of_sqlite" in line:
                least = f"{line['least_us']:.0f} µs: {line['most_of_sqlite']:.2f} of SQLite's rate"
                table.add("that commit in memory, and SQLite writing the entry: what it takes at least", least, "–")
    if line := _found("load"):
        seconds = f"{line['file']:.2f} s, in memory {line['memory']:.2f}: {line['ratio']:.1f} times"
        table.add(f"load of {line['rows']:,} rows", seconds, f"{LOAD}")
    if line := _found("size"):
        held = f"{line['bytes_a_row']:.1f} bytes a row, {line['bytes_a_triangle']:.1f} a triangle"
        table.add(f"file of {line['rows']:,} edges with their triangles", held, "12, 20")
    for traces in (False, True):
        if line := _found("open", traces=traces):
            what = "with what rules are followed by" if traces else "without what rules are followed by"
            table.add(
                f"open {line['rows']:,} rows and GALEN, {what}: {line['file_mb']:.0f} MB",
                f"{line['seconds']:.1f} s",
                f"{OPEN:.0f} s",
            )
            firsts = {
                name: line[f"first_{name}_ms"] for name in ("edge", *durable.GALEN_ROWS) if f"first_{name}_ms" in line
            }
            told = ", ".join(f"`{name}` {milliseconds:,.0f} ms" for name, milliseconds in firsts.items())
            table.add("the first change then, of one row of", told, f"{FIRST:.0f} ms")
    for traces in (False, True):
        if line := _found("kept", traces=traces):
            opened = f"{line['file_mb']:.0f} MB; open {line['seconds']:.2f} s"
            table.add(
                f"{line['rows']:,} edges, triangles by a trace, two-step paths by triggers, `traces={traces}`",
                f"{opened}, the first change then {line['first_ms']:,.0f} ms; a checkpoint after 1,000 rows"
                f" {line['after_1000_ms']:,.0f} ms",
                "–",
            )
    if line := _found("replay"):
        table.add("replay of the log", f"{line['rows_a_second'] / 1e6:.1f} M rows a second", "1 M")
    if line := _found("checkpoint"):
        table.add("a checkpoint after 1,000 changed rows", f"{line['after_1000_ms']:.0f} ms", "50 ms")
        table.add("99 % of commits meanwhile, beside those before", f"{line['ratio']:.1f} times", "3")
    if line := _found("history"):
        what = f"`changes(since)` over {line['commits']:,} commits, {line['rows']:,} rows"
        table.add(what, f"{line['bytes_a_row']:.0f} bytes read for a row", "–")
    return str(table)


TABLES = {"files": files_table}
