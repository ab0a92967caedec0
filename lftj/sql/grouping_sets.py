"""`rollup`, `cube` and `grouping sets`: a select with several groupings, as the `union all` of selects with one each.

    select a, b, sum(x) from t group by rollup (a, b)
      ->  select a, b, sum(x) from t group by a, b  union all  select a, null, sum(x) from t group by a
          union all  select null, null, sum(x) from t

What a select is not grouped by is null there; `grouping(a)` is 1 where a is. Of no groups there is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product

from sqlglot import exp

from lftj.sql.aggregate_heads import is_aggregate
from lftj.sql.ordering import position_of
from lftj.sql.places import SqlText

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
# More groupings than this are refused: each is a query.
MOST = 64
# What a union of selects has in their place.
_WHOLE = ("order", "limit", "offset", "with_")


def without_grouping_sets(query: exp.Expr, text: SqlText) -> exp.Expr:
    """The query; of a select with several groupings the union of selects with one each."""
    group = query.args.get("group") if isinstance(query, exp.Select) else None
    if group is None or not any(isinstance(node, _SETS) for node in group.expressions):
        return query
    window = query.find(exp.Window)
    if window is not None and window.find_ancestor(exp.Select) is query:
        raise text.unsupported("a window function over several groupings", window, "group in a subquery of `from`")
    given = [node.unalias() for node in query.expressions]
    groupings = _groupings(group.expressions, given, text)
    if len(groupings) > MOST:
        raise text.error(
            f"`group by` with {len(groupings)} groupings",
            group,
            why=f"each is a query of its own, and up to {MOST} are made",
            remedy="name fewer columns in `cube` or `rollup`",
        )
    every = {_key(node): node for grouping in groupings for node in grouping}
    distinct = query.args.get("distinct") is not None
    made: exp.Expr | None = None
    for grouping in groupings:
        part = _grouped_by(query, grouping, every)
        made = part if made is None else exp.Union(this=made, expression=part, distinct=distinct)
    assert made is not None
    for name in _WHOLE:
        if query.args.get(name) is not None:
            made.set(name, query.args[name].copy())
    return made


def _groupings(nodes: Iterable[exp.Expr], given: Sequence[exp.Expr], text: SqlText) -> list[list[exp.Expr]]:
    """The groupings that `group by` asks for: one of each of its parts together."""
    parts = (_of(node, given, text) for node in nodes)
    return [[node for part in chosen for node in part] for chosen in product(*parts)]


def _of(node: exp.Expr, given: Sequence[exp.Expr], text: SqlText) -> list[list[exp.Expr]]:
    """The groupings of one part of `group by`."""
    if isinstance(node, exp.GroupingSets):
        return [grouping for part in node.expressions for grouping in _of(part, given, text)]
    if isinstance(node, exp.Rollup | exp.Cube):
        parts = [_of(part, given, text)[0] for part in node.expressions]
        sizes = range(len(parts), -1, -1)
        if isinstance(node, exp.Rollup):
            return [[one for part in parts[:size] for one in part] for size in sizes]
        return [[one for part in chosen for one in part] for size in sizes for chosen in combinations(parts, size)]
    if isinstance(node, exp.Tuple):
        return [[one for part in node.expressions for one in _of(part, given, text)[0]]]
    if isinstance(node, exp.Paren):
        return _of(node.this, given, text)
    position = position_of(node, len(given), text)
    return [[node if position is None else given[position].copy()]]


def _key(node: exp.Expr) -> str:
    """What makes two expressions one: a column is known by its name."""
    return node.name.casefold() if isinstance(node, exp.Column) else node.sql("duckdb")


def _grouped_by(query: exp.Expr, grouping: Sequence[exp.Expr], every: dict[str, exp.Expr]) -> exp.Expr:
    """The select with one grouping of `every` expression that there is in some."""
    made, here = query.copy(), {_key(node) for node in grouping}

    def over(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Grouping | exp.GroupingId):
            bits = "".join("0" if _key(part) in here else "1" for part in node.expressions)
            return exp.Literal.number(int(bits, 2))
        if is_aggregate(node) or isinstance(node, exp.Query) or _key(node) not in every.keys() - here:
            return node
        return exp.Null()

    expressions = []
    for node in made.expressions:
        inner = _transformed(node.unalias(), over)
        name = node.alias_or_name or node.sql("duckdb").lower()
        expressions.append(exp.alias_(inner, name, quoted=True) if inner is not node else node)
    made.set("expressions", expressions)
    having = made.args.get("having")
    if having is not None:
        having.set("this", _transformed(having.this, over))
    for name in (*_WHOLE, "distinct"):
        made.set(name, None)
    made.set("group", exp.Group(expressions=[node.copy() for node in grouping]) if grouping else None)
    if not grouping and having is None:  # of all rows, and of none
        made.set("having", exp.Having(this=exp.true()))
    return made


def _transformed(node: exp.Expr, over: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The expression with other parts; what an aggregate takes stays as it is."""
    new = over(node)
    if new is not node or is_aggregate(node) or isinstance(node, exp.Query):
        return new
    for name, part in list(node.args.items()):
        if isinstance(part, exp.Expr):
            node.set(name, _transformed(part, over))
        elif isinstance(part, list):
            node.set(name, [_transformed(one, over) if isinstance(one, exp.Expr) else one for one in part])
    return node
