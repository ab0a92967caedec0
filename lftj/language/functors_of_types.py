"""Functors of times, conversions, rounding, roots and logarithms, and those of texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lftj.language import text_functors, time_formats
from lftj.language import typed_functors as typed
from lftj.language.signature import EACH, SAME, Signature
from lftj.language.typed_functors import Overload
from lftj.language.types import (
    BOOL,
    CALENDAR,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    NUMBER,
    NUMERIC,
    SYMBOL,
    TIMESTAMP,
)


def table() -> list[Signature]:
    """All of them."""
    return [*of_time(), *to_types(), *rounding(), *of_floats(), *of_texts()]


def of_time() -> list[Signature]:
    """What is read of dates and timestamps. Their domain is in the overloads."""

    def part(
        name: str, doc: str, example: str, operation: str, result: str = NUMBER, *, dates: bool = True
    ) -> Signature:
        of_time = f"{operation}_OF_TIME" if dates else operation
        overloads = (
            *((Overload((DATE,), result, operation),) if dates else ()),
            Overload((TIMESTAMP,), result, of_time),
        )
        domain = CALENDAR if dates else frozenset({TIMESTAMP})
        return Signature(name, (SAME,), result, doc, example, domain, overloads=overloads, on_clocks=True)

    return [
        part("year", "The year.", "year(@2024-05-31) = 2024", "YEAR"),
        part("month", "The month, 1 to 12.", "month(@2024-05-31) = 5", "MONTH"),
        part("day", "The day of the month, 1 to 31.", "day(@2024-05-31) = 31", "DAY_OF_MONTH"),
        part("weekday", "The day of the week: Monday is 1, Sunday 7.", "weekday(@2024-05-31) = 5", "WEEKDAY"),
        part("hour", "The hour, 0 to 23.", "hour(@2024-05-31T12:30:00) = 12", "HOUR", dates=False),
        part("minute", "The minute, 0 to 59.", "minute(@2024-05-31T12:30:00) = 30", "MINUTE", dates=False),
        part("second", "The whole second, 0 to 59.", "second(@2024-05-31T12:30:01.5) = 1", "SECONDS", dates=False),
        part(
            "date_of",
            "The day of a timestamp.",
            "date_of(@2024-05-31T12:30:00) = @2024-05-31",
            "DATE_OF",
            DATE,
            dates=False,
        ),
        part(
            "time_of",
            "The time of the day, as the duration since midnight.",
            "time_of(@2024-05-31T12:30:00) = @12h30m",
            "TIME_OF",
            DURATION,
            dates=False,
        ),
        Signature(
            "midnight",
            (SAME,),
            TIMESTAMP,
            "The time at which a date begins, in UTC.",
            "midnight(@2024-05-31) = @2024-05-31T00:00:00",
            frozenset({DATE}),
            overloads=(Overload((DATE,), TIMESTAMP, "MIDNIGHT"),),
        ),
        part(
            "month_start", "The first day of the month.", "month_start(@2024-05-31) = @2024-05-01", "MONTH_START", DATE
        ),
        part("year_start", "The first day of the year.", "year_start(@2024-05-31) = @2024-01-01", "YEAR_START", DATE),
        Signature(
            "bucket",
            (SAME, DURATION),
            SAME,
            "The start of the interval of this length that a time is in, counted from Monday, 2000-01-03, in UTC.",
            'bucket(@2024-05-31T12:34:00, "15m") = @2024-05-31T12:30:00',
            CALENDAR,
            overloads=(
                Overload((DATE, DURATION), SAME, "DATE_BUCKET", partial=True),
                Overload((TIMESTAMP, DURATION), SAME, "TIME_BUCKET", partial=True),
            ),
        ),
        Signature(
            "add_months",
            (SAME, NUMBER),
            SAME,
            "A time so many months later, on the last day of the month where that has no such day.",
            "add_months(@2024-01-31, 1) = @2024-02-29",
            CALENDAR,
            text=text_functors.add_months,
            partial=CALENDAR,
        ),
        Signature(
            "make_date",
            (NUMBER, NUMBER, NUMBER),
            DATE,
            "The date of a year, a month and a day; an error where there is none.",
            "make_date(2024, 5, 31) = @2024-05-31",
            text=text_functors.date_of_parts,
            partial=frozenset({NUMBER}),
        ),
        Signature(
            "strftime",
            (SAME, SYMBOL),
            SYMBOL,
            "The text of a time by a format: `%Y`, `%m`, `%d`, `%H`, `%M` and `%S` are its parts, with zeros in front, "
            "`%-d` the day without, `%a` and `%b` short names and `%A` and `%B` whole ones, and `%%` is a `%`; "
            "[SQL](sql.md#expressions-and-types) lists the others. An error of a format that is none.",
            'strftime(@2024-05-31, "%d.%m.%Y") = "31.05.2024"',
            CALENDAR,
            text=time_formats.written,
            partial=CALENDAR,
        ),
        Signature(
            "strptime",
            (SYMBOL, SYMBOL),
            TIMESTAMP,
            "The time that a text writes in a format, with the parts of `strftime`; what it does not say is that of "
            "1900-01-01T00:00:00. An error of a text that is not so written, and of a format that is none.",
            'strptime("31.05.2024", "%d.%m.%Y") = @2024-05-31T00:00:00',
            text=time_formats.read,
            partial=frozenset({SYMBOL}),
        ),
        Signature(
            "local",
            (TIMESTAMP,),
            TIMESTAMP,
            "What the clocks of the zone of a timestamp show, as a timestamp without a zone.",
            'local(in_zone(@2024-05-31T12:00:00, "Asia/Tokyo")) = @2024-05-31T21:00:00',
            text=text_functors.local,
        ),
        Signature(
            "in_zone",
            (TIMESTAMP, SYMBOL),
            TIMESTAMP,
            "The same instant, shown on the clocks of a zone.",
            'in_zone(@2024-05-31T12:00:00, "Asia/Tokyo") = @2024-05-31T12:00:00Z',
            result_of=typed.zone,
        ),
    ]


def to_types() -> list[Signature]:
    """Conversions to types that are not numbers."""
    of_symbol = frozenset({SYMBOL})

    def read(name: str, type: str, doc: str, example: str) -> Signature:
        return Signature(name, (SYMBOL,), type, doc, example, text=text_functors.parser(type), partial=of_symbol)

    return [
        read("to_date", DATE, "The date that a text writes.", 'to_date("2024-05-31") = @2024-05-31'),
        Signature(
            "to_timestamp",
            (EACH,),
            TIMESTAMP,
            "The timestamp that a text writes; of a date its midnight in UTC.",
            'to_timestamp("2024-05-31T12:00:00Z") = @2024-05-31T12:00:00',
            frozenset({SYMBOL, DATE}),
            text=text_functors.parser(TIMESTAMP),
            partial=of_symbol,
            kernel=frozenset({DATE}),
            overloads=(Overload((DATE,), TIMESTAMP, "MIDNIGHT"),),
        ),
        read("to_duration", DURATION, "The duration that a text writes.", 'to_duration("PT90M") = @1h30m'),
        Signature(
            "to_decimal",
            (EACH, NUMBER),
            DECIMAL,
            "A decimal of so many digits behind the point, rounded half to even: of a text, number, float or decimal.",
            'to_decimal("2.345", 2) = 2.34d',
            NUMERIC | {SYMBOL, DECIMAL},
            text=text_functors.to_decimal,
            partial=NUMERIC | {SYMBOL, DECIMAL},
            result_of=typed.scaled,
        ),
        Signature(
            "to_decimal_away",
            (SYMBOL, NUMBER),
            DECIMAL,
            "The decimal of so many digits behind the point that a text writes, the one further from 0 of two.",
            'to_decimal_away("2.345", 2) = 2.35d',
            text=text_functors.to_decimal_away,
            partial=of_symbol,
            result_of=typed.scaled,
        ),
        read("to_bool", BOOL, "The bool that a text writes: true, false, 1 or 0.", 'to_bool("true") = true'),
        read(
            "to_uuid",
            "uuid",
            "The uuid that a text writes.",
            'to_uuid("123E4567-E89B-12D3-A456-426614174000") = @"123e4567-e89b-12d3-a456-426614174000"',
        ),
        read(
            "to_bytes",
            "bytes",
            "The bytes that a text writes as pairs of hexadecimal digits.",
            'to_bytes("00ff") = @x"00ff"',
        ),
    ]


def rounding() -> list[Signature]:
    """Floats and decimals with fewer digits behind the point."""
    domain, of_decimal = frozenset({FLOAT, DECIMAL}), frozenset({DECIMAL})

    def whole(name: str, doc: str, example: str, text: Callable[[Any], object]) -> Signature:
        return Signature(name, (EACH,), EACH, doc, example, domain, text=text, result_of=typed.whole)

    return [
        Signature(
            "round",
            (EACH, NUMBER),
            EACH,
            "The nearest number with so many digits behind the point (negative: before it), the one further from 0 of "
            "two; of a float as its shortest text says.",
            "round(2.345d, 2) = 2.35d",
            domain,
            text=text_functors.rounded,
            partial=of_decimal,
            result_of=typed.rounded,
        ),
        Signature(
            "trunc",
            (EACH, NUMBER),
            EACH,
            "The number without what follows so many digits behind the point (negative: before it); of a float as its "
            "shortest text says.",
            "trunc(-2.345d, 2) = -2.34d",
            domain,
            text=text_functors.cut,
            result_of=typed.rounded,
        ),
        whole("floor", "The greatest whole number that is not above.", "floor(-2.5) = -3.0", text_functors.floor),
        whole("ceil", "The least whole number that is not below.", "ceil(2.5d) = 3d", text_functors.ceil),
    ]


def of_floats() -> list[Signature]:
    """Roots, powers of e and logarithms."""
    floats = frozenset({FLOAT})

    def of_float(name: str, doc: str, example: str, partial: frozenset[str] = floats) -> Signature:
        return Signature(name, (SAME,), SAME, doc, example, floats, opcode=name.upper(), partial=partial)

    return [
        of_float("sqrt", "The square root; of less than 0 an error.", "sqrt(2.25) = 1.5"),
        of_float("exp", "The power of e.", "exp(0.0) = 1.0", frozenset()),
        of_float("ln", "The natural logarithm; of 0 and less an error.", "ln(1.0) = 0.0"),
        of_float("log10", "The logarithm to the base 10; of 0 and less an error.", "log10(1000.0) = 3.0"),
        Signature(
            "log2",
            (FLOAT,),
            FLOAT,
            "The logarithm to the base 2; of 0 and less an error.",
            "log2(8.0) = 3.0",
            text=text_functors.log2,
            partial=floats,
        ),
        Signature("cbrt", (FLOAT,), FLOAT, "The cube root.", "cbrt(8.0) = 2.0", text=math.cbrt),
    ]


def of_texts() -> list[Signature]:
    """Texts of texts."""

    def of_text(name: str, doc: str, example: str, text: Callable[[str], str]) -> Signature:
        return Signature(name, (SYMBOL,), SYMBOL, doc, example, text=text)

    def of_end(name: str, doc: str, example: str, text: Callable[[str, str], str]) -> Signature:
        return Signature(name, (SYMBOL, SYMBOL), SYMBOL, f"{doc} of the characters of the second.", example, text=text)

    def filled(name: str, doc: str, example: str, text: Callable[[str, int, str], str]) -> Signature:
        doc = (
            f"The first characters, so many; where there are fewer, those of the third argument {doc}, as often as it "
            "takes. An error of none to fill with, or of more than 100 million."
        )
        return Signature(name, (SYMBOL, NUMBER, SYMBOL), SYMBOL, doc, example, text=text, partial=frozenset({SYMBOL}))

    return [
        of_text("lower", "The text in small letters.", 'lower("Ab") = "ab"', str.lower),
        of_text("upper", "The text in capitals.", 'upper("Ab") = "AB"', str.upper),
        of_text("trim", "The text without spaces around it.", 'trim(" a b ") = "a b"', text_functors.trimmed),
        of_end("ltrim", "The text from the first on that is none", 'ltrim("xya", "yx") = "a"', text_functors.begun),
        of_end("rtrim", "The text up to the last that is none", 'rtrim("axy", "yx") = "a"', text_functors.ended),
        filled("lpad", "before it", 'lpad("7", 3, "0") = "007"', text_functors.filled_before),
        filled("rpad", "behind it", 'rpad("7", 3, "0") = "700"', text_functors.filled_behind),
        Signature(
            "left",
            (SYMBOL, NUMBER),
            SYMBOL,
            "The first characters, so many; negative: all but so many at the end.",
            'left("Hello", 2) = "He"',
            text=text_functors.first,
        ),
        Signature(
            "right",
            (SYMBOL, NUMBER),
            SYMBOL,
            "The last characters, so many; negative: all but so many at the beginning.",
            'right("Hello", 2) = "lo"',
            text=text_functors.last,
        ),
        Signature(
            "substring",
            (SYMBOL, NUMBER, NUMBER),
            SYMBOL,
            "Characters from a place on (from 1; from -1 backwards), of a length (negative: those before the place).",
            'substring("Hello", -3, 2) = "ll"',
            text=text_functors.part,
        ),
        Signature(
            "replace",
            (SYMBOL, SYMBOL, SYMBOL),
            SYMBOL,
            "The text with each occurrence of the second argument replaced by the third.",
            'replace("a-b-c", "-", "+") = "a+b+c"',
            text=text_functors.replaced,
        ),
        Signature(
            "first_match",
            (SYMBOL, SYMBOL, NUMBER),
            SYMBOL,
            "A group, from 1 to 9, of the first match of a pattern in the text; of 0 the match; empty where there is "
            "none. An error of a pattern, or a group, that is none.",
            'first_match("a1b22", "[a-z]([0-9]+)", 1) = "1"',
            text=text_functors.first_match,
            partial=frozenset({SYMBOL}),
        ),
        Signature(
            "replace_match",
            (SYMBOL, SYMBOL, SYMBOL, NUMBER),
            SYMBOL,
            "The text with the first matches of a pattern replaced, so many (negative: all); in the third argument "
            "`\\0` is the match, and `\\1` to `\\9` are its groups. An error of a pattern, or a third argument, that "
            "is none.",
            'replace_match("a1b22", "[0-9]+", "#", -1) = "a#b#"',
            text=text_functors.replaced_matches,
            partial=frozenset({SYMBOL}),
        ),
        Signature(
            "strpos",
            (SYMBOL, SYMBOL),
            NUMBER,
            "The index (from 0) of the first occurrence of the second text in the first; -1 if there is none.",
            'strpos("Hello", "l") = 2',
            text=str.find,
        ),
        Signature(
            "split",
            (SYMBOL, SYMBOL, NUMBER),
            SYMBOL,
            'The part of the text with an index (from 0; from -1 on backwards) between separators; "" out of range.',
            'split("a-b-c", "-", 1) = "b"',
            text=text_functors.split,
        ),
        Signature(
            "repeat",
            (SYMBOL, NUMBER),
            SYMBOL,
            'The text so many times; "" for less than once. Of more than 100 million characters: an error.',
            'repeat("ab", 2) = "abab"',
            text=text_functors.repeated,
            partial=frozenset({SYMBOL}),
        ),
        of_text("reverse", "The text backwards.", 'reverse("abc") = "cba"', text_functors.backwards),
        Signature(
            "translate",
            (SYMBOL, SYMBOL, SYMBOL),
            SYMBOL,
            "The text with each character of the second argument replaced by the one at its place in the third, or "
            "left out where that is shorter.",
            'translate("a-b c", "- ", "_") = "a_bc"',
            text=text_functors.translated,
        ),
        Signature(
            "chr",
            (NUMBER,),
            SYMBOL,
            "The character of a code of Unicode; an error where there is none.",
            'chr(228) = "ä"',
            text=text_functors.character,
            partial=frozenset({NUMBER}),
        ),
        Signature(
            "code_point",
            (SYMBOL,),
            NUMBER,
            'The code in Unicode of the first character; -1 of "".',
            'code_point("ä") = 228',
            text=text_functors.code_point,
        ),
    ]
