"""The tables about triggers: TPC-H's queries as views, order books, single rows and growth, strategies by turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench import results, triggers, triggers_books, triggers_join, triggers_ways
from bench.book_answers import QUERIES as BOOKS
from bench.report_upkeep import taken
from bench.results import Line
from bench.steps import growth
from bench.tables import Table, short
from bench.tpch_queries import QUERIES
from bench.triggers_run import strategies

#: Changes a second that a query is to reach at scale 0.1, event by event.
AIMS = {
    **dict.fromkeys(("q1", "q3", "q6", "q12", "q14"), 500_000),
    **dict.fromkeys(("q4", "q5", "q10", "q18", "q19"), 100_000),
}
LEAST, TIMES = 1_000, 100
ONE_ROW, STREAMED, FLAT = 40.0, 1.0, 0.05


def _lines(part: str) -> Iterator[tuple[str, str, Line]]:
    """(graph, mode, line) of what was measured of a part, newest lines only."""
    for (workload, graph, mode, _), line in results.latest(results.read(triggers.TRIGGERS)).items():
        if workload == part:
            yield graph, mode, line


def _found(part: str, graph: str, mode: str) -> Line | None:
    """The newest line, if it has figures."""
    for other, name, line in _lines(part):
        if (other, name) == (graph, mode) and line["status"] == "ok":
            return line
    return None


def _rate(line: Line, phase: str) -> float | None:
    return float(line[phase]["per_second"]) if phase in line else None


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def tpch_table(scale: str) -> str:
    """Changes a second by query."""
    table = Table(
        "query", "kept by", "rows", "by triggers: inserts", "deletes", "as chosen: inserts", "deletes", "blocks of 1",
        "batches of 1,000", "a row, ms", "DuckDB anew, ms", "× batch", "× no view", "derived MB", "remark", left=2,
    )  # fmt: skip
    for name in QUERIES:
        line = next((line for graph, mode, line in _lines("tpch") if (graph, mode) == (scale, name)), None)
        if line is None:
            continue
        if "inserts" not in line or "duckdb" not in line:
            table.add(name, *["–"] * 13, f"{line['status']}: {line.get('reason', '')[:120]}".replace("|", "/"))
            continue
        remark = [f"wrong: {line['reason'][:120]}".replace("|", "/")] if line["status"] != "ok" else []
        declared = line.get("declared", {})
        one_by_one = declared or line
        slower = min(rate for phase in ("inserts", "deletes") if (rate := _rate(one_by_one, phase)) is not None)
        if slower < AIMS.get(name, LEAST):
            remark.append(f"below {AIMS.get(name, LEAST):,}")
        if line.get("ratio", 0.0) < TIMES:
            remark.append(f"below {TIMES} times")
        if line["inserts"]["events"] < line["inserts"]["of"]:
            remark.append(f"{line['inserts']['events'] / line['inserts']['of']:.0%} of the inserts")
        table.add(
            name,
            strategies(line["strategies"]),
            f"{line['rows']:,}",
            *(f"**{_whole(rate)}**" if (rate := _rate(declared, phase)) else "–" for phase in ("inserts", "deletes")),
            _whole(_rate(line, "inserts")),
            *(_whole(_rate(line, phase)) for phase in ("deletes", "fine", "batches")),
            short(line["ones"]["median_ms"]) if "ones" in line else "–",
            short(line["duckdb"]["recompute_ms"]),
            short(line.get("ratio")),
            short(line.get("bound")),
            short(line["bytes"] / 2**20),
            "; ".join(remark),
        )
    return str(table)


def books_table() -> str:
    """Events a second by query and book, and the slope of their time."""
    table = Table("query", "book", "blocks of 1", "blocks of 1,000", "derived MB", "slope", "remark", left=2)
    for name in BOOKS:
        sizes, micros = [], []
        for live in triggers_books.LIVE:
            for events in (triggers_books.EVENTS, triggers_books.MANY):
                line = _found("books", triggers_books.title(live, events), name)
                if line is None:
                    continue
                if events == triggers_books.EVENTS:
                    sizes.append(live)
                    micros.append(line["event_us"])
                slope = growth(sizes, micros) if len(sizes) == len(triggers_books.LIVE) else None
                held = name in triggers_books.HELD_TO and slope is not None and slope > triggers_books.SLOPE
                table.add(
                    name,
                    triggers_books.title(live, events),
                    f"**{line['single']['per_second']:,.0f}**",
                    f"{line['runs']['per_second']:,.0f}",
                    short(line["bytes"] / 2**20),
                    "" if slope is None else f"{slope:.2f}",
                    f"above {triggers_books.SLOPE}" if held else "",
                )
    return str(table)


def join_table() -> str:
    """Single rows, a stream, growth."""
    table = Table("figure", "measured", "bound")
    if one := _found("single", "join", "single"):
        table.add(
            f"a transaction of one row, {one['rows']:,} rows behind, wall time: median, 99 %",
            f"{one['one_row_us']:.1f}, {one['one_row_p99_us']:.1f} µs",
            f"{ONE_ROW:.0f} µs",
        )
        table.add("the same, CPU: median", f"{one['one_row_cpu_us']:.1f} µs", "–")
        stream = f"one call with {triggers_join.STREAM:,} events"
        table.add(f"{stream} in blocks of 1,000, an event", f"{one['stream_us']:.2f} µs", f"{STREAMED:.0f} µs")
        table.add(f"{stream}, every one a block, an event", f"{one['fine_us']:.2f} µs", f"{STREAMED:.0f} µs")
    if line := _found("growth", "join", "growth"):
        for rows, micros, held in zip(line["sizes"], line["event_us"], line["bytes"], strict=True):
            table.add(f"an event with {rows:,} rows, {held / 2**20:,.0f} MB derived", f"{micros:.2f} µs", "–")
        table.add("slope over these", f"{line['slope']:.3f}", f"{FLAT}")
    return str(table)


def ways_table() -> str:
    """Milliseconds of a transaction by strategy."""
    table = Table("rule", "rows", *triggers_ways.WAYS[1:], "planner", "chosen", "× best", "remark")
    for name in triggers_ways.CASES:
        for size in triggers_ways.SIZES:
            line = _found("ways", name, str(size))
            if line is None:
                continue
            above = line["ratio"] > triggers_ways.BOUND
            table.add(
                name,
                f"{size:,}",
                *(short(line["ms"].get(way)) for way in triggers_ways.WAYS[1:]),
                f"**{short(line['ms']['planner'])}**",
                max(line["chosen"], key=line["chosen"].__getitem__, default="–"),
                f"{line['ratio']:.2f}",
                f"above {triggers_ways.BOUND}" if above else "",
            )
    return str(table)


def note() -> str:
    """On what, when, at which commits."""
    shown = []
    for part in triggers.PARTS:
        lines: list[Any] = [line for _, _, line in _lines(part)]
        if lines:
            shown.append(f"{part}: {taken(lines)}")
    return f"One thread. {'. '.join(shown)}." if shown else "Not measured yet."


TABLES: dict[str, Callable[[], str]] = {
    "triggers-tpch": lambda: tpch_table("0.1"),
    "triggers-tpch-small": lambda: tpch_table("0.01"),
    "triggers-books": books_table,
    "triggers-join": join_table,
    "triggers-ways": ways_table,
    "triggers-machine": note,
}
