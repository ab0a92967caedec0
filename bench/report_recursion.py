"""The table about recursion, of the last line that `bench/results/recursion.jsonl` holds for each workload.

Counts were compared with published ones when they were measured; a stream's end state with an evaluation from scratch.
"""

from __future__ import annotations

from collections.abc import Callable

from bench import erased, recursion
from bench.report_upkeep import lines, taken
from bench.tables import Table, short

NAMES = {"closure": "transitive closure", "sg": "same generation", "galen": "GALEN"}
PROGRAMS = {
    ("stream", "dag5k"): "closure of dag5k, `t(x, y), e(y, z)`",
    ("nonlinear", "dag5k"): "closure of dag5k, `t(x, y), t(y, z)`",
    ("stream", "pl1m"): "reachability on pl1m",
    ("best", "pl1m"): "shortest paths on pl1m",
    ("facts", "galen"): "GALEN",
}


def scratch_table() -> str:
    """Evaluation from scratch."""
    table = Table(
        "program", "graph", "derived rows", "s", "of that system", "M rows/s", "bytes per row", "at the peak", left=2
    )
    for (kind, graph, *_), line in lines(recursion.RECURSION).items():
        if kind not in recursion.STREAMS:
            rows = sum(line["counts"].values())
            table.add(
                NAMES[kind],
                graph,
                f"{rows:,}",
                short(line["cpu_s"]),
                short(line["system_s"]),
                f"{line['rows_per_s'] / 1e6:.2f}",
                f"{line['pages_bytes_per_row']:.0f}",
                f"{line['peak_bytes_per_row']:.0f}",
            )
    return str(table)


def stream_table() -> str:
    """Batches of changes, maintained."""
    table = Table(
        "stream", "changes per transaction", "ms", "p99, ms", "examined per changed row", "from scratch, ms", left=2
    )
    for (kind, graph, *_), line in lines(recursion.RECURSION).items():
        if kind in recursion.STREAMS:
            program = PROGRAMS[kind, graph]
            for what, ms in line["median_ms"].items():
                table.add(
                    program,
                    f"{int(what):,}" if what.isdecimal() else f"1 ({what})",
                    f"**{short(ms)}**",
                    short(line["p99_ms"][what]),
                    f"{line['examined_per_changed'][what]:.2f}",
                    short(line["scratch_ms"]),
                )
    return str(table)


def erased_table() -> str:
    """Where much goes: by rounds, anew, and by choice."""
    table = Table("program", "edges erased", "of all", "by rounds", "anew", "choice of lftj", "which is", left=1)
    for (kind, graph, *_), line in lines(erased.ERASED).items():
        program = PROGRAMS.get((kind, graph), f"{NAMES.get(kind, kind)} of {graph}")
        for figures in line["parts"]:
            rounds, anew, choice = (short(figures["ms"][how]) for how in erased.WAYS)
            part = f"{figures['part']:.1%}"
            table.add(program, f"{figures['edges']:,}", part, rounds, anew, f"**{choice}**", figures["chosen"])
    return str(table)


def note() -> str:
    """On what, when, at which commits."""
    measured = lines(recursion.RECURSION)
    streams = taken(line for (kind, *_), line in measured.items() if kind in recursion.STREAMS)
    scratch = taken(line for (kind, *_), line in measured.items() if kind not in recursion.STREAMS)
    much = taken(lines(erased.ERASED).values())
    return f"CPU time of one thread. From scratch: {scratch}. Streams: {streams}. Erased at once: {much}."


TABLES: dict[str, Callable[[], str]] = {
    "recursion": scratch_table,
    "recursion-streams": stream_table,
    "recursion-erased": erased_table,
    "recursion-machine": note,
}
