"""The functors over texts, on Python values.

Texts are sequences of characters (Unicode code points), in which lengths and positions count; Souffle counts the bytes
of their UTF-8, which is the same for ASCII, but would cut characters in two.

A functor without a value for its arguments raises `ValueError`, which says why.
"""

from __future__ import annotations

import calendar
import datetime
import decimal
import math
import re
from collections.abc import Callable
from functools import lru_cache, partial
from math import isfinite
from typing import Any

from lftj.language.time_formats import read, reader_of
from lftj.language.types import FLOAT, RANGES, SYMBOL, of_class
from lftj.values.decimal_type import DIGITS, Decimals
from lftj.values.type_table import type_of
from lftj.values.value_type import Misfit

# Characters of a text that is another one many times: more is a mistake, which would take the machine's memory.
LONGEST = 100_000_000
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|0b[01]+|[0-9]+)")
_FLOAT = re.compile(r"[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|inf|infinity)", re.IGNORECASE)
# The classes that may stand between the brackets of a pattern, as `re` writes them.
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "w": "\\w",
    "xdigit": "0-9A-Fa-f",
}
_CLASS = re.compile(r"\[:(\w+):\]")


def substr(text: str, start: int, length: int) -> str:
    """`length` characters from `start` (from 0), or what there is; a negative length is all that follows.

    Empty for a start before the text or behind it.
    """
    if not 0 <= start <= len(text):
        return ""
    return text[start:] if length < 0 else text[start : start + length]


def integer(text: str | decimal.Decimal) -> int:
    """The integer that all of `text` is: decimal, or with 0x or 0b. Of a decimal what stands before the point."""
    if isinstance(text, decimal.Decimal):
        return int(text)
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not an integer")
    return int(text, 0) if text.lstrip("-")[:2] in ("0x", "0b") else int(text)


def floating(text: str | decimal.Decimal | datetime.timedelta) -> float:
    """The float that all of `text` is, in decimal; `inf` is one. Of a duration the seconds."""
    if isinstance(text, datetime.timedelta):
        return text / datetime.timedelta(seconds=1)
    if isinstance(text, decimal.Decimal):
        return float(text)
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"{text!r} is not a float")
    number = float(text)
    if not isfinite(number) and "i" not in text.lower():
        raise ValueError(f"{text!r} does not fit into float")
    return number


def to_text(value: Any) -> str:
    """The shortest text that reads back as the value."""
    return type_of(of_class(type(value))).text(value)


def parser(type: str) -> Callable[[str], object]:
    """The function that gives the value of a type that a text writes."""

    def parsed(text: str) -> object:
        made = type_of(type)
        try:
            return made.shown(made.parse(text))
        except Misfit as misfit:
            raise ValueError(f"{text!r} {misfit.fault.reason}") from None

    return parsed


def to_decimal(value: str | int | float | decimal.Decimal, scale: int) -> decimal.Decimal:
    """The decimal of so many digits behind the point that is nearest to a value, the even one of two."""
    return _nearest(value, scale, decimal.ROUND_HALF_EVEN)


def to_decimal_away(value: str, scale: int) -> decimal.Decimal:
    """The decimal of so many digits behind the point that is nearest to a text's, the one further from 0 of two."""
    return _nearest(value, scale, decimal.ROUND_HALF_UP)


def _nearest(value: str | int | float | decimal.Decimal, scale: int, rounding: str) -> decimal.Decimal:
    why = f"{value!r} is not a decimal of {DIGITS} digits"
    if isinstance(value, str) and not _FLOAT.fullmatch(
        value
    ):  # Python's takes blanks, `_` and the digits of any script
        raise ValueError(why)
    try:
        exact = decimal.Decimal(value)
        return exact.quantize(decimal.Decimal(1).scaleb(-scale), rounding, decimal.Context(prec=100))
    except decimal.InvalidOperation:
        raise ValueError(why) from None


def rounded(value: float | decimal.Decimal, digits: int) -> float | decimal.Decimal:
    """The nearest number with so many digits behind the point, the one further from 0 of two.

    Of a float the digits are those of its shortest text, so that 2.345 is 2.35 with two.
    """
    if isinstance(value, decimal.Decimal):
        return _to_digits(value, min(digits, -int(value.as_tuple().exponent)), decimal.ROUND_HALF_UP)
    return float(_to_digits(decimal.Decimal(repr(value)), digits, decimal.ROUND_HALF_UP)) if isfinite(value) else value


