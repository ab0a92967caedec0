"""`LocalQuery`: the same on one machine, without Spark and Java. Each partition is a process's, which works for itself.

    with LocalQuery.create(program, {"edge": "edges.csv"}, processes=4) as query:
        query.apply({"edge": changes}, batch_id="b1")      # changes: the columns of edge, and _op 1 or -1
        query.result("tri");  query.delta("tri", since=0)  # Arrow tables

Batches, versions and checkpoints are those of `SparkQuery`, so one may open what the other made. Sources are whatever
`lftj.Database.load` takes. The processes end with `close`, with this process whatever it dies of, or when a call is
interrupted; a checkpoint that nobody asked to keep goes with them, unless this process is killed (then it stays in the
system's folder for temporary files).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lftj import arguments
from lftj.values.schema import Schema
from spark_bridge.bridge_errors import StateError
from spark_bridge.driver import Partitioned
from spark_bridge.interface import PartitionedQuery
from spark_bridge.local import Processes
from spark_bridge.local_tables import arrow_of
from spark_bridge.query_arguments import how_many


class LocalQuery(PartitionedQuery):
    """A program, its inputs and its answers, in processes of this machine. See the module's text."""

    def __init__(self, executor: Processes, query: Partitioned, temporary: Path | None = None) -> None:
        super().__init__(query)
        self._executor = executor
        self._end = weakref.finalize(self, _ended, os.getpid(), query, temporary)

    @classmethod
    def create(
        cls,
        program: str,
        inputs: Mapping[str, Any],
        *,
        checkpoint: str | Path | None = None,
        processes: int | None = None,
        outputs: Sequence[str] | None = None,
        replicate: Sequence[str] = (),
        partition_memory: int | str | None = None,
        maintain: Mapping[str, str] | None = None,
    ) -> LocalQuery:
        """Evaluate a program over sources, as version 0 of a checkpoint in a folder (None: one that goes with it).

        `processes` (default: as many as there are cores). The other options are those of `SparkQuery.create`.
        `PlanError` names what cannot be partitioned, or does not fit, before anything runs.
        """
        count = _checked(arguments.cores() if processes is None else processes)
        executor = Processes(count)
        place = Path(tempfile.mkdtemp(prefix="lftj-query-")) if checkpoint is None else checkpoint
        temporary = Path(place) if checkpoint is None else None
        try:
            made = Partitioned.create(
                executor,
                program,
                inputs,
                checkpoint=place,
                partitions=count,
                outputs=outputs,
                replicate=replicate,
                partition_memory=partition_memory,
                maintain=maintain,
            )
        except BaseException:
            executor.close()
            _removed(temporary)
            raise
        return cls(executor, made, temporary)

    @classmethod
    def open(cls, checkpoint: str | Path, *, processes: int | None = None) -> LocalQuery:
        """The query of a checkpoint, at its last commit.

        `processes`: so many at most (default: as many as there are cores); each takes several partitions if it must.
        """
        executor = Processes(_checked(arguments.cores() if processes is None else processes))
        return cls(executor, Partitioned.open(executor, checkpoint))

    @property
    def _query(self) -> Partitioned:
        if not self._end.alive:
            raise StateError(
                "this query was closed",
                why="its processes have ended",
                remedy="open its checkpoint with `LocalQuery.open`; one that is to be kept is named by `checkpoint=`",
            )
        return self._partitioned

    @staticmethod
    def _arrow(source: Any, schema: Schema) -> pa.Table:
        return arrow_of(source, schema)

    def result(self, name: str, *, version: int | None = None) -> pa.Table:
        """The content of a relation at a version (default: the last)."""
        return self._query.table(name, version)

    def delta(self, name: str, since: int, until: int | None = None) -> pa.Table:
        """The exact change of a relation from version `since` to `until`: its columns, and `_op` 1 or -1."""
        return self._query.delta(name, since, until).signed()

    def rescale(self, processes: int) -> int:
        """Place the keys anew over another number of processes."""
        query = self._query
        query.release()  # which partition is whose changes
        self._executor.count = _checked(processes)
        return query.rescale(processes)

    def close(self) -> None:
        """End the processes. A checkpoint that was named stays."""
        self._end()


def _checked(processes: int) -> int:
    return how_many("processes", processes, "it is how many processes may work at a time")


def _ended(owner: int, query: Partitioned, temporary: Path | None) -> None:
    if owner != os.getpid():
        return  # the end of a process that was forked from it is not the owner's
    try:
        query.close()
    finally:
        _removed(temporary)


def _removed(folder: Path | None) -> None:
    if folder is not None:
        with suppress(OSError):
            shutil.rmtree(folder)
