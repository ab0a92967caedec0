"""Executors without Spark: in this process, one partition after the other, or in processes of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lftj.values.codes import Schema
from spark_bridge.ingest import stage
from spark_bridge.partition import Worker
from spark_bridge.store import Body, Checkpoint


class InProcess:
    """Everything in this process. Deterministic, and what the tests of the protocol use."""

    def __init__(self) -> None:
        self.worker = Worker()

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """One request after the other."""
        return [self.worker.run(request) for request in requests]

    def stage(self, checkpoint: Checkpoint, version: int, schema: Schema, source: Any, *, changes: bool) -> list[Body]:
        """One file."""
        file = stage(checkpoint, version, schema, source, changes=changes)
        return [file] if file is not None else []
