"""A group-by over a join on Spark, kept up to date: `python -m bench.spark_groupby [--orders N] [--keep]`.

Orders (1M rows) join items (100k rows), and the revenue is summed by category, 1,000 of them. Both relations are
partitioned by item, so the groups cross partitions: each keeps its part of every sum (spark_bridge/partial.py).

    create    data frames to the collected revenue, beside Spark SQL's first and second evaluation of it
    batch     1,000 and 10,000 changes, half of them erases, nine in ten of orders: Arrow tables of changes to the
              collected change of the revenue, beside Spark SQL, which computes the revenue anew from cached frames

Wall seconds in one session (`local[2,4]`), both sides in turns. What Spark SQL takes to make and cache the changed
frames ("sql changes") is told apart from its query alone ("sql anew"). Before the next batch the collected changes,
added up, are compared with the revenue that Spark SQL finds. Each line of output is one JSON object; `--keep` appends
it to `bench/results/spark_groupby.jsonl`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.spark import Figures, tell, timed, warmed

PROGRAM = """
.decl orders(id:number, item:number, quantity:number)
.decl items(item:number, category:number, price:number)
revenue[c] = sum q * p : { orders(_, i, q), items(i, c, p) }.
.output revenue
"""
SQL = "select category c, sum(quantity * price) s from orders join items using (item) group by category"
CATEGORIES = 1_000
SIZES = ((1_000, 14), (10_000, 14))  # (changes of a batch, batches), the first of which is not counted
COLUMNS = {"orders": ("id", "item", "quantity"), "items": ("item", "category", "price")}
Rows = npt.NDArray[np.int64]


class Shop:
    """Orders and items, and batches that change them."""

    def __init__(self, orders: int, seed: int = 5) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = max(1, orders // 10)  # of items
        self.sold = orders  # ids of orders so far
        ids = np.arange(self.count)
        self.rows: dict[str, Rows] = {
            "orders": self._orders(np.arange(orders)),
            "items": self._items(ids),
        }

    def _orders(self, ids: Rows) -> Rows:
        item, quantity = self.rng.integers(0, self.count, len(ids)), self.rng.integers(1, 10, len(ids))
        return np.stack([ids, item, quantity], axis=1)

    def _items(self, ids: Rows) -> Rows:
        category, price = self.rng.integers(0, CATEGORIES, len(ids)), self.rng.integers(1, 10_000, len(ids))
        return np.stack([ids, category, price], axis=1)

    def batch(self, size: int) -> dict[str, pa.Table]:
        """The next changes, as tables with `_op`: orders come and go, items change their category and price."""
        found = {}
        items, orders = size // 20, (size - size // 20 * 2) // 2
        for name, count in (("orders", orders), ("items", items)):
            gone = self.rng.choice(len(self.rows[name]), count, replace=False)
            erased = self.rows[name][gone]
            if name == "orders":
                come = self._orders(np.arange(self.sold, self.sold + count))
                self.sold += count
            else:
                come = self._items(erased[:, 0])
            self.rows[name] = np.concatenate([np.delete(self.rows[name], gone, axis=0), come])
            ops = pa.array(np.repeat(np.array([-1, 1], np.int32), count))
            found[name] = table(name, np.concatenate([erased, come])).append_column("_op", ops)
        return found


def table(name: str, rows: Rows) -> pa.Table:
    """Rows as a table of a relation."""
    return pa.table({column: rows[:, i].copy() for i, column in enumerate(COLUMNS[name])})


class Sql:
    """The revenue as Spark SQL, over cached frames."""

    def __init__(self, spark: Any, frames: dict[str, Any]) -> None:
        self.spark = spark
        self.held: dict[str, Any] = {}
        for name, frame in frames.items():
            self._hold(name, frame)

    def _hold(self, name: str, frame: Any) -> None:
        # What it was made from is cut off: a plan that grows by every batch is no burden of the join.
        cached = frame.localCheckpoint(eager=True).cache()
        cached.count()
        if name in self.held:
            self.held[name].unpersist()
        self.held[name] = cached
        cached.createOrReplaceTempView(name)

    def change(self, changes: dict[str, pa.Table]) -> None:
        """Make a batch's changes."""
        for name, given in changes.items():
            self.spark.createDataFrame(given).createOrReplaceTempView("given")
            columns = ", ".join(COLUMNS[name])
            kept = f"select {columns} from {name} left anti join (select * from given where _op < 0) using ({columns})"
            come = f"select {columns} from given where _op > 0"
            self._hold(name, self.spark.sql(f"{kept} union all {come}"))

    def anew(self) -> dict[int, int]:
        """The revenue by category."""
        found = self.spark.sql(SQL).toArrow()
        return dict(zip(found["c"].to_pylist(), found["s"].to_pylist(), strict=True))


