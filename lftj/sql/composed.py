"""Functions that others say.

sign(x)              case when x > 0 then 1 when x < 0 then -1 when x = 0 then 0 end
trunc(x)             case when x < 0 then ceil(x) else floor(x) end
concat_ws(s, x, y)   what is behind the first s in concat(case when x is not null then concat(s, x) end, ...)
last_day(d)          cast(date_trunc('month', d) + interval 1 month - interval 1 day as date)
"""

from __future__ import annotations

from sqlglot import exp

from lftj.sql.cases import Translator
from lftj.sql.places import in_place_of, standing_for
from lftj.sql.scope import Case


def sign(of: Translator, node: exp.Expr) -> list[Case]:
    """Whether a number is greater than 0, less, or 0: 1, -1 or 0."""
    zero, one = exp.Literal.number(0), exp.Literal.number(1)
    signs = ((exp.GT, one), (exp.LT, exp.Neg(this=one.copy())), (exp.EQ, zero))
    ifs = [
        exp.If(this=comparison(this=node.this.copy(), expression=zero.copy()), true=value)
        for comparison, value in signs
    ]
    return of.value(standing_for(node, exp.Case(ifs=ifs)))


def truncated(of: Translator, node: exp.Expr) -> list[Case]:
    """A number without what is behind its point."""
    if node.args.get("decimals") is not None:
        raise of.scope.source.unsupported("`trunc` to digits", node, "use `round`, or `trunc(x * 100) / 100`")
    below = exp.LT(this=node.this.copy(), expression=exp.Literal.number(0))
    ifs = [exp.If(this=below, true=exp.Ceil(this=node.this.copy()))]
    return of.value(standing_for(node, exp.Case(ifs=ifs, default=exp.Floor(this=node.this.copy()))))


def joined_with(of: Translator, node: exp.Expr) -> list[Case]:
    """`concat_ws(s, x, y)`: texts with one between, which is written out; null is left out."""
    separator, *parts = node.expressions
    if not (isinstance(separator, exp.Literal) and separator.is_string) or not parts:
        raise of.scope.source.unsupported(
            f"`{of.scope.source.call(node)}`", node, "write the text between out, and a value behind it"
        )
    there = (part.copy().is_(exp.null()).not_() for part in parts)
    pairs = (exp.Concat(expressions=[separator.copy(), part.copy()]) for part in parts)
    cases = [exp.Case(ifs=[exp.If(this=is_there, true=pair)]) for is_there, pair in zip(there, pairs, strict=True)]
    behind = exp.Literal.number(len(separator.name) + 1)
    made = exp.Substring(this=exp.Concat(expressions=cases), start=behind)
    return of.value(standing_for(node, made))


def last_day(of: Translator, node: exp.Expr) -> list[Case]:
    """The last day of the month of a time."""
    month = in_place_of(node, exp.TimestampTrunc(this=node.this.copy(), unit=exp.var("MONTH")))
    later = exp.Add(this=month, expression=_interval("MONTH"))
    day = exp.Sub(this=later, expression=_interval("DAY"))
    return of.value(standing_for(node, exp.Cast(this=day, to=exp.DataType.build("date"))))


def _interval(unit: str) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
