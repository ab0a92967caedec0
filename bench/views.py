"""Five views of SQL over orders whose columns admit null, as a shop would have them: time and memory, beside DuckDB.

    python -m bench.views [-n orders] [--quick]

Customers, products and orders are loaded, the views evaluated, and orders inserted one at a time and a thousand at a
time; then DuckDB, which has the same rows, asks its five views anew. CPU time, one thread each. The first change
evaluates again, the second makes what the views are followed by: both are shown. Memory is what `db.memory()` says when
all of that is done, in pages and in maps of triggers. All is done with few rows before, so that kernels are loaded.
What the views hold in the end is compared. Each line goes to `bench/results/views.jsonl`. Exit code 1 if engines
disagree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import lftj
from bench import results
from bench.tables import Table

VIEWS_RESULTS = results.RESULTS / "views.jsonl"
TABLES = """
create table customer (id bigint primary key, name text, country text);
create table product (id bigint primary key, name text, category text);
create table orders (id bigint primary key, customer bigint, product bigint, qty bigint, price bigint, day date);
"""
VIEWS = {
    "revenue": """select category, country, sum(qty * price) as total, count(*) as n from orders o
        join product p on o.product = p.id join customer c on o.customer = c.id group by category, country""",
    "top_days": "select day, sum(qty * price) as total from orders group by day having sum(qty * price) > 1000000",
    "idle": """select id, name from customer c where not exists
        (select 1 from orders o where o.customer = c.id and o.day >= date '2025-06-01')""",
    "best": """select customer, max(price) as most, min(day) as first_day, avg(qty) as mean from orders
        group by customer""",
    "variety": """select country, count(distinct product) as n from orders o join customer c on o.customer = c.id
        group by country""",
}
ONES, BATCH, BATCHES = 100, 1000, 11


def facts(orders: int) -> dict[str, pa.Table]:
    """Customers, a hundredth as many products, and ten times as many orders."""
    rng, customers, products = np.random.default_rng(0), orders // 10, orders // 100
    people, wares = np.arange(customers), np.arange(products)
    return {
        "customer": pa.table(
            {
                "id": people,
                "name": [f"customer {i}" for i in people.tolist()],
                "country": [("DE", "FR", "US", "JP")[i % 4] for i in people.tolist()],
            }
        ),
        "product": pa.table(
            {
                "id": wares,
                "name": [f"product {i}" for i in wares.tolist()],
                "category": [f"category {i % 37}" for i in wares.tolist()],
            }
        ),
        "orders": some_orders(rng, 0, orders, orders),
    }


def some_orders(rng: np.random.Generator, first: int, count: int, orders: int) -> pa.Table:
    """`count` orders, numbered from `first` on."""
    days = np.datetime64("2024-01-01") + rng.integers(0, 700, count)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "customer": rng.integers(0, orders // 10, count),
            "product": rng.integers(0, orders // 100, count),
            "qty": rng.integers(1, 10, count),
            "price": rng.integers(100, 10_000, count),
            "day": pa.array(days),
        }
    )


def timed(act: Callable[[], Any]) -> float:
    """Milliseconds of CPU."""
    begun = time.process_time()
    act()
    return (time.process_time() - begun) * 1e3


def measured(orders: int, batches: int) -> dict[str, Any]:
    """The figures; raises `AssertionError` naming a view that the engines do not agree on."""
    import duckdb

    given, rng = facts(orders), np.random.default_rng(1)
    db, duck = lftj.Database(), duckdb.connect(config={"threads": 1})
    for text in (TABLES, *(f"create view {name} as {query}" for name, query in VIEWS.items())):
        db.sql(text)
        duck.execute(text)
    line: dict[str, Any] = {"orders": orders, "load_ms": timed(lambda: [db.load(n, t) for n, t in given.items()])}
    line["evaluate_ms"] = timed(lambda: [len(db[name]) for name in VIEWS])
    for name, table in given.items():
        duck.register("given", table)
        duck.execute(f"insert into {name} select * from given")

    number = orders
    took: list[float] = []
    for count in (*[1] * (3 + ONES), *[BATCH] * batches):
        rows = some_orders(rng, number, count, orders)
        number += count
        duck.register("given", rows)
        duck.execute("insert into orders select * from given")
        took.append(timed(partial(insert, db, rows)))
    line["first_ms"], line["second_ms"] = took[0], took[1]
    line["one_ms"], line["batch_ms"] = statistics.median(took[3 : 3 + ONES]), statistics.median(took[3 + ONES :])
    asked = [timed(lambda: [duck.execute(f"select * from {name}").fetchall() for name in VIEWS]) for _ in range(5)]
    line["duckdb_ms"] = statistics.median(asked)
    held = {name: sizes for name, sizes in db.memory().items() if name != "total"}
    line["pages_mb"] = db.memory()["total"]["pages"] / 1e6
    line["maps_mb"] = sum(v for sizes in held.values() for what, v in sizes.items() if what.endswith("maps")) / 1e6
    line["raw_mb"] = sum(table.nbytes for table in given.values()) / 1e6
    for name in VIEWS:
        rows = Counter(map(tuple, duck.execute(f"select * from {name}").fetchall()))
        assert Counter(map(tuple, db.sql(f"select * from {name}"))) == rows, name
    return line


def insert(db: lftj.Database, rows: pa.Table) -> None:
    """Insert orders in one transaction."""
    with db.transaction() as tx:
        tx.insert("orders", rows)


def table() -> str:
    """What was measured last."""
    shown = Table("what", "measured")
    lines = list(results.read(VIEWS_RESULTS))
    if lines:
        line = lines[-1]
        shown.add(f"load of {line['orders']:,} orders, of their customers and products", f"{line['load_ms']:,.0f} ms")
        shown.add("the five views, evaluated", f"{line['evaluate_ms']:,.0f} ms")
        shown.add("the first change then, and the second", f"{line['first_ms']:,.0f} ms, {line['second_ms']:,.0f} ms")
        shown.add("a change of one row, median", f"**{line['one_ms']:.2f} ms**")
        shown.add("of 1,000 rows", f"**{line['batch_ms']:.1f} ms**")
        shown.add("DuckDB, the five views anew", f"{line['duckdb_ms']:.0f} ms")
        shown.add(
            "memory: pages, maps of triggers; the rows as Arrow tables",
            f"{line['pages_mb']:.0f} MB, {line['maps_mb']:.0f} MB; {line['raw_mb']:.0f} MB",
        )
    return str(shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and record; 1 if engines disagree."""
    parser = argparse.ArgumentParser(prog="bench.views")
    parser.add_argument("-n", type=int, default=500_000, help="orders")
    parser.add_argument("--quick", action="store_true", help="few rows and batches; nothing is recorded")
    given = parser.parse_args(arguments)
    try:
        line = measured(3_000, 2)
        if not given.quick:
            line = measured(given.n, BATCHES)
    except AssertionError as error:
        sys.stderr.write(f"engines disagree: {error}\n")
        return 1
    sys.stdout.write(", ".join(f"{what} {value:,.1f}" for what, value in line.items()) + "\n")
    if not given.quick:
        results.append(VIEWS_RESULTS, line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
