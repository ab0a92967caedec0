"""lftj over the partitions of a Spark cluster.

The first variable of a rule's key order is partitioned over executors: atoms that hold it are partitioned by it, the
others are replicated. Every partition runs the engine of `lftj` on its share, keeps its own state, and turns a batch
of changes into an exact output delta. Where one variable does not do there are several such stages, and what one
derives is sent to the next. What lives here is partitioning, partition state and the Spark job; no join code.

`SparkQuery` does so on Spark (`pip install 'lftj[spark]'`), `LocalQuery` in processes of one machine, without it.

Imports point one way: this package uses `lftj` and the packages below it, and nothing uses this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_bridge.bridge_errors import BatchError, PlanError, RaceError, SetupError, StateError, WorkError
    from spark_bridge.driver import Applied, Partitioned
    from spark_bridge.estimates import Estimate
    from spark_bridge.local_query import LocalQuery
    from spark_bridge.preflight import session
    from spark_bridge.spark_query import SparkQuery

_HOMES = {
    "Applied": "spark_bridge.driver",
    "BatchError": "spark_bridge.bridge_errors",
    "Estimate": "spark_bridge.estimates",
    "LocalQuery": "spark_bridge.local_query",
    "Partitioned": "spark_bridge.driver",
    "PlanError": "spark_bridge.bridge_errors",
    "RaceError": "spark_bridge.bridge_errors",
    "SetupError": "spark_bridge.bridge_errors",
    "SparkQuery": "spark_bridge.spark_query",
    "StateError": "spark_bridge.bridge_errors",
    "WorkError": "spark_bridge.bridge_errors",
    "session": "spark_bridge.preflight",
}

__all__ = [
    "Applied",
    "BatchError",
    "Estimate",
    "LocalQuery",
    "Partitioned",
    "PlanError",
    "RaceError",
    "SetupError",
    "SparkQuery",
    "StateError",
    "WorkError",
    "session",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'spark_bridge' has no attribute {name!r}")
