"""Streams of rows with times, as lists of dicts, and what windows make of them by loops over the whole history.

Z          row -> weight, without zeros
history    a list of ticks, each a dict: input -> Z, the change
model      from a list of changes of an input, after watermarks, to the whole value of an output
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from lftj import streams
from lftj.streams.circuit import Circuit

Row = tuple[Any, ...]
Z = dict[Row, int]
History = list[dict[str, Z]]


def z(pairs: Iterable[tuple[Row, int]]) -> Z:
    found: Z = {}
    for row, weight in pairs:
        found[row] = found.get(row, 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def total(several: Iterable[Z]) -> Z:
    return z((row, weight) for one in several for row, weight in one.items())


def on_time(changes: Sequence[Z], column: int, lateness: int) -> tuple[list[Z], int]:
    """(the changes without what is late, how much was)."""
    greatest: int | None = None
    kept, late = [], 0
    for change in changes:
        bound = None if greatest is None else greatest - lateness
        kept.append({row: w for row, w in change.items() if bound is None or row[column] >= bound})
        late += sum(abs(w) for row, w in change.items() if row not in kept[-1])
        greatest = max([row[column] for row in change] + ([] if greatest is None else [greatest]), default=None)
    return kept, late


def clock(changes: Sequence[Z], column: int) -> int | None:
    """The greatest time that was seen."""
    return max((row[column] for change in changes for row in change), default=None)


def windows(rows: Z, column: int, size: int, every: int, offset: int = 0) -> Z:
    """Rows with the windows [start, start + size) that they are in."""
    made: Z = {}
    for row, weight in rows.items():
        start = row[column] - (row[column] - offset) % every
        while start + size > row[column]:
            made[*row, start, start + size] = weight
            start -= every
    return made


def range_window(changes: Sequence[Z], column: int, size: int) -> Z:
    now = clock(changes, column)
    return {row: w for row, w in total(changes).items() if now is None or row[column] >= now - size}


def sessions(rows: Z, key: Sequence[int], column: int, gap: int) -> Z:
    """Rows of positive weight with the ends of their sessions: from each row on and back as long as one is near."""
    there = {row: w for row, w in rows.items() if w > 0}
    made: Z = {}
    for row, weight in there.items():
        times = sorted({other[column] for other in there if all(other[k] == row[k] for k in key)})
        first = last = row[column]
        for time in times:
            last = time if last < time <= last + gap else last
        for time in reversed(times):
            first = time if first > time >= first - gap else first
        made[*row, first, last] = weight
    return made


def interval_join(left: Z, right: Z, on: tuple[int, int], time: tuple[int, int], within: tuple[int, int]) -> Z:
    """Pairs that agree in a column; without the right one's, as `join` gives them."""
    return z(
        ((*one, *(v for i, v in enumerate(two) if i != on[1])), w * x)
        for one, w in left.items()
        for two, x in right.items()
        if one[on[0]] == two[on[1]] and within[0] <= two[time[1]] - one[time[0]] <= within[1]
    )


def groups(rows: Z, key: Sequence[int]) -> dict[Row, Z]:
    found: dict[Row, Z] = {}
    for row, weight in rows.items():
        found.setdefault(tuple(row[k] for k in key), {})[row] = weight
    return found


def counted(rows: Z, key: Sequence[int]) -> Z:
    """(key..., sum of weights) where it is not zero."""
    sums = {group: sum(members.values()) for group, members in groups(rows, key).items()}
    return {(*group, count): 1 for group, count in sums.items() if count}


def tiny(circuit: Circuit) -> Circuit:
    """The circuit with pages of four rows, so that few rows are many pages."""
    circuit._room = circuit._room._replace(page_rows=4, dir_rows=2)
    return circuit


def given(values: Mapping[str, Z], columns: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """What `step` takes."""
    return {
        name: streams.zset(list(change), list(change.values()), columns=columns[name])
        for name, change in values.items()
        if change
    }


def check(circuit: Circuit, history: History, model: Callable[[History], dict[str, Z]]) -> Circuit:
    """After each tick: the circuit of whole values, that of changes, and that which forgets give the model's values.

    Gives the one that forgets.
    """
    plain = tiny(circuit)
    keeps, forgets = plain.incremental(forget=False), plain.incremental()
    columns = plain.inputs
    values: dict[str, Z] = {name: {} for name in columns}
    sums: dict[str, Z] = {name: {} for name in plain.outputs}
    for tick, changes in enumerate(history):
        for name, change in changes.items():
            values[name] = total([values[name], change])
        whole = plain.step(given(values, columns))
        kept = keeps.step(given(changes, columns))
        forgot = forgets.step(given(changes, columns))
        expected = model(history[: tick + 1])
        for name, value in expected.items():
            sums[name] = total([sums[name], dict(forgot[name])])
            assert dict(whole[name]) == value, (name, tick, "whole")
            assert sums[name] == value, (name, tick, "changes")
            assert dict(kept[name]) == dict(forgot[name]), (name, tick, "forgetting")
    assert plain.late == keeps.late == forgets.late
    return forgets


@st.composite
def changes(
    draw: st.DrawFn, *, ticks: int = 8, rows: int = 6, keys: int = 3, pace: int = 5, jitter: int = 12
) -> list[Z]:
    """Changes of rows (key, time, value), about in the order of time, some of which take rows away again."""
    made: list[Z] = []
    known: list[Row] = []
    for tick in range(draw(st.integers(0, ticks))):
        found: list[tuple[Row, int]] = []
        for _ in range(draw(st.integers(0, rows))):
            if known and draw(st.booleans()):
                found.append((draw(st.sampled_from(known)), draw(st.sampled_from((-2, -1, 1)))))
                continue
            time = tick * 5 + draw(st.integers(-jitter, jitter // 2))
            row = (draw(st.integers(0, keys - 1)), time, draw(st.integers(0, 3)))
            known.append(row)
            found.append((row, draw(st.sampled_from((1, 1, 1, 2, -1)))))
        made.append(z(found))
    return made


def of(history: History, name: str) -> list[Z]:
    return [tick.get(name, {}) for tick in history]


def as_history(**several: list[Z]) -> History:
    """Streams of changes side by side, the shorter ones with nothing at the end."""
    length = max((len(one) for one in several.values()), default=0)
    return [{name: one[i] if i < len(one) else {} for name, one in several.items()} for i in range(length)]
