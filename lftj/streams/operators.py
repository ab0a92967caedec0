"""Operators: what the nodes of a circuit do at a tick, and the simple ones.

An operator is a frozen description without data of its own. What it remembers from one tick to the next is its *state*,
an immutable value that the circuit keeps for it; a step that fails leaves the states as they were.

    start(room)                    the state before the first tick
    step(state, values, tick)      (the value of its stream at this tick, the next state)
    emit(state)                    of a strict operator only: the value, which does not depend on this tick's input

A *strict* operator's value depends on earlier ticks alone, so that a cycle through one has a meaning (DBSP, section
2.2). `law` says how algorithm 4.8 makes the operator incremental (incremental.py). A nested circuit runs its own ticks
within one tick of the circuit around it; `lasting` is the part of a state that outlives such a run, and `waiting`
tells whether a state makes another tick of a run necessary.

Source: M. Budiu et al., DBSP (VLDB 2023), sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from lftj.streams.integral import Integral, Order
from lftj.streams.zsets import ZSet
from lftj.values.schema import Column
from lftj.values.symbols import SymbolTable
from scantree.memory import Arena

Value = ZSet | Integral
Columns = tuple[Column, ...]


class Room(NamedTuple):
    """Where a circuit keeps its integrals, and the texts of its symbols."""

    arena: Arena
    symbols: SymbolTable
    page_rows: int = 256
    dir_rows: int = 64

    def integral(self, order: Order) -> Integral:
        """The integral of nothing, in an order."""
        return Integral.zero(self.arena, order, page_rows=self.page_rows, dir_rows=self.dir_rows)


class Tick(NamedTuple):
    """One tick: its number, from 0, and where the circuit lives.

    `times`: that number, after those of the ticks of the circuits around it within which it is, the outermost first.
    """

    times: tuple[int, ...]
    room: Room


class Narrowed(NamedTuple):
    """An operator for those columns that are wanted of it (narrow.py).

    `kept`: which of its columns it still gives · `reads`: of each input, the columns that it now takes, and no others.
    """

    operator: Operator
    kept: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]


def zset_of(value: Value) -> ZSet:
    """A value as a Z-set; of an integral, all of it."""
    return value.zset() if isinstance(value, Integral) else value


# How an operator is made incremental: "linear" and "time" operators are their own incremental version (theorem 3.3,
# proposition 3.2), the others are replaced.
LINEAR, TIME, BILINEAR, DISTINCT, PER_KEY, NESTED = "linear", "time", "bilinear", "distinct", "per key", "nested"
CONSTANT = "constant"
# Of operators over time (clocks.py): a clock reads changes, a window bounds its integral, and D . F . I of anything.
CLOCK, WINDOW, DEFINITION = "clock", "window", "definition"


@dataclass(frozen=True)
class Operator:
    """What a node does. `symbol`: as the paper writes it; `law`: see above."""

    symbol: ClassVar[str] = "?"
    law: ClassVar[str] = LINEAR
    strict: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The operator as a circuit prints it."""
        return self.symbol

    def start(self, room: Room) -> Any:
        """The state before the first tick; None of an operator without memory."""
        return None

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """(its value at a tick, its next state)."""
        raise NotImplementedError

    def lasting(self, state: Any, room: Room, *, over: bool) -> Any:
        """Of an operator in a nested circuit: what it starts the next run with.

        `over`: not only the run is over, but the tick of the outermost of the clocks that it is incremental over.
        """
        return self.start(room)

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed | None:
        """The operator that gives at least the columns `wanted`, in order; None if it needs all columns of its inputs.

        `arities`: the widths of the inputs. A kind of an operator that defines it does so, too.
        """
        return None

    def waiting(self, state: Any, outer: tuple[int, ...]) -> bool:
        """Of an operator in nested circuits: whether it has something to say at a later tick though nothing comes in.

        `outer`: within this tick of the circuits around it, of those that its incremental version has clocks of but
        the outermost.
        """
        return False


