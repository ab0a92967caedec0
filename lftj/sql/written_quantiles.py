"""Quantiles: `median`, `quantile_cont`, `quantile_disc`, and `percentile_cont(p) within group (order by x)`.

`mode() within group (order by x)`, which is `mode(x)`, is written so, too.

    median(x)        @v.quantile_cont1[k] = quantile_cont(0.5) x : { t(k, x, id) }

A median of what has no middle between two, such as texts, is the lesser of the two. Of dates it is a timestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, FRACTION_DIGITS, with_fraction
from lftj.language.types import DATE
from lftj.sql.conversions import shown
from lftj.sql.places import SqlText, in_place_of, standing_for
from lftj.sql.scope import Case
from lftj.sql.stars import output_name
from lftj.values.type_table import family_of

CONT, DISC = "quantile_cont", "quantile_disc"
# How the standard writes them, where what is ordered by is what is taken.
_WITHIN = (exp.PercentileCont, exp.PercentileDisc, exp.Mode)


def without_within_group(query: exp.Expr, text: SqlText) -> exp.Expr:
    """The query with percentiles as functions of a value and a fraction; columns keep their names."""
    if query.find(exp.WithinGroup) is None:
        return query
    made = query.copy()
    for node in [*made.find_all(exp.WithinGroup)]:
        plain = _as_function(node, text)
        whole: exp.Expr = node.parent if isinstance(node.parent, exp.Filter) else node
        named = whole.arg_key == "expressions" and isinstance(whole.parent, exp.Select)
        name = output_name(whole) if named else ""
        node.replace(plain)
        whole = plain if whole is node else whole
        if named:
            whole.replace(in_place_of(whole, exp.alias_(whole.copy(), name, quoted=True)))
    return made


def _as_function(node: exp.WithinGroup, text: SqlText) -> exp.Expr:
    function = node.this
    of_mode = isinstance(function, exp.Mode)
    if not isinstance(function, _WITHIN) or (of_mode and function.this is not None):
        remedy = "leave `within group` out" if of_mode else "use percentile_cont, percentile_disc or mode"
        raise text.unsupported(f"`{text.call(function)}` within a group", node, remedy)
    by, *more = node.expression.expressions
    if more:
        raise text.unsupported(f"`{text.call(function)}` of several values", node, "order by one value")
    if by.args.get("desc") and not isinstance(function, exp.PercentileCont):
        remedy = "order upwards" + ", by the rest of the fraction" * isinstance(function, exp.PercentileDisc)
        raise text.unsupported(f"`{text.call(function)}` in descending order", node, remedy)
    if of_mode:
        return standing_for(node, exp.Mode(this=by.this.copy()))
    fraction: exp.Expr = function.this.copy()
    if by.args.get("desc"):
        fraction = in_place_of(function.this, exp.Sub(this=exp.Literal.number(1), expression=exp.paren(fraction)))
    made: exp.Expr = type(function)(this=by.this.copy(), expression=fraction)
    return standing_for(node, made)


def taken_as(node: exp.Expr, type_: str) -> tuple[str, exp.Expr]:
    """(the aggregate without its fraction, what it takes) of a quantile of values of a type."""
    taken = node.this
    domain = AGGREGATES[CONT].operand
    if isinstance(node, exp.Quantile | exp.PercentileDisc):
        return DISC, taken
    if type_ == DATE:
        inner = taken.expressions[0] if isinstance(taken, exp.Distinct) else taken
        cast = in_place_of(inner, exp.Cast(this=inner.copy(), to=exp.DataType.build("timestamp")))
        return CONT, cast
    if isinstance(node, exp.Median) and family_of(type_) not in domain:
        return DISC, taken
    return CONT, taken


def check_between(node: exp.Expr, type_: str, source: SqlText) -> None:
    """Refuse what lies between two values that have nothing between them."""
    if family_of(type_) not in AGGREGATES[CONT].operand:
        raise source.error(
            f"`{source.call(node)}` of {shown(type_)}",
            node,
            why="only numbers, times and intervals have values between two",
            remedy="use `quantile_disc`, which takes one of the values",
        )


def fraction_given(node: exp.Expr, source: SqlText) -> exp.Expr | None:
    """The fraction that is asked for; None of a median. Raises `ProgramError` for a list of them."""
    if isinstance(node, exp.Median):
        return None
    given = node.args.get("quantile" if isinstance(node, exp.Quantile) else "expression")
    assert isinstance(given, exp.Expr)
    if isinstance(given, exp.Array):
        raise source.unsupported(f"`{source.word(node)}` with a list of fractions", given, "write a quantile for each")
    return given


def with_fraction_of(op: str, given: exp.Expr | None, cases: Sequence[Case], source: SqlText) -> str:
    """The aggregate with its fraction, whose value has `cases`."""
    if given is None:
        return f"{op}(0.5)"
    term = cases[0].term if len(cases) == 1 else None
    value = term.value if isinstance(term, ast.Constant) else None
    known = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    made = with_fraction(op, f"{Decimal(str(value)):f}") if known else ""
    if not made:
        raise source.error(
            f"`{given.sql('duckdb')}` as the fraction of a quantile",
            given,
            why=f"it is a number from 0 to 1 that is written out, with {FRACTION_DIGITS} digits at most",
            remedy="write one, as in `quantile_cont(x, 0.95)`",
        )
    return made
