"""Bounds of numbers and decimals by floats: `itof(p) > t` as a range of `p`.

A condition on what a number is as a float says little of a key order, which is of numbers. So one more is made of it,
which follows from it and limits `p` itself: a range that holds all that meets the condition, and hardly more.

    itof(p) > t, itof(p) >= t         p >= low(t)
    itof(p) < t, itof(p) <= t         p <= -low(-t)

low(t) is t, less the part of it that a number may gain when it becomes a float, cut off to an integer, and kept to the
range of numbers. Of a decimal, `to_float(p) > t`, it is of t in its units. All of it is made of functors that there
are, and has a value for every t but null.
"""

from __future__ import annotations

from lftj.language.clause import Apply, Compare, Term, Value, Var
from lftj.language.functors import FLIPPED
from lftj.language.types import DECIMAL, FLOAT, NUMBER, scale_of
from lftj.values.type_table import family_of, without_null

# The least number, and the greatest one that is a float, too; what the float of a number or a decimal, with all that is
# computed to compare it, differs by from it, at most.
LEAST, GREATEST, ROUNDED = -(2.0**63), 2.0**63 - 2.0**10, 2.0**-50


def whole_bound(condition: Compare) -> Compare | None:
    """A bound of a variable that holds numbers, which follows from the condition; None if there is none."""
    if condition.op not in FLIPPED:
        return None
    sides = (condition.op, condition.left, condition.right), (FLIPPED[condition.op], condition.right, condition.left)
    for op, side, limit in sides:
        if isinstance(side, Apply) and side.op in ("itof", "to_float") and isinstance(side.args[0], Var):
            variable = side.args[0]
            type = without_null(variable.type)
            if family_of(type) == DECIMAL:
                limit = _float("*", limit, Value(10.0 ** scale_of(type), FLOAT))
            if family_of(type) in (NUMBER, DECIMAL):
                if op in (">", ">="):
                    return Compare(">=", variable, _low(limit, 0.0))
                # bnot x is -x - 1.
                return Compare("<=", variable, Apply("bnot", (_low(_float("neg", limit), 1.0),), NUMBER))
    return None


def _low(limit: Term, less: float) -> Term:
    within = _float("max", _float("min", limit, Value(GREATEST, FLOAT)), Value(LEAST, FLOAT))
    rounded = _float("*", _float("max", within, _float("neg", within)), Value(ROUNDED, FLOAT))
    below = _float("-", _float("-", within, rounded), Value(less, FLOAT))
    return Apply("ftoi", (_float("max", below, Value(LEAST, FLOAT)),), NUMBER)


def _float(op: str, *args: Term) -> Term:
    return Apply(op, args, FLOAT)
