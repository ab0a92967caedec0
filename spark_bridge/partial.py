"""Partial aggregates: counts and sums whose groups cross partitions.

    revenue[d] = sum p * r : { orders(k, d, r), lineitem(k, p) }.      partitioned by k: a day's orders are anywhere

A partition keeps the count or the sum of every group over its own bindings, and its changes, exactly as it would those
of whole groups: no binding is derived by two partitions. What is answered is the sum over the partitions, which whoever
reads it takes; the change of a group is that of its sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import EvaluationError
from lftj.values.codes import Schema
from spark_bridge.partition_state import ChangeTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def combined(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a head from those of all partitions. `EvaluationError` if its type does not hold a sum."""
    *keys, value = table.schema.names
    kind = table.schema.field(value).type
    wide = pa.decimal128(38, kind.scale if pa.types.is_decimal(kind) else 0)
    plain = table.column(value)
    if pa.types.is_duration(kind):
        plain = plain.cast(pa.int64())
    plain = plain.cast(wide) if pa.types.is_decimal(kind) else plain.cast(pa.decimal128(19, 0)).cast(wide)
    widened = table.select(keys).append_column(value, plain)
    if keys:
        added = widened.group_by(keys).aggregate([(value, "sum")])
        names = [name.removesuffix("_sum") if name == f"{value}_sum" else name for name in added.schema.names]
        added = added.rename_columns(names).select([*keys, value])
    else:
        total = pc.sum(widened.column(value))
        added = widened.slice(0, 0) if total.as_py() is None else pa.table({value: pa.array([total.as_py()], wide)})
    try:
        narrow = added.column(value).cast(kind if pa.types.is_decimal(kind) else pa.int64())
    except pa.ArrowInvalid:
        raise _too_large(schema) from None
    if pa.types.is_duration(kind):
        narrow = narrow.cast(kind)
    return added.set_column(len(keys), table.schema.field(value), narrow).cast(table.schema)


def _too_large(schema: Schema) -> EvaluationError:
    return EvaluationError(
        f"the sum of a group of `{schema.name}` is out of the range of {schema.types[-1]}",
        why="the sums of the partitions are, but not what they add up to",
        remedy="sum smaller numbers",
    )


def change_between(before: pa.Table, after: pa.Table) -> ChangeTables:
    """What is to be erased from a head, and inserted, to lead from one content to another."""
    names = before.schema.names
    marked = [
        table.append_column("_op", pa.array(np.full(len(table), op, np.int64)))
        for op, table in ((-1, before), (1, after))
    ]
    added = pa.concat_tables(marked).group_by(names).aggregate([("_op", "sum")])
    weights = added.column("_op_sum").to_numpy()
    rows = added.select(names).cast(before.schema)
    return ChangeTables(rows.filter(pa.array(weights < 0)), rows.filter(pa.array(weights > 0)))


def combined_frame(frame: DataFrame) -> DataFrame:
    """`combined` of a data frame, added up by Spark; a sum that its type does not hold is an error there (ANSI)."""
    from pyspark.sql import functions as f

    *keys, value = frame.columns
    kind = frame.schema[value].dataType
    exact = f.sum(f.col(value).cast("decimal(38, 0)")) if kind.typeName() == "long" else f.sum(f.col(value))
    added = frame.groupBy(*keys).agg(exact.alias(value), f.count(f.lit(1)).alias("_rows"))
    return added.where(f.col("_rows") > 0).select(*keys, f.col(value).cast(kind).alias(value))


def frame_change(before: DataFrame, after: DataFrame) -> DataFrame:
    """The change from one content of a head to another: its columns, and `_op` 1 or -1."""
    from pyspark.sql.functions import lit

    gone, come = before.exceptAll(after), after.exceptAll(before)
    op = lit(1).cast("long")
    return gone.withColumn("_op", -op).unionAll(come.withColumn("_op", op))
