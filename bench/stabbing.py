"""The records that a changed key concerns: stabbing an interval tree, against a range of starts.

    python -m bench.stabbing [-g pl1m] [-n 100_000]

The paper keeps sensitivity intervals in interval trees and stabs them with the changed key. In a join's trace an
interval ends at the least key >= its start of the very set its record names, so that the intervals that hold a key are
those whose start lies behind the key before it, and a range of a sorted set finds them (sensitivity/records.py). Both
are measured on the INTERVAL index of the last depth of the triangle rule as it was recorded: the same records, the
same keys of present and of random absent edges, the same answers, in compiled loops that write out every record found.
The range pays for finding the key before. CPU microseconds per lookup, bytes per record; to
`bench/results/stabbing.jsonl`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from bench import graphs, maintained, results, updates
from bench.graphs import Rows
from bench.maintained import WAYS
from scantree.cursor import seek_lub, unpack
from scantree.intervals import FULL, IntervalTree, interval_store, stab
from scantree.layout import dir_count, dir_of
from sensitivity import oracle, records

STABBING = results.RESULTS / "stabbing.jsonl"
Ints = npt.NDArray[np.int64]


@numba.njit(nogil=True)
def key_before(mem: Any, root: int, shape: Any, row: Ints) -> int:
    """The greatest second key < `row[1]` of the rows whose first key is `row[0]`; KEY_MIN if there is none."""
    d, s, p = unpack(shape, seek_lub(mem, root, shape, row))
    if p == 0 and s == 0:
        if d == 0:
            return records.KEY_MIN
        d -= 1
        s = dir_count(mem, root, d)
    directory = dir_of(mem, root, d)
    if p == 0:
        s -= 1
        p = mem[directory + (1 << shape.dir_bits) + s]
    page = mem[directory + s] + p - 1
    return mem[page + (1 << shape.page_bits)] if mem[page] == row[0] else records.KEY_MIN


@numba.njit(nogil=True)
def by_ranges(
    mem: Any, trace: Any, s: int, prefix: int, root: int, shape: Any, asked: Rows, counts: Ints, out: Rows
) -> int:
    """Look up `asked` int64[m, 2] (prefix, key) in the index of site `s`; register `prefix` is its prefix.

    `root`, `shape`: the old set of keys. Writes how many records each concerns to `counts` int64[m] and the fields of
    the records found last to `out` int64[fields, n], cyclically; returns the sum of starts (but KEY_MIN) and agrees.
    """
    site = trace.sites[s]
    most = trace.base.shape[1]
    rows, words = np.empty((2, most), np.int64), np.empty(most, np.int64)
    regs = np.zeros(64, np.int64)
    total, at_out = 0, 0
    for j in range(len(asked)):
        key = asked[j, 1]
        regs[prefix] = asked[j, 0]
        before = key_before(mem, root, shape, asked[j])
        low = records.KEY_MIN if before == records.KEY_MIN else before + 1
        records.range_rows(trace, s, regs, low, key, rows)
        pos = oracle.first_record(mem, site, rows)
        counts[j] = 0
        within = True
        while within:
            at, n = oracle.window(mem, site, pos)
            if n == 0:
                break
            for k in range(n):
                if not oracle.read_words(mem, site, at + k, rows, words):
                    within = False
                    break
                records.read_record(trace, s, words, 0, regs)
                start, agree = records.start_of(site, words, 0), records.agree_of(site, words, 0)
                out[0, at_out] = start
                for f in range(site[records.FIELD_LO], site[records.FIELD_HI]):
                    out[1 + f - site[records.FIELD_LO], at_out] = regs[trace.fields[f, records.REGISTER]]
                out[len(out) - 1, at_out] = agree
                at_out = (at_out + 1) % out.shape[1]
                total += agree + (0 if start == records.KEY_MIN else start)
                counts[j] += 1
            if within:
                pos = oracle.next_window(mem, site, pos, n)
    return total


@numba.njit(nogil=True)
def by_intervals(mem: Any, root: int, shape: Any, asked: Rows, counts: Ints, out: Rows) -> int:
    """Look up `asked` int64[m, 2] in an interval tree whose rows end with the agree; else as `by_ranges`."""
    state, looked = np.zeros(3, np.int64), np.zeros(2, np.int64)
    total = 0
    for j in range(len(asked)):
        state[:] = 0
        counts[j] = 0
        status = FULL
        while status == FULL:
            n, status = stab(mem, root, shape, asked[j], state, out, looked)
            counts[j] += n
            for i in range(n):
                total += out[shape.cols - 1, i] + (0 if out[1, i] == records.KEY_MIN else out[1, i])
    return total


def ends(found: Rows, keys: Rows) -> Ints:
    """The end of each record's interval: the least key >= its start under its prefix, KEY_MAX if there is none.

    `found` int64[fields, n]: prefix, start, ...; `keys` int64[2, m]: the set of (prefix, key), in order; none negative.
    """
    base = int(max(keys.max(), found[:2].max())) + 2
    codes = keys[0] * base + keys[1]
    at = np.searchsorted(codes, found[0] * base + np.maximum(found[1], 0))
    inside = np.minimum(at, len(codes) - 1)
    ends: Ints = np.where((at < len(codes)) & (keys[0][inside] == found[0]), keys[1][inside], records.KEY_MAX)
    return ends


def compared(rows: Rows, lookups: int, repeats: int = 5) -> dict[str, Any]:
    """Both ways on the graph `rows`; raises AssertionError if they differ in an answer."""
    db = maintained.database(maintained.TRIANGLE, "tri", WAYS["lftj-interval"])
    db.load("e", rows)
    db.evaluate()
    maintained.apply(db, "e", next(updates.generated(rows, [(1, 1)], seed=60)))
    (trace,) = db._kept.heads["tri"].traces
    last = len(trace.plan.depths) - 1
    s, site = next(
        (s, x) for s, x in enumerate(trace.trace_plan.sites) if x.depth == last and x.granularity == records.INTERVAL
    )
    (prefix,) = site.prefix
    node = trace.plan.nodes[site.frame]
    held = db._evaluator.relations[node.predicate].order(node.key_order)
    found, keys = trace.indexes.records(s), held.columns()
    store = interval_store(db._arena, prefix=1, payload=len(found) - 2)
    tree = IntervalTree(store.build([found[0], found[1], ends(found, keys), *found[2:]]))
    if len(tree) != found.shape[1]:
        raise AssertionError(f"{found.shape[1]:,} records, {len(tree):,} intervals")
    recorder = _recorder(trace)
    batch = next(updates.generated(np.ascontiguousarray(keys.T), [(min(lookups, len(rows)), 1)], seed=61))
    asked = np.concatenate([batch.erase, batch.insert])
    asked = asked[np.random.default_rng(62).permutation(len(asked))]
    mem = db._arena.space.mem
    counts = np.empty((2, len(asked)), np.int64)
    out = np.empty((store.shape.cols, 1 << 12), np.int64)
    ways: dict[str, Callable[[Rows], int]] = {
        "ranges": lambda q: by_ranges(mem, recorder, s, prefix, held.root, held.store.shape, q, counts[0], out[1:]),
        "intervals": lambda q: by_intervals(mem, tree.version.root, store.shape, q, counts[1], out),
    }
    totals = [call(asked[:1]) for call in ways.values()]  # compiles
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for i, (name, call) in enumerate(ways.items()):
            start = time.process_time()
            totals[i] = call(asked)
            took[name].append((time.process_time() - start) / len(asked) * 1e6)
    if totals[0] != totals[1] or not np.array_equal(counts[0], counts[1]):
        raise AssertionError("ranges of starts and stabbed intervals differ")
    n = found.shape[1]
    return {
        "site": trace.site_name(s),
        "records": n,
        "lookups": len(asked),
        "records_per_lookup": float(counts[0].mean()),
        "ranges_us": statistics.median(took["ranges"]),
        "intervals_us": statistics.median(took["intervals"]),
        "ranges_bytes_per_record": trace.indexes.memory(s) / n,
        "intervals_bytes_per_record": tree.memory() / n,
    }


def _recorder(trace: Any) -> records.Trace:
    """What a lookup is told about the sites of a trace."""
    sites, fields = trace.layout.sites(trace.indexes.packings)
    trace.indexes.write_roots(sites)
    nothing = np.zeros((len(sites), max(1, int(sites[:, records.WORDS].max()))), np.int64)
    return records.Trace(sites, fields, nothing, np.empty(0, np.int64), np.zeros(len(sites), np.int64))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(prog="python -m bench.stabbing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-g", "--graph", default="pl1m")
    parser.add_argument("-n", "--lookups", default="100_000")
    parser.add_argument("-o", "--output", type=Path, default=STABBING)
    options = parser.parse_args(arguments)
    data = graphs.load(options.graph)
    figures = compared(data.rows, int(options.lookups))
    for name, value in figures.items():
        sys.stdout.write(f"{name:28} {value:14,.3f}\n" if isinstance(value, float) else f"{name:28} {value:>14}\n")
    line = {"workload": "triangle", "graph": data.name, "mode": "stabbing", "engine": "lftj-interval", "status": "ok"}
    results.append(options.output, {**line, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
