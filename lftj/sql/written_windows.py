"""Window functions as they are written: what each reads, its frame, and those that are written by others.

What is on the left is written as on the right before it is translated:

    over w                      the window that `window w as (...)` defines
    f(x) filter (where c)       f(case when c then x end)
    lag(x, n, d ignore nulls)   coalesce(lag(x, n ignore nulls), d)
    lag(x, n, d)                case when row_number() - n is a place in the partition then lag(x, n) else d end,
                                where d is cast to the type of x
    percent_rank, cume_dist     ranks and counts of peers, by the count of the partition
    distinct on (a) order by b  qualify row_number() over (partition by a order by b) = 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from lftj.language.window_functions import DISTINCT
from lftj.sql.conversions import InTypeOf
from lftj.sql.ordering import position_of
from lftj.sql.places import SqlText, standing_for
from lftj.sql.stars import star_of
from lftj.sql.window_checks import check_based, without_nulls

# Which one, at which fraction, is said by the type of what it is of.
QUANTILE = "quantile"
_NAMES: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.Ntile: "ntile",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
    exp.NthValue: "nth",
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.AnyValue: "min",
    exp.Max: "max",
    exp.Mode: "mode",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Median: QUANTILE,
    exp.Quantile: QUANTILE,
    exp.PercentileCont: QUANTILE,
    exp.PercentileDisc: QUANTILE,
}
# Farther away than any row.
FARTHEST = 1 << 40
KNOWN = (
    "row_number, rank, dense_rank, percent_rank, cume_dist, ntile, lag, lead, first_value, last_value, nth_value, "
    "sum, count (of distinct values, too), avg, min, max, any_value, mode, median, quantile_cont, quantile_disc, "
    "var_pop, var_samp, stddev_pop, stddev_samp, bool_and, bool_or and count_if"
)


class WrittenBound(NamedTuple):
    """An end of a frame of values: the rows whose `value` is not beyond the `bound` of the row itself."""

    value: exp.Expr
    bound: exp.Expr


@dataclass(frozen=True, slots=True)
class WrittenWindow:
    """A window function. `argument`: what it takes · the others as in `language.window_functions.WindowFunction`."""

    node: exp.Window
    name: str
    argument: exp.Expr | None
    number: int
    partition: tuple[exp.Expr, ...]
    order: tuple[exp.Ordered, ...]
    rows: bool
    low: int | WrittenBound | None
    high: int | WrittenBound | None
    skips_nulls: bool

    @property
    def reads(self) -> Iterator[exp.Expr]:
        """The expressions that it needs of each row."""
        yield from self.partition
        yield from (item.this for item in self.order)
        if self.argument is not None:
            yield self.argument
        for end in (self.low, self.high):
            if isinstance(end, WrittenBound):
                yield from end

    @staticmethod
    def of(node: exp.Window, text: SqlText) -> WrittenWindow:
        """A function as it stands in a select that was `written`."""
        function, skips_nulls = node.this, isinstance(node.this, exp.IgnoreNulls)
        if skips_nulls:
            function = function.this
        name = _NAMES.get(type(function), "")
        taken = function.args.get("this") if name else None
        if name == "count" and isinstance(taken, exp.Distinct) and len(taken.expressions) == 1:
            name, taken = DISTINCT, taken.expressions[0]
        if not name or isinstance(taken, exp.Distinct) or (name == "count" and function.expressions):
            asked = function.this if isinstance(function, exp.Filter) else function
            raise text.unsupported(f"`{text.call(asked)}` over a window", node, f"lftj has {KNOWN}")
        number = 0
        if name == "ntile":
            number, taken = _number(taken, node, text, least=1), None
        elif name in ("lag", "lead"):
            number = _number(function.args.get("offset"), node, text, least=None, default=1)
        elif name == "nth":
            number = _number(function.args.get("offset"), node, text, least=1)
        order = node.args.get("order")
        rows, low, high = _frame(node, text)
        return WrittenWindow(
            node,
            name,
            None if taken is None or isinstance(taken, exp.Star) else taken,
            number,
            tuple(node.args.get("partition_by") or ()),
            tuple(order.expressions) if order is not None else (),
            rows,
            low,
            high,
            # One that is no row away is the row itself.
            skips_nulls and not (name in ("lag", "lead") and number == 0),
        )


def _number(
    node: exp.Expr | None, window: exp.Expr, text: SqlText, *, least: int | None, default: int | None = None
) -> int:
    sign = -1 if isinstance(node, exp.Neg) else 1
    inner = node.this if isinstance(node, exp.Neg) else node
    if inner is None and default is not None:
        return default
    if not isinstance(inner, exp.Literal) or not inner.is_int or (least is not None and sign * int(inner.this) < least):
        what = "a number that is written out" if least is None else f"a number from {least} on that is written out"
        raise text.unsupported(f"`{window.sql('duckdb')}`", window, f"write {what}")
    return sign * min(int(inner.this), FARTHEST)


def _frame(node: exp.Window, text: SqlText) -> tuple[bool, int | WrittenBound | None, int | WrittenBound | None]:
    """(whether the frame counts rows, where it begins and ends, from the row)."""
    spec, ordered = node.args.get("spec"), node.args.get("order") is not None
    if spec is None:
        return False, None, 0 if ordered else None
    rows = str(spec.args.get("kind")).upper() == "ROWS"
    if spec.args.get("exclude") is not None:
        raise text.unsupported("`exclude` in a window", node)
    low, high = (_end(spec, side, node, text) for side in ("start", "end"))
    if not (ordered or rows):  # all rows are peers
        low, high = None, None
    return rows, low, high


def _end(spec: exp.Expr, side: str, node: exp.Window, text: SqlText) -> int | WrittenBound | None:
    end = spec.args.get(side)
    shown = str(end).upper()
    if end is None or shown == "CURRENT ROW":
        return 0
    if shown == "UNBOUNDED":
        return None
    before = str(spec.args.get(f"{side}_side")).upper() == "PRECEDING"
    if str(spec.args.get("kind")).upper() == "RANGE":
        return _by_value(end, before, node, text)
    number = _number(end, node, text, least=0)
    return -number if before else number


def _by_value(away: exp.Expr, before: bool, node: exp.Window, text: SqlText) -> WrittenBound:
    """The end of a frame that is so far away from the value which the rows are ordered by."""
    order: list[exp.Expr] = node.args["order"].expressions if node.args.get("order") is not None else []
    if len(order) != 1:
        raise text.error(
            f"a range of values in a window that is ordered by {f'{len(order)} expressions' if order else 'nothing'}",
            node,
            why="how far away a row is, one value says that all rows are ordered by",
            remedy="order the window by one expression, or count `rows`",
        )
    (item,) = order
    distance = _length(away)
    if distance is None:
        raise text.unsupported(
            f"`{text.call(away)}` as the end of a range",
            away,
            "write a number out, or an interval as in `interval '1' hour`, from 0 on",
        )
    back = before != bool(item.args.get("desc"))
    value = exp.paren(item.this.copy())
    bound = (exp.Sub if back else exp.Add)(this=value, expression=distance)
    return WrittenBound(InTypeOf(this=value.copy(), expression=bound.copy()), bound)


def _length(node: exp.Expr) -> exp.Expr | None:
    """A number, or an interval, that is written out and not below 0; None of any other expression."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and node.to.is_type("interval") and node.this.is_string:
        node = exp.Interval(this=node.this.copy())
    if isinstance(node, exp.Interval):
        count = node.this.unnest()
        return node.copy() if isinstance(count, exp.Literal) and "-" not in count.name else None
    return node.copy() if isinstance(node, exp.Literal) and not node.is_string else None


