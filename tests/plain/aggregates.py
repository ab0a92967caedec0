"""What an aggregate makes of the values of its bindings: Python's integers, `math.fsum`, fractions, `min`, `join`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from tests.plain.syntax import Scalar, Unsigned


class Empty(Exception):
    """Nothing to fold, and the aggregate has no value for that: whatever asks for it does not hold."""


class Overflow(ArithmeticError):
    """A sum that its type does not hold; of floats one beyond the largest, or of both infinities.

    The transaction that leads to it fails.
    """


def folded(op: str, values: Sequence[Scalar]) -> Scalar:
    """`op` over values, one for each binding (with repeats); those of "cat" in the order of their bindings."""
    if op == "count":
        return len(values)
    if op == "sum":
        return total(values)
    if not values:
        raise Empty
    if op == "mean":
        # The exact quotient, rounded once.
        if any(math.isinf(value) for value in values if isinstance(value, float)):
            return exact(values)
        return float(sum(map(Fraction, values)) / len(values)) + 0.0  # type: ignore[arg-type]
    if op == "cat":
        return "".join(map(str, values))
    if op.startswith(("var_", "stddev_")):
        return variance(op, values)
    if op.startswith("quantile"):
        return quantile(op, sorted(values))  # type: ignore[type-var]
    return min(values) if op == "min" else max(values)  # type: ignore[type-var]


def variance(op: str, values: Sequence[Scalar]) -> float:
    """A variance or its square root, by fractions and by decimals of many digits, rounded once."""
    n = len(values)
    if n < (2 if op.endswith("samp") else 1):
        raise Empty
    if any(math.isinf(value) for value in values if isinstance(value, float)):
        raise Overflow(f"{op} of inf")
    exact_values = [Fraction(value) for value in values]  # type: ignore[arg-type]
    mean = sum(exact_values) / n
    found = sum((value - mean) ** 2 for value in exact_values) / (n - op.endswith("samp"))
    try:
        if op.startswith("var"):
            return found.numerator / found.denominator
        with localcontext(prec=2500, Emin=-9999, Emax=9999):
            made = float((Decimal(found.numerator) / found.denominator).sqrt())
    except OverflowError:
        raise Overflow(op) from None
    if math.isinf(made):
        raise Overflow(op)
    return made


def quantile(op: str, ordered: Sequence[Scalar]) -> Scalar:
    """A quantile of values in order: the first that so many do not exceed, or what lies between two, rounded once."""
    word, part = op.removesuffix(")").split("(")
    at = Fraction(part)
    if word == "quantile_disc":
        return next(value for i, value in enumerate(ordered, 1) if i >= at * len(ordered))
    place = at * (len(ordered) - 1)
    lower, upper, way = ordered[math.floor(place)], ordered[math.ceil(place)], place % 1
    if lower == upper or not way:
        return float(lower) + 0.0  # type: ignore[arg-type]
    if math.isinf(float(lower)) and math.isinf(float(upper)):  # type: ignore[arg-type]
        return float(upper if way > Fraction(1, 2) else lower)  # type: ignore[arg-type]
    if math.isinf(float(lower)) or math.isinf(float(upper)):  # type: ignore[arg-type]
        return float(lower) + float(upper)  # type: ignore[arg-type]
    return float(Fraction(lower) + (Fraction(upper) - Fraction(lower)) * way) + 0.0  # type: ignore[arg-type]


def total(values: Sequence[Scalar]) -> Scalar:
    """The exact sum; of floats the float next to it."""
    if any(isinstance(value, float) for value in values):
        return exact(values)
    found = sum(map(int, values))
    unsigned = any(isinstance(value, Unsigned) for value in values)
    low, high = (0, 2**64) if unsigned else (-(2**63), 2**63)
    if not low <= found < high:
        raise Overflow(f"sum {found}")
    return Unsigned(found) if unsigned else found  # a sum of sums has their type


def exact(values: Sequence[Scalar]) -> float:
    """`math.fsum`, which gives up where a partial sum is beyond the largest float though the sum is not."""
    floats = [float(value) for value in values]
    # Infinities first: with them `math.fsum` gives up as well where a partial sum of the others is too large.
    infinite = {value for value in floats if math.isinf(value)}
    if len(infinite) > 1:
        raise Overflow("infinities of both signs")
    if infinite:
        return infinite.pop()
    try:
        return math.fsum(floats)
    except OverflowError:
        try:
            return float(sum(map(Fraction, floats)))
        except OverflowError:
            raise Overflow("float sum") from None
