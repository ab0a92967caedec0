"""Variances and standard deviations: from the number of values of a group, their sum and that of their squares.

    of n values with sum S and squares' sum Q       n * Q - S * S = n * the sum of the squared distances from the mean
    var_pop      (n * Q - S * S) / (n * n)
    var_samp     (n * Q - S * S) / (n * (n - 1))      the sample's: none of one value
    stddev_..    the square root of one of them

S and Q are exact integers (lftj/join/exactsquares.py), so that a result is that of the values, rounded once, whatever
came and went before. Most results come of two floats for each number, which say whether they suffice; where values lie
close together far from 0, they cancel out, and Python's integers are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.join.exactsquares import POINT, integers_of, sums_of_group, variances
from lftj.join.exactsum import FRACTION
from lftj.join.frames import variances_of_frames
from lftj.language.types import scale_of
from lftj.values.codes import encode_float

if TYPE_CHECKING:
    from scantree.version import Version

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MANTISSA = FRACTION + 1  # the bits of a float


class Variance(NamedTuple):
    """A variance: `sample`, divided by n - 1 where else by n · `rooted`: its square root."""

    sample: bool
    rooted: bool

    def results(self, segments: Version, operand: str, storage: str, groups: Ints, counts: Ints) -> tuple[Ints, Marks]:
        """(the codes of the results of `groups` int64[k, g], which of them have none: those beyond the largest float).

        `segments`: of the sums, by (group..., segment) · `counts` int64[g]: from 1 on, and from 2 of a sample.
        """
        unit = 10 ** (2 * scale_of(operand))
        found = variances(segments, storage, groups, counts, unit, sample=self.sample, rooted=self.rooted)

        def sums_of(i: int) -> tuple[int, int]:
            return sums_of_group(segments, storage, np.ascontiguousarray(groups[:, i]))

        return self._completed(found, counts, sums_of, unit, storage)

    def of_frames(
        self, codes: Ints, operand: str, storage: str, present: Marks, low: Ints, high: Ints, counts: Ints
    ) -> tuple[Ints, Marks]:
        """The same of frames [low, high) of values with `codes` int64[n], of which `counts` are `present` in each."""
        unit = 10 ** (2 * scale_of(operand))
        of = codes, storage, present, low, high, counts, unit
        found, running = variances_of_frames(*of, sample=self.sample, rooted=self.rooted), list[list[int]]()

        def sums_of(i: int) -> tuple[int, int]:
            if not running:
                values = integers_of(np.where(present, codes, 0), storage)
                running.extend(list(accumulate(of, initial=0)) for of in (values, (v * v for v in values)))
            total, of_squares = (sums[high[i]] - sums[low[i]] for sums in running)
            return total, of_squares

        return self._completed(found, counts, sums_of, unit, storage)

    def _completed(
        self, found: Floats, counts: Ints, sums_of: Callable[[int], tuple[int, int]], unit: int, storage: str
    ) -> tuple[Ints, Marks]:
        """As `results`, of those that were `found`; where that is -1, by the sum and that of the squares."""
        unit <<= 2 * POINT if storage == "float" else 0
        for i in np.flatnonzero(found < 0).tolist():
            found[i] = self._by_integers(int(counts[i]), *sums_of(i), unit)
        without = np.isinf(found)
        return encode_float(np.where(without, 0.0, found)), without

    def _by_integers(self, n: int, total: int, of_squares: int, unit: int) -> float:
        """The result of n values with their sums; inf if there is none.

        Of circuits, whose rows may be taken away before they come, what would be less than 0 is 0.
        """
        distances = max(0, n * of_squares - total**2)
        try:
            return (_root if self.rooted else _quotient)(distances, n * (n - self.sample) * unit)
        except OverflowError:
            return np.inf


VARIANCES = {
    "var_pop": Variance(sample=False, rooted=False),
    "var_samp": Variance(sample=True, rooted=False),
    "stddev_pop": Variance(sample=False, rooted=True),
    "stddev_samp": Variance(sample=True, rooted=True),
}


def _quotient(n: int, m: int) -> float:
    """The float nearest to n / m."""
    return n / m


def _root(n: int, m: int) -> float:
    """The float nearest to the square root of n / m.

    It is taken of two bits more than a float has at least, the last of them 1 where others are cut off: so rounding it
    is rounding the root.
    """
    shift = (n.bit_length() - m.bit_length() - 2 * (MANTISSA + 2)) // 2
    n, m = (n, m << 2 * shift) if shift >= 0 else (n << -2 * shift, m)
    root = isqrt(n // m)
    root |= root * root * m != n
    return float(root << shift) if shift >= 0 else root / (1 << -shift)
