"""Measure workloads on graphs with every engine, check that counts agree, append to `bench/results/joins.jsonl`.

    python -m bench.run [-w triangle,bowtie] [-g wiki-Vote] [-e lftj,duckdb] [-m count] [-r 5] [-t 60] [--resume]

The engines of one case run one after another, each in a process of its own. Progress goes to stderr. Ctrl-C ends the
measurement under way and keeps all finished ones; `--resume` then skips what the current commit has measured. With
`--no-record`, as `lftj bench` calls it, figures are printed only.
Exit code: 0, or 1 if counts disagree or an engine failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import results
from bench.graphs import KNOWN, ROOT, title
from bench.measure import Mode
from bench.worker import ENGINES
from bench.workloads import WORKLOADS, Case, Workload

MODES: tuple[Mode, ...] = ("count", "materialise")


@dataclass(frozen=True)
class Options:
    """What to measure; an empty tuple means all."""

    workloads: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    repeats: int = 5
    timeout: float = 60.0
    output: Path | None = results.JOINS  # None: nothing is recorded
    resume: bool = False


def cases(options: Options) -> Iterator[tuple[Workload, Case, Mode]]:
    """The cases chosen, in the registry's order."""
    for workload in WORKLOADS:
        if options.workloads and workload.name not in options.workloads:
            continue
        for case in workload.cases:
            if options.graphs and case.graph not in options.graphs:
                continue
            for mode in MODES:
                if (options.modes and mode not in options.modes) or (mode == "materialise" and not case.materialise):
                    continue
                yield workload, case, mode


def measure_apart(request: dict[str, Any], timeout: float, environment: dict[str, str]) -> dict[str, Any]:
    """The worker's answer to `request`; `timeout` covers all its runs together, so it is scaled by their number."""
    command = [sys.executable, "-m", "bench.worker", json.dumps(request)]
    limit = timeout * (request["repeats"] + 1) + 60  # + compiling and loading
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "limit": timeout}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"status": "error", "reason": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    reply: dict[str, Any] = json.loads(lines[-1])
    return reply