def cut(value: float | decimal.Decimal, digits: int) -> float | decimal.Decimal:
    """The number without what is behind so many digits behind the point; of a float those of its shortest text."""
    if isinstance(value, decimal.Decimal):
        return _to_digits(value, min(digits, -int(value.as_tuple().exponent)), decimal.ROUND_DOWN)
    return float(_to_digits(decimal.Decimal(repr(value)), digits, decimal.ROUND_DOWN)) if isfinite(value) else value


def floor(value: float | decimal.Decimal) -> float | decimal.Decimal:
    """The greatest whole number that is not above a value."""
    if isinstance(value, decimal.Decimal):
        return _to_digits(value, 0, decimal.ROUND_FLOOR)
    return float(math.floor(value)) if isfinite(value) else value


def ceil(value: float | decimal.Decimal) -> float | decimal.Decimal:
    """The least whole number that is not below a value."""
    if isinstance(value, decimal.Decimal):
        return _to_digits(value, 0, decimal.ROUND_CEILING)
    return float(math.ceil(value)) if isfinite(value) else value


def _to_digits(value: decimal.Decimal, digits: int, rounding: str) -> decimal.Decimal:
    return value.quantize(decimal.Decimal(1).scaleb(-digits), rounding, decimal.Context(prec=400))


def add_months(time: datetime.date, months: int) -> datetime.date:
    """The same day of another month, or the last one of a month that is shorter; of a timestamp at the same time."""
    if abs(months) > 12 * 9999:
        raise ValueError("it is not in the range of its type")
    count = 12 * time.year + time.month - 1 + months
    year, month = count // 12, count % 12 + 1
    if not 1 <= year <= 9999:
        raise ValueError("it is not in the range of its type")
    return time.replace(year, month, min(time.day, calendar.monthrange(year, month)[1]))


def date_of_parts(year: int, month: int, day: int) -> datetime.date:
    """The date of a year, a month and a day."""
    try:
        return datetime.date(year, month, day)
    except OverflowError:
        raise ValueError("it is not in the range of its type") from None


def log2(value: float) -> float:
    """The logarithm to the base 2."""
    if value <= 0:
        raise ValueError("it is not greater than 0")
    return math.log2(value)


def character(code: int) -> str:
    """The character of a code of Unicode."""
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ValueError(f"{code} is no code of a character")
    return chr(code)


def code_point(text: str) -> int:
    """The code in Unicode of the first character of a text; -1 of an empty one."""
    return ord(text[0]) if text else -1


def translated(text: str, old: str, new: str) -> str:
    """The text with each character that is in `old` replaced by the one at its place in `new`, or left out."""
    places = {ord(character): new[at : at + 1] for at, character in reversed([*enumerate(old)])}
    return text.translate(places)


def trimmed(text: str) -> str:
    """The text without spaces around it."""
    return text.strip(" ")


def begun(text: str, characters: str) -> str:
    """The text from the first on that is none of some characters."""
    return text.lstrip(characters)


def ended(text: str, characters: str) -> str:
    """The text up to the last that is none of some characters."""
    return text.rstrip(characters)


def first(text: str, count: int) -> str:
    """The first `count` characters of a text; if it is negative, all but so many at its end."""
    return text[:count]


def last(text: str, count: int) -> str:
    """The last `count` characters of a text; if it is negative, all but so many at its beginning."""
    return text[-count:] if count else ""


def part(text: str, place: int, length: int) -> str:
    """`length` characters from a place on, counted from 1, or backwards from -1; if negative, those before it.

    There are places before the first one and behind the last, and no characters.
    """
    begin = place - 1 if place >= 0 else len(text) + place
    low, high = sorted((begin, begin + length))
    return text[max(low, 0) : max(high, 0)]


def filled_before(text: str, length: int, fill: str) -> str:
    """So many characters: of `fill`, again and again, and then the text, or the first of the text alone."""
    return _filling(text, length, fill) + text[: max(length, 0)]


def filled_behind(text: str, length: int, fill: str) -> str:
    """So many characters: the text, or the first of it, and then those of `fill`, again and again."""
    return text[: max(length, 0)] + _filling(text, length, fill)


