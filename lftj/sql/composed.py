"""Functions that others say.

sign(x)              case when x > 0 then 1 when x < 0 then -1 when x = 0 then 0 end
concat_ws(s, x, y)   what is behind the first s in concat(s || x, s || y), which leaves null out
last_day(d)          add_months(cast(date_trunc('year', d) as date) + 30, month(d) - 1)
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
    """The last day of the month of a time: that which takes the place of January, 31."""
    year = in_place_of(node, exp.TimestampTrunc(this=node.this.copy(), unit=exp.var("YEAR")))
    january = exp.Add(this=exp.Cast(this=year, to=exp.DataType.build("date")), expression=exp.Literal.number(30))
    month = in_place_of(node, exp.Month(this=node.this.copy()))
    later = exp.Sub(this=month, expression=exp.Literal.number(1))
    return of.value(standing_for(node, exp.AddMonths(this=january, expression=later)))
