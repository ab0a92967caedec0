"""The tables about maintenance: transactions, traces, the promise, endurance, lookups.

They are made of the last line that `bench/results/{latency,recording,promise,endurance,stabbing}.jsonl` hold for each
thing measured (runs with --quick apart). A row where lftj loses to a rival, takes more than evaluating anew is allowed
to cost, or misses its target says so, with the sentence from `WHY`; one without a sentence fails the tests.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import cells, endurance, latency, pairs, promise, recording, results, stabbing, updates
from bench.cells import WORST_RATIO
from bench.results import Line
from bench.tables import Table, short

#: Median milliseconds that a transaction may take, by graph and rows of a batch.
TARGETS = {
    "pl1m": {1: 0.10, 10: 0.4, 100: 1.5, 1_000: 12.0, 10_000: 64.0},
    "pl1m_skew": {1: 0.2, 10: 0.5, 100: 2.0, 1_000: 16.0, 10_000: 120.0},
}
#: Differential Dataflow on the same files and batches: measured elsewhere, on another machine, not by this run.
DATAFLOW = {
    "pl1m": {1: 0.27, 10: 0.39, 100: 1.4, 1_000: 10.6, 10_000: 64.0},
    "pl1m_skew": {1: 0.21, 10: 0.40, 100: 1.6, 1_000: 11.7, 10_000: 94.0},
}
#: There the CSR kernel took these milliseconds.
DATAFLOW_KERNEL = {"pl1m": 230, "pl1m_skew": 500}
#: Its half-join plan on pl1m, which is not feasible on pl1m_skew, and the gigabytes that it takes.
HALF_JOINS, HALF_JOINS_GB = {1: 0.05, 10: 0.18, 100: 1.5, 1_000: 13.0, 10_000: 116.0}, 5.5

#: Why a row is lost, by (what, graph, rows of a batch) with "*" and 0 for any; what: "target", "recompute", "duckdb".
WHY: dict[tuple[str, str, int], str] = {
    ("target", "*", 1): "most of it is Python around five kernel calls",
    ("target", "pl1m_skew", 0): "more than half goes to pages of triangles and edges, which are copied for a few rows",
    ("duckdb", "pl1m", 50_000): "so large a change is evaluated anew, which joins all edges, not the changed ones only",
    ("recompute", "*", 0): "the slowest of a few against the median of another process; by turns in one: below",
}

_ENGINES = ("lftj", "lftj-node", "lftj-interval", "lftj-recompute", "duckdb")
_SHOWN = {"lftj": "planner's choice", "lftj-node": "NODE", "lftj-interval": "INTERVAL", "lftj-recompute": "recompute"}


def lines(path: Path) -> dict[tuple[str, str, str, str], Line]:
    """The last line for everything measured."""
    return results.latest(line for line in results.read(path) if not line.get("quick") and _ok(line))


def _ok(line: Line) -> bool:
    return bool(line.get("status", "ok") == "ok")


def streams() -> dict[str, dict[str, Line]]:
    """Update streams: by graph (stand-ins last) and engine."""
    found: dict[str, dict[str, Line]] = {}
    for (_, graph, mode, engine), line in lines(latency.LATENCY).items():
        if mode == "stream":
            found.setdefault(graph, {})[engine] = line
    order = [g for g in latency.STREAMED if g in found]
    return {g: found[g] for g in (*order, *sorted(found.keys() - set(order)))}


def of_size(line: Line | None, size: int) -> dict[str, Any] | None:
    """The figures of a line for batches of this many rows."""
    return next((m for m in line["sizes"] if m["size"] == size), None) if line else None


def sizes_of(by_engine: Mapping[str, Line]) -> list[int]:
    """All sizes that lftj was measured with."""
    return [m["size"] for m in by_engine["lftj"]["sizes"]] if "lftj" in by_engine else []


def why(what: str, graph: str, size: int) -> str:
    """The sentence about a lost row; empty if nobody wrote one."""
    for key in ((what, graph, size), (what, "*", size), (what, graph, 0), (what, "*", 0)):
        if key in WHY:
            return WHY[key]
    return ""


def losses(by_engine: Mapping[str, Line], graph: str, size: int) -> dict[str, str]:
    """What is lost on a row: "target", "recompute", "duckdb" -> how."""
    ours = of_size(by_engine.get("lftj"), size)
    if ours is None:
        return {}
    found = {}
    target = TARGETS.get(graph, {}).get(size)
    if target is not None and ours["median_ms"] > target:
        found["target"] = f"misses {short(target)} ms"
    anew = of_size(by_engine.get("lftj-recompute"), size)
    if anew and ours["max_ms"] > WORST_RATIO * anew["median_ms"]:
        found["recompute"] = f"up to {ours['max_ms'] / anew['median_ms']:.2f} × recompute"
    theirs = of_size(by_engine.get("duckdb"), size)
    if theirs and theirs["median_ms"] < ours["median_ms"]:
        found["duckdb"] = "loses to DuckDB"
    return found


def unexplained() -> list[tuple[str, str, int]]:
    """Lost rows without a sentence in `WHY`."""
    return [
        (what, graph, size)
        for graph, by_engine in streams().items()
        for size in sizes_of(by_engine)
        for what in losses(by_engine, graph, size)
        if not why(what, graph, size)
    ]


def _remark(found: Mapping[str, str], graph: str, size: int, *whats: str) -> str:
    return "; ".join(f"{found[what]}: {why(what, graph, size)}" for what in whats if what in found)


def targets_table() -> str:
    """What was to be reached, and what was; the CSR kernel says how fast the machine was at the end of the process."""
    table = Table(
        "graph", "rows per transaction", "target", "median", "p99", "CSR kernel", "Differential Dataflow", "remark"
    )
    for graph, by_engine in streams().items():
        for size, target in TARGETS.get(graph, {}).items():
            ours = of_size(by_engine.get("lftj"), size)
            table.add(
                graph,
                f"{size:,}",
                short(target),
                f"**{short(ours['median_ms'] if ours else None)}**",
                short(ours["p99_ms"] if ours else None),
                short(by_engine["lftj"].get("kernel_ms") if ours else None),
                short(DATAFLOW[graph][size]),
                _remark(losses(by_engine, graph, size), graph, size, "target"),
            )
    return str(table)


def latency_table() -> str:
    """Every way of maintaining, and the rival."""
    table = Table(
        "graph",
        "rows per transaction",
        "lftj",
        "p99",
        "NODE",
        "INTERVAL",
        "recompute",
        "× recompute",
        "DuckDB",
        "reading the delta",
        "remark",
    )
    for graph, by_engine in streams().items():
        for size in sizes_of(by_engine):
            measured = {engine: of_size(by_engine.get(engine), size) for engine in _ENGINES}
            median = {engine: m["median_ms"] if m else None for engine, m in measured.items()}
            ours, anew = measured["lftj"], median["lftj-recompute"]
            assert ours is not None
            table.add(
                graph,
                f"{size:,}",
                f"**{short(ours['median_ms'])}**",
                short(ours["p99_ms"]),
                short(median["lftj-node"]),
                short(median["lftj-interval"]),
                short(anew),
                f"{ours['median_ms'] / anew:.3f}" if anew else "–",
                short(median["duckdb"]),
                short(ours["read_ms"]),
                _remark(losses(by_engine, graph, size), graph, size, "recompute", "duckdb"),
            )
    return str(table)


def temporal_table() -> str:
    """Graphs replayed edge by edge."""
    table = Table(
        "graph",
        "edges",
        "transactions",
        "triangles left",
        "median",
        "p99",
        "NODE",
        "INTERVAL",
        "recompute (last 200)",
        left=2,
    )
    found = lines(latency.LATENCY)
    for name, window in updates.TEMPORAL.items():
        for mode, shown in (("arrivals", "that come"), ("window", f"of the last {window // 86_400} days")):
            by_engine = {e: found.get(("triangle", name, mode, e)) for e in _ENGINES}
            ours = by_engine["lftj"]
            if ours is None:
                continue
            median = {e: line["median_ms"] if line else None for e, line in by_engine.items()}
            table.add(
                name if ours["data"]["source"] == "shared" else f"{name} (stand-in)",
                shown,
                f"{ours['transactions']:,}",
                f"{ours['count']:,}",
                f"**{short(ours['median_ms'])}**",
                short(ours["p99_ms"]),
                *(short(median[e]) for e in ("lftj-node", "lftj-interval", "lftj-recompute")),
            )
    return str(table)


def recording_table() -> str:
    """What a trace costs: to record, and to keep."""
    table = Table(
        "graph",
        "granularity",
        "evaluated",
        "recorded",
        "×",
        "records",
        "bytes per record",
        "index MB",
        "resident MB",
        left=2,
    )
    found = lines(recording.RECORDING)
    graphs = dict.fromkeys(key[1] for key in found)
    for graph in graphs:
        for engine in recording.ENGINES:
            line = found.get(("triangle", graph, "record", engine))
            if line is None:
                continue
            resident = line["resident_mb"]
            table.add(
                graph,
                _SHOWN[engine],
                short(line["evaluated_ms"]),
                short(line["recorded_ms"]),
                f"{line['ratio']:.2f}",
                f"{line['records']:,}",
                f"{line['bytes_per_record']:.1f}",
                f"{line['index_bytes'] / 2**20:,.0f}",
                f"{resident['recorded'] - resident['evaluated']:+,.0f}",
            )
    return str(table)


def points_of(line: Line) -> list[dict[str, int]]:
    """The transactions of a line of promise.jsonl."""
    return [dict(zip(promise.COLUMNS, point, strict=True)) for point in line["points"]]


def promise_table() -> str:
    """Steps against distance, per shape and over all."""
    table = Table("shape", "transactions", "distance up to", "steps / distance, median", "largest", "slope")
    found = lines(promise.PROMISE)
    shapes = {shape: [line for key, line in found.items() if key[0] == shape] for shape in promise.SHAPES}
    points = {shape: [p for line in several for p in points_of(line)] for shape, several in shapes.items() if several}
    if points:
        points["all"] = [p for several in points.values() for p in several]
    for shape, several in points.items():
        figures = promise.summary(several)
        table.add(
            shape,
            f"{len(several):,}",
            f"{max(map(promise.distance, several)):,}",
            f"{figures['ratio_median']:.2f}",
            f"{figures['ratio_max']:.2f}",
            f"{figures['slope']:.3f}",
        )
    return str(table)


def only(path: Path) -> Line | None:
    """The last line of a file of one thing measured."""
    return next(reversed(lines(path).values()), None)


def pairs_table() -> str:
    """Large transactions by lftj's choice, by delta joins and anew, by turns in one process."""
    return _choices("sizes", ("delta", "anew"), pairs.LARGE)


