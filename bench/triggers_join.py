"""A sum over a join of two tables by its shared column, kept by triggers: single rows, a stream, growth with the data.

    worth[b] = sum a * c over r(a, b), s(b, c)

The query is q-hierarchical: a change costs constant time whatever the data. Keys are a tenth as many as rows, so ten
rows of both tables together share one. Every answer is compared with numpy's.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.graphs import Rows
from bench.maintained import percentile
from bench.steps import growth
from bench.triggers_run import Block, derived_bytes, differ, followed

PROGRAM = """
.decl r(a:number, b:number)
.decl s(b:number, c:number)
worth[b] = sum a * c : { r(a, b), s(b, c) }.
"""
RELATIONS = ("r", "s")
SHARE = 10
STREAM, ONES, WARM = 100_000, 2_000, 48
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


class Pair:
    """`r` and `s` with `rows` rows together, and events that bring and take rows by turns, so that as many stay."""

    def __init__(self, rows: int, events: int, seed: int = 32) -> None:
        rng = np.random.default_rng(seed)
        half, more = rows // 2, -(-events // 4)
        self.half, self.keys = half, max(1, rows // SHARE)
        # One column is the row's number, so no two rows are equal; the join key is random.
        numbers = np.arange(half + more)
        self.made: dict[str, Rows] = {
            "r": np.stack([numbers, rng.integers(0, self.keys, half + more)], axis=1),
            "s": np.stack([rng.integers(0, self.keys, half + more), numbers], axis=1),
        }
        self.goes = {name: rng.permutation(half)[:more] for name in RELATIONS}

    def start(self) -> dict[str, Rows]:
        """The rows to begin with."""
        return {name: rows[: self.half] for name, rows in self.made.items()}

    def blocks(self, run: int) -> Iterator[Block]:
        """`run` rows come to r, and as many go; then the same of s; and so on. One row is a tuple of Python."""
        for at in itertools.count(0, run):
            for name in RELATIONS:
                goes = self.goes[name][at : at + run]
                if not len(goes):
                    return
                for sign, rows in (
                    (1, self.made[name][self.half + at : self.half + at + len(goes)]),
                    (-1, self.made[name][goes]),
                ):
                    yield name, sign, rows if run > 1 else [tuple(row) for row in rows.tolist()]

    def answer(self, turns: int) -> list[tuple[int, int]]:
        """(b, worth) after `turns` rows came to each relation, and as many went."""
        sums, counts = {}, {}
        for name, key, value in (("r", 1, 0), ("s", 0, 1)):
            stays = np.ones(self.half + turns, bool)
            stays[self.goes[name][:turns]] = False
            rows = self.made[name][: self.half + turns][stays]
            counts[name] = np.bincount(rows[:, key], minlength=self.keys)
            sums[name] = np.bincount(rows[:, key], rows[:, value], self.keys).astype(np.int64)
        there = np.flatnonzero(counts["r"] * counts["s"])
        return list(zip(there.tolist(), (sums["r"] * sums["s"])[there].tolist(), strict=True))


def loaded(pair: Pair, maintain: Any = "triggers") -> Any:
    """A database with the rows to begin with."""
    import lftj

    db = lftj.Database()
    db.rules(PROGRAM, maintain={"worth": maintain})
    for name, rows in pair.start().items():
        db.load(name, rows)
    db.evaluate()
    return db


def warm() -> None:
    """Compile all that the head needs."""
    pair = Pair(1_000, 400)
    db = loaded(pair)
    db.prepare()
    blocks = list(pair.blocks(1))
    followed(db, [blocks[:20]], 60.0)
    _ones(db, blocks[20:60])


def _ones(db: Any, blocks: list[Block]) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of each transaction of one block."""
    wall, cpu = [], []
    for name, sign, rows in blocks:
        used, now = time.process_time(), time.perf_counter()
        with db.transaction() as tx:
            (tx.insert if sign > 0 else tx.erase)(name, rows)
        wall.append(time.perf_counter() - now)
        cpu.append(time.process_time() - used)
    return wall, cpu


def single(request: dict[str, Any]) -> dict[str, Any]:
    """Transactions of one row with `rows` rows behind, and a call with a stream: in blocks of 1,000, and of one."""
    rows, ones, events = request["rows"], request.get("ones", ONES), request.get("events", STREAM)
    warm()
    pair = Pair(rows, ones + WARM)
    db = loaded(pair)
    blocks = list(pair.blocks(1))
    _ones(db, blocks[:WARM])
    wall, cpu = _ones(db, blocks[WARM:])
    wrong = differ(db["worth"], pair.answer(len(blocks) // 4))
    found: dict[str, Any] = {
        "one_row_us": statistics.median(wall) * 1e6,
        "one_row_cpu_us": statistics.median(cpu) * 1e6,
        "one_row_p99_us": percentile(wall, 0.99) * 1e6,
        "rows": rows,
    }
    for name, run in (("stream", 1_000), ("fine", 1)):
        pair = Pair(rows, events)
        db = loaded(pair)
        taken = followed(db, [list(pair.blocks(run))], 600.0)
        wrong = wrong or differ(db["worth"], pair.answer(taken.events // 4))
        found[f"{name}_us"] = 1e6 / taken.per_second
    return {"status": "error", "reason": wrong, **found} if wrong else {"status": "ok", **found}


def growing(request: dict[str, Any]) -> dict[str, Any]:
    """Microseconds an event at every size, and the slope of its logarithm."""
    sizes, events = request.get("sizes", SIZES), request.get("events", STREAM)
    warm()
    micros, held, wrong = [], [], ""
    for rows in sizes:
        pair = Pair(rows, min(rows, 2 * events))
        db = loaded(pair)
        blocks = list(pair.blocks(1_000))
        half = len(blocks) // 8 * 4
        first = followed(db, [blocks[:half]], 600.0)
        taken = followed(db, [blocks[half:]], 600.0)
        micros.append(1e6 / taken.per_second)
        held.append(derived_bytes(db, RELATIONS))
        wrong = wrong or differ(db["worth"], pair.answer((first.events + taken.events) // 4))
        del db
    found = {"sizes": list(sizes), "event_us": micros, "bytes": held, "slope": growth(sizes, micros)}
    return {"status": "error", "reason": wrong, **found} if wrong else {"status": "ok", **found}
