"""What a program means, by DuckDB: an engine that shares neither code nor ideas with this one.

The program's text is read by the plain evaluator's parser; stratum by stratum each relation becomes a table, filled by
the queries of its rules (`sql_rules`), those of a recursion over and over until no row is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tests.fuzz.sql_rules import columns_of, query_of
from tests.fuzz.sql_terms import FAR, MACROS, TYPES, Untranslated, literal
from tests.plain.evaluate import Contents, in_order, reads, recursive, stored
from tests.plain.syntax import Program

try:
    import duckdb
except ImportError:  # an extra of its own
    duckdb = None  # type: ignore[assignment]

Facts = Mapping[str, Iterable[Sequence[Any]]]


@cache
def _connection() -> Any:
    """One for all cases: opening another takes longer than most of them."""
    if duckdb is None:
        raise Untranslated("all: DuckDB is not installed")
    connection = duckdb.connect(":memory:")
    # Tables are tiny: threads only cost, and so does planning, two fifths of the time.
    connection.execute("SET threads = 1")
    connection.execute(MACROS)
    return connection


class DuckDB:
    """A translated program. Raises `Untranslated`, here or where it meets values that it cannot add up."""

    def __init__(self, program: Program) -> None:
        if program.nullable:
            raise Untranslated("columns that admit null")
        self.program = program
        self.components = in_order(program, {})
        self.queries: dict[str, list[str]] = {name: [] for component in self.components for name in component}
        # Those of them that read the recursion that they are in.
        self.recursive: dict[str, list[str]] = {name: [] for name in self.queries}
        around = {name: set(component) for component in self.components for name in component}
        for rule in program.rules:
            head, query = rule.head.name, query_of(program, rule)
            self.queries[head].append(query)
            if reads(rule) & around[head]:
                self.recursive[head].append(query)
        for component in self.components:
            found = program.functional & set(component)
            if recursive(program, component) and found not in (set(), set(component)):
                raise Untranslated("functional predicates in a recursion with others")

    def evaluate(self, facts: Facts) -> Contents:
        """The content of every relation, of these facts and those of the program's text."""
        execute = _connection().execute
        given: Contents = {}
        for name, row in self.program.facts:
            given.setdefault(name, set()).add(stored(self.program, name, row))
        for name, rows in facts.items():
            given.setdefault(name, set()).update(stored(self.program, name, row) for row in rows)
        try:
            for component in self.components:
                keyed = self.program.functional.issuperset(component) and recursive(self.program, component)
                for name in component:
                    start = [] if keyed else [q for q in self.queries[name] if q not in self.recursive[name]]
                    execute(self._table(name, given.get(name, set()), start))
                while self._replaced(component, given) if keyed else self._inserted(component):
                    pass
            return {name: self._rows(name) for name in self.queries}
        except duckdb.InvalidInputException as error:
            if FAR in str(error):
                raise Untranslated(f"sums of {FAR}") from error
            raise

    def _inserted(self, component: tuple[str, ...]) -> bool:
        """Add what the rules of a recursion derive; whether that was anything new."""
        statements = [
            f"INSERT INTO {name} (({query}) EXCEPT SELECT * FROM {name})"
            for name in component
            for query in self.recursive[name]
        ]
        return sum(_connection().execute(text).fetchone()[0] for text in statements) > 0

    def _replaced(self, component: tuple[str, ...], given: Contents) -> bool:
        """Replace the values of functional predicates by what their rules derive of them; whether that changed any."""
        execute = _connection().execute
        before = [self._rows(name) for name in component]
        for name in component:
            execute(self._table(f"next_{name}", given.get(name, set()), self.queries[name], like=name))
        for name in component:
            execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM next_{name}")
        return before != [self._rows(name) for name in component]

    def _table(self, table: str, rows: set[tuple[Any, ...]], queries: list[str], *, like: str = "") -> str:
        """The statement that makes a table of facts and of what rules derive; `like`: for this relation."""
        kinds = columns_of(self.program, like or table)
        cells = [
            ", ".join(literal(value, kind) for value, kind in zip(row or (1,), kinds, strict=True)) for row in rows
        ]
        columns = ", ".join(f"c{i}" for i in range(len(kinds)))
        empty = ", ".join(f"NULL::{TYPES[kind]}" for kind in kinds)
        facts = f"VALUES {', '.join(f'({row})' for row in cells)}" if cells else f"SELECT {empty} WHERE false"
        union = " UNION ".join((f"SELECT * FROM ({facts}) f", *queries))
        return f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM ({union}) v({columns})"

    def _rows(self, name: str) -> set[tuple[Any, ...]]:
        rows = _connection().execute(f"SELECT * FROM {name}").fetchall()
        return set(rows) if self.program.kinds[name] else {() for _ in rows}
