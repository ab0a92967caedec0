"""Intervals, and arithmetic of times.

An interval has months, which are no length of time, and a length. One of months stands next to a time only, where it
becomes `add_months`, or is computed if the time is a constant; any other is a duration.

    date '1995-01-31' + interval '1' month      the constant 1995-02-28 00:00:00: as in DuckDB, a timestamp
    ordered + interval '90' day                 midnight(ordered) + @90d
    ordered + 90, shipped - ordered             a date, and whole days
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import DATE, DURATION, NUMBER, TIMESTAMP
from lftj.sql.cases import Known, Translator, computed, plain
from lftj.sql.conversions import call, shown
from lftj.sql.scope import Case
from lftj.sql.whole_numbers import multiplied, number
from lftj.values.type_table import family_of

_MONTHS = {"MONTH": 1, "MON": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200}
# Those of a calendar of 10,000 years, and a few more.
_MOST_MONTHS, _MOST_SECONDS = 1e6, 1e12
_LENGTHS = {
    "WEEK": dt.timedelta(weeks=1),
    "DAY": dt.timedelta(days=1),
    "HOUR": dt.timedelta(hours=1),
    "MINUTE": dt.timedelta(minutes=1),
    "SECOND": dt.timedelta(seconds=1),
    "MILLISECOND": dt.timedelta(milliseconds=1),
    "MICROSECOND": dt.timedelta(microseconds=1),
}
_PART = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_DAY = ast.Constant(dt.timedelta(days=1), DURATION)


class SqlInterval(NamedTuple):
    """A constant interval."""

    months: int
    length: dt.timedelta


def constant_interval(of: Translator, node: exp.Expr) -> SqlInterval | None:
    """The interval that an expression of constants is; None if it is no such expression."""
    node = plain(node)
    if isinstance(node, exp.Neg):
        inner = constant_interval(of, node.this)
        return inner and SqlInterval(-inner.months, -inner.length)
    if isinstance(node, exp.Add | exp.Sub):
        months, length = 0, dt.timedelta()
        while isinstance(node, exp.Add | exp.Sub):  # no recursion to the left, where a long sum is deep
            last = constant_interval(of, node.expression)
            if last is None:
                return None
            sign = 1 if isinstance(node, exp.Add) else -1
            months, length = months + sign * last.months, length + sign * last.length
            node = plain(node.this)
        first = constant_interval(of, node)
        return first and SqlInterval(first.months + months, first.length + length)
    if not isinstance(node, exp.Interval):
        return None
    count, unit = plain(node.this), node.args.get("unit")
    sign = 1
    while isinstance(count, exp.Neg):
        count, sign = plain(count.this), -sign
    if not isinstance(count, exp.Literal):
        return None
    text = count.name if unit is None else f"{count.name} {unit.name}"
    months, length, at = 0, dt.timedelta(), 0
    while found := _PART.match(text, at):
        at, number, name = found.end(), float(found[1]), _unit(of, found[2], node)
        if name in _MONTHS and number.is_integer() and abs(number) <= _MOST_MONTHS:
            months += int(number) * _MONTHS[name]
        elif name in _LENGTHS and abs(number) * _LENGTHS[name].total_seconds() < _MOST_SECONDS:
            length += number * _LENGTHS[name]
        elif name in _LENGTHS or number.is_integer() or number > _MOST_MONTHS:
            raise of.scope.source.error(
                f"`{found[0].strip()[:40]}` is longer than the calendar",
                node,
                why="dates are of the years 1 to 9999",
                remedy="give a shorter interval",
            )
        else:
            raise of.scope.source.unsupported("a part of a month", node, "give whole months, or days")
    if at == 0 or text[at:].strip():
        raise of.scope.source.error(
            f"`{text}` is no interval",
            node,
            why="an interval is a number and a unit, as in `interval '3' month`",
            remedy="correct the text",
        )
    return SqlInterval(sign * months, sign * length)


def _unit(of: Translator, text: str, node: exp.Expr) -> str:
    name = text.upper()
    for known in (name, name.removesuffix("S"), "CENTURY" if name == "CENTURIES" else name):
        if known in _MONTHS or known in _LENGTHS:
            return known
    raise of.scope.source.error(
        f"`{text.lower()}` is no unit of time",
        node,
        why="an interval counts years, quarters, months, weeks, days, hours, minutes, seconds or parts of these",
        remedy="give one of these units",
    )


def interval_value(of: Translator, node: exp.Expr) -> list[Case]:
    """An interval as a value of its own: a duration."""
    found = constant_interval(of, node)
    if found is not None:
        if found.months:
            raise of.scope.source.unsupported(
                "an interval of months as a value", node, "add it to a date or a timestamp, or count days"
            )
        return [Case((), ast.Constant(found.length, DURATION), DURATION, nullable=False)]
    name = _unit_of(of, node)
    if name in _MONTHS:
        raise of.scope.source.unsupported(
            "an interval of months as a value", node, "add it to a date or a timestamp, or count days"
        )
    return computed([of.value(node.this)], lambda v: (_times(of, v[0], _LENGTHS[name], node), DURATION))


def _unit_of(of: Translator, node: exp.Expr) -> str:
    unit = node.args.get("unit")
    if unit is None:
        raise of.scope.source.unsupported("an interval without a unit", node, "write `interval (n) day`")
    return _unit(of, unit.name, node)


def _times(of: Translator, count: Known, unit: dt.timedelta, node: exp.Expr) -> ast.Term:
    if count.type != NUMBER:
        raise of.scope.source.unsupported("an interval of a number that is not whole", node, "cast it to bigint")
    return call("*", DURATION, count.term, ast.Constant(unit, DURATION))


def with_interval(of: Translator, node: exp.Expr) -> list[Case] | None:
    """`time + interval`, `interval + time` and `time - interval`; None if the node is none of these."""
    time, interval, sign = node.this, plain(node.expression), 1 if isinstance(node, exp.Add) else -1
    if _is_interval(of, time) and isinstance(node, exp.Add):
        time, interval = interval, plain(time)
    if not _is_interval(of, interval) or _is_interval(of, time):
        return None
    known = constant_interval(of, interval)
    if known is not None:
        return computed([of.value(time)], lambda v: _later(of, v[0], known, sign, node))
    name = _unit_of(of, interval)
    arguments = [of.value(time), of.value(interval.this)]
    if name in _MONTHS:
        return computed(arguments, lambda v: _months_later(of, v[0], v[1], sign * _MONTHS[name], node))

    def later(values: Sequence[Known]) -> tuple[ast.Term, str]:
        instant, length = _instant(of, values[0], node), _times(of, values[1], _LENGTHS[name], node)
        return ast.Functor("+" if sign > 0 else "-", (instant.term, length)), instant.type

    return computed(arguments, later)


def _is_interval(of: Translator, node: exp.Expr) -> bool:
    node = plain(node)
    if isinstance(node, exp.Neg | exp.Add | exp.Sub):
        return constant_interval(of, node) is not None
    return isinstance(node, exp.Interval)


def _instant(of: Translator, time: Known, node: exp.Expr) -> Known:
    """A time as a timestamp; durations stay what they are."""
    if family_of(time.type) in (TIMESTAMP, DURATION):
        return time
    if time.type != DATE:
        raise of.scope.source.error(
            f"an interval is added to a value of type {shown(time.type)}",
            node,
            why="intervals are added to dates, timestamps and intervals",
            remedy="cast the value to date or timestamp",
        )
    return Known(time.literals, of.cast(time, TIMESTAMP, node), TIMESTAMP)


def _later(of: Translator, time: Known, interval: SqlInterval, sign: int, node: exp.Expr) -> tuple[ast.Term, str]:
    instant = _instant(of, time, node)
    term = instant.term
    if interval.months and instant.type == DURATION:
        raise of.scope.source.unsupported("an interval of months as a value", node, "count days")
    try:
        if interval.months:
            term = call("add_months", instant.type, term, ast.Constant(sign * interval.months, NUMBER))
        if interval.length and isinstance(term, ast.Constant):
            term = ast.Constant(term.value + sign * interval.length, instant.type)
        elif interval.length:
            length = ast.Constant(abs(interval.length), DURATION)
            forward = (interval.length > dt.timedelta()) == (sign > 0)
            term = ast.Functor("+" if forward else "-", (term, length))
    except OverflowError:
        raise of.scope.source.error(
            "the time is not in the calendar",
            node,
            why="dates and timestamps reach from the year 1 to 9999",
            remedy="correct the constant",
        ) from None
    return term, instant.type


def _months_later(of: Translator, time: Known, count: Known, months: int, node: exp.Expr) -> tuple[ast.Term, str]:
    instant = _instant(of, time, node)
    if count.type != NUMBER or instant.type == DURATION:
        raise of.scope.source.unsupported("an interval of a number that is not whole", node, "cast it to bigint")
    later = multiplied(count.term, number(months)) if months != 1 else count.term
    return call("add_months", instant.type, instant.term, later), instant.type


def of_times(of: Translator, op: str, left: Known, right: Known) -> tuple[ast.Term, str] | None:
    """`+`, `-`, `*`, `/` of dates, timestamps and durations that are no intervals with months; None for other types."""
    kinds = (family_of(left.type), family_of(right.type))
    if op == "-" and kinds == (DATE, DATE):  # whole days, as in DuckDB
        return call("-", NUMBER, *(_day_number(side.term) for side in (left, right))), NUMBER
    if op == "-" and kinds == (TIMESTAMP, TIMESTAMP):
        return call("-", DURATION, left.term, right.term), DURATION
    if op in ("+", "-") and kinds == (DATE, NUMBER):
        return call(op, DATE, left.term, call("*", DURATION, right.term, _DAY)), DATE
    if op == "+" and kinds == (NUMBER, DATE):
        return of_times(of, op, right, left)
    if (op in ("+", "-") and kinds in ((TIMESTAMP, DURATION), (DURATION, DURATION))) or (
        (op, *kinds) == ("*", DURATION, NUMBER)
    ):
        return call(op, left.type, left.term, right.term), left.type
    if op in ("+", "-") and kinds == (DATE, DURATION):
        instant = of.cast(left, TIMESTAMP, exp.Null())
        return call(op, TIMESTAMP, instant, right.term), TIMESTAMP
    if op == "+" and kinds in ((DURATION, TIMESTAMP), (DURATION, DATE)):
        return of_times(of, op, right, left)
    if (op, *kinds) == ("*", NUMBER, DURATION):
        return of_times(of, op, right, left)
    return None


def _day_number(day: ast.Term) -> ast.Term:
    if isinstance(day, ast.Constant):
        return ast.Constant((day.value - dt.date(1970, 1, 1)).days, NUMBER)
    return ast.Functor("to_number", (day,))
