"""Sessions: rows of a key that follow one another with silences of at most a gap, with their first and last time.

    times of a key 1 3 4   20 22   40      gap 5: the sessions (1, 4), (20, 22), (40, 40)

A row is in a session while its weight is positive. Whole values are put in order and cut where the silence is too long.
A change looks at the sessions that it touches only: those at most a gap away from a changed row, found by a seek, since
a key's sessions do not overlap. What it keeps:

    rows     in the order (key, time)            so the rows of a session are neighbours
    spans    (key, start, end), by (key, end)    so the sessions that a time touches are the next two
    closing  the same spans by end               only if rows below a bound are known to stay away (forget.py)

A session ends to be of interest when no row can touch it any more: its end is more than a gap below the bound. Its rows
go then, at the cost of these rows. Costs per changed row: O(log n) and the rows of the sessions that it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.streams.bounds import Floor
from lftj.streams.by_key import starts_of
from lftj.streams.clocks import clamped, shifted
from lftj.streams.integral import Integral, ascending, key_first
from lftj.streams.operators import PER_KEY, Operator, Room, Tick, TickByTick, Value, zset_of
from lftj.streams.zsets import ZSet
from lftj.values.codes import KEY_MAX, KEY_MIN
from scantree.consolidate import runs_of

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sessions(TickByTick):
    """Each row of positive weight with the start and the end of its session as last columns."""

    symbol: ClassVar[str] = "sessions"
    law: ClassVar[str] = PER_KEY
    key: tuple[int, ...]
    time: int
    gap: int
    arity: int

    @property
    def label(self) -> str:
        """The silence that ends one."""
        return f"sessions {self.gap:,}"

    def of(self, zset: ZSet, room: Room) -> ZSet:
        """Its value for a Z-set."""
        zset = zset.normal()
        order = np.lexsort([zset.rows[self.time], *(zset.rows[c] for c in self.key[::-1])])
        return self.made(ZSet(np.take(zset.rows, order, axis=1), zset.weights[order]))

    def made(self, zset: ZSet) -> ZSet:
        """Its value for rows in the order (key, time)."""
        zset = zset.kept(zset.weights > 0)
        n = len(zset)
        if not n:
            return ZSet.zero(self.arity + 2)
        times, first = zset.rows[self.time], np.zeros(n, np.bool_)
        first[starts_of(zset.rows[list(self.key)])] = True
        first[1:] |= times[1:] > shifted(times[:-1], self.gap)
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, n))
        ends = times[starts + lengths - 1]
        return ZSet(np.vstack([zset.rows, np.repeat(times[starts], lengths), np.repeat(ends, lengths)]), zset.weights)

    def spans(self, made: ZSet) -> ZSet:
        """The sessions of its rows: (key..., start, end), each once. Rows of a session are neighbours."""
        rows = made.rows[[*self.key, self.arity, self.arity + 1]]
        rows = rows[:, starts_of(rows)] if len(made) else rows
        return ZSet(rows, np.ones(rows.shape[1], np.int64))

    def changes(self) -> tuple[Operator, None]:
        """The operator of its changes, which keeps its own integrals."""
        return SessionsChange(self), None


class SessionsState(NamedTuple):
    """See above; `bound`: of the times of rows that may still come."""

    rows: Integral
    spans: Integral
    closing: Integral | None
    bound: int


@dataclass(frozen=True)
class SessionsChange(Operator):
    """How rows and their sessions change. `floor`: below it no row changes any more; it reads clocks after the rows."""

    symbol: ClassVar[str] = "sessionsΔ"
    of: Sessions
    floor: Floor | None = None

    @property
    def label(self) -> str:
        """The silence that ends one."""
        return f"sessionsΔ {self.of.gap:,}" + (" forgetting" if self.floor else "")

    def start(self, room: Room) -> SessionsState:
        """No rows."""
        of, k = self.of, len(self.of.key)
        by_end = ascending((*range(k), k + 1, k))
        closing = None if self.floor is None else room.integral(ascending((k + 1, *range(k + 1))))
        rows = room.integral(key_first((*of.key, of.time), of.arity))
        return SessionsState(rows, room.integral(by_end), closing, KEY_MIN)

    def step(self, state: Any, values: Sequence[Value], tick: Tick) -> tuple[Value, Any]:
        """Cut again where sessions are touched."""
        if self.floor is not None:
            state = self._closed(state, self.floor.of(values[1:]))
        delta, of = zset_of(values[0]).normal(), self.of
        if not len(delta):
            return ZSet.zero(of.arity + 2), state
        rows = state.rows.plus(delta)
        lows, highs = self._touched(state.spans, delta)
        was, now = (of.made(integral.between(lows, highs)[0]) for integral in (state.rows, rows))
        moved = of.spans(now).plus(of.spans(was).negated()).normal()
        closing = None if state.closing is None else state.closing.plus(moved)
        following = SessionsState(rows, state.spans.plus(moved), closing, state.bound)
        return now.plus(was.negated()).normal(), following

    def _touched(self, spans: Integral, delta: ZSet) -> tuple[Rows, Rows]:
        """The stretches of time to look at: (key..., from) int64[k + 1, m] in order, to int64[m].

        All rows of a key that are in one session with a row of a stretch, before or after the change, are in it.
        """
        of, k, gap = self.of, len(self.of.key), self.of.gap
        points, _, at = runs_of(np.ascontiguousarray(delta.rows[[*of.key, of.time]]))
        points = points[:, at]
        low, high = points[k].copy(), points[k].copy()
        asked = points.copy()
        asked[k] = shifted(points[k], -gap)
        # Of the sessions that end at most a gap before a time or later, the third begins more than a gap after it.
        near, which = spans.between(asked, np.full(len(low), KEY_MAX), first=2)
        touched = near.rows[k] <= shifted(points[k], gap)[which]
        which = which[touched]
        np.minimum.at(low, which, near.rows[k][touched])
        np.maximum.at(high, which, near.rows[k + 1][touched])
        order = np.lexsort([low, *points[:k][::-1]])
        keys, low, high = points[:k][:, order], low[order], high[order]
        first = np.zeros(len(low), np.bool_)
        first[starts_of(keys)] = True
        reach = _running_max(high, np.cumsum(first))
        first[1:] |= low[1:] > shifted(reach[:-1], gap)
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], len(low)) - 1
        return np.vstack([keys[:, starts], low[starts]]), reach[ends]

    def _closed(self, state: SessionsState, bound: int) -> SessionsState:
        """Without the sessions that no row at or above the bound touches."""
        if bound == state.bound:
            return state
        assert state.closing is not None
        gone, closing = state.closing.split(clamped(bound - self.of.gap))
        if not len(gone):
            return SessionsState(state.rows, state.spans, state.closing, bound)
        k = len(self.of.key)
        gone = gone.normal()
        rows, _ = state.rows.between(gone.rows[: k + 1], gone.rows[k + 1])
        return SessionsState(state.rows.plus(rows.negated()), state.spans.plus(gone.negated()), closing, bound)


def _running_max(values: Rows, groups: Rows) -> Rows:
    """The greatest value so far within each group; groups are numbered in order."""
    ordered, ranks = np.unique(values, return_inverse=True)
    shift = groups * len(ordered)
    running: Rows = ordered[np.maximum.accumulate(ranks + shift) - shift]
    return running
