"""Quantiles: which of the values of a group are asked for, by their ranks, and what lies between two of them.

    values of a group, in order, each with the number of bindings that have it        3 (1), 5 (2), 9 (1)
    ranks from 0                                                                      0: 3, 1: 5, 2: 5, 3: 9

Of n bindings `quantile_disc(p)` is the one of rank ceil(p * n) - 1, at least 0, and `quantile_cont(p)` is at rank
(n - 1) * p: between the values x and y of two ranks it is x + (y - x) * rest, exactly, and rounded once. Between -inf
and inf there is nothing, and it is the nearer of the two, -inf in the middle.

p is a fraction a / b, whose b is at most 10^9. So of n * p what n // b has is a whole number, and the rest of the
product fits into 64 bits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.accumulators import BITS, LOW, SIGN, nearest_means, quotients
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.types import scale_of
from lftj.values.codes import decode_float, encode_float
from lftj.values.type_table import family_of, storage_of, type_of

Ints = npt.NDArray[np.int64]


class Quantile(NamedTuple):
    """How an aggregate takes a value at a fraction of a group, from 0 to 1. `between`: also one between two values."""

    between: bool
    fraction: Fraction = Fraction(0)

    def ranks(self, numbers: Ints) -> tuple[Ints, Ints, Ints]:
        """(the rank asked for in groups of `numbers` bindings, the next one, how far it is to that in 1 / b)."""
        a, b = self.fraction.numerator, self.fraction.denominator
        if not self.between:
            lowest = np.maximum(numbers // b * a - (-(numbers % b * a) // b) - 1, 0)
            return lowest, lowest, np.zeros_like(numbers)
        steps = numbers - 1
        rest = steps % b * a
        lowest = steps // b * a + rest // b
        rest = rest % b
        return lowest, lowest + (rest > 0), rest

    def results(self, lower: Ints, upper: Ints, rest: Ints, operand: str) -> Ints:
        """The codes of the results: at `rest` / b on the way from the codes `lower` to `upper` of type `operand`."""
        if not self.between:
            return lower
        b, storage = self.fraction.denominator, storage_of(operand)
        if storage == "float":
            return _between_floats(lower, upper, rest, b)
        if storage == "unsigned":
            lower, upper = lower ^ SIGN, upper ^ SIGN
        # lower * (b - rest) + upper * rest as high * 2**32 + low
        high, low = np.zeros_like(lower), np.zeros_like(lower)
        for codes, times in ((lower, b - rest), (upper, rest)):
            above = codes >> BITS if storage == "number" else codes >> BITS & LOW
            high += above * times
            low += (codes & LOW) * times
        high, low = high + (low >> BITS), low & LOW
        counts = np.full_like(lower, b)
        if family_of(operand) in AGGREGATES["quantile_cont"].keeps:
            return nearest_means(high, low, counts, type_of(operand))[0]
        return encode_float(quotients(high, low, counts, 10 ** scale_of(operand)))


def _between_floats(lower: Ints, upper: Ints, rest: Ints, b: int) -> Ints:
    """The same of floats: the middle of two of ordinary size by halves, which are exact, others as fractions."""
    made = lower.copy()
    moved = np.flatnonzero((rest > 0) & (lower != upper))
    if not len(moved):
        return made
    low, high, way = decode_float(lower[moved]), decode_float(upper[moved]), rest[moved]
    ordinary = (np.abs(low) > 1e-290) & (np.abs(high) > 1e-290) & (2 * way == b)
    with np.errstate(invalid="ignore"):  # of infinities, which are looked at below
        found = low / 2 + high / 2
    for i in np.flatnonzero(~(ordinary & np.isfinite(low) & np.isfinite(high))).tolist():
        found[i] = _between(float(low[i]), float(high[i]), Fraction(int(way[i]), b))
    made[moved] = encode_float(found)
    return made


def _between(low: float, high: float, way: Fraction) -> float:
    """What lies at `way` between two floats."""
    if np.isinf(low):
        return high if np.isinf(high) and 2 * way > 1 else low
    if np.isinf(high):
        return high
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * way)