def choice_table() -> str:
    """Transactions by lftj's choice and by strategies that are forced, by turns in one process."""
    return _choices("published", ("delta", "trace"), pairs.FORCED)


def cells_table() -> str:
    """Every cell: the choice beside the strategies that are forced, by turns in one process."""
    table = Table("rules", "rows", "changes", "chosen", "median, ms", *cells.FORCED, "× the best")
    found = [line for key, line in lines(pairs.PAIRS).items() if key[0] == "cells"]
    for line in found:
        for ground in line.get("grounds", ()):
            rows = f"{ground['size']:,}{', hubs' if ground['hubs'] else ''}"
            for cell in ground["cells"]:
                changes = f"{cell['changes']:,}" if cell["changes"] else "1, after a load"
                medians = {how: short(statistics.median(ms)) for how, ms in cell["ms"].items()}
                others = (medians.get(how, "–") for how in cells.FORCED)
                ratio = f"**{cells.ratio(cell):.2f}**"
                table.add(line["graph"], rows, changes, cell["strategy"], medians[cells.CHOICE], *others, ratio)
    ratios = [cells.ratio(cell) for line in found for ground in line.get("grounds", ()) for cell in ground["cells"]]
    if not ratios:
        return str(table)
    over = sum(ratio > WORST_RATIO for ratio in ratios)
    return f"{len(ratios)} cells, {over} of them over {WORST_RATIO} × the best.\n\n{table}"


