"""What the parser takes and SQL does not: statements and expressions that lack a part, or have one too many.

sqlglot reads many dialects, and leaves it to whoever uses a tree to see that a part is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from lftj.sql.places import SqlText
from lftj.sql.syntax_errors import too_few_arguments, too_many_arguments
from lftj.sql.window_checks import OVER_ONLY, check_definitions, check_over, check_window


def check_complete(statement: exp.Expr, source: SqlText) -> None:
    """Raise an error about the first part of a statement that is incomplete."""
    for node in list(statement.walk()):
        if isinstance(node, exp.Count) and node.this is None:
            node.set("this", exp.Star())
        _check_arguments(node, source)
        if isinstance(node, exp.AggFunc):
            _check_star(node, source)
        if isinstance(node, _OF_SOMETHING) and not isinstance(node.parent, exp.WithinGroup):
            _some_argument(node, source)
        if type(node) in _CHECKS:
            _CHECKS[type(node)](node, source)


def _insert(node: exp.Expr, source: SqlText) -> None:
    if not node.meta.get("into", True) and not node.args.get("overwrite"):
        why, remedy = "the name of the table stands behind `insert into`", "write `insert into`"
        raise source.error("`insert` without `into` and a name", node.this, why=why, remedy=remedy)
    if node.args.get("expression") is None and not node.args.get("default"):
        raise source.error(
            "`insert` without rows",
            node,
            why="nothing says what is to be inserted",
            remedy="add `values (...)`, a `select`, or `default values`",
        )


def _update(node: exp.Expr, source: SqlText) -> None:
    if not node.expressions:
        why, remedy = "nothing says what is to change", "add `set column = value`"
        raise source.error("`update` without `set`", node, why=why, remedy=remedy)


def _select(node: exp.Expr, source: SqlText) -> None:
    if not node.expressions:
        why, remedy = "it gives nothing out", "name columns, or write `select *`"
        raise source.error("`select` without columns", node, why=why, remedy=remedy)
    check_definitions(node, source)


def _with(node: exp.Expr, source: SqlText) -> None:
    if node.args.get("search"):
        remedy = "leave it out: `union` ends where no row is new, and a path may be a column"
        raise source.unsupported("`search` or `cycle` behind `with`", node.args["search"], remedy)
    names = [query.alias.casefold() for query in node.expressions]
    for at, query in enumerate(node.expressions):
        if not query.meta.get("as"):
            why, remedy = "`as` stands between the name and the query", "write the `as`"
            raise source.error(f"`{query.alias}` of `with` without `as`", query.args["alias"], why=why, remedy=remedy)
        if query.args.get("key_expressions"):
            remedy = "leave it out, and let a query that reads it take one row of each key, as by `distinct on`"
            raise source.unsupported("`using key` in `with recursive`", query.args["alias"], remedy)
        if names[at] in names[:at]:
            raise source.error(
                f"`with` names `{query.alias}` twice",
                query,
                why="a query of `with` is known by its name, in any case",
                remedy="give one of the two another name",
            )


def _group(node: exp.Expr, source: SqlText) -> None:
    if not any(node.args.values()):
        why, remedy = "nothing says what the groups are", "name the columns that make a group"
        raise source.error("`group by` without columns", node, why=why, remedy=remedy)
    if node.args.get("all") and node.expressions:
        _raise_of_all("group by all", node.expressions[0], source)


def _order(node: exp.Expr, source: SqlText) -> None:
    items = [item.this for item in node.expressions]
    if len(items) > 1 and any(isinstance(item, exp.Var) and item.name.upper() == "ALL" for item in items):
        _raise_of_all("order by all", node, source)


def _raise_of_all(what: str, node: exp.Expr, source: SqlText) -> None:
    why, remedy = "it has every column", f"write `{what}` alone, or name the columns"
    raise source.error(f"`{what}` with something else", node, why=why, remedy=remedy)


def _in(node: exp.Expr, source: SqlText) -> None:
    if not any(node.args.get(part) for part in ("expressions", "query", "unnest", "field")):
        why, remedy = "nothing says which values are meant", "write `in (1, 2)`, or `in (select ...)`"
        raise source.error("`in` without a list", node, why=why, remedy=remedy)


def _limit(node: exp.Expr, source: SqlText) -> None:
    options = node.args.get("limit_options")
    for part, what in (("percent", "a percentage in `limit`"), ("with_ties", "`limit ... with ties`")):
        if options is not None and options.args.get(part):
            raise source.unsupported(what, node, "write how many rows are to be given")


def _extreme(node: exp.Expr, source: SqlText) -> None:
    if node.args.get("count") is not None or node.expressions:
        other = "greatest" if isinstance(node, exp.Max) else "least"
        remedy = f"use `order by ... limit` for several rows, and `{other}` for one of several values"
        raise source.unsupported(f"`{node.key}` of two arguments", node, remedy)


def _substring(node: exp.Expr, source: SqlText) -> None:
    if node.args.get("start") is None:
        why, remedy = "nothing says where the part begins", "write `substring(text, start, length)`"
        raise source.error("`substring` of a text alone", node, why=why, remedy=remedy)


def _comparison(node: exp.Expr, source: SqlText) -> None:
    """Refuse `a < b = c`, which the parser takes for `(a < b) = c`."""
    if isinstance(node.parent, exp.Update | exp.OnConflict):  # it sets a column
        return
    inner = next((side for side in (node.this, node.expression) if isinstance(side, _COMPARISONS)), None)
    if inner is not None:
        raise source.error(
            "a comparison of a comparison without parentheses",
            node,
            why="`a < b = c` does not say which of the two is compared first",
            remedy="write `a < b and b = c`, or put one into parentheses",
        )


def _check_arguments(node: exp.Expr, source: SqlText) -> None:
    given = node.meta.get("arguments")
    most = _MOST_BY_NAME.get(node.name.lower()) if isinstance(node, exp.Anonymous) else _MOST_ARGUMENTS.get(type(node))
    if given is None:
        return
    if most is not None and given > most:
        raise source.error(node=node, **too_many_arguments(source.word(node), most, given))
    if given < _LEAST_ARGUMENTS.get(type(node), 0):
        raise source.error(node=node, **too_few_arguments(source.word(node), given))


def _some_argument(node: exp.Expr, source: SqlText) -> None:
    """Refuse `max()`, and `count(distinct)`."""
    of = node.this
    if of is None or (isinstance(of, exp.Distinct) and not of.expressions):
        raise source.error(node=node, **too_few_arguments(source.word(node), 0))


def _values(node: exp.Expr, source: SqlText) -> None:
    for function in node.find_all(exp.AggFunc):
        if function.find_ancestor(exp.Select, exp.Values) is node:
            why, remedy = "a row of `values` is of no table, whose rows it could add up", "write a `select` instead"
            raise source.error(f"`{source.word(function)}` in `values`", function, why=why, remedy=remedy)

    for row in node.expressions:
        named = next((item for item in row.expressions if isinstance(item, exp.Alias)), None)
        if named is not None:
            why, remedy = "a value of a row has no name", "leave the name out, or write the comma before it"
            raise source.error(f"`{named.alias}` behind a value", named, why=why, remedy=remedy)

    if isinstance(node.parent, exp.Insert) and node.args.get("alias") is not None:
        _raise_of_rows(node.args["alias"], source)


def _raise_of_rows(node: exp.Expr, source: SqlText) -> None:
    """Raise the error about rows without a comma between them, which the parser takes for a name and columns."""
    why, remedy = "a comma stands between two rows", "write the comma"
    raise source.error("something behind a row of `values`", node, why=why, remedy=remedy)


def _table_alias(node: exp.Expr, source: SqlText) -> None:
    if isinstance(node.parent, exp.Values) and node.this is None:
        _raise_of_rows(node, source)
    for column in node.args.get("columns") or ():
        if not isinstance(column, exp.Identifier) or source.text[column.meta.get("start", 0)].isdigit():
            why, remedy = "the list says how columns are called, and nothing else of them", "write names alone"
            raise source.error("a list of columns with more than names", column, why=why, remedy=remedy)


def _alias(node: exp.Expr, source: SqlText) -> None:
    if isinstance(node.parent, exp.Paren | exp.Tuple):
        why, remedy = "what stands within parentheses has no name", "write an operator, or a comma, before it"
        raise source.error(f"`{node.alias}` behind a value", node, why=why, remedy=remedy)


def _between(node: exp.Expr, source: SqlText) -> None:
    ends = [part.meta["end"] for part in node.args["low"].walk() if "end" in part.meta]
    starts = [part.meta["start"] for part in node.args["high"].walk() if "start" in part.meta]
    if ends and starts and not re.search(r"\band\b", source.text[max(ends) + 1 : min(starts)], re.IGNORECASE):
        why, remedy = "`and` stands between the lower and the upper bound", "write `between ... and ...`"
        raise source.error("`between` without `and`", node, why=why, remedy=remedy)


def _schema(node: exp.Expr, source: SqlText) -> None:
    """Refuse a list of columns of `insert`, or of what is created as a query, that says more than their names."""
    around = node.parent
    of_query = isinstance(around, exp.Create) and around.args.get("expression") is not None
    if not (of_query or isinstance(around, exp.Insert)):
        return
    more = next((item for item in node.expressions if not isinstance(item, exp.Identifier)), None)
    if more is not None:
        why, remedy = "the list says which columns are meant, and nothing else of them", "write their names alone"
        raise source.error("a list of columns with more than names", more, why=why, remedy=remedy)


def _default(node: exp.Expr, source: SqlText) -> None:
    if isinstance(node.this, exp.Not) and isinstance(node.this.this, exp.Null):
        why, remedy = "`not null` would be the value", "write `not null`, and `default` with a value if there is one"
        raise source.error("`default` without a value", node.parent or node, why=why, remedy=remedy)


def _distinct(node: exp.Expr, source: SqlText) -> None:
    on = node.args.get("on")
    if isinstance(on, exp.Tuple) and not on.expressions:
        why, remedy = "nothing says which rows are alike", "name columns, or write `distinct` alone"
        raise source.error("`distinct on` without columns", node.parent or node, why=why, remedy=remedy)


def _column(node: exp.Expr, source: SqlText) -> None:
    if node.args.get("db") is not None:
        remedy = f"write `{node.args['table'].name}.{node.name}`"
        raise source.unsupported(f"`{node.sql('duckdb')}`, a column with a schema", node, remedy)


def _check_star(node: exp.AggFunc, source: SqlText) -> None:
    """Refuse `*` where a value is meant."""
    inner = node.this
    told_apart = isinstance(inner, exp.Distinct)
    if isinstance(inner, exp.Star) and any(inner.args.values()):
        why, remedy = "`count(*)` counts rows, whatever their columns are", "write `count(*)`, or name a column"
        raise source.error(f"`{source.word(node)}` of some columns of `*`", node, why=why, remedy=remedy)
    if isinstance(node, exp.Count) and not told_apart:
        return
    if any(isinstance(part, exp.Star) for part in (inner.expressions if told_apart else [inner])):
        shown = f"`{source.word(node)}({'distinct ' if told_apart else ''}*)`"
        why, remedy = "`*` stands for rows, which only `count(*)` counts", "name a column"
        raise source.error(shown, node, why=why, remedy=remedy)


# How many arguments functions take for which the parser knows more, of other dialects, or drops the others.
_MOST_ARGUMENTS: dict[type[exp.Expr], int] = {
    **dict.fromkeys((exp.Floor, exp.Ceil, exp.Length, exp.LastDay, exp.CountIf, exp.AnyValue, exp.Mode), 1),
    **dict.fromkeys((exp.Round, exp.Left, exp.Right, exp.Contains, exp.Mod, exp.AddMonths, exp.Trunc, exp.Trim), 2),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc, exp.BitwiseXor, exp.TimeToStr), 2),
    **dict.fromkeys((exp.Substring, exp.Replace, exp.DateDiff, exp.SplitPart, exp.Pad, exp.ArgMax, exp.ArgMin), 3),
}
# How many functions take at least of which the parser makes trees with fewer.
_LEAST_ARGUMENTS: dict[type[exp.Expr], int] = {exp.Replace: 3, exp.SplitPart: 3, exp.ArgMax: 2, exp.ArgMin: 2}
# Those that need one, and of which the parser makes trees without.
_OF_SOMETHING = (
    *(exp.Count, exp.Sum, exp.Avg, exp.Max, exp.Min, exp.Mode),
    *(exp.Floor, exp.Ceil, exp.Abs, exp.Date, exp.Timestamp),
)
_MOST_BY_NAME = {"date_part": 2, "datepart": 2, "weekday": 1, "suffix": 2, "prefix": 2}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CHECKS: dict[type[exp.Expr], Callable[[exp.Expr, SqlText], None]] = {
    exp.Insert: _insert,
    exp.Update: _update,
    exp.Select: _select,
    exp.With: _with,
    exp.Group: _group,
    exp.In: _in,
    exp.Order: _order,
    exp.Limit: _limit,
    exp.Max: _extreme,
    exp.Min: _extreme,
    exp.Substring: _substring,
    exp.Window: check_window,
    **dict.fromkeys(OVER_ONLY, check_over),
    exp.Values: _values,
    exp.Schema: _schema,
    exp.TableAlias: _table_alias,
    exp.Alias: _alias,
    exp.Between: _between,
    exp.DefaultColumnConstraint: _default,
    exp.Distinct: _distinct,
    exp.Column: _column,
    **dict.fromkeys(_COMPARISONS, _comparison),
}
