"""Constants of SQL, and terms of constants computed while a statement is translated.

`0.06 - 0.01` is one constant then, which bounds a range in a join; `date '1995-01-31' + interval '1' month` needs no
functor; and a text that is no date is refused where it stands, before any row is looked at.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from lftj.language import ast
from lftj.language.functors import FUNCTORS
from lftj.language.types import BOOL, DECIMAL, FLOAT, NUMBER, RANGES, SYMBOL, UNSIGNED, scale_of
from lftj.sql.places import SqlText
from lftj.values.decimal_type import DIGITS
from lftj.values.faults import SHOWN_LENGTH
from lftj.values.type_table import family_of, to_stored, type_of
from lftj.values.value_type import Misfit

_BYTE = re.compile(rb"\\x([0-9a-fA-F]{2})")


def constant(value: Any, type: str) -> ast.Constant:
    """The constant of a value of a type. A decimal is written with as many digits behind the point as the type has."""
    if family_of(type) == DECIMAL:
        value = Decimal(value).quantize(Decimal(1).scaleb(-scale_of(type)))
        return ast.Constant(value, decimal_type(value))
    return ast.Constant(value, type)


def decimal_type(value: Decimal) -> str:
    """The least type that holds a decimal."""
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    return f"{DECIMAL}({max(len(digits), scale, 1)},{scale})"


def digits_behind_point(text: str) -> int:
    """How many digits the number that a text writes has behind its point, but for zeros at the end; 0 of no number."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return 0
    if not value or not value.is_finite():
        return 0
    _, digits, exponent = value.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(-int(exponent) - zeros, 0)


def number_constant(text: str, node: exp.Expr, source: SqlText) -> ast.Constant:
    """The constant that digits write: a whole number, a decimal, or with an exponent a float."""
    if "e" in text.lower():
        if text.endswith("."):  # of `1e4.n`: a column of a number, to the parser
            why, remedy = "nothing stands behind its point", "leave the point out"
            raise source.error(f"`{text}` is no number", node, why=why, remedy=remedy)
        return ast.Constant(float(text), FLOAT)
    if "." in text:
        value = Decimal(text)
        _, digits, exponent = value.as_tuple()
        if max(len(digits), -int(exponent)) > DIGITS:
            raise source.error(
                f"`{text}` has more than {DIGITS} digits",
                node,
                why=f"a decimal has up to {DIGITS} digits, which 64 bits hold",
                remedy=f"write it as a double, as in `{text}e0`",
            )
        return ast.Constant(value, decimal_type(value))
    number = int(text) if len(text) < SHOWN_LENGTH else None
    for type in (NUMBER, UNSIGNED):
        if number is not None and number <= RANGES[type][1]:
            return ast.Constant(number, type)
    raise source.error(
        f"`{text[:SHOWN_LENGTH]}` does not fit into 64 bits",
        node,
        why="whole numbers have 64 bits",
        remedy="write it as a double, with `e0` behind it",
    )


def written(value: str, type: str) -> ast.Constant:
    """The constant that a text writes in a type, as DuckDB reads it; `ValueError` says why it writes none."""
    text = value.strip() if family_of(type) not in (SYMBOL, "bytes") else value
    try:
        if family_of(type) == "bytes":
            return ast.Constant(_BYTE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode()), type)
        if type == BOOL:
            text = {"t": "true", "f": "false", "yes": "true", "no": "false"}.get(text.lower(), text.lower())
        if family_of(type) == DECIMAL:
            found: Any = FUNCTORS["to_decimal_away"].text(text, scale_of(type))  # type: ignore[misc]
            if abs(found) >= 10 ** (DIGITS - scale_of(type)):
                raise ValueError(f"a decimal has up to {DIGITS} digits, {scale_of(type)} of them behind the point here")
            return constant(found, type)
        return constant(type_of(type).known(type_of(type).parse(text)), type)
    except Misfit as misfit:
        raise ValueError(f"it {misfit.fault.reason}") from None


def folded(term: ast.Term, type: str) -> ast.Term:
    """A term over constants as a constant of its type; as it is if it has a variable, or no value."""
    if not isinstance(term, ast.Functor) or not all(isinstance(arg, ast.Constant) for arg in term.args):
        return term
    values = [arg.value for arg in term.args if isinstance(arg, ast.Constant)]
    function = FUNCTORS[term.name].text
    try:
        if term.name in _ARITHMETIC and isinstance(values[0], _COMPUTED) and not isinstance(values[0], bool):
            value = _ARITHMETIC[term.name](*values)
        elif function is not None and FUNCTORS[term.name].name != "ord":
            value = function(*values)
        else:
            return term
        to_stored(value, type)
        return constant(value, type)
    except (ValueError, ArithmeticError, Misfit, TypeError):
        return term


_COMPUTED = (int, float, Decimal, dt.date, dt.timedelta)
_ARITHMETIC: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "checked_add": lambda a, b: a + b,
    "checked_mul": lambda a, b: a * b,
    "itof": float,
    "utof": float,
    "max": max,
    "min": min,
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bnot": lambda a: ~a,
    "bshl": lambda a, b: a << b % 64,
    "bshr": lambda a, b: a >> b % 64,
}
