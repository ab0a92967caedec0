"""Operators of two clocks: incremental in the steps of the user and in the ticks of a nested circuit.

A stream in a nested circuit has a value x[o][t] per outer step o and inner tick t. The incremental version of an
operator f over both clocks gives, at (o, t), what f of the sum of x over all o' <= o and t' <= t has more than at
(o-1, t) and (o, t-1), less what is counted twice (dbsp.txt, sections 5 and 6). So the past is kept as rows with the
tick at which they came, over all outer steps:

    rows (column..., tick) -> weight

A pair of rows that came at ticks s and t first meets at tick max(s, t): what a change says about a later tick *waits*
there. Nothing is looked at that no change concerns: the cost is that of the changed rows and of those that they meet,
not of the ticks or of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lftj.streams.integral import Integral, key_first
from lftj.streams.join import LEFT, RIGHT, Join
from lftj.streams.operators import Operator, Room, Tick, Value, zset_of
from lftj.streams.zsets import ZSet
from scantree.consolidate import runs_of

Rows = npt.NDArray[np.int64]


def at_tick(zset: ZSet, number: int) -> ZSet:
    """The rows with the tick at which they came as their last column."""
    ticks = np.full((1, len(zset)), number, np.int64)
    return ZSet(np.concatenate([zset.rows, ticks]), zset.weights, normal=zset.is_normal)


class JoinState(NamedTuple):
    """The past of both sides, and what pairs say about later ticks."""

    sides: tuple[Integral, Integral]
    later: Mapping[int, ZSet]


@dataclass(frozen=True)
class TimedJoin(Operator):
    """A join of two clocks: of the nine terms of theorem 3.4 applied twice, the pairs that are new, each once."""

    symbol: ClassVar[str] = "⋈²"
    join: Join

    def start(self, room: Room) -> JoinState:
        """No past."""
        timed = self._timed()
        return JoinState((room.integral(timed.order(LEFT)), room.integral(timed.order(RIGHT))), {})

    def _timed(self) -> Join:
        """The join of rows with ticks: both ticks are the last columns of what it gives."""
        join = self.join
        left, right = join.arities
        return replace(join, out=(*join.out, (LEFT, left), (RIGHT, right)), arities=(left + 1, right + 1))

    def step(self, state: JoinState, values: Sequence[Value], tick: Tick) -> tuple[Value, JoinState]:
        """Pair what comes in with the past, and with one another."""
        left, right = (zset_of(value).normal() for value in values)
        number, width = tick.number, len(self.join.out)
        later = dict(state.later)
        found = [later.pop(number, ZSet.zero(width))]
        if not len(left) and not len(right):
            return found[0], JoinState(state.sides, later) if len(later) < len(state.later) else state
        timed, (before, after) = self._timed(), state.sides
        right = at_tick(right, number)
        left = at_tick(left, number)
        after = after.plus(right)
        for pairs in (timed.joined(left, after), timed.joined(before, right)):
            if not len(pairs):
                continue
            met = np.maximum(pairs.rows[width], pairs.rows[width + 1])
            plain = ZSet(pairs.rows[:width], pairs.weights)
            found.append(plain.kept(met <= number))
            for then in np.unique(met[met > number]).tolist():
                part = plain.kept(met == then)
                later[then] = later[then].plus(part) if then in later else part
        return found[0].plus(*found[1:]), JoinState((before.plus(left), after), later)

    def lasting(self, state: JoinState, room: Room) -> JoinState:
        """The past is kept."""
        return state

    def waiting(self, state: JoinState, number: int) -> bool:
        """Whether pairs meet later."""
        return bool(state.later)


class Function(Protocol):
    """A function of Z-sets that acts on the rows of each key alone."""

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the key."""
        ...

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value."""
        ...


class ChangeState(NamedTuple):
    """The past before this outer step, that with what came in it so far, and the keys to look at again, by tick."""

    before: Integral
    now: Integral
    later: Mapping[int, Rows]


@dataclass(frozen=True)
class TimedChange(Operator):
    """The incremental version over two clocks of a function that acts key by key (`distinct`: row by row)."""

    symbol: ClassVar[str] = "Δ²"
    function: Function
    arity: int
    name: str

    @property
    def label(self) -> str:
        """The function's name."""
        return f"{self.name}{self.symbol}"

    def start(self, room: Room) -> ChangeState:
        """No past."""
        order = key_first(self.function.key, self.arity + 1)
        past = room.integral(order)
        return ChangeState(past, past, {})

    def step(self, state: ChangeState, values: Sequence[Value], tick: Tick) -> tuple[Value, ChangeState]:
        """Look at the keys that change at this tick, or that changed before and had rows at this tick once."""
        delta, number = zset_of(values[0]).normal(), tick.number
        later, key = dict(state.later), list(self.function.key)
        keys = _distinct(np.concatenate([delta.rows[key], later.pop(number, delta.rows[key][:, :0])], axis=1))
        if not keys.shape[1]:
            return self.function.of(ZSet.zero(self.arity), tick.room), state
        now = state.now.plus(at_tick(delta, number))
        old, new = (past.under(keys) for past in (state.before, now))
        if len(delta):
            self._look_later(later, keys, *old, number)
        value = self._between(new[0], number, tick.room).plus(self._between(old[0], number, tick.room).negated())
        return value.normal(), ChangeState(state.before, now, later)

    def _between(self, past: ZSet, number: int, room: Room) -> ZSet:
        """What the function has more at a tick than at the tick before, over rows with ticks."""
        ticks = past.rows[self.arity]
        plain = ZSet(past.rows[: self.arity], past.weights)
        then = self.function.of(plain.kept(ticks <= number), room)
        before = self.function.of(plain.kept(ticks < number), room)
        return then.plus(before.negated())

    def _look_later(self, later: dict[int, Rows], keys: Rows, old: ZSet, of_key: Rows, number: int) -> None:
        """Note the later ticks at which keys had rows: what held there may no longer."""
        ticks = old.rows[self.arity]
        for then in np.unique(ticks[ticks > number]).tolist():
            again = keys[:, np.unique(of_key[ticks == then])]
            later[then] = _distinct(np.concatenate([later[then], again], axis=1)) if then in later else again

    def lasting(self, state: ChangeState, room: Room) -> ChangeState:
        """What came in this step belongs to the past of the next."""
        return ChangeState(state.now, state.now, {})

    def waiting(self, state: ChangeState, number: int) -> bool:
        """Whether keys are to be looked at later."""
        return bool(state.later)


def _distinct(keys: Rows) -> Rows:
    """Distinct keys int64[k, m], in order."""
    if not len(keys):
        return keys[:, :1]
    rows, _, starts = runs_of(np.ascontiguousarray(keys))
    return np.ascontiguousarray(rows[:, starts])
