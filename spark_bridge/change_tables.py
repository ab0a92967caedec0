"""Changes of relations: a pair of tables for each, rows erased, then rows inserted (a row in both is there afterwards).

What a part file says is a change, and the content of a base is the change from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import lftj
from lftj.values.schema import Schema
from spark_bridge.keys import KEPT_SCHEMAS, OP, UNIT, arrow_schema, as_table


class ChangeTables(NamedTuple):
    """Rows erased, then rows inserted."""

    erased: pa.Table
    inserted: pa.Table

    @staticmethod
    def of(table: pa.Table) -> ChangeTables:
        """The change from nothing to these rows."""
        return ChangeTables(table.slice(0, 0), table)

    @property
    def rows(self) -> int:
        """How many rows it speaks of."""
        return int(self.erased.num_rows + self.inserted.num_rows)

    def signed(self) -> pa.Table:
        """All rows, with a column `_op` that says whether they are erased (-1) or inserted (1)."""
        parts = ((-1, self.erased), (1, self.inserted))
        return pa.concat_tables(t.append_column(OP, pa.array(np.full(t.num_rows, op, np.int32))) for op, t in parts)


Changes = dict[str, ChangeTables]


def rows_for(table: pa.Table, schema: Schema) -> Any:
    """A table in the form that lftj reads quickest."""
    if not schema.arity:
        return [()] * table.num_rows
    if set(schema.types) == {"number"}:
        return np.stack([column.to_numpy() for column in table.columns], axis=1)
    return table


def table_of(relation: lftj.Relation, schema: Schema) -> pa.Table:
    """The rows of a relation as a table of `schema`."""
    if not schema.arity:
        return pa.table({UNIT: [True] * len(relation)}, arrow_schema(schema))
    return as_table(relation.arrow(), schema)


@lru_cache(KEPT_SCHEMAS)
def empty(schema: Schema) -> pa.Table:
    """No rows."""
    return arrow_schema(schema).empty_table()


def declaration(schema: Schema, name: str) -> str:
    """A relation with the columns of `schema`, as text."""
    return f".decl {name}({', '.join(f'c{i}:{type}' for i, type in enumerate(schema.types))})"


def merged(schema: Schema, changes: Sequence[ChangeTables]) -> pa.Table:
    """What is left of changes, the first from nothing, one after the other: rows that were last inserted."""
    first, *later = changes
    later = [change for change in later if change.rows]
    if not later:
        return first.inserted
    steps = [first.inserted, *(table for change in later for table in change)]  # even ones are of insertions
    keys = [f"c{i}" for i in range(first.inserted.num_columns)]  # whatever the columns are called
    numbered = pa.concat_tables(
        pa.Table.from_arrays([*table.columns, pa.array(np.full(table.num_rows, step, np.int64))], [*keys, OP])
        for step, table in enumerate(steps)
    )
    # By one thread: the order of rows in a file is the same every time.
    last = numbered.group_by(keys, use_threads=False).aggregate([(OP, "max")])
    rows = pa.Table.from_arrays(last.select(keys).columns, schema=arrow_schema(schema))
    return rows.filter(pa.array(last.column(f"{OP}_max").to_numpy() % 2 == 0))


def net(schema: Schema, changes: Sequence[ChangeTables]) -> ChangeTables:
    """One change for exact ones in a row: a row that came and went again is in neither table."""
    if len(changes) == 1:
        return changes[0]
    return net_of(pa.concat_tables([c.erased for c in changes]), pa.concat_tables([c.inserted for c in changes]))


def net_of(erased: pa.Table, inserted: pa.Table) -> ChangeTables:
    """The exact change of rows that went and rows that came: those that did both as often are in neither table."""
    keys = [f"c{i}" for i in range(erased.num_columns)]  # whatever the columns are called
    both = pa.concat_tables(
        pa.Table.from_arrays([*table.columns, pa.array(np.full(table.num_rows, op, np.int64))], [*keys, OP])
        for op, table in ((-1, erased), (1, inserted))
    )
    summed = both.group_by(keys, use_threads=False).aggregate([(OP, "sum")])
    weights = summed.column(f"{OP}_sum").to_numpy()
    rows = pa.Table.from_arrays(summed.select(keys).columns, schema=erased.schema)
    return ChangeTables(rows.filter(pa.array(weights < 0)), rows.filter(pa.array(weights > 0)))


def tables_of(changes: Mapping[str, ChangeTables]) -> dict[str, pa.Table]:
    """Changes as the tables of a part file."""
    found = {}
    for name, change in changes.items():
        for sign, table in (("-", change.erased), ("+", change.inserted)):
            if table.num_rows:
                found[name + sign] = table
    return found


def changes_in(tables: Mapping[str, pa.Table], schemas: Mapping[str, Schema]) -> Changes:
    """The changes that `tables_of` wrote."""
    found: Changes = {}
    for key in tables:
        name = key[:-1]
        none = empty(schemas[name])
        found[name] = ChangeTables(tables.get(name + "-", none), tables.get(name + "+", none))
    return found


def together(parts: Iterable[Changes], schemas: Mapping[str, Schema]) -> Changes:
    """Changes of several parts as one."""
    found: dict[str, list[ChangeTables]] = {}
    for part in parts:
        for name, change in part.items():
            found.setdefault(name, []).append(change)
    return {
        name: ChangeTables(
            pa.concat_tables([c.erased for c in changes]), pa.concat_tables([c.inserted for c in changes])
        )
        for name, changes in found.items()
    }
