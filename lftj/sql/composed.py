"""Functions that others say.

sign(x)              case when x > 0 then 1 when x < 0 then -1 when x = 0 then 0 end
concat_ws(s, x, y)   what is behind the first s in concat(s || x, s || y), which leaves null out
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


def joined_with(of: Translator, node: exp.Expr) -> list[Case]:
    """`concat_ws(s, x, y)`: texts with one between, which is written out; null is left out."""
    separator, *parts = node.expressions
    if not (isinstance(separator, exp.Literal) and separator.is_string) or not parts:
        raise of.scope.source.unsupported(
            f"`{of.scope.source.call(node)}`", node, "write the text between out, and a value behind it"
        )
    pairs = [exp.DPipe(this=separator.copy(), expression=part.copy()) for part in parts]
    behind = exp.Literal.number(len(separator.name) + 1)
    made = exp.Substring(this=exp.Concat(expressions=pairs), start=behind)
    return of.value(standing_for(node, made))


def last_day(of: Translator, node: exp.Expr) -> list[Case]:
    """The last day of the month of a time."""
    month = in_place_of(node, exp.TimestampTrunc(this=node.this.copy(), unit=exp.var("MONTH")))
    later = exp.Add(this=month, expression=_interval("MONTH"))
    day = exp.Sub(this=later, expression=_interval("DAY"))
    return of.value(standing_for(node, exp.Cast(this=day, to=exp.DataType.build("date"))))


def _interval(unit: str) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