def on_spark(orders: int, partitions: int) -> Iterator[Figures]:
    """Create and batches, beside Spark SQL."""
    from spark_bridge.preflight import check, session
    from spark_bridge.spark_query import SparkQuery

    spark = session("local[2,4]", spark__driver__memory="2g", spark__sql__shuffle__partitions=2)
    spark.sparkContext.setLogLevel("ERROR")
    shop = Shop(orders)
    frames = {name: spark.createDataFrame(table(name, rows)) for name, rows in shop.rows.items()}
    sql = Sql(spark, frames)
    warmed(spark)
    check(spark)  # asks a worker, once per session
    first, answer = timed(sql.anew)
    again, _ = timed(sql.anew)
    sizes = {name: len(rows) for name, rows in shop.rows.items()}
    with tempfile.TemporaryDirectory() as folder:

        def create() -> tuple[Any, dict[int, int]]:
            made = SparkQuery.create(spark, PROGRAM, sql.held, checkpoint=Path(folder) / "q", partitions=partitions)
            found = made.result("revenue").toArrow()
            return made, dict(zip(*(column.to_pylist() for column in found.columns), strict=True))

        seconds, (query, held) = timed(create)
        assert held == answer, "the revenue is not that of Spark SQL"
        parts = query.metrics()["last"]
        yield {"what": "create", "seconds": [seconds], "sql anew": [first, again], "rows": sizes, "parts": parts}
        for size, count in SIZES:
            ours, theirs, made, told = [], [], [], []
            for _ in range(count):
                changes = shop.batch(size)
                applied, _ = timed(query.apply, changes, batch_id=f"b{query.version}")
                longest = max(query.metrics()["last"], key=lambda part: float(part["seconds"]))
                read, delta = timed(query.delta_table, "revenue", query.version - 1)
                told.append({"apply": applied, "read delta": read, "job": applied - longest["seconds"], **longest})
                ours.append(applied + read)
                made.append(timed(sql.change, changes)[0])
                took, answer = timed(sql.anew)
                theirs.append(took)
                for c, s, op in sorted(zip(*(column.to_pylist() for column in delta.columns), strict=True), key=_op):
                    if op < 0:
                        assert held.pop(c) == s, f"category {c} did not have {s}"
                    else:
                        held[c] = s
                assert held == answer, "the revenue is not that of Spark SQL"
            spent = {
                key: median(t[key] for t in told[1:])
                for key in ("apply", "read delta", "job", "read", "load", "evaluate", "write")
            }
            sides = {"seconds": ours, "sql anew": theirs, "sql changes": made}
            yield {"what": "batch", "size": size, **sides, "rows": sizes, "spent": spent}
        query.close()
    spark.stop()


def _op(row: Sequence[int]) -> int:
    return row[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(prog="bench.spark_groupby", description=__doc__)
    parser.add_argument("--orders", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    for figures in on_spark(given.orders, given.partitions):
        tell(figures, "spark_groupby.jsonl" if given.keep else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
