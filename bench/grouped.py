"""Counts and sums per group, over a join, kept up to date: CPU time of one transaction.

    python -m bench.grouped [--quick]

On wiki-Vote: triangles per vertex, a sum over them, and the degree histogram (a count of counts); batches of 1, 100
and 10,000 changes, half erases, half inserts. Beside lftj's own choice: lftj evaluating anew, and DuckDB evaluating the
same SQL anew. They take turns in one process, and have the same rows after every transaction, or AssertionError is
raised. The first transaction records ("record_ms") and is in no median. Everything is included that the public API
does. To `bench/results/grouped.jsonl`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from bench import graphs, maintained, results, updates
from bench.cases import Bench, Line, times
from bench.graphs import Rows
from bench.rivals.recompute import Recomputed
from bench.updates import Batch

GROUPED = results.RESULTS / "grouped.jsonl"
GRAPH = "wiki-Vote"
ENGINES = ("lftj", "lftj-recompute", "duckdb")
SIZES = ((1, 51), (100, 13), (10_000, 5))
QUICK = ((1, 5), (7, 3), (30, 2))


class Workload(NamedTuple):
    """A program over e(x, y), and what its heads are in SQL over e(c0, c1)."""

    name: str
    program: str
    sql: dict[str, str]


_TRIANGLES = "FROM e a, e b, e c WHERE a.c1 = b.c0 AND a.c0 = c.c0 AND b.c1 = c.c1 GROUP BY a.c0"
WORKLOADS = {
    w.name: w
    for w in (
        Workload(
            "triangles per vertex",
            """
            .decl e(x:number, y:number)
            .decl deg3(x:number) -> n:number
            deg3[x] = count : { e(x, y), e(y, z), e(x, z) }.
            """,
            {"deg3": f"SELECT a.c0 AS x, count(*) AS n {_TRIANGLES}"},
        ),
        Workload(
            "sum over triangles",
            """
            .decl e(x:number, y:number)
            .decl sum3(x:number) -> n:number
            sum3[x] = sum y + z : { e(x, y), e(y, z), e(x, z) }.
            """,
            {"sum3": f"SELECT a.c0 AS x, sum(a.c1 + b.c1)::BIGINT AS n {_TRIANGLES}"},
        ),
        Workload(
            "degree histogram",
            """
            .decl e(x:number, y:number)
            .decl deg(x:number) -> n:number
            .decl hist(n:number) -> c:number
            deg[x] = count : { e(x, _) }.
            hist[n] = count : { deg(_, n) }.
            """,
            {
                "deg": "SELECT c0 AS x, count(*) AS n FROM e GROUP BY c0",
                "hist": "SELECT n, count(*) AS c FROM deg GROUP BY n",
            },
        ),
    )
}


class Ours:
    """A database with a workload's program, maintained as planned, or evaluated anew."""

    def __init__(self, workload: Workload, engine: str) -> None:
        import lftj

        self.db = lftj.Database()
        anew = dict.fromkeys(workload.sql, "recompute") if engine == "lftj-recompute" else None
        self.db.rules(workload.program, maintain=anew)
        self.last: Any = None

    def load(self, name: str, rows: Rows) -> None:
        """Take the facts in."""
        self.db.load(name, rows)

    def evaluate(self) -> None:
        """Bring all heads up to date."""
        self.db.evaluate()

    def apply(self, name: str, batch: Batch) -> None:
        """One transaction."""
        self.last = maintained.apply(self.db, name, batch)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a relation, in order."""
        return sorted(self.db[name])


def session(workload: Workload, engine: str) -> Ours | Recomputed:
    """A fresh session of an engine."""
    return Recomputed(workload.sql) if engine == "duckdb" else Ours(workload, engine)


def followed(workload: Workload, rows: Rows, batches: Iterable[Batch]) -> Line:
    """The figures of all engines, which take turns with every batch; AssertionError if they differ in a row."""
    subjects = {engine: session(workload, engine) for engine in ENGINES}
    figures: dict[str, Line] = {}
    for engine, subject in subjects.items():
        subject.load("e", rows)
        figures[engine] = {"evaluate_ms": _seconds(subject.evaluate) * 1e3, "sizes": []}
    for size, several in _by_size(batches):
        took: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        strategies: Counter[str] = Counter()
        steps: Counter[str] = Counter()
        for batch in several:
            found = {}
            for engine, subject in subjects.items():
                seconds = _seconds(partial(subject.apply, "e", batch))
                found[engine] = [subject.rows(name) for name in workload.sql]
                if found[engine] != found[ENGINES[0]]:
                    raise AssertionError(f"{engine} and {ENGINES[0]} differ after a batch of {size:,}")
                if "record_ms" not in figures[engine]:
                    figures[engine]["record_ms"] = seconds * 1e3
                    continue
                took[engine].append(seconds)
                if isinstance(subject, Ours):
                    stats = subject.last.stats
                    steps[engine] += stats["total"]["steps"]
                    if engine == "lftj":
                        strategies.update(f"{name}: {head['strategy']}" for name, head in stats["heads"].items())
        for engine, seconds_of in took.items():
            figures[engine]["sizes"].append({"size": size, **times(seconds_of), "steps": steps[engine]})
        figures["lftj"]["sizes"][-1]["strategies"] = dict(strategies)
    groups = {name: len(subjects["lftj"].rows(name)) for name in workload.sql}
    return {"groups": groups, "engines": figures}


def _seconds(call: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _by_size(batches: Iterable[Batch]) -> Iterator[tuple[int, Iterator[Batch]]]:
    yield from groupby(batches, key=lambda b: b.size)


def measured(request: Line) -> Line:
    """One workload: `request` has "workload", "graph" and "quick"."""
    workload = WORKLOADS[request["workload"]]
    if not request["quick"]:
        small = graphs.power_law(200, 2_000, 0.4, 0.4, 1)
        followed(workload, small, updates.generated(small, [(1, 3), (20, 3), (1_500, 2)], seed=2))
    data = graphs.load(request["graph"])
    batches = updates.generated(data.rows, QUICK if request["quick"] else SIZES, seed=70)
    return {"status": "ok", "graph": data.name, "rows": len(data.rows), **followed(workload, data.rows, batches)}


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for workload in WORKLOADS:
        graph = "tiny" if quick else GRAPH
        yield {"workload": workload, "graph": graph, "mode": "grouped", "engine": "lftj", "quick": quick}


def note(line: Line) -> str:
    """The figures in a line per engine."""
    told = [""]
    for engine, figures in line["engines"].items():
        shown = "  ".join(f"{m['size']:,}: {m['median_ms']:.3f}/{m['max_ms']:.3f}" for m in figures["sizes"])
        told.append(f"    {engine:15} record {figures['record_ms']:.0f} ms  {shown}")
    return "\n".join(told)


BENCH = Bench("bench.grouped", GROUPED, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
