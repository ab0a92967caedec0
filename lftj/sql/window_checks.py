"""Where window functions may stand, what they may have, and which frames there are.

All is told of the tree of a statement, before anything is translated:

    sum(rank() over ()), rank() over (order by sum(x) over ())      a window function within another, or in an aggregate
    ... where rank() over () = 1, update t set a = rank() over ()   elsewhere than in what a select gives out
    lag(x) filter (where c), rank(x), sum(x ignore nulls)           parts that the function does not have
    rows between 1 following and current row                        a frame that ends before it begins
"""

from __future__ import annotations

from sqlglot import exp

from lftj.sql.places import SqlText

_WITHOUT_ARGUMENTS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
# Those that have a meaning over a window only.
OVER_ONLY = (*_WITHOUT_ARGUMENTS, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
# Those that look at single rows; to the parser most are aggregates, too.
_OF_ROWS = (*OVER_ONLY, exp.First, exp.Last)
# Of these, the ones that have a value of a row.
_OF_VALUES = (exp.Lag, exp.Lead, exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.NthValue)
_CLAUSES = (exp.Where, exp.Group, exp.Having, exp.Join, exp.From, exp.Limit, exp.Offset)
_PLACES = {"unbounded preceding": 0, "preceding": 1, "current row": 2, "following": 3, "unbounded following": 4}


def check_window(node: exp.Expr, source: SqlText) -> None:
    """Raise an error about a window function, or the definition of a window, that SQL does not have."""
    _check_frame(node, source)
    if node.arg_key != "windows":
        _check_place(node, source)
        _check_function(node, source)


def check_over(node: exp.Expr, source: SqlText) -> None:
    """Raise an error about a function that stands without the window that it looks at."""
    place = node.parent
    while isinstance(place, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        place = place.parent
    if not isinstance(place, exp.Window):
        word = source.word(node)
        raise source.error(
            f"`{word}` without `over`",
            node,
            why="its value depends on the rows beside one, in an order",
            remedy=f"write `{word}(...) over (order by ...)`",
        )


def check_definitions(select: exp.Expr, source: SqlText) -> None:
    """Raise an error about windows of one select that are defined twice, or by others that come later."""
    known: dict[str, exp.Expr] = {}
    for node in select.args.get("windows") or ():
        name, base = node.this.name.casefold(), node.args.get("alias")
        if name in known:
            raise source.error(
                f"`window` defines `{node.this.name}` twice",
                node,
                why="a window is known by its name, in any case",
                remedy="give one of the two another name",
            )
        if base is not None:
            check_based(node, known, source)
        known[name] = node


def check_based(node: exp.Expr, known: dict[str, exp.Expr], source: SqlText) -> None:
    """Raise an error about a window that names another, of those `known`, if that one is not there or it changes it."""
    name = node.args["alias"].name
    base = known.get(name.casefold())
    if base is None:
        raise source.error(
            f"unknown window `{name}`",
            node,
            why="no `window` of the select defines it before",
            remedy="write it out, or define it: `window w as (partition by ... order by ...)`",
        )
    for part, shown in (("partition_by", "partition by"), ("order", "order by")):
        if node.args.get(part) and (base.args.get(part) or part == "partition_by"):
            raise source.error(
                f"`{shown}` of a window that `{name}` defines",
                node,
                why="what a named window says cannot be said otherwise",
                remedy="write the window out",
            )


def _check_place(node: exp.Expr, source: SqlText) -> None:
    inner: exp.Expr = node
    place = node.parent
    while place is not None and not isinstance(place, exp.Select):
        what = ""
        if isinstance(place, exp.Window) or isinstance(place.parent, exp.Window):
            what = "a window function within another"
        elif isinstance(place, exp.AggFunc | exp.Filter):
            what = "a window function within an aggregate"
        elif isinstance(place, exp.Star):
            what = "a window function in `replace`"
        elif isinstance(place, _CLAUSES):
            what = f"a window function stands in `{place.key.rstrip('_')}`"
        if what:
            raise source.error(
                what,
                node,
                why="its value depends on the rows that the select gives out",
                remedy="give it out in a subquery of `from`, or ask about it with `qualify`",
            )
        inner, place = place, place.parent
    if place is None or inner.arg_key not in ("expressions", "qualify", "order", "distinct"):
        raise source.error(
            "a window function outside of a select",
            node,
            why="its value depends on the rows that a select gives out",
            remedy="give it out in a `select`, and take its rows from there",
        )


def without_nulls(function: exp.Expr) -> exp.Expr:
    """`any_value(x)`, which the parser reads as `any_value(x) ignore nulls`; any other function as it is."""
    said = isinstance(function, exp.IgnoreNulls) and isinstance(function.this, exp.AnyValue)
    return function.this if said else function


def _check_function(node: exp.Expr, source: SqlText) -> None:
    function = without_nulls(node.this)
    about_nulls = isinstance(function, exp.IgnoreNulls | exp.RespectNulls)
    shown = source.word(function.this) if about_nulls else source.call(function)
    if isinstance(function, exp.Filter):
        folded = without_nulls(function.this)
        if not isinstance(folded, exp.AggFunc) or isinstance(folded, _OF_ROWS):
            raise source.error(
                "`filter` of what is no aggregate",
                node,
                why="only an aggregate folds rows, of which some may be left out",
                remedy="leave rows out in a subquery of `from`",
            )
        return
    if about_nulls:
        if not isinstance(function.this, _OF_VALUES):
            raise source.unsupported(
                f"`{'ignore' if isinstance(function, exp.IgnoreNulls) else 'respect'} nulls` of `{shown}`",
                node,
                "leave it out: aggregates pass over null, and ranks look at rows",
            )
        function = function.this
    if isinstance(function, _WITHOUT_ARGUMENTS) and any(function.args.values()):
        raise source.unsupported(f"arguments of `{source.word(function)}`", node, "order the window by them")
    given = (function.this, *function.expressions) if isinstance(function, exp.Func) else ()
    if any(isinstance(part, exp.Order) for part in given):
        raise source.unsupported(f"`order by` in `{shown}`", node, "order the window")


def _check_frame(node: exp.Expr, source: SqlText) -> None:
    spec = node.args.get("spec")
    if spec is None:
        return
    for side in ("start", "end"):
        given = spec.args.get(side)
        told = given is None or spec.args.get(f"{side}_side") or str(given).upper() == "CURRENT ROW"
        if not told or (given is None and side == "start"):
            raise source.error(
                "a frame without its ends" if given is None else f"`{str(given).lower()}` as the end of a frame",
                node,
                why="nothing says whether rows before the current one are meant, or behind it",
                remedy="write `between 1 preceding and 1 following`, `current row` or `unbounded preceding`",
            )
    start, end = (_end(spec, side) for side in ("start", "end"))
    end = "current row" if spec.args.get("end") is None else end
    if start == "unbounded following" or end == "unbounded preceding" or _PLACES[start] > _PLACES[end]:
        raise source.error(
            f"a frame from {start} to {end}",
            node,
            why="it ends before it begins",
            remedy="write the earlier end first, as in `between 1 preceding and current row`",
        )


def _end(spec: exp.Expr, side: str) -> str:
    place = str(spec.args.get(side)).lower()
    if place == "current row":
        return place
    direction = str(spec.args.get(f"{side}_side") or "preceding").lower()
    return f"unbounded {direction}" if place == "unbounded" else direction
