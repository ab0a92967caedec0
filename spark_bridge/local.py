"""Executors without Spark: in this process, one partition after the other, or in processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lftj.values.codes import Schema
from spark_bridge.holder import HolderDiedError, ask
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


class Processes(InProcess):
    """A process per partition on this machine, which keeps its database; they work side by side."""

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """All requests at once. A process that ends in the middle is replaced, once."""
        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(self._one, requests))

    @staticmethod
    def _one(request: Body) -> Body:
        try:
            return ask(request, watch=os.getpid())
        except HolderDiedError:
            return ask(request, watch=os.getpid())
