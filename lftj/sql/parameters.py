"""Parameters of a text, `$name`: their values as literal nodes of its tree, or left open as nodes of a type.

    select a from t where b = $low        low=3: `b = 3`, or for all texts like it `b = <low, a number>`

A value is never a part of the text. A tree in which parameters are open is translated once, for all values of the same
kinds (kept_statements.py). Values of some kinds cannot be left open: what the tree is translated to depends on them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlglot import exp

from lftj.errors import ArgumentError
from lftj.language.types import NUMBER, SYMBOL
from lftj.sql.constants import decimal_type
from lftj.sql.places import SqlText
from lftj.values.codes import is_missing
from lftj.values.decimal_type import DIGITS

# The values of parameters, by name.
Given = Mapping[str, Any]
NOTHING: Given = {}
DIALECT = "duckdb"
# Whole numbers up to this one, of either sign, stand for no null in any column, and fit into every computation's type.
LARGE = 1 << 62
CLOSED = ""
# Where numbers are written out. No column says there what type is due, so a text of digits is a number: all values that
# the command line gives are texts.
_COUNTS = frozenset(
    {
        (exp.Limit, "expression"),
        (exp.Offset, "expression"),
        (exp.Lag, "offset"),
        (exp.Lead, "offset"),
        (exp.NthValue, "offset"),
        (exp.Ntile, "this"),
        (exp.WindowSpec, "start"),
        (exp.WindowSpec, "end"),
        (exp.Round, "decimals"),
    }
)
_WHOLE = re.compile("-?[0-9]{1,18}")
# What the node of a value that stands for a parameter has in its `meta`.
_GIVEN = "parameter"


def named_parameters(statements: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    """The nodes of all parameters."""
    return (node for statement in statements for node in list(statement.find_all(exp.Placeholder, exp.Parameter)))


def name_of(node: exp.Expr) -> str:
    """The name of a parameter."""
    return str(node.name)


def is_parameter(node: exp.Expr) -> bool:
    """Whether a node stands for a parameter, with its value or left open: a number there is never a position."""
    return isinstance(node, exp.Placeholder) or _GIVEN in node.meta


# --- left open --------------------------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """The type of a value that may be left open, as a constant of it would have; else `CLOSED`."""
    if type(value) is int:
        return NUMBER if -LARGE < value < LARGE else CLOSED
    if type(value) is str:
        return SYMBOL
    if type(value) is Decimal and value.is_finite():
        _, digits, exponent = value.as_tuple()
        exact = isinstance(exponent, int) and exponent < 0 and max(len(digits), -exponent) <= DIGITS
        return decimal_type(value) if exact else CLOSED
    if type(value) is dt.datetime and value.tzinfo is None:
        return "timestamp"
    return _KINDS.get(type(value), CLOSED)


_KINDS = {dt.date: "date", UUID: "uuid"}


def left_open(name: str, value: Any) -> exp.Expr:
    """The node of a parameter with values like this one; of none where its `kind` is `CLOSED`."""
    return exp.Placeholder(this=name, kind=kind_of(value))


def with_value(node: exp.Expr, given: Given, source: SqlText) -> exp.Expr:
    """A node, or that of its value if it is a parameter."""
    if not isinstance(node, exp.Placeholder):
        return node
    return literal(name_of(node), given[name_of(node)], source, node)


# --- names and values -------------------------------------------------------------------------------------------------


def check_names(source: SqlText, statements: Sequence[exp.Expression], given: Given) -> None:
    """Raise an error unless each parameter of the statements is given its value, and no other."""
    named: dict[str, exp.Expr] = {}
    for node in named_parameters(statements):
        name = name_of(node)
        if name in ("", "?") or name.isdigit():
            raise source.unsupported(
                "a parameter without a name", node, "write `$name`, and give `name=` with its value"
            )
        named.setdefault(name, node)
    for name in named:
        if name not in given:
            raise ArgumentError(
                f"the parameter `${name}` has no value",
                where=f"in `{_short(source.text)}`",
                why="every parameter of a text is given its value by name",
                remedy=f"give `{name}=...`",
            )
    for name in given:
        if name not in named:
            from lftj.language.diagnostics import did_you_mean

            has = ", ".join(f"`${other}`" for other in named)
            raise ArgumentError(
                f"the text has no parameter `${name}`",
                where=f"in `{_short(source.text)}`",
                why=f"it has {has}" if named else "none stands outside of quotes",
                remedy=did_you_mean(
                    name, named, f"leave `{name}=` out, or write `${name}` where its value is to stand"
                ),
            )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def literal(name: str, value: Any, source: SqlText, node: exp.Expr) -> exp.Expr:
    """The node of a value: known as that of a parameter, which a number of the text is not."""
    if isinstance(value, str) and (type(node.parent), node.arg_key) in _COUNTS and _WHOLE.fullmatch(value):
        value = int(value)
    made = _literal(name, value, source, node)
    made.meta[_GIVEN] = name
    return made


def _literal(name: str, value: Any, source: SqlText, node: exp.Expr) -> exp.Expr:
    if is_missing(value):
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if hasattr(value, "item") and callable(value.item):  # a numpy scalar
        value = value.item()
    if isinstance(value, int):
        return _signed(exp.Literal.number(abs(value)), value < 0)
    if isinstance(value, float) and value == value:
        return exp.Cast(this=exp.Literal.string(repr(value)), to=exp.DataType.build("double"))
    if isinstance(value, Decimal) and value.is_finite():
        return _signed(exp.Literal.number(f"{abs(value):f}"), value < 0)
    if isinstance(value, str):
        return exp.Literal.string(value)
    for kind, type, text in _TYPED:
        if isinstance(value, kind):
            return exp.Cast(this=exp.Literal.string(text(value)), to=exp.DataType.build(type, dialect=DIALECT))
    raise ArgumentError(
        f"`${name}` cannot be {value!r}",
        where=str(source.span(node)),
        why="a parameter is a number, a text, a bool, a date, a time, a uuid or None",
        remedy=f"give `{name}=` one of these; for a list, write a parameter for each of its values",
    )


def _signed(node: exp.Expr, negative: bool) -> exp.Expr:
    return exp.Neg(this=node) if negative else node


def _duration_text(value: dt.timedelta) -> str:
    return f"{(value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds}us"


# A datetime is a date, too, and stands before it.
_TYPED: tuple[tuple[type, str, Any], ...] = (
    (dt.datetime, "timestamp", lambda value: value.isoformat(sep=" ")),
    (dt.date, "date", dt.date.isoformat),
    (dt.timedelta, "interval", _duration_text),
    (UUID, "uuid", str),
    (bytes, "blob", lambda value: "".join(f"\\x{byte:02x}" for byte in value)),
)
