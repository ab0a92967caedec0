"""Functions of SQL about dates and timestamps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter

from sqlglot import exp

from lftj.language import ast
from lftj.language.diagnostics import did_you_mean
from lftj.language.time_formats import DAYS, MONTHS, READABLE, WRITABLE, format_of, reader_of
from lftj.language.types import DATE, DURATION, FLOAT, NUMBER, SYMBOL, TIMESTAMP
from lftj.sql.applied import Result, SqlFunction, applied
from lftj.sql.cases import Known, Translator, null_case, plain
from lftj.sql.composed import last_day
from lftj.sql.conversions import ZONED, call
from lftj.sql.scope import Case
from lftj.sql.whole_numbers import number
from lftj.values.type_table import family_of

_TIMES = (DATE, TIMESTAMP)
_OF_CLOCKS = ("HOUR", "MINUTE", "SECOND")
_UNITS = "year, quarter, month, week, day, hour, minute or second"
_LENGTHS = {name: ast.Constant(dt.timedelta(**{f"{name.lower()}s": 1}), DURATION) for name in ("WEEK", *_OF_CLOCKS)}


def field(of: Translator, node: exp.Expr, name: str, argument: exp.Expr, named: exp.Expr) -> list[Case]:
    """`extract(name from time)`; `named` is where the name stands."""
    key = _OTHER_NAMES.get(name.upper(), name.upper())
    if key == "EPOCH":
        return seconds(of, node, argument)
    takes = (TIMESTAMP,) if key in _OF_CLOCKS else _TIMES
    if key not in _FIELDS:
        raise of.scope.source.unsupported(
            f"the field `{name.lower()}`",
            named,
            did_you_mean(name.lower(), [known.lower() for known in _FIELDS], f"use one of {_listed(_FIELDS)}"),
        )

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        term = values[0].term
        if isinstance(term, ast.Constant):
            return number(_FIELD_OF_CONSTANT[key](term.value)), NUMBER
        if key in _OF_DATES and family_of(values[0].type) == TIMESTAMP:
            term = _functor("date_of", term)
        return _FIELDS[key](term), NUMBER

    return applied(of, node, SqlFunction((takes,), result, repeats=key in _OF_DATES), [argument])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name.lower()}`" for name in names)


def _functor(name: str, *args: ast.Term) -> ast.Term:
    return ast.Functor(name, args)


def _thursday(date: ast.Term) -> ast.Term:
    """The Thursday of a week, which is in the year that counts the week."""
    return _functor("+", _functor("bucket", date, _LENGTHS["WEEK"]), ast.Constant(dt.timedelta(days=3), DURATION))


def _day_of_year(date: ast.Term) -> ast.Term:
    since = _functor("-", _functor("to_number", date), _functor("to_number", _functor("year_start", date)))
    return _functor("+", since, number(1))


def _week(date: ast.Term) -> ast.Term:
    return _functor("/", _functor("+", _day_of_year(_thursday(date)), number(6)), number(7))


def _iso_year(date: ast.Term) -> ast.Term:
    return _functor("year", _thursday(date))


# Of the fields of a time.
_OTHER_NAMES = {"DAYOFWEEK": "DOW", "WEEKDAY": "DOW", "DAYOFMONTH": "DAY", "DAYOFYEAR": "DOY", "WEEKOFYEAR": "WEEK"}
_OF_DATES = ("DOY", "WEEK", "ISOYEAR", "YEARWEEK")
_FIELDS: dict[str, Callable[[ast.Term], ast.Term]] = {
    **{name.upper(): partial(_functor, name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "QUARTER": lambda x: _functor("/", _functor("+", _functor("month", x), number(2)), number(3)),
    "ISODOW": lambda x: _functor("weekday", x),
    "DOW": lambda x: _functor("%", _functor("weekday", x), number(7)),
    "DOY": _day_of_year,
    "WEEK": _week,
    "ISOYEAR": _iso_year,
    "YEARWEEK": lambda x: _functor("+", _functor("*", _iso_year(x), number(100)), _week(x)),
}
_FIELD_OF_CONSTANT: dict[str, Callable[[dt.datetime], int]] = {
    **{name.upper(): attrgetter(name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "QUARTER": lambda t: (t.month + 2) // 3,
    "ISODOW": lambda t: t.isoweekday(),
    "DOW": lambda t: t.isoweekday() % 7,
    "DOY": lambda t: t.timetuple().tm_yday,
    "WEEK": lambda t: t.isocalendar().week,
    "ISOYEAR": lambda t: t.isocalendar().year,
    "YEARWEEK": lambda t: 100 * t.isocalendar().year + t.isocalendar().week,
}


def _extract(of: Translator, node: exp.Expr) -> list[Case]:
    return field(of, node, node.this.name, node.expression, node.this)


def _field(name: str) -> Callable[[Translator, exp.Expr], list[Case]]:
    return lambda of, node: field(of, node, name, node.this, node)


def _name(part: str, names: str) -> Callable[[Translator, exp.Expr], list[Case]]:
    """The name of a part of a time, whose numbers begin at 1."""

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        place = _functor("-", _functor(part, values[0].term), number(1))
        return _functor("split", ast.Constant(names, SYMBOL), ast.Constant(",", SYMBOL), place), SYMBOL

    return lambda of, node: applied(of, node, SqlFunction((_TIMES,), result), [node.this])


def _formatted(of: Translator, node: exp.Expr) -> list[Case]:
    """`strftime(time, format)`, or the other way around."""
    time, format = node.this, node.args["format"]
    if _is_text(time) and not _is_text(format):
        time, format = format, time
    if isinstance(plain(format), exp.Null):
        return [null_case((), SYMBOL)]
    written = _format(of, format, format_of, WRITABLE)

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        return call("strftime", SYMBOL, values[0].term, written), SYMBOL

    return applied(of, node, SqlFunction((_TIMES,), result), [time])


def _read(of: Translator, node: exp.Expr) -> list[Case]:
    """`strptime(text, format)`."""
    written = format_read(of, node.args["format"])
    if written is None:
        return [null_case((), TIMESTAMP)]

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        return call("strptime", TIMESTAMP, values[0].term, written), TIMESTAMP

    return applied(of, node, SqlFunction(((SYMBOL,),), result), [node.this])


def format_read(of: Translator, format: exp.Expr) -> ast.Constant | None:
    """The format that a time is read in; None of null."""
    return None if isinstance(plain(format), exp.Null) else _format(of, format, reader_of, READABLE)


def _format(of: Translator, format: exp.Expr, check: Callable[[str], object], known: Iterable[str]) -> ast.Constant:
    """The format of a time, which is written out and has parts that are `known`."""
    source, written = of.scope.source, plain(format)
    if not _is_text(format):
        raise source.unsupported("a format that is no constant text", format, "write the format out")
    try:
        check(written.name)
    except ValueError as error:
        raise source.error(
            f"`{written.name}` is no format of a time",
            format,
            why=str(error),
            remedy=f"use one of {', '.join(f'`%{letter}`' for letter in known)}",
        ) from None
    return ast.Constant(written.name, SYMBOL)


def _is_text(node: exp.Expr) -> bool:
    """Whether an expression is a text that is written out."""
    written = plain(node)
    return isinstance(written, exp.Literal) and written.is_string


def seconds(of: Translator, node: exp.Expr, argument: exp.Expr) -> list[Case]:
    """`epoch(x)`: the seconds since 1970 began, or those of an interval."""

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        (time,) = values
        if time.type == DURATION:
            return _functor("to_float", time.term), FLOAT
        # Of timestamps the microseconds, and of dates the days.
        count = _functor("itof", _functor("to_number", time.term))
        by = ("*", 86400.0) if time.type == DATE else ("/", 1e6)
        return _functor(by[0], count, ast.Constant(by[1], FLOAT)), FLOAT

    return applied(of, node, SqlFunction(((*_TIMES, DURATION),), result), [argument])


def _date(of: Translator, node: exp.Expr) -> list[Case]:
    """`make_date(year, month, day)`."""
    parts = [node.args.get(name) for name in ("year", "month", "day")]
    if None in parts:
        raise of.scope.source.unsupported("`make_date` of fewer than three numbers", node, "write year, month and day")

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        return call("make_date", DATE, *(value.term for value in values)), DATE

    return applied(of, node, SqlFunction(((NUMBER,),) * 3, result), [part for part in parts if part is not None])


def _truncated(of: Translator, node: exp.Expr) -> list[Case]:
    """`date_trunc('month', time)`: a timestamp, as in DuckDB, of UTC where the time is so."""
    unit = node.args["unit"].name.upper()

    def start(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        (time,) = values
        if unit in _OF_CLOCKS:
            return begun(of, time, _functor("bucket", of.cast(time, TIMESTAMP, node), _LENGTHS[unit]))
        day = time.term if time.type == DATE else _functor("date_of", time.term)
        if unit in ("YEAR", "MONTH"):
            day = _functor(f"{unit.lower()}_start", time.term)
        elif unit == "QUARTER":
            before = _functor("*", _functor("-", _FIELDS["QUARTER"](time.term), number(1)), number(3))
            day = _functor("add_months", _functor("year_start", time.term), before)
        elif unit == "WEEK":
            day = _functor("bucket", day, _LENGTHS["WEEK"])
        elif unit != "DAY":
            raise of.scope.source.unsupported(f"`date_trunc` to the {unit.lower()}", node, f"use {_UNITS}")
        return begun(of, time, _functor("midnight", day))

    def begun(of: Translator, time: Known, start: ast.Term) -> Result:
        if time.type != ZONED:
            return start, TIMESTAMP
        return of.cast(Known(time.literals, start, TIMESTAMP), ZONED, node), ZONED

    return applied(of, node, SqlFunction((_TIMES,), start, repeats=unit == "QUARTER"), [node.this])


def _difference(of: Translator, node: exp.Expr) -> list[Case]:
    """`date_diff('day', from, to)`: how many units begin between two times; of weeks seven days each."""
    unit = node.args["unit"].name.upper() if node.args.get("unit") else "DAY"

    def place(time: Known) -> ast.Term:
        """The number of the unit that a time is in, for weeks that of the day, or the time at which the unit begins."""
        if unit in _OF_CLOCKS:
            return _functor("to_number", _functor("bucket", of.cast(time, TIMESTAMP, node), _LENGTHS[unit]))
        if unit in ("DAY", "WEEK"):
            return _functor("to_number", of.cast(time, DATE, node))
        year = _functor("year", time.term)
        if unit == "YEAR":
            return year
        count, within = (4, _FIELDS["QUARTER"](time.term)) if unit == "QUARTER" else (12, _functor("month", time.term))
        return _functor("+", _functor("*", year, number(count)), within)

    def count(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        difference = _functor("-", *map(place, values))
        length = _LENGTHS[unit].value // dt.timedelta(microseconds=1) if unit in _OF_CLOCKS else 7
        return (_functor("/", difference, number(length)) if unit in _LENGTHS else difference), NUMBER

    if unit not in (*_LENGTHS, "DAY", "MONTH", "QUARTER", "YEAR"):
        raise of.scope.source.unsupported(f"`date_diff` in units of {unit.lower()}", node, f"use {_UNITS}")
    repeats = unit in ("MONTH", "QUARTER")
    return applied(of, node, SqlFunction((_TIMES, _TIMES), count, repeats=repeats), [node.this, node.expression])


def _add_months(of: Translator, node: exp.Expr) -> list[Case]:
    def later(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        return call("add_months", values[0].type, values[0].term, values[1].term), values[0].type

    return applied(of, node, SqlFunction((_TIMES, (NUMBER,)), later), [node.this, node.expression])


FUNCTIONS: dict[type[exp.Expr], Callable[[Translator, exp.Expr], list[Case]]] = {
    exp.Extract: _extract,
    exp.Year: _field("YEAR"),
    exp.Month: _field("MONTH"),
    exp.Day: _field("DAY"),
    exp.DayOfMonth: _field("DAY"),
    exp.DayOfWeek: _field("DOW"),
    exp.DayOfWeekIso: _field("ISODOW"),
    exp.DayOfYear: _field("DOY"),
    exp.Quarter: _field("QUARTER"),
    exp.Hour: _field("HOUR"),
    exp.Minute: _field("MINUTE"),
    exp.Second: _field("SECOND"),
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _difference,
    exp.AddMonths: _add_months,
    exp.LastDay: last_day,
    exp.Week: _field("WEEK"),
    exp.WeekOfYear: _field("WEEK"),
    exp.Dayname: _name("weekday", ",".join(DAYS)),
    exp.Monthname: _name("month", ",".join(MONTHS)),
    exp.TimeToStr: _formatted,
    exp.StrToTime: _read,
    exp.TimeToUnix: lambda of, node: seconds(of, node, node.this),
    exp.DateFromParts: _date,
}
