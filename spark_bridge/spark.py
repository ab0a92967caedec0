"""The executor that runs on Spark: every request is a task, every task returns one line about what it wrote.

A job of `run` is the numbers of N partitions in N tasks: each has the holder of its partition on that node do the work,
and returns the metadata as JSON. A job of `stage` is the source itself through `mapInArrow`: each task writes the rows
it gets to the journal. The driver gets metadata; to place keys it reads the journal's files (`driver.py`).

A job takes Spark some hundredths of a second, whatever it does, so a batch takes one per stage. What is small
(`SMALL_BYTES`) goes through the driver: rows of a source are brought to it and written there, and the files of a delta,
or of a result with nothing to merge, are read there. The job over partitions is one of Spark's core, which starts in
two thirds of the time of the same as a data frame. It is made once and run batch after batch: its tasks find the
request in a property.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.values.schema import Schema
from lftj.values.type_table import family_of
from spark_bridge.bridge_errors import BatchError
from spark_bridge.ingest import stage
from spark_bridge.keys import OP
from spark_bridge.partition_state import PartitionState
from spark_bridge.store import Body, Checkpoint

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

STAGED_ROWS = 2_000_000  # of one file of the journal
SMALL_BYTES = 16 << 20  # of a source as Spark estimates it, of files as they are: more takes a job
SMALL_ROWS = 1_000_000  # of a source: what Spark estimates may be wrong, of rows that a function makes above all
REQUEST = "lftj.request"  # the property of a job that its tasks find the request in
REQUEST_BYTES = 1 << 16  # of a request: Spark keeps the properties of its jobs, so larger ones travel with the function
SQL = {
    "number": "bigint",
    "unsigned": "decimal(20,0)",
    "float": "double",
    "symbol": "string",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "duration": "interval day to second",
    "uuid": "string",
    "bytes": "binary",
}
_META = pa.schema([("meta", pa.string())])
Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
PartitionTask = Callable[[Iterable[int]], Iterator[str]]


def _line(body: Body) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(body)], pa.string())], schema=_META)


def partition_task(holders: bool, given: Body | None = None) -> PartitionTask:
    """What a task of a job over partitions does. `given`: the request, but for the partition; None: see `REQUEST`."""

    def task(partitions: Iterable[int]) -> Iterator[str]:
        from pyspark import TaskContext

        from spark_bridge.holder import ask, died
        from spark_bridge.partition import Worker, stop_at

        context: Any = TaskContext.get()
        request = json.loads(context.getLocalProperty(REQUEST)) if given is None else given
        for partition in partitions:
            stop_at("task", partition)
            mine = {**request, "partition": partition}
            # The parent of a worker of Spark is the daemon that forked it.
            done = ask([mine], watch=os.getppid())[0] if holders else Worker().run(mine)
            if done is None:
                raise died(partition)
            if done.get("again") and not context.attemptNumber():
                raise RuntimeError(done["error"]["what"])  # Spark runs it again, maybe on another node
            stop_at("return", partition)
            yield json.dumps(done)
            stop_at("returned", partition)

    return task


def staging_task(folder: str, version: int, schema: Schema, changes: bool) -> Task:
    """What a task of a job over a source does."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        checkpoint = Checkpoint(folder)

        def written(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            try:
                file = stage(checkpoint, version, schema, pa.Table.from_batches(held), changes=changes)
            except BatchError as error:
                yield _line({"error": [error.what, error.why, error.remedy]})
            else:
                if file is not None:
                    yield _line(file)

        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(b.num_rows for b in held) >= STAGED_ROWS:
                yield from written(held)
                held = []
        if held:
            yield from written(held)

    return task


def for_spark(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table in the types that Spark has."""
    for batch in table.cast(spark_types(table.schema)).to_batches(max_chunksize=1 << 16):
        if batch.num_rows:  # Spark reads no further than a batch without rows
            yield batch


def spark_types(schema: pa.Schema) -> pa.Schema:
    """The Arrow types of columns that Spark has types for."""
    fields = [field.with_type(pa.decimal128(20, 0)) if field.type == pa.uint64() else field for field in schema]
    return pa.schema(fields)


def sql_schema(schema: Schema) -> str:
    """The columns of a relation as Spark names them."""
    if not schema.arity:
        return "_unit boolean"
    return ", ".join(f"`{column.name}` {sql_type(column.type)}" for column in schema.columns)


def sql_type(type: str) -> str:
    """The type of a column as Spark names it. Of instants with a zone Spark keeps the instant."""
    plain = type.removesuffix("?")
    if family_of(plain) == "decimal":
        return plain
    return SQL.get(plain, "timestamp")


def tables_of(
    state: PartitionState, name: str, until: int, since: int | None, partitions: Iterable[int]
) -> Iterator[pa.Table]:
    """The content of a relation in partitions, or with `since` its change."""
    for partition in partitions:
        if since is None:
            yield state.output(partition, until, name)
        else:
            yield state.output_delta(partition, since, until, name).signed()


def reading_task(folder: str, name: str, until: int, since: int | None) -> Task:
    """What a task that reads a relation does."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        state = PartitionState(Checkpoint(folder))
        for batch in batches:
            for table in tables_of(state, name, until, since, batch.column(0).to_pylist()):
                yield from for_spark(table)

    return task


class SparkExecutor:
    """Runs on a session. `holders`: databases are kept between batches; without, every task builds its own."""

    def __init__(self, spark: SparkSession, *, holders: bool = True) -> None:
        self.spark, self.holders = spark, holders
        self._jobs: dict[int, RDD[str]] = {}

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """A job over partitions; requests differ in the partition and nothing else."""
        request = {key: value for key, value in requests[0].items() if key != "partition"}
        text = json.dumps(request)
        if len(text) > REQUEST_BYTES:
            return _bodies(self._job(len(requests), request).collect())
        if len(requests) not in self._jobs:
            self._jobs[len(requests)] = self._job(len(requests), None)
        context = self.spark.sparkContext
        context.setLocalProperty(REQUEST, text)
        try:
            return _bodies(self._jobs[len(requests)].collect())
        finally:
            context.setLocalProperty(REQUEST, None)  # type: ignore[arg-type]

    def _job(self, partitions: int, request: Body | None) -> RDD[str]:
        numbers = self.spark.sparkContext.parallelize(range(partitions), partitions)
        return numbers.mapPartitions(partition_task(self.holders, request))

    def stage(self, checkpoint: Checkpoint, version: int, schema: Schema, source: Any, *, changes: bool) -> list[Body]:
        """A job over the source, or nothing but its rows if they are few. An Arrow table is here already."""
        if isinstance(source, pa.Table):
            file = stage(checkpoint, version, schema, source, changes=changes)
            return [file] if file is not None else []
        size, known = _estimated_bytes(source)
        if size <= SMALL_BYTES:
            # A limit costs a shuffle, a third of what a small batch takes here.
            rows = (source if known else source.limit(SMALL_ROWS + 1)).toArrow()
            if rows.num_rows <= SMALL_ROWS:
                file = stage(checkpoint, version, schema, rows, changes=changes)
                return [file] if file is not None else []
        task = staging_task(str(checkpoint.folder), version, schema, changes)
        found = _bodies(row.meta for row in source.mapInArrow(task, "meta string").collect())
        for told in found:
            if "error" in told:
                what, why, remedy = told["error"]
                raise BatchError(what, why=why, remedy=remedy)
        return found

    def close(self) -> None:
        """The session is not this executor's."""

    def read(self, state: PartitionState, name: str, schema: Schema, until: int, since: int | None = None) -> DataFrame:
        """The content, or change, of a relation: read here if it is small, else by tasks when somebody looks."""
        partitions = state.partitions(until)
        versions = range(state.checkpoint.base(until) if since is None else since + 1, until + 1)
        files = _output_files(state, name, until, versions)
        # Merging takes kernels, which the driver's machine may not have compiled.
        merging = since is None and len(files) > partitions
        if not merging and sum(file["bytes"] for file in files) <= SMALL_BYTES:
            tables = list(tables_of(state, name, until, since, range(partitions)))
            return self.frame(pa.concat_tables(tables), schema)
        columns = sql_schema(schema) + ("" if since is None else f", {OP} int")
        task = reading_task(str(state.checkpoint.folder), name, until, since)
        return self._over(partitions).mapInArrow(task, columns)

    def small(self, state: PartitionState, name: str, since: int, until: int) -> bool:
        """Whether the outputs of versions, with all that led to the first since its base, may be read here."""
        files = _output_files(state, name, until, range(state.checkpoint.base(since), until + 1))
        return sum(int(file["bytes"]) for file in files) <= SMALL_BYTES

    def frame(self, table: pa.Table, schema: Schema) -> DataFrame:
        """Rows of a relation that are here, or a change of it, as a data frame."""
        columns = sql_schema(schema) + (f", {OP} int" if OP in table.column_names else "")
        typed = table.combine_chunks().cast(spark_types(table.schema))
        # One partition, so that counting or grouping so few rows takes no shuffle.
        return self.spark.createDataFrame(typed, columns).coalesce(1)

    def _over(self, partitions: int) -> DataFrame:
        return self.spark.range(0, partitions, 1, partitions)


def _output_files(state: PartitionState, name: str, until: int, versions: Iterable[int]) -> list[Body]:
    """The files of outputs of the stage that answers for a relation, which are placed as at `until`."""
    stage = state.layout(until).plan.stage_of(name)
    parts = [state.part(v, stage, p) for v in versions for p in range(state.partitions(v))]
    return [part["output"] for part in parts if part.get("output")]


def _bodies(lines: Iterable[str]) -> list[Body]:
    return [json.loads(line) for line in lines]


def _estimated_bytes(source: DataFrame) -> tuple[int, bool]:
    """(what Spark's optimizer takes a frame's size for, whether it knows: the rows are in the plan).

    Else it is that of its files; of what it knows nothing of, the largest.
    """
    plan = source._jdf.queryExecution().optimizedPlan()
    return int(plan.stats().sizeInBytes()), plan.getClass().getSimpleName() == "LocalRelation"
