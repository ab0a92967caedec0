"""Random queries over small tables with nulls and repeated rows: what DuckDB answers, after every transaction.

A query is drawn from a grammar that knows the types of columns, so that both systems take it. Its seed is that of the
tables and their changes, too. `LFTJ_SQL_EXAMPLES` says how many are drawn; 1,100 were.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.sql.against_duckdb import Pair

EXAMPLES = int(os.environ.get("LFTJ_SQL_EXAMPLES", "60"))
NUMBERS, TEXTS = "number", "text"
TABLES = {
    "t": {"id": NUMBERS, "a": NUMBERS, "b": TEXTS},
    "u": {"a": NUMBERS, "b": TEXTS, "n": NUMBERS},
    "w": {"k": NUMBERS},
}


class Grammar:
    """Draws queries. `columns`: what may be named at a place, each with its type."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.aliases = 0

    def chance(self, of: float) -> bool:
        """Whether something with this probability happens."""
        return self.random.random() < of

    def query(self, depth: int = 2) -> str:
        """A query of two columns, a number and a text, `p` and `q`."""
        kind = self.random.random()
        if depth and kind < 0.2:
            op = self.random.choice(("union", "union all", "intersect", "except", "intersect all", "except all"))
            return f"({self.query(depth - 1)}) {op} ({self.query(depth - 1)})"
        return self.grouped(depth, {}) if kind < 0.6 else self.plain(depth, {})

    def alias(self) -> str:
        """A name for a table."""
        self.aliases += 1
        return f"r{self.aliases}"

    def source(self, depth: int) -> tuple[str, dict[str, str]]:
        """A table of `from`, and its columns."""
        name = self.alias()
        if depth and self.chance(0.25):
            inner = self.query(depth - 1)
            if self.chance(0.3):  # by all columns, so that no tie is left open
                one, two = (self.random.choice(("", " desc", " nulls first", " desc nulls last")) for _ in range(2))
                limit = f"limit {self.random.choice((1, 2, 3, 5))}{self.random.choice(('', '', ' offset 1'))}"
                inner = f"select * from ({inner}) order by p{one}, q{two} {limit}"
            return f"({inner}) {name} (p, q)", {f"{name}.p": NUMBERS, f"{name}.q": TEXTS}
        table = self.random.choice(list(TABLES))
        return f"{table} {name}", {f"{name}.{column}": type_ for column, type_ in TABLES[table].items()}

    def tables(self, depth: int, outer: dict[str, str]) -> tuple[str, dict[str, str]]:
        """A `from` clause, and the columns that it brings."""
        text, columns = self.source(depth)
        for _ in range(self.random.choice((0, 1, 1, 2))):
            other, more = self.source(depth)
            both = {**columns, **more}
            join = self.random.choice(("join", "join", "left join", "right join", "full join", "cross join"))
            on = "" if join == "cross join" else f" on {self.equality(columns, more)}"
            if on and self.chance(0.3):
                on += f" and {self.comparison(both)}"
            text, columns = f"{text} {join} {other}{on}", both
        return text, columns

    def equality(self, one: dict[str, str], two: dict[str, str]) -> str:
        """An equality of columns of two tables."""
        type_ = self.random.choice([t for t in one.values() if t in two.values()])
        return f"{self.column(one, type_)} = {self.column(two, type_)}"

    def column(self, columns: dict[str, str], type_: str) -> str:
        """A column of a type; else a constant."""
        found = [name for name, of in columns.items() if of == type_]
        return self.random.choice(found) if found else ("1" if type_ == NUMBERS else "'x'")

    def value(self, columns: dict[str, str], type_: str, depth: int = 1) -> str:
        """An expression."""
        kind = self.random.random()
        if type_ == TEXTS:
            if kind < 0.1:
                return f"coalesce({self.column(columns, TEXTS)}, 'none')"
            return self.column(columns, TEXTS) if kind < 0.9 else "'x'"
        if kind < 0.1:
            return str(self.random.choice((0, 1, 2)))
        if kind < 0.2:
            return f"coalesce({self.column(columns, NUMBERS)}, 0)"
        if depth and kind < 0.35:
            op = self.random.choice("+-*")
            return f"({self.value(columns, NUMBERS, depth - 1)} {op} {self.value(columns, NUMBERS, depth - 1)})"
        if depth and kind < 0.45:
            then, other = (self.value(columns, NUMBERS, depth - 1) for _ in range(2))
            otherwise = f" else {other}" if self.chance(0.6) else ""
            return f"case when {self.comparison(columns)} then {then}{otherwise} end"
        return self.column(columns, NUMBERS)

    def comparison(self, columns: dict[str, str]) -> str:
        """A predicate over columns."""
        kind = self.random.random()
        type_ = self.random.choice((NUMBERS, NUMBERS, TEXTS))
        left = self.value(columns, type_, 0)
        if kind < 0.15:
            return f"{left} is {self.random.choice(('', 'not '))}null"
        if kind < 0.25:
            listed = "1, 2" if type_ == NUMBERS else "'x', 'z'"
            return f"{left} {self.random.choice(('', 'not '))}in ({listed})"
        if kind < 0.3 and type_ == NUMBERS:
            return f"{left} between 1 and 2"
        if kind < 0.35:
            return f"{left} is not distinct from {self.value(columns, type_, 0)}"
        return f"{left} {self.random.choice(('=', '<>', '<', '<=', '>', '>='))} {self.value(columns, type_, 0)}"

    def condition(self, columns: dict[str, str], outer: dict[str, str], depth: int) -> str:
        """A predicate, with subqueries in it while `depth` lasts."""
        kind = self.random.random()
        known = {**outer, **columns}
        if kind < 0.15:
            op = self.random.choice(("and", "or"))
            return f"({self.condition(columns, outer, depth)} {op} {self.comparison(known)})"
        if kind < 0.2:
            return f"not ({self.condition(columns, outer, depth)})"
        if depth and kind < 0.4:
            return self.over_query(known, depth - 1)
        return self.comparison(known)

    def over_query(self, known: dict[str, str], depth: int) -> str:
        """A predicate over a subquery."""
        kind, negated = self.random.random(), self.random.choice(("", "not "))
        if kind < 0.4:
            text, columns = self.tables(0, known)
            return f"{negated}exists (select 1 from {text} where {self.condition(columns, known, depth)})"
        left = self.value(known, NUMBERS, 0)
        text, columns = self.tables(0, known)
        where = f" where {self.condition(columns, known, depth)}" if self.chance(0.7) else ""
        if kind < 0.7:
            shown = self.random.choice("0123") if self.chance(0.2) else self.column(columns, NUMBERS)
            return f"{left} {negated}in (select {shown} from {text}{where})"
        op = self.random.choice(("=", "<>", "<", ">="))
        if kind < 0.85:
            every = self.random.choice(("any", "all"))
            return f"{left} {op} {every} (select {self.column(columns, NUMBERS)} from {text}{where})"
        return f"{left} {op} (select {self.aggregate(columns)} from {text}{where})"

    def aggregate(self, columns: dict[str, str]) -> str:
        """An aggregate that is a number."""
        kind = self.random.random()
        if kind < 0.2:
            return "count(*)"
        name = self.random.choice(("sum", "min", "max", "count"))
        distinct = "distinct " if self.chance(0.2) else ""
        kept = f" filter (where {self.comparison(columns)})" if self.chance(0.2) else ""
        return f"{name}({distinct}{self.value(columns, NUMBERS)}){kept}"

    def plain(self, depth: int, outer: dict[str, str]) -> str:
        """A select without groups."""
        text, columns = self.tables(depth and depth - 1, outer)
        distinct = "distinct " if self.chance(0.2) else ""
        where = f" where {self.condition(columns, outer, depth)}" if self.chance(0.7) else ""
        p = self.value(columns, NUMBERS)
        if depth and self.chance(0.1):
            inner, more = self.tables(0, columns)
            p = f"(select {self.aggregate(more)} from {inner} where {self.condition(more, columns, 0)})"
        return f"select {distinct}{p} as p, {self.value(columns, TEXTS)} as q from {text}{where}"

    def grouped(self, depth: int, outer: dict[str, str]) -> str:
        """A select with groups."""
        text, columns = self.tables(depth and depth - 1, outer)
        where = f" where {self.condition(columns, outer, depth)}" if self.chance(0.6) else ""
        key = self.column(columns, TEXTS)
        p = self.aggregate(columns)
        if self.chance(0.2):
            return f"select {p} as p, 'all' as q from {text}{where}"
        if self.chance(0.2):
            p = f"{p} + {self.aggregate(columns)}"
        having = f" having {self.aggregate(columns)} > 1" if self.chance(0.2) else ""
        return f"select {p} as p, {key} as q from {text}{where} group by {key}{having}"


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_a_random_query_is_answered_as_by_duckdb(seed: int) -> None:
    sql = Grammar(seed).query()
    pair = Pair(seed)
    pair.change(come=5, go=0)
    pair.view(sql)
    pair.check()
    for _ in range(4):
        pair.change(come=2, go=1)
        pair.check()
