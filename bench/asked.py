"""Aggregates in SQL that are asked once: CPU time of the first question and of later ones, beside DuckDB.

    python -m bench.asked [--quick]

Paths of three edges of a graph with both ends among the first vertices, counted, and by their second vertex; the table
has no key. Questions of a report over a million made sales, which have no key either, and 100,000 customers. And
TPC-H's q1, q3, q6 and q10 at scale 0.1, over tables of bench.tpch_made. Each case has a database of its own with the
tables loaded. Nothing was asked before the first question, which builds what it needs; of the later ones
it is the last. Answers are compared. "kept": bytes of pages that the questions leave. One thread. To
`bench/results/asked.jsonl`.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bench import graphs, results
from bench.cases import Bench, Line
from bench.rivals.duckdb_views import Views
from bench.tpch_made import made
from bench.tpch_queries import QUERIES, TABLES
from bench.triggers_run import differ
from bench.triggers_tpch import load, reads

ASKED = results.RESULTS / "asked.jsonl"
#: Graphs, and how many vertices the ends of paths are among.
GRAPHS = {"pl1m": 10_000, "pl1m_skew": 2_000}
TPCH, SCALE, QUICK_SCALE = ("q1", "q3", "q6", "q10"), 0.1, 0.002
AGAIN = 12
EDGES = "create table e (a int not null, b int not null)"
_PATHS = "from e e1 join e e2 on e1.b = e2.a join e e3 on e2.b = e3.a where e1.a < {ends} and e3.b < {ends}"
PATHS = {
    "paths counted": f"select count(*) as n {_PATHS}",
    "paths by vertex": f"select e2.a, count(*) as n {_PATHS} group by e2.a",
}
SALES, CUSTOMERS, QUICK_SALES = 1_000_000, 100_000, 2_000
SHOP = """
create table sale (id int not null, customer int not null, qty int not null, price int not null, day date not null);
create table customer (id int primary key, region int not null)
"""
REPORTS = {
    "by customer": "select customer, sum(price) as total from sale group by customer",
    "extremes": "select customer, min(price) as least, max(price) as most from sale group by customer",
    "by month": "select date_trunc('month', day) as month, sum(price) as total from sale group by 1",
    "by region": "select region, sum(price * qty) as total from sale, customer c where customer = c.id group by region",
    "first ten": "select id, price from sale order by price desc, id limit 10",
    "first ten, joined": "select sale.id, region from sale, customer c where customer = c.id "
    "order by price desc, sale.id limit 10",
    "dearest of each": "select id, customer, price from (select id, customer, price, row_number() over (partition by "
    "customer order by price desc, id) as place from sale) s where place = 1",
    "six at once": "select customer % 100 as part, count(*) as n, sum(qty) as items, avg(price) as mean, "
    "sum(price * qty) as paid, sum(price) filter (where qty > 40) as most, max(day) as last from sale group by 1",
}

TILL = "create table till (name text not null, qty int not null, price double, sold timestamp not null)"
FRAME = {
    "floats by month": "select date_trunc('month', sold) as month, count(*) as n, sum(price * qty) as paid, "
    "avg(price) as mean from till group by 1",
    "floats, extremes": "select qty % 7 as part, sum(price * (1 - 0.05)) as paid, max(price) as most, "
    "min(sold) as since from till where price > 5.0 group by 1",
    "floats of many": "select name, sum(price) as paid from till group by name",
    "parts of texts": "select substr(name, 1, 4) as front, sum(qty) as items, avg(price) as mean from till "
    "where name like '%1%' group by 1",
    "rounded": "select round(price) as about, count(*) as n from till where price is not null group by 1",
    "running sums": "select count(*) as n, max(total) as most from (select sum(price) over (partition by name "
    "order by sold) as total from till) s",
    "shares": "select count(*) as n from (select price, sum(price) over (partition by name) as total from till) s "
    "where price > 0.05 * total",
}


def shop(quick: bool) -> dict[str, Any]:
    """The tables of `SHOP`, seeded."""
    import pyarrow as pa

    rng, n, customers = np.random.default_rng(7), QUICK_SALES if quick else SALES, CUSTOMERS
    days = rng.integers(17_000, 19_000, n).astype(np.int32)
    sale = {
        "id": np.arange(n),
        "customer": rng.integers(0, customers, n),
        "qty": rng.integers(1, 50, n),
        "price": rng.integers(1, 10_000, n),
        "day": pa.array(days, pa.int32()).cast(pa.date32()),
    }
    return {
        "sale": pa.table(sale),
        "customer": pa.table({"id": np.arange(customers), "region": rng.integers(0, 25, customers)}),
    }


def till(quick: bool) -> dict[str, Any]:
    """The table of `TILL`, seeded."""
    import pyarrow as pa

    rng, n = np.random.default_rng(8), QUICK_SALES if quick else SALES
    names = np.array([f"item {i}" for i in range(20_000)])
    columns = {
        "name": names[rng.integers(0, len(names), n)],
        "qty": rng.integers(1, 50, n),
        "price": pa.array(rng.integers(100, 100_000, n) / 100, mask=rng.random(n) < 0.05),
        "sold": pa.array(rng.integers(1_600_000_000, 1_700_000_000, n) * 1_000_000, pa.timestamp("us")),
    }
    return {"till": pa.table(columns)}


def case(request: Line) -> tuple[str, str, dict[str, Any]]:
    """(statements that create the tables, the question, the tables)."""
    import pyarrow as pa

    workload, graph = request["workload"], request["graph"]
    if workload in QUERIES:
        query = QUERIES[workload]
        tables = made(QUICK_SCALE if request["quick"] else SCALE)
        return ";".join(TABLES[name] for name in reads(query)), query.body, {n: tables[n] for n in reads(query)}
    if workload in REPORTS:
        return SHOP, REPORTS[workload], shop(request["quick"])
    if workload in FRAME:
        return TILL, FRAME[workload], till(request["quick"])
    rows = graphs.load(graph).rows
    return (
        EDGES,
        PATHS[workload].format(ends=GRAPHS.get(graph, 20)),
        {"e": pa.table({"a": rows[:, 0], "b": rows[:, 1]})},
    )


def answered(request: Line) -> Line:
    """The figures of one case; AssertionError if DuckDB answers otherwise."""
    import lftj

    create, question, tables = case(request)
    db = lftj.Database()
    db.sql(create)
    load(db, tables)
    held = db.memory()["total"]["pages"]
    ours = _times(lambda: db.sql(question))
    kept = db.memory()["total"]["pages"] - held
    rival = Views(tables)
    theirs = _times(lambda: rival.answer(question))
    found = list(db.sql(question))
    if difference := differ(found, rival.answer(question)):
        raise AssertionError(f"{request['workload']}: {difference}")
    return {"rows": len(found), "kept": kept, "engines": {"lftj": ours, "duckdb": theirs}}


def _times(ask: Callable[[], object]) -> dict[str, float]:
    took = []
    gc.collect()  # what loading left; it takes longer than most questions, and came with the first of some
    for _ in range(1 + AGAIN):
        start = time.process_time()
        ask()
        took.append((time.process_time() - start) * 1e3)
    return {"first_ms": took[0], "again_ms": took[-1]}


def measured(request: Line) -> Line:
    """One case, with all kernels compiled before."""
    import lftj

    if not request["quick"]:
        lftj.Database().prepare()  # what only groups that lie close together need is in no quick case
        answered({**request, "graph": "tiny", "quick": True})
    return {"status": "ok", **answered(request)}


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    what = [(name, graph) for name in PATHS for graph in (("tiny",) if quick else GRAPHS)]
    what += [(name, "sales") for name in REPORTS] + [(name, "till") for name in FRAME]
    for workload, graph in [*what, *((name, "tpch") for name in TPCH)]:
        yield {"workload": workload, "graph": graph, "mode": "asked", "engine": "lftj", "quick": quick}


def note(line: Line) -> str:
    """The figures in a line."""
    shown = (f"{e} {t['first_ms']:.1f}, then {t['again_ms']:.1f} ms" for e, t in line["engines"].items())
    return f"{'  '.join(shown)}  {line['kept'] / 1e6:.1f} MB kept"


BENCH = Bench("bench.asked", ASKED, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
