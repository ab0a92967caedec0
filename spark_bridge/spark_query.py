"""`SparkQuery`: a program over data frames, kept up to date batch by batch.

    query = SparkQuery.create(spark, program, {"edge": df}, checkpoint=DIR, partitions=8)
    query.apply({"edge": changes}, batch_id="b1")          # changes: the columns of edge, and _op 1 or -1; rows that
                                                           # are at the driver as an Arrow table may stay that
    query.result("tri");  query.delta("tri", since=0)      # data frames

A batch erases first, then inserts, so a row in both is there afterwards; a row that comes twice is one. It took effect
if its commit is there, wholly or not at all, whatever died: send it again under its id to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.values.schema import Schema
from spark_bridge.driver import Partitioned
from spark_bridge.interface import PartitionedQuery
from spark_bridge.partial import combined_frame, frame_change
from spark_bridge.preflight import check
from spark_bridge.spark import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkQuery(PartitionedQuery):
    """A program, its inputs and its answers, partitioned over a Spark cluster. See the module's text."""

    def __init__(self, executor: SparkExecutor, query: Partitioned) -> None:
        super().__init__(query)
        self._executor = executor

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        program: str,
        inputs: Mapping[str, DataFrame],
        *,
        checkpoint: str | Path,
        partitions: int | None = None,
        outputs: Sequence[str] | None = None,
        replicate: Sequence[str] = (),
        partition_memory: int | str | None = None,
        maintain: Mapping[str, str] | None = None,
        holders: bool = True,
    ) -> SparkQuery:
        """Evaluate a program over data frames, as version 0 of a checkpoint in a folder that all nodes see.

        `partitions` (default: as many as there are cores). `outputs`: the relations to be asked for (default: those of
        `.output`, else all that rules derive). `replicate`: derived relations that every partition may derive in full.
        `partition_memory`: bytes that a partition may take, a number or a text such as "2GiB"; what would be replicated
        is shared, if it has to be.
        `maintain`: how partitions keep a head up to date, as `lftj.Database.rules` takes it.
        `holders=False` keeps no database between batches.

        `PlanError` names what cannot be partitioned, or does not fit, before anything runs.
        """
        check(spark)
        executor = SparkExecutor(spark, holders=holders)
        made = Partitioned.create(
            executor,
            program,
            inputs,
            checkpoint=checkpoint,
            partitions=spark.sparkContext.defaultParallelism if partitions is None else partitions,
            outputs=outputs,
            replicate=replicate,
            partition_memory=partition_memory,
            maintain=maintain,
        )
        return cls(executor, made)

    @classmethod
    def open(cls, spark: SparkSession, checkpoint: str | Path, *, holders: bool = True) -> SparkQuery:
        """The query of a checkpoint, at its last commit."""
        check(spark)
        executor = SparkExecutor(spark, holders=holders)
        return cls(executor, Partitioned.open(executor, checkpoint))

    @staticmethod
    def _arrow(source: Any, schema: Schema) -> pa.Table:
        return source if isinstance(source, pa.Table) else source.toArrow()

    def result(self, name: str, *, version: int | None = None) -> DataFrame:
        """The content of a relation at a version (default: the last), read when somebody looks."""
        version, schema = self._query.answered(name, version)
        if not self._query.in_parts(name, version):
            return self._executor.read(self._query.state, name, schema, version)
        if self._executor.small(self._query.state, name, version, version):
            return self._executor.frame(self._query.table(name, version), schema)
        parts = self._executor.read(self._query.state, name, schema, version)
        return combined_frame(parts, self._query.part_op(name, version))

    def delta(self, name: str, since: int, until: int | None = None) -> DataFrame:
        """The exact change of a relation from version `since` to `until`: its columns, and `_op` 1 or -1."""
        since, last, schema = self._query.span(name, since, until)
        if self._query.in_parts(name, last):
            if self._executor.small(self._query.state, name, since, last):
                return self._executor.frame(self._query.delta(name, since, last).signed(), schema)
            return frame_change(self.result(name, version=since), self.result(name, version=last))
        return self._executor.read(self._query.state, name, schema, last, since)

    def delta_table(self, name: str, since: int, until: int | None = None) -> pa.Table:
        """The same as an Arrow table, read by the driver without a job, in milliseconds. It has to fit there."""
        return self._query.delta(name, since, until).signed()

    def foreach_batch(self, relation: str, *, prefix: str = "stream") -> Callable[[DataFrame, int], None]:
        """What `writeStream.foreachBatch` takes: every micro-batch of changes of `relation` is a batch.

        Its id is `prefix` and the stream's number of it, so one that is replayed after a failure does nothing twice.
        Rows without `_op` (or null) are inserts.
        """

        def each(frame: DataFrame, number: int) -> None:
            from pyspark.sql.functions import coalesce, col, lit

            op = coalesce(col("_op"), lit(1)) if "_op" in frame.columns else lit(1)
            frame = frame.withColumn("_op", op)
            self.apply({relation: frame}, batch_id=f"{prefix}-{relation}-{number}")

        return each
