"""What windows and joins in time look at: rows near the change, and what leaves, however much there is.

Counted are the rows that integrals hand out, and the rows that they are told to drop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from lftj import streams
from scantree.version import Version


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Rows that versions gave and were given since it was cleared."""
    counts = {"read": 0, "changed": 0}
    for name in ("between", "matches", "rows_under"):
        plain = getattr(Version, name)

        def reading(self: Version, *given: Any, plain: Any = plain, **named: Any) -> Any:
            found = plain(self, *given, **named)
            counts["read"] += (found[0] if isinstance(found, tuple) else found).shape[1]
            return found

        monkeypatch.setattr(Version, name, reading)
    columns, update = Version.columns, Version.update

    def all_columns(self: Version, *given: Any, **named: Any) -> Any:
        found = columns(self, *given, **named)
        counts["read"] += found.shape[1]
        return found

    def updating(self: Version, batch: Any, ops: Any, **named: Any) -> Any:
        counts["changed"] += batch.shape[1]
        return update(self, batch, ops, **named)

    monkeypatch.setattr(Version, "columns", all_columns)
    monkeypatch.setattr(Version, "update", updating)
    return counts


def rows(lo: int, hi: int) -> Any:
    """A row (key, time, value) of key 1 every ten milliseconds."""
    times = np.arange(lo, hi) * 10
    return np.stack([np.ones_like(times), times, times % 7]).T


@pytest.mark.parametrize("n", [1_000, 30_000])
def test_a_change_looks_at_what_is_near(n: int, counted: dict[str, int]) -> None:
    c = streams.Circuit()
    bid, ask = c.input("bid", key=int, time=int, value=int), c.input("ask", key=int, then=int, other=int)
    c.output("pairs", bid.interval_join(ask, "key", time=("time", "then"), within=(-20, 20)))
    c.output("sessions", bid.filter("value > 1").group_by("key").sessions("time", gap=10))
    made = c.incremental()
    made.step({"bid": rows(0, n), "ask": rows(0, n)})
    for middle in (n // 2, n - 3, n + 5):
        counted.update(read=0, changed=0)
        out = made.step({"bid": [(1, middle * 10 + 1, 5)], "ask": [(1, middle * 10 - 1, 6)]})
        assert counted["read"] <= 60
        assert counted["changed"] <= 20
        assert len(out["pairs"]) >= 1


@pytest.mark.parametrize("n", [1_000, pytest.param(30_000, marks=pytest.mark.jit_only)])
def test_dropping_costs_what_it_drops(n: int, counted: dict[str, int]) -> None:
    c = streams.Circuit()
    bid = c.input("bid", key=int, time=int, value=int).watermark("time", 10 * n)
    ask = c.input("ask", key=int, then=int, other=int).watermark("then", 10 * n)
    recent = bid.range_window("time", 10 * n)
    c.output("recent", recent)
    c.output("n", bid.tumbling("time", 10).group_by("key", "window_start").aggregate(n=streams.count()))
    c.output("pairs", bid.interval_join(ask, "key", time=("time", "then"), within=(0, 0)))
    c.output("sessions", bid.group_by("key").sessions("time", gap=5))
    made = c.incremental()
    made.step({"bid": rows(0, n), "ask": rows(0, n)})
    for at in range(n, n + 5):
        counted.update(read=0, changed=0)
        made.step({"bid": rows(at, at + 1), "ask": rows(at, at + 1)})
        assert counted["read"] <= 40
        assert counted["changed"] <= 40
    # All of it at once is as much work as there are rows, and then nothing is left of it.
    made.step({"bid": rows(5 * n, 5 * n + 1), "ask": rows(5 * n, 5 * n + 1)})
    counted.update(read=0, changed=0)
    made.step({"bid": rows(5 * n + 1, 5 * n + 2), "ask": rows(5 * n + 1, 5 * n + 2)})
    assert n <= counted["changed"] <= 20 * n
    counted.update(read=0, changed=0)
    made.step({"bid": rows(5 * n + 2, 5 * n + 3), "ask": rows(5 * n + 2, 5 * n + 3)})
    assert counted["changed"] <= 40
    assert made.memory().total < 1_000_000


def test_windows_in_a_database() -> None:
    """A commit is a tick: what is late is dropped, also when it is erased, and windows that are over stay."""
    db = lftj.Database(".decl bid(key:number, time:number)")
    c = streams.Circuit("counts")
    window = c.input("bid", key=int, time=int).watermark("time", 5).tumbling("time", 10)
    c.output("counts", window.group_by("window_start").aggregate(n=streams.count()))
    db.attach(c)
    for inserted, erased in (([(1, 3), (2, 14)], []), ([(3, 8), (4, 9), (5, 31)], [(2, 14)]), ([], [(1, 3), (4, 9)])):
        with db.transaction() as tx:
            tx.insert("bid", inserted)
            tx.erase("bid", erased)
    # 8 came when 9 was the least: late. The last transaction erases what is long over.
    assert list(db["counts"]) == [(0, 2), (30, 1)]


def test_a_drawing_of_windows() -> None:
    c = streams.Circuit()
    bid = c.input("bid", key=int, time=int).watermark("time", 5)
    c.output("recent", bid.range_window("time", 3))
    c.output("n", bid.hopping("time", 10, 5).group_by("window_start").aggregate(n=streams.count()))
    made = c.incremental()
    made.step({"bid": [(1, 2)]})
    for circuit in (c, made):
        assert "windows 10 every 5" in circuit.svg()
        assert "on time bid.time - 5" in circuit.explain()
