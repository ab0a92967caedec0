"""Arithmetic of 64 bits that is checked: an operation is made modulo 2**64, then asked whether it fitted."""

from __future__ import annotations

import numpy as np

from scantree._jit import inlined

# Below it the product of two floats is surely that of 64 bits.
SAFE = 9.2e18


@inlined
def product_overflows(a, b, product):
    """Whether `product`, the product of a and b modulo 2**64, is not the product."""
    near = np.float64(a) * np.float64(b)
    if -SAFE < near < SAFE:
        return False
    if not -1e19 < near < 1e19:
        return True
    return product // a != b or product % a != 0 or (product < 0) != (near < 0)


@inlined
def sum_overflows(a, b, total):
    """Whether `total`, the sum of a and b modulo 2**64, is not the sum."""
    return ((a ^ total) & (b ^ total)) < 0


@inlined
def difference_overflows(a, b, difference):
    """Whether `difference`, b taken from a modulo 2**64, is not the difference."""
    return ((a ^ b) & (a ^ difference)) < 0


@inlined
def exceeds(value, amount, negated):
    """Whether no int64 holds the sum of both; `negated` 1: of the amount, the opposite is one, and is taken away."""
    if negated == 1:  # that of -2**63 is none, and may be taken from what is less than 0
        return difference_overflows(value, -amount, value + amount)
    return sum_overflows(value, amount, value + amount)


@inlined
def magnitude(value):
    """Without its sign; the least integer, whose magnitude is none of 64 bits, is left as it is."""
    return value if value >= 0 else -value
