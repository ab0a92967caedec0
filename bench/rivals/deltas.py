"""Triangles maintained by hand in DuckDB, one thread: delta queries and a table of the triangles there are.

A triangle goes if one of its three edges does, so those that go are three joins of the erased edges with the old
edges, one per place in the triangle; those that come are three joins of the inserted edges with the new edges. UNION
drops what two of the three find.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.graphs import Rows
from bench.rivals import MEMORY_BYTES
from bench.updates import Batch

_JOINS = " UNION ".join(
    f"SELECT a.c0 AS x, a.c1 AS y, b.c1 AS z FROM {a} a, {b} b, {c} c WHERE a.c1 = b.c0 AND a.c0 = c.c0 AND b.c1 = c.c1"
    for a, b, c in (("changed", "e", "e"), ("e", "changed", "e"), ("e", "e", "changed"))
)


class TriangleDeltas:
    """Edges `e(c0, c1)` and their triangles `tri(x, y, z)`, kept up to date."""

    package = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.execute(f"SET memory_limit = '{MEMORY_BYTES >> 20}MiB'")

    def load(self, rows: Rows) -> None:
        """Take the edges int64[n, 2] in."""
        self._take("e", rows)

    def evaluate(self) -> int:
        """Compute the triangles anew; how many there are."""
        self._connection.execute(
            "CREATE OR REPLACE TABLE tri AS SELECT a.c0 AS x, a.c1 AS y, b.c1 AS z FROM e a, e b, e c "
            "WHERE a.c1 = b.c0 AND a.c0 = c.c0 AND b.c1 = c.c1"
        )
        return int(self._connection.execute("SELECT count(*) FROM tri").fetchone()[0])

    def apply(self, batch: Batch) -> None:
        """Change the edges, and the triangles with them; both or neither."""
        run = self._connection.execute
        run("BEGIN")
        for side, rows in (("lost", batch.erase), ("gained", batch.insert)):
            self._take("changed", rows)
            if side == "gained":
                run("INSERT INTO e SELECT * FROM changed")
            run(f"CREATE OR REPLACE TEMP TABLE {side} AS {_JOINS if len(rows) else 'SELECT * FROM tri LIMIT 0'}")
            if side == "lost" and len(rows):
                run("DELETE FROM e USING changed WHERE e.c0 = changed.c0 AND e.c1 = changed.c1")
                run("DELETE FROM tri USING lost WHERE tri.x = lost.x AND tri.y = lost.y AND tri.z = lost.z")
        run("INSERT INTO tri SELECT * FROM gained")
        run("COMMIT")

    def change(self) -> tuple[Rows, Rows]:
        """The triangles int64[n, 3] that the last change took away and brought."""
        return self._rows("lost"), self._rows("gained")

    def _take(self, name: str, rows: Rows) -> None:
        import pyarrow as pa

        temp = "TEMP " if name != "e" else ""
        self._connection.register("incoming", pa.table({"c0": rows[:, 0], "c1": rows[:, 1]}))
        self._connection.execute(f"CREATE OR REPLACE {temp}TABLE {name} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def _rows(self, name: str) -> Rows:
        columns = self._connection.execute(f"SELECT x, y, z FROM {name}").fetchnumpy()
        return np.stack([columns[c] for c in ("x", "y", "z")], axis=1).astype(np.int64)
