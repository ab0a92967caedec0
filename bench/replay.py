"""Changes per second of streams of small transactions: an order book, and wide tables in the style of TPC-H.

    python -m bench.replay [-w book,tpch] [-n 2000] [--code DIR] [--quick]

Each stream (orderbook.py, tpch.py) is replayed one change at a time, in a process of its own, every transaction through
the public API with all heads maintained; the first twenty, which record and prepare, are left out. In the end every
head is compared with a plain computation over the facts that are left. CPU seconds: a machine has other things to do.

`--code`: the checkout whose `lftj` is measured, by the streams of this one: so it is compared with older code, which
needs nothing but the public API. An engine that has spent its time leaves out what remains of the stream. Results go to
`bench/results/replay.jsonl`. Exit code 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bench import orderbook, results, tpch
from bench.graphs import ROOT
from bench.maintained import answer_of, percentile
from bench.orderbook import Changes, Facts, Row

REPLAY = results.RESULTS / "replay.jsonl"
#: Transactions before those that count, and CPU seconds that a stream has.
BEFORE, BUDGET = 20, 30.0
SEED = 28


class Stream(NamedTuple):
    """Facts to begin with, what happens to them, the rules over them and what these derive."""

    program: str
    facts: Callable[[bool], Facts]
    events: Callable[[Mapping[str, set[Row]], int], Iterator[Changes]]
    expected: Callable[[Mapping[str, set[Row]]], dict[str, set[Row]]]


STREAMS = {
    "book": Stream(
        orderbook.PROGRAM,
        lambda tiny: orderbook.facts(SEED, *((60, 200) if tiny else (3_000, 100_000))),
        orderbook.events,
        orderbook.expected,
    ),
    "tpch": Stream(tpch.PROGRAM, lambda tiny: tpch.facts(SEED, 30 if tiny else 3_000), tpch.events, tpch.expected),
}


def use(code: str) -> None:
    """Import the packages of the checkout `code`, and nothing else of it."""
    sys.path.insert(0, code)
    import lftj
    import scantree
    import sensitivity

    sys.path.remove(code)
    for package in (lftj, scantree, sensitivity):
        assert Path(package.__file__ or "").is_relative_to(code), f"{package.__name__} is not of {code}"


def transact(db: Any, changes: Changes) -> Any:
    """One transaction with these changes; it, committed."""
    with db.transaction() as tx:
        for sign, name, row in changes:
            (tx.insert if sign > 0 else tx.erase)(name, [row])
    return tx


def replayed(request: dict[str, Any]) -> dict[str, Any]:
    """One stream: `request` has "workload", "changes" and "tiny"."""
    import lftj

    stream = STREAMS[request["workload"]]
    facts = stream.facts(request["tiny"])
    events = filter(None, stream.events(facts, SEED))
    db = lftj.Database(stream.program)
    for name, rows in facts.items():
        db.load(name, sorted(rows))
    db.evaluate()
    now = {name: set(rows) for name, rows in facts.items()}
    took: list[float] = []
    strategies: dict[str, int] = {}
    for changes in islice(events, BEFORE + request["changes"]):
        start = time.process_time()
        tx = transact(db, changes)
        took.append(time.process_time() - start)
        for sign, name, row in changes:
            (now[name].add if sign > 0 else now[name].remove)(row)
        if len(took) > BEFORE:
            for told in tx.stats["heads"].values():
                for one in (told, *told.get("parts", {}).values()):
                    strategies[one["strategy"]] = strategies.get(one["strategy"], 0) + 1
        if len(took) > BEFORE and sum(took) > request.get("budget", BUDGET):
            break
    wrong = [head for head, rows in stream.expected(now).items() if set(map(tuple, db[head])) != rows]
    counted = took[BEFORE:]
    return {
        "status": "ok" if not wrong else "error",
        **({"reason": f"other rows than expected in {', '.join(wrong)}"} if wrong else {}),
        "rows": sum(map(len, facts.values())),
        "transactions": len(counted),
        "per_second": len(counted) / sum(counted),
        "median_ms": percentile(counted, 0.5) * 1e3,
        "p99_ms": percentile(counted, 0.99) * 1e3,
        "strategies": strategies,
    }


def commit_of(code: str) -> str:
    """The commit of a checkout."""
    command = ("git", "-C", code, "rev-parse", "--short=12", "HEAD")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "none"


def note(line: dict[str, Any]) -> str:
    """One line of progress."""
    head = f"{line['workload']:6} {line['engine']:12} {line['code']:12}"
    if line["status"] != "ok":
        return f"{head} {line['status']}: {line.get('reason', '')}"
    figures = f"median {line['median_ms']:.3f} ms  p99 {line['p99_ms']:.3f}  {line['transactions']:,} changes"
    return f"{head} {line['per_second']:,.0f} changes/s  {figures}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        request = json.loads(arguments[1])
        use(request["code"])
        sys.stdout.write(json.dumps(replayed(request)) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-w", "--workloads", default=",".join(STREAMS), help=f"of {', '.join(STREAMS)}")
    parser.add_argument("-n", "--changes", type=int, default=2_000, help="transactions that count")
    parser.add_argument("--code", type=Path, default=ROOT, help="the checkout whose lftj is measured")
    parser.add_argument("-o", "--output", type=Path, default=REPLAY)
    parser.add_argument("-t", "--timeout", type=float, default=1_800.0, help="seconds for one stream")
    parser.add_argument("--quick", action="store_true", help="tiny streams; not for the results")
    options = parser.parse_args(arguments)
    code = str(options.code.resolve())
    engine = "lftj" if options.code.resolve() == ROOT else "before"
    failed = False
    for workload in options.workloads.split(","):
        request = {"workload": workload, "changes": options.changes, "tiny": options.quick, "code": code}
        reply = answer_of("bench.replay", request, options.timeout)
        measured = {"workload": workload, "graph": "stream", "mode": "one change", "engine": engine}
        line = {**measured, "code": commit_of(code), **reply}
        sys.stderr.write(note(line) + "\n")
        results.append(options.output, line)
        failed |= line["status"] == "error"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
