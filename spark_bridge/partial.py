"""Partial aggregates: counts, sums, minima and maxima whose groups cross partitions.

    revenue[d] = sum p * r : { orders(k, d, r), lineitem(k, p) }.      partitioned by k: a day's orders are anywhere

A partition keeps the count, sum or extreme of every group over its own bindings, and its changes, exactly as it would
those of whole groups: no binding is derived by two partitions. What is answered is the sum of the parts, or the least
or greatest of them, which whoever reads it takes; the change of a group is that of its answer. `PartTotals` and
`PartExtremes` follow them on one machine, from the changes of the parts; those of more groups than one machine should
take are put together by Spark (`combined_frame`, `frame_change`). Arrow groups without threads of its own: these may be
the last to drop memory of numpy's, which aborts a process that ends meanwhile (lftj/io/read_ahead.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import EvaluationError
from lftj.values.schema import Schema
from spark_bridge.change_tables import ChangeTables, net_of
from spark_bridge.keys import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PartTotals:
    """The content of a head that partitions keep in parts, followed from change to change of the parts.

    `groups` holds of every group its keys (`k0`, ...), the exact sum of its parts (`sum`) and how many partitions have
    one (`parts`): a group is there while some partition has a part of it. Time of a step: linear in the groups, by one
    aggregation of Arrow's. `version`: the token of the commit it is at.
    """

    def __init__(self, schema: Schema, version: str | None = None) -> None:
        self.schema, self.version = schema, version
        self.groups = parts_of(arrow_schema(schema).empty_table(), 1)

    def step(self, change: ChangeTables) -> ChangeTables:
        """Follow a change of the parts; the exact change of the head. `EvaluationError` if its type has no room."""
        found = self.add(change)
        moves = found.filter(pc.equal(found.column("moved_max"), 1))
        erased = self._rows(moves.filter(pc.greater(moves.column("old parts_sum"), 0)), "old sum_sum")
        inserted = self._rows(moves.filter(pc.greater(moves.column("parts_sum"), 0)), "sum_sum")
        return change_between(erased, inserted)

    def add(self, change: ChangeTables) -> pa.Table:
        """Follow the change of the parts of all partitions: the groups as they were and as they are."""
        keys = self.groups.column_names[:-2]
        moved = pa.concat_tables([parts_of(change.inserted, 1), parts_of(change.erased, -1)])
        known = np.arange(len(moved) + len(self.groups)) >= len(moved)
        both = pa.concat_tables([moved, self.groups])
        for name in ("sum", "parts"):
            none = pa.scalar(0).cast(both.schema.field(name).type)
            both = both.append_column("old " + name, pc.if_else(pa.array(known), both.column(name), none))
        both = both.append_column("moved", pa.array((~known).astype(np.int8)))
        asked = [(name, "sum") for name in ("sum", "parts", "old sum", "old parts")]
        found = both.group_by(keys, use_threads=False).aggregate([*asked, ("moved", "max")])
        held = found.filter(pc.greater(found.column("parts_sum"), 0)).select([*keys, "sum_sum", "parts_sum"])
        self.groups = held.rename_columns([*keys, "sum", "parts"]).cast(moved.schema)
        return found

    def rows(self) -> pa.Table:
        """The content of the head. `EvaluationError` if its type does not hold a sum."""
        return self._rows(self.groups, "sum")

    def _rows(self, groups: pa.Table, value: str) -> pa.Table:
        """Rows of the head, with the sums of one of the columns."""
        typed = arrow_schema(self.schema)
        kind, sums = typed.types[-1], groups.column(value)
        try:
            narrow = sums.cast(kind if pa.types.is_decimal(kind) else pa.int64()).cast(kind)
        except pa.ArrowInvalid:
            raise _too_large(self.schema) from None
        return pa.Table.from_arrays([*groups.columns[: len(typed) - 1], narrow], schema=typed)


class PartExtremes:
    """The same for a minimum or maximum (`op`): `groups` holds the values of the parts, and how many have each."""

    def __init__(self, schema: Schema, op: str, version: str | None = None) -> None:
        self.schema, self.op, self.version = schema, op, version
        self.groups = _values_of(arrow_schema(schema).empty_table(), 1)

    def step(self, change: ChangeTables) -> ChangeTables:
        """Follow a change of the parts; the exact change of the head."""
        found = self.add(change)
        keys = self.groups.column_names[:-2]
        for name in ("old", "parts"):
            there = pc.if_else(pc.greater(found.column(name + "_sum"), 0), found.column("value"), None)
            found = found.append_column(name, there)
        best = found.group_by(keys, use_threads=False).aggregate(
            [("old", self.op), ("parts", self.op), ("moved_max", "max")]
        )
        moves = best.filter(pc.equal(best.column("moved_max_max"), 1))
        erased, inserted = (
            self._rows(moves.filter(pc.is_valid(moves.column(name))), name)
            for name in (f"old_{self.op}", f"parts_{self.op}")
        )
        return change_between(erased, inserted)

    def add(self, change: ChangeTables) -> pa.Table:
        """Follow the change of the parts of all partitions: their values, and how many had and have each."""
        moved = pa.concat_tables([_values_of(change.inserted, 1), _values_of(change.erased, -1)])
        none = pa.array(np.zeros(len(moved), np.int64))
        moved = moved.append_column("old", none).append_column("moved", pa.array(np.ones(len(moved), np.int8)))
        known = self.groups.append_column("old", self.groups.column("parts"))
        known = known.append_column("moved", pa.array(np.zeros(len(known), np.int8)))
        names = self.groups.column_names
        asked = [("parts", "sum"), ("old", "sum"), ("moved", "max")]
        found = pa.concat_tables([moved, known]).group_by(names[:-1], use_threads=False).aggregate(asked)
        held = found.filter(pc.greater(found.column("parts_sum"), 0)).select([*names[:-1], "parts_sum"])
        self.groups = held.rename_columns(names)
        return found

    def rows(self) -> pa.Table:
        """The content of the head."""
        best = self.groups.group_by(self.groups.column_names[:-2], use_threads=False).aggregate([("value", self.op)])
        return self._rows(best, f"value_{self.op}")

    def _rows(self, groups: pa.Table, value: str) -> pa.Table:
        typed = arrow_schema(self.schema)
        return pa.Table.from_arrays([*groups.columns[: len(typed) - 1], groups.column(value)], schema=typed)


def _values_of(rows: pa.Table, sign: int) -> pa.Table:
    *keys, value = rows.columns
    keys = keys or [pa.chunked_array([pa.array(np.zeros(len(rows), np.int8))])]
    columns = [*keys, value, pa.array(np.full(len(rows), sign, np.int64))]
    return pa.Table.from_arrays(columns, names=[*(f"k{i}" for i in range(len(keys))), "value", "parts"])


def parts_of(rows: pa.Table, sign: int) -> pa.Table:
    """Rows of parts as groups, to be added (`sign` 1) or taken back (-1). Without keys all are of one group."""
    *keys, value = rows.columns
    wide = pa.decimal128(38, value.type.scale if pa.types.is_decimal(value.type) else 0)
    if not pa.types.is_decimal(value.type):
        value = value.cast(pa.int64()).cast(pa.decimal128(19, 0))
    value = value.cast(wide)
    keys = keys or [pa.chunked_array([pa.array(np.zeros(len(rows), np.int8))])]
    columns = [*keys, value if sign > 0 else pc.negate(value), pa.array(np.full(len(rows), sign, np.int64))]
    return pa.Table.from_arrays(columns, names=[*(f"k{i}" for i in range(len(keys))), "sum", "parts"])


def _too_large(schema: Schema) -> EvaluationError:
    return EvaluationError(
        f"the sum of a group of `{schema.name}` is out of the range of {schema.types[-1]}",
        why="those of the partitions are in it, and what they add up to is not; nothing was changed",
        remedy="sum smaller numbers",
    )


def change_between(before: pa.Table, after: pa.Table) -> ChangeTables:
    """What is to be erased from a head, and inserted, to lead from one content to another."""
    return net_of(before, after)


def combined_frame(frame: DataFrame, op: str) -> DataFrame:
    """The rows of a head from those of its parts, by Spark; a sum that its type does not hold is an error."""
    from pyspark.sql import functions as f

    # By names of its own: those of columns may differ in case alone, which Spark takes for the same.
    names, kind = frame.columns, frame.schema.fields[-1].dataType
    frame = frame.toDF(*(f"c{i}" for i in range(len(names))))
    *keys, value = frame.columns
    exact = f.sum(f.col(value).cast("decimal(38, 0)")) if kind.typeName() == "long" else f.sum(f.col(value))
    if op != "sum":
        exact = getattr(f, op)(f.col(value))
    added = frame.groupBy(*keys).agg(exact.alias(value), f.count(f.lit(1)).alias("_rows"))
    return added.where(f.col("_rows") > 0).select(*keys, f.col(value).cast(kind)).toDF(*names)


def frame_change(before: DataFrame, after: DataFrame) -> DataFrame:
    """The change from one content of a head to another: its columns, and `_op` 1 or -1."""
    from pyspark.sql.functions import lit

    gone, come = before.exceptAll(after), after.exceptAll(before)
    op = lit(1).cast("long")
    return gone.withColumn("_op", -op).unionAll(come.withColumn("_op", op))
