"""`distinct`: the set of the rows of positive weight, and how it changes.

distinct(i)     the rows of i with a positive weight, each once (section 4.1)
H(i, d)         what distinct(i + d) has more than distinct(i), at the cost of d (proposition 4.7)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lftj.streams.integral import Integral
from lftj.streams.operators import DISTINCT, Operator, Room, Tick, TickByTick, Value, zset_of
from lftj.streams.zsets import ZSet, added


@dataclass(frozen=True)
class Distinct(TickByTick):
    """The set of what has a positive weight, tick by tick."""

    symbol: ClassVar[str] = "distinct"
    law: ClassVar[str] = DISTINCT
    arity: int

    @property
    def key(self) -> tuple[int, ...]:
        """It acts on each row alone."""
        return tuple(range(self.arity))

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """The set of a Z-set."""
        return zset.distinct()


@dataclass(frozen=True)
class DistinctChange(Operator):
    """`H`: of the integral before a tick and the change at it, how the set of rows changes."""

    symbol: ClassVar[str] = "H"

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Look at the rows that change."""
        before, delta = values
        assert isinstance(before, Integral)
        delta = zset_of(delta).normal()
        if not len(delta):
            return delta, None
        old = before.weights_of(delta.rows)
        flips = (added(old, delta.weights) > 0).astype(np.int64) - (old > 0)
        moved = flips != 0
        return ZSet(np.compress(moved, delta.rows, axis=1), flips[moved], normal=True), None
