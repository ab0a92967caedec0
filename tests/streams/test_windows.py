"""Windows over the time that rows carry, against plain Python over the whole history.

Catches: rows that are late, come out of order or are taken away again, in the circuit of whole values, in that of
changes and in the one that forgets; windows at the ends of int64; bounds that move at the wrong tick.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given as having
from hypothesis import strategies as st

from lftj import streams
from lftj.errors import EvaluationError
from lftj.streams.clocks import shifted
from lftj.streams.windows import WindowRangeError
from tests.streams import histories as h

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def bids() -> tuple[streams.Circuit, streams.Stream]:
    c = streams.Circuit("windows")
    return c, c.input("bid", key=int, time=int, value=int)


@having(h.changes(), st.integers(0, 15))
def test_a_watermark_drops_and_counts_late_rows(changes: list[h.Z], lateness: int) -> None:
    c, bid = bids()
    c.output("kept", bid.watermark("time", lateness))
    made = h.check(
        c,
        h.as_history(bid=changes),
        lambda history: {"kept": h.total(h.on_time(h.of(history, "bid"), 1, lateness)[0])},
    )
    assert made.late == {"bid.time": h.on_time(changes, 1, lateness)[1]}


def test_a_row_is_late_by_the_ticks_before_its_own() -> None:
    c, bid = bids()
    c.output("kept", bid.watermark("time", 10))
    made = c.incremental()
    assert made.late == {"bid.time": 0}
    assert len(made.step({"bid": [(1, 5, 0), (1, 100, 0)]})["kept"]) == 2
    step = made.step({"bid": [(1, 89, 0), (1, 90, 0), (1, 300, 0)]})
    assert dict(step["kept"]) == {(1, 90, 0): 1, (1, 300, 0): 1}
    taken = made.step({"bid": streams.zset([(1, 90, 0), (1, 295, 7)], [-1, 3])})
    assert dict(taken["kept"]) == {(1, 295, 7): 3}  # what is below 290 stays, whatever is said about it
    assert made.late == {"bid.time": 2}


def test_a_watermark_never_goes_back() -> None:
    c, bid = bids()
    c.output("kept", bid.watermark("time"))
    made = c.incremental()
    made.step({"bid": [(1, 100, 0)]})
    made.step({"bid": streams.zset([(1, 100, 0)], [-1])})
    assert not made.step({"bid": [(1, 99, 0)]})["kept"]
    made.step({})
    assert dict(made.step({"bid": [(1, 100, 1)]})["kept"]) == {(1, 100, 1): 1}


def test_a_step_that_fails_counts_nothing_and_moves_no_watermark() -> None:
    c, bid = bids()
    kept = bid.watermark("time")
    c.output("kept", kept.map("time", inverse="1 / value"))
    made = c.incremental()
    made.step({"bid": [(1, 100, 1)]})
    with pytest.raises(EvaluationError, match="has no value"):
        made.step({"bid": [(1, 50, 1), (1, 200, 0)]})
    assert made.late == {"bid.time": 0}
    assert dict(made.step({"bid": [(1, 150, 1)]})["kept"]) == {(150, 1): 1}


def test_two_watermarks_of_one_column_are_counted_apart() -> None:
    c, bid = bids()
    c.output("a", bid.watermark("time"))
    c.output("b", bid.named("bids").watermark("time", 1000))
    c.output("c", bid.watermark("time"))
    made = c.incremental()
    made.step({"bid": [(1, 100, 1)]})
    made.step({"bid": [(1, 50, 1), (1, 60, 1)]})
    assert made.late == {"bid.time": 2, "bids.time": 0, "bids.time (2)": 2}


@having(st.lists(st.integers(0, 200), max_size=40), st.lists(st.integers(0, 40), max_size=5), st.integers(0, 2**32))
def test_how_rows_come_in_steps_is_nobodys_concern_within_the_lateness(
    times: list[int], cuts: list[int], seed: int
) -> None:
    """Rows that are at most the lateness out of order give the same windows, however they are cut into steps."""
    lateness = 30
    rows = [(i % 3, time, i) for i, time in enumerate(sorted(times, key=lambda t: t + seed * (t + 1) % lateness))]
    answers = []
    for edges in ([len(rows)], sorted(cuts), range(len(rows) + 1)):
        c, bid = bids()
        hop = bid.watermark("time", lateness).hopping("time", 20, 10)
        c.output("n", hop.group_by("key", "window_start").aggregate(n=streams.count(), top=streams.max("value")))
        c.output("s", bid.watermark("time", lateness).group_by("key").sessions("time", gap=3))
        made, sums, before = h.tiny(c).incremental(), {"n": {}, "s": {}}, 0
        for edge in [*edges, len(rows)]:
            out = made.step({"bid": rows[before:edge]} if rows[before:edge] else {})
            before = max(before, edge)
            sums = {name: h.total([sums[name], dict(out[name])]) for name in sums}
        assert set(made.late.values()) == {0}
        answers.append(sums)
    assert answers[0] == answers[1] == answers[2]


@having(h.changes(), st.integers(1, 12), st.integers(1, 12), st.integers(-20, 20))
def test_hopping_windows(changes: list[h.Z], size: int, every: int, offset: int) -> None:
    c, bid = bids()
    hop = bid.watermark("time", 5).hopping("time", size, every, offset=offset, start="from", end="to")
    c.output("rows", hop)
    c.output("n", hop.group_by("key", "from").aggregate(n=streams.count()))
    c.output("many", hop.group_by("to", "from").aggregate(n=streams.count()).filter("n > 2"))

    def model(history: h.History) -> dict[str, h.Z]:
        kept = h.total(h.on_time(h.of(history, "bid"), 1, 5)[0])
        rows = h.windows(kept, 1, size, every, offset)
        many = {row: w for row, w in h.counted(rows, (4, 3)).items() if row[2] > 2}
        return {"rows": rows, "n": h.counted(rows, (0, 3)), "many": many}

    h.check(c, h.as_history(bid=changes), model)


@having(st.lists(st.integers(LEAST, MOST) | st.sampled_from((LEAST, MOST, -1, 0)), max_size=5), st.integers(1, 40))
def test_windows_of_far_times(times: list[int], size: int) -> None:
    rows = {(1, time, 0): 1 for time in times}
    expected = h.windows(rows, 1, size, size)
    c, bid = bids()
    c.output("rows", bid.tumbling("time", size))
    held = all(row[3] >= LEAST and row[4] <= MOST for row in expected)
    if held:
        assert dict(c.step({"bid": list(rows)} if rows else {})["rows"]) == expected
    else:
        with pytest.raises(WindowRangeError, match="a window of `time` is beyond 64 bits"):
            c.step({"bid": list(rows)})


@pytest.mark.parametrize("size", [1 << 62, (1 << 62) - 1, 3 << 60])
def test_long_windows(size: int) -> None:
    rows = {(1, time, 0): 1 for time in (-5, 0, 7, 1 << 61, -(1 << 61))}
    c, bid = bids()
    c.output("rows", bid.hopping("time", size, size // 2))
    assert dict(c.step({"bid": list(rows)})["rows"]) == h.windows(rows, 1, size, size // 2)


def test_the_windows_in_which_a_row_is() -> None:
    c, bid = bids()
    c.output("hop", bid.select("time").hopping("time", 10, 5))
    c.output("gaps", bid.select("time").hopping("time", 2, 5))
    out = c.step({"bid": [(0, 12, 0), (0, -1, 0), (0, 10, 0)]})
    assert list(out["hop"]) == [
        ((-1, -10, 0), 1),
        ((-1, -5, 5), 1),
        ((10, 5, 15), 1),
        ((10, 10, 20), 1),
        ((12, 5, 15), 1),
        ((12, 10, 20), 1),
    ]
    assert list(out["gaps"]) == [((10, 10, 12), 1)]


@having(h.changes(), st.integers(0, 20))
def test_range_windows(changes: list[h.Z], size: int) -> None:
    c, bid = bids()
    recent = bid.range_window("time", size)
    c.output("rows", recent)
    c.output("n", recent.group_by("key").aggregate(n=streams.count()))

    def model(history: h.History) -> dict[str, h.Z]:
        rows = h.range_window(h.of(history, "bid"), 1, size)
        return {"rows": rows, "n": h.counted(rows, (0,))}

    h.check(c, h.as_history(bid=changes), model)


@having(h.changes(), st.lists(st.lists(st.integers(-5, 50), max_size=2), max_size=8), st.integers(0, 20))
def test_range_windows_by_a_time_from_elsewhere(changes: list[h.Z], times: list[list[int]], size: int) -> None:
    c, bid = bids()
    now = c.input("now", time=int)
    c.output("rows", bid.range_window("time", size, now=now))

    def model(history: h.History) -> dict[str, h.Z]:
        theta = h.clock(h.of(history, "now"), 0)
        rows = h.total(h.of(history, "bid"))
        return {"rows": {row: w for row, w in rows.items() if theta is None or row[1] >= theta - size}}

    h.check(c, h.as_history(bid=changes, now=[h.z(((t,), 1) for t in tick) for tick in times]), model)


@having(h.changes(), st.integers(0, 9), st.booleans())
def test_sessions(changes: list[h.Z], gap: int, watermark: bool) -> None:
    c, bid = bids()
    timely = bid.watermark("time", 6) if watermark else bid
    found = timely.group_by("key").sessions("time", gap=gap)
    c.output("rows", found)
    c.output("n", found.group_by("key", "session_start", "session_end").aggregate(n=streams.count()))
    c.output("all", timely.group_by().sessions("time", gap=gap, start="a", end="b"))

    def model(history: h.History) -> dict[str, h.Z]:
        ticks = h.of(history, "bid")
        kept = h.total(h.on_time(ticks, 1, 6)[0] if watermark else ticks)
        rows = h.sessions(kept, (0,), 1, gap)
        return {"rows": rows, "n": h.counted(rows, (0, 3, 4)), "all": h.sessions(kept, (), 1, gap)}

    h.check(c, h.as_history(bid=changes), model)


def test_a_row_that_joins_two_sessions_and_leaves_again() -> None:
    c, bid = bids()
    c.output("rows", bid.group_by("key").sessions("time", gap=5).select("time", "session_start", "session_end"))
    made = c.incremental()
    assert len(made.step({"bid": [(1, 10, 0), (1, 18, 0), (2, 12, 0)]})["rows"]) == 3
    joined = {(10, 10, 10): -1, (18, 18, 18): -1, (10, 10, 18): 1, (14, 10, 18): 1, (18, 10, 18): 1}
    assert dict(made.step({"bid": [(1, 14, 0)]})["rows"]) == joined
    back = made.step({"bid": streams.zset([(1, 14, 0)], [-1])})
    assert dict(back["rows"]) == {row: -weight for row, weight in joined.items()}


def test_sessions_of_far_times() -> None:
    c, bid = bids()
    c.output("rows", bid.group_by("key").sessions("time", gap=5).select("time", "session_start", "session_end"))
    rows = [(1, t, 0) for t in (LEAST, LEAST + 5, MOST, MOST - 4, MOST - 10)]
    expected = {
        (LEAST, LEAST, LEAST + 5): 1,
        (LEAST + 5, LEAST, LEAST + 5): 1,
        (MOST, MOST - 4, MOST): 1,
        (MOST - 4, MOST - 4, MOST): 1,
        (MOST - 10, MOST - 10, MOST - 10): 1,
    }
    assert dict(c.step({"bid": rows})["rows"]) == expected
    made, sums = c.incremental(), {}
    for row in rows:
        sums = h.total([sums, dict(made.step({"bid": [row]})["rows"])])
    assert sums == expected


@having(h.changes(), h.changes(), st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(sorted), st.booleans())
def test_interval_joins(left: list[h.Z], right: list[h.Z], within: list[int], watermark: bool) -> None:
    c = streams.Circuit()
    one, two = c.input("one", key=int, time=int, value=int), c.input("two", k=int, then=int, other=int)
    if watermark:
        one, two = one.watermark("time", 6), two.watermark("then", 4)
    low, high = within
    joined = one.interval_join(two, {"key": "k"}, time=("time", "then"), within=(low, high))
    c.output("pairs", joined)
    c.output("n", joined.group_by("key", "then").aggregate(n=streams.count()))
    c.output("distinct", joined.select("then", "time").distinct())

    def model(history: h.History) -> dict[str, h.Z]:
        a, b = h.of(history, "one"), h.of(history, "two")
        if watermark:
            a, b = h.on_time(a, 1, 6)[0], h.on_time(b, 1, 4)[0]
        pairs = h.interval_join(h.total(a), h.total(b), (0, 0), (1, 1), (low, high))
        sums = h.z(((row[3], row[1]), w) for row, w in pairs.items())
        return {
            "pairs": pairs,
            "n": h.counted(pairs, (0, 3)),
            "distinct": {row: 1 for row, w in sums.items() if w > 0},
        }

    h.check(c, h.as_history(one=left, two=right), model)


@pytest.mark.parametrize("within", [(3, 9), (-9, -3), (-2, 2), (0, 1 << 62), (-(1 << 62), 0)])
def test_interval_joins_of_far_times(within: tuple[int, int]) -> None:
    times = [LEAST, LEAST + 1, LEAST + 5, -1, 0, MOST - 5, MOST - 1, MOST]
    rows = {(1, t, 0): 1 for t in times}
    c = streams.Circuit()
    one, two = c.input("one", key=int, time=int, value=int), c.input("two", k=int, then=int, other=int)
    c.output("pairs", one.interval_join(two, {"key": "k"}, time=("time", "then"), within=within))
    expected = h.interval_join(rows, rows, (0, 0), (1, 1), within)
    h.check(c, [{"one": rows}, {"two": rows}, {}], lambda history: {"pairs": expected if len(history) > 1 else {}})


@having(h.changes(), h.changes())
def test_lookups_see_the_other_stream_as_it_is_at_their_tick(left: list[h.Z], right: list[h.Z]) -> None:
    c = streams.Circuit()
    one, two = c.input("one", key=int, time=int, value=int), c.input("two", k=int, then=int, other=int)
    c.output("found", one.lookup(two, {"key": "k"}))

    def model(history: h.History) -> dict[str, h.Z]:
        made, table = [], {}
        for tick in history:
            table = h.total([table, tick.get("two", {})])
            made.append(h.interval_join(tick.get("one", {}), table, (0, 0), (1, 1), (-10000, 10000)))
        return {"found": h.total(made)}

    h.check(c, h.as_history(one=left, two=right), model)


def test_interval_joins_and_sessions_in_a_nested_circuit() -> None:
    """Chains of rows that are each at most 3 later than one before: over both clocks."""
    c = streams.Circuit()
    edge, start = c.input("edge", a=int, t=int, b=int), c.input("start", a=int, t=int)
    with c.nested("chain") as inner:
        known, edges, reached = inner.enter(start), inner.enter(edge), inner.placeholder("reached", a=int, t=int)
        near = reached.delay().rename(t="since").interval_join(edges, "a", time=("since", "t"), within=(0, 3))
        inner.connect(reached, (known + near.map("t", a="b").select("a", "t")).distinct())
        c.output("reached", inner.leave(reached))
    draw = random.Random(7)
    made, edges_held, starts = c.incremental(), {}, {}
    sums: h.Z = {}
    for _ in range(25):
        tick = {
            "edge": h.z(((draw.randrange(5), draw.randrange(8), draw.randrange(5)), 1) for _ in range(3)),
            "start": h.z(((draw.randrange(5), draw.randrange(4)), 1) for _ in range(draw.randrange(2))),
        }
        for name, held in (("edge", edges_held), ("start", starts)):
            tick[name] = {row: -1 if row in held else 1 for row in tick[name]}
            for row, weight in tick[name].items():
                held.pop(row) if weight < 0 else held.update({row: 1})
        sums = h.total([sums, dict(made.step(h.given(tick, c.inputs))["reached"])])
        expected = set(starts)
        while True:
            more = {(b, t) for a, s in expected for x, t, b in edges_held if x == a and 0 <= t - s <= 3} - expected
            if not more:
                break
            expected |= more
        assert sums == dict.fromkeys(expected, 1)
        whole = c.step(h.given({"edge": edges_held, "start": starts}, c.inputs))
        assert dict(whole["reached"]) == sums


def test_shifts_stop_at_the_ends() -> None:
    times = np.array([LEAST, -1, 0, MOST])
    assert shifted(times, 5).tolist() == [LEAST + 5, 4, 5, MOST]
    assert shifted(times, -5).tolist() == [LEAST, -6, -5, MOST - 5]
    assert shifted(times, 0).tolist() == times.tolist()
    assert shifted(times, 1 << 70).tolist() == [-1, MOST - 1, MOST, MOST]
