"""One table with nulls, in DuckDB and in lftj, and expressions over it evaluated by both."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

import lftj
from lftj.language import ast
from lftj.sql import sql_expressions as expressions
from lftj.sql.dialect import LftjSql
from lftj.sql.places import SqlText
from lftj.sql.scope import Case, Conjunction
from tests.duckdb_databases import duckdb_database

# name, type of SQL, type of lftj
COLUMNS = (
    ("k", "bigint not null", "number"),
    ("i", "bigint", "number?"),
    ("j", "bigint not null", "number"),
    ("d", "decimal(9,2)", "decimal(9,2)?"),
    ("e", "decimal(7,3) not null", "decimal(7,3)"),
    ("f", "double", "float?"),
    ("s", "varchar", "symbol?"),
    ("w", "varchar not null", "symbol"),
    ("b", "boolean", "bool?"),
    ("t", "date", "date?"),
    ("u", "date not null", "date"),
    ("p", "timestamp", "timestamp?"),
)
_TEXT_ROWS = """
1 | 5    | 2  | 1.50   | 1.500  | 0.5   | abc   | abc                     | true  | 1995-01-31 | 1995-03-01 | 1995-01-01T09:00:00
2 | null | -7 | null   | -0.125 | null  | null  | PROMO x                 | null  | null       | 1996-02-29 | null
3 | -3   | 2  | -2.25  | 2.345  | -2.5  | Käse  | b_c%                    | false | 1995-03-01 | 1995-01-31 | 1995-03-01T00:00:00
4 | 0    | 3  | 0.00   | 0.000  | 1e6   |       | green tea               | true  | 2000-12-31 | 1999-01-01 | 2000-12-31T23:59:59
5 | 2    | 2  | 100.00 | 99.995 | 2.345 | promo | the special of requests | null  | null       | 1970-01-01 | 1970-01-01T00:00:00
6 | null | 1  | 1.50   | 1.505  | 1.5   | abc   | 12                      | false | 1995-01-31 | 1995-02-28 | null
"""  # noqa: E501
_READ: tuple[Callable[[str], Any], ...] = (int, int, int, Decimal, Decimal, float, str, str, "true".__eq__)
_READ = (*_READ, dt.date.fromisoformat, dt.date.fromisoformat, dt.datetime.fromisoformat)


def _row(line: str) -> tuple[Any, ...]:
    parts = [part.strip() for part in line.split("|")]
    return tuple(None if part == "null" else read(part) for part, read in zip(parts, _READ, strict=True))


ROWS = [_row(line) for line in _TEXT_ROWS.strip().split("\n")]


class Scope:
    """The columns of the table; `in` over constants becomes a relation of its own."""

    def __init__(self, text: str) -> None:
        self.source = SqlText(text)
        self.lists: dict[str, tuple[ast.Constant, ...]] = {}

    def cases(self, node: exp.Column) -> list[Case]:
        for name, _, type in COLUMNS:
            if name == node.name:
                return [Case((), ast.Variable(name), type.removesuffix("?"), type.endswith("?"))]
        raise self.source.error(f"no column `{node.name}`", node, why="x", remedy="y")

    def named(self, term: ast.Term) -> ast.Variable:
        raise NotImplementedError

    def constants(self, values: Sequence[ast.Constant], type_: str) -> str:
        self.lists[name := f"values{len(self.lists)}"] = tuple(values)
        return name

    def computed_apart(self, values: list[list[Case]]) -> list[list[Case]]:
        return values

    def scalar_subquery(self, node: exp.Subquery) -> list[Case]:
        raise NotImplementedError

    def subquery(self, node: exp.Expression, truth: bool) -> list[Conjunction]:
        raise NotImplementedError


_ATOM = ast.Atom("t", tuple(ast.Variable(name) for name, _, _ in COLUMNS))
_DECLARED = ", ".join(f"{name}:{type}" for name, _, type in COLUMNS)


def parsed(text: str) -> exp.Expression:
    return sqlglot.parse_one(f"select {text}", dialect=LftjSql).expressions[0]


def duckdb_table() -> Any:
    """The table in DuckDB."""
    duck = duckdb_database()
    duck.execute(f"create table t ({', '.join(f'{name} {sql}' for name, sql, _ in COLUMNS)})")
    duck.executemany(f"insert into t values ({', '.join('?' for _ in COLUMNS)})", ROWS)
    return duck


def _answers(scope: Scope, alternatives: list[tuple[Conjunction, ast.Term]]) -> list[tuple[int, Any]]:
    """The rows (k, value) of all alternatives, each evaluated by itself: what two of them give is there twice."""
    rules: list[ast.Item] = [
        ast.Rule((ast.Atom(name, (value,)),), ()) for name, values in scope.lists.items() for value in values
    ]
    for at, (literals, term) in enumerate(alternatives):
        rules.append(ast.Rule((ast.Atom(f"out{at}", (ast.Variable("k"), term)),), (_ATOM, *literals)))
    db = lftj.Database(f".decl t({_DECLARED})")
    db.load("t", ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db.rules(ast.Program(tuple(rules)))
    return [row for at in range(len(alternatives)) for row in db[f"out{at}"]]


def values(text: str) -> list[tuple[int, Any]]:
    """The keys of all rows, each with the value of an expression: once for each case that has it."""
    scope = Scope(f"select {text}")
    cases = expressions.value(parsed(text), scope)
    types = {case.type for case in cases if case.type}
    assert len(types) <= 1, f"{text} has cases of types {types}"
    null = ast.Constant(None, next(iter(types), "number"))
    found = [(case.literals, null if case.term is None else case.term) for case in cases]
    return sorted(_answers(scope, found), key=lambda row: row[0])


def keys(text: str, truth: bool | None) -> list[int]:
    """The keys of the rows where a predicate is true, false or unknown: once for each alternative that says so."""
    scope = Scope(f"select {text}")
    found = expressions.Expressions(scope).truth(parsed(text), truth)
    return sorted(k for k, _ in _answers(scope, [(c, ast.Variable("k")) for c in found]))
