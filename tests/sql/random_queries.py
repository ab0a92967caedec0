"""Random SQL over three small tables with nulls: queries, and transactions that change the tables, for hypothesis.

    queries()          text of a query; its columns are named c0, c1, ...
    transactions()     lists of statements: inserts and deletes

Everything that SQL views are to support is drawn: joins of all kinds, predicates of all kinds, subqueries with and
without correlation, groups, aggregates with filters, set operations. Numbers stay small, so nothing overflows. Division
is left out, since its type is a matter of dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

TABLES = {
    "r": "create table r (a integer, b integer, c varchar)",
    "s": "create table s (a integer, b integer, d decimal(6, 2))",
    "k": "create table k (id integer primary key, a integer, c varchar, e date)",
}
COLUMNS = {
    "r": {"a": "int", "b": "int", "c": "text"},
    "s": {"a": "int", "b": "int", "d": "money"},
    "k": {"id": "int", "a": "int", "c": "text", "e": "date"},
}
LITERALS = {
    "int": st.sampled_from(["0", "1", "2", "3", "-1"]),
    "text": st.sampled_from(["'x'", "'y'", "'xy'", "''"]),
    "money": st.sampled_from(["0.50", "1.00", "-2.25", "3.10"]),
    "date": st.sampled_from(["date '2020-01-31'", "date '2020-02-29'", "date '2021-03-01'"]),
}
COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


@dataclass
class Scope:
    """Columns that can be named, with their types, by type; how deep queries are nested, and a counter of aliases."""

    draw: Callable
    columns: list[tuple[str, str]] = field(default_factory=list)
    depth: int = 0
    used: list[int] = field(default_factory=lambda: [0])

    def inner(self) -> Scope:
        """The scope of a subquery, which sees this one's columns."""
        return Scope(self.draw, list(self.columns), self.depth + 1, self.used)

    def alias(self) -> str:
        """A new name of a table."""
        self.used[0] += 1
        return f"t{self.used[0]}"

    def pick(self, *options: Any) -> Any:
        """One of some things."""
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        """True so often."""
        return self.draw(st.integers(0, 99)) < percent


def some_type(scope: Scope) -> str:
    """The type of a column that can be named."""
    return str(scope.pick(*sorted({kind for _, kind in scope.columns})))


def scalar(scope: Scope, kind: str, depth: int = 1) -> str:
    """An expression of a type."""
    named = [name for name, type_ in scope.columns if type_ == kind]
    leaf = str(scope.pick(*named)) if named and scope.chance(80) else str(scope.draw(LITERALS[kind]))
    if depth == 0 or scope.chance(60):
        return leaf
    made = [
        lambda: f"case when {predicate(scope, 0)} then {leaf} else {scalar(scope, kind, 0)} end",
        lambda: f"case when {predicate(scope, 0)} then {leaf} end",
        lambda: f"coalesce({leaf}, {scope.draw(LITERALS[kind])})",
        lambda: f"nullif({leaf}, {scalar(scope, kind, 0)})",
    ]
    if kind in ("int", "money"):
        sign = scope.pick("+", "-", "*")
        made += [lambda: f"({leaf} {sign} {scalar(scope, kind, depth - 1)})", lambda: f"(- {leaf})"]
    if kind == "text":
        made += [lambda: f"upper({leaf})", lambda: f"({leaf} || {scalar(scope, kind, 0)})"]
    if kind == "int" and any(type_ == "date" for _, type_ in scope.columns):
        made.append(
            lambda: f"cast(extract({scope.pick('year', 'month', 'day')} from {scalar(scope, 'date', 0)}) as integer)"
        )
    return scope.pick(*made)()


def predicate(scope: Scope, depth: int = 2) -> str:
    """A condition, which may be unknown."""
    kind = some_type(scope)
    left = scalar(scope, kind, 0)
    simple = [
        lambda: f"{left} {scope.draw(COMPARISONS)} {scalar(scope, kind, 1 if depth else 0)}",
        lambda: f"{left} between {scalar(scope, kind, 0)} and {scalar(scope, kind, 0)}",
        lambda: f"{left} {scope.pick('in', 'not in')} ({scope.draw(LITERALS[kind])}, {scope.draw(LITERALS[kind])})",
        lambda: f"{left} is {scope.pick('', 'not ')}null",
    ]
    if kind == "text":
        simple.append(lambda: f"{left} {scope.pick('', 'not ')}like '{scope.pick('x%', '%y', '_', '%')}'")
    if depth == 0 or scope.chance(55):
        return scope.pick(*simple)()
    nested = [
        lambda: f"({predicate(scope, depth - 1)} {scope.pick('and', 'or')} {predicate(scope, depth - 1)})",
        lambda: f"not ({predicate(scope, depth - 1)})",
    ]
    if scope.depth < 2:
        nested += [
            lambda: f"{scope.pick('', 'not ')}exists ({subquery(scope, None)})",
            lambda: f"{scalar(scope, kind)} {scope.pick('in', 'not in')} ({subquery(scope, kind)})",
            lambda: f"{scalar(scope, kind)} {scope.pick('in', 'not in')} ({single(scope, kind)})",
            lambda: f"{scalar(scope, kind)} {scope.draw(COMPARISONS)} ({single(scope, kind)})",
            lambda: (
                f"{scalar(scope, kind)} {scope.draw(COMPARISONS)} {scope.pick('any', 'all')} ({subquery(scope, kind)})"
            ),
        ]
    return scope.pick(*nested)()


