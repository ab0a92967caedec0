"""The tables about streams: Nexmark, steps with much behind them, work per step, the engine beside its circuit."""

from __future__ import annotations

from collections.abc import Callable

from bench import results, streams
from bench.nexmark_queries import QUERIES
from bench.report_upkeep import taken
from bench.results import Line
from bench.tables import Table, short

ASKS = {
    "q0": "every bid",
    "q1": "prices in euros",
    "q2": "bids on some auctions",
    "q3": "who sells in three states (join)",
    "q4": "mean winning price by category",
    "q5": "hot items, windows of 10 s every 2 s",
    "q6": "mean of the last 10 winning prices by seller",
    "q7": "highest bid of each 10 s",
    "q8": "new sellers within 10 s (join)",
    "q9": "winning bids",
    "q11": "bids per session",
    "q12": "bids per bidder and 10 steps (group)",
    "q13": "side table (join)",
    "q14": "filter, time of day, letters",
    "q15": "12 counts by day, 8 of different values",
    "q16": "the same by channel and day",
    "q17": "8 aggregates by auction and day (group)",
    "q18": "last bid of bidder and auction (group)",
    "q19": "ten highest bids of each auction (group)",
    "q20": "bids with their auctions (join)",
    "q21": "channel ids by regular expression",
    "q22": "folders of the url",
}
AIM, RIVAL = 500_000, 10


def _latest() -> dict[tuple[str, str, str, str], Line]:
    return results.latest(results.read(streams.STREAMS))


def nexmark_table() -> str:
    """Events a second by query."""
    latest = _latest()
    table = Table("query", "asks", "lftj", "DuckDB, anew", "Pathway", "× Pathway", "remark", left=2)
    for name in sorted(ASKS, key=lambda name: int(name[1:])):
        lines = {engine: latest.get(("nexmark", "stream", name, engine)) for engine in ("lftj", "duckdb", "pathway")}
        figures = {engine: float(line["per_second"]) for engine, line in lines.items() if line is not None}
        if "lftj" not in figures:
            continue
        ours, anew, theirs = figures["lftj"], figures.get("duckdb"), figures.get("pathway")
        remark = []
        if name in QUERIES and QUERIES[name].kind in ("stateless", "join") and ours < AIM:
            remark.append(f"below {AIM:,}")
        if theirs is not None and ours < RIVAL * theirs:
            remark.append(f"below {RIVAL} times Pathway")
        table.add(
            name,
            ASKS[name],
            f"**{ours:,.0f}**",
            "–" if anew is None else f"{anew:,.0f}",
            "–" if theirs is None else f"{theirs:,.0f}",
            "–" if theirs is None else f"{ours / theirs:.1f}",
            "; ".join(remark),
        )
    return str(table)


def steps_table() -> str:
    """Milliseconds of small steps with much behind them, and rows touched per changed row."""
    latest = _latest()
    table = Table("figure", "measured", "bound")
    for name, shown in (("q20", "a join, q20"), ("q17", "a group-by, q17")):
        line = latest.get(("latency", "stream", name, "lftj"))
        if line:
            for kind, time in (("", "CPU"), ("wall_", "wall")):
                table.add(
                    f"steps of 1,000 events with {line['behind']:,} behind, {shown}, {time} time: median, 99 %, worst",
                    ", ".join(short(line[f"{kind}{name}_ms"]) for name in ("median", "p99", "worst")) + " ms",
                    "99 % within 20 ms",
                )
    for name in ("join", "group-by"):
        line = latest.get(("work", "stream", name, "lftj"))
        if line:
            touched = ", ".join(f"{rows:.2f}" for rows in line["touched"])
            table.add(
                f"rows touched per changed row, {name}, at 10^5, 10^6, 10^7 rows: {touched}; slope",
                f"{line['slope']:.4f}",
                f"{streams.SLOPE}",
            )
            table.add(
                f"a step of {streams.CHANGES} changes at these sizes, {name}",
                ", ".join(short(ms) for ms in line["median_ms"]) + " ms",
                "–",
            )
    return str(table)


def engine_table() -> str:
    """Rules, and the same rules as a circuit."""
    latest = _latest()
    table = Table("program", "changes", "rows", "rules", "circuit", "× rules", "rules, load", "circuit, load")
    for name, _, graph, *_ in streams.CASES:
        rules, circuit = (
            latest.get(("engine", "stream", f"{name} {graph}", engine)) for engine in ("rules", "circuit")
        )
        if rules and circuit:
            table.add(
                f"{name} of {graph}",
                str(rules["changes"]),
                f"{rules['rows']:,}",
                f"**{short(rules['median_ms'])}**",
                short(circuit["median_ms"]),
                f"{circuit['median_ms'] / rules['median_ms']:.1f}",
                f"{rules['load_seconds']:.1f} s",
                f"{circuit['load_seconds']:.1f} s",
            )
    return str(table)


def note() -> str:
    """On what, when, at which commits."""
    parts = {"Nexmark": ("nexmark",), "Steps of 1,000 events": ("latency",), "Others": ("work", "engine")}
    shown = [
        f"{part}: {taken(line for (workload, *_), line in _latest().items() if workload in workloads)}"
        for part, workloads in parts.items()
    ]
    return f"One thread. {'. '.join(shown)}."


TABLES: dict[str, Callable[[], str]] = {
    "streams-nexmark": nexmark_table,
    "streams-steps": steps_table,
    "streams-engine": engine_table,
    "streams-machine": note,
}
