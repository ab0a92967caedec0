"""Requests: what the driver asks of partitions, stage by stage, and what it commits of their answers.

All stages of a batch are one attempt. A stage is told the output files that the partitions of those before it have just
written, so nothing has to be committed for it to begin, and whoever dies in between leaves nothing but files that
nobody names.

An `Executor` runs the partition function somewhere and brings sources into the journal: `local.py` in this process or
in processes of this machine, `spark.py` on a Spark cluster.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from lftj.values.schema import Schema
from spark_bridge.error_bodies import raised
from spark_bridge.partition import stop_at
from spark_bridge.plan import StagedPlan
from spark_bridge.store import Body, Checkpoint


class Executor(Protocol):
    """Runs requests, and brings sources into the journal."""

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """What came of each request. A partition that is lost is run again, wherever."""

    def stage(self, checkpoint: Checkpoint, version: int, schema: Schema, source: Any, *, changes: bool) -> list[Body]:
        """Bring the rows of one relation into the journal: its files. Raises `BatchError` for rows that do not fit."""

    def close(self) -> None:
        """End what it keeps beside the holders."""


class Requests:
    """The way to the partitions of a checkpoint. `last`: what came of the last work."""

    def __init__(self, executor: Executor, checkpoint: Checkpoint) -> None:
        self.executor, self.checkpoint = executor, checkpoint
        self.last: list[Body] = []

    def staged(self, work: str, version: int | None, plan: StagedPlan, partitions: int, **more: Any) -> list[Body]:
        """What came of a work that makes the next version, in all stages: by stage, then by partition."""
        results: list[Body] = []
        for number in range(len(plan.stages)):
            if number:
                stop_at("stage", number)
            sent = [_file(result["output"]) for result in results]
            target = 0 if version is None else version + 1
            results += self.run(work, version, target, partitions, stage=number, sent=sent, **more)
        self.last = results
        return results

    def run(
        self, work: str, version: int | None, target: int, partitions: int, *, stage: int = 0, **more: Any
    ) -> list[Body]:
        """What came of a work in one stage, by partition. Raises what a partition raised."""
        token = None if version is None else self.checkpoint.commit(version)["token"]
        requests = [
            {
                "work": work,
                "folder": str(self.checkpoint.folder),
                "query": self.checkpoint.query["identity"],
                "partition": partition,
                "stage": stage,
                "version": version,
                "token": token,
                "target": target,
                **more,
            }
            for partition in range(partitions)
        ]
        results = sorted(self.executor.run(requests), key=lambda result: int(result["partition"]))
        self.last = results
        for result in results:
            if "error" in result:
                raise raised(result["error"], result["partition"])
        return results

    def body(self, kind: str, version: int, base: int, results: list[Body], **more: Any) -> Body:
        """What is to be committed as a version. A base holds the query as well."""
        previous = self.checkpoint.commit(version - 1)["token"] if version else ""
        parts = [
            {
                k: result[k]
                for k in ("partition", "stage", "attempt", "state", "facts", "replica", "output", "largest", "stats")
            }
            for result in results
        ]
        if base == version:
            more["query"] = self.checkpoint.query
        body = {"version": version, "token": uuid.uuid4().hex, "previous": previous, "kind": kind, "base": base}
        return {"journal": [], "batch": None, **body, "parts": parts, **more}


def _file(output: Body | None) -> Body | None:
    """What a stage has to know of a file to read it."""
    return output and {key: output[key] for key in ("folder", "name", "hash")}