@dataclass(frozen=True)
class TickByTick(Operator):
    """An operator without memory and with one input: its value at a tick is `of` what comes in at it."""

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Apply it to the whole value."""
        return self.of(zset_of(values[0]), tick.room), None

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set."""
        raise NotImplementedError


@dataclass(frozen=True)
class Input(Operator):
    """A stream from outside."""

    symbol: ClassVar[str] = "input"
    name: str

    @property
    def label(self) -> str:
        """Its name."""
        return f"input {self.name}"


# Sums are put in normal form unless one part has more than so many times the rows of the others.
LIKE = 4


@dataclass(frozen=True)
class Plus(Operator):
    """The sum of streams, tick by tick."""

    symbol: ClassVar[str] = "+"

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Add. Where parts are of like size, rows may cancel: in chains of joins they would double at each."""
        first, *others = map(zset_of, values)
        made = first.plus(*others)
        largest = max(len(first), *map(len, others)) if others else len(made)
        return made.normal() if (len(made) - largest) * LIKE >= largest else made, None

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """The same columns of every input."""
        return Narrowed(self, wanted, (wanted,) * len(arities))


@dataclass(frozen=True)
class Negate(Operator):
    """The inverse of a stream, tick by tick."""

    symbol: ClassVar[str] = "-"

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Turn every weight's sign."""
        return zset_of(values[0]).negated(), None

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """The same columns of every input."""
        return Narrowed(self, wanted, (wanted,) * len(arities))


@dataclass(frozen=True)
class Project(Operator):
    """Some columns of each row, in any order."""

    symbol: ClassVar[str] = "π"
    columns: tuple[int, ...]

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Take the columns."""
        return zset_of(values[0]).columns(self.columns), None

    def narrowed(self, wanted: tuple[int, ...], arities: Sequence[int]) -> Narrowed:
        """Those of its columns."""
        reads = tuple(sorted({self.columns[i] for i in wanted}))
        return Narrowed(Project(tuple(reads.index(self.columns[i]) for i in wanted)), wanted, (reads,))


@dataclass(frozen=True)
class Loop(Operator):
    """The place where a stream that is made later comes back in."""

    symbol: ClassVar[str] = "loop"
    law: ClassVar[str] = TIME
    name: str = ""

    @property
    def label(self) -> str:
        """Its name."""
        return f"loop {self.name}" if self.name else "loop"

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Pass on what was connected."""
        return values[0], None


@dataclass(frozen=True)
class Delay(Operator):
    """`z^-1`: at each tick the value of the tick before, zero at first (definition 2.5).

    `order`: that of an integral, if that is what it delays.
    """

    symbol: ClassVar[str] = "z⁻¹"
    law: ClassVar[str] = TIME
    strict: ClassVar[bool] = True
    arity: int
    order: Order | None = None

    def start(self, room: Room) -> Value:
        """Zero."""
        return ZSet.zero(self.arity) if self.order is None else room.integral(self.order)

    def emit(self, state: Value) -> Value:
        """What came in at the tick before."""
        return state

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Remember what comes in."""
        value = values[0]
        return state, value.normal() if isinstance(value, ZSet) else value


@dataclass(frozen=True)
class Integrate(Operator):
    """`I`: the sum of all values so far (section 2.3), kept in pages in an order."""

    symbol: ClassVar[str] = "I"
    law: ClassVar[str] = TIME
    order: Order

    def start(self, room: Room) -> Integral:
        """Zero."""
        return room.integral(self.order)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Add what comes in."""
        after = state.plus(zset_of(values[0]))
        return after, after


@dataclass(frozen=True)
class Differentiate(Operator):
    """`D`: what a value has more than that of the tick before (section 2.3)."""

    symbol: ClassVar[str] = "D"
    law: ClassVar[str] = TIME
    arity: int

    def start(self, room: Room) -> ZSet:
        """Zero."""
        return ZSet.zero(self.arity)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Subtract the value before."""
        value = zset_of(values[0]).normal()
        return value.plus(state.negated()).normal(), value
