"""Streams that nobody feeds: the same rows at every tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lftj.streams.operators import CONSTANT, Operator, Room, Tick, Value
from lftj.streams.zsets import ZSet


@dataclass(frozen=True)
class Constant(Operator):
    """A set of rows, at every tick."""

    symbol: ClassVar[str] = "rows"
    law: ClassVar[str] = CONSTANT
    rows: tuple[tuple[int | float | str, ...], ...]
    types: tuple[str, ...]

    @property
    def label(self) -> str:
        """How many."""
        return f"{len(self.rows)} rows"

    def zset(self, room: Room) -> ZSet:
        """The rows, coded."""
        codes = [[room.symbols.intern_value(v, t) for v, t in zip(row, self.types, strict=True)] for row in self.rows]
        return ZSet.of_rows(np.array(codes, np.int64).reshape(len(self.rows), len(self.types)).T.copy()).normal()

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """The rows."""
        return self.zset(tick.room), None

    def changes(self, clocks: int) -> Operator:
        """The operator of its changes over so many clocks."""
        return Pulse(self) if clocks == 1 else Once(self)


@dataclass(frozen=True)
class Pulse(Operator):
    """The changes of a constant stream: its rows at the first tick, then nothing."""

    symbol: ClassVar[str] = "δ₀"
    of: Constant

    @property
    def label(self) -> str:
        """How many."""
        return f"δ₀ {self.of.label}"

    def start(self, room: Room) -> bool:
        """Before the first tick."""
        return False

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """The rows, once."""
        return ZSet.zero(len(self.of.types)) if state else self.of.zset(tick.room), True


@dataclass(frozen=True)
class Once(Pulse):
    """The changes over several clocks of a constant stream: its rows at the first tick of all, then nothing."""

    def lasting(self, state: Any, room: Room, *, over: bool) -> Any:
        """It was."""
        return state

    def waiting(self, state: Any, outer: tuple[int, ...]) -> bool:
        """Whether the rows are still to come."""
        return not state
