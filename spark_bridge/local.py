"""Executors without Spark: in this process, one partition after the other, or in processes of this machine."""

from __future__ import annotations

import os
import subprocess
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lftj.values.schema import Schema
from spark_bridge.doors import address, start_nursery
from spark_bridge.holder import ask, died
from spark_bridge.ingest import stage
from spark_bridge.local_tables import arrow_of
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
        file = stage(checkpoint, version, schema, arrow_of(source, schema, changes=changes), changes=changes)
        return [file] if file is not None else []

    def close(self) -> None:
        """There is nothing but this process."""


class Processes(InProcess):
    """Processes of this machine, which keep the databases of their partitions and work side by side.

    `count`: how many; None: one per partition. They come from a nursery of this executor's, which gets ready while rows
    are staged, and end with this process, at the latest.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count
        self._path = address(os.getpid(), f"-{uuid.uuid4().hex[:8]}")
        self._nursery: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[Any, Any] | None = None

    def stage(self, checkpoint: Checkpoint, version: int, schema: Schema, source: Any, *, changes: bool) -> list[Body]:
        """One file."""
        self._get_ready()
        return super().stage(checkpoint, version, schema, source, changes=changes)

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """All requests at once. A process that ends in the middle is replaced, once."""
        found = self._asked(requests)
        lost = [request for request, done in zip(requests, found, strict=True) if done is None]
        again = iter(self._asked(lost))
        found = [next(again) if done is None else done for done in found]
        for request, done in zip(requests, found, strict=True):
            if done is None:
                raise died(request["partition"])
        return [done for done in found if done is not None]

    def close(self) -> None:
        """End the nursery. What came from it goes on until it is told to end, or this process has ended."""
        if self._end is not None:
            self._end()
        self._nursery = self._end = None

    def _get_ready(self) -> None:
        if self._nursery is None or self._nursery.poll() is not None:
            self.close()
            self._nursery = start_nursery(self._path, os.getpid())
            self._end = weakref.finalize(self, _ended, os.getpid(), self._nursery, self._path)

    def _asked(self, requests: Sequence[Body]) -> list[Body | None]:
        if any(request["work"] != "close" for request in requests):
            self._get_ready()
        return ask(requests, watch=os.getpid(), processes=self.count, path=self._path)


def _ended(owner: int, nursery: subprocess.Popen[bytes], path: Path) -> None:
    if owner != os.getpid():
        return  # the end of a process that was forked from it is not the owner's
    nursery.terminate()
    nursery.wait()
    path.unlink(missing_ok=True)
