"""Streams: circuits over Z-sets, incremental by algorithm (DBSP).

    from lftj import streams
    c = streams.Circuit()                      streams, operators, a clock (circuit.py, stream.py)
    c.incremental().step({"bid": rows})        algorithm 4.8 (incremental.py)
    streams.zset(rows, weights)                rows with weights (weighted.py)

Files in the order a reader meets them: `zsets` and `integral` (the data), `operators`, `join`, `distinct`, `timed`
(what nodes do), `graph` (how they run), `nested` (circuits within), `consolidate` and `incremental` (the rewriting),
`expressions`, `stream` and `circuit` (how users write them down), `weighted` (what goes in and comes out), `rules` and
`never` (programs as circuits, and what they refuse).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lftj.streams.aggregates import count, count_distinct, max, mean, min, sum
    from lftj.streams.circuit import Circuit
    from lftj.streams.given import zset
    from lftj.streams.rules import circuit_of, from_rules
    from lftj.streams.stream import Stream
    from lftj.streams.weighted import WeightedRows

_HOMES = {
    "Circuit": "lftj.streams.circuit",
    "circuit_of": "lftj.streams.rules",
    "count": "lftj.streams.aggregates",
    "count_distinct": "lftj.streams.aggregates",
    "from_rules": "lftj.streams.rules",
    "max": "lftj.streams.aggregates",
    "mean": "lftj.streams.aggregates",
    "min": "lftj.streams.aggregates",
    "sum": "lftj.streams.aggregates",
    "Stream": "lftj.streams.stream",
    "WeightedRows": "lftj.streams.weighted",
    "zset": "lftj.streams.given",
}

__all__ = [
    "Circuit",
    "Stream",
    "WeightedRows",
    "circuit_of",
    "count",
    "count_distinct",
    "from_rules",
    "max",
    "mean",
    "min",
    "sum",
    "zset",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lftj.streams' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
