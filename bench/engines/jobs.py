"""lftj at the jobs of `bench.jobs`: the functions of the programs in `examples/jobs/`, as a user calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lftj
from bench.job_changes import Change, Job, Tables

#: How a change is made, by job: the function of the example, called with the database and what the change holds.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fraud_rings": lambda job, db, batch: job["arrive"](db, "payment", batch),
    "bill_of_materials": lambda job, db, price: job["reprice"](db, *price),
    "access_rights": lambda job, db, rows: job["change"](db, **rows),
    "change_feed": lambda job, db, batch: job["follow"](db, batch, batch_rows=batch.num_rows),
    "time_buckets": lambda job, db, batch: job["arrive"](db, batch),
}


class LftjJob:
    """A database that follows changes."""

    def __init__(self, job: Job) -> None:
        self._job, self._call = job, CALLS[job.name]
        self._db: Any = lftj.Database()

    def load(self, tables: Tables) -> None:
        """As the example loads."""
        only = tables["request"] if self._job.name == "time_buckets" else tables
        self._db = self._job.example["load"](only)

    def answer(self) -> None:
        """Look at every answer."""
        for name in self._job.answers:
            len(self._db[name])

    def apply(self, change: Change) -> None:
        """As the example changes."""
        self._call(self._job.example, self._db, change.call)

    def answers(self) -> dict[str, Any]:
        """The answers."""
        return {name: self._db[name].to_arrow() for name in self._job.answers}
