"""What circuits forget: the same answers, and memory that follows the window and not the history.

Catches: an integral that drops what somebody may still ask for, or that keeps what nobody can; a key that is put in
another order for one reader and not for the other; rows that come back below a bound.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given as having

from lftj import streams
from lftj.streams.circuit import Circuit
from lftj.streams.clocks import Clock
from lftj.streams.stream import Stream
from tests.conftest import FULL
from tests.streams import histories as h

HOUR = 100


def best(bid: Stream, ask: Stream) -> Stream:
    hop = bid.hopping("time", HOUR, HOUR // 4)
    n = hop.group_by("key", "window_end").aggregate(
        n=streams.count(), top=streams.max("value"), least=streams.min("value")
    )
    return n.group_by("window_end").top(2, by=("-n", "key"), number="place")


def means(bid: Stream, ask: Stream) -> Stream:
    rows = bid.tumbling("time", HOUR).map("window_start", "key", half="value / 2")
    return rows.group_by("key", "window_start").aggregate(
        mean=streams.mean("half"),
        all=streams.sum("half"),
        wide=streams.stddev_samp("half"),
        middle=streams.quantile_cont("half", 0.5),
    )


def several(bid: Stream, ask: Stream) -> Stream:
    rows = bid.tumbling("time", HOUR)
    counted = rows.group_by("key", "window_start").aggregate(
        bids=streams.count(), values=streams.count_distinct("value", where="value > 0")
    )
    return counted.left_join(
        ask.tumbling("time", HOUR).select("key", "window_start").distinct(), ["key", "window_start"], fill={}
    )


def both(bid: Stream, ask: Stream) -> Stream:
    a, b = bid.tumbling("time", HOUR), ask.tumbling("time", HOUR)
    joined = a.join(b.rename(time="then", value="other", window_end="end"), ["key", "window_start"])
    return joined.group_by("window_start", "key").aggregate(n=streams.count()) + joined.map(
        "window_start", "key", n="value + other"
    )


def lately(bid: Stream, ask: Stream) -> Stream:
    pairs = bid.interval_join(ask.rename(time="then", value="other"), "key", time=("time", "then"), within=(-20, 40))
    return pairs.group_by("key", "then").first("-time").select("then", "time", "other")


def sliding(bid: Stream, ask: Stream) -> Stream:
    recent = bid.range_window("time", HOUR)
    return recent.group_by("time", "key").aggregate(n=streams.count()).distinct()


def silence(bid: Stream, ask: Stream) -> Stream:
    found = bid.group_by("key").sessions("time", gap=15)
    return found.group_by("key", "session_start", "session_end").aggregate(n=streams.count(), last=streams.max("value"))


def without(bid: Stream, ask: Stream) -> Stream:
    a, b = (
        bid.tumbling("time", HOUR).select("key", "window_start"),
        ask.tumbling("time", HOUR).select("key", "window_start"),
    )
    return a.difference(b).union(a.intersect(b).distinct())


def lagging(bid: Stream, ask: Stream) -> Stream:
    rows = bid.tumbling("time", HOUR)
    return (
        rows.group_by("window_start", "key")
        .lag("value", by="time", fill=-1)
        .group_by("window_start")
        .top(3, by="-value")
    )


def distances(bid: Stream, ask: Stream) -> Stream:
    """An interval join without a key, and a lookup whose right side is known to be asked at late times only."""
    near = bid.interval_join(ask.rename(time="then", key="k", value="other"), [], time=("time", "then"), within=(0, 5))
    table = ask.tumbling("time", HOUR).select("window_start", "key").distinct()
    looked = bid.tumbling("time", HOUR).lookup(table, ["window_start", "key"])
    return near.map("time", a="then - time") + looked.map("time", a="key")


PIPELINES: list[Callable[[Stream, Stream], Stream]] = [
    best,
    means,
    several,
    both,
    lately,
    sliding,
    silence,
    without,
    lagging,
    distances,
]


def circuit(pipeline: Callable[[Stream, Stream], Stream], lateness: int = 10) -> Circuit:
    c = h.tiny(streams.Circuit(pipeline.__name__))
    bid = c.input("bid", key=int, time=int, value=int).watermark("time", lateness)
    ask = c.input("ask", key=int, time=int, value=int).watermark("time", lateness)
    c.output("out", pipeline(bid, ask))
    return c


def ticks(n: int, seed: int) -> h.History:
    """Rows of two streams in time, somewhat out of order, some late; some are taken away again, some of those late."""
    draw = random.Random(seed)
    made: h.History = []
    known: dict[str, list[h.Row]] = {"bid": [], "ask": []}
    for tick in range(n):
        changes = {}
        for name, rows in known.items():
            new = [
                (draw.randrange(4), tick * 20 + draw.randrange(-25, 20), draw.randrange(5))
                for _ in range(draw.randrange(1, 6))
            ]
            gone = [(row, -1) for row in draw.sample(rows[-15:], min(len(rows), draw.randrange(3)))]
            changes[name] = h.z([*((row, 1) for row in new), *gone])
            rows += new
        made.append(changes)
    return made


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("seed", [1, 2])
def test_forgetting_changes_no_answer(pipeline: Callable[[Stream, Stream], Stream], seed: int) -> None:
    """Against the circuit that keeps everything, and against that of whole values over the whole history."""
    made = circuit(pipeline)
    keeps, forgets, columns = made.incremental(forget=False), made.incremental(), made.inputs
    values: dict[str, h.Z] = {"bid": {}, "ask": {}}
    total: h.Z = {}
    for tick, changes in enumerate(ticks(60 if FULL else 20, seed)):
        values = {name: h.total([values[name], changes[name]]) for name in values}
        kept, forgot = (c.step(h.given(changes, columns))["out"] for c in (keeps, forgets))
        whole = made.step(h.given(values, columns))["out"]
        total = h.total([total, dict(forgot)])
        assert dict(kept) == dict(forgot), tick
        assert dict(whole) == total, tick
    assert made.late == keeps.late == forgets.late
    assert sum(forgets.late.values()) > 0


@pytest.mark.skipif(not FULL, reason="long streams; answers are compared in short ones")
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_memory_follows_the_window(pipeline: Callable[[Stream, Stream], Stream]) -> None:
    """After ten times the history it holds what it held, but that which forgets nothing holds much more."""
    made = circuit(pipeline)
    keeps, forgets, columns = made.incremental(forget=False), made.incremental(), made.inputs
    sizes = []
    for changes in ticks(400, 3):
        sizes.append(forgets.step(h.given(changes, columns)) and forgets.memory().total)
        keeps.step(h.given(changes, columns))
    assert max(sizes[300:]) <= 1.3 * max(sizes[40:140]), "it grows"
    assert pipeline is sliding or keeps.memory().total > 3 * max(sizes)


@having(h.changes(ticks=10, jitter=25))
def test_what_is_left_is_what_may_be_asked_for(changes: list[h.Z]) -> None:
    """Windows that end at or below the watermark before a tick leave no count behind."""
    c, made_changes = h.tiny(streams.Circuit()), [change for change in changes if change]
    bid = c.input("bid", key=int, time=int, value=int).watermark("time", 3)
    c.output("n", bid.tumbling("time", 10).group_by("key", "window_start").aggregate(n=streams.count()))
    made = c.incremental()
    for change in made_changes:
        made.step(h.given({"bid": change}, c.inputs))
    if len(made_changes) < 2:
        return
    bound = h.clock(made_changes[:-1], 1)
    assert bound is not None
    (states,) = [state[0] for state in (made._states or {}).values() if isinstance(state, tuple) and len(state) == 2]
    starts = states.weights.table.columns()[0].tolist()
    assert all(start + 10 > bound - 3 for start in starts)


@pytest.mark.parametrize("key", ["number", "number?"])
def test_a_lookup_keeps_what_may_be_asked_for_and_nothing_of_those_who_ask(key: str) -> None:
    """Null was taken out of the keys after the differences: the last change was kept, and the table without end."""
    c = h.tiny(streams.Circuit())
    bid = c.input("bid", key=key, time=int).watermark("time", 10).tumbling("time", HOUR)
    table = c.input("table", key=int, window_start=int)
    c.output("found", bid.lookup(table, ["key", "window_start"]))
    made = c.incremental()
    for tick in range(50):
        made.step({"table": [(k, tick * HOUR) for k in range(3)]})
        found = made.step({"bid": [(1, tick * HOUR + 1)]})["found"]
        assert dict(found) == {(1, tick * HOUR + 1, tick * HOUR, (tick + 1) * HOUR): 1}
    kept = {name.split(" ", 1)[1].split(" (")[0] for name in made.memory().integrals}
    assert kept == {"I forgetting", "z⁻¹ θ"}


def test_outputs_and_what_is_read_whole_forget_nothing() -> None:
    c = h.tiny(streams.Circuit())
    bid = c.input("bid", key=int, time=int, value=int).watermark("time")
    side = c.input("side", key=int, name=int)
    c.output("joined", bid.join(side, "key"))
    c.output("all", bid.integrate())
    made = c.incremental()
    for time in range(50):
        made.step({"bid": [(time % 3, time, 0)]})
    # The side table may change any time, and its rows meet all bids.
    assert len(made.step({"side": [(0, 9)]})["joined"]) == 17
    assert len(made.step({})["all"]) == 50


def test_a_clock_that_depends_on_an_integral_does_not_bound_it() -> None:
    """Both joins seek in one integral; the second asks by a clock that is made of what the first gives."""
    c = h.tiny(streams.Circuit())
    first = c.input("first", key=int, time=int).watermark("time")
    table = c.input("table", time=int, later=int)
    found = first.join(table, "time")
    second = found.select("key", "later").rename(later="time").watermark("time")
    c.output("again", second.join(table, "time"))
    c.output("found", found)
    keeps, forgets = c.incremental(forget=False), c.incremental()
    for time in range(30):
        changes = {"first": [(1, time)], "table": [(time, time + 2), (time + 1, time)]}
        one, two = keeps.step(changes), forgets.step(changes)
        assert {name: dict(rows) for name, rows in one.items()} == {name: dict(rows) for name, rows in two.items()}


def test_memory_is_told_by_node() -> None:
    c = circuit(best)
    made = c.incremental()
    assert made.memory() == ({}, 0, 0)
    for changes in ticks(30, 1):
        made.step(h.given(changes, c.inputs))
    memory = made.memory()
    assert memory.total == sum(memory.integrals.values()) + memory.texts
    assert memory.texts == 0
    pages = sum(size for name, size in memory.integrals.items() if "θ" not in name)
    made._room.arena.collect()
    # What else lives in pages is of versions without rows.
    assert 0.8 * made._room.arena.used <= pages <= made._room.arena.used * 1.05
    lines = str(memory).splitlines()
    assert len(lines) == len(memory.integrals) + 2
    assert lines[-1].split()[0] == "total"
    assert lines[-1].endswith(f"{memory.total:,} bytes")
    assert any("totalsΔ n = count forgetting" in name and "window_end" in name for name in memory.integrals)
    numbered = {line.split(" = ")[0] for line in made.explain().splitlines()[1:]}
    assert {name.split()[0] for name in memory.integrals} <= numbered


def test_texts_stay() -> None:
    c = streams.Circuit()
    bid = c.input("bid", url=str, time=int).watermark("time")
    c.output("n", bid.tumbling("time", 10).group_by("url", "window_start").aggregate(n=streams.count()))
    made = c.incremental()
    made.step({"bid": [("a" * 100, 0)]})
    texts = made.memory().texts
    made.step({"bid": [("b" * 100, 1000)]})
    made.step({"bid": [("c" * 100, 2000)]})
    assert made.memory().texts >= texts + 200


def test_a_circuit_of_changes_says_what_forgets() -> None:
    text = circuit(both).incremental().explain()
    assert text.count("I forgetting") >= 2
    assert "forgetting" not in circuit(both).incremental(forget=False).explain()
    assert Clock(0).label == "θ"


def test_rows_that_a_count_of_times_leaves_out_are_not_forgotten() -> None:
    """What they are counted by is 0 where their time was, which is below all bounds: their group stayed for ever."""
    c = streams.Circuit()
    bid = c.input("bid", key=int, time=int).watermark("time")
    c.output("n", bid.group_by("key").aggregate(n=streams.count_distinct("time", where="time > 100")))
    for made in (c.incremental(forget=False), c.incremental()):
        gone = streams.zset([(1, 11)], [-1])
        assert [dict(made.step(given)["n"]) for given in ({"bid": [(1, 11)]}, {}, {"bid": gone})] == [
            {(1, 0): 1},
            {},
            {(1, 0): -1},
        ]
