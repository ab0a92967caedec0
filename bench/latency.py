"""CPU time of one transaction: triangles kept up to date while edges come and go.

    python -m bench.latency [-g pl1m,CollegeMsg] [-e lftj,lftj-node,lftj-recompute,duckdb] [-r 5] [--quick]

1. `pl1m` and `pl1m_skew` with their update streams (bench.updates): batches of 1 to 10,000 rows, and generated ones up
   to half the data. Each engine in a process of its own: the planner's choice, both granularities, delta joins and
   re-evaluation forced, and delta queries written by hand for DuckDB. Everything is included that the public API does;
   reading the triangles' delta is timed apart, and its digest is compared between engines. At the end of a process
   stands what counting all triangles by hand takes there (rivals/csr.py): this machine changes its speed.
2. `CollegeMsg` and `soc-bitcoin-otc` edge by edge: all edges that come, and a sliding window of time.

The first transaction records the trace: "record" in the results, and in no median. An engine that has spent its time
leaves out what remains, largest batches last; re-evaluation measures the first batches of every size and applies the
others as one. Results go to `bench/results/latency.jsonl`. Exit code 1 if engines disagree or one failed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench import graphs, maintained, results, updates
from bench.graphs import Rows
from bench.maintained import WAYS, answer_of, digest, index_figures, percentile
from bench.measure import status_mb
from bench.rivals import csr
from bench.updates import Batch

LATENCY = results.RESULTS / "latency.jsonl"
STREAMED = ("pl1m", "pl1m_skew")
ENGINES = (*WAYS, "duckdb")
#: Measured batches of a size for an engine that evaluates anew, and CPU seconds an engine has for one graph.
FEW, BUDGET = 5, 60.0
QUICK = ((1, 20), (10, 10), (100, 5), (1_000, 3), (10_000, 2))


class Session(Protocol):
    """Edges and their triangles."""

    def load(self, rows: Rows) -> None:
        """Take the edges in."""

    def evaluate(self) -> int:
        """Compute the triangles; how many there are."""

    def apply(self, batch: Batch) -> None:
        """One transaction."""

    def change(self) -> tuple[Rows, Rows]:
        """The triangles that the last transaction took away and brought."""


class Maintained:
    """A database whose triangles are maintained in the way called `name`."""

    def __init__(self, name: str) -> None:
        maintained.warm()
        self.db = maintained.database(maintained.TRIANGLE, "tri", WAYS[name])
        self.last: Any = None

    def load(self, rows: Rows) -> None:
        """Take the edges in."""
        self.db.load("e", rows)

    def evaluate(self) -> int:
        """Compute the triangles; how many there are."""
        return len(self.db["tri"])

    def apply(self, batch: Batch) -> None:
        """One transaction."""
        self.last = maintained.apply(self.db, "e", batch)

    def change(self) -> tuple[Rows, Rows]:
        """The delta's rows."""
        delta = self.last.delta["tri"]
        return delta.erased.numpy(), delta.inserted.numpy()


def session(name: str) -> Session:
    """A fresh session of the engine called `name`, its kernels compiled."""
    if name == "duckdb":
        from bench.rivals.deltas import TriangleDeltas

        return TriangleDeltas()
    return Maintained(name)


def merged(rows: Rows, batches: Sequence[Batch]) -> Batch:
    """One batch that changes `rows` as all of `batches` do."""
    after = updates.changed(rows, batches)
    base = int(max(rows.max(), after.max())) + 1
    before_codes, after_codes = (part[:, 0] * base + part[:, 1] for part in (rows, after))
    return Batch(rows[~np.isin(before_codes, after_codes)], after[~np.isin(after_codes, before_codes)])


def cpu_of(call: Any) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


