"""Times written as a format says: `strftime(@2024-05-31, "%d.%m.%Y")` is "31.05.2024"."""

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
# What may stand behind `%`, for messages.
KNOWN = sorted([*_NUMBERS, *_NAMES, *_SEVERAL, *(f"-{letter}" for letter in _SHORT)], key=str.lower)


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
