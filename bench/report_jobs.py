"""The table about the jobs of users: of each job and engine the last line of `bench/results/jobs.jsonl`."""

from __future__ import annotations

from collections.abc import Callable

from bench import jobs, results
from bench.job_changes import JOBS
from bench.report_upkeep import taken
from bench.tables import Table, short

ENGINES = {"lftj": "lftj", "duckdb": "DuckDB", "pandas": "pandas"}


def jobs_table() -> str:
    """Every job, engine by engine: how long until the first answers, and how long until those after a change."""
    latest = results.latest(results.read(jobs.RECORDED))
    table = Table(
        *("job", "a change", "engine", "load, s", "first answers, s"),
        *("median, ms", "× lftj", "99 %", "slowest", "peak MB"),
        left=3,
    )
    for job in JOBS.values():
        lines = {engine: latest.get((job.name, f"{job.size}", "job", engine)) for engine in ENGINES}
        ours = lines["lftj"]
        for engine, line in lines.items():
            if line is None or ours is None:
                continue
            median = short(line["median_ms"])
            table.add(
                *((job.shown, job.change) if engine == "lftj" else ("", "")),
                ENGINES[engine],
                short(line["load_s"]),
                short(line["first_s"]),
                f"**{median}**" if engine == "lftj" else median,
                "" if engine == "lftj" else f"{line['median_ms'] / ours['median_ms']:,.1f}",
                short(line["p99_ms"]) if engine == "lftj" else "–",
                short(line["max_ms"]) if engine == "lftj" else "–",
                f"{max(line['peak_mb'], 0):,.0f}",
            )
    return str(table)


def rates() -> str:
    """The events per second of the change feed."""
    latest = results.latest(results.read(jobs.RECORDED))
    job = JOBS["change_feed"]
    lines = {name: latest.get((job.name, f"{job.size}", "job", engine)) for engine, name in ENGINES.items()}
    per_second = [f"{line['rows_per_s']:,.0f} by {name}" for name, line in lines.items() if line is not None]
    return f"Events of the change feed per second, in batches of 1,000: {', '.join(per_second)}."


def note() -> str:
    """On what, when, at which commits."""
    return f"CPU time of one thread. {taken(results.latest(results.read(jobs.RECORDED)).values())}."


TABLES: dict[str, Callable[[], str]] = {"jobs": jobs_table, "jobs-rates": rates, "jobs-machine": note}
