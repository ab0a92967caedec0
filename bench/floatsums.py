"""Exact sums of floats while values are erased: each equals `math.fsum` of what is left, bit for bit.

    python -m bench.floatsums [--quick]

A million random floats from 1e-300 to 1e300 of either sign, a third of them the exact opposite of an earlier one of
their group, in 1, 1,000 and 100,000 groups; then 100,000 random erases in batches of 1, 100 and 1,000. All groups are
compared with `math.fsum` after the load and after the batches of each size, and AssertionError is raised if one bit of
one of them differs. Beside it: the groups that float64 `+=` and `-=` get wrong, and what `math.fsum` of the touched
groups takes. Memory is that of the accumulators. To `bench/results/floatsums.jsonl`.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import results
from bench.cases import Bench, Line, times

FLOATSUMS = results.RESULTS / "floatsums.jsonl"
VALUES, GROUPS = 1_000_000, (1, 1_000, 100_000)
SIZES = ((1, 500), (100, 95), (1_000, 90))
QUICK_VALUES, QUICK_GROUPS = 3_000, (1, 40)
QUICK_SIZES = ((1, 20), (50, 6))
#: Batches of a size whose touched groups `math.fsum` is timed on.
SAMPLES = 5
PROGRAM = """
.decl m(g:number, i:number, v:float)
.decl total(g:number) -> s:float
total[g] = sum v : { m(g, _, v) }.
"""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def mixed(n: int, groups: int, seed: int) -> tuple[Ints, Floats]:
    """Groups and values of `n` rows: see the module's text. No sum is beyond what a float holds."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, groups, n)
    values = rng.choice((-1.0, 1.0), n) * rng.uniform(1.0, 10.0, n) * 10.0 ** rng.integers(-300, 300, n).astype(float)
    opposite = rng.permutation(n)[: n // 3 * 2].reshape(2, -1)
    of[opposite[1]], values[opposite[1]] = of[opposite[0]], -values[opposite[0]]
    return of, values


class Survivors:
    """What is left of the rows, by group."""

    def __init__(self, groups: Ints, values: Floats) -> None:
        self.groups, self.values = groups, values
        self.left = np.ones(len(values), bool)
        self._order = np.argsort(groups, kind="stable")
        self._starts = np.searchsorted(groups[self._order], np.arange(int(groups.max()) + 2))

    def of(self, group: int) -> list[float]:
        """The values of a group."""
        rows = self._order[self._starts[group] : self._starts[group + 1]]
        found: list[float] = self.values[rows[self.left[rows]]].tolist()
        return found

    def sums(self) -> dict[int, float]:
        """`math.fsum` of each group that has a value."""
        values = {g: self.of(g) for g in range(len(self._starts) - 1)}
        return {g: math.fsum(each) for g, each in values.items() if each}


def same(found: dict[int, float], expected: dict[int, float]) -> None:
    """Raise AssertionError unless all groups have the same sums, to the bit."""
    if found.keys() != expected.keys():
        raise AssertionError(f"{len(found):,} groups, {len(expected):,} expected")
    wrong = [g for g, value in expected.items() if found[g].hex() != value.hex()]
    if wrong:
        g = wrong[0]
        raise AssertionError(f"{len(wrong):,} sums differ, of group {g}: {found[g]!r}, fsum {expected[g]!r}")


def erased(n: int, groups: int, sizes: Sequence[tuple[int, int]]) -> Line:
    """The figures of `n` values in `groups` groups."""
    import lftj

    of, values = mixed(n, groups, seed=80)
    # It is accumulators that are measured: what is not declared is evaluated anew after a commit that took long.
    db = lftj.Database()
    db.rules(PROGRAM, maintain={"total": "delta"})
    db.load("m", {"g": of, "i": np.arange(n), "v": values})
    start = time.process_time()
    db.evaluate()
    evaluated = time.process_time() - start
    survivors = Survivors(of, values)
    same(dict(db["total"]), survivors.sums())
    plain = np.zeros(groups)
    np.add.at(plain, of, values)
    going = np.random.default_rng(81).permutation(n)
    # The first change prepares what later ones are followed by.
    at = 1
    recorded, _ = _erase(db, of, values, going[:at])
    survivors.left[going[:at]] = False
    np.subtract.at(plain, of[going[:at]], values[going[:at]])
    measured, expected = [], {}
    for size, count in sizes:
        took, anew, steps = [], [], 0
        for i in range(count):
            rows, at = going[at : at + size], at + size
            seconds, tx = _erase(db, of, values, rows)
            took.append(seconds)
            steps += tx.stats["total"]["steps"]
            survivors.left[rows] = False
            np.subtract.at(plain, of[rows], values[rows])
            if i < SAMPLES:
                touched = [survivors.of(g) for g in np.unique(of[rows]).tolist()]
                start = time.process_time()
                for each in touched:
                    math.fsum(each)
                anew.append(time.process_time() - start)
        expected = survivors.sums()
        same(dict(db["total"]), expected)
        measured.append({"size": size, **times(took), "steps": steps, "fsum_ms": statistics.median(anew) * 1e3})
    held = db._kept.memory()
    size_of = sum(parts["accumulators"] for parts in held.values() if "accumulators" in parts)
    return {
        "values": n,
        "erased": at,
        "groups": groups,
        "evaluate_ms": evaluated * 1e3,
        "record_ms": recorded * 1e3,
        "sizes": measured,
        "accumulator_bytes": size_of,
        "bytes_per_group": size_of / groups,
        "bytes_per_value": size_of / len(survivors.left.nonzero()[0]),
        "plain_wrong": sum(float(plain[g]) != value for g, value in expected.items()),
    }


def _erase(db: Any, of: Ints, values: Floats, rows: Ints) -> tuple[float, Any]:
    """CPU seconds of a transaction that erases these rows, and the transaction."""
    given = list(zip(of[rows].tolist(), rows.tolist(), values[rows].tolist(), strict=True))
    start = time.process_time()
    with db.transaction() as tx:
        tx.erase("m", given)
    return time.process_time() - start, tx


def measured(request: Line) -> Line:
    """One number of groups: `request` has "groups" and "quick"."""
    if not request["quick"]:
        erased(QUICK_VALUES, 40, QUICK_SIZES)
        return {"status": "ok", **erased(VALUES, request["groups"], SIZES)}
    return {"status": "ok", **erased(QUICK_VALUES, request["groups"], QUICK_SIZES)}


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for groups in QUICK_GROUPS if quick else GROUPS:
        what = {"workload": "sum of floats", "graph": f"{groups:,} groups", "mode": "erase", "engine": "lftj"}
        yield {**what, "groups": groups, "quick": quick}


def note(line: Line) -> str:
    """The figures in one line."""
    shown = "  ".join(f"{m['size']:,}: {m['median_ms']:.3f} ({m['fsum_ms']:.3f})" for m in line["sizes"])
    return f"{shown}  {line['bytes_per_group']:.0f} bytes per group, += wrong in {line['plain_wrong']:,}"


BENCH = Bench("bench.floatsums", FLOATSUMS, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
