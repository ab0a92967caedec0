"""What streams cost: Nexmark beside DuckDB and Pathway, steps with much behind them, work per step, engine and circuit.

    python -m bench.streams [nexmark] [latency] [work] [engine] [-q q0,q20] [-n events] [--pathway PYTHON]

nexmark   events per CPU second, one thread, batches of 10,000 events as Arrow record batches; what a step gives is put
          in normal form. Answers are compared with DuckDB's over all events, at three prefixes. DuckDB computes each
          query anew over all events of the run, at the end of it, three times. Pathway runs in another Python that has
          it (`--pathway`), from tables in memory, and is charged for 200,000 events beyond the first 50,000, so that
          its start is not counted; its answer over 50,000 events is compared with DuckDB's, too. lftj and Pathway run
          in turns, twice, and the better run of each counts.
latency   steps of 1,000 events with 10 million behind, CPU and wall time: a join (q20) and a group-by (q17)
work      rows that a step of 100 changes looks up, finds or changes, at 10^5 to 10^7 rows of state, and the slope of
          its logarithm: the work is the change's, not the data's
engine    six published batches of changes (100 of a graph, 10 of the DAG), for rules in a database and for
          `streams.from_rules`

All go to `bench/results/streams.jsonl`.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench import graphs, results
from bench.nexmark import Events
from bench.nexmark_queries import QUERIES, Query, side_table
from bench.recursion import relation
from bench.rivals import pathway_streams
from bench.rivals.duckdb_streams import Recompute
from bench.steps import growth
from bench.updates import Batch, stream

STREAMS = results.RESULTS / "streams.jsonl"
BATCH = pathway_streams.BATCH
PARTS = ("nexmark", "latency", "work", "engine")
WARM, TURNS = 3, 2
PATHWAY_EVENTS = (50_000, 250_000)
LONG = 60.0  # CPU seconds after which Pathway has no second turn
BEHIND, STEP, STEPS = 10_000_000, 1_000, 500
SIZES = (100_000, 1_000_000, 10_000_000)
CHANGES = 100
SLOPE = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record; exit code 1 if answers differ or work grows with the data."""
    parser = argparse.ArgumentParser(prog="python -m bench.streams")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("-q", "--queries", default="")
    parser.add_argument("-n", "--events", type=int, default=1_000_000)
    parser.add_argument("--pathway", default="", metavar="PYTHON")
    options = parser.parse_args(arguments)
    parts, failed = options.parts or PARTS, 0
    if "nexmark" in parts:
        for name in options.queries.split(",") if options.queries else QUERIES:
            failed += _nexmark(QUERIES[name], options.events, options.pathway)
    if "latency" in parts:
        for name in ("q20", "q17"):
            _latency(QUERIES[name])
    if "work" in parts:
        failed += _work()
    if "engine" in parts:
        failed += _engine()
    return int(failed > 0)


def _record(workload: str, mode: str, engine: str, **figures: Any) -> None:
    line = {"workload": workload, "graph": "stream", "mode": mode, "engine": engine, "status": "ok", **figures}
    results.append(STREAMS, line)
    sys.stdout.write(f"{workload:8} {mode:12} {engine:10} {json.dumps(figures)}\n")
    sys.stdout.flush()


# -- Nexmark -----------------------------------------------------------------------------------------------------------


