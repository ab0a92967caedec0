"""Times written and read as a format says: `strftime(@2024-05-31, "%d.%m.%Y")` is "31.05.2024"."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import lru_cache

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_Written = Callable[[dt.datetime], str]


def _of_hour(time: dt.datetime) -> int:
    """The hour on a clock of twelve."""
    return (time.hour + 11) % 12 + 1


def _day_of_year(time: dt.datetime) -> int:
    return time.timetuple().tm_yday


def _week_from(first: int) -> Callable[[dt.datetime], int]:
    """The week of the year, each from one day on (Monday is 1, Sunday 7); the days before the first are in week 0."""
    return lambda time: (_day_of_year(time) + 6 - (time.isoweekday() - first) % 7) // 7


# Numbers, with the digits that they have at least. With `-` behind `%`, those of `_SHORT` have no zeros in front.
_NUMBERS: dict[str, tuple[Callable[[dt.datetime], int], int]] = {
    "Y": (lambda time: time.year, 4),
    "y": (lambda time: time.year % 100, 2),
    "m": (lambda time: time.month, 2),
    "d": (lambda time: time.day, 2),
    "j": (_day_of_year, 3),
    "H": (lambda time: time.hour, 2),
    "I": (_of_hour, 2),
    "M": (lambda time: time.minute, 2),
    "S": (lambda time: time.second, 2),
    "g": (lambda time: time.microsecond // 1000, 3),
    "f": (lambda time: time.microsecond, 6),
    "u": (lambda time: time.isoweekday(), 1),
    "w": (lambda time: time.isoweekday() % 7, 1),
    "G": (lambda time: time.isocalendar().year, 4),
    "V": (lambda time: time.isocalendar().week, 2),
    "U": (_week_from(7), 2),
    "W": (_week_from(1), 2),
}
_SHORT = "ymdjHIMS"
_NAMES: dict[str, _Written] = {
    "a": lambda time: DAYS[time.weekday()][:3],
    "A": lambda time: DAYS[time.weekday()],
    "b": lambda time: MONTHS[time.month - 1][:3],
    "h": lambda time: MONTHS[time.month - 1][:3],
    "B": lambda time: MONTHS[time.month - 1],
    "p": lambda time: "AM" if time.hour < 12 else "PM",
    "%": lambda time: "%",
}
_SEVERAL = {"x": "%Y-%m-%d", "F": "%Y-%m-%d", "D": "%m/%d/%y", "X": "%H:%M:%S", "T": "%H:%M:%S"}
_SEVERAL["c"] = f"{_SEVERAL['x']} {_SEVERAL['X']}"
_PARTS = re.compile(r"(?s:[^%]+|%-?.?)")
# What may stand behind `%` where a time is written, for messages.
WRITABLE = sorted([*_NUMBERS, *_NAMES, *_SEVERAL, *(f"-{letter}" for letter in _SHORT)], key=str.lower)


def _number(letter: str, digits: int) -> _Written:
    number = _NUMBERS[letter][0]
    return lambda time: f"{number(time):0{digits}}"


_WRITTEN: dict[str, _Written] = {
    **_NAMES,
    **{letter: _number(letter, digits) for letter, (_, digits) in _NUMBERS.items()},
    **{f"-{letter}": _number(letter, 1) for letter in _SHORT},
}


@lru_cache(maxsize=256)
def format_of(text: str) -> tuple[str | _Written, ...]:
    """The parts of a format: texts, and what writes a part of a time; `ValueError` of what is none."""
    found: list[str | _Written] = []
    for part in _PARTS.findall(text):
        letter = part.removeprefix("%")
        if letter == part:
            found.append(part)
        elif letter in _SEVERAL:
            found += format_of(_SEVERAL[letter])
        elif letter in _WRITTEN:
            found.append(_WRITTEN[letter])
        else:
            raise ValueError(f"`{part}` writes no part of a time")
    return tuple(found)


def written(time: dt.date, format: str) -> str:
    """A time as a format says; of a date its midnight."""
    moment = time if isinstance(time, dt.datetime) else dt.datetime.combine(time, dt.time())
    return "".join(part if isinstance(part, str) else part(moment) for part in format_of(format))


# Reading

# The digits that a number has at most, of which it takes as many as there are, its least value and its greatest.
_READ_NUMBERS = {
    "Y": (4, 1, 9999),
    "y": (2, 0, 99),
    "m": (2, 1, 12),
    "d": (2, 1, 31),
    "j": (3, 1, 366),
    "H": (2, 0, 23),
    "I": (2, 1, 12),
    "M": (2, 0, 59),
    "S": (2, 0, 59),
    "g": (3, 0, 999),
    "f": (6, 0, 999_999),
}
# Names, in either case.
_WORDS = {
    "a": [day[:3] for day in DAYS],
    "A": DAYS,
    "b": [month[:3] for month in MONTHS],
    "h": [month[:3] for month in MONTHS],
    "B": MONTHS,
    "p": ["AM", "PM"],
}
_SPACE = "[ \t-\r]"
# What may stand behind `%` where a time is read, for messages.
READABLE = sorted(["%", *_READ_NUMBERS, *_WORDS, *_SEVERAL, *(f"-{letter}" for letter in _SHORT)], key=str.lower)


@lru_cache(maxsize=256)
def reader_of(text: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """(what a text in a format looks like, the letters of its groups in order); `ValueError` of what is none."""
    letters: list[str] = []
    looks = _look_of(text, letters)
    if not letters:
        raise ValueError("it reads no part of a time")
    if "j" in letters and not {*"mdbhB"}.isdisjoint(letters):
        raise ValueError("`%j` says which month and day it is, and so does another part")
    return re.compile(f"{_SPACE}*+{looks}{_SPACE}*+"), tuple(letters)


def _look_of(text: str, letters: list[str]) -> str:
    """The regular expression of a format; the letters of its groups are added to `letters`."""
    found = ""
    for part in _PARTS.findall(text):
        letter = part[2:] if part[:2] == "%-" and part[2:] in [*_SHORT] else part[1:]
        if part[0] != "%":
            spaced = re.split(f"({_SPACE}+)", part)
            found += "".join(f"{_SPACE}++" if i % 2 else re.escape(word) for i, word in enumerate(spaced))
        elif letter in _SEVERAL:
            found += _look_of(_SEVERAL[letter], letters)
        elif letter == "%":
            found += "%"
        elif letter in _WORDS:
            letters.append(letter)
            found += f"(?i:({'|'.join(_WORDS[letter])}))"
        elif letter in _READ_NUMBERS:
            letters.append(letter)
            found += f"([0-9]{{1,{_READ_NUMBERS[letter][0]}}}+)"
        else:
            raise ValueError(f"`{part}` reads no part of a time")
    return found


def read(text: str, format: str) -> dt.datetime:
    """The time that a text writes in a format, of the 1st of January 1900 what it does not say; or `ValueError`."""
    looks, letters = reader_of(format)
    found = looks.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not written as {format!r} says")
    year, month, day, hour, half, minute, second, micros = 1900, 1, 1, 0, "", 0, 0, 0
    for letter, part in zip(letters, found.groups(), strict=True):  # what comes later counts
        number = _in_range(letter, part) if letter in _READ_NUMBERS else 0
        match letter:
            case "Y":
                year = number
            case "y":
                year = number + (1900 if number >= 69 else 2000)
            case "m":
                month = number
            case "b" | "h" | "B":
                month = next(i for i, name in enumerate(MONTHS, 1) if name.lower().startswith(part.lower()))
            case "d" | "j":
                day = number
            case "H" | "I":
                hour = number
            case "p":
                half = part.upper()
            case "M":
                minute = number
            case "S":
                second = number
            case "f" | "g":
                micros = int(part.ljust(6, "0"))
    if half:
        if hour > 12:
            raise ValueError(f"{hour} is no hour of twelve")
        hour = hour % 12 + 12 * (half == "PM")
    date = dt.date(year, month, 1 if "j" in letters else day)
    if "j" in letters:
        date += dt.timedelta(days=day - 1)
    if date.year != year:
        raise ValueError(f"{year} has no day {day}")
    return dt.datetime.combine(date, dt.time(hour, minute, second, micros))


def _in_range(letter: str, digits: str) -> int:
    _, least, most = _READ_NUMBERS[letter]
    if not least <= int(digits) <= most:
        raise ValueError(f"`%{letter}` is from {least} to {most}, and not {int(digits)}")
    return int(digits)
