"""Arithmetic of `bigint`: what leaves 64 bits is an error of its row, as in DuckDB, and never another number.

    x + y    checked_add(x, y)                     x - 1    checked_add(x, -1)
    x * y    checked_mul(x, y)                     x - y    checked_add(x, checked_mul(y, -1))

The operators of rules wrap. The least number, -2^63, may be a value of a column that is `not null`; elsewhere it stands
for null. So no result is the least number, which is an error too; this is why a difference is written as a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from lftj.language import ast
from lftj.language.types import NUMBER
from lftj.sql.constants import folded

GREATEST = 2**63 - 1
# The greatest power of 2 that is a number has this exponent.
_MOST_SHIFTED = 62


def number(value: int) -> ast.Constant:
    """The constant of a whole number."""
    return ast.Constant(value, NUMBER)


def added(x: ast.Term, y: ast.Term) -> ast.Term:
    """The sum of two numbers."""
    return folded(ast.Functor("checked_add", (x, y)), NUMBER)


def multiplied(x: ast.Term, y: ast.Term) -> ast.Term:
    """The product of two numbers."""
    return folded(ast.Functor("checked_mul", (x, y)), NUMBER)


def negated(x: ast.Term) -> ast.Term:
    """A number with the other sign."""
    return multiplied(x, number(-1))


def difference(x: ast.Term, y: ast.Term) -> ast.Term:
    """The difference of two numbers."""
    return added(x, negated(y))


def quotient(x: ast.Term, y: ast.Term) -> ast.Term:
    """The quotient of two numbers, truncated: only the least number by -1 leaves 64 bits."""
    made = ast.Functor("/", (x, y))
    return made if isinstance(y, ast.Constant) and y.value != -1 else multiplied(made, number(1))


def positive(x: ast.Term) -> ast.Term:
    """A number from 0 on; an error of its row otherwise, as a sum on the way has no 64 bits."""
    if isinstance(x, ast.Constant) and x.value < 0:  # whose sum would be folded, as the least number is one
        return ast.Functor("checked_add", (ast.Functor("checked_add", (x, number(-GREATEST))), number(GREATEST)))
    return added(added(x, number(-GREATEST)), number(GREATEST))


def within(x: ast.Term, most: int) -> ast.Term:
    """A number from 0 to `most`; an error of its row otherwise."""
    return added(added(positive(x), number(GREATEST - most)), number(most - GREATEST))


def with_zeros(x: ast.Term, zeros: int) -> ast.Term:
    """A number with so many zeros at its end, at least one, rounded half away from zero."""
    if zeros > 19:
        return number(0)
    if zeros == 19:  # where it is not 0, it is too large
        return multiplied(multiplied(quotient(x, number(5 * 10**18)), number(10**18)), number(10))
    unit = number(10**zeros)
    whole = quotient(x, unit)
    rest = difference(x, multiplied(whole, unit))
    return multiplied(added(whole, quotient(multiplied(rest, number(2)), unit)), unit)


def cut(x: ast.Term, zeros: int) -> ast.Term:
    """A number with so many zeros at its end, at least one, instead of the digits there."""
    unit = number(10 ** min(zeros, 18))
    return number(0) if zeros > 18 else multiplied(quotient(x, unit), unit)


def shifted_left(x: ast.Term, count: ast.Term) -> ast.Term:
    """A number from 0 on by a power of 2, with an exponent from 0 on; an error of its row otherwise."""
    many = _folded("min", positive(count), number(2 * _MOST_SHIFTED))
    rest = _folded("max", added(many, number(-_MOST_SHIFTED)), number(0))
    near, far = (_folded("bshl", number(1), n) for n in (_folded("min", many, number(_MOST_SHIFTED)), rest))
    found = multiplied(positive(x), near)
    return found if far == number(1) else multiplied(found, far)


def shifted_right(x: ast.Term, count: ast.Term) -> ast.Term:
    """A number without so many of its last bits; 0 where there are no so many, as in DuckDB."""
    near = _folded("min", _folded("max", count, number(-1)), number(64))
    inside = _folded("bnot", _folded("bshr", _folded("bor", near, added(number(63), negated(near))), number(63)))
    return _folded("band", _folded("bshr", x, near), inside)


def _folded(name: str, *args: ast.Term) -> ast.Term:
    return folded(ast.Functor(name, args), NUMBER)


def product_of(terms: Sequence[ast.Term]) -> ast.Term:
    """The product of numbers; 1 of none."""
    if not terms:
        return number(1)
    made = terms[0]
    for term in terms[1:]:
        made = multiplied(made, term)
    return made


OPERATIONS = {"+": added, "-": difference, "*": multiplied, "//": quotient}
