"""How terms are written: operator precedence, literals, and the text of a conjunction.

Both printers stand on this page, `text.py` (an AST back to source) and `clause.py` (a checked clause for `explain`),
so that they cannot disagree about a parenthesis. The precedence is Souffle's, loosest first:

    lor < lxor < land < bor < bxor < band < bshl bshr bshru < + - < * / % < unary - bnot lnot < ^ (right associative)

`-x ^ 2` is `-(x ^ 2)`, and the exponent of `^` may itself be a unary term: `2 ^ -x`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lftj.values.spelling import ESCAPES, float_text, symbol_text
from lftj.values.type_table import type_of

__all__ = ["float_text", "symbol_text"]

BINARY_LEVEL = {
    "lor": 1,
    "lxor": 2,
    "land": 3,
    "bor": 4,
    "bxor": 5,
    "band": 6,
    "bshl": 7,
    "bshr": 7,
    "bshru": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
    "^": 11,
}
UNARY = {"neg": "-", "bnot": "bnot ", "lnot": "lnot "}
UNARY_LEVEL = 10
POWER_LEVEL = 11
ATOMIC_LEVEL = 12

# A name of a relation or a variable.
NAME = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"'": "'", **{escape[1]: char for char, escape in ESCAPES.items()}}
ESCAPES_SHOWN = r"""the escapes are \" \' \\ \a \b \f \n \r \t \v \xHH \uHHHH \UHHHHHHHH; a backslash is written `\\`"""


class UnknownEscapeError(Exception):
    """A string literal holds an escape that means nothing; its text is the escape."""


def symbol_value(literal: str) -> str:
    """The string that a quoted literal stands for; raises `UnknownEscapeError`."""

    def resolve(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) > 1:
            point = int(code[1:], 16)
            if point <= 0x10FFFF:
                return chr(point)
        elif code in _ESCAPED:
            return _ESCAPED[code]
        raise UnknownEscapeError(match[0])

    body = literal[1:-1]
    return _ESCAPE.sub(resolve, body) if "\\" in body else body


def literal_text(value: object, kind: str) -> str:
    """A constant of a type as source text; null and a 0 of any type have none, and are written as in a message."""
    return "null" if value is None else type_of(kind or "number").literal(value)


def literal_level(text: str) -> int:
    """A negative literal binds like a unary minus."""
    return UNARY_LEVEL if text.startswith("-") else ATOMIC_LEVEL


def functor_text(name: str, args: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """The text and level of a functor over printed arguments, each given with its level. Only needed parentheses."""
    if name in UNARY and len(args) == 1:
        text, level = args[0]
        # A literal operand is parenthesised: `-5` is a constant, `-(5)` is a negation of one.
        literal = text[0] == "-" or (level == ATOMIC_LEVEL and text[0].isdigit())
        plain = level >= UNARY_LEVEL and not (name == "neg" and literal)
        return f"{UNARY[name]}{text if plain else f'({text})'}", UNARY_LEVEL
    level = BINARY_LEVEL.get(name, 0)
    if level and len(args) == 2:
        (left, left_level), (right, right_level) = args
        if level == POWER_LEVEL:
            left_open, right_open = left_level <= POWER_LEVEL, right_level < UNARY_LEVEL
        else:
            left_open, right_open = left_level < level, right_level <= level
        return f"{_wrap(left, left_open)} {name} {_wrap(right, right_open)}", level
    return f"{name}({', '.join(text for text, _ in args)})", ATOMIC_LEVEL


def _wrap(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def comparison_text(op: str, left: str, right: str) -> str:
    """`left op right`, or the call form of the tests of texts, whose operators are words (`!` for `not_`)."""
    if op.isidentifier():
        name = op.removeprefix("not_")
        args = left if name in ("is_null", "or_null") else f"{left}, {right}"
        return f"{'' if name == op else '!'}{name}({args})"
    return f"{left} {op} {right}"