# What is written by others


def written(select: exp.Select, text: SqlText, is_column: Callable[[exp.Column], bool]) -> exp.Select:
    """The select, its windows with their definitions, and by functions that have values of their own.

    `is_column`: whether a name is a column of what it reads; else it may be that of something that it gives out.
    """
    made = select.copy()
    aliases = {node.alias.casefold(): node.this for node in made.expressions if isinstance(node, exp.Alias)}

    def unaliased(node: exp.Expr) -> exp.Expr:
        named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in aliases
        if not named or is_column(node):  # type: ignore[arg-type]
            return node
        return exp.paren(aliases[node.name.casefold()].copy())

    defined: dict[str, exp.Expr] = {}
    for node in made.args.get("windows") or ():
        _define(node, defined)
        defined[node.this.name.casefold()] = node
    qualify, group = made.args.get("qualify"), made.args.get("group")
    if qualify is not None:
        qualify.set("this", qualify.this.transform(unaliased))
    if group is not None:
        given = [node.unalias() for node in made.expressions]
        group.set("expressions", [unaliased(_at(node, given, text)) for node in group.expressions])
    for part in [*made.expressions, qualify, made.args.get("order")]:
        for node in [] if part is None else list(part.find_all(exp.Window)):
            if _own(node, made):
                if node.args.get("alias") is not None:
                    check_based(node, defined, text)
                _define(node, defined)
                plain = _by_others(node)
                if plain is not node:
                    node.replace(plain)
    return made


def _own(node: exp.Expr, select: exp.Select) -> bool:
    """Whether a node stands in the select itself, and not in a query within."""
    return node.find_ancestor(exp.Select) is select


def _at(node: exp.Expr, given: Sequence[exp.Expr], text: SqlText) -> exp.Expr:
    """What a position stands for, among what is given out; any other node is itself."""
    position = position_of(node, len(given), text)
    if position is None:
        return node
    if any(star_of(one) is not None for one in given[: position + 1]):
        raise text.unsupported("a position behind `*`", node, "write the name of the column")
    return given[position].copy()


