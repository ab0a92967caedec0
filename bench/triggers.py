"""Aggregates kept by triggers: TPC-H as views over a stream, order books, single rows, growth, other strategies.

    python -m bench.triggers [tpch] [books] [single] [growth] [ways] [-q q1,q3] [-s 0.01,0.1] [--quick]

tpch      the 22 queries at scales 0.01 and 0.1: changes per CPU second event by event, and in transactions of 1,000
          rows; bytes; DuckDB computing each query anew (bench.triggers_tpch)
books     five finance queries over a book of bids and asks, with 10^4 to 10^6 orders that live (bench.triggers_books)
single    transactions of one row, and a stream by one call, of a sum over a join of two (bench.triggers_join)
growth    the time of an event of that sum at 10^4 to 10^7 rows
ways      sums and counts under every strategy by turns, beside the planner's choice (bench.triggers_ways)

One thread, CPU seconds, every measurement in a process of its own and its answers compared in it: with DuckDB's, with
numpy's, with evaluating anew. Results go to `bench/results/triggers.jsonl`; exit code 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import results, triggers_join, triggers_ways
from bench import triggers_books as books
from bench.book_answers import QUERIES as BOOKS
from bench.maintained import answer_of
from bench.tpch_queries import QUERIES

TRIGGERS = results.RESULTS / "triggers.jsonl"
#: Part -> where it is measured.
PARTS = {
    "tpch": "bench.triggers_tpch:measured",
    "books": "bench.triggers_books:measured",
    "single": "bench.triggers_join:single",
    "growth": "bench.triggers_join:growing",
    "ways": "bench.triggers_ways:measured",
}
SCALES = (0.01, 0.1)
ROWS = 100_000

Request = dict[str, Any]


def requests(parts: Sequence[str], queries: Sequence[str], scales: Sequence[float], quick: bool) -> Iterator[Request]:
    """What is to be measured: keys of the line ("workload", "graph", "mode") and what the part is asked for."""
    for part in parts:
        for line, asked in _of_part(part, queries, scales, quick):
            yield {"workload": part, **line, "asked": {**asked, **({"budget": 2.0} if quick else {})}}


def _of_part(
    part: str, queries: Sequence[str], scales: Sequence[float], quick: bool
) -> Iterator[tuple[Request, Request]]:
    if part == "tpch":
        for scale in (0.001,) if quick else scales:
            for name in (name for name in QUERIES if not queries or name in queries):
                asked = {"query": name, "scale": scale, **({"made": True} if quick else {})}
                yield {"graph": f"{scale:g}", "mode": name}, asked
    elif part == "books":
        sizes = ((100, 400),) if quick else (*((live, books.EVENTS) for live in books.LIVE), (10_000, books.MANY))
        for live, events in sizes:
            for name in (name for name in BOOKS if not queries or name in queries):
                asked = {"query": name, "live": live, "events": events}
                yield {"graph": books.title(live, events), "mode": name}, asked
    elif part == "single":
        few: Request = {"ones": 40, "events": 400} if quick else {}
        yield {"graph": "join", "mode": "single"}, {"rows": 1_000 if quick else ROWS, **few}
    elif part == "growth":
        few = {"sizes": (1_000, 4_000), "events": 400} if quick else {"sizes": triggers_join.SIZES}
        yield {"graph": "join", "mode": "growth"}, few
    elif part == "ways":
        for name in triggers_ways.CASES:
            for size in triggers_ways.SIZES[:2] if quick else triggers_ways.SIZES:
                yield {"graph": name, "mode": f"{size}"}, {"case": name, "size": size, "tiny": quick}


def measured(part: str, asked: Request) -> Request:
    """The figures that a part is asked for; what is raised becomes a reply that says so."""
    module, function = PARTS[part].split(":")
    try:
        reply: Request = getattr(importlib.import_module(module), function)(asked)
    except Exception as error:  # a query that is refused is a line of the results, not the end of all others
        reason = " ".join(str(error).split())
        return {"status": "error", "reason": f"{type(error).__name__}: {reason[:500]}"}
    return reply


def note(line: Request) -> str:
    """One line of progress."""
    head = f"{line['workload']:7} {line['graph']:22} {line['mode']:14} {line['status']}"
    shown = {
        name: value for name, value in line.items() if name not in ("workload", "graph", "mode", "engine", "status")
    }
    return f"{head} {json.dumps(_rounded(shown))}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "--one":
        request = json.loads(arguments[1])
        sys.stdout.write(json.dumps(measured(request["part"], request["asked"])) + "\n")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.triggers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("-q", "--queries", default="", help="of tpch and books; all of them")
    parser.add_argument("-s", "--scales", default=",".join(map(str, SCALES)), help="of tpch")
    parser.add_argument("-o", "--output", type=Path, default=TRIGGERS)
    parser.add_argument("-t", "--timeout", type=float, default=1_200.0, help="seconds for one measurement")
    parser.add_argument("--quick", action="store_true", help="tiny data; not for the results")
    options = parser.parse_args(arguments)
    queries = options.queries.split(",") if options.queries else []
    failed = False
    for request in requests(
        options.parts or tuple(PARTS), queries, [*map(float, options.scales.split(","))], options.quick
    ):
        asked = {"part": request["workload"], "asked": request.pop("asked")}
        line = {**request, "engine": "lftj", **answer_of("bench.triggers", asked, options.timeout)}
        sys.stderr.write(note(line) + "\n")
        results.append(options.output, line)
        failed |= line["status"] != "ok"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
