"""What a report says of latencies, followed: quantiles, or the spread, of each service in a view, beside DuckDB.

    python -m bench.quantiles [-n rows ...] [-v view ...] [--quick]

    quantiles   the median and two percentiles          spread   the mean, the standard deviation and the variance

Requests are inserted and deleted by turns, one at a time and a thousand at a time; then DuckDB, which has the same
rows, asks its view anew. CPU time, one thread each. Evaluating and the first change, which makes what is followed, are
shown as well; memory is what `db.memory()` says in the end, without the table. All is done with few rows before, so
that kernels are loaded. What the views hold in the end is compared, doubles but for their last digits, as DuckDB rounds
more often. Each line goes to `bench/results/quantiles.jsonl`. Exit code 1 if engines disagree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import lftj
from bench import results
from bench.tables import Table
from bench.views import timed

QUANTILES_RESULTS = results.RESULTS / "quantiles.jsonl"
TABLE = "create table request (id bigint primary key, service int not null, latency int not null)"
VIEWS = {
    "quantiles": "median(latency) as mid, quantile_cont(latency, 0.95) as p95, quantile_disc(latency, 0.99) as p99",
    "spread": "avg(latency) as mid, stddev(latency) as deviation, var_pop(latency) as variance",
}
ASKED = "select * from latency order by service"
SIZES, SERVICES = (100_000, 1_000_000), 100
ONES, BATCH, BATCHES = 200, 1_000, 20


def requests(rng: np.random.Generator, first: int, count: int) -> pa.Table:
    """`count` requests, numbered from `first` on, to services of which some are called often: microseconds."""
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "service": np.minimum(rng.geometric(0.05, count), SERVICES),
            "latency": rng.lognormal(9.0, 1.0, count).astype(np.int64),
        }
    )


def changed(db: lftj.Database, rows: pa.Table, *, gone: bool) -> None:
    """Insert or erase requests in one transaction."""
    with db.transaction() as tx:
        (tx.erase if gone else tx.insert)("request", rows)


def measured(view: str, rows: int, ones: int = ONES, batches: int = BATCHES) -> dict[str, Any]:
    """The figures of a view of so many requests; raises `AssertionError` if the engines do not agree."""
    import duckdb

    rng = np.random.default_rng(0)
    db, duck = lftj.Database(), duckdb.connect(config={"threads": 1})
    given = requests(rng, 0, rows)
    for text in (TABLE, f"create view latency as select service, {VIEWS[view]} from request group by service"):
        db.sql(text)
        duck.execute(text)
    db.load("request", given)
    line: dict[str, Any] = {"view": view, "rows": rows, "evaluate_ms": timed(lambda: len(db["latency"]))}
    took: dict[int, list[float]] = {1: [], BATCH: []}
    number, there = rows, [given]
    for count in (*[1] * ones, *[BATCH] * batches):
        gone = len(took[count]) % 2 == 1
        some = there[-1] if gone else requests(rng, number, count)
        there = there[:-1] if gone else [*there, some]
        number += count
        took[count].append(timed(partial(changed, db, some, gone=gone)))
    changed(db, last := requests(rng, number, BATCH), gone=False)
    line["first_ms"] = took[1][0]
    line["one_ms"], line["batch_ms"] = statistics.median(took[1][2:]), statistics.median(took[BATCH])
    duck.register("given", pa.concat_tables([*there, last]))
    duck.execute("insert into request select * from given")
    line["duckdb_ms"] = statistics.median(timed(lambda: duck.execute(ASKED).fetchall()) for _ in range(7))
    memory = db.memory()
    line["view_mb"] = sum(sum(held.values()) for name, held in memory.items() if name not in ("request", "total")) / 1e6
    for ours, theirs in zip(db.sql(ASKED), duck.execute(ASKED).fetchall(), strict=True):
        assert all(a == b or abs(a - b) <= 1e-9 * abs(b) for a, b in zip(ours, theirs, strict=True)), (ours, theirs)
    return line


def table() -> str:
    """What was measured last of each view and size."""
    shown = Table(
        "view",
        "requests",
        "evaluated",
        "the first change",
        "one, median",
        "1,000, median",
        "DuckDB anew",
        "× by 1,000",
        "memory",
    )
    last = {(line.get("view", "quantiles"), line["rows"]): line for line in results.read(QUANTILES_RESULTS)}
    for (view, rows), line in sorted(last.items()):
        shown.add(
            view,
            f"{rows:,}",
            *(f"{line[what]:,.1f}" for what in ("evaluate_ms", "first_ms")),
            *(f"**{line[what]:,.2f}**" for what in ("one_ms", "batch_ms")),
            f"{line['duckdb_ms']:,.1f}",
            f"{line['duckdb_ms'] / line['batch_ms']:.1f}",
            f"{line['view_mb']:,.0f} MB",
        )
    return str(shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and record; 1 if engines disagree."""
    parser = argparse.ArgumentParser(prog="bench.quantiles")
    parser.add_argument("-n", type=int, nargs="+", default=SIZES, help="requests")
    parser.add_argument("-v", nargs="+", default=[*VIEWS], choices=[*VIEWS], help="views")
    parser.add_argument("--quick", action="store_true", help="few rows and changes; nothing is recorded")
    given = parser.parse_args(arguments)
    try:
        for view in given.v:
            measured(view, 2_000, 6, 2)
            for rows in () if given.quick else given.n:
                line = measured(view, rows)
                figures = [f"{what} {value:,.2f}" for what, value in line.items() if what != "view"]
                sys.stdout.write(f"{view}: {', '.join(figures)}\n")
                results.append(QUANTILES_RESULTS, line)
    except AssertionError as error:
        sys.stderr.write(f"engines disagree: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