def without_distinct_on(query: exp.Expr, text: SqlText) -> exp.Expr:
    """The query, its `distinct on` written by `qualify`: before its order, which says what comes first, is put away."""
    distinct = query.args.get("distinct") if isinstance(query, exp.Select) else None
    on = distinct.args.get("on") if distinct is not None else None
    if on is None:
        return query
    made, order = query.copy(), query.args.get("order")
    given = [node.unalias() for node in made.expressions]
    aliases = {node.alias.casefold(): node.this for node in made.expressions if isinstance(node, exp.Alias)}

    def meant(node: exp.Expr) -> exp.Expr:
        """What is given out at a position, or under a name that stands alone."""
        named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in aliases
        return aliases[node.name.casefold()].copy() if named else _at(node, given, text).copy()

    ordered = [item.copy() for item in order.expressions] if order is not None else []
    for item in ordered:
        item.set("this", meant(item.this))
    window = exp.Window(
        this=exp.RowNumber(),
        partition_by=[meant(node) for node in (on.expressions if isinstance(on, exp.Tuple) else [on])],
        order=exp.Order(expressions=ordered) if ordered else None,
    )
    first = exp.EQ(this=window, expression=exp.Literal.number(1))
    qualify = made.args.get("qualify")
    made.set("distinct", None)
    made.set("qualify", exp.Qualify(this=first if qualify is None else exp.and_(qualify.this, first)))
    return made


def _define(node: exp.Expr, defined: Mapping[str, exp.Expr]) -> None:
    """Give a window that names another what that one says."""
    named = node.args.get("alias")
    if named is None:
        return
    node.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        said = defined[named.name.casefold()].args.get(part)
        if said and not node.args.get(part):
            node.set(part, [n.copy() for n in said] if isinstance(said, list) else said.copy())


def _by_others(node: exp.Window) -> exp.Expr:
    """What the value of a window is where other functions say it; the window itself where not."""
    function = without_nulls(node.this)
    node.set("this", function.this if isinstance(function, exp.RespectNulls) else function)
    function = node.this
    filtered = without_nulls(function.this) if isinstance(function, exp.Filter) else None
    distinct = filtered is not None and isinstance(filtered.this, exp.Distinct)
    if filtered is not None and type(filtered) in _NAMES and (not distinct or isinstance(filtered, exp.Count)):
        condition, function = function.expression.this, filtered
        for taken in [*function.this.expressions] if distinct else [function.this]:
            value = exp.Literal.number(1) if isinstance(taken, exp.Star) else taken
            taken.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())]))
        node.set("this", function)
    match function:
        case exp.Lag() | exp.Lead() if function.args.get("default") is not None:
            return _with_default(node, function)
        case exp.IgnoreNulls() if function.this.args.get("default") is not None:
            return _with_default(node, function.this)
        case exp.PercentRank():
            one, count = exp.Literal.number(1), over(node, exp.Count(this=exp.Star()), ordered=False)
            rank = exp.Sub(this=over(node, exp.Rank()), expression=one)
            others = exp.paren(exp.Sub(this=count, expression=one.copy()))
            alone = exp.EQ(this=count.copy(), expression=one.copy())
            return _case(alone, exp.Literal.number("0.0"), _ratio(exp.paren(rank), others))
        case exp.CumeDist():
            up_to, every = (over(node, exp.Count(this=exp.Star()), ordered=ordered) for ordered in (True, False))
            up_to.set("spec", None)
            return exp.paren(_ratio(up_to, every))
    return node


def over(node: exp.Window, function: exp.Expr, *, ordered: bool = True) -> exp.Window:
    """Another function over the same window; not `ordered`: over the whole partition."""
    made = node.copy()
    made.set("this", function)
    if not ordered:
        made.set("order", None)
        made.set("spec", None)
    return made


def _ratio(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Div(this=one, expression=other)


def _case(condition: exp.Expr, value: exp.Expr, otherwise: exp.Expr | None = None) -> exp.Expr:
    return exp.paren(exp.Case(ifs=[exp.If(this=condition, true=value)], default=otherwise))


def _with_default(node: exp.Window, function: exp.Expr) -> exp.Expr:
    """A neighbour where there is one in the partition, else the default in its type, as in DuckDB."""
    default, plain = function.args["default"], function.copy()
    plain.set("default", None)
    offset = exp.paren((function.args.get("offset") or exp.Literal.number(1)).copy())
    if node.this is not function and offset.this != exp.Literal.number(0):
        near = over(node, exp.IgnoreNulls(this=plain))
        other = InTypeOf(this=exp.paren(default.copy()), expression=near.copy())
        return exp.paren(standing_for(node, exp.Coalesce(this=near, expressions=[other])))
    sign = exp.Sub if isinstance(function, exp.Lag) else exp.Add
    there = exp.Between(
        this=exp.paren(sign(this=over(node, exp.RowNumber()), expression=offset)),
        low=exp.Literal.number(1),
        high=over(node, exp.Count(this=exp.Star()), ordered=False),
    )
    near = over(node, plain)
    made = _case(there, near, InTypeOf(this=exp.paren(default.copy()), expression=near.copy()))
    standing_for(node, made.this)
    return made
