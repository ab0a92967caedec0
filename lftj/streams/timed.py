"""Operators of several clocks: incremental in the steps of the user and in the ticks of nested circuits.

A stream in a nested circuit has a value x[o][t] per outer step o and inner tick t; in a nested circuit within one, a
value x[o][t][u], and so on: t stands for the ticks of all nested circuits around it, the outermost first. The
incremental version of an operator f over all clocks gives, at (o, t), what f of the sum of x over all o' <= o and
t' <= t has more than at (o-1, t) and at the ticks before t on each clock, less what is counted twice (DBSP,
sections 5 and 6). So the past is kept as rows with the ticks at which they came, over all outer steps:

    rows (column..., tick...) -> weight

Rows that came at s and t first meet at the later of both on each clock, max(s, t): what a change says about a later
tick *waits* there. Ticks run in the order of their tuples, in which max(s, t) is never before s or t. Nothing is
looked at that no change concerns: the cost is that of the changed rows and of those that they meet, not of the ticks
or of the data; a function is computed at two to the number of inner clocks corners of a tick, for sums that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lftj.streams.by_key import distinct_keys
from lftj.streams.integral import Integral, key_first
from lftj.streams.join import LEFT, RIGHT, Join
from lftj.streams.operators import Operator, Room, Tick, Value, zset_of
from lftj.streams.zsets import ZSet
from scantree.consolidate import runs_of

Rows = npt.NDArray[np.int64]
Ticks = tuple[int, ...]


def at_ticks(zset: ZSet, ticks: Ticks) -> ZSet:
    """The rows with the ticks at which they came as their last columns."""
    came = np.repeat(np.array(ticks, np.int64)[:, None], len(zset), axis=1)
    return ZSet(np.concatenate([zset.rows, came]), zset.weights, normal=zset.is_normal)


def _is_waiting(later: Mapping[Ticks, object], outer: Ticks) -> bool:
    """Whether something waits within a tick of the circuits around."""
    return any(ticks[: len(outer)] == outer for ticks in later)


def _groups(ticks: Rows) -> Iterator[tuple[Ticks, Rows]]:
    """(each tick among int64[clocks, n], where it is)."""
    if not ticks.shape[1]:
        return
    rows, order, starts = runs_of(np.ascontiguousarray(ticks))
    places = np.arange(ticks.shape[1]) if order is None else order
    for one, which in zip(rows[:, starts].T.tolist(), np.split(places, starts[1:]), strict=True):
        yield tuple(one), which


class JoinState(NamedTuple):
    """The past of both sides, and what pairs say about later ticks."""

    sides: tuple[Integral, Integral]
    later: Mapping[Ticks, ZSet]


@dataclass(frozen=True)
class TimedJoin(Operator):
    """A join of several clocks: of the terms of theorem 3.4 applied once per clock, the pairs that are new, each once.

    `inner`: how many clocks, but for the outermost.
    """

    symbol: ClassVar[str] = "⋈"
    join: Join
    inner: int = 1

    @property
    def label(self) -> str:
        """How many clocks."""
        return f"{self.symbol}{_raised(self.inner + 1)}"

    def start(self, room: Room) -> JoinState:
        """No past."""
        timed = self._timed()
        return JoinState((room.integral(timed.order(LEFT)), room.integral(timed.order(RIGHT))), {})

    def _timed(self) -> Join:
        """The join of rows with ticks: those of both are the last columns of what it gives."""
        join, inner = self.join, self.inner
        arities = join.arities[LEFT] + inner, join.arities[RIGHT] + inner
        ticks = ((side, arities[side] - inner + i) for side in (LEFT, RIGHT) for i in range(inner))
        return replace(join, out=(*join.out, *ticks), arities=arities)

    def step(self, state: JoinState, values: Sequence[Value], tick: Tick) -> tuple[Value, JoinState]:
        """Pair what comes in with the past, and with one another."""
        left, right = (zset_of(value).normal() for value in values)
        now, width = tick.times[-self.inner :], len(self.join.out)
        later = dict(state.later)
        found = [later.pop(now, ZSet.zero(width))]
        if not len(left) and not len(right):
            return found[0], JoinState(state.sides, later) if len(later) < len(state.later) else state
        timed, (before, after) = self._timed(), state.sides
        right = at_ticks(right, now)
        left = at_ticks(left, now)
        after = after.plus(right)
        for pairs in (timed.joined(left, after), timed.joined(before, right)):
            if not len(pairs):
                continue
            met = np.maximum(pairs.rows[width : width + self.inner], pairs.rows[width + self.inner :])
            plain = ZSet(pairs.rows[:width], pairs.weights)
            at_once = (met == np.array(now)[:, None]).all(axis=0)
            found.append(plain.kept(at_once))
            if at_once.all():
                continue
            waits = plain.kept(~at_once)
            for then, which in _groups(np.compress(~at_once, met, axis=1)):
                part = ZSet(np.take(waits.rows, which, axis=1), waits.weights[which])
                later[then] = later[then].plus(part) if then in later else part
        return found[0].plus(*found[1:]), JoinState((before.plus(left), after), later)

    def lasting(self, state: JoinState, room: Room, *, over: bool) -> JoinState:
        """The past is kept."""
        return state

    def waiting(self, state: JoinState, outer: Ticks) -> bool:
        """Whether pairs meet later."""
        return _is_waiting(state.later, outer)


class Function(Protocol):
    """A function of Z-sets that acts on the rows of each key alone."""

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the key."""

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value."""


class ChangeState(NamedTuple):
    """The past before this outer step, that with what came in it so far, and the keys to look at again, by tick."""

    before: Integral
    now: Integral
    later: Mapping[Ticks, Rows]


@dataclass(frozen=True)
class TimedChange(Operator):
    """The incremental version over several clocks of a function that acts key by key (`distinct`: row by row).

    `inner`: how many clocks, but for the outermost.
    """

    symbol: ClassVar[str] = "Δ"
    function: Function
    arity: int
    name: str
    inner: int = 1

    @property
    def label(self) -> str:
        """The function's name, and how many clocks."""
        return f"{self.name}{self.symbol}{_raised(self.inner + 1)}"

    def start(self, room: Room) -> ChangeState:
        """No past."""
        order = key_first(self.function.key, self.arity + self.inner)
        past = room.integral(order)
        return ChangeState(past, past, {})

    def step(self, state: ChangeState, values: Sequence[Value], tick: Tick) -> tuple[Value, ChangeState]:
        """Look at the keys that change at this tick, or that changed before and had rows that reach to it."""
        delta, at = zset_of(values[0]).normal(), tick.times[-self.inner :]
        later, key = dict(state.later), list(self.function.key)
        keys = distinct_keys(np.concatenate([delta.rows[key], later.pop(at, delta.rows[key][:, :0])], axis=1))
        if not keys.shape[1]:
            return self.function.of(ZSet.zero(self.arity), tick.room), state
        now = state.now.plus(at_ticks(delta, at))
        old, new = (past.under(keys) for past in (state.before, now))
        if self.inner > 1:
            # Of three ticks, the latest on each clock may be of a tick that two of them make: look from there, too.
            for past in (old, new):
                self._look_later(later, keys, *past, at)
        elif len(delta):
            # What came in this step is not later than now.
            self._look_later(later, keys, *old, at)
        value = self._between(new[0], at, tick.room).plus(self._between(old[0], at, tick.room).negated())
        return value.normal(), ChangeState(state.before, now, later)

    def _between(self, past: ZSet, at: Ticks, room: Room) -> ZSet:
        """What the function has more at a tick than at the ticks before it on each clock, over rows with ticks."""
        came = past.rows[self.arity :]
        plain = ZSet(past.rows[: self.arity], past.weights)
        found = []
        for back in product((0, 1), repeat=self.inner):
            corner = np.array(at)[:, None] - np.array(back)[:, None]
            value = self.function.of(plain.kept((came <= corner).all(axis=0)), room)
            found.append(value.negated() if sum(back) % 2 else value)
        return found[0].plus(*found[1:])

    def _look_later(self, later: dict[Ticks, Rows], keys: Rows, past: ZSet, of_key: Rows, at: Ticks) -> None:
        """Note the later ticks that rows of the keys reach to together with this one: what held there may no longer."""
        then = np.maximum(past.rows[self.arity :], np.array(at)[:, None])
        after = np.flatnonzero((then != np.array(at)[:, None]).any(axis=0))
        for ticks, which in _groups(then[:, after]):
            again = keys[:, np.unique(of_key[after[which]])]
            later[ticks] = distinct_keys(np.concatenate([later[ticks], again], axis=1)) if ticks in later else again

    def lasting(self, state: ChangeState, room: Room, *, over: bool) -> ChangeState:
        """What came in this step belongs to the past of the next."""
        return ChangeState(state.now, state.now, {}) if over else state

    def waiting(self, state: ChangeState, outer: Ticks) -> bool:
        """Whether keys are to be looked at later."""
        return _is_waiting(state.later, outer)


def _raised(number: int) -> str:
    """A number as an exponent."""
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(number))
