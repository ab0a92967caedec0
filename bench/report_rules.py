"""The tables about whole rules: folds per group, exact sums, extremes, complements, ratings, questions in SQL.

They are made of the last line that `bench/results/{grouped,floatsums,extremes,complement,ratings,asked}.jsonl` hold for
each thing measured (runs with --quick apart). A row where lftj loses to a rival, or takes more than evaluating anew is
allowed to cost, says so with the sentence from `WHY`; one without a sentence fails the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bench import asked, complement, extremes, floatsums, grouped, ratings
from bench.cells import WORST_RATIO
from bench.report_upkeep import lines, of_size, taken_on
from bench.results import Line
from bench.tables import Table, short

#: Why a row is lost, by (rival, thing, size) with "*" and 0 for any.
WHY: dict[tuple[str, str, int], str] = {
    (
        "recompute",
        "*",
        10_000,
    ): "evaluated anew as well; the slowest of four or five against the median of the others",
    (
        "recompute",
        "degree histogram",
        1,
    ): "one transaction of all; in a process without DuckDB, whose threads share the clock, the slowest takes 1.5 ms",
    (
        "duckdb",
        "degree histogram",
        10_000,
    ): "a fifth goes to pages of edges, another to planning four heads anew",
    ("fsum", "100,000 groups", 0): "so few values per group are added in no time, once somebody keeps them by group",
    ("fsum", "1,000 groups", 1): "a thousand values are added as fast as a transaction begins and ends",
    ("heap", "*", 1_000): "so few values are read faster than a transaction begins and ends",
    (
        "duckdb",
        "asked once",
        0,
    ): "row by row, or column by column; DuckDB reads vectors",
    ("heap", "*", 10_000): "so few values are read faster than a transaction begins and ends",
}


class Loss(NamedTuple):
    """A lost row: to whom, of what, at which size, and how, in words."""

    rival: str
    thing: str
    size: int
    how: str


def why(loss: Loss) -> str:
    """The sentence about a lost row; empty if nobody wrote one."""
    rival, thing, size, _ = loss
    for key in ((rival, thing, size), (rival, "*", size), (rival, thing, 0), (rival, "*", 0)):
        if key in WHY:
            return WHY[key]
    return ""


def remark(losses: list[Loss]) -> str:
    """The last cell of a row."""
    return "; ".join(f"{loss.how}: {why(loss)}" for loss in losses)


def unexplained() -> list[Loss]:
    """Lost rows without a sentence in `WHY`."""
    every = (grouped_rows, float_rows, extreme_rows, complement_rows, rating_rows, asked_rows)
    return [loss for rows in every for *_, losses in rows() for loss in losses if not why(loss)]


def _slower(rival: str, shown: str, thing: str, size: int, ours: float, theirs: float | None) -> list[Loss]:
    return [Loss(rival, thing, size, f"loses to {shown}")] if theirs is not None and theirs < ours else []


def _over(thing: str, size: int, ours: Mapping[str, Any], anew: Mapping[str, Any] | None) -> list[Loss]:
    """Lost if the slowest transaction took more of evaluating anew than is allowed."""
    if anew is None or ours["max_ms"] <= WORST_RATIO * anew["median_ms"]:
        return []
    return [Loss("recompute", thing, size, f"up to {ours['max_ms'] / anew['median_ms']:.2f} × recompute")]


def _ratio(ours: float, theirs: float | None) -> str:
    return f"{ours / theirs:.3f}" if theirs else "–"


def _median(figures: Mapping[str, Any] | None) -> float | None:
    return figures["median_ms"] if figures else None


def _parts(line: Line | None, name: str) -> Any:
    return line[name] if line else None


Row = tuple[Any, ...]


def grouped_rows() -> Iterator[Row]:
    """(workload, graph, figures of lftj, of lftj anew, of DuckDB, losses) per size."""
    for (workload, graph, *_), line in lines(grouped.GROUPED).items():
        engines = line["engines"]
        for ours in engines["lftj"]["sizes"]:
            size = ours["size"]
            anew, theirs = (of_size(engines.get(e), size) for e in ("lftj-recompute", "duckdb"))
            losses = _over(workload, size, ours, anew)
            losses += _slower("duckdb", "DuckDB", workload, size, ours["median_ms"], _median(theirs))
            yield workload, graph, ours, anew, theirs, losses


def grouped_table() -> str:
    """Counts and sums over a join."""
    table = Table(
        "fold",
        "graph",
        "changes per transaction",
        "lftj",
        "slowest",
        "recompute",
        "× recompute",
        "DuckDB, anew",
        "× DuckDB",
        "remark",
        left=2,
    )
    for workload, graph, ours, anew, theirs, losses in grouped_rows():
        table.add(
            workload,
            graph,
            f"{ours['size']:,}",
            f"**{short(ours['median_ms'])}**",
            short(ours["max_ms"]),
            short(_median(anew)),
            _ratio(ours["median_ms"], _median(anew)),
            short(_median(theirs)),
            _ratio(ours["median_ms"], _median(theirs)),
            remark(losses),
        )
    return str(table)


def float_rows() -> Iterator[Row]:
    """(line, figures of a size, losses)."""
    for line in lines(floatsums.FLOATSUMS).values():
        for ours in line["sizes"]:
            yield (
                line,
                ours,
                _slower("fsum", "`math.fsum` by hand", line["graph"], ours["size"], ours["median_ms"], ours["fsum_ms"]),
            )


def floats_table() -> str:
    """Exact sums of floats."""
    table = Table(
        "groups",
        "erases per transaction",
        "lftj",
        "µs per erase",
        "`math.fsum` of the touched groups",
        "bytes per group",
        "groups that `-=` gets wrong",
        "remark",
    )
    for line, ours, losses in float_rows():
        table.add(
            f"{line['groups']:,}",
            f"{ours['size']:,}",
            f"**{short(ours['median_ms'])}**",
            short(ours["median_ms"] * 1e3 / ours["size"]),
            short(ours["fsum_ms"]),
            f"{line['bytes_per_group']:,.0f}",
            f"{line['plain_wrong']:,}",
            remark(losses),
        )
    return str(table)


def extreme_rows() -> Iterator[Row]:
    """(mode, figures of lftj, of the heap, losses) per size."""
    found = lines(extremes.EXTREMES)
    for (workload, graph, mode, engine), line in found.items():
        if engine != "lftj":
            continue
        for ours in line["sizes"]:
            heap = of_size(found.get((workload, graph, mode, "heap")), ours["size"])
            losses = _slower("heap", "the heap", mode, ours["size"], ours["median_ms"], _median(heap))
            yield mode, ours, heap, losses


def extremes_table() -> str:
    """The next extreme, when the present one is erased."""
    table = Table("fold", "values per group", "lftj", "steps, at most", "heap of the survivors", "remark")
    for mode, ours, heap, losses in extreme_rows():
        table.add(
            mode,
            f"{ours['size']:,}",
            f"**{short(ours['median_ms'])}**",
            f"{ours['steps_max']:,}",
            short(_median(heap)),
            remark(losses),
        )
    return str(table)


def complement_rows() -> Iterator[Row]:
    """(line of lftj, of DuckDB, losses)."""
    found = lines(complement.COMPLEMENT)
    for (workload, graph, mode, engine), line in found.items():
        if engine != "lftj":
            continue
        rival = found.get((workload, graph, mode, "duckdb"))
        size = line["missing"]
        losses = _slower("duckdb", "DuckDB", workload, size, line["evaluate_ms"], _parts(rival, "evaluate_ms"))
        losses += _slower("duckdb", "DuckDB", workload, size, line["pair"]["median_ms"], _median(_parts(rival, "pair")))
        yield line, rival, losses


def complement_table() -> str:
    """Pairs that are missing."""
    table = Table(
        "pairs missing",
        "steps",
        "lookups there would be",
        "evaluated",
        "DuckDB",
        "a pair changes",
        "its steps",
        "DuckDB, anew",
        "a vertex changes",
        "its steps",
        "remark",
    )
    for line, rival, losses in complement_rows():
        table.add(
            f"{line['missing']:,}",
            f"{line['steps']:,}",
            f"{line['lookups']:,}",
            f"**{short(line['evaluate_ms'])}**",
            short(_parts(rival, "evaluate_ms")),
            f"**{short(line['pair']['median_ms'])}**",
            f"{line['pair']['steps_max']:,}",
            short(_median(_parts(rival, "pair"))),
            f"**{short(line['vertex']['median_ms'])}**",
            f"{line['vertex']['steps_max']:,}",
            remark(losses),
        )
    return str(table)


def rating_rows() -> Iterator[Row]:
    """(line of lftj, part, figures of lftj, of lftj anew, of DuckDB, losses)."""
    found = lines(ratings.RATINGS)
    for (workload, graph, mode, engine), line in found.items():
        if engine != "lftj":
            continue
        for part in ("arrivals", "again"):
            anew, rival = (_parts(found.get((workload, graph, mode, e)), part) for e in ("lftj-recompute", "duckdb"))
            median = line[part]["median_ms"]
            losses = _slower("recompute", "recompute", part, 1, median, _median(anew))
            losses += _slower("duckdb", "DuckDB", part, 1, median, _median(rival))
            yield line, part, line[part], anew, rival, losses


def ratings_table() -> str:
    """All that is asked about a stream, event by event."""
    table = Table("events", "transactions", "median", "p99", "recompute", "DuckDB, anew", "remark")
    shown, last = {"arrivals": "as they came", "again": "rated again"}, None
    for line, part, ours, anew, rival, losses in rating_rows():
        table.add(
            f"{line['graph']}, {shown[part]}",
            f"{ours['transactions']:,}",
            f"**{short(ours['median_ms'])}**",
            short(ours["p99_ms"]),
            short(_median(anew)),
            short(_median(rival)),
            remark(losses),
        )
        last = line
    if last is None:
        return str(table)
    rows = last["rows"]
    answers = (
        f"{rows['mean_rating']:,} users rated, {rows['never_rated']:,} never rated, "
        f"{rows['trust']:,} triangles of mutually positive ratings"
    )
    heads = sorted(last["head_ms"].items(), key=lambda item: -item[1])
    slowest = ", ".join(f"`{name.removeprefix('@')}` {ms:.2f}" for name, ms in heads if not name.startswith("@"))
    folds = sum(ms for name, ms in heads if name.startswith("@"))
    return f"{table}\n\nIn the end {answers}. Milliseconds per event by head: {slowest}, folds {folds:.2f}."


def asked_table() -> str:
    """Aggregates in SQL, asked once and again."""
    table = Table(
        "question", "over", "rows", "lftj, first", "again", "MB kept", "DuckDB, first", "again", "remark", left=2
    )
    for workload, graph, line, losses in asked_rows():
        ours, theirs = line["engines"]["lftj"], line["engines"]["duckdb"]
        table.add(
            workload,
            graph,
            f"{line['rows']:,}",
            f"**{short(ours['first_ms'])}**",
            f"**{short(ours['again_ms'])}**",
            short(line["kept"] / 1e6),
            short(theirs["first_ms"]),
            short(theirs["again_ms"]),
            remark(losses),
        )
    return str(table)


def asked_rows() -> Iterator[Row]:
    """(question, over what, its line, losses) per case."""
    for (workload, graph, *_), line in lines(asked.ASKED).items():
        ours, theirs = (line["engines"][engine]["first_ms"] for engine in ("lftj", "duckdb"))
        yield workload, graph, line, _slower("duckdb", "DuckDB", "asked once", 0, ours, theirs)


def note() -> str:
    """On what, when, at which commits."""
    files = (
        grouped.GROUPED,
        floatsums.FLOATSUMS,
        extremes.EXTREMES,
        complement.COMPLEMENT,
        ratings.RATINGS,
        asked.ASKED,
    )
    taken = taken_on(files)
    return f"CPU milliseconds of whole transactions, one thread, medians. {taken}." if taken else "Not measured yet."


TABLES: dict[str, Callable[[], str]] = {
    "grouped": grouped_table,
    "floatsums": floats_table,
    "extremes": extremes_table,
    "complement": complement_table,
    "ratings": ratings_table,
    "asked": asked_table,
    "rules-machine": note,
}
