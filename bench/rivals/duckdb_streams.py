"""DuckDB on streams: tables of all rows so far, and every query computed anew at each batch. One thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Recompute:
    """One connection with a table per stream."""

    def __init__(self) -> None:
        import duckdb

        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def add(self, batches: Mapping[str, Any]) -> None:
        """Append record batches to the tables of their names."""
        for name, batch in batches.items():
            self._connection.register("incoming", batch)
            there = self._connection.execute(
                "SELECT count(*) FROM duckdb_tables() WHERE table_name = ?", [name]
            ).fetchone()[0]
            into = f"INSERT INTO {name}" if there else f"CREATE TABLE {name} AS"
            self._connection.execute(f"{into} SELECT * FROM incoming")
            self._connection.unregister("incoming")

    def run(self, sql: str) -> int:
        """Compute a query and keep its answer, as a circuit does; the number of its rows."""
        return int(self._connection.execute(f"CREATE OR REPLACE TABLE answer AS SELECT * FROM ({sql})").fetchone()[0])

    def disagreement(self, sql: str, deltas: Iterable[Any]) -> list[tuple[Any, ...]]:
        """Rows of which the answer of `sql` and the sum of `deltas` hold different numbers, each with both; 10 at most.

        `deltas`: tables with `_weight` last. Floats count as equal up to 10 digits: DuckDB's means are not exact.
        """
        import pyarrow as pa

        added = pa.concat_tables(deltas)
        names = [f"c{i}" for i in range(added.num_columns - 1)]
        rounded = ", ".join(
            f"({name}::decimal(30, 4))::varchar AS {name}" if pa.types.is_floating(field.type) else f"{name}"
            for name, field in zip(names, added.schema, strict=False)
        )
        self._connection.register("deltas", added.rename_columns([*names, "_weight"]))
        query = f"""
            WITH expected AS (SELECT {rounded}, count(*) n FROM ({sql}) q({", ".join(names)}) GROUP BY ALL),
            found AS (SELECT {rounded}, sum(_weight) n FROM deltas GROUP BY ALL HAVING sum(_weight) <> 0)
            SELECT {", ".join(names)}, sum(e)::bigint, sum(f)::bigint
            FROM (SELECT * EXCLUDE n, n e, 0 f FROM expected UNION ALL SELECT * EXCLUDE n, 0 e, n f FROM found)
            GROUP BY ALL HAVING sum(e) <> sum(f) LIMIT 10"""
        rows: list[tuple[Any, ...]] = self._connection.execute(query).fetchall()
        self._connection.unregister("deltas")
        return rows
