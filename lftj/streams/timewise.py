"""How streams are written down that look at the time of their rows: arguments are checked here, and operators made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lftj.arguments import refused
from lftj.errors import DataError
from lftj.language.terms import here
from lftj.streams.clocks import Clock, OnTime, RangeWindow
from lftj.streams.expressions import check_names
from lftj.streams.graph import Node
from lftj.streams.integral import ascending
from lftj.streams.interval_join import IntervalJoin, Lookup
from lftj.streams.join import LEFT, RIGHT
from lftj.streams.operators import Input, Integrate
from lftj.streams.sessions import Sessions
from lftj.streams.windows import Windows
from lftj.values.schema import Column

if TYPE_CHECKING:
    from lftj.streams.stream import On, Stream

# Lengths of time up to here can be added to one another and to times that are halfway sensible.
LONGEST = 1 << 62
# Windows that a row may be in.
MOST_WINDOWS = 100_000


def watermark(stream: Stream, column: str, lateness: int) -> Stream:
    """`Stream.watermark`: I . F . D, with the clock of the tick before."""
    place = _time(stream, column)
    late = _length("lateness", lateness, least=0)
    _outside(stream, "watermark")
    node = stream._node
    name = node.name or (node.operator.name if isinstance(node.operator, Input) else node.operator.label)
    clock = _clock(stream, place, before=True)
    on_time = stream.differentiate()._made(OnTime(place, late, f"{name}.{column}"), node.columns, _of(stream, clock))
    return on_time._made(Integrate(ascending(range(node.arity))), node.columns)


def hopping(stream: Stream, column: str, size: int, every: int, offset: int, start: str, end: str) -> Stream:
    """`Stream.hopping`, and `tumbling` where `size` is `every`."""
    place = _time(stream, column)
    size, every = _length("size", size), _length("every", every)
    if isinstance(offset, bool) or not isinstance(offset, int | np.integer):
        raise refused("offset", offset, "it is a time at which a window begins, an integer", "give `offset=0`, say")
    if size > every * MOST_WINDOWS:
        raise refused(
            "every",
            every,
            f"a row would be in {-(-size // every):,} windows of length {size:,}, each a row of its own",
            f"give at least {-(-size // MOST_WINDOWS):,}; `range_window` moves with every row",
        )
    columns = (*stream._node.columns, *_new(stream, start, end))
    return stream._made(Windows(place, size, every, int(offset) % every, column), columns)


def range_window(stream: Stream, column: str, size: int, now: Stream | None) -> Stream:
    """`Stream.range_window`: W of the stream and a clock."""
    place = _time(stream, column)
    size = _length("size", size, least=0)
    _outside(stream, "range_window")
    if now is None:
        clock = _clock(stream, place)
    else:
        stream._same_circuit(now)
        if list(now.columns.values()) != ["number"]:
            raise DataError(
                f"`now` has the columns {', '.join(f'{n}:{t}' for n, t in now.columns.items())}",
                why="it is a stream of times: of one column, a number, whose greatest value so far is the time",
                remedy="give `now=stream.select(...)` of that column",
            )
        clock = _clock(now, 0)
    return stream._made(RangeWindow(place, size, stream._node.arity), stream._node.columns, _of(stream, clock))


def sessions(stream: Stream, keys: Sequence[str], column: str, gap: int, start: str, end: str) -> Stream:
    """`Groups.sessions`."""
    place = _time(stream, column)
    key = stream._places(keys)
    if place in key:
        raise DataError(
            f"`{column}` is a column of the group",
            why="all rows of a group would have one time",
            remedy="group by what the sessions are of: a user, say",
        )
    columns = (*stream._node.columns, *_new(stream, start, end))
    return stream._made(Sessions(key, place, _length("gap", gap, least=0), stream._node.arity), columns)


def interval_join(stream: Stream, other: Stream, on: On, time: object, within: object) -> Stream:
    """`Stream.interval_join`."""
    stream._same_circuit(other)
    if not isinstance(time, tuple | list) or len(time) != 2:
        raise refused(
            "time", time, "it names a column of this stream and one of the other", 'give `time=("opened", "closed")`'
        )
    whole = isinstance(within, tuple | list) and len(within) == 2
    if not whole or not all(isinstance(t, int | np.integer) and not isinstance(t, bool) for t in within):  # type: ignore[attr-defined]
        raise refused(
            "within",
            within,
            "it is the least and the greatest difference, the other's time less this one's: two integers",
            "give `within=(0, 10_000)` for what comes up to ten seconds later, say",
        )
    low, high = map(int, within)  # type: ignore[call-overload]
    if low > high or max(-low, high) > LONGEST:
        raise refused(
            "within",
            within,
            "no difference of times is at least the first and at most the second, or they are beyond 2**62",
            "give the lesser one first",
        )
    times = _time(stream, time[LEFT]), _time(other, time[RIGHT])
    kind: Callable[..., IntervalJoin] = partial(IntervalJoin, times=times, within=(low, high))
    left, right = stream._without_null_keys(other, *stream._keys(other, on))
    return left._joined(right, on, kind)


def lookup(stream: Stream, other: Stream, on: On) -> Stream:
    """`Stream.lookup`: the changes joined with the other's value, added up."""
    _outside(stream, "lookup")
    # D last: what reads it directly is given changes as they come in, and keeps none of them.
    asking, there = stream._without_null_keys(other, *stream._keys(other, on))
    found = asking.differentiate()._joined(there, on, Lookup)
    return found.integrate()


def _clock(stream: Stream, place: int, *, before: bool = False) -> Node:
    column = (Column(stream._node.columns[place].name, "number"),)
    return stream._graph.add(Clock(place, before), [stream._node], column, span=here())


def _of(stream: Stream, node: Node) -> Stream:
    return type(stream)(stream._graph, node)


def _outside(stream: Stream, name: str) -> None:
    """`DataError` in a nested circuit, whose clock starts anew at each tick outside."""
    if stream._graph.nested:
        raise DataError(
            f"`{name}` is of no use in a nested circuit",
            why="what came before is forgotten there at each tick of the circuit around it",
            remedy=f"use `{name}` outside, and `enter` what it makes",
        )


def _time(stream: Stream, name: str) -> int:
    """The place of a column of times. `DataError` unless it is of integers."""
    (place,) = stream._places([name])
    type_ = stream._node.columns[place].type
    if type_ != "number":
        raise DataError(
            f"`{name}` is no column of times: it is of type {type_}",
            why="times are integers, which have an order and exact differences: milliseconds since 1970, say",
            remedy=f'make a number of it by `map`, or declare the input with `{name}="number"`',
        )
    return place


def _length(name: str, value: object, *, least: int = 1) -> int:
    """A length of time. `ArgumentError` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= int(value) <= LONGEST:
        raise refused(
            name,
            value,
            f"it is a length of time in the unit of the column, an integer from {least} to 2**62",
            f"give `{name}=10_000` for ten seconds in milliseconds, say",
        )
    return int(value)


def _new(stream: Stream, start: str, end: str) -> tuple[Column, Column]:
    """The columns that windows and sessions add. `DataError` if the stream has them, or they are one."""
    check_names([*stream.columns, start, end], "give other names for the new ones: `start=` and `end=`")
    return Column(start, "number"), Column(end, "number")
