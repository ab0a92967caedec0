"""`SparkQuery`: a program over data frames, kept up to date batch by batch.

    query = SparkQuery.create(spark, program, {"edge": df}, checkpoint=DIR, partitions=8)
    query.apply({"edge": changes}, batch_id="b1")          # changes: the columns of edge, and _op 1 or -1
    query.result("tri");  query.delta("tri", since=0)      # data frames

A batch erases first, then inserts, so a row in both is there afterwards; a row that comes twice is one. It took effect
if its commit is there, wholly or not at all, whatever died: send it again under its id to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.values.codes import Schema
from spark_bridge.driver import Applied, Estimate, Partitioned, estimate_of
from spark_bridge.keys import Keyed, canonical
from spark_bridge.plan import make_plan
from spark_bridge.preflight import check
from spark_bridge.spark import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkQuery:
    """A program, its inputs and its answers, partitioned over a Spark cluster. See the module's text."""

    def __init__(self, executor: SparkExecutor, query: Partitioned) -> None:
        self._executor, self._query = executor, query

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
        partition_memory: int | None = None,
        maintain: Mapping[str, str] | None = None,
        holders: bool = True,
    ) -> SparkQuery:
        """Evaluate a program over data frames, as version 0 of a checkpoint in a folder that all nodes see.

        `partitions` (default: as many as there are cores). `outputs`: the relations to be asked for (default: those of
        `.output`, else all that rules derive). `replicate`: derived relations that every partition may derive in full.
        `partition_memory`: bytes that a partition may take; what would be replicated is shared, if it has to be.
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
    def estimate_for(
        program: str,
        inputs: Mapping[str, DataFrame],
        *,
        partitions: int,
        outputs: Sequence[str] | None = None,
        replicate: Sequence[str] = (),
        partition_memory: int | None = None,
    ) -> Estimate:
        """What `create` would do, and take: which atoms are partitioned and which replicated, bytes, expected skew.

        The rows are brought to the driver; give it samples of what is large.
        """
        schemas = make_plan(program, outputs=outputs, replicate=replicate, partitions=partitions).schemas
        tables = {
            name: Keyed(canonical(_arrow(frame), schemas[name], changes=False)[0], schemas[name])
            for name, frame in inputs.items()
        }
        return estimate_of(
            program,
            tables,
            partitions=partitions,
            outputs=outputs,
            replicate=replicate,
            partition_memory=partition_memory,
        )

    def apply(self, changes: Mapping[str, DataFrame], *, batch_id: str) -> Applied:
        """Make the changes the next version; nothing happens if a batch of this id and content was committed.

        `BatchError` if the id was committed with other content or rows do not fit, `EvaluationError` if a rule cannot
        be computed: nothing was changed then.
        """
        return self._query.apply(changes, batch_id=batch_id)

    def result(self, name: str, *, version: int | None = None) -> DataFrame:
        """The content of a relation at a version (default: the last), read when somebody looks."""
        version, schema = self._query.answered(name, version)
        return self._executor.read(self._query.checkpoint, name, schema, version)

    def delta(self, name: str, since: int, until: int | None = None) -> DataFrame:
        """The exact change of a relation from version `since` to `until`: its columns, and `_op` 1 or -1."""
        since, last, schema = self._query.span(name, since, until)
        return self._executor.read(self._query.checkpoint, name, schema, last, since)

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

    @property
    def schemas(self) -> dict[str, Schema]:
        """The relations of the program and their columns."""
        return self._query.state.layout(self.version).schemas

    @property
    def version(self) -> int:
        """The last version."""
        return self._query.version

    def estimate(self) -> Estimate:
        """Which atoms are partitioned and which replicated, bytes and expected skew, of what is there now."""
        return self._query.estimate()

    def metrics(self) -> dict[str, Any]:
        """Versions, files and bytes, and what each partition took in the last call, in seconds."""
        return self._query.metrics()

    def verify(self) -> dict[str, Any]:
        """Check every file, and every partition's outputs against its facts; see `Partitioned.verify`."""
        return self._query.verify()

    def compact(self) -> int:
        """Put the changes since the last base into a new base, and remove what is older than the one before."""
        return self._query.compact()

    def rescale(self, partitions: int) -> int:
        """Place the keys anew over another number of partitions."""
        return self._query.rescale(partitions)

    def close(self) -> None:
        """End the processes that hold the partitions. The checkpoint stays."""
        self._query.close()

    def __enter__(self) -> SparkQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _arrow(frame: Any) -> pa.Table:
    return frame if isinstance(frame, pa.Table) else frame.toArrow()
