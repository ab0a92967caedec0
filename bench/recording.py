"""What recording a trace costs: a rule evaluated with its records written and indexed, against evaluated only.

    python -m bench.recording [-g pl1m,wiki-Vote] [-r 5]

Both in one process, taking turns: the rule's rows stored (what `db.query(...).relation()` does), and the same with the
trace recorded and its indexes built, for INTERVAL and NODE at every depth that has a choice and for the planner's
choice (which may be to follow the rule by delta: then what is built are key orders). The first round of each touches
fresh memory and is reported apart. CPU seconds, medians. Each graph and way in a process of its own, so that resident
memory can be told apart. Results go to `bench/results/recording.jsonl`.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import graphs, maintained, results
from bench.maintained import WAYS, answer_of
from bench.measure import status_mb, timed

RECORDING = results.RESULTS / "recording.jsonl"
GRAPHS = ("ego-Facebook", "wiki-Vote", "email-Enron", "pl1m", "pl1m_skew")
ENGINES = ("lftj", "lftj-node", "lftj-interval")


def evaluated(db: Any, head: str) -> Any:
    """The content of `head`, from one evaluation of its one rule."""
    from lftj.join.run import Limits
    from lftj.maintain.recompute import evaluate

    heads = db._state.strata.heads_of(head)
    return evaluate(db._evaluator, heads, Limits()).relations[head].content


def recorded(db: Any, head: str) -> tuple[Any, Any]:
    """(the content of `head`, the trace of its one rule; None if the rule is followed by delta).

    Of a rule that is followed by delta the key orders are built that only this needs.
    """
    from lftj.join.run import Limits
    from lftj.maintain.delta import deltas_of
    from lftj.maintain.trace import record_clause

    evaluator = db._evaluator
    (clause,) = evaluator.state.strata.of(head)
    relations = evaluator.relations
    deltas, _ = deltas_of(evaluator, (clause,), evaluator.state)
    if deltas:
        content = evaluated(db, head)
        built = {name: relations[name].built for name, _ in deltas[0].orders}
        for name, order in deltas[0].orders:
            relations[name].order(order)
        for name, before in built.items():
            for order in relations[name].built - before:
                relations[name].forget(order)
        return content, None
    trace, chunks, evaluation = record_clause(evaluator, clause, Limits())
    return relations[head].assemble(chunks, in_order=evaluation.sorted), trace


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """One graph in one way: `request` has "graph", "engine" and "repeats"."""
    maintained.warm()
    data = graphs.load(request["graph"])
    db = maintained.database(maintained.TRIANGLE, "tri", WAYS[request["engine"]])
    db.load("e", data.rows)
    db.evaluate()  # the plan is made, and its key orders are built
    resident = {"evaluated": status_mb("VmRSS")}
    content, first = timed(lambda: evaluated(db, "tri"))
    (same, trace), first_recorded = timed(lambda: recorded(db, "tri"))
    if len(same) != len(content):
        raise AssertionError(f"{len(content):,} rows evaluated, {len(same):,} recorded")
    resident["recorded"] = status_mb("VmRSS")
    parts = () if trace is None else trace.parts
    sites = {t.site_name(s): (t.indexes.count(s), t.indexes.memory(s)) for t in parts for s in t.indexes.packings}
    count = len(content)
    del content, same, trace, parts
    plain: list[float] = []
    with_trace: list[float] = []
    calls: tuple[tuple[Callable[[Any, str], Any], list[float]], ...] = ((evaluated, plain), (recorded, with_trace))
    for _ in range(request["repeats"]):
        for call, seconds in calls:
            gc.collect()
            db._arena.collect()
            _, took = timed(partial(call, db, "tri"))
            seconds.append(took.cpu)
    records, size = (sum(figures[i] for figures in sites.values()) for i in (0, 1))
    return {
        "status": "ok",
        "data": {"dataset": data.name, "source": data.source, "rows": len(data.rows)},
        "count": count,
        "evaluated": plain,
        "recorded": with_trace,
        "evaluated_ms": statistics.median(plain) * 1e3,
        "recorded_ms": statistics.median(with_trace) * 1e3,
        "ratio": statistics.median(with_trace) / statistics.median(plain),
        "first_evaluated_ms": first.cpu * 1e3,
        "first_recorded_ms": first_recorded.cpu * 1e3,
        "sites": {name: {"records": n, "bytes": b} for name, (n, b) in sites.items()},
        "records": records,
        "bytes_per_record": size / records if records else 0.0,
        "index_bytes": size,
        "resident_mb": resident,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        sys.stdout.write(json.dumps(measured(json.loads(arguments[1]))) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.recording", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-g", "--graphs", default=",".join(GRAPHS), help=f"of {', '.join(GRAPHS)}")
    parser.add_argument("-e", "--engines", default=",".join(ENGINES), help=f"of {', '.join(ENGINES)}")
    parser.add_argument("-r", "--repeats", type=int, default=7)
    parser.add_argument("-o", "--output", type=Path, default=RECORDING)
    options = parser.parse_args(arguments)
    failed = 0
    for graph in options.graphs.split(","):
        for engine in options.engines.split(","):
            request = {"graph": graph, "engine": engine, "repeats": options.repeats}
            reply = answer_of("bench.recording", request, 300.0)
            line = {"workload": "triangle", **request, "graph": graphs.title(graph), "mode": "record", **reply}
            failed += reply["status"] != "ok"
            sys.stderr.write(note(line) + "\n")
            results.append(options.output, line)
    return int(failed > 0)


def note(line: dict[str, Any]) -> str:
    """One line of progress."""
    head = f"{line['graph']:16} {line['engine']:15}"
    if line["status"] != "ok":
        return f"{head} {line['status']}: {line.get('reason', '')}"
    times = f"{line['evaluated_ms']:8.1f} ms, recorded {line['recorded_ms']:8.1f} ms, x {line['ratio']:.2f}"
    return f"{head} {times}  {line['records']:>11,} records of {line['bytes_per_record']:.1f} bytes"


if __name__ == "__main__":
    sys.exit(main())
