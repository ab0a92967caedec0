"""The job: `python -m spark_bridge`, or `spark-submit` with this file, where lftj is installed on all nodes.

    python -m spark_bridge create --program q.dl --input edge=edges.parquet --checkpoint DIR --partitions 8
    python -m spark_bridge apply  --changes edge=changes.parquet --checkpoint DIR --batch-id monday
    python -m spark_bridge serve  --changes edge=ARRIVING --checkpoint DIR
    python -m spark_bridge result --output tri=PATH --checkpoint DIR
    python -m spark_bridge estimate | verify | compact | rescale ...

Files are Parquet (also folders of it), or .csv and .tsv without a header in the order of the columns; changes have a
column `_op`, the last one. stdout is one line of JSON about what was done, everything else goes to stderr. Exit codes:
0 done, 1 the program was refused, 2 usage, 3 the data or the checkpoint was, 4 `verify` found something.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lftj
from lftj.values.codes import Schema
from spark_bridge.errors import PlanError
from spark_bridge.preflight import missing, session, submitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_bridge.query import SparkQuery

PROGRAM_REFUSED, DATA_REFUSED, FOUND = 1, 3, 4


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form RELATION=PATH")
    return name, path


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="spark_bridge", description="Datalog rules over Spark, kept up to date.")
    top.add_argument("--master", help="where to run (default: what spark-submit says, else local[*,4])")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, says: str, *, checkpoint: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=says, description=says)
        made.add_argument("--checkpoint", required=checkpoint, metavar="DIR", help="folder of the query, on all nodes")
        return made

    for name, says in (
        ("create", "evaluate a program over inputs"),
        ("estimate", "say what `create` would do and take, without running it"),
    ):
        made = command(name, says, checkpoint=name == "create")
        made.add_argument("--program", required=True, metavar="FILE", help="the rules")
        made.add_argument("--input", type=_pair, action="append", default=[], metavar="RELATION=PATH")
        made.add_argument("--partitions", type=int, help="default: as many as there are cores")
        made.add_argument("--replicate", action="append", default=[], metavar="RELATION")
        made.add_argument("--partition-memory", type=int, metavar="BYTES")
    made = command("apply", "make changes the next version, once")
    made.add_argument("--changes", type=_pair, action="append", required=True, metavar="RELATION=PATH")
    made.add_argument("--batch-id", required=True)
    made.add_argument("--delta", type=_pair, action="append", default=[], metavar="RELATION=PATH")
    made = command("serve", "apply what arrives in a folder of Parquet files, as it arrives")
    made.add_argument("--changes", type=_pair, required=True, metavar="RELATION=FOLDER")
    made.add_argument("--once", action="store_true", help="end when everything that is there was applied")
    made.add_argument("--every", default="5 seconds", metavar="INTERVAL")
    made = command("result", "write relations as Parquet")
    made.add_argument("--output", type=_pair, action="append", required=True, metavar="RELATION=PATH")
    made.add_argument("--version", type=int)
    made = command("rescale", "place keys anew over another number of partitions")
    made.add_argument("--partitions", type=int, required=True)
    command("verify", "check every file, and every output against the facts")
    command("compact", "put all changes into a new base, and remove what is older than the one before")
    return top


def read(spark: SparkSession, path: str, schema: Schema, *, changes: bool) -> DataFrame:
    """A data frame of a path."""
    from spark_bridge.spark import sql_schema

    columns = sql_schema(schema) + (", _op bigint" if changes else "")
    plain = path.removesuffix(".gz")
    if plain.endswith((".csv", ".tsv", ".txt")):
        delimiter = "," if plain.endswith(".csv") else "\t"
        return spark.read.schema(columns).option("sep", delimiter).option("mode", "FAILFAST").csv(path)
    return spark.read.parquet(path)


def _run(spark: SparkSession, given: argparse.Namespace) -> tuple[dict[str, Any], int]:
    from spark_bridge.plan import make_plan
    from spark_bridge.query import SparkQuery

    if given.command in ("create", "estimate"):
        text = Path(given.program).read_text(encoding="utf-8")
        partitions = given.partitions or spark.sparkContext.defaultParallelism
        options: dict[str, Any] = {"partitions": partitions, "replicate": given.replicate}
        schemas = make_plan(text, **options).schemas
        frames = {name: read(spark, path, _of(schemas, name), changes=False) for name, path in given.input}
        options["partition_memory"] = given.partition_memory
        if given.command == "estimate":
            found = SparkQuery.estimate_for(text, frames, **options)
            sys.stderr.write(f"{found}\n")
            return {"bytes": found.bytes, "skew": found.skew, "share": found.share, "split": found.split_keys}, 0
        query = SparkQuery.create(spark, text, frames, checkpoint=given.checkpoint, **options)
        with query:
            return query.metrics(), 0
    with SparkQuery.open(spark, given.checkpoint) as query:
        return _on(spark, query, given)


def _of(schemas: dict[str, Schema], name: str) -> Schema:
    if name not in schemas:
        raise PlanError(f"there is no relation `{name}`", remedy=f"the program has {', '.join(sorted(schemas))}")
    return schemas[name]


def _on(spark: SparkSession, query: SparkQuery, given: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """A command on a query that is there."""
    schemas = query.schemas
    if given.command == "apply":
        frames = {name: read(spark, path, _of(schemas, name), changes=True) for name, path in given.changes}
        done = query.apply(frames, batch_id=given.batch_id)
        for name, path in given.delta:
            query.delta(name, done.version - 1, done.version).write.parquet(path)
        return {"version": done.version, "changed": done.changed, "repeated": done.repeated}, 0
    if given.command == "serve":
        return _serve(spark, query, given), 0
    if given.command == "result":
        for name, path in given.output:
            query.result(name, version=given.version).write.parquet(path)
        return {"version": query.version if given.version is None else given.version}, 0
    if given.command == "verify":
        found = query.verify()
        return found, 0 if found["ok"] else FOUND
    if given.command == "compact":
        return {"version": query.compact()}, 0
    return {"version": query.rescale(given.partitions)}, 0


def _serve(spark: SparkSession, query: SparkQuery, given: argparse.Namespace) -> dict[str, Any]:
    from spark_bridge.spark import sql_schema

    name, folder = given.changes
    source = spark.readStream.schema(sql_schema(_of(query.schemas, name)) + ", _op bigint").parquet(folder)
    writer = source.writeStream.foreachBatch(query.foreach_batch(name))
    writer = writer.option("checkpointLocation", str(Path(given.checkpoint) / f"stream-{name}"))
    trigger: dict[str, Any] = {"availableNow": True} if given.once else {"processingTime": given.every}
    stream = writer.trigger(**trigger).start()
    try:
        stream.awaitTermination()
    except KeyboardInterrupt:
        stream.stop()
    return {"version": query.version}


class _SparkErrors(io.TextIOBase):
    """The stderr of spark-submit, which joins that of the process it starts to its stdout."""

    def __init__(self) -> None:
        from pyspark import SparkContext

        SparkContext._ensure_initialized()
        jvm: Any = SparkContext._jvm
        self._stream = jvm.java.lang.System.err

    def write(self, text: str) -> int:
        self._stream.print(text)
        return len(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = parser().parse_args(arguments)
    if not submitted() or missing():
        return _done(given)
    with redirect_stderr(_SparkErrors()):
        return _done(given)


def _done(given: argparse.Namespace) -> int:
    try:
        spark = session(given.master)
        try:
            told, code = _run(spark, given)
        finally:
            spark.stop()
    except (lftj.ProgramError, PlanError) as error:
        sys.stderr.write(f"{error}\n")
        return PROGRAM_REFUSED
    except (lftj.Error, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return DATA_REFUSED
    sys.stdout.write(json.dumps(told, default=str) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
