"""The database of a partition: what rows go into it, under the names of their copies, and which it answers for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

import lftj
from lftj.values.schema import Column, Schema
from spark_bridge.change_tables import rows_for, table_of
from spark_bridge.emit import place_names
from spark_bridge.keys import Keyed, table_from_values
from spark_bridge.plan import ALL, ONE, Pattern, Place
from spark_bridge.state_layout import StageLayout


def database(layout: StageLayout, partition: int, facts: Mapping[str, pa.Table]) -> lftj.Database:
    """The database of a partition with the given facts, nothing evaluated yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the program was checked, and its warnings told, when the query was made
        db = lftj.Database()
        db.rules(layout.text, maintain=layout.maintain)
    for name, table in facts.items():
        schema = layout.schemas[name]
        rows = Keyed(table, schema)
        for copy in layout.copies[name]:
            mine = hit_rows(layout, partition, copy[1], rows)
            if mine.num_rows:
                db.load(layout.names[copy], rows_for(mine, schema))
    for place, name in place_names(layout.plan).items():
        if _is_here(layout, partition, place):
            db.load(name, [()])
    return db


def _is_here(layout: StageLayout, partition: int, place: Place) -> bool:
    """Whether a place is in this partition."""
    head, keys = place
    schema = Schema("here", tuple(Column(f"c{i}", key.type) for i, key in enumerate(keys)))
    row = Keyed(table_from_values(schema, [tuple(key.value for key in keys)]), schema)
    pattern = Pattern(head.kind, tuple(range(len(keys))))
    return bool(layout.placement.hits(partition, pattern, row).any())


def hit_rows(layout: StageLayout, partition: int, pattern: Any, rows: Keyed) -> pa.Table:
    """The rows that a pattern places in this partition."""
    if pattern == ALL:
        return rows.table
    mask = layout.placement.hits(partition, pattern, rows)
    return rows.table if mask.all() else rows.table.filter(pa.array(mask))


def own_rows(layout: StageLayout, partition: int, name: str, table: pa.Table) -> pa.Table:
    """The rows that this partition, of those that hold them, answers for."""
    pattern = layout.plan.outputs[name]
    derived = name in layout.plan.derived
    if not table.num_rows or (derived and pattern not in (ALL, ONE)) or pattern.kind == "xy":
        return table
    rows = Keyed(table, layout.schemas[name])
    return table.filter(pa.array(layout.placement.owners(pattern, rows) == partition))


def answers(
    db: lftj.Database, layout: StageLayout, partition: int, names: Iterable[str] | None = None
) -> dict[str, pa.Table]:
    """What a partition answers for relations (default: all that can be asked for)."""
    return {
        name: own_rows(layout, partition, name, table_of(db[layout.names[name, pattern]], layout.schemas[name]))
        for name, pattern in layout.plan.outputs.items()
        if names is None or name in names
    }
