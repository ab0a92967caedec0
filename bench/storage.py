"""What the storage costs: building a relation, inserting one row, bytes per row.

    python -m bench.storage [rows]

1. Bulk build of a binary relation from two shuffled columns, against `numpy.lexsort` of the same columns (which only
   says how to order them).
2. One row inserted into the relation, a new version each time, the old one dropped: microseconds at positions from
   front to back, in one compiled loop (the kernel) and through `Version.update` (what Python pays).
3. Bytes of pages per row, directory and slack included: after the build, and after as many random single-row changes
   as there are rows.

Figures are CPU times; each line also goes to `bench/results/storage.jsonl`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import results
from bench.measure import timed
from scantree import update as kernels
from scantree._jit import kernel
from scantree.buffers import scratch
from scantree.memory import Arena, drop
from scantree.version import Store, Version

STORAGE = results.RESULTS / "storage.jsonl"
POSITIONS = 32
INSERTS = 500

#: Bounds of the issue: times lexsort, microseconds, bytes per row.
BUILD_BOUND, INSERT_BOUND, BYTES_BOUND = 1.5, 20.0, 24.0


@kernel
def apply_each(
    space: Any,
    root: int,
    shape: Any,
    rows: npt.NDArray[np.int64],
    ops: npt.NDArray[np.int8],
    verdict: npt.NDArray[np.int8],
    work: Any,
) -> int:
    """Apply `rows` int64[m, cols, 1] one by one as versions of their own, `ops` int8[m, 1]; returns the last root.

    `verdict` int8[1] is written. Every version but the first and the last is dropped. The caller has checked room for
    all of them.
    """
    first = root
    for i in range(len(rows)):
        after = kernels.update(space, root, shape, rows[i], ops[i], verdict, work)
        if after != root and root != first:
            drop(space, root, shape)
        root = after
    return root


def changed_one_by_one(
    version: Version, rows: npt.NDArray[np.int64], ops: npt.NDArray[np.int8]
) -> tuple[Version, float]:
    """(`version` after each of `rows` int64[m, 2] was inserted (1) or erased (-1) on its own, CPU seconds)."""
    store = version.store
    with store.arena.lock:
        store.arena.room((1 << 20) + 64 * len(rows))
        work = scratch(store.shape, 1, version.pages + len(rows))
        shaped = np.ascontiguousarray(rows[:, :, None])
        arguments = (store.arena.space, version.root, store.shape, shaped, ops[:, None], np.empty(1, np.int8), work)
        start = time.process_time()
        root = int(apply_each(*arguments))
        seconds = time.process_time() - start
    return (version if root == version.root else Version(store, root)), seconds


def random_rows(n: int, domain: int, seed: int) -> npt.NDArray[np.int64]:
    """`n` rows int64[n, 2] over [0, domain), in no order, possibly repeated."""
    return np.random.default_rng(seed).integers(0, domain, size=(n, 2))


def build_times(store: Store, rows: npt.NDArray[np.int64], repeats: int = 5) -> tuple[Version, float, float]:
    """(the relation, least CPU seconds of a build, least CPU seconds of `numpy.lexsort`)."""
    columns = [np.ascontiguousarray(rows[:, i]) for i in (0, 1)]

    def least(call: Callable[[], object]) -> float:
        return min(timed(call)[1].cpu for _ in range(repeats))

    version = store.build(columns)
    return version, least(lambda: store.build(columns)), least(lambda: np.lexsort(columns[::-1]))


def insert_times(version: Version, domain: int) -> tuple[list[float], float]:
    """(kernel µs per insert at POSITIONS places from front to back, median µs of `Version.update`)."""
    per_position = []
    for i, first in enumerate(np.linspace(0, domain - 1, POSITIONS).astype(np.int64)):
        rows = random_rows(INSERTS, domain, 100 + i)
        rows[:, 0] = first
        _, seconds = changed_one_by_one(version, rows, np.ones(INSERTS, np.int8))
        per_position.append(seconds / INSERTS * 1e6)
    through_python = []
    one = np.ones(1, np.int8)
    for row in random_rows(INSERTS, domain, 99):
        start = time.perf_counter()
        version.update(row[:, None], one)
        through_python.append((time.perf_counter() - start) * 1e6)
    return per_position, float(np.median(through_python))


def churned(version: Version, changes: int, domain: int) -> tuple[Version, float]:
    """(the relation after `changes` single-row changes, µs per change).

    Half are inserts of random rows, half erases of rows the relation had at the start.
    """
    rng = np.random.default_rng(7)
    present = version.columns().T
    rows = rng.integers(0, domain, size=(changes, 2))
    erase = rng.random(changes) < 0.5
    rows[erase] = present[rng.integers(0, len(present), size=int(erase.sum()))]
    after, seconds = changed_one_by_one(version, rows, np.where(erase, -1, 1).astype(np.int8))
    return after, seconds / changes * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record; exit code 1 if a bound does not hold."""
    arguments = sys.argv[1:] if arguments is None else arguments
    n = int(arguments[0].replace(",", "").replace("_", "")) if arguments else 1_000_000
    domain = max(4, n // 5)
    store = Store(Arena(), keys=2)
    tiny = store.build([np.arange(9), np.arange(9)])
    changed_one_by_one(tiny, random_rows(4, 9, 1), np.ones(4, np.int8))  # compile

    version, build, lexsort = build_times(store, random_rows(n, domain, 5))
    positions, through_python = insert_times(version, domain)
    bytes_built = version.memory() / len(version)
    after, per_change = churned(version, n, domain)
    bytes_churned = after.memory() / len(after)
    figures: dict[str, float] = {
        "rows": float(len(version)),
        "build_seconds": build,
        "lexsort_seconds": lexsort,
        "insert_us_median": float(np.median(positions)),
        "insert_us_worst_position": max(positions),
        "insert_us_python": through_python,
        "change_us_over_churn": per_change,
        "bytes_per_row_built": bytes_built,
        "bytes_per_row_churned": bytes_churned,
        "fill_churned": after.fill,
    }
    for name, value in figures.items():
        sys.stdout.write(f"{name:26} {value:14,.4f}\n")
    results.append(STORAGE, figures)
    kept = (
        build <= BUILD_BOUND * lexsort
        and figures["insert_us_median"] < INSERT_BOUND
        and max(bytes_built, bytes_churned) <= BYTES_BOUND
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
