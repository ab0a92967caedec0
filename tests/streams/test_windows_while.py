"""While queries: `x := start; while (condition) x := step(x)`, against a loop in Python.

Catches: a step that is taken, or computed, though the condition does not hold, values of earlier runs that linger, a
function of nothing that comes in before the first value, inputs of a nested circuit that change places when one is not
read.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj import streams
from lftj.errors import DataError, EvaluationError
from lftj.streams.nested import NoFixpointError
from tests.streams import histories as h

nodes = st.integers(0, 5)
flips = st.lists(
    st.tuples(
        st.lists(st.tuples(nodes, nodes).filter(lambda e: e[0] < e[1]), max_size=3),
        st.lists(st.tuples(nodes), max_size=2),
        st.lists(st.tuples(nodes), max_size=2),
    ),
    max_size=8,
)


def contents(several: list[tuple[list[tuple[int, ...]], ...]], names: tuple[str, ...]) -> Iterator[dict[str, h.Z]]:
    """Changes that put rows in, or take them out again."""
    held: dict[str, set[tuple[int, ...]]] = {name: set() for name in names}
    for given_rows in several:
        tick = {}
        for name, rows in zip(names, given_rows, strict=True):
            tick[name] = {row: -1 if row in held[name] else 1 for row in rows}
            held[name] ^= set(rows)
        yield tick


@given(flips)
def test_walk_until_a_node_is_reached(several: list[tuple[list[tuple[int, ...]], ...]]) -> None:
    """x := start; while x has nodes, and none of `goal`: x := the successors of x."""
    c = streams.Circuit()
    edge, start, goal = c.input("edge", a=int, b=int), c.input("start", a=int), c.input("goal", a=int)
    with c.nested("walk") as inner:
        edges, goals = inner.enter(edge), inner.enter(goal)

        def on(x: streams.Stream) -> streams.Stream:
            return (x.map(k="1").distinct() - x.semijoin(goals, "a").map(k="1").distinct()).distinct()

        x = inner.iterate(start, lambda x: x.join(edges, "a").map(a="b").distinct(), condition=on)
        c.output("x", inner.leave(x))

    def model(history: h.History) -> dict[str, h.Z]:
        pairs, x, goals = (set(h.total(h.of(history, name))) for name in ("edge", "start", "goal"))
        while x and not x & goals:
            x = {(b,) for a, b in pairs if (a,) in x}
        return {"x": dict.fromkeys(x, 1)}

    h.check(c, list(contents(several, ("edge", "start", "goal"))), model)


@given(st.lists(st.lists(st.integers(0, 30), max_size=2), max_size=5))
def test_while_x_changes(several: list[list[int]]) -> None:
    """x := start; while x changes: x := {max(v - 7, 3)} and 100, which is nothing before the first x is there."""
    c = streams.Circuit()
    start = c.input("start", v=int)
    hundred = c.input("hundred", v=int)
    with c.nested("down") as inner:
        always = inner.enter(hundred)
        x = inner.iterate(
            start,
            lambda x: (x.filter("v > 10").map(v="v - 7") + x.filter("v <= 10").map(v="3") + always).distinct(),
        )
        c.output("x", inner.leave(x))
    history: h.History = [{"hundred": {(100,): 1}}]
    history += list(contents([([(v,) for v in set(vs)],) for vs in several], ("start",)))

    def model(history: h.History) -> dict[str, h.Z]:
        x, before = set(h.total(h.of(history, "start"))), None
        while x != before:
            before, x = x, {(v - 7,) if v > 10 else (3,) for (v,) in x} | {(100,)}
        return {"x": dict.fromkeys(x, 1)}

    h.check(c, history, model)


def test_a_condition_ends_what_would_go_on_for_ever() -> None:
    def doubling(condition: bool) -> streams.Circuit:
        c = streams.Circuit()
        start = c.input("start", v=int)
        with c.nested("doubling", limit=20) as inner:
            below = (lambda x: x.filter("v < 1000")) if condition else None
            c.output("x", inner.leave(inner.iterate(start, lambda x: x.map(v="v * 2"), condition=below)))
        return c

    made = doubling(condition=True).incremental()
    assert dict(made.step({"start": [(3,)]})["x"]) == {(1536,): 1}
    moved = made.step({"start": streams.zset([(3,), (5000,)], [-1, 1])})["x"]
    assert dict(moved) == {(1536,): -1, (5000,): 1}
    with pytest.raises(NoFixpointError, match="`doubling` did not come to rest in 20 ticks"):
        doubling(condition=False).step({"start": [(3,)]})


@pytest.mark.parametrize("changes", [False, True])
def test_the_step_is_not_computed_of_an_x_that_stays(changes: bool) -> None:
    """It was refused for the x that ends the loop, which has no next one."""
    c = streams.Circuit()
    start = c.input("start", v=int)
    with c.nested("down") as inner:
        x = inner.iterate(start, lambda x: x.map(v="100 / v - 1"), condition=lambda x: x.filter("v != 0"))
        c.output("x", inner.leave(x))
    made = c.incremental() if changes else c
    assert dict(made.step({"start": [(100,)]})["x"]) == {(0,): 1}
    with pytest.raises(EvaluationError, match=r"^output `x`: `v = 100 / v - 1` has no value"):
        made.step({"start": [(0,), (4,)]})
    back = made.step({"start": streams.zset([(100,)], [-1])} if changes else {})
    assert dict(back["x"]) == ({(0,): -1} if changes else {})


def test_the_start_is_a_stream_outside() -> None:
    c = streams.Circuit()
    start = c.input("start", v=int)
    with c.nested() as inner, pytest.raises(DataError) as refused:
        inner.iterate(inner.enter(start), lambda x: x)
    assert str(refused.value) == (
        "`start` is no stream of the circuit around this one\n"
        "  why: the iteration begins with its value at each tick outside\n"
        "  do: give a stream that was made outside"
    )


def test_streams_that_enter_and_are_not_read() -> None:
    """Inputs of a nested circuit are given by place: of changes, one that nobody reads kept another's place."""
    c = streams.Circuit()
    one, two, three = c.input("one", a=int, b=int), c.input("two", v=int), c.input("three", v=int)
    with c.nested() as inner:
        first = inner.enter(one)
        inner.enter(two)
        last = inner.enter(three)
        c.output("x", inner.leave((last + first.map(v="b")).distinct()))
    made = c.incremental()
    out = made.step({"one": [(1, 2)], "two": [(3,)], "three": [(4,)]})
    assert dict(out["x"]) == {(2,): 1, (4,): 1}
