"""The job: `python -m spark_bridge`, or `spark-submit` with this file, where lftj is installed on all nodes.

    python -m spark_bridge create --program q.dl --input edge=edges.parquet --checkpoint DIR --partitions 8
    python -m spark_bridge apply  --changes edge=changes.parquet --checkpoint DIR --batch-id monday
    python -m spark_bridge serve  --changes edge=ARRIVING --checkpoint DIR
    python -m spark_bridge result --output tri=PATH --checkpoint DIR
    python -m spark_bridge estimate | verify | compact | rescale ...

With `--processes N` a command runs in N processes of this machine, without Spark (`serve` needs it).

Files are Parquet (also folders of it), or .csv and .tsv without a header in the order of the columns; changes have a
column `_op`, the last one. stdout is one line of JSON about what was done, everything else goes to stderr. Exit codes:
0 done, 1 the program was refused, 2 usage, 3 the data or the checkpoint was, 4 `verify` found something, 130 it was
interrupted.
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
from lftj.arguments import file_name
from lftj.cli.outcome import UsageError
from lftj.cli.program_file import read_program
from lftj.cli.settings import by_name
from lftj.errors import DataError
from lftj.values.schema import Schema
from spark_bridge.bridge_errors import PlanError
from spark_bridge.preflight import missing, session, submitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_bridge.interface import PartitionedQuery
    from spark_bridge.local_query import LocalQuery
    from spark_bridge.spark_query import SparkQuery

# What to do about an option that is given twice for a relation.
_FOLDER = "put the files into one folder, as Parquet, and name that"
_ONCE = {"input": _FOLDER, "changes": _FOLDER, "delta": "leave one of them out", "output": "leave one of them out"}
PROGRAM_REFUSED, USAGE, DATA_REFUSED, FOUND, INTERRUPTED = 1, 2, 3, 4, 130


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form RELATION=PATH")
    return name, path


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="spark_bridge", description="Datalog rules over Spark, kept up to date.")
    top.add_argument("--master", help="where to run (default: what spark-submit says, else local[*,4])")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, says: str, *, checkpoint: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=says, description=says)
        made.add_argument("--checkpoint", required=checkpoint, metavar="DIR", help="folder of the query, on all nodes")
        if name == "serve":
            made.set_defaults(processes=None)
            return made
        numbers = made.add_mutually_exclusive_group(required=name == "rescale")
        numbers.add_argument("--processes", type=_count, metavar="N", help="on this machine, in N processes")
        if name in ("create", "estimate", "rescale"):
            numbers.add_argument("--partitions", type=_count, metavar="N", help="on Spark (default: its cores)")
        return made

    for name, says in (
        ("create", "evaluate a program over inputs"),
        ("estimate", "say what `create` would do and take, without running it"),
    ):
        made = command(name, says, checkpoint=name == "create")
        made.add_argument("--program", required=True, metavar="FILE", help="the rules")
        made.add_argument("--input", type=_pair, action="append", default=[], metavar="RELATION=PATH")
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
    command("rescale", "place keys anew over another number of partitions, or processes")
    command("verify", "check every file, and every output against the facts")
    command("compact", "put all changes into a new base, and remove what is older than the one before")
    return top


def read(spark: SparkSession | None, path: str, schema: Schema, *, changes: bool) -> Any:
    """The rows of a path: a data frame, or without Spark a table."""
    if spark is None:
        from spark_bridge.local_tables import arrow_of

        files = sorted(map(str, Path(path).glob("*.parquet"))) if Path(path).is_dir() else path
        return arrow_of(files, schema, changes=changes)
    from spark_bridge.spark import sql_schema

    columns = sql_schema(schema) + (", _op bigint" if changes else "")
    plain = path.removesuffix(".gz")
    if plain.endswith((".csv", ".tsv", ".txt")):
        delimiter = "," if plain.endswith(".csv") else "\t"
        return spark.read.schema(columns).option("sep", delimiter).option("mode", "FAILFAST").csv(path)
    return spark.read.parquet(path)


def _write(rows: Any, path: str) -> None:
    """Write a data frame or a table as Parquet; it is an error if something is there."""
    import pyarrow as pa

    if not isinstance(rows, pa.Table):
        rows.write.parquet(path)
        return
    from pyarrow import parquet

    try:
        with Path(file_name(path)).open("xb") as file:
            parquet.write_table(rows, file)
    except OSError as error:
        there = isinstance(error, FileExistsError)
        raise DataError(
            "the file cannot be written",
            where=path,
            why=error.strerror or str(error),
            remedy="name another: nothing is overwritten" if there else "check the folder and its permissions",
        ) from None


def _run(spark: SparkSession | None, given: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """A command, on Spark if there is a session."""
    from spark_bridge.local_query import LocalQuery
    from spark_bridge.stages import make_stages

    if given.command in ("create", "estimate"):
        text, _ = read_program(given.program)
        partitions = given.processes if spark is None else given.partitions or spark.sparkContext.defaultParallelism
        options: dict[str, Any] = {"partitions": partitions, "replicate": given.replicate}
        schemas = make_stages(text, **options).schemas
        frames = {name: read(spark, path, _of(schemas, name), changes=False) for name, path in given.input}
        options["partition_memory"] = given.partition_memory
        if given.command == "estimate":
            found = (LocalQuery if spark is None else _on_spark()).estimate_for(text, frames, **options)
            sys.stderr.write(f"{found}\n")
            return {"bytes": found.bytes, "skew": found.skew, "share": found.share, "split": found.split_keys}, 0
        query: PartitionedQuery
        if spark is None:
            query = LocalQuery.create(
                text, frames, checkpoint=given.checkpoint, processes=options.pop("partitions"), **options
            )
        else:
            query = _on_spark().create(spark, text, frames, checkpoint=given.checkpoint, **options)
        with query:
            return query.metrics(), 0
    if spark is None:
        with LocalQuery.open(given.checkpoint, processes=given.processes) as local:
            return _on(None, local, given)
    with _on_spark().open(spark, given.checkpoint) as opened:
        if given.command == "serve":
            return _serve(spark, opened, given), 0
        return _on(spark, opened, given)


def _on_spark() -> type[SparkQuery]:
    from spark_bridge.spark_query import SparkQuery

    return SparkQuery


def _of(schemas: dict[str, Schema], name: str) -> Schema:
    if name not in schemas:
        raise PlanError(
            f"there is no relation `{name}`",
            why="the program neither declares nor derives it",
            remedy=f"the program has {', '.join(sorted(schemas))}",
        )
    return schemas[name]


def _on(
    spark: SparkSession | None, query: SparkQuery | LocalQuery, given: argparse.Namespace
) -> tuple[dict[str, Any], int]:
    """A command on a query that is there."""
    schemas = query.schemas
    if given.command == "apply":
        frames = {name: read(spark, path, _of(schemas, name), changes=True) for name, path in given.changes}
        done = query.apply(frames, batch_id=given.batch_id)
        for name, path in given.delta:
            _write(query.delta(name, done.version - 1, done.version), path)
        return {"version": done.version, "changed": done.changed, "repeated": done.repeated}, 0
    if given.command == "result":
        for name, path in given.output:
            _write(query.result(name, version=given.version), path)
        return {"version": query.version if given.version is None else given.version}, 0
    if given.command == "verify":
        found = query.verify()
        return found, 0 if found["ok"] else FOUND
    if given.command == "compact":
        return {"version": query.compact()}, 0
    return {"version": query.rescale(given.partitions or given.processes)}, 0


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
    if given.processes is not None or not submitted() or missing():
        return _done(given)
    with redirect_stderr(_SparkErrors()):
        return _done(given)


def _done(given: argparse.Namespace) -> int:
    try:
        for option in ("input", "changes", "delta", "output"):
            if isinstance(pairs := getattr(given, option, None), list):
                by_name(f"--{option}", pairs, remedy=_ONCE[option])
        if given.processes is not None:
            told, code = _run(None, given)
        else:
            spark = session(given.master)
            try:
                told, code = _run(spark, given)
            finally:
                spark.stop()
    except (lftj.ProgramError, PlanError) as error:
        sys.stderr.write(f"{error}\n")
        return PROGRAM_REFUSED
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    except (lftj.Error, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return DATA_REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    sys.stdout.write(json.dumps(told, default=str) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
