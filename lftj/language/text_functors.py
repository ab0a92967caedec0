"""The functors over texts, on Python values.

Texts are sequences of characters (Unicode code points), in which lengths and positions count; Souffle counts the bytes
of their UTF-8, which is the same for ASCII, but would cut characters in two.

A functor without a value for its arguments raises `ValueError`, which says why.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lftj.language.notation import float_text

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


def integer(text: str) -> int:
    """The integer that all of `text` is: decimal, or with 0x or 0b."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not an integer")
    return int(text, 0) if text.lstrip("-")[:2] in ("0x", "0b") else int(text)


def floating(text: str) -> float:
    """The float that all of `text` is, in decimal; `inf` is one."""
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"{text!r} is not a float")
    return float(text)


def to_text(value: object) -> str:
    """The shortest text that reads back as the value."""
    return float_text(value) if isinstance(value, float) else str(value)


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