def run(options: Options) -> int:
    """Measure everything chosen; return the number of disagreements and failures."""
    already = {
        results.key(line)
        for line in results.read(options.output or results.JOINS)
        if options.resume and line["run"]["commit"] == results.run_stamp()["commit"] and line["status"] != "error"
    }
    engines = options.engines or tuple(ENGINES)
    troubles = 0
    # One kernel cache for the whole run, empty at its start: the first measurement of an engine shows its cold start,
    # the rest a warm one.
    with tempfile.TemporaryDirectory(prefix="lftj-bench-") as cache:
        environment = {**os.environ, "LFTJ_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
        for workload, case, mode in cases(options):
            counts: dict[str, int] = {}
            for name in engines:
                this = (workload.name, title(case.graph), mode, name)
                if this in already:
                    continue
                request = {"workload": workload.name, "graph": case.graph, "mode": mode, "engine": name}
                reply = probe(request, options, environment)
                if reply["status"] == "refused":
                    continue
                note(this, reply)
                if reply["status"] == "ok":
                    counts[name] = reply["count"]
                troubles += reply["status"] == "error"
                if options.output is not None:
                    results.append(options.output, {**request, "graph": this[1], "extra": case.extra, **reply})
            troubles += disagreement(workload, case, counts)
    return troubles


def probe(request: dict[str, Any], options: Options, environment: dict[str, str]) -> dict[str, Any]:
    """One run first, under the time limit; the repeats only if it was quick enough for them."""
    first = measure_apart({**request, "repeats": 0}, options.timeout, environment)
    if first["status"] != "ok":
        return first
    if first["first_seconds"] > options.timeout:
        return {"status": "timeout", "limit": options.timeout, "count": first["count"]}
    repeats = max(1, min(options.repeats, int(options.timeout / max(first["first_seconds"], 1e-9))))
    measured = measure_apart({**request, "repeats": repeats}, options.timeout, environment)
    if measured["status"] == "ok":
        measured["cold_compile_seconds"] = first["compile_seconds"]
    return measured


def disagreement(workload: Workload, case: Case, counts: dict[str, int]) -> int:
    """1 if the engines' counts differ from one another or from the published count, with a line on stderr; else 0."""
    expected = dict(counts)
    known = KNOWN.get(title(case.graph))
    if workload.name == "triangle" and known and known.triangles is not None:
        expected["published"] = known.triangles
    if len(set(expected.values())) <= 1:
        return 0
    say(f"  COUNTS DISAGREE on {workload.name}, {case.graph}: {expected}")
    return 1


def note(this: tuple[str, str, str, str], reply: dict[str, Any]) -> None:
    """One line of progress."""
    workload, graph, mode, name = this
    head = f"{workload:18} {graph:16} {mode:12} {name:9}"
    if reply["status"] == "ok":
        figures = f"min {reply['min']:8.4f}  median {reply['median']:8.4f} s  index {reply['index_seconds']:6.3f}"
        rest = f"compile {reply['compile_seconds']:5.2f}  {reply['peak_mb']:7.0f} MB"
        say(f"{head} {reply['count']:>13,}  {figures}  {rest}")
    elif reply["status"] == "memory":
        say(f"{head} {'':>13}  out of memory")
    elif reply["status"] == "timeout":
        say(f"{head} {'':>13}  more than {reply['limit']:g} s")
    else:
        say(f"{head} {'':>13}  FAILED: {reply['reason']}")


def say(text: str) -> None:
    """A line on stderr; stdout is for data."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def recorded_in(path: Path) -> str:
    """A file of results, as messages name it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Options from the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=(__doc__ or "").splitlines()[0])

    def names(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(","))

    parser.add_argument("-w", "--workloads", default=(), type=names, metavar="A,B")
    parser.add_argument("-g", "--graphs", default=(), type=names, metavar="A,B")
    parser.add_argument("-e", "--engines", default=(), type=names, metavar="A,B", help=f"of {', '.join(ENGINES)}")
    parser.add_argument("-m", "--modes", default=(), type=names, metavar="A,B", help=f"of {', '.join(MODES)}")
    parser.add_argument("-r", "--repeats", type=int, default=Options.repeats)
    parser.add_argument("-t", "--timeout", type=float, default=Options.timeout, help="seconds for one run")
    parser.add_argument("-o", "--output", type=Path, help=f"record in this file; default: {recorded_in(results.JOINS)}")
    parser.add_argument(
        "--record",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="append to that file, which is tracked; `lftj bench` does so only with --record, or with -o",
    )
    parser.add_argument("--resume", action="store_true", help="skip what this commit has measured")
    given = vars(parser.parse_args(arguments))
    record = given.pop("record")
    given["output"] = given["output"] or (results.JOINS if record else None)
    options = Options(**given)
    known = (
        ("workload", options.workloads, [w.name for w in WORKLOADS]),
        ("engine", options.engines, list(ENGINES)),
        ("graph", options.graphs, [c.graph for w in WORKLOADS for c in w.cases]),
        ("mode", options.modes, list(MODES)),
    )
    for what, chosen, offered in known:
        for name in chosen:
            if name not in offered:
                parser.error(f"no {what} {name!r}; choose from {', '.join(dict.fromkeys(offered))}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    options = parse(arguments)
    number = len(list(cases(options)))
    kept = f"recorded in {recorded_in(options.output)}" if options.output else "printed, and not recorded (--record)"
    say(f"{number} {'case' if number == 1 else 'cases'}; what is measured is {kept}; Ctrl-C ends it")
    try:
        return 1 if run(options) else 0
    except KeyboardInterrupt:
        say("interrupted" + ("; finished measurements are kept, --resume continues" if options.output else ""))
        return 130


if __name__ == "__main__":
    sys.exit(main())