class Measured:
    """What the transactions with batches of one size took."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.seconds: list[float] = []
        self.reads: list[float] = []
        self.changes: list[tuple[Rows, Rows]] = []
        self.steps, self.records = 0, 0
        self.strategies: Counter[str] = Counter()

    def take(self, subject: Session, batch: Batch) -> None:
        """Make a transaction of `batch`, and read what it changed.

        It is compared with what others found when all are made: reading it all between two transactions would put
        everything that they work with out of the processor's caches.
        """
        self.seconds.append(cpu_of(lambda: subject.apply(batch)))
        start = time.process_time()
        self.changes.append(subject.change())
        self.reads.append(time.process_time() - start)
        if isinstance(subject, Maintained):
            stats = subject.last.stats
            self.steps += stats["total"]["steps"]
            self.records += stats["total"]["removed"] + stats["total"]["added"]
            self.strategies.update(head["strategy"] for head in stats["heads"].values())

    def figures(self) -> dict[str, Any]:
        """For the results. Milliseconds."""
        return {
            "size": self.size,
            "transactions": len(self.seconds),
            "median_ms": statistics.median(self.seconds) * 1e3,
            "p99_ms": percentile(self.seconds, 0.99) * 1e3,
            "max_ms": max(self.seconds) * 1e3,
            "read_ms": statistics.median(self.reads) * 1e3,
            "steps": self.steps,
            "records_changed": self.records,
            "strategies": dict(self.strategies),
            "digests": [f"{len(g)}-{len(c)}-{digest(g):x}-{digest(c):x}" for g, c in self.changes],
        }


def streamed(request: dict[str, Any]) -> dict[str, Any]:
    """One engine on a graph with its update stream: `request` has "graph", "engine" and "quick"."""
    data = graphs.load(request["graph"])
    quick, budget = request.get("quick", False), request.get("budget", BUDGET)
    few = FEW if request["engine"] == "lftj-recompute" else None
    sizes, large = (QUICK, ()) if quick else (updates.PUBLISHED, request.get("large", updates.LARGE))
    kept = dict(sizes)
    published = [
        b for size, group in _by_size(updates.stream(request["graph"], data.rows)) for b in group[: kept[size]]
    ]
    subject = session(request["engine"])
    resident = {"empty": status_mb("VmRSS")}
    subject.load(data.rows)
    resident["loaded"] = status_mb("VmRSS")
    started = time.process_time()
    count = subject.evaluate()
    evaluated = time.process_time() - started
    resident["evaluated"] = status_mb("VmRSS")
    first, rest = published[0], published[1:]
    recording = cpu_of(lambda: subject.apply(first))
    resident["recorded"] = status_mb("VmRSS")
    figures = index_figures(subject.db, "tri") if isinstance(subject, Maintained) else {}
    rows = updates.changed(data.rows, [first])
    measured: list[dict[str, Any]] = []
    began, left_out = time.process_time(), []
    for size, batches in chain(_by_size(rest), _large(rows, rest, large)):
        if time.process_time() - began > budget:
            left_out.append(size)
            continue
        taken = Measured(size)
        for i, batch in enumerate(batches):
            if few is not None and i == few:
                subject.apply(merged(updates.changed(rows, batches[:few]), batches[few:]))
                break
            taken.take(subject, batch)
            if size >= 1_000 and time.process_time() - began > budget:
                break
        measured.append(taken.figures())
        rows = updates.changed(rows, batches)
    resident["end"] = status_mb("VmRSS")
    return {
        "status": "ok",
        "data": {"dataset": data.name, "source": data.source, "rows": len(data.rows)},
        "count": count,
        "evaluate_ms": evaluated * 1e3,
        "record_ms": recording * 1e3,
        "sizes": measured,
        "left_out": left_out,
        **figures,
        "resident_mb": resident,
        "kernel_ms": kernel_ms(data.rows),
    }


def kernel_ms(rows: Rows) -> float:
    """CPU milliseconds that counting all triangles by hand takes now: how fast the machine is at this moment."""
    start, targets = csr.compressed(np.unique(rows, axis=0))
    return statistics.median(cpu_of(lambda: csr.count_by_intersection(start, targets)) for _ in range(6)) * 1e3


def _by_size(batches: Iterable[Batch]) -> Iterator[tuple[int, list[Batch]]]:
    for size, group in groupby(batches, key=lambda b: b.size):
        yield size, list(group)


def _large(rows: Rows, before: Sequence[Batch], sizes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[Batch]]]:
    """Generated batches on top of the stream, no larger than half the data."""
    wanted = [(size, n) for size, n in sizes if size <= len(rows) // 2]
    if wanted:
        yield from _by_size(updates.generated(updates.changed(rows, before), wanted, seed=21))


def replayed(request: dict[str, Any]) -> dict[str, Any]:
    """Edge by edge: `request` has "graph", "engine", "mode" ("arrivals" or "window"), and "quick"."""
    name = request["graph"]
    events = updates.temporal(name)
    window = updates.TEMPORAL[name] if request["mode"] == "window" else None
    batches = list(updates.edges_in_time(events, window))
    if request.get("quick", False):
        batches = list(islice(batches, 500))
    subject = Maintained(request["engine"])
    if few := request["engine"] == "lftj-recompute":
        head, batches = batches[:-200], batches[-200:]
        subject.load(updates.changed(np.empty((0, 2), np.int64), head) if head else np.empty((0, 2), np.int64))
    subject.evaluate()
    recording = cpu_of(lambda: subject.apply(batches[0]))
    took, steps = [], 0
    for batch in batches[1:]:
        took.append(cpu_of(lambda batch=batch: subject.apply(batch)))
        steps += subject.last.stats["total"]["steps"]
    triangles = subject.evaluate()
    figures = index_figures(subject.db, "tri")
    tenth = max(1, len(took) // 10)
    return {
        "status": "ok",
        "data": {"dataset": name, "source": events.source, "rows": len(events.edges)},
        "count": triangles,
        "edges_left": len(subject.db["e"]),
        "record_ms": recording * 1e3,
        "transactions": len(took),
        "rows_changed": sum(b.size for b in batches[1:]),
        "median_ms": statistics.median(took) * 1e3,
        "p99_ms": percentile(took, 0.99) * 1e3,
        "last_tenth_median_ms": statistics.median(took[-tenth:]) * 1e3,
        "steps": steps,
        "sampled": few,
        **figures,
        "resident_mb": {"end": status_mb("VmRSS")},
    }


def disagreements(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Where engines on one graph found other triangles, or changes of them, than the first engine did."""
    found: list[str] = []
    expected: dict[tuple[str, str, int, int], tuple[str, str]] = {}
    for line in lines:
        if line["status"] != "ok":
            continue
        seen = [(0, 0, str(line["count"]))]
        seen += [(m["size"], i, d) for m in line.get("sizes", ()) for i, d in enumerate(m["digests"])]
        for size, i, value in seen:
            this = (line["graph"], line["mode"], size, i)
            engine, other = expected.setdefault(this, (line["engine"], value))
            if other != value:
                found.append(f"{this}: {engine} {other}, {line['engine']} {value}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        request = json.loads(arguments[1])
        answer = replayed(request) if request["graph"] in updates.TEMPORAL else streamed(request)
        sys.stdout.write(json.dumps(answer) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=(__doc__ or "").splitlines()[0])
    everything = (*STREAMED, *updates.TEMPORAL)
    parser.add_argument("-g", "--graphs", default=",".join(everything), help=f"of {', '.join(everything)}")
    parser.add_argument("-e", "--engines", default=",".join(ENGINES), help=f"of {', '.join(ENGINES)}")
    parser.add_argument("-o", "--output", type=Path, default=LATENCY)
    parser.add_argument(
        "-r", "--repeats", type=int, default=1, help="processes per engine; of each figure the middle one"
    )
    parser.add_argument("-t", "--timeout", type=float, default=600.0, help="seconds for one engine on one graph")
    parser.add_argument("--quick", action="store_true", help="a few batches of each size; not for the results")
    options = parser.parse_args(arguments)
    lines = []
    for request in requests(options.graphs.split(","), options.engines.split(","), options.quick):
        reply = middle([answer_of("bench.latency", request, options.timeout) for _ in range(options.repeats)])
        title = request["graph"] if request["graph"] in updates.TEMPORAL else graphs.title(request["graph"])
        line = {"workload": "triangle", **request, "graph": title, **reply}
        lines.append(line)
        sys.stderr.write(note(line) + "\n")
        results.append(options.output, _compact(line))
    wrong = disagreements(lines)
    sys.stderr.write("".join(f"ENGINES DISAGREE: {each}\n" for each in wrong[:10]))
    return int(bool(wrong) or any(line["status"] == "error" for line in lines))


def middle(replies: list[dict[str, Any]]) -> dict[str, Any]:
    """One reply: of every size the figures of the process whose median is the middle one.

    All transactions of one row are made within a few hundredths of a second, which a busy machine easily spoils.
    """
    if len(replies) == 1 or any("sizes" not in reply for reply in replies):
        return replies[0]
    runs = zip(*(reply["sizes"] for reply in replies), strict=False)
    sizes = [sorted(figures, key=lambda f: f["median_ms"])[len(figures) // 2] for figures in runs]
    kernel = statistics.median(reply["kernel_ms"] for reply in replies)
    return {**replies[0], "sizes": sizes, "kernel_ms": kernel, "repeats": len(replies)}


def requests(chosen: Sequence[str], engines: Sequence[str], quick: bool) -> Iterator[dict[str, Any]]:
    """What is to be measured."""
    for graph in chosen:
        for mode in ("arrivals", "window") if graph in updates.TEMPORAL else ("stream",):
            for engine in engines:
                if engine != "duckdb" or mode == "stream":
                    yield {"graph": graph, "engine": engine, "mode": mode, "quick": quick}


def _compact(line: dict[str, Any]) -> dict[str, Any]:
    """`line` with one digest per size in the place of one per transaction."""
    if "sizes" not in line:
        return line
    sizes = [
        {**{k: v for k, v in m.items() if k != "digests"}, "digest": str(hash_of(m["digests"]))} for m in line["sizes"]
    ]
    return {**line, "sizes": sizes}


def hash_of(texts: Sequence[str]) -> str:
    """A short digest of texts."""
    import hashlib

    return hashlib.sha256(" ".join(texts).encode()).hexdigest()[:16]


def note(line: dict[str, Any]) -> str:
    """One line of progress."""
    head = f"{line['graph']:16} {line['mode']:9} {line['engine']:15}"
    if line["status"] != "ok":
        return f"{head} {line['status']}: {line.get('reason', '')}"
    if "sizes" not in line:
        return f"{head} median {line['median_ms']:.3f} ms  p99 {line['p99_ms']:.3f}  {line['transactions']:,} edges"
    times = "  ".join(f"{m['size']:,}: {m['median_ms']:.3f}/{m['p99_ms']:.3f}" for m in line["sizes"])
    return f"{head} record {line['record_ms']:.0f} ms  {times}  {line['resident_mb']['end']:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
