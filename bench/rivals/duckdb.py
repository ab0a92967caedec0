"""DuckDB, one thread, in memory: `SELECT count(*)` for counting, `CREATE TABLE AS` for materialising."""

from __future__ import annotations

from typing import Any

from bench.measure import Engine, Mode, Relations
from bench.pattern import Pattern
from bench.rivals import MEMORY_BYTES


class DuckDB(Engine):
    """One connection; relations are tables with columns c0, c1, ... taken over from Arrow."""

    name = "duckdb"
    package = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.execute(f"SET memory_limit = '{MEMORY_BYTES >> 20}MiB'")

    def load(self, pattern: Pattern, relations: Relations) -> None:
        import pyarrow as pa

        for name, rows in relations.items():
            table = pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])})
            self._connection.register("incoming", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
            self._connection.unregister("incoming")

    def run(self, pattern: Pattern, mode: Mode) -> int:
        if mode == "count":
            return int(self._connection.execute(pattern.sql_count()).fetchone()[0])
        # The answer of CREATE TABLE AS is its row count; replacing frees the table of the run before.
        return int(self._connection.execute(f"CREATE OR REPLACE TABLE out AS {pattern.sql()}").fetchone()[0])