def _filling(text: str, length: int, fill: str) -> str:
    """What a text lacks of so many characters."""
    lacking = length - len(text)
    if lacking <= 0:
        return ""
    if not fill:
        raise ValueError(f"it has {len(text):,} characters, and nothing to be filled with")
    if length > LONGEST:
        raise ValueError(f"it would have {length:,} characters")
    return (fill * (lacking // len(fill) + 1))[:lacking]


def replaced(text: str, old: str, new: str) -> str:
    """The text with each `old`, from the left, replaced by `new`; as it is if `old` is empty."""
    return text.replace(old, new) if old else text


def split(text: str, separator: str, index: int) -> str:
    """The part of `text` at `index` between separators, from 0, or from -1 on backwards; empty out of range.

    An empty separator is between all characters.
    """
    parts = text.split(separator) if separator else [*text]
    return parts[index] if -len(parts) <= index < len(parts) else ""


def repeated(text: str, times: int) -> str:
    """`text`, `times` times, one after the other."""
    if len(text) * times > LONGEST:
        raise ValueError(f"it would have {len(text) * times:,} characters")
    return text * times


def backwards(text: str) -> str:
    """The characters of `text` from the last to the first."""
    return text[::-1]


def local(instant: datetime.datetime) -> datetime.datetime:
    """What the clocks of its zone show."""
    return instant.replace(tzinfo=None)


# The groups of a pattern that have a number, as in RE2.
MOST_GROUPS = 9


@lru_cache(maxsize=256)
def pattern_of(text: str) -> re.Pattern[str]:
    """A pattern, ready to match.

    Syntax is that of `re` with ASCII classes, which agrees with ECMAScript's in all that both have, and the POSIX
    classes in brackets.
    """
    try:
        return re.compile(_CLASS.sub(lambda m: _CLASSES[m[1]], text), re.ASCII)
    except (re.error, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None


def match(pattern: str, text: str) -> int:
    """1 if the pattern matches all of `text`, else 0."""
    return int(pattern_of(pattern).fullmatch(text) is not None)


@lru_cache(maxsize=256)
def replacement_of(pattern: str, text: str) -> tuple[str | int, ...]:
    r"""The parts of a replacement: texts, and the numbers of the groups of a pattern that `\1` and others name."""
    parts = [part for part in re.split(r"(\\[0-9\\])", text) if part]
    found = tuple(int(part[1]) if re.fullmatch(r"\\[0-9]", part) else part.replace("\\\\", "\\") for part in parts)
    if any("\\" in part for part in parts if not re.fullmatch(r"\\[0-9\\]", part)):
        raise ValueError(f"{text!r} has a backslash that neither the number of a group nor another one follows")
    groups = pattern_of(pattern).groups
    if any(isinstance(part, int) and part > groups for part in found):
        raise ValueError(f"{text!r} names more groups than {pattern!r} has")
    return found


def replaced_matches(text: str, pattern: str, replacement: str, count: int) -> str:
    """The text with the first `count` matches of a pattern replaced, or with all of them if that is negative.

    No empty match follows another one at once, as in RE2.
    """
    parts, found = replacement_of(pattern, replacement), []
    at, last = 0, -1
    while count and (match := pattern_of(pattern).search(text, at)):
        found.append(text[at : match.start()])
        if match.end() == last:
            found.append(text[last : last + 1])
            at, last = last + 1, -1
            if at > len(text):
                break
            continue
        found += [(match[part] or "") if isinstance(part, int) else part for part in parts]
        at = last = match.end()
        count -= 1
    return "".join(found) + text[at:]


def first_match(text: str, pattern: str, group: int) -> str:
    """A group of the first match of a pattern, of 0 the match; "" where there is none."""
    if not 0 <= group <= MOST_GROUPS:
        raise ValueError(f"{group} is no group from 0 to {MOST_GROUPS}")
    found = pattern_of(pattern)
    match = found.search(text) if group <= found.groups else None
    return (match[group] or "") if match else ""


@lru_cache(maxsize=64)
def _reader(type: str) -> Callable[[str], object]:
    """The function that reads a text as a type; `ValueError` or `Misfit` says why the text writes no value."""
    if "%" in type:
        reader_of(type)  # one that is no format reads nothing
        return partial(read, format=type)
    made = type_of(type)
    if type in RANGES:
        low, high = RANGES[type]

        def whole(text: str) -> int:
            if not low <= (found := integer(text)) <= high:
                raise ValueError(f"{text!r} does not fit into {type}")
            return found

        return whole
    if isinstance(made, Decimals):
        return lambda text: made.read(to_decimal_away(text, made.scale))
    return floating if type == FLOAT else str if type == SYMBOL else parser(type)


def reads_as(type: str, text: str) -> int:
    """1 if the functor of a type (`to_date` of `date`) has a value for `text`, else 0."""
    read = _reader(type)
    try:
        read(text)
    except (ValueError, Misfit):
        return 0
    return 1


def contains(part: str, text: str) -> int:
    """1 if `part` stands somewhere in `text`, else 0."""
    return int(part in text)


def joined(*texts: str) -> str:
    """The texts, one behind the other."""
    return "".join(texts)


def least(*texts: str) -> str:
    """The least of the texts."""
    return min(texts)


def greatest(*texts: str) -> str:
    """The greatest of the texts."""
    return max(texts)
