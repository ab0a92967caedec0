"""Recursion from scratch and under updates: closures, same generation, GALEN, reachability; counts checked.

    python -m bench.recursion [-w closure:OL,sg:OL,galen,stream:dag5k,facts:galen,best:pl1m] [-n batches of a size]

A workload from scratch is a load (not timed) and an evaluation: CPU seconds, and those among them that the system took,
mostly to hand out memory, which a virtual machine may have to get from its host first; new rows per second, the peak of
resident memory above what was there after the load, bytes of pages per derived row. A stream is a list of batches on an
evaluated database: median and p99 CPU milliseconds per size of batch, and how many rows were examined per row that
changed. `facts:galen` erases random facts one by one, and inserts them again. Counts are those of
`../shared/data/README.md`, whose files are needed; the end of a stream is compared with an evaluation, that of
`facts:galen` with the beginning. Every workload has a process of its own; results go to
`bench/results/recursion.jsonl`; exit code 1 if a count or an end is wrong, or a workload fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import maintained, results
from bench.graphs import SHARED, Rows
from bench.maintained import percentile
from bench.measure import status_mb, timed
from bench.updates import Batch, read_columns

RECURSION = results.RESULTS / "recursion.jsonl"
CLOSURE = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z)."
NONLINEAR = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z)."
GENERATION = ".decl e(x:number, y:number)\ns(x, y) :- e(a, x), e(a, y), x != y.\ns(x, y) :- e(a, x), s(a, b), e(b, y)."
BEST = """
.decl e(x:number, y:number)
.decl b(x:number)
.decl r(x:number) -> d:number
r[y] = min d : { b(y), d = 0 ; r[x] = c, e(x, y), d = c + 1 }.
"""
REACH = ".decl e(x:number, y:number)\n.decl b(x:number)\nr(x) :- b(x).\nr(y) :- r(x), e(x, y)."
GALEN = """
.decl p(a:number, b:number)
.decl q(a:number, b:number, c:number)
.decl r(a:number, b:number, c:number)
.decl c(a:number, b:number, c:number)
.decl u(a:number, b:number, c:number)
.decl s(a:number, b:number)
p(x, z)    :- p(x, y), p(y, z).
q(x, r, z) :- p(x, y), q(y, r, z).
p(x, z)    :- p(y, w), u(w, r, z), q(x, r, y).
p(x, z)    :- c(y, w, z), p(x, w), p(x, y).
q(x, o, z) :- q(x, r, z), s(r, o).
q(x, e, o) :- q(x, y, z), r(y, u, e), q(z, u, o).
"""
COLUMNS = {"p": 2, "q": 3, "r": 3, "c": 3, "u": 3, "s": 2}
#: Derived relations and their rows, by workload.
EXPECTED: dict[str, dict[str, int]] = {
    "closure:OL": {"t": 146_120},
    "closure:TG": {"t": 481_121},
    "closure:cal": {"t": 501_755},
    "closure:wing": {"t": 329_438},
    "closure:dag5k": {"t": 1_342_503},
    "closure:wiki-Vote": {"t": 11_947_132},
    "closure:SF": {"t": 80_498_014},
    "sg:OL": {"s": 285_431},
    "sg:TG": {"s": 608_090},
    "sg:cal": {"s": 23_519},
    "sg:wing": {"s": 647_999},
    "galen": {"p": 7_560_179, "q": 16_595_494},
}
USUAL = "closure:OL,closure:TG,closure:cal,closure:wing,sg:OL,sg:TG,sg:cal,sg:wing,closure:dag5k,closure:wiki-Vote"
USUAL += ",galen,stream:dag5k,nonlinear:dag5k,stream:pl1m,best:pl1m,facts:galen"
#: Kinds of workloads that follow changes; "nonlinear": of the closure written with two recursive atoms, "best": of
#: shortest paths, "facts": of random facts.
STREAMS = ("stream", "nonlinear", "best", "facts")
#: Facts that go and come in "facts".
FACTS = 1_000


def relation(folder: str, stem: str, columns: int) -> Rows:
    """The rows of a file of the shared data, whatever its ending."""
    (path,) = [p for p in (SHARED / folder).glob(f"{stem}.*") if ".updates." not in p.name]
    return read_columns(path, columns)


def program(kind: str, graph: str) -> str:
    """The rules of a workload."""
    if graph == "pl1m":
        return BEST if kind == "best" else REACH
    if graph == "galen":
        return GALEN
    return {"galen": GALEN, "sg": GENERATION, "nonlinear": NONLINEAR}.get(kind, CLOSURE)


def head_of(graph: str) -> str:
    """What is derived from a graph."""
    return "r" if graph == "pl1m" else "t"


def loaded(workload: str, make: Callable[[str], Any] | None = None) -> Any:
    """A database with a workload's program and facts, nothing evaluated; `make`: of the program, else a plain one."""
    import lftj

    kind, _, graph = workload.partition(":")
    db = (make or lftj.Database)(program(kind, graph))
    if "galen" in (kind, graph):
        for name, columns in COLUMNS.items():
            db.load(name, relation("galen", name, columns))
        return db
    folder = "power_law" if graph == "pl1m" else "graphs" if graph == "wiki-Vote" else "closure"
    db.load("e", relation(folder, graph, 2))
    if graph == "pl1m":
        db.load("b", np.zeros((1, 1), np.int64))
    return db


