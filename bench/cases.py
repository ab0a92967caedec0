"""Benchmarks that measure each case in a process of its own and compare what the engines found.

A *request* is a dict of plain values with "workload", "graph", "mode" and "engine" (by which results are filed) and
"quick"; a *reply* is what `measured` makes of it. Replies may have "digests": a short text per thing that every engine
finds, by its name. Engines must agree on those that several of them report; results keep one digest of all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import results
from bench.latency import hash_of
from bench.maintained import answer_of, percentile

Line = results.Line
#: Seconds that one measurement may take.
TIMEOUT = 300.0


@dataclass(frozen=True)
class Bench:
    """`python -m module`: which requests there are (quick or not), what is measured, and how a line is told."""

    module: str
    output: Path
    requests: Callable[[bool], Iterable[Line]]
    measured: Callable[[Line], Line]
    note: Callable[[Line], str]

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure, print and record; exit code 1 if engines disagree or one failed."""
        arguments = sys.argv[1:] if arguments is None else arguments
        if arguments and arguments[0] == "--one":
            sys.stdout.write(json.dumps(self.measured(json.loads(arguments[1]))) + "\n")
            return 0
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}")
        parser.add_argument("-e", "--engines", default="", help="only these engines")
        parser.add_argument("-o", "--output", type=Path, default=self.output)
        parser.add_argument("--quick", action="store_true", help="few and small cases; not for the results")
        options = parser.parse_args(arguments)
        wanted = [engine for engine in options.engines.split(",") if engine]
        lines = []
        for request in self.requests(options.quick):
            if wanted and request["engine"] not in wanted:
                continue
            line = {**request, **answer_of(self.module, request, TIMEOUT)}
            sys.stderr.write(f"{head_of(line)}  {self.note(line) if line['status'] == 'ok' else trouble(line)}\n")
            lines.append(line)
            results.append(options.output, compact(line))
        wrong = disagreements(lines)
        sys.stderr.write("".join(f"ENGINES DISAGREE: {each}\n" for each in wrong[:10]))
        return int(bool(wrong) or any(line["status"] != "ok" for line in lines))


def head_of(line: Line) -> str:
    """What a line is about."""
    return f"{line['workload']:22} {line['graph']:14} {line['mode']:10} {line['engine']:14}"


def trouble(line: Line) -> str:
    """How a measurement ended that has no figures."""
    return f"{line['status']}: {line.get('reason', '')}"


def compact(line: Line) -> Line:
    """`line` with one digest in the place of many."""
    rest = {key: value for key, value in line.items() if key != "digests"}
    found: Mapping[str, str] | None = line.get("digests")
    return rest if found is None else {**rest, "digest": hash_of([f"{k}={found[k]}" for k in sorted(found)])}


def disagreements(lines: Iterable[Line]) -> list[str]:
    """Where engines found something else than the first one that told."""
    told: list[str] = []
    first: dict[tuple[str, ...], tuple[str, str]] = {}
    for line in lines:
        for name, value in line.get("digests", {}).items():
            this = (line["workload"], line["graph"], line["mode"], name)
            engine, other = first.setdefault(this, (line["engine"], value))
            if other != value:
                told.append(f"{this}: {engine} {other}, {line['engine']} {value}")
    return told


def times(seconds: Sequence[float]) -> dict[str, Any]:
    """CPU seconds of transactions, for the results: how many, and milliseconds."""
    return {
        "transactions": len(seconds),
        "median_ms": statistics.median(seconds) * 1e3,
        "p99_ms": percentile(list(seconds), 0.99) * 1e3,
        "max_ms": max(seconds) * 1e3,
    }
