"""Arithmetic with sums of two floats that are not added up, the second below half a unit of the first's last place.

Such a number has about 106 bits. What is computed is a bound away from the exact result, so that where both ends of
that interval round to one float, it is the exact result, rounded: Ziv's test. Integers decide the rest.

Source: M. Joldes, J.-M. Muller, V. Popescu, Tight and Rigorous Error Bounds for Basic Building Blocks of Double-Word
Arithmetic (ACM TOMS 44, 2017), algorithms 6 (sum), 12 (product) and 18 (quotient), whose errors are below 2**-100 of
the result.
"""

from __future__ import annotations

import math

from scantree._jit import inlined

SPLIT = 134217729.0  # 2**27 + 1: the product with it cuts a float into two of half the bits


@inlined
def sum_of(a, b):
    """The sum of a and b, exactly."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


@inlined
def product_of(a, b):
    """The product of a and b, exactly, unless it or a part of it leaves the range of floats."""
    product = a * b
    cut = SPLIT * a
    a_high = cut - (cut - a)
    a_low = a - a_high
    cut = SPLIT * b
    b_high = cut - (cut - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def add(ah, al, bh, bl):
    """The sum of two such numbers."""
    high, low = sum_of(ah, bh)
    more, rest = sum_of(al, bl)
    high, low = sum_of(high, low + more)
    return sum_of(high, low + rest)


@inlined
def multiply(ah, al, bh, bl):
    """The product of two such numbers."""
    high, low = product_of(ah, bh)
    return sum_of(high, low + (ah * bl + al * bh))


@inlined
def divide(ah, al, bh, bl):
    """The quotient of two such numbers."""
    first = ah / bh
    ph, pl = multiply(bh, bl, first, 0.0)
    rh, rl = add(ah, al, -ph, -pl)
    second = rh / bh
    ph, pl = multiply(bh, bl, second, 0.0)
    rh, rl = add(rh, rl, -ph, -pl)
    high, low = sum_of(first, second)
    return sum_of(high, low + rh / bh)


@inlined
def square_root(ah, al):
    """The square root of such a number above 0."""
    root = math.sqrt(ah)
    ph, pl = product_of(root, root)
    rh, _ = add(ah, al, -ph, -pl)
    return sum_of(root, rh / (2.0 * root))


@inlined
def is_sure(high, low, error):
    """Whether all numbers at most `error` away from such a number round to `high`, an ordinary float."""
    return high > 1e-290 and high < 1e300 and high + (low + error) == high and high + (low - error) == high