def subquery(outer: Scope, kind: str | None) -> str:
    """A query of one column of a type (None: any), over a table that has one; it may read the outer columns."""
    inner = outer.inner()
    table = str(scope_table(inner, kind))
    name = inner.alias()
    own = [(f"{name}.{column}", type_) for column, type_ in COLUMNS[table].items()]
    inner.columns = own + inner.columns if inner.chance(60) else own
    shown = "1" if kind is None else str(inner.pick(*[column for column, type_ in own if type_ == kind]))
    if kind is not None and inner.chance(20):
        shown = str(inner.draw(LITERALS[kind]))
    where = f" where {predicate(inner, 1)}" if inner.chance(75) else ""
    return f"select {shown} from {table} {name}{where}"


def scope_table(scope: Scope, kind: str | None) -> object:
    """A table with a column of the type."""
    return scope.pick(*[table for table, columns in COLUMNS.items() if kind is None or kind in columns.values()])


def single(outer: Scope, kind: str) -> str:
    """A scalar subquery: one aggregate over a table."""
    inner = outer.inner()
    table, name = str(scope_table(inner, kind)), inner.alias()
    own = [(f"{name}.{column}", type_) for column, type_ in COLUMNS[table].items()]
    inner.columns = own + inner.columns if inner.chance(60) else own
    column = str(inner.pick(*[column for column, type_ in own if type_ == kind]))
    functions = ["min", "max", *(["sum"] if kind in ("int", "money") else [])]
    where = f" where {predicate(inner, 1)}" if inner.chance(75) else ""
    return f"select {inner.pick(*functions)}({column}) from {table} {name}{where}"


def source(scope: Scope) -> str:
    """What stands after `from`; its columns are in the scope then."""
    text, since_comma = "", 0
    for i in range(scope.draw(st.integers(1, 3 if scope.depth == 0 else 2))):
        table, name = str(scope.pick(*TABLES)), scope.alias()
        before = list(scope.columns)
        own = [(f"{name}.{column}", type_) for column, type_ in COLUMNS[table].items()]
        scope.columns = before + own
        if i == 0:
            text = f"{table} {name}"
            continue
        kind = scope.pick("inner", "inner", "left", "right", "full", "cross", ",", "semi", "anti")
        if kind in ("cross", ","):
            if kind == ",":
                since_comma = len(before)
            text += f", {table} {name}" if kind == "," else f" cross join {table} {name}"
            continue
        before = before[since_comma:]  # the condition of a join sees no table before a comma
        pairs = [(a, b) for a, one in before for b, other in own if one == other]
        first, second = scope.pick(*pairs)
        more = ""
        if scope.chance(25):
            joined = Scope(scope.draw, before + own, 2, scope.used)
            more = f" and {predicate(joined, 0)}" if kind != "full" else ""
        text += f" {kind} join {table} {name} on {first} = {second}{more}"
        if kind in ("semi", "anti"):
            del scope.columns[-len(own) :]
    return text


def aggregate(scope: Scope, depth: int = 0) -> tuple[str, str]:
    """An aggregate and its type."""
    kind = some_type(scope)
    value = scalar(scope, kind, depth)
    options = [("count(*)", "int"), (f"count({value})", "int"), (f"count(distinct {value})", "int")]
    options += [(f"min({value})", kind), (f"max({value})", kind)]
    if kind in ("int", "text"):
        options += [(f"string_agg({value}, ',' order by {value})", "text")]
    options += [(f"arg_max({value}, {value})", kind)]  # of one value: DuckDB takes any of the rows with the greatest
    options += [(f"quantile_disc({value}, {scope.pick('0', '0.3', '0.5', '1')})", kind)]
    options += [(f"mode() within group (order by {value})", kind)]  # in order DuckDB takes the least, as lftj does
    if kind == "int":
        options += [(f"median({value})", "float"), (f"quantile_cont({value}, 0.25)", "float")]
    if kind in ("int", "money"):
        options += [(f"sum({value})", kind), (f"sum({value})", kind), (f"avg({value})", "float")]
        options += [(f"{scope.pick('stddev', 'var_pop')}({value})", "float")]
    text, type_ = scope.pick(*options)
    if scope.chance(20):
        text += f" filter (where {predicate(scope, 0)})"
    elif scope.chance(10):
        text = f"case when {scope.pick('bool_and', 'bool_or')}({predicate(scope, 0)}) then {text} end"
    return text, type_


