"""Ingestion: rows from anywhere become files of the journal.

The rows of a source are brought into their one form (`keys.canonical`) and written, inserts and erases apart. What a
batch says is its *digest*: of every relation, how many rows it inserts and erases and the sum of their hashes, which no
order of rows and no division into files changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from lftj.values.schema import Schema
from spark_bridge.change_tables import ChangeTables, tables_of
from spark_bridge.keys import Keyed, canonical
from spark_bridge.store import JOURNAL, Body, Checkpoint


def stage(checkpoint: Checkpoint, version: int, schema: Schema, table: pa.Table, *, changes: bool) -> Body | None:
    """Write the rows of a table to the journal; what a commit says of the file, and its digest. None for no rows."""
    rows, ops = canonical(table, schema, changes=changes)
    if not rows.num_rows:
        return None
    change = ChangeTables(rows.filter(pa.array(ops < 0)), rows.filter(pa.array(ops > 0)))
    file = checkpoint.write(JOURNAL, version, "j", tables_of({schema.name: change}))
    return {**file, "digest": {schema.name: [_summed(change.erased, schema), _summed(change.inserted, schema)]}}


def _summed(table: pa.Table, schema: Schema) -> list[int]:
    with np.errstate(over="ignore"):
        total = int(np.add.reduce(Keyed(table, schema).rows, dtype=np.uint64))
    return [table.num_rows, total]


def digest(segments: Iterable[Body]) -> str:
    """The digest of a batch from those of its files."""
    sums: dict[str, list[list[int]]] = {}
    for segment in segments:
        for name, parts in segment["digest"].items():
            known = sums.setdefault(name, [[0, 0], [0, 0]])
            for total, (rows, hashes) in zip(known, parts, strict=True):
                total[0] += rows
                total[1] = (total[1] + hashes) % (1 << 64)
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()