def _choices(measured: str, others: Sequence[str], engines: Sequence[str]) -> str:
    table = Table("graph", "rows per transaction", "chosen", "median, ms", *others, "× the better")
    for (_, graph, *_), line in lines(pairs.PAIRS).items():
        for figures in line.get(measured, ()):
            medians = [short(statistics.median(figures["ms"][engine])) for engine in ("lftj", *engines)]
            size, worst = f"{figures['size']:,}", f"**{pairs.choice_ratio(figures):.2f}**"
            table.add(graph, size, figures["strategy"], *medians, worst)
    return str(table)


def endurance_table() -> str:
    """The first and the last tenth of a long run."""
    table = Table("transactions in a row", "median", "p99", "pages MB", "resident MB")
    if line := only(endurance.ENDURANCE):
        count, deciles = line["transactions"], line["deciles"]
        for name, at in (("first", 0), ("last", -1)):
            tenth = deciles[at]
            table.add(
                f"{name} tenth of {count:,}",
                f"{tenth['median_ms']:.3f}",
                f"{tenth['p99_ms']:.3f}",
                f"{tenth['pages_bytes'] / 2**20:.1f}",
                f"{tenth['resident_mb']:.0f}",
            )
    return str(table)


def stabbing_table() -> str:
    """Two ways to find the records that a changed key concerns."""
    table = Table("lookup", "µs", "bytes per record")
    if line := only(stabbing.STABBING):
        table.add("a range of starts", f"{line['ranges_us']:.2f}", f"{line['ranges_bytes_per_record']:.1f}")
        table.add("interval tree", f"{line['intervals_us']:.2f}", f"{line['intervals_bytes_per_record']:.1f}")
        found = f"{line['lookups']:,} keys, {line['records_per_lookup']:.1f} found each"
        return f"{table}\n\n{line['records']:,} records of {line['graph']}, {found}."
    return str(table)


