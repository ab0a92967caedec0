"""Types of values: what a cast gives, in which type two values meet, and how they are compared.

    bigint with decimal(p, s)    as decimals of s digits behind the point: `x * 1.00d`, which kernels compute
    ubigint with decimal(p, s)   as decimals, too
    decimals of two scales       as decimals of the larger scale
    any of these with double     as doubles
    date with timestamp          as timestamps
    a text that is written out   as what stands on the other side: `d <= '1998-09-02'`

A constant is converted here and now. Where it has more digits than a column can have, the comparison is one with the
nearest value that the column can have: `x < 1.005`, of two digits, is `x <= 1.00`, so that the column stays as it is
and bounds a range.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from lftj.language import ast
from lftj.language.functors import FLIPPED, NEGATED
from lftj.language.types import (
    BOOL,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    NUMBER,
    RANGES,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    decimal_of,
    scale_of,
)
from lftj.sql.cases import Known
from lftj.sql.constants import constant, digits_behind_point, folded, written
from lftj.sql.places import SqlText, as_duckdb
from lftj.sql.whole_numbers import positive, within
from lftj.values.decimal_type import DIGITS, Decimals
from lftj.values.faults import counted
from lftj.values.type_table import family_of, type_of, without_null

NUMBERS = (NUMBER, UNSIGNED, DECIMAL, FLOAT)
ZONED = f'{TIMESTAMP}("UTC")'
# What DuckDB writes otherwise than `to_string`: `2024-03-31T01:30:00+00:00`, `1.0e-07`.
_AS_DUCKDB = {TIMESTAMP: (("T", " "), ("+00:00", "+00")), FLOAT: ((".0e", "e"),)}


def call(name: str, type: str, *args: ast.Term) -> ast.Term:
    """A functor over terms, as a constant of `type` if all of them are."""
    return folded(ast.Functor(name, args), type)


def shown(type: str) -> str:
    """A type as SQL calls it."""
    names = {NUMBER: "bigint", UNSIGNED: "ubigint", FLOAT: "double", SYMBOL: "text", BOOL: "boolean"}
    return names.get(type, {DURATION: "interval", "bytes": "blob", ZONED: "timestamptz"}.get(type, type))


# Casts


class InTypeOf(exp.Expression, exp.Func):
    """`this`, cast to whatever type `expression` has, of which only the type is asked."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


def cast(term: ast.Term, type: str, wanted: str, node: exp.Expr, source: SqlText) -> ast.Term:
    """A value of one type as one of another, or an error."""
    if family_of(wanted) == DECIMAL and isinstance(term, ast.Constant):
        _check_digits(term.value, scale_of(wanted), node, source)
    if family_of(type) == family_of(wanted) == DECIMAL:
        return _rescaled(term, type, scale_of(wanted))
    if type == wanted:
        return term
    if isinstance(term, ast.Constant) and {type, wanted} == {NUMBER, UNSIGNED}:
        _check_sign(term.value, wanted, node, source)
    if isinstance(term, ast.Constant) and type == SYMBOL:
        return _written(term, wanted, node, source)
    made = _CASTS.get((family_of(type), family_of(wanted)))
    found = None if made is None else made(term, type, wanted)
    if found is None:
        raise source.unsupported(
            f"a cast from {shown(type)} to {shown(wanted)}", node, "cast to another type, or store the column as one"
        )
    return found


def has_cast(type: str, wanted: str) -> bool:
    """Whether values of one type can be cast to another."""
    to_bool = family_of(type) in NUMBERS and wanted == BOOL
    return to_bool or (family_of(type), family_of(wanted)) in _CASTS


def _written(text: ast.Constant, wanted: str, node: exp.Expr, source: SqlText) -> ast.Constant:
    """The constant that a text writes in a type, or an error."""
    try:
        return written(text.value, wanted)
    except ValueError as error:
        raise source.error(
            f"`{text.value}` is no {shown(wanted)}",
            node,
            why=str(error),
            remedy="correct the text, or compare with a value of the other type",
        ) from None


def exact_type(text: str, type: str, node: exp.Expr, source: SqlText) -> str:
    """The decimal type in which a text that is written out meets one of `type` and keeps its digits."""
    scale = digits_behind_point(text)
    if scale > DIGITS:
        raise source.error(
            f"`{text}` has more than {DIGITS} digits behind the point",
            node,
            why=f"a decimal has up to {DIGITS} digits, and none is rounded away",
            remedy="leave digits out, or cast it to double",
        )
    return decimal_of(max(scale_of(type), scale))


