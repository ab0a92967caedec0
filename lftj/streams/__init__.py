"""Streams: circuits over Z-sets, incremental by algorithm (DBSP).

    from lftj import streams
    c = streams.Circuit()                      streams, operators, a clock (circuit.py, stream.py)
    c.incremental().step({"bid": rows})        algorithm 4.8 (incremental.py)
    streams.zset(rows, weights)                rows with weights (weighted.py)

Files in the order a reader meets them:

    zsets, integral                         the data
    operators, join, distinct, constant     what nodes do, tick by tick
    by_key, ranking, totals, wide_sums      the same for functions that act on the rows of each key
    timed                                   operators over several clocks, in nested circuits
    graph, nested                           how nodes run; circuits within a circuit
    incremental, fewer_distincts, narrow    the rewriting
    expressions, functions,                 maps, filters and aggregates,
    group_aggregates, group_by              and how users write them
    stream, circuit                         circuits, as users write them
    weighted, given                         what goes in and comes out
    batches, text_rows, whole_rows          the files, frames and iterators that it comes from
    drawing, circuit_memory                 what a circuit is, and what it holds
    clocks, windows, sessions,              operators over the time that rows carry,
    interval_join, timewise                 and how users write them
    bounds, bounded, forget                 what is dropped because nobody can ask again
    rules, rule_body                        circuits of rules
    refused, never, no_cycle                what they refuse
    attached, idle                          circuits in a database, and those that a tick leaves as they are
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lftj.streams.circuit import Circuit
    from lftj.streams.given import zset
    from lftj.streams.group_aggregates import (
        count,
        count_distinct,
        max,
        mean,
        min,
        quantile_cont,
        quantile_disc,
        stddev_pop,
        stddev_samp,
        sum,
        var_pop,
        var_samp,
    )
    from lftj.streams.rules import circuit_of, from_rules
    from lftj.streams.stream import Stream
    from lftj.streams.weighted import WeightedRows

_HOMES = {
    "Circuit": "lftj.streams.circuit",
    "circuit_of": "lftj.streams.rules",
    "count": "lftj.streams.group_aggregates",
    "count_distinct": "lftj.streams.group_aggregates",
    "from_rules": "lftj.streams.rules",
    "max": "lftj.streams.group_aggregates",
    "mean": "lftj.streams.group_aggregates",
    "min": "lftj.streams.group_aggregates",
    "quantile_cont": "lftj.streams.group_aggregates",
    "quantile_disc": "lftj.streams.group_aggregates",
    "stddev_pop": "lftj.streams.group_aggregates",
    "stddev_samp": "lftj.streams.group_aggregates",
    "sum": "lftj.streams.group_aggregates",
    "var_pop": "lftj.streams.group_aggregates",
    "var_samp": "lftj.streams.group_aggregates",
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
    "quantile_cont",
    "quantile_disc",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "zset",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lftj.streams' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
