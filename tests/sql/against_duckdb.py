"""The same tables in a database and in DuckDB, views over them, and whether both say the same of these."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import lftj
from tests.conftest import IN_CI
from tests.duckdb_databases import duckdb_database

sqlglot = pytest.importorskip("sqlglot")

from lftj.sql.catalogue import catalogue_of  # noqa: E402 - needs the parser
from lftj.sql.dialect import LftjSql  # noqa: E402
from lftj.sql.places import SqlText  # noqa: E402
from lftj.sql.queries import translated  # noqa: E402
from lftj.sql.view import View  # noqa: E402

# t has a primary key; u and w are bags
DECLARATIONS = """
    .decl t(id:number, a:number?, b:symbol?, c:decimal(10,2)?, d:date?) primary-key (id)
    .decl u(a:number?, b:symbol?, n:number?) -> copies:number bag
    .decl w(k:number, x:float?) -> copies:number bag
"""
TABLES = (
    "create table t (id bigint primary key, a bigint, b varchar, c decimal(10, 2), d date)",
    "create table u (a bigint, b varchar, n bigint)",
    "create table w (k bigint not null, x double)",
)
# What DuckDB has instead of its bags: rows with a number each, by which one of several alike is erased.
NUMBERED = (
    TABLES[0],
    *(table.replace(" (", "_rows (number bigint, ", 1) for table in TABLES[1:]),
    "create view u as select a, b, n from u_rows",
    "create view w as select k, x from w_rows",
)
Row = tuple[Any, ...]


class Pair:
    """A database and DuckDB with the same tables and rows."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        # Large tables are read by their columns.
        self.db = lftj.Database._sized(DECLARATIONS, columns_from=self.random.choice([0, 1 << 13]))
        self.duck = duckdb_database()
        self.duck.execute(";".join(NUMBERED))
        # The rows of tables, each with a number of its own; of t that is its key.
        self.rows: dict[str, dict[int, Row]] = {"t": {}, "u": {}, "w": {}}
        self.made = 0
        self.views: dict[str, tuple[View, str]] = {}
        self.asked = set[str]()

    def view(self, sql: str, name: str = "") -> View:
        """Add a view of a query."""
        name = name or f"v{len(self.views)}"
        query = sqlglot.parse_one(sql, dialect=LftjSql)
        view = translated(query, catalogue_of(self.db._state), name, SqlText(sql))
        self.db.rules(view.program)
        self.views[name] = (view, sql)
        return view

    def follow(self, sql: str, rounds: int = 3, come: int = 4, go: int = 2) -> None:
        """A view of a query has DuckDB's rows while it is empty, after many rows came, and after some changes.

        In CI it is followed through one change, elsewhere through as many as `rounds`.
        """
        self.view(sql)
        self.check()
        self.change(come=12, go=0)
        self.check()
        for _ in range(min(rounds, 1) if IN_CI else rounds):
            self.change(come=come, go=go)
            self.check()

    def change(self, come: int = 4, go: int = 2) -> None:
        """Insert and erase some random rows, in one transaction, whose deltas are what it changes of the views."""
        before = {name: set(map(tuple, self.db[name])) for name in self.views}
        with self.db.transaction() as tx:
            for name, held in self.rows.items():
                gone = self.random.sample(list(held), min(go, len(held)))
                for number in gone:
                    tx.erase(name, [held.pop(number)])
                made = [self._row(name) for _ in range(come)]
                rows = {self._number(name, row): row for row in made}
                rows = {number: row for number, row in rows.items() if number not in held}
                for number, row in rows.items():
                    tx.insert(name, [row])
                    held[number] = row
                self._tell(name, gone, rows)

        for name, rows in before.items():
            after, delta = set(map(tuple, self.db[name])), tx.delta[name]
            assert set(map(tuple, delta.erased)) == rows - after, name
            assert set(map(tuple, delta.inserted)) == after - rows, name

    def _number(self, name: str, row: Row) -> int:
        self.made += 1
        return int(row[0]) if name == "t" else self.made

    def _tell(self, name: str, gone: list[int], come: dict[int, Row]) -> None:
        """Change the table in DuckDB."""
        table, column = ("t", "id") if name == "t" else (f"{name}_rows", "number")
        if gone:
            self.duck.execute(f"delete from {table} where {column} in ({', '.join('?' * len(gone))})", gone)
        rows = [row if name == "t" else (number, *row) for number, row in come.items()]
        if rows:
            places = f"({', '.join('?' * len(rows[0]))})"
            values = [value for row in rows for value in row]
            self.duck.execute(f"insert into {table} values {', '.join([places] * len(rows))}", values)

    def _row(self, name: str) -> Row:
        pick = self.random.choice
        if name == "t":
            amount = pick((None, Decimal("1.50"), Decimal("2.25"), Decimal("-3.00")))
            return (pick(range(12)), pick((None, 1, 2, 3)), pick((None, "x", "y")), amount, pick(_DATES))
        if name == "u":
            return (pick((None, 1, 2, 3)), pick((None, "x", "y", "z")), pick((None, 0, 1, 5)))
        return (pick((1, 2, 3, 4)), pick((None, 0.5, 1.5, -2.0)))

    def check(self) -> None:
        """Every view has the rows that DuckDB gives for its query; once there are rows, so has the query when asked."""
        for name, (view, sql) in self.views.items():
            theirs = counted(self.duck.execute(sql).fetchall(), 0)
            found = [counted(self.answer(name), view.hidden)]
            if name not in self.asked and any(self.rows.values()):
                self.asked.add(name)
                found.append(counted(list(self.db.sql(sql)), 0))
            for ours in found:
                assert ours == theirs, f"{sql}\nlftj and not DuckDB: {ours - theirs}\nthe other way: {theirs - ours}"

    def answer(self, name: str) -> list[Row]:
        """The rows of a view, each as often as it is there."""
        view, _ = self.views[name]
        rows = [tuple(row) for row in self.db[name]]
        return [row[:-1] for row in rows for _ in range(row[-1])] if view.bag else rows


_DATES = (None, dt.date(2024, 1, 31), dt.date(2024, 2, 29), dt.date(2025, 1, 1))


def counted(rows: list[Row], hidden: int) -> Counter[Row]:
    """Rows by how often they are there, numbers as floats of a few digits."""
    return Counter(tuple(map(plain, row[: len(row) - hidden])) for row in rows)


def plain(value: Any) -> Any:
    """A value for a comparison: decimals, whole numbers and floats that are almost alike are equal."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    number = float(value)
    return float(f"{number:.9g}") + 0.0 if math.isfinite(number) else number