def batches_of(query: Query, events: Events, first: int, count: int) -> dict[str, Any]:
    """What a step of a query is given: the events `first` to `first + count`; at first the side table."""
    import pyarrow as pa

    made = events.batch(first, count)
    if query.name == "q12":
        arrived = pa.array(np.full(made["bid"].num_rows, first // count), pa.int64())
        made["bid"] = made["bid"].append_column("arrived", arrived)
    if first == 0:
        made["side"] = side_table()
    return made


def _nexmark(query: Query, count: int, pathway: str) -> int:
    """Record events per second of the circuit, of DuckDB and of Pathway; how many of their answers differ."""
    events, rival = Events(), Recompute()
    given = [batches_of(query, events, first, BATCH) for first in range(0, count, BATCH)]
    warm = query.make()
    for batches in given[:WARM]:
        _step(warm, query, batches)
    wrong, deltas = 0, []
    ours: list[list[float]] = []
    theirs: list[tuple[float, ...]] = []
    for turn in range(TURNS):
        circuit, spent = query.make(), []
        for batches in given:
            delta, seconds = _step(circuit, query, batches)
            spent.append(seconds)
            if turn == 0:
                deltas.append(delta.arrow())
        ours.append(spent)
        if turn == 0:
            wrong += _disagreements(query, given, deltas, rival)
        if pathway and (not theirs or sum(theirs[0]) < LONG):
            theirs.append(_pathway(query.name, pathway))
    recomputed = statistics.median(_cpu(lambda: rival.run(query.sql)) for _ in range(3))
    spent = min(ours, key=sum)
    figures = {
        "events": count,
        "per_second": count / sum(spent),
        "median_ms": statistics.median(spent) * 1000,
        "rows": sum(delta.num_rows for delta in deltas),
        "pages_mb": circuit._room.arena.used / 2**20,
        "kind": query.kind,
    }
    _record("nexmark", query.name, "lftj", **figures)
    _record("nexmark", query.name, "duckdb", events=count, per_second=BATCH / recomputed)
    if theirs:
        few, many = (min(seconds) for seconds in zip(*theirs, strict=True))
        events_more = PATHWAY_EVENTS[1] - PATHWAY_EVENTS[0]
        _record("nexmark", query.name, "pathway", events=PATHWAY_EVENTS[1], per_second=events_more / (many - few))
        wrong += _pathway_differs(query, given, pathway)
    return wrong


def _disagreements(query: Query, given: Sequence[dict[str, Any]], deltas: Sequence[Any], rival: Recompute) -> int:
    """At how many of three prefixes the circuit's answer is not DuckDB's, which gets all that was given."""
    last, wrong = len(given) - 1, 0
    for i, batches in enumerate(given):
        rival.add(batches)
        if i in {last // 10, last // 2, last}:
            found = rival.disagreement(query.sql, deltas[: i + 1])
            if found:
                sys.stdout.write(f"{query.name} differs after {i + 1} batches: {found}\n")
                wrong += 1
    return wrong


def _step(circuit: Any, query: Query, given: dict[str, Any]) -> tuple[Any, float]:
    """(what a step gives, in normal form; CPU seconds)."""
    given = {name: batch for name, batch in given.items() if name in query.reads}
    gc.disable()  # a collection belongs to all that the process holds, answers of before included
    began = time.process_time()
    delta = circuit.step(given)["out"]
    len(delta)
    spent = time.process_time() - began
    gc.enable()
    return delta, spent


def _cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _pathway(name: str, python: str) -> tuple[float, ...]:
    """Pathway's CPU seconds for `PATHWAY_EVENTS`, each in a process of its own."""
    return tuple(float(json.loads(_in_pathway(python, name, str(count)))["cpu"]) for count in PATHWAY_EVENTS)


def _pathway_differs(query: Query, given: Sequence[dict[str, Any]], python: str) -> int:
    """Whether Pathway's answer over the fewer events is not DuckDB's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    few, rival = PATHWAY_EVENTS[0], Recompute()
    for batches in given[: few // BATCH]:
        rival.add(batches)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/answer.parquet"
        _in_pathway(python, query.name, str(few), path)
        answer = pq.read_table(path)
    found = rival.disagreement(query.sql, [answer.append_column("_weight", pa.array(np.ones(len(answer), np.int64)))])
    if found:
        sys.stdout.write(f"{query.name}: Pathway differs: {found}\n")
    return int(bool(found))


def _in_pathway(python: str, *arguments: str) -> str:
    """What the last line of `bench.rivals.pathway_streams` says."""
    command = [python, "-m", "bench.rivals.pathway_streams", *arguments]
    done = subprocess.run(command, cwd=graphs.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Pathway fails on {arguments[0]}: {done.stderr[-300:]}")
    return (done.stdout.strip().splitlines() or [""])[-1]


# -- latency and work --------------------------------------------------------------------------------------------------


def _latency(query: Query) -> None:
    """Milliseconds of steps of 1,000 events with ten million behind."""
    events, circuit, large = Events(), query.make(), 100_000
    for first in range(0, BEHIND, large):
        _step(circuit, query, events.batch(first, large))
    spent, walls = [], []
    for i in range(STEPS):
        given = events.batch(BEHIND + i * STEP, STEP)
        began = time.perf_counter()
        spent.append(_step(circuit, query, given)[1])
        walls.append(time.perf_counter() - began)
    figures = {
        f"{kind}{name}_ms": float(np.percentile(times, percent)) * 1000
        for kind, times in (("", spent), ("wall_", walls))
        for name, percent in (("median", 50), ("p99", 99), ("worst", 100))
    }
    _record("latency", query.name, "lftj", behind=BEHIND, **figures, pages_mb=circuit._room.arena.used / 2**20)


def work(name: str, size: int) -> tuple[float, float]:
    """(rows touched, CPU milliseconds) per step of 100 changes, with `size` rows of state: of a join or a group-by."""
    from lftj import streams

    circuit, keys = streams.Circuit(name), max(1, size // 4)
    left = circuit.input("left", key=int, value=int)
    right = circuit.input("right", key=int, other=int)
    joined = left.join(right, on="key")
    grouped = left.group_by("key").aggregate(n=streams.count(), total=streams.sum("value"), most=streams.max("value"))
    circuit.output("out", joined if name == "join" else grouped)
    changes, rng = circuit.incremental(), np.random.default_rng(1)
    every = np.arange(size)
    # Four rows of either side under each key.
    changes.step({"left": np.stack([every % keys, every], axis=1), "right": np.stack([every % keys, every], axis=1)})
    touched, spent = [], []
    for i in range(20):
        rows = np.stack([rng.integers(0, keys, CHANGES), rng.integers(size, 2 * size, CHANGES)], axis=1)
        began = time.process_time()
        changes.step({"left": rows, "right": rows} if i % 2 else {"left": rows})
        spent.append(time.process_time() - began)
        touched.append(changes.rows_touched)
    return float(np.mean(touched)), statistics.median(spent) * 1000


def _work() -> int:
    """Whether rows touched per change grow with the data."""
    failed = 0
    for name in ("join", "group-by"):
        found = [work(name, size) for size in SIZES]
        touched = [rows / CHANGES for rows, _ in found]
        slope = growth(SIZES, [round(rows) for rows, _ in found])
        failed += slope > SLOPE
        _record("work", name, "lftj", sizes=SIZES, touched=touched, slope=slope, median_ms=[ms for _, ms in found])
    return failed


# -- the engine and its circuit ----------------------------------------------------------------------------------------

TRIANGLES = ".decl e(x:number, y:number)\nt(x, y, z) :- e(x, y), e(y, z), e(x, z)."
CLOSURE = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z)."
GROUPS = ".decl e(x:number, y:number)\nt(x, n) :- e(x, _), n = count : { e(x, _) }."
# (name, folder of the shared data, graph, changes in a batch, rules)
CASES = (
    ("triangles", "power_law", "pl1m", 100, TRIANGLES),
    ("group-by", "power_law", "pl1m", 100, GROUPS),
    ("closure", "closure", "dag5k", 10, CLOSURE),
)


def _engine() -> int:
    """Milliseconds per batch; whether the two disagree after the last."""
    failed = 0
    for name, folder, graph, size, program in CASES:
        rows = relation(folder, graph, 2)
        changes = [batch for batch in stream(graph, rows) if batch.size == size][:6]
        answers = []
        for engine, run in (("rules", _by_rules), ("circuit", _by_circuit)):
            run(program, rows[: len(rows) // 100], [Batch(rows[:5], rows[-5:])])  # kernels are compiled once
            load, spent, answer = run(program, rows, changes)
            answers.append(answer)
            _record(
                "engine",
                f"{name} {graph}",
                engine,
                changes=changes[0].size,
                median_ms=statistics.median(spent) * 1000,
                load_seconds=load,
                rows=len(answer),
            )
        if not np.array_equal(*answers):
            sys.stdout.write(f"{name}: rules and circuit disagree\n")
            failed += 1
    return failed


def _by_rules(program: str, rows: graphs.Rows, changes: Sequence[Batch]) -> tuple[float, list[float], Any]:
    import lftj

    db = lftj.Database(program)
    load = _cpu(lambda: (db.load("e", rows), len(db["t"])))
    spent = []
    for batch in changes:
        began = time.process_time()
        with db.transaction() as tx:
            tx.erase("e", batch.erase)
            tx.insert("e", batch.insert)
        spent.append(time.process_time() - began)
    return load, spent, db["t"].numpy()


def _by_circuit(program: str, rows: graphs.Rows, changes: Sequence[Batch]) -> tuple[float, list[float], Any]:
    from lftj import streams

    circuit = streams.from_rules(program)
    columns = {"x": int, "y": int}
    kept: list[Any] = []
    load = _cpu(lambda: kept.append(circuit.step({"e": rows})["t"]))
    spent = []
    for batch in changes:
        began = time.process_time()
        both = np.concatenate([batch.erase, batch.insert])
        weights = np.repeat([-1, 1], [len(batch.erase), len(batch.insert)])
        kept.append(circuit.step({"e": streams.zset(both, weights, columns=columns)})["t"])
        len(kept[-1])
        spent.append(time.process_time() - began)
    total = kept[0]
    for delta in kept[1:]:
        total = total + delta
    return load, spent, total.rows.numpy()


if __name__ == "__main__":
    sys.exit(main())
