"""`rollup`, `cube` and `grouping sets`: a select with several groupings, as the `union all` of selects with one each.

    select a, b, sum(x) from t group by rollup (a, b)
      ->  select a, b, sum(x) from t group by a, b  union all  select a, null, sum(x) from t group by a
          union all  select null, null, sum(x) from t

What a select is not grouped by is null there; `grouping(a)` is 1 where a is. Of no groups there is one row. A name that
the select gives to an expression stands for that, as a position does, unless a table has a column of the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product

from sqlglot import exp

from lftj.sql.aggregate_heads import is_aggregate
from lftj.sql.grouping import own_nodes, stands_for_rows
from lftj.sql.ordering import position_of
from lftj.sql.places import SqlText, in_place_of
from lftj.sql.stars import output_name

Meant = Callable[[exp.Expr], exp.Expr]
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
# More groupings than this are refused: each is a query.
MOST = 64
# What a union of selects has in their place.
_WHOLE = ("order", "limit", "offset", "with_")


def without_grouping_sets(query: exp.Expr, text: SqlText, has_column: Callable[[exp.Column], bool]) -> exp.Expr:
    """The query; of a select with several groupings the union of selects with one each.

    Where it is grouped by nothing, as in `group by ()`, there is one group, of all rows and of none.
    `has_column`: whether a table of `from` has a column that is named alone.
    """
    group = query.args.get("group") if isinstance(query, exp.Select) else None
    if group is None:
        return query
    if _is_by_nothing(query, group):
        return _without_group(query.copy())
    if not any(isinstance(node, _SETS) for node in group.expressions):
        return query
    window = query.find(exp.Window)
    if window is not None and window.find_ancestor(exp.Select) is query:
        raise text.unsupported("a window function over several groupings", window, "group in a subquery of `from`")

    def meant(node: exp.Expr) -> exp.Expr:
        return _meant(node, query.expressions, text, has_column)

    groupings = _groupings(group.expressions, meant)
    if len(groupings) > MOST:
        raise text.error(
            f"`group by` with {len(groupings)} groupings",
            group,
            why=f"each is a query of its own, and up to {MOST} are made",
            remedy="name fewer columns in `cube` or `rollup`",
        )
    query = query.copy()
    for function in query.find_all(exp.Grouping, exp.GroupingId):
        if function.find_ancestor(exp.Select) is query:
            named = [meant(node) if isinstance(node, exp.Column) else node for node in function.expressions]
            function.set("expressions", named)
    names = _Names(query)
    every = {names.key(node) for grouping in groupings for node in grouping}
    for function in query.find_all(exp.Grouping, exp.GroupingId):
        other = next((node for node in function.expressions if names.key(node) not in every), None)
        if other is not None and function.find_ancestor(exp.Select) is query:
            raise text.error(
                f"`{text.word(function)}` of `{other.sql('duckdb')}`, by which nothing is grouped",
                function,
                why="it tells the columns of `group by` that a row is grouped by from those it is not",
                remedy="name columns of `group by`",
            )
    distinct = query.args.get("distinct") is not None
    made: exp.Expr | None = None
    for grouping in groupings:
        part = _grouped_by(query, grouping, every, names)
        made = part if made is None else exp.Union(this=made, expression=part, distinct=distinct)
    assert made is not None
    for name in _WHOLE:
        if query.args.get(name) is not None:
            made.set(name, query.args[name].copy())
    return made


def _meant(
    node: exp.Expr, given: Sequence[exp.Expr], text: SqlText, has_column: Callable[[exp.Column], bool]
) -> exp.Expr:
    """What a part of `group by` stands for: one of what is `given` out, by its position or name, or itself."""
    at = position_of(node, len(given), text)
    if at is None and isinstance(node, exp.Column) and not node.table:
        names = [part.alias.casefold() for part in given]
        if node.name.casefold() in names and not has_column(node):
            at = names.index(node.name.casefold())
    found = node if at is None else in_place_of(node, given[at].unalias().copy())
    if isinstance(found.unnest(), exp.Literal | exp.Null | exp.Boolean):
        remedy = "give it a name in a subquery of `from`, and group by that"
        raise text.unsupported("a constant in one of several groupings", node, remedy)
    return found


def _groupings(nodes: Iterable[exp.Expr], meant: Meant) -> list[list[exp.Expr]]:
    """The groupings that `group by` asks for: one of each of its parts together."""
    parts = (_of(node, meant) for node in nodes)
    return [[node for part in chosen for node in part] for chosen in product(*parts)]


def _of(node: exp.Expr, meant: Meant) -> list[list[exp.Expr]]:
    """The groupings of one part of `group by`."""
    if isinstance(node, exp.GroupingSets):
        return [grouping for part in node.expressions for grouping in _of(part, meant)]
    if isinstance(node, exp.Rollup | exp.Cube):
        parts = [_of(part, meant)[0] for part in node.expressions]
        sizes = range(len(parts), -1, -1)
        if isinstance(node, exp.Rollup):
            return [[one for part in parts[:size] for one in part] for size in sizes]
        return [[one for part in chosen for one in part] for size in sizes for chosen in combinations(parts, size)]
    if isinstance(node, exp.Tuple):
        return [[one for part in node.expressions for one in _of(part, meant)[0]]]
    if isinstance(node, exp.Paren):
        return _of(node.this, meant)
    return [[meant(node)]]


def _is_by_nothing(query: exp.Expr, group: exp.Group) -> bool:
    if group.args.get("all"):
        return all(any(map(is_aggregate, own_nodes(node))) for node in query.expressions)
    return bool(group.expressions) and all(
        isinstance(node, exp.Tuple) and not node.expressions for node in group.expressions
    )


def _without_group(select: exp.Expr) -> exp.Expr:
    """The select as one group of all its rows, or of none."""
    select.set("group", None)
    if select.args.get("having") is None and not any(
        is_aggregate(part) for node in select.expressions for part in own_nodes(node)
    ):
        select.set("having", exp.Having(this=exp.true()))
    return select


class _Names:
    """What makes two expressions of a select one: `a` is `t.a` where no other table's `a` is named."""

    def __init__(self, query: exp.Expr) -> None:
        self._tables: dict[str, set[str]] = {}
        joins = query.args.get("joins") or ()
        if any(join.args.get("using") or join.args.get("method") for join in joins):
            return  # `a` may be of both tables
        for column in query.find_all(exp.Column):
            if column.table:
                self._tables.setdefault(column.name.casefold(), set()).add(column.table.casefold())

    def key(self, node: exp.Expr) -> str:
        """Equal for expressions that are one."""

        def known(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            name, table = part.name.casefold(), part.table.casefold()
            tables = self._tables.get(name, set())
            return exp.column(name, (next(iter(tables)) if not table and len(tables) == 1 else table) or None)

        return node.unnest().transform(known).sql("duckdb")


def _grouped_by(query: exp.Expr, grouping: Sequence[exp.Expr], every: set[str], names: _Names) -> exp.Expr:
    """The select with one grouping, of `every` expression that there is in some."""
    made, here = query.copy(), {names.key(node): node for node in grouping}

    def over(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Grouping | exp.GroupingId):
            bits = "".join("0" if names.key(part) in here else "1" for part in node.expressions)
            return exp.Literal.number(int(bits, 2))
        if is_aggregate(node) or stands_for_rows(node):
            return node
        key = names.key(node)
        if key in here:
            return here[key].copy()
        if key in every:
            return exp.Null()
        return node if isinstance(node, exp.Query) else None

    expressions = []
    for node in made.expressions:
        alias = exp.to_identifier(output_name(node), quoted=True)
        expressions.append(exp.Alias(this=_transformed(node.unalias(), over), alias=alias))
    made.set("expressions", expressions)
    having = made.args.get("having")
    if having is not None:
        having.set("this", _transformed(having.this, over))
    for name in (*_WHOLE, "distinct"):
        made.set(name, None)
    if not grouping:
        return _without_group(made)
    made.set("group", exp.Group(expressions=[node.copy() for node in grouping]))
    return made


def _transformed(node: exp.Expr, over: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """The expression with what is `over` its parts in their places; where that is None, over the parts of these."""
    new = over(node)
    if new is not None:
        return new
    for name, part in list(node.args.items()):
        if isinstance(part, exp.Expr):
            node.set(name, _transformed(part, over))
        elif isinstance(part, list):
            node.set(name, [_transformed(one, over) if isinstance(one, exp.Expr) else one for one in part])
    return node
