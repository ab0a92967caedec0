"""Time that comes with the rows: clocks, rows that come too late, and windows over the last stretch of time.

A *clock* is the greatest time of a column so far, theta of DBSP, section 7.6.1. Times are integers; a time is seen when
a row with it comes or goes. The clock of a stream and that of its changes are the same, since a row of one occurs in
the other (`Clock . I = Clock`), so it is made incremental by reading changes.

    watermark   w[t] = the clock after tick t-1, less the lateness; it never goes back
    on time     F(d, w): of the changes d at a tick the rows at or above the watermark; others are dropped and counted
    window      W(v, theta): the rows of the value v that are at most `size` older than theta

What is late depends on what came before, so a watermark means something over changes only: `Stream.watermark` is
I . F . D, whose incremental version is F (definition 3.1 and inversion). Both forms therefore keep and drop the same.
W moves inside the integral (section 7.6.1), which so holds the window and no more: rows leave it with their weight
negated when the clock moves on, by a seek, at the cost of what leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.streams.integral import Integral, key_first
from lftj.streams.operators import CLOCK, DEFINITION, WINDOW, Narrowed, Operator, Room, Tick, Value, zset_of
from lftj.streams.zsets import ZSet
from lftj.values.codes import KEY_MAX, KEY_MIN

if TYPE_CHECKING:
    from lftj.streams.graph import Graph

Times = npt.NDArray[np.int64]


def clamped(number: int) -> int:
    """The nearest number that a column holds."""
    return max(KEY_MIN, min(KEY_MAX, number))


def shifted(times: Times, by: int) -> Times:
    """Each time later by `by`; those beyond 64 bits become the last, or the first."""
    by = clamped(by)
    with np.errstate(over="ignore"):
        moved = times + np.int64(by)
    if by >= 0:
        return np.where(moved < times, np.int64(KEY_MAX), moved)
    return np.where(moved > times, np.int64(KEY_MIN), moved)


def bound_of(clock: Value, less: int) -> int:
    """The value of a clock less so much; before any time was seen, the least of all times."""
    zset = zset_of(clock)
    return clamped(int(zset.rows[0, 0]) - less) if len(zset) else KEY_MIN


@dataclass(frozen=True)
class Clock(Operator):
    """The greatest value of a column so far, as a row; without a row until there is one. `before`: up to last tick."""

    symbol: ClassVar[str] = "θ"
    law: ClassVar[str] = CLOCK
    column: int
    before: bool = False

    @property
    def label(self) -> str:
        """With its delay."""
        return "z⁻¹ θ" if self.before else "θ"

    def start(self, room: Room) -> ZSet:
        """Nothing was seen."""
        return ZSet.zero(1)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Look at what comes or goes."""
        zset = zset_of(values[0]).normal()
        after = state
        if len(zset):
            greatest = int(zset.rows[self.column].max())
            if not len(state) or greatest > int(state.rows[0, 0]):
                after = ZSet(np.array([[greatest]], np.int64), np.ones(1, np.int64), normal=True)
        return state if self.before else after, after


@dataclass(frozen=True)
class OnTime(Operator):
    """F: of changes, the rows that are not below the clock less `lateness`. Its state is how many were late.

    `name`: of the stream and column, for `Circuit.late`.
    """

    symbol: ClassVar[str] = "on time"
    law: ClassVar[str] = DEFINITION
    column: int
    lateness: int
    name: str

    @property
    def label(self) -> str:
        """What it is about."""
        return f"on time {self.name} - {self.lateness:,}"

    def start(self, room: Room) -> int:
        """None was late."""
        return 0

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Drop and count what is late."""
        changes = zset_of(values[0]).normal()
        in_time = changes.rows[self.column] >= bound_of(values[1], self.lateness)
        late = sum(map(abs, changes.weights[~in_time].tolist()))
        return changes.kept(in_time), state + late


def counters_of_late(graph: Graph) -> dict[str, int]:
    """By the name of a stream and column, the number of the node whose state says how many of its rows were late."""
    found: dict[str, int] = {}
    for node in graph.order():
        if isinstance(node.operator, OnTime):
            name = node.operator.name
            others = sum(known == name or known.startswith(f"{name} (") for known in found)
            found[f"{name} ({others + 1})" if others else name] = node.number
    return found


@dataclass(frozen=True)
class RangeWindow(Operator):
    """W: of a value and a clock, the rows of the value that are at most `size` older than the clock."""

    symbol: ClassVar[str] = "W"
    law: ClassVar[str] = WINDOW
    column: int
    size: int
    arity: int

    @property
    def label(self) -> str:
        """How long."""
        return f"W {self.size:,}"

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """What is wanted, and the time: which rows are in the window hangs on nothing else."""
        reads = tuple(sorted({self.column, *wanted}))
        made = RangeWindow(reads.index(self.column), self.size, len(reads))
        return Narrowed(made, reads, (reads, tuple(range(arities[1]))))

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Look at all rows of the value."""
        value = zset_of(values[0])
        return value.kept(value.rows[self.column] >= bound_of(values[1], self.size)), None


class WindowState(NamedTuple):
    """The rows in the window, time first, and its bound."""

    rows: Integral
    bound: int


@dataclass(frozen=True)
class WindowChange(Operator):
    """How a window changes: what comes in, and less what the clock leaves behind."""

    symbol: ClassVar[str] = "WΔ"
    of: RangeWindow

    @property
    def label(self) -> str:
        """How long."""
        return f"WΔ {self.of.size:,}"

    def start(self, room: Room) -> WindowState:
        """An empty window."""
        return WindowState(room.integral(key_first((self.of.column,), self.of.arity)), KEY_MIN)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Move the bound on, and let rows in."""
        changes, bound = zset_of(values[0]).normal(), bound_of(values[1], self.of.size)
        entered = changes.kept(changes.rows[self.of.column] >= bound)
        if not len(entered) and bound == state.bound:
            return entered, state
        left, rows = state.rows.split(bound)
        # In normal form: what left is below the bound, what came is not, but columns may come in another order.
        return left.negated().plus(entered).normal(), WindowState(rows.plus(entered), bound)
