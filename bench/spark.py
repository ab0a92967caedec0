"""Partitions, with Spark and without: `python -m bench.spark [--part spark|local|skew|growth] [--graph pl200k,pl1m]`.

    spark    triangles, data frame to result, wall seconds in one session: create and batches of 100, 1,000 and 10,000
             changes against the same as Spark SQL, by delta rules and evaluated anew, in turns (Java gets faster for
             minutes); and where the time goes
    local    one database, and one and two processes of this machine: full evaluation, and batches of 10,000
    skew     the work of 32 partitions of pl1m_skew, counted in leapfrog steps, by hash and as placed
    growth   200 batches of 100, compacted every 50: time of a batch and files

Every side gets the edges as a data frame and ends with all rows of the answer (or its change) counted. Spark SQL holds
its edges cached; a batch's changes are a data frame for both. Each line of output is one JSON object; `--keep` appends
it to `bench/results/spark.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import lftj
from bench import results
from bench.graphs import load
from bench.updates import Batch, generated
from spark_bridge.driver import Partitioned
from spark_bridge.keys import Keyed
from spark_bridge.local import InProcess
from spark_bridge.local_query import LocalQuery
from spark_bridge.partition_database import database
from spark_bridge.placement import Placement, key_work, loads, place
from spark_bridge.planner import make_plan
from spark_bridge.state_layout import StageLayout

PROGRAM = """
.decl e(a:number, b:number)
tri(x, y, z) :- e(x, y), e(y, z), e(x, z).
"""
SIZES = ((100, 8), (1_000, 6), (10_000, 6))  # of the first batch of each size only the rest is told
ANEW_AFTER = 3  # batches of a size: after each of the others all is evaluated anew, too
Figures = dict[str, Any]

#: Triangles, and those of an edge relation that hold a changed edge: each changed edge in each of the three places.
FULL = "select a.a x, a.b y, b.b z from {e} a join {e} b on a.b = b.a join {e} c on a.a = c.a and b.b = c.b"
DELTA = """
select x, y, z from (
  select a.a x, a.b y, b.b z from {d} a join {e} b on a.b = b.a join {e} c on a.a = c.a and b.b = c.b
  union select a.a x, a.b y, b.b z from {d} b join {e} a on a.b = b.a join {e} c on a.a = c.a and b.b = c.b
  union select c.a x, a.b y, c.b z from {d} c join {e} a on c.a = a.a join {e} b on a.b = b.a and b.b = c.b
)"""


def edges_of(name: str) -> npt.NDArray[np.int64]:
    """The edges of a graph."""
    return load(name).rows


def table(rows: npt.NDArray[np.int64]) -> pa.Table:
    """Edges as a table."""
    return pa.table({"a": rows[:, 0].copy(), "b": rows[:, 1].copy()})


def changes(batch: Batch) -> pa.Table:
    """A batch as a table of changes."""
    rows = np.concatenate([batch.erase, batch.insert])
    ops = np.repeat(np.array([-1, 1], np.int32), [len(batch.erase), len(batch.insert)])
    return table(rows).append_column("_op", pa.array(ops))


def timed(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[float, Any]:
    """Wall seconds of a call, and the result."""
    started = time.perf_counter()
    found = call(*args, **options)
    return time.perf_counter() - started, found


# Spark ---------------------------------------------------------------------------------------------------------------


class Sql:
    """Triangles as Spark SQL."""

    def __init__(self, spark: Any, frame: Any) -> None:
        self.spark = spark
        self._hold(frame)

    def _hold(self, frame: Any) -> None:
        # What it was made from is cut off: a plan that grows by every batch is Spark's burden, not the join's.
        self.edges = frame.localCheckpoint(eager=True)
        self.edges.createOrReplaceTempView("e")

    def full(self) -> int:
        """All triangles, counted."""
        return int(self.spark.sql(f"select count(*) n from ({FULL.format(e='e')})").collect()[0].n)

    def batch(self, given: Any) -> tuple[int, int]:
        """The triangles that go and those that come, counted, and the edges after it."""
        given.createOrReplaceTempView("d")
        self.spark.sql("select a, b from d where _op = -1").createOrReplaceTempView("gone")
        self.spark.sql("select a, b from d where _op = 1").createOrReplaceTempView("come")
        erased = self.spark.sql(f"select count(*) n from ({DELTA.format(d='gone', e='e')})").collect()[0].n
        after = "select a, b from e left anti join gone using (a, b) union all select a, b from come"
        self._hold(self.spark.sql(after))
        inserted = self.spark.sql(f"select count(*) n from ({DELTA.format(d='come', e='e')})").collect()[0].n
        return int(erased), int(inserted)


def on_spark(name: str, partitions: int) -> Iterator[Figures]:
    """Create and batches, beside Spark SQL."""
    from spark_bridge.preflight import session
    from spark_bridge.spark_query import SparkQuery

    spark = session("local[2,4]", spark__driver__memory="3g", spark__sql__shuffle__partitions=4)
    spark.sparkContext.setLogLevel("ERROR")
    rows = edges_of(name)
    frame = spark.createDataFrame(table(rows))
    frame.count()
    sql = Sql(spark, frame)
    warmed(spark)
    full, answer = timed(sql.full)
    again, _ = timed(sql.full)
    yield {"graph": name, "what": "Spark SQL, all triangles", "seconds": [full, again], "rows": answer}
    with tempfile.TemporaryDirectory() as folder:

        def create() -> tuple[Any, int]:
            made = SparkQuery.create(spark, PROGRAM, {"e": frame}, checkpoint=Path(folder) / "q", partitions=partitions)
            return made, made.result("tri").count()

        seconds, (query, count) = timed(create)
        assert count == answer, (count, answer)
        yield {"graph": name, "what": "create", "seconds": [seconds], "rows": count, "parts": query.metrics()["last"]}
        for size, batches in _by_size(rows):
            ours, theirs, anew, told = [], [], [], []
            for batch in batches:
                given = spark.createDataFrame(changes(batch))
                given.count()
                took, done = timed(query.apply, {"e": given}, batch_id=f"b{query.version}")
                read, _ = timed(lambda: query.delta("tri", query.version - 1).count())
                parts = query.metrics()["last"]
                longest = max(parts, key=lambda part: part["seconds"])
                told.append({"apply": took, "read delta": read, **longest, "job": took - longest["seconds"]})
                ours.append(took + read)
                took, found = timed(sql.batch, given)
                theirs.append(took)
                if len(theirs) > ANEW_AFTER:
                    anew.append(timed(sql.full)[0])
                assert done.changed.get("tri", (0, 0)) == found, (done, found)
            spent = {
                key: median(t[key] for t in told[1:])
                for key in ("apply", "read delta", "job", "read", "load", "evaluate", "write")
            }
            sides = {"seconds": ours, "sql delta": theirs, "sql anew": anew}
            yield {"graph": name, "what": "batch", "size": size, **sides, "spent": spent}
        query.close()
    spark.stop()


def warmed(spark: Any) -> None:
    """Start the daemon, which loads its kernels, and two workers."""
    spark.range(0, 2, 1, 2).mapInArrow(_nothing, "id bigint").count()


def _nothing(batches: Any) -> Any:
    yield from batches


def _by_size(rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, list[Batch]]]:
    stream = generated(rows, SIZES, seed=5)
    for size, count in SIZES:
        yield size, [next(stream) for _ in range(count)]


# One machine ---------------------------------------------------------------------------------------------------------


def on_processes(name: str, _: int) -> Iterator[Figures]:
    """One database in this process, and partitions in processes of their own: numpy rows to the counted answer."""
    rows = edges_of(name)
    lftj.Database().prepare()
    for how in ("auto", "trace"):
        yield {"graph": name, "what": "one database", "maintain": how, **_in_process(rows, how)}
        for count in (1, 2):
            figures = _in_processes(rows, how, count)
            yield {"graph": name, "what": "processes", "processes": count, "maintain": how, **figures}


def _in_process(rows: npt.NDArray[np.int64], how: str) -> Figures:
    started = time.perf_counter()
    with lftj.Database() as db:
        db.rules(PROGRAM, maintain={"tri": how})
        db.load("e", rows)
        loaded = time.perf_counter()
        count = len(db["tri"])
        evaluated = time.perf_counter()
        took = []
        for batch in _batches(rows):
            begun = time.perf_counter()
            with db.transaction() as tx:
                tx.erase("e", batch.erase)
                tx.insert("e", batch.insert)
            changed = len(tx.delta["tri"].erased) + len(tx.delta["tri"].inserted)
            assert changed > 0
            took.append(time.perf_counter() - begun)
        return {
            "create": evaluated - started,
            "evaluate": evaluated - loaded,
            "rows": count,
            "batch": median(took[1:]),
            "batch, evaluate": median(took[1:]),
        }


def _in_processes(rows: npt.NDArray[np.int64], how: str, count: int) -> Figures:
    def create() -> tuple[LocalQuery, int]:
        made = LocalQuery.create(PROGRAM, {"e": rows}, processes=count, maintain={"tri": how})
        return made, made.result("tri").num_rows

    seconds, (query, found) = timed(create)
    with query:
        evaluated = max(part["evaluate"] for part in query.metrics()["last"])
        took, inside = [], []
        for batch in _batches(rows):
            applied, _ = timed(query.apply, {"e": changes(batch)}, batch_id=f"b{query.version}")
            read, changed = timed(query.delta, "tri", query.version - 1)
            assert changed.num_rows > 0
            took.append(applied + read)
            inside.append(max(part["evaluate"] for part in query.metrics()["last"]))
    return {
        "create": seconds,
        "evaluate": evaluated,
        "rows": found,
        "batch": median(took[1:]),
        "batch, evaluate": median(inside[1:]),
    }


def _batches(rows: npt.NDArray[np.int64]) -> Iterator[Batch]:
    """The batches of 10,000 changes; the first is not told."""
    return generated(rows, ((10_000, 5),), seed=5)


def skew(name: str, _: int) -> Iterator[Figures]:
    """The work of 32 partitions, in steps of their joins."""
    plan = make_plan(PROGRAM)
    rows = table(edges_of(name))
    keyed = Keyed(rows, plan.schemas["e"])
    keys, work = key_work(plan, {"e": keyed})
    for kind, placement in (("hash", Placement(32)), ("placed", place(keys, work, 32))):
        layout, steps = StageLayout(plan, placement), []
        expected = loads(placement, keys, work)
        for partition in range(32):
            with database(layout, partition, {"e": rows}) as db:
                query = db.query("e__x_0(x, y), e__all(y, z), e__x_0(x, z)", order=("x", "y", "z"))
                query.count()
                steps.append(query.stats["steps"])
        yield {
            "graph": name,
            "what": f"skew at 32, {kind}",
            "estimated": float(expected.max() / expected.mean()),
            "measured": max(steps) / (sum(steps) / len(steps)),
        }


def growth(name: str, partitions: int) -> Iterator[Figures]:
    """200 batches of 100."""
    rows, took, files = edges_of(name), [], []
    with tempfile.TemporaryDirectory() as folder:
        query = Partitioned.create(
            InProcess(), PROGRAM, {"e": table(rows)}, checkpoint=Path(folder) / "q", partitions=partitions
        )
        for i, batch in enumerate(generated(rows, ((100, 200),), seed=7)):
            took.append(timed(query.apply, {"e": changes(batch)}, batch_id=str(query.version))[0])
            if i % 50 == 49:
                query.compact()
                files.append(sum(1 for path in Path(folder).rglob("*") if path.is_file()))
    fifths = [median(took[lo : lo + 40]) for lo in range(0, 200, 40)]
    yield {"graph": name, "what": "growth", "median of each 40": fifths, "files after compaction": files}


PARTS: dict[str, tuple[Callable[[str, int], Iterator[Figures]], str]] = {
    "spark": (on_spark, "pl200k,pl1m"),
    "local": (on_processes, "pl1m"),
    "skew": (skew, "pl1m_skew"),
    "growth": (growth, "pl200k"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--graph", help="comma separated")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    for part in given.part or PARTS:
        run, graphs = PARTS[part]
        for graph in (given.graph or graphs).split(","):
            for figures in run(graph, given.partitions):
                tell(figures, "spark.jsonl" if given.keep else None)
    return 0


def tell(figures: Figures, file: str | None) -> None:
    """Print figures as a line of JSON, and keep them in a file of the results."""
    line = rounded(figures)
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    if file is not None:
        results.append(results.RESULTS / file, {**line, "load": os.getloadavg()[0]})


def rounded(figures: Any) -> Any:
    """Figures with four digits behind the point."""
    if isinstance(figures, float):
        return round(figures, 4)
    if isinstance(figures, dict):
        return {key: rounded(value) for key, value in figures.items()}
    return [rounded(value) for value in figures] if isinstance(figures, list) else figures


if __name__ == "__main__":
    sys.exit(main())