def warm(workload: str) -> None:
    """Compile what the workload needs, on a few rows: as they are, and as if their rounds were large ones."""
    import lftj
    from lftj.recursion import variant_plans

    kind, _, graph = workload.partition(":")
    rows = np.stack([np.arange(200) % 20, np.arange(200) // 20, np.arange(200) % 7], axis=1)
    lftj.Database().prepare()
    large = variant_plans.LARGE
    for least in (1, large):
        variant_plans.LARGE = least
        db = lftj.Database(program(kind, graph))
        for name in COLUMNS if "galen" in (kind, graph) else {"e", "b"} & set(db):
            db.load(name, np.unique(rows[:, : len(db[name].columns)], axis=0))
        db.evaluate()
        given = "e" if "e" in db else "p"
        maintained.apply(db, given, Batch(rows[:3, :2], rows[:0, :2]))
        maintained.apply(db, given, Batch(rows[:0, :2], rows[:3, :2]))


def from_scratch(workload: str) -> dict[str, Any]:
    """Figures of one evaluation."""
    db = loaded(workload)
    pages, resident = db.memory()["total"]["pages"], status_mb("VmRSS")
    system = os.times().system
    _, took = timed(db.evaluate)
    system = os.times().system - system
    counts = {head: len(db[head]) for head in EXPECTED[workload]}
    rows = sum(counts.values())
    return {
        "status": "ok" if counts == EXPECTED[workload] else "wrong",
        "counts": counts,
        "cpu_s": took.cpu,
        "wall_s": took.wall,
        "system_s": system,
        "rows_per_s": rows / took.cpu,
        "pages_bytes_per_row": (db.memory()["total"]["pages"] - pages) / rows,
        "peak_bytes_per_row": (status_mb("VmHWM") - resident) * 2**20 / rows,
    }


def batches(graph: str) -> Iterator[Batch]:
    """The published stream of a graph."""
    folder = "power_law" if graph == "pl1m" else "closure"
    table = read_columns(SHARED / folder / f"{graph}.updates.tsv.zst", 5)
    for batch in np.split(table, np.flatnonzero(np.diff(table[:, 0], prepend=-1))[1:]):
        yield Batch(*(np.ascontiguousarray(batch[batch[:, 2] == op, 3:]) for op in (-1, 1)))


class Followed:
    """What the transactions with batches of one size took, and how many rows they examined and changed."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.examined, self.changed = 0, 0

    def take(self, db: Any, relation: str, batch: Batch) -> None:
        """Make a transaction."""
        start = time.process_time()
        tx = maintained.apply(db, relation, batch)
        self.seconds.append(time.process_time() - start)
        for head, how in tx.stats["heads"].items():
            delta = tx.delta[head]
            self.changed += len(delta.erased) + len(delta.inserted)
            self.examined += how.get("examined", 0)


def figures(followed: dict[str, Followed]) -> dict[str, Any]:
    """For the results: milliseconds, and rows examined per changed row, by what was done."""
    return {
        "median_ms": {name: statistics.median(f.seconds) * 1e3 for name, f in followed.items()},
        "p99_ms": {name: percentile(f.seconds, 0.99) * 1e3 for name, f in followed.items()},
        "examined_per_changed": {name: f.examined / max(1, f.changed) for name, f in followed.items()},
    }


def streamed(workload: str, most: int) -> dict[str, Any]:
    """Figures of at most `most` batches of every size, and whether the end state is that of an evaluation."""
    graph = workload.partition(":")[2]
    db = loaded(workload)
    _, scratch = timed(db.evaluate)
    sizes: dict[str, Followed] = {}
    for batch in batches(graph):
        took = sizes.setdefault(str(batch.size), Followed())
        if len(took.seconds) < most:
            took.take(db, "e", batch)
    fresh = loaded(workload)
    kept = db["e"].numpy()
    with fresh.transaction() as tx:
        tx.erase("e", fresh["e"].numpy())
        tx.insert("e", kept)
    head = head_of(graph)
    right = maintained.digest(db[head].numpy()) == maintained.digest(fresh[head].numpy())
    return {"status": "ok" if right else "wrong", "scratch_ms": scratch.cpu * 1e3, **figures(sizes)}


def one_by_one(workload: str, facts: int) -> dict[str, Any]:
    """Figures of random facts that are erased one by one and inserted again, and whether all is as it was then."""
    db = loaded(workload)
    _, scratch = timed(db.evaluate)
    before = {head: maintained.digest(db[head].numpy()) for head in EXPECTED["galen"]}
    given = [(name, row) for name, columns in COLUMNS.items() for row in relation("galen", name, columns)]
    rng = np.random.default_rng(1)
    chosen = [given[i] for i in rng.choice(len(given), facts, replace=False)]
    took = {"erase": Followed(), "insert": Followed()}
    for name, row in chosen:
        took["erase"].take(db, name, Batch(row[None, :], row[None, :][:0]))
    for name, row in chosen:
        took["insert"].take(db, name, Batch(row[None, :][:0], row[None, :]))
    right = before == {head: maintained.digest(db[head].numpy()) for head in before}
    return {"status": "ok" if right else "wrong", "scratch_ms": scratch.cpu * 1e3, **figures(took)}


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """One workload, in this process."""
    workload = request["workload"]
    warm(workload)
    kind = workload.partition(":")[0]
    if kind == "facts":
        return one_by_one(workload, request.get("facts", FACTS))
    return streamed(workload, request["batches"]) if kind in STREAMS else from_scratch(workload)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        sys.stdout.write(json.dumps(measured(json.loads(arguments[1]))) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.recursion", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-w", "--workloads", default=USUAL, help=f"of {USUAL}, closure:SF")
    parser.add_argument("-n", "--batches", type=int, default=200, help="of every size, at most")
    parser.add_argument("-t", "--timeout", type=float, default=900.0, help="seconds for a workload")
    parser.add_argument("-o", "--output", type=Path, default=RECURSION)
    options = parser.parse_args(arguments)
    failed = 0
    for workload in options.workloads.split(","):
        request = {"workload": workload, "batches": options.batches}
        reply = maintained.answer_of("bench.recursion", request, options.timeout)
        kind, _, graph = workload.partition(":")
        failed += reply["status"] != "ok"
        sys.stderr.write(f"{workload:20} {note(reply)}\n")
        results.append(
            options.output, {"workload": kind, "graph": graph, "mode": "recursion", "engine": "lftj", **reply}
        )
    return int(failed > 0)


def note(reply: dict[str, Any]) -> str:
    """The figures in words."""
    if "median_ms" in reply:
        shown = "  ".join(f"{what}: {ms:.2f}/{reply['p99_ms'][what]:.2f} ms" for what, ms in reply["median_ms"].items())
        return f"{reply['status']}  {shown}  (from scratch {reply['scratch_ms']:.0f} ms)"
    if "cpu_s" not in reply:
        return f"{reply['status']}: {reply.get('reason', '')}"
    return (
        f"{reply['status']}  {reply['cpu_s']:8.2f} s, {reply['system_s']:.2f} of them system  "
        f"{reply['rows_per_s'] / 1e6:6.2f} M rows/s  "
        f"{reply['pages_bytes_per_row']:6.1f} bytes of pages, {reply['peak_bytes_per_row']:6.1f} at the peak, per row"
    )


if __name__ == "__main__":
    sys.exit(main())
