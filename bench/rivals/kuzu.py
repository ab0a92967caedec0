"""Kuzu, one thread, in memory: vertices and arcs loaded with COPY, patterns counted with Cypher.

Kuzu matches patterns with its own worst-case optimal join where it sees fit. It stores no query result as a table in
one statement, so it takes part in counting only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.measure import Engine, Mode, Relations
from bench.pattern import Pattern
from bench.rivals import MEMORY_BYTES


class Kuzu(Engine):
    """One in-memory database with a vertex table V(id) and a relationship table per relation."""

    name = "kuzu"
    package = "kuzu"

    def __init__(self) -> None:
        import kuzu

        self._database: Any = kuzu.Database(":memory:", buffer_pool_size=MEMORY_BYTES)
        self._connection: Any = kuzu.Connection(self._database, num_threads=1)

    @classmethod
    def refuses(cls, pattern: Pattern, mode: Mode) -> str | None:
        if mode == "materialise":
            return "no statement that stores a query's rows as a table"
        return pattern.cypher_gap()

    def load(self, pattern: Pattern, relations: Relations) -> None:
        import pyarrow as pa

        ends = [np.unique(rows[:, (0, -1)]) for rows in relations.values()]
        vertices = pa.table({"id": np.unique(np.concatenate(ends))})
        self._connection.execute("CREATE NODE TABLE V(id INT64 PRIMARY KEY)")
        self._connection.execute("COPY V FROM $vertices", {"vertices": vertices})
        for name, rows in relations.items():
            label = ", label INT64" if rows.shape[1] == 3 else ""
            self._connection.execute(f"CREATE REL TABLE {name}(FROM V TO V{label})")
            columns = {"from": rows[:, 0], "to": rows[:, -1]}
            if label:
                columns["label"] = rows[:, 1]
            self._connection.execute(f"COPY {name} FROM $arcs", {"arcs": pa.table(columns)})

    def run(self, pattern: Pattern, mode: Mode) -> int:
        return int(self._connection.execute(pattern.cypher_count()).get_next()[0])