def cast_type(value: Known, wanted: str) -> str:
    """The type of what `cast` makes of a value, which says how large it may be.

    A cast to a decimal rounds, and does not ask whether there are too many digits in front of the point.
    """
    if family_of(wanted) != DECIMAL:
        return wanted
    same = family_of(value.type) == DECIMAL and scale_of(value.type) == scale_of(wanted)
    return value.type if same and not isinstance(value.term, ast.Constant) else decimal_of(scale_of(wanted))


def as_unsigned(term: ast.Term, most: int, cast: exp.Expr, source: SqlText) -> ast.Term:
    """A number, as a cast to an unsigned type whose largest value is `most` gives it."""
    if isinstance(term, ast.Constant) and not 0 <= term.value <= most:
        type = cast.args["to"].sql("duckdb").lower()
        why, remedy = f"a {type} is from 0 to {most}", "cast it to bigint"
        raise source.error(f"`{term.value}` is no {type}", cast, why=why, remedy=remedy)
    return within(term, most)


def _check_digits(value: object, scale: int, node: exp.Expr, source: SqlText) -> None:
    """Refuse a constant number that no decimal with so many digits behind the point holds."""
    if isinstance(value, int | Decimal) and abs(Fraction(value)) * 10**scale >= 10**DIGITS:
        raise source.error(
            f"`{value}` does not fit into a decimal with {counted(scale, 'digit')} behind the point",
            node,
            why=f"a decimal has up to {DIGITS} digits, which 64 bits hold",
            remedy="cast to double where decimals and such numbers meet",
        )


def _check_sign(value: int, wanted: str, node: exp.Expr, source: SqlText) -> None:
    """Refuse a constant whole number that no column of a whole type holds."""
    low, high = RANGES[wanted]
    if not low <= value <= high:
        raise source.error(
            f"`{value}` is no {shown(wanted)}",
            node,
            why=f"a {shown(wanted)} is from {low} to {high}",
            remedy="write a number that it holds, or cast to double where such numbers meet",
        )


def _rescaled(term: ast.Term, type: str, scale: int) -> ast.Term:
    """A decimal, or a whole number, with so many digits behind the point."""
    more = scale - scale_of(type)
    if isinstance(term, ast.Constant) and more >= 0:
        return constant(term.value, decimal_of(scale))
    if more < 0:
        return call("round", decimal_of(scale), term, ast.Constant(scale, NUMBER))
    if not more and family_of(type) == DECIMAL:
        return term
    one = constant(1, decimal_of(more))
    return ast.Functor("*", (term, one))


def with_room(terms: Sequence[ast.Term], types: Sequence[str]) -> list[ast.Term]:
    """Decimals of one scale, of which a constant may have more digits than a column beside it is declared with."""
    constants = [term.value for term in terms if isinstance(term, ast.Constant)]
    most = max((abs(value) for value in constants if isinstance(value, Decimal)), default=0)
    narrow = [isinstance(made := type_of(type), Decimals) and made.high < most * 10**made.scale for type in types]
    one = ast.Constant(Decimal(1), f"{DECIMAL}(1,0)")
    return [
        ast.Functor("*", (term, one)) if tight and not isinstance(term, ast.Constant) else term
        for term, tight in zip(terms, narrow, strict=True)
    ]


def _other_sign(term: ast.Term, wanted: str) -> ast.Term:
    """An unsigned number as a number, or the other way."""
    if isinstance(term, ast.Constant) and (wanted == NUMBER or term.value >= 0):
        return call("to_number" if wanted == NUMBER else "to_unsigned", wanted, call("to_string", SYMBOL, term))
    if wanted == NUMBER:
        return positive(ast.Functor("utoi", (term,)))
    return ast.Functor("itou", (positive(term),))


def _to_unsigned(term: ast.Term, type: str, wanted: str) -> ast.Term:
    """What a cast to a number has, as an unsigned one."""
    return _other_sign(_CASTS[family_of(type), NUMBER](term, type, NUMBER), wanted)


def _to_decimal(term: ast.Term, type: str, wanted: str) -> ast.Term:
    scale = ast.Constant(scale_of(wanted), NUMBER)
    if family_of(type) == FLOAT:
        term = call("round", FLOAT, term, scale)
    return call("to_decimal", wanted, term, scale)


def _to_text(term: ast.Term, type: str, wanted: str) -> ast.Term:
    text = call("to_string", SYMBOL, term)
    for before, behind in _AS_DUCKDB.get(family_of(type), ()):
        text = call("replace", SYMBOL, text, ast.Constant(before, SYMBOL), ast.Constant(behind, SYMBOL))
    return text


