"""Z-sets as kernels see them: rows of codes, each with an integer weight.

    rows      int64[arity, n]
    weights   int64[n]

A Z-set is a function from rows to integers that is zero almost everywhere; Z-sets add, negate and multiply by weights,
so they form a group (DBSP, section 4.1). A set is a Z-set of weights 1, a bag one of positive weights, a change one of
any weights. In *normal form* rows are distinct and in order and no weight is zero; what an operator makes may hold a
row several times, and is brought into normal form where somebody needs it, once.

Weights are exact: a sum or product beyond int64 raises `WeightOverflowError`. The empty Z-set is legal, and so is
arity 0, where the only row is ().
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from scantree.consolidate import consolidated

Rows = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64]

# Sums of magnitudes up to here cannot leave int64, whatever float64 rounds away.
SAFE = float(1 << 62)
HALF, LOW = 32, (1 << 32) - 1


class WeightOverflowError(EvaluationError, OverflowError):
    """A weight that int64 does not hold."""

    __str__ = EvaluationError.__str__

    def __init__(self) -> None:
        super().__init__(
            "a weight is beyond 64 bits",
            why="weights of equal rows add up, and those of joined rows multiply; the step was not made",
            remedy="give smaller weights, or make the stream a set by `distinct()` before it is joined",
        )


class ZSet:
    """Rows with weights; immutable. `normal`: the caller knows that they are in normal form."""

    __slots__ = ("_normal", "rows", "weights")

    def __init__(self, rows: Rows, weights: Weights, *, normal: bool = False) -> None:
        self.rows, self.weights = rows, weights
        self._normal: ZSet | None = self if normal else None

    @classmethod
    def zero(cls, arity: int) -> ZSet:
        """The Z-set without rows."""
        return cls(np.empty((arity, 0), np.int64), np.empty(0, np.int64), normal=True)

    @classmethod
    def of_rows(cls, rows: Rows, weight: int = 1) -> ZSet:
        """Rows int64[arity, n], each time they are there with the same weight."""
        return cls(rows, np.full(rows.shape[1], weight, np.int64))

    def __len__(self) -> int:
        """How many rows are stored; those with a weight, in normal form."""
        return len(self.weights)

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.rows)

    def normal(self) -> ZSet:
        """The same Z-set in normal form. O(n log n) the first time, unless it is known to be."""
        if self._normal is None:
            rows, weights = self.rows, self.weights
            if len(weights):
                rows, weights = _without_zeros(*_added_up(np.ascontiguousarray(rows), weights))
            self._normal = ZSet(rows, weights, normal=True)
        return self._normal

    @property
    def is_normal(self) -> bool:
        """Whether it is known to be in normal form as it is."""
        return self._normal is self

    def negated(self) -> ZSet:
        """The inverse: every weight with the other sign."""
        if len(self.weights) and self.weights.min() == np.iinfo(np.int64).min:
            raise WeightOverflowError
        return ZSet(self.rows, -self.weights, normal=self.is_normal)

    def plus(self, *others: ZSet) -> ZSet:
        """The sum, weight by weight."""
        parts = [part for part in (self, *others) if len(part)]
        if not parts:
            return self
        if len(parts) == 1:
            return parts[0]
        return ZSet(
            np.concatenate([part.rows for part in parts], axis=1), np.concatenate([part.weights for part in parts])
        )

    def distinct(self) -> ZSet:
        """The set of rows of positive weight (section 4.1)."""
        own = self.normal()
        there = own.weights > 0
        rows = np.compress(there, own.rows, axis=1)
        return ZSet(rows, np.ones(rows.shape[1], np.int64), normal=True)

    def is_set(self) -> bool:
        """Whether every weight is 1."""
        return bool((self.normal().weights == 1).all())

    def is_positive(self) -> bool:
        """Whether every weight is positive."""
        return bool((self.normal().weights > 0).all())

    def columns(self, chosen: Sequence[int]) -> ZSet:
        """The projection to columns: weights of rows that become equal add up."""
        return ZSet(self.rows[list(chosen)], self.weights)

    def kept(self, keep: npt.NDArray[np.bool_]) -> ZSet:
        """The rows that `keep` bool[n] marks."""
        if keep.all():
            return self
        return ZSet(np.compress(keep, self.rows, axis=1), self.weights[keep], normal=self.is_normal)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZSet):
            return NotImplemented
        one, two = self.normal(), other.normal()
        return np.array_equal(one.rows, two.rows) and np.array_equal(one.weights, two.weights)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ZSet({dict(zip(map(tuple, self.rows.T.tolist()), self.weights.tolist(), strict=True))})"


def _without_zeros(rows: Rows, weights: Weights) -> tuple[Rows, Weights]:
    there = weights != 0
    if there.all():
        return rows, weights
    return np.compress(there, rows, axis=1), weights[there]


def are_small(weights: Weights) -> bool:
    """Whether no sum of some of `weights` can leave int64, as their number and the largest of them tell."""
    return not len(weights) or max(-float(weights.min()), float(weights.max())) * len(weights) < SAFE


def check_sums(weights: Weights, starts: npt.NDArray[np.int64]) -> None:
    """`WeightOverflowError` unless every sum of some weights of a run fits into int64; each start begins a run."""
    if not are_small(weights):
        # The sum of all of one sign bounds that of some.
        for side in (np.maximum(weights, 0), np.minimum(weights, 0)):
            _of_halves(np.add.reduceat(_halves(side), starts, axis=1))


def _added_up(rows: Rows, weights: Weights) -> tuple[Rows, Weights]:
    """`consolidated`; `WeightOverflowError` where the weights of a row leave int64."""
    if are_small(weights):
        return consolidated(rows, weights)
    rows, halves = consolidated(rows, _halves(weights))
    return rows, _of_halves(halves)


def _halves(weights: Weights) -> npt.NDArray[np.int64]:
    """The high and the low 32 bits of weights, int64[2, n]: sums of these do not wrap."""
    return np.stack([weights >> HALF, weights & LOW])


def _of_halves(halves: npt.NDArray[np.int64]) -> Weights:
    """The weights that sums of halves make; `WeightOverflowError` where one leaves int64."""
    high = halves[0] + (halves[1] >> HALF)
    if (high != high.astype(np.int32)).any():
        raise WeightOverflowError
    made: Weights = (high << HALF) | (halves[1] & LOW)
    return made


def added(one: Weights, two: Weights) -> Weights:
    """The sums, pair by pair; `WeightOverflowError` where one leaves int64."""
    total = one + two
    if (((one ^ total) & (two ^ total)) < 0).any():
        raise WeightOverflowError
    return total


def multiplied(one: Weights, two: Weights) -> Weights:
    """The products, pair by pair; `WeightOverflowError` where one leaves int64."""
    if len(one):
        most = [max(abs(float(w.min())), abs(float(w.max()))) for w in (one, two)]
        if most[0] * most[1] >= SAFE:
            for a, b in zip(one.tolist(), two.tolist(), strict=True):
                if not -(1 << 63) <= a * b < 1 << 63:
                    raise WeightOverflowError
    product: Weights = one * two
    return product
