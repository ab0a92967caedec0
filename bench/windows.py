"""Window functions and recursive queries of SQL, kept up to date: time of changes, beside DuckDB, which asks anew.

    python -m bench.windows [--quick]

    windows    10,000 shops of 100 days: sums up to each day and ranks in each shop, and the newest day of each shop
    rolling    the same shops: sum, median and number of distinct values of the week that ends with each day
    tree       100,000 people below one another at random: each with the path of names above, by `union all`
    chain      2,000 people, each below the one before: as many rounds

CPU time, one thread each. A change of windows is a row that comes; of people one comes, or one moves, with all below,
to somebody else. The first changes, which prepare, are not among those whose median is told. In the end each view is
compared with DuckDB's answer. Lines go to `bench/results/windows.jsonl`. Exit code 1 if engines disagree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import lftj
from bench import results
from bench.tables import Table
from bench.views import timed

WINDOWS_RESULTS = results.RESULTS / "windows.jsonl"
SALES = "create table sale (shop bigint, day bigint, n bigint, primary key (shop, day))"
PEOPLE = "create table person (id bigint primary key, boss bigint, name text not null)"
WINDOWS = {
    "running": """select shop, day, sum(n) over (partition by shop order by day) as total,
        rank() over (partition by shop order by n desc) as place from sale""",
    "newest": "select shop, day, n from sale qualify row_number() over (partition by shop order by day desc) = 1",
}
ROLLING = {
    "weekly": """select shop, day, sum(n) over w as total, median(n) over w as middle, count(distinct n) over w as many
        from sale window w as (partition by shop order by day range between 6 preceding and current row)""",
}
PATHS = {
    "place": """with recursive r(id, path) as (select id, name from person where boss is null
        union all select p.id, r.path || '/' || p.name from person p join r on p.boss = r.id) select id, path from r"""
}
PREPARING, CHANGES = 3, 21


class Case(NamedTuple):
    """A table, its rows, views over it, and endless changes of it, each one statement."""

    table: str
    rows: pa.Table
    views: dict[str, str]
    changes: Iterator[str]


def sales(views: dict[str, str], shops: int, days: int) -> Case:
    """The windows, rolling ones or others."""
    rng = np.random.default_rng(0)
    columns = (np.repeat(np.arange(shops), days), np.tile(np.arange(days), shops), rng.integers(0, 1000, shops * days))
    new = (f"insert into sale values ({int(rng.integers(shops))}, {day}, 5)" for day in range(days, 1 << 30))
    return Case(SALES, pa.table(dict(zip(("shop", "day", "n"), columns, strict=True))), views, new)


def people(count: int, *, chain: bool) -> Case:
    """The tree, or the chain."""
    rng = np.random.default_rng(0)
    above = np.arange(count) - 1 if chain else (rng.random(count) * np.arange(count)).astype(np.int64)
    bosses = pa.array([None, *above[1:].tolist()], pa.int64())
    rows = pa.table({"id": np.arange(count), "boss": bosses, "name": [f"p{i}" for i in range(count)]})
    return Case(PEOPLE, rows, PATHS, _moves(rng, count))


def _moves(rng: np.random.Generator, count: int) -> Iterator[str]:
    """Somebody comes; somebody of the later half goes below somebody of the earlier."""
    while True:
        yield f"insert into person values ({count}, {int(rng.integers(count))}, 'p{count}')"
        count += 1
        moved, below = int(rng.integers(count // 2, count)), int(rng.integers(count // 2))
        yield f"update person set boss = {below} where id = {moved}"


CASES: dict[str, Callable[[bool], Case]] = {
    "windows": lambda quick: sales(WINDOWS, *((40, 10) if quick else (10_000, 100))),
    "rolling": lambda quick: sales(ROLLING, *((40, 10) if quick else (10_000, 100))),
    "tree": lambda quick: people(300 if quick else 100_000, chain=False),
    "chain": lambda quick: people(30 if quick else 2_000, chain=True),
}


def measured(name: str, *, quick: bool) -> dict[str, Any]:
    """The figures of a case; raises `AssertionError` naming a view that the engines do not agree on."""
    import duckdb

    case = CASES[name](quick)
    relation = case.table.split()[2]
    db, duck = lftj.Database(), duckdb.connect(config={"threads": 1})
    for text in (case.table, *(f"create view {view} as {query}" for view, query in case.views.items())):
        db.sql(text)
        duck.execute(text)
    db.load(relation, case.rows)
    duck.register("given", case.rows)
    duck.execute(f"insert into {relation} select * from given")
    line: dict[str, Any] = {"case": name, "rows": case.rows.num_rows}
    line["evaluate_ms"] = timed(lambda: [len(db[view]) for view in case.views])
    took: dict[str, list[float]] = {}
    for at, text in enumerate(islice(case.changes, PREPARING * 2 + CHANGES * 2)):
        milliseconds = timed(partial(apply, db, text))
        duck.execute(text)
        if at >= PREPARING * 2:
            took.setdefault(text.split()[0], []).append(milliseconds)
    line |= {f"{kind}_ms": statistics.median(times) for kind, times in took.items()}
    asked = [timed(lambda: [duck.sql(f"select * from {v}").fetchnumpy() for v in case.views]) for _ in range(3)]
    line["duckdb_ms"] = statistics.median(asked)
    for view in case.views:
        rows = Counter(map(tuple, duck.execute(f"select * from {view}").fetchall()))
        assert Counter(map(tuple, db.sql(f"select * from {view}"))) == rows, view
    return line


def apply(db: lftj.Database, text: str) -> None:
    """One change."""
    db.sql(text)


def table() -> str:
    """What was measured last of each case, milliseconds."""
    shown = Table("views over", "rows", "evaluated", "a row comes", "one moves, with all below", "DuckDB anew")
    last = {line["case"]: line for line in results.read(WINDOWS_RESULTS)}
    words = {
        "windows": "shops: sums, ranks, newest",
        "rolling": "shops: sum, median, distinct values of the last week",
        "tree": "a tree of people: paths",
        "chain": "a chain of people",
    }
    for name, what in words.items():
        if (line := last.get(name)) is not None:
            moved = f"**{line['update_ms']:,.1f}**" if "update_ms" in line else ""
            came, evaluated = f"**{line['insert_ms']:,.2f}**", f"{line['evaluate_ms']:,.0f}"
            shown.add(what, f"{line['rows']:,}", evaluated, came, moved, f"{line['duckdb_ms']:,.0f}")
    return str(shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and record; 1 if engines disagree."""
    parser = argparse.ArgumentParser(prog="bench.windows")
    parser.add_argument("--quick", action="store_true", help="few rows; nothing is recorded")
    quick = parser.parse_args(arguments).quick
    try:
        for name in CASES:
            line = measured(name, quick=True)  # kernels are loaded
            if not quick:
                line = measured(name, quick=False)
                results.append(WINDOWS_RESULTS, line)
            shown = (f"{what} {value:,.2f}" if what.endswith("_ms") else f"{value}" for what, value in line.items())
            sys.stdout.write(f"{' '.join(shown)}\n")
    except AssertionError as error:
        sys.stderr.write(f"engines disagree: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