def _to_timestamp(term: ast.Term, type: str, wanted: str) -> ast.Term:
    if family_of(type) in (SYMBOL, DATE):
        if isinstance(term, ast.Constant) and isinstance(term.value, dt.date):
            term = ast.Constant(dt.datetime.combine(term.value, dt.time()), TIMESTAMP)
        else:
            # Not `to_timestamp`, which may read texts: what does is worked out beside its aggregate.
            term = ast.Functor("midnight" if family_of(type) == DATE else "to_timestamp", (term,))
        type = TIMESTAMP
    if isinstance(term, ast.Constant):
        return ast.Constant(type_of(wanted).known(type_of(type).read(term.value)), wanted)
    if wanted == TIMESTAMP and type != TIMESTAMP:
        return ast.Functor("local", (ast.Functor("in_zone", (term, ast.Constant("UTC", SYMBOL))),))
    if wanted != TIMESTAMP:
        return ast.Functor("in_zone", (term, ast.Constant(wanted[len(TIMESTAMP) + 2 : -2], SYMBOL)))
    return term


Conversion = Callable[[ast.Term, str, str], ast.Term]
_CASTS: dict[tuple[str, str], Conversion] = {
    (NUMBER, FLOAT): lambda term, type, wanted: call("itof", FLOAT, term),
    (UNSIGNED, FLOAT): lambda term, type, wanted: call("utof", FLOAT, term),
    (DECIMAL, FLOAT): lambda term, type, wanted: call("to_float", FLOAT, term),
    (SYMBOL, FLOAT): lambda term, type, wanted: ast.Functor("to_float", (ast.Functor("trim", (term,)),)),
    (BOOL, FLOAT): lambda term, type, wanted: ast.Functor("itof", (ast.Functor("to_number", (term,)),)),
    (BOOL, NUMBER): lambda term, type, wanted: ast.Functor("to_number", (term,)),
    (UNSIGNED, NUMBER): lambda term, type, wanted: _other_sign(term, wanted),
    (NUMBER, UNSIGNED): lambda term, type, wanted: _other_sign(term, wanted),
    **dict.fromkeys(((family, UNSIGNED) for family in (DECIMAL, FLOAT, BOOL)), _to_unsigned),
    (SYMBOL, UNSIGNED): lambda term, type, wanted: ast.Functor("to_unsigned", (ast.Functor("trim", (term,)),)),
    (DECIMAL, NUMBER): lambda term, type, wanted: call("to_number", NUMBER, _rescaled(term, type, 0)),
    (FLOAT, NUMBER): lambda term, type, wanted: call(
        "to_number", NUMBER, call("to_decimal", decimal_of(0), term, ast.Constant(0, NUMBER))
    ),
    (SYMBOL, NUMBER): lambda term, type, wanted: ast.Functor("to_number", (ast.Functor("trim", (term,)),)),
    (NUMBER, DECIMAL): lambda term, type, wanted: _rescaled(term, type, scale_of(wanted)),
    (UNSIGNED, DECIMAL): _to_decimal,
    (FLOAT, DECIMAL): _to_decimal,
    (SYMBOL, DECIMAL): lambda term, type, wanted: call(
        "to_decimal_away", wanted, ast.Functor("trim", (term,)), ast.Constant(scale_of(wanted), NUMBER)
    ),
    (BOOL, DECIMAL): lambda term, type, wanted: _rescaled(ast.Functor("to_number", (term,)), NUMBER, scale_of(wanted)),
    **dict.fromkeys(
        ((family, SYMBOL) for family in (NUMBER, UNSIGNED, DECIMAL, FLOAT, BOOL, DATE, TIMESTAMP, "uuid")), _to_text
    ),
    (SYMBOL, BOOL): lambda term, type, wanted: ast.Functor("to_bool", (term,)),
    (SYMBOL, DATE): lambda term, type, wanted: ast.Functor("to_date", (ast.Functor("trim", (term,)),)),
    (TIMESTAMP, DATE): lambda term, type, wanted: ast.Functor("date_of", (term,)),
    (SYMBOL, TIMESTAMP): _to_timestamp,
    (DATE, TIMESTAMP): _to_timestamp,
    (TIMESTAMP, TIMESTAMP): _to_timestamp,
    (SYMBOL, DURATION): lambda term, type, wanted: ast.Functor("to_duration", (term,)),
    (SYMBOL, "uuid"): lambda term, type, wanted: ast.Functor("to_uuid", (term,)),
}


# Meeting


