"""Memory of circuits over a day of events: that of the window, not that of the day.

    python -m bench.streams_memory [--quick]

A day of 1,000,000 bids (auction, bidder, price, time in milliseconds), up to five seconds out of order, comes in steps
of a minute; the watermark allows for these five seconds. Circuits over it: counts, highest prices and the three busiest
auctions of windows of an hour every five minutes; sessions of bidders with counts; pairs of bids of a bidder within ten
seconds. Each is stepped as it is ("forgets") and without dropping what nobody can ask for ("keeps"). Of each step the
bytes of pages of all integrals are taken (`Circuit.memory`), and those of all pages that are in use. Told are the
greatest of the first and of the last tenth of the day, and the CPU time of a step in both. The sums of all changes are
compared with a recomputation by numpy over the whole day (sessions and pairs: those of both circuits with one another),
and AssertionError is raised if they differ. To `bench/results/streams_memory.jsonl`.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import results
from bench.cases import Bench, Line
from lftj.streams.zsets import ZSet

MEMORY = results.RESULTS / "streams_memory.jsonl"
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
EVENTS, QUICK_EVENTS, AUCTIONS, BIDDERS = 1_000_000, 6_000, 500, 20_000
DISORDER = 5_000
#: Changes are added up in parts of so many steps.
PART = 60
Ints = npt.NDArray[np.int64]


def bids(n: int, seed: int) -> Ints:
    """(auction, bidder, price, time) int64[4, n], in the order in which they come: by time plus some delay."""
    rng = np.random.default_rng(seed)
    when = np.sort(rng.integers(0, DAY, n))
    hot = rng.random(n) < 0.5
    auction = np.where(hot, rng.integers(0, 5, n), rng.integers(0, AUCTIONS, n))
    made = np.stack([auction, rng.integers(0, BIDDERS, n), rng.integers(1, 10_000, n), when])
    return np.ascontiguousarray(made[:, np.argsort(when + rng.integers(0, DISORDER, n), kind="stable")])


def hopping(bid: Any) -> dict[str, Any]:
    """Windows of an hour every five minutes."""
    from lftj import streams

    windows = bid.hopping("time", HOUR, HOUR // 12).group_by("auction", "window_start")
    counts = windows.aggregate(n=streams.count(), high=streams.max("price"))
    return {"counts": counts, "busiest": counts.group_by("window_start").top(3, by=("-n", "auction"))}


def sessions(bid: Any) -> dict[str, Any]:
    """Bids of a bidder with silences of at most ten minutes, counted."""
    from lftj import streams

    found = bid.group_by("bidder").sessions("time", gap=10 * MINUTE)
    return {"sessions": found.group_by("bidder", "session_start", "session_end").aggregate(n=streams.count())}


def pairs(bid: Any) -> dict[str, Any]:
    """A bid of a bidder and one at most ten seconds later."""
    other = bid.rename(auction="then_on", price="next", time="then")
    return {"pairs": bid.interval_join(other, "bidder", time=("time", "then"), within=(0, 10_000))}


CIRCUITS: dict[str, Callable[[Any], dict[str, Any]]] = {"hopping hour": hopping, "sessions": sessions, "pairs": pairs}


def stepped(workload: str, events: int, *, forget: bool) -> Line:
    """The figures of one circuit over a day."""
    from lftj import streams

    written = streams.Circuit(workload)
    bid = written.input("bid", auction=int, bidder=int, price=int, time=int).watermark("time", DISORDER)
    for name, stream in CIRCUITS[workload](bid).items():
        written.output(name, stream)
    circuit, rows = written.incremental(forget=forget), bids(events, seed=30)
    came = np.maximum.accumulate(rows[3])
    edges = np.searchsorted(came, np.arange(MINUTE, DAY + 1, MINUTE)).tolist()
    sums: dict[str, ZSet] = {}
    parts: list[Mapping[str, Any]] = []
    held, pages, took = [], [], []
    before = 0
    for edge in [*edges, events]:
        given = np.ascontiguousarray(rows[:, before:edge].T)
        before = edge
        start = time.process_time()
        parts.append(circuit.step({"bid": given}))
        took.append(time.process_time() - start)
        memory = circuit.memory()
        held.append(memory.total)
        circuit._room.arena.collect()
        pages.append(circuit._room.arena.used)
        if len(parts) == PART:
            sums, parts = _sums(sums, parts), []
    sums = _sums(sums, parts)
    if circuit.late != {"bid.time": 0}:
        raise AssertionError(f"nothing comes too late, but {circuit.late} did")
    if workload == "hopping hour":
        same(sums["counts"], rows)
    tenth = len(held) // 10
    return {
        "events": events,
        "steps": len(held),
        "first_bytes": max(held[:tenth]),
        "last_bytes": max(held[-tenth:]),
        "first_pages": max(pages[:tenth]),
        "last_pages": max(pages[-tenth:]),
        "growth": max(held[-tenth:]) / max(held[:tenth]),
        "first_ms": statistics.median(took[:tenth]) * 1e3,
        "last_ms": statistics.median(took[-tenth:]) * 1e3,
        "digests": {name: _digest(zset) for name, zset in sums.items()},
    }


def _sums(sums: dict[str, ZSet], parts: Sequence[Mapping[str, Any]]) -> dict[str, ZSet]:
    """The sums of deltas by output, and of what they were before."""
    made = dict(sums)
    for name in parts[0] if parts else ():
        zsets = [part[name]._zset for part in parts]
        made[name] = ZSet.zero(zsets[0].arity).plus(*([sums[name]] if name in sums else []), *zsets).normal()
    return made


def same(counts: ZSet, rows: Ints) -> None:
    """Raise AssertionError unless the rows (auction, window_start, n, high) are those of all bids."""
    every = HOUR // 12
    last = rows[3] // every * every
    starts = np.concatenate([last - every * j for j in range(12)])
    keys = np.stack([np.tile(rows[0], 12), starts])
    prices = np.tile(rows[2], 12)
    order = np.lexsort([prices, keys[1], keys[0]])
    keys, prices = keys[:, order], prices[order]
    ends = np.append((keys[:, 1:] != keys[:, :-1]).any(axis=0), True)
    n = np.diff(np.concatenate([[0], np.flatnonzero(ends) + 1]))
    expected = np.vstack([keys[:, ends], n, prices[ends]])
    if not (np.array_equal(counts.rows, expected) and counts.is_set()):
        raise AssertionError(f"{len(counts):,} rows of windows are not those of all bids ({expected.shape[1]:,})")


def _digest(zset: ZSet) -> str:
    return hashlib.sha256(zset.rows.tobytes() + zset.weights.tobytes()).hexdigest()[:16]


def measured(request: Line) -> Line:
    """One circuit: `request` has "workload", "mode" and "quick"."""
    forget = request["engine"] == "forgets"
    if not request["quick"]:
        stepped(request["workload"], QUICK_EVENTS, forget=forget)
    return {"status": "ok", **stepped(request["workload"], QUICK_EVENTS if request["quick"] else EVENTS, forget=forget)}


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for workload in CIRCUITS:
        for engine in ("forgets", "keeps"):
            yield {"workload": workload, "graph": "a day", "mode": "memory", "engine": engine, "quick": quick}


def note(line: Line) -> str:
    """The figures in one line."""
    first, last = line["first_bytes"] / 1e6, line["last_bytes"] / 1e6
    ms = f"{line['first_ms']:.1f} and {line['last_ms']:.1f} ms a step"
    return f"first tenth {first:.1f} MB, last tenth {last:.1f} MB, {line['growth']:.3f} times; {ms}"


BENCH = Bench("bench.streams_memory", MEMORY, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