def note() -> str:
    """On what, when, at which commits."""
    files = (latency.LATENCY, pairs.PAIRS, recording.RECORDING, promise.PROMISE, endurance.ENDURANCE, stabbing.STABBING)
    taken = taken_on(files)
    if not taken:
        return "Not measured yet."
    return f"CPU milliseconds of whole transactions, one thread, medians. {taken}."


def dataflow_note() -> str:
    """Where the figures of Differential Dataflow are from."""
    kernel = " and ".join(f"{ms} ms on {graph}" for graph, ms in DATAFLOW_KERNEL.items())
    half_joins = ", ".join(f"{ms:g}" for ms in HALF_JOINS.values())
    return (
        "Differential Dataflow was not run beside lftj: its figures, of its worst-case optimal delta plan, were "
        f"measured elsewhere, on the same files and another machine, on which the CSR kernel took {kernel}. Its "
        f"half-join plan took {half_joins} ms for these transactions on pl1m, with {HALF_JOINS_GB} GB of memory, and "
        "was not feasible on pl1m_skew."
    )


def taken_on(files: Iterable[Path]) -> str:
    """`taken` of all results in `files`."""
    return taken(line for path in files for line in lines(path).values())


def taken(measured: Iterable[Line]) -> str:
    """The machine, versions, commits and the last day of results, machine by machine; empty if there are none."""
    machines: dict[str, list[Line]] = {}
    for line in measured:
        machine = line["machine"]
        where = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
        machines.setdefault(f"{where}, numba {machine['versions']['numba']}", []).append(line["run"])
    return "; ".join(
        f"{machine}; commit {', '.join(dict.fromkeys(run['commit'] for run in runs))}, "
        f"{max(str(run['date']) for run in runs)[:10]}"
        for machine, runs in machines.items()
    )


TABLES: dict[str, Callable[[], str]] = {
    "targets": targets_table,
    "latency": latency_table,
    "temporal": temporal_table,
    "recording": recording_table,
    "promise": promise_table,
    "endurance": endurance_table,
    "choice": choice_table,
    "pairs": pairs_table,
    "cells": cells_table,
    "stabbing": stabbing_table,
    "upkeep-machine": note,
}