def common(values: Sequence[tuple[ast.Term | None, str]], node: exp.Expr, source: SqlText) -> str:
    """The type in which values meet; "" if all are null. A text that is written out is of the type of the others.

    So is a whole number from 0 on that is written out beside unsigned ones.
    """
    types = {type for term, type in values if type and not _is_text(term)}
    if UNSIGNED in types and all(from_zero(term) for term, type in values if type == NUMBER):
        types.discard(NUMBER)
    if not types:
        return SYMBOL if any(type for _, type in values) else ""
    families = {family_of(type) for type in types}
    if families == {TIMESTAMP} and len(types) > 1:
        return ZONED
    if families == {DATE, TIMESTAMP}:
        return next(type for type in types if family_of(type) == TIMESTAMP)
    if DECIMAL in families and families <= {DECIMAL, NUMBER, UNSIGNED}:
        if len(types) == 1 and not any(_is_text(term) for term, _ in values):
            return next(iter(types))
        # a text may write more digits than a column has
        return decimal_of(max(map(scale_of, types)))
    if len(types) == 1:
        return next(iter(types))
    if FLOAT in families and families <= set(NUMBERS):
        return FLOAT
    first, second = sorted(types)[:2]
    castable = next((to for to, other in ((first, second), (second, first)) if has_cast(other, to)), "")
    remedy = f"cast one of them, as in `cast(... as {shown(castable)})`" if castable else "give values of one type"
    raise source.error(
        f"`{as_duckdb(node)}` has values of type {shown(first)} and of type {shown(second)}",
        node,
        why="values of different types are compared and put together after a cast only",
        remedy=remedy,
    )


def _is_text(term: ast.Term | None) -> bool:
    return isinstance(term, ast.Constant) and isinstance(term.value, str)


def from_zero(term: ast.Term | None) -> bool:
    """Whether a term of a whole number is a constant that an unsigned column holds, too."""
    return isinstance(term, ast.Constant) and term.value >= 0


def alike(given: str, target: str) -> bool:
    """Whether codes of one type are codes of the other, null aside; a decimal may have digits that are too many."""
    given, target = without_null(given), without_null(target)
    if family_of(given) == family_of(target) == DECIMAL:
        return scale_of(given) == scale_of(target)
    return given == target


# Comparing


def compared(op: str, left: Known, right: Known, node: exp.Expr, source: SqlText) -> ast.Literal | bool:
    """The literal that two values compare so; a bool where that is known for all rows."""
    if isinstance(left.term, ast.Constant) and not isinstance(right.term, ast.Constant):
        return compared(FLIPPED.get(op, op), right, left, node, source)
    if isinstance(right.term, ast.Constant) and not isinstance(left.term, ast.Constant):
        given, type = right.term, right.type
        if _is_text(given) and family_of(left.type) == DECIMAL:  # it may have more digits, too
            given, type = _written(given, left.type, node, source), left.type
        found = _with_constant(op, left, given, type)
        if found is not None:
            return found
    exact = (side.term for side in (left, right) if family_of(side.type) in (NUMBER, UNSIGNED, DECIMAL))
    numbers = [term.value for term in exact if isinstance(term, ast.Constant)]
    if len(numbers) == 2:
        return _holds(op, *numbers)  # whatever their digits
    type = common([(left.term, left.type), (right.term, right.type)], node, source)
    one, two = (cast(side.term, side.type, type, node, source) for side in (left, right))
    if isinstance(one, ast.Constant) and isinstance(two, ast.Constant):
        return _holds(op, one.value, two.value)
    return ast.Comparison(op, one, two)


def _holds(op: str, one: object, two: object) -> bool:
    if op in ("!=", ">=", ">"):
        return not _holds(NEGATED[op], one, two)
    if op == "=":
        return one == two
    return bool(one < two if op == "<" else one <= two)  # type: ignore[operator]


def _with_constant(op: str, left: Known, right: ast.Constant, type: str) -> ast.Literal | bool | None:
    """A column compared with a constant that may have more digits; None if this is no such comparison."""
    of, value = family_of(left.type), right.value
    if of in (NUMBER, UNSIGNED, DECIMAL) and family_of(type) in (NUMBER, UNSIGNED, DECIMAL):
        unit = 10 ** scale_of(left.type)
        steps = Fraction(value) * unit
        below = math.floor(steps)
        made = type_of(left.type)
        low, high = (made.low, made.high) if isinstance(made, Decimals) else RANGES[of]
        if below < low or below > high:
            return (below > high) == (op in ("<", "<=")) if op not in ("=", "!=") else op == "!="
        nearest = constant(below if of != DECIMAL else Decimal(below).scaleb(-scale_of(left.type)), left.type)
        return _nearest(op, left.term, nearest, exact=below == steps)
    if of == DATE and type == TIMESTAMP:
        return _nearest(op, left.term, ast.Constant(value.date(), DATE), exact=value.time() == dt.time())
    return None


def _nearest(op: str, term: ast.Term, below: ast.Constant, *, exact: bool) -> ast.Literal | bool:
    """A comparison with the constant, or if that is not `exact` with a value above it and below the next."""
    if not exact and op in ("=", "!="):
        return op == "!="
    if not exact:
        op = "<=" if op in ("<", "<=") else ">"
    return ast.Comparison(op, term, below)
