"""The executor that runs on Spark: every request is a task, every task returns one line about what it wrote.

A job of `run` is `range(N)` in N tasks, each through `mapInArrow`: it has the holder of its partition on that node do
the work, and returns the metadata as JSON. A job of `stage` is the source itself through `mapInArrow`: each task writes
the rows it gets to the journal. The driver gets metadata; to place keys it reads the journal's files (`driver.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.values.codes import Schema
from spark_bridge.errors import BatchError
from spark_bridge.store import Body, Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED_ROWS = 2_000_000  # of one file of the journal
SQL = {"number": "bigint", "unsigned": "decimal(20,0)", "float": "double", "symbol": "string"}
_META = pa.schema([("meta", pa.string())])
Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]


def _line(body: Body) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(body)], pa.string())], schema=_META)


def partition_task(requests: Sequence[Body], holders: bool) -> Task:
    """What a task of a job over partitions does."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        from spark_bridge.holder import ask
        from spark_bridge.partition import Worker, stop_at

        for batch in batches:
            for partition in batch.column(0).to_pylist():
                stop_at("task", partition)
                request = requests[partition]
                # The parent of a worker of Spark is the daemon that forked it.
                done = ask(request, watch=os.getppid()) if holders else Worker().run(request)
                stop_at("return", partition)
                yield _line(done)
                stop_at("returned", partition)

    return task


def staging_task(folder: str, version: int, schema: Schema, changes: bool) -> Task:
    """What a task of a job over a source does."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        from spark_bridge.ingest import stage

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


def for_spark(table: pa.Table, schema: Schema) -> Iterator[pa.RecordBatch]:
    """A table in the types that Spark has."""
    if schema.arity:
        for i, type in enumerate(schema.types):
            if type == "unsigned":
                column = table.column(i).cast(pa.decimal128(20, 0))
                table = table.set_column(i, table.column_names[i], column)
    yield from table.to_batches(max_chunksize=1 << 16)


def sql_schema(schema: Schema) -> str:
    """The columns of a relation as Spark names them."""
    if not schema.arity:
        return "_unit boolean"
    return ", ".join(f"`{column.name}` {SQL[column.type]}" for column in schema.columns)


def reading_task(folder: str, name: str, until: int, since: int | None) -> Task:
    """What a task that reads a relation does: its content, or with `since` its change."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        import numpy as np

        from spark_bridge.keys import OP
        from spark_bridge.state import State

        state = State(Checkpoint(folder))
        schema = state.layout(until).schemas[name]
        for batch in batches:
            for partition in batch.column(0).to_pylist():
                if since is None:
                    yield from for_spark(state.output(partition, until, name), schema)
                    continue
                change = state.output_delta(partition, since, until, name)
                for op, table in ((-1, change.erased), (1, change.inserted)):
                    ops = pa.array(np.full(table.num_rows, op, np.int32))
                    yield from for_spark(table.append_column(OP, ops), schema)

    return task


class SparkExecutor:
    """Runs on a session. `holders`: databases are kept between batches; without, every task builds its own."""

    def __init__(self, spark: SparkSession, *, holders: bool = True) -> None:
        self.spark, self.holders = spark, holders

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """A job over partitions."""
        rows = self._over(len(requests)).mapInArrow(partition_task(list(requests), self.holders), "meta string")
        return [json.loads(row.meta) for row in rows.collect()]

    def stage(self, checkpoint: Checkpoint, version: int, schema: Schema, source: Any, *, changes: bool) -> list[Body]:
        """A job over the source."""
        task = staging_task(str(checkpoint.folder), version, schema, changes)
        found = [json.loads(row.meta) for row in source.mapInArrow(task, "meta string").collect()]
        for told in found:
            if "error" in told:
                what, why, remedy = told["error"]
                raise BatchError(what, why=why, remedy=remedy)
        return found

    def read(
        self, checkpoint: Checkpoint, name: str, schema: Schema, until: int, since: int | None = None
    ) -> DataFrame:
        """The content, or change, of a relation, read by a task per partition when somebody looks."""
        partitions = len(checkpoint.commit(until)["parts"])
        columns = sql_schema(schema) + ("" if since is None else ", _op int")
        return self._over(partitions).mapInArrow(reading_task(str(checkpoint.folder), name, until, since), columns)

    def _over(self, partitions: int) -> DataFrame:
        return self.spark.range(0, partitions, 1, partitions)
