"""What a query offers wherever its partitions run.

Making one, and how rows go in and come out, is up to the query on Spark (`spark_query.py`) and that of one machine
(`local_query.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from lftj.values.schema import Schema
from spark_bridge.answering import known_relation
from spark_bridge.driver import Applied, Partitioned
from spark_bridge.estimates import Estimate, estimate_of
from spark_bridge.keys import Keyed, canonical
from spark_bridge.query_arguments import memory_of, planning, sources
from spark_bridge.stages import make_stages


class PartitionedQuery:
    """A program, its inputs and its answers, in partitions."""

    def __init__(self, query: Partitioned) -> None:
        self._partitioned = query

    @property
    def _query(self) -> Partitioned:
        return self._partitioned

    @classmethod
    def estimate_for(
        cls,
        program: str,
        inputs: Mapping[str, Any],
        *,
        partitions: int,
        outputs: Sequence[str] | None = None,
        replicate: Sequence[str] = (),
        partition_memory: int | str | None = None,
    ) -> Estimate:
        """What `create` would do, and take: which atoms are partitioned and which replicated, bytes, expected skew.

        The rows are brought to this process; give it samples of what is large.
        """
        options, memory = planning(program, partitions, outputs, replicate), memory_of(partition_memory)
        plan = make_stages(program, **options)
        for name in sources(inputs):
            known_relation(plan, name)
        schemas = plan.schemas
        tables = {
            name: Keyed(canonical(cls._arrow(source, schemas[name]), schemas[name], changes=False)[0], schemas[name])
            for name, source in sources(inputs).items()
        }
        return estimate_of(program, tables, **options, partition_memory=memory)

    @staticmethod
    def _arrow(source: Any, schema: Schema) -> pa.Table:
        raise NotImplementedError

    def apply(self, changes: Mapping[str, Any], *, batch_id: str) -> Applied:
        """Make the changes the next version; nothing happens if a batch of this id and content was committed.

        `BatchError` if the id was committed with other content or rows do not fit, `EvaluationError` if a rule cannot
        be computed: nothing was changed then.
        """
        return self._query.apply(changes, batch_id=batch_id)

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
