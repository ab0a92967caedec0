"""DuckDB and a view: tables that take batches in, and the query computed anew. One thread.

Tables have no primary keys here: they would make DuckDB slower at taking rows in, and its queries no faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Columns by which a row is erased.
KEYS = {
    "region": "r_regionkey", "nation": "n_nationkey", "supplier": "s_suppkey", "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey", "customer": "c_custkey", "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}  # fmt: skip


class Views:
    """One connection with a table each."""

    def __init__(self, tables: dict[str, Any]) -> None:
        import duckdb

        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")
        for name, table in tables.items():
            self._with(table, f"CREATE TABLE {name} AS SELECT * FROM given")

    def apply(self, blocks: Iterable[tuple[str, int, Any]]) -> None:
        """Take a batch in, in one transaction."""
        self._connection.execute("BEGIN")
        for name, sign, rows in blocks:
            if sign > 0:
                self._with(rows, f"INSERT INTO {name} SELECT * FROM given")
            else:
                self._with(rows, f"DELETE FROM {name} WHERE ({KEYS[name]}) IN (SELECT ({KEYS[name]}) FROM given)")
        self._connection.execute("COMMIT")

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        return rows

    def recompute(self, sql: str) -> None:
        """Compute a query and keep its answer, as a view does."""
        self._connection.execute(f"CREATE OR REPLACE TABLE answer AS SELECT * FROM ({sql}) AS answer")

    def _with(self, rows: Any, sql: str) -> None:
        self._connection.register("given", rows)
        self._connection.execute(sql)
        self._connection.unregister("given")