def core(draw: Callable, kinds: tuple[str, ...] | None = None) -> str:
    """A select without set operations; with columns of these types, if given."""
    scope = Scope(draw)
    text = source(scope)
    where = f" where {predicate(scope)}" if scope.chance(60) else ""
    if kinds is None and scope.chance(50):
        names = [name for name, _ in scope.columns]
        keys = sorted(draw(st.sets(st.sampled_from(names), max_size=2)))
        shown = [*keys, *(aggregate(scope, 1)[0] for _ in range(draw(st.integers(1, 2))))]
        having = ""
        if scope.chance(30):
            value, kind = aggregate(scope)
            literal = draw(LITERALS["int" if kind == "float" else kind])
            having = f" having {value} {draw(COMPARISONS)} {literal}" if kind != "float" else ""
        grouped = f" group by {', '.join(keys)}" if keys else ""
        return f"select {named(shown)} from {text}{where}{grouped}{having}"
    shown = (
        [scalar(scope, kind) for kind in kinds]
        if kinds is not None
        else [
            scalar(scope, str(scope.pick(*sorted({t for _, t in scope.columns}))))
            for _ in range(draw(st.integers(1, 3)))
        ]
    )
    distinct = "distinct " if scope.chance(25) else ""
    return f"select {distinct}{named(shown)} from {text}{where}"


def named(shown: list[str]) -> str:
    """A select list with names."""
    return ", ".join(f"{value} as c{i}" for i, value in enumerate(shown))


@st.composite
def queries(draw: Callable) -> str:
    """A query; of some only the first rows, by all columns, so that no tie is left open."""
    text = unlimited(draw)
    return f"{text} order by all limit {draw(st.integers(1, 4))}" if draw(st.integers(0, 99)) < 15 else text


def alike(draw: Callable) -> str:
    """A query whose rows come from several alternatives, and are often alike: few columns, and a key that is bound."""
    scope = Scope(draw, [(f"t.{column}", type_) for column, type_ in COLUMNS["k"].items()], 2)
    key = [f"t.id {draw(COMPARISONS)} {draw(LITERALS['int'])}" for _ in range(2)]
    where = draw(
        st.sampled_from([f"{key[0]} or {key[1]}", f"not ({key[0]} and {key[1]})", f"{key[0]} or t.a = 1", "true"])
    )
    shown = [scalar(scope, some_type(scope)) for _ in range(draw(st.integers(1, 2)))]
    inner = f"select {named(shown)} from k t where {where}"
    return inner if scope.chance(60) else f"select c0, count(*) as c1 from ({inner}) q group by c0"


def unlimited(draw: Callable) -> str:
    """A query of all of its rows."""
    if draw(st.integers(0, 99)) < 20:
        return alike(draw)
    if draw(st.integers(0, 99)) < 80:
        return core(draw)
    kinds = tuple(draw(st.lists(st.sampled_from(["int", "text"]), min_size=1, max_size=2)))
    word = draw(st.sampled_from(["union", "union all", "union all by name", "intersect", "except"]))
    return f"{core(draw, kinds)} {word} {core(draw, kinds)}"


def _values(table: str, key: int | None) -> st.SearchStrategy[str]:
    cells = [
        st.just(str(key)) if column == "id" else st.one_of(st.just("null"), LITERALS[type_], LITERALS[type_])
        for column, type_ in COLUMNS[table].items()
    ]
    return st.tuples(*cells).map(lambda row: f"({', '.join(row)})")


@st.composite
def transactions(draw: Callable) -> list[list[str]]:
    """Statements by transaction; the keys of k are new ones."""
    made, key = [], 0
    for _ in range(draw(st.integers(1, 4))):
        statements = []
        for table in draw(st.lists(st.sampled_from(list(TABLES)), min_size=1, max_size=3)):
            if made and draw(st.integers(0, 99)) < 35:
                column = draw(st.sampled_from([c for c, type_ in COLUMNS[table].items() if type_ == "int"]))
                statements.append(f"delete from {table} where {column} {draw(COMPARISONS)} {draw(LITERALS['int'])}")
                continue
            rows = []
            for _ in range(draw(st.integers(1, 4))):
                key += 1
                rows.append(draw(_values(table, key)))
            statements.append(f"insert into {table} values {', '.join(rows)}")
        made.append(statements)
    return made
