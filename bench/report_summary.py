"""What stands before the tables: the figures that say most, and what a first run takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench import durable, jobs, points, recursion, results, start, statements, streams, views
from bench.report_upkeep import lines, of_size
from bench.report_upkeep import streams as update_streams
from bench.results import Line
from bench.tables import Table, short

Results = dict[tuple[str, str, str, str], Line]
GRAPH = "pl1m"


class Figure(NamedTuple):
    """Milliseconds of lftj for a kind of work, and those of others by name; `where`: the heading of its table."""

    work: str
    ours: float
    others: dict[str, float | None]
    where: str


def summary_table(latest: Results) -> str:
    """One line for each kind of work; the last figure says how many times as fast lftj is as the best of the others."""
    table = Table("work", "others", "lftj", "× the best", left=2)
    for figure in (*_evaluated(latest), *_followed(), *_streamed(), *_small()):
        others = {name: ms for name, ms in figure.others.items() if ms is not None}
        if others:
            shown = ", ".join(f"{name} {_time(ms)}" for name, ms in others.items())
            link = f"[{figure.work}](#{figure.where.lower().replace(' ', '-')})"
            table.add(link, shown, f"**{_time(figure.ours)}**", short(min(others.values()) / figure.ours))
    return str(table)


def _time(ms: float) -> str:
    """A time with three digits that count, in the unit that it has them in."""
    if ms >= 1000:
        return f"{short(ms / 1000)} s"
    return f"{short(ms)} ms" if ms >= 1 else f"{short(ms * 1000)} µs"


def _evaluated(latest: Results) -> Iterator[Figure]:
    """Counted from scratch: what worst-case optimal joins are for, and what they are not for."""
    names = {"csr": "a kernel by hand", "kuzu": "Kuzu", "duckdb": "DuckDB"}
    works = {
        "triangle": "count the triangles of a graph of a million edges",
        "filtered path": "count its filtered paths of three edges, which is acyclic",
    }
    for workload, work in works.items():
        found = {name: _least(latest.get((workload, GRAPH, "count", engine))) for engine, name in names.items()}
        ours = _least(latest.get((workload, GRAPH, "count", "lftj")))
        if ours is not None:
            yield Figure(work, ours, found, "Evaluation")


def _least(line: Line | None) -> float | None:
    return float(line["min"]) * 1000 if line is not None and line["status"] == "ok" else None


def _followed() -> Iterator[Figure]:
    """Kept up to date, beside computing again."""
    by_engine = update_streams().get(GRAPH, {})
    for size, change in ((1, "one edge changes"), (1_000, "1,000 edges change")):
        figures = {engine: of_size(by_engine.get(engine), size) for engine in ("lftj", "duckdb", "lftj-recompute")}
        ours, duckdb, anew = (None if each is None else float(each["median_ms"]) for each in figures.values())
        if ours is not None:
            others = {"DuckDB by delta queries": duckdb, "lftj evaluating again": anew}
            yield Figure(f"{change}: its triangles", ours, others, "Transactions")
    for line in (line for key, line in lines(recursion.RECURSION).items() if key[:2] == ("best", GRAPH)):
        others = {"lftj evaluating again": line["scratch_ms"]}
        yield Figure("one edge changes: shortest paths", line["median_ms"]["1"], others, "Recursion")
    for line in _last(views.VIEWS_RESULTS):
        others = {"DuckDB, anew": line["duckdb_ms"]}
        yield Figure("an order comes: five views of SQL", line["one_ms"], others, "Views of a shop")
    rights = {key[3]: line["median_ms"] for key, line in _all(jobs.RECORDED).items() if key[0] == "access_rights"}
    if "lftj" in rights:
        others = {"DuckDB, anew": rights.get("duckdb"), "pandas, anew": rights.get("pandas")}
        yield Figure("a member, a grant or a denial changes: access rights", rights["lftj"], others, "Jobs of users")


def _streamed() -> Iterator[Figure]:
    """An event of a stream."""
    events = {key[3]: line for key, line in _all(streams.STREAMS).items() if key[:3] == ("nexmark", "stream", "q20")}
    rates = {engine: line["per_second"] for engine, line in events.items()}
    if "lftj" in rates:
        times = {engine: 1000 / rate for engine, rate in rates.items()}
        others = {"DuckDB, anew": times.get("duckdb"), "Pathway": times.get("pathway")}
        yield Figure("an event of a stream: a join (Nexmark q20)", times["lftj"], others, "Streams")


def _small() -> Iterator[Figure]:
    """Where a call of Python is most of the work, or a disk."""
    micros = {line["question"]: line["micros"] for line in results.read(points.POINTS)}.get("rows of a number")
    if micros:
        others = {"SQLite": micros["sqlite"] / 1000, "DuckDB": micros["duckdb"] / 1000}
        yield Figure("look up the rows of a key", micros["lftj"] / 1000, others, "Point queries")
    micros = {line["case"]: line["micros"] for line in results.read(statements.STATEMENTS)}.get("insert")
    if micros:
        others = {"SQLite": micros["sqlite"] / 1000}
        yield Figure("insert a row by a statement", micros["lftj, SQL"] / 1000, others, "Statements of SQL")
    for line in _last(durable.DURABLE, part="commits", sync="full"):
        others = {"SQLite": line["sqlite_us"] / 1000}
        yield Figure("commit a row to a file, flushed to the disk (wall time)", line["lftj_us"] / 1000, others, "Files")


def _all(path: Path) -> Results:
    return results.latest(results.read(path))


def _last(path: Path, **given: Any) -> list[Line]:
    """The last line of a file of results that says what is `given`, if there is one."""
    return [line for line in results.read(path) if all(line.get(key) == value for key, value in given.items())][-1:]


def first_run() -> str:
    """What the first run on a machine takes, and the process that goes on after it."""
    from lftj.maintain.background import MOST

    (line,) = _last(start.START) or [{}]
    if "background_cpu_seconds" not in line:
        return "Not measured yet."
    first, later = line["example, first, wall"], line["readme_warm_seconds"]
    waits = line["first transaction, alone"] + line["second transaction, alone"]
    return (
        "Joins run as machine code, which is compiled once on a machine, when it is first needed: the README's first "
        f"example takes {first:.1f} s on its first run, and {later:.1f} s on later ones. lftj says what it compiles, "
        "and keeps the machine code in your cache folder (`~/.cache/lftj` on Linux; `LFTJ_CACHE_DIR` names another), "
        "which may be deleted at any time.\n\n"
        "**A background process may outlive your program.** During the first run a second process, "
        "`lftj warmup --updates`, compiles what transactions will need: some "
        f"{line['background_cpu_seconds']:.0f} s of CPU time, once on a machine, at the lowest priority (nice 19). It "
        f"ends after {MOST} s at the latest. With `LFTJ_BACKGROUND=0` in the environment it is not started, and the "
        f"first two transactions take {waits:.1f} s instead."
    )


TABLES: dict[str, Callable[[], str]] = {"first-run": first_run}
