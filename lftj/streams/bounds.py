"""Bounds: times below which a column of a stream has no values any more, made from clocks.

    Bound     of a column, in a graph: the least of some ways to make a time from a clock, each a chain of steps
    Floor     the same for the operator that uses it: clocks are values that it reads

A step moves a time by a constant, or from the bound of a time to that of the start of the windows which such times are
in. Every step is monotone, and a clock never goes back: so a bound never goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lftj.streams.clocks import clamped
from lftj.streams.operators import Value, zset_of
from lftj.values.codes import KEY_MIN

if TYPE_CHECKING:
    from lftj.streams.graph import Node


class Grid(NamedTuple):
    """From a bound of times to one of the starts of windows that hold such times; fields as of `Windows`."""

    size: int
    every: int
    offset: int

    def least(self, time: int) -> int:
        """The first start of a window that ends after `time`."""
        return self.offset + self.every * ((time - self.size - self.offset) // self.every + 1)


Steps = tuple["int | Grid", ...]


def _after(steps: Steps, time: int) -> int:
    for step in steps:
        time = step.least(time) if isinstance(step, Grid) else time + step
    return time


@dataclass(frozen=True)
class Floor:
    """The least of some ways: of each the number of a clock among the values that are given, and its steps."""

    ways: tuple[tuple[int, Steps], ...]

    def of(self, clocks: Sequence[Value]) -> int:
        """The bound at a tick; the least of all times while a clock has seen none."""
        found = []
        for clock, steps in self.ways:
            zset = zset_of(clocks[clock])
            if not len(zset):
                return KEY_MIN
            found.append(_after(steps, int(zset.rows[0, 0])))
        return clamped(min(found))


class Bound:
    """A bound of a column. `ways`: nodes of clocks, each with steps."""

    def __init__(self, ways: Iterator[tuple[Node, Steps]] | Sequence[tuple[Node, Steps]]) -> None:
        self.ways: dict[tuple[Node, Steps], None] = {}
        shifts: dict[Node, int] = {}
        for clock, steps in ways:
            if len(steps) == 1 and not isinstance(steps[0], Grid):
                shifts[clock] = min(steps[0], shifts.get(clock, steps[0]))
            else:
                self.ways[clock, steps] = None
        for clock, shift in shifts.items():
            self.ways[clock, (shift,)] = None

    def moved(self, by: int) -> Bound:
        """The bound of the times that are later by so much."""
        return Bound([(clock, _joined(steps, by)) for clock, steps in self.ways])

    def windows(self, grid: Grid) -> Bound:
        """The bound of the starts of windows."""
        return Bound([(clock, (*steps, grid)) for clock, steps in self.ways])

    def or_less(self, other: Bound) -> Bound:
        """The lesser of two."""
        return Bound([*self.ways, *other.ways])

    def floor(self) -> tuple[Floor, list[Node]]:
        """(the same for an operator, the clocks that it has to read)."""
        clocks = list(dict.fromkeys(clock for clock, _ in self.ways))
        return Floor(tuple((clocks.index(clock), steps) for clock, steps in self.ways)), clocks


def _joined(steps: Steps, by: int) -> Steps:
    if steps and not isinstance(steps[-1], Grid):
        return (*steps[:-1], steps[-1] + by)
    return (*steps, by)
