"""DuckDB, one thread: tables that change, and queries over them that are evaluated anew after every change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.graphs import Rows
from bench.rivals import MEMORY_BYTES
from bench.updates import Batch


class Recomputed:
    """Tables of columns c0, c1, ... int64, and one table per query of `sql` (name -> SELECT), in their order."""

    package = "duckdb"

    def __init__(self, sql: Mapping[str, str]) -> None:
        import duckdb

        self._sql = dict(sql)
        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.execute(f"SET memory_limit = '{MEMORY_BYTES >> 20}MiB'")

    def load(self, name: str, rows: Rows) -> None:
        """Make table `name` of the rows int64[n, arity]."""
        self._register(rows)
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def evaluate(self) -> None:
        """Evaluate the queries anew."""
        for name, query in self._sql.items():
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")

    def apply(self, name: str, batch: Batch) -> None:
        """Change table `name` and evaluate the queries; both or neither."""
        run = self._connection.execute
        run("BEGIN")
        if len(batch.erase):
            self._register(batch.erase)
            same = " AND ".join(f"{name}.c{i} = incoming.c{i}" for i in range(batch.erase.shape[1]))
            run(f"DELETE FROM {name} USING incoming WHERE {same}")
            self._connection.unregister("incoming")
        if len(batch.insert):
            self._register(batch.insert)
            run(f"INSERT INTO {name} SELECT * FROM incoming")
            self._connection.unregister("incoming")
        self.evaluate()
        run("COMMIT")

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table, in order."""
        found: list[tuple[Any, ...]] = self._connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
        return found

    def _register(self, rows: Rows) -> None:
        import pyarrow as pa

        self._connection.register("incoming", pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])}))
