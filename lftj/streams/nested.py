"""Nested circuits: ticks within a tick, until nothing changes any more.

A nested circuit has a clock of its own. At each tick of the circuit around it, it starts from nothing; what comes in is
there at its first tick (`delta0`, definition 5.1), and what goes out is the sum of a stream over all of its ticks (the
definite integral). A fixpoint is a loop inside: `x = f(z^-1(x), I(delta0(i)))`, whose differences add up to what it
settles on (DBSP, section 5).

The run ends at the first tick at which nothing came in, no state changed and nothing waits for a later tick: all later
ticks would be the same. A sum over a stream that does not become zero has no value, and `limit` ends a run that would
not end by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lftj.errors import EvaluationError
from lftj.streams.graph import Graph
from lftj.streams.operators import NESTED, Operator, Room, Tick, zset_of
from lftj.streams.zsets import ZSet

LIMIT = 1_000_000
States = dict[int, Any]


class NoFixpointError(EvaluationError):
    """A nested circuit did not come to rest."""


@dataclass(frozen=True, eq=False)
class Nested(Operator):
    """A nested circuit. `graph`: its nodes; its inputs, in order, are what it reads, its outputs what `Leave` picks.

    `clocks`: those that a rewriting made it incremental over, its own included; 0 of one as it was written.
    """

    symbol: ClassVar[str] = "nested"
    law: ClassVar[str] = NESTED
    graph: Graph
    name: str
    limit: int = LIMIT
    clocks: int = 0

    @property
    def label(self) -> str:
        """Its name."""
        return f"nested {self.name}"

    def start(self, room: Room) -> States | None:
        """The states of its nodes; none are kept between the runs of one that is not incremental."""
        return self.graph.start(room) if self.clocks else None

    def step(self, state: States | None, values: Sequence[Any], tick: Tick) -> tuple[Any, States | None]:
        """Run until it rests."""
        graph, room = self.graph, tick.room
        given = dict(zip(graph.inputs, map(zset_of, values), strict=True))
        totals = [ZSet.zero(node.arity) for node in graph.outputs.values()]
        outer = tick.times[len(tick.times) + 2 - self.clocks :] if self.clocks else ()
        # A run within the run of another one adds to what was seen before.
        seen: dict[int, tuple[int, float]] = dict(graph.seen) if any(tick.times[1:]) else {}
        if state is None:
            state = graph.start(room)
        elif not any(len(value) for value in given.values()) and not self.waiting(state, outer):
            graph.seen = seen
            return tuple(totals), state
        none = {name: ZSet.zero(node.arity) for name, node in graph.inputs.items()}
        number, states, rests = 0, state, False
        while not rests:
            if number == self.limit:
                raise NoFixpointError(
                    f"the nested circuit `{self.name}` did not come to rest in {self.limit:,} ticks",
                    why="each tick still changed something; the step was not made",
                    remedy="look at the loop: does it add rows without end? else raise `limit=`",
                )
            made, following = graph.tick(states, given if number == 0 else none, Tick((*tick.times, number), room))
            out = [zset_of(made[node.number]) for node in graph.outputs.values()]
            rests = number > 0 and not any(len(value.normal()) for value in out)
            rests = rests and self._rests(states, following, outer)
            totals = [total.plus(value) for total, value in zip(totals, out, strict=True)]
            states, number = following, number + 1
            for at, (rows, seconds) in graph.seen.items():
                before = seen.get(at, (0, 0.0))
                seen[at] = before[0] + rows, before[1] + seconds
        graph.seen = seen
        lasting = self._lasting(states, room, over=self.clocks == 2) if self.clocks else None
        return tuple(total.normal() for total in totals), lasting

    def _rests(self, states: States, following: States, outer: tuple[int, ...]) -> bool:
        """Whether all later ticks are the same as this one."""
        return not (self.clocks and self.waiting(following, outer)) and self.graph.same(states, following)

    def _lasting(self, states: States, room: Room, *, over: bool) -> States:
        return {node.number: node.operator.lasting(states[node.number], room, over=over) for node in self.graph.order()}

    def lasting(self, state: States | None, room: Room, *, over: bool) -> States | None:
        """Its past, which is kept over all ticks of the circuits around it."""
        return state if state is None or not over else self._lasting(state, room, over=True)

    def waiting(self, state: States | None, outer: tuple[int, ...]) -> bool:
        """Whether one of its nodes waits for a later tick."""
        return state is not None and any(
            node.operator.waiting(state[node.number], outer) for node in self.graph.order()
        )


@dataclass(frozen=True)
class Leave(Operator):
    """One of the streams that leave a nested circuit."""

    symbol: ClassVar[str] = "∫"
    which: int

    def step(self, state: Any, values: Sequence[Any], tick: Tick) -> tuple[Any, Any]:
        """Pick it."""
        return values[0][self.which], None
