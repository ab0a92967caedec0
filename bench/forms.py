"""Closures in the three forms they may be written in, each followed as it is written.

    python -m bench.forms [--quick]

lftj runs a closure right-linear, however it is written (lftj/recursion/closure.py); here that is switched off. Ten
random edges go in one transaction and come back in the next; "turned" is a graph with its edges turned round. The
right-linear form has two cases more, which differ in the key orders there are: "asked", where a query by the second
column comes before the first transaction, and "fact", a closure with one fact of its own. CPU milliseconds, medians, in
a process each. Results go to `bench/results/forms.jsonl`; exit code 1 if forms end with other rows, or a workload
fails.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from unittest import mock

import numpy as np

from bench import maintained, recursion, results
from bench.cases import Bench, Line
from bench.measure import timed
from bench.updates import Batch

FORMS_RESULTS = results.RESULTS / "forms.jsonl"
BASE = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\n"
#: By the name of a form, which results are filed by as an engine's: its recursive rule.
FORMS = {
    "right-linear": "t(x, z) :- e(x, y), t(y, z).",
    "left-linear": "t(x, z) :- t(x, y), e(y, z).",
    "nonlinear": "t(x, z) :- t(x, y), t(y, z).",
}
GRAPHS = ("dag5k", "cal", "wiki-Vote")
#: Edges that go at once, and how often; nonlinear rules over wiki-Vote take minutes to evaluate.
EDGES, DRAWS = 10, 15
LEFT_OUT = {("wiki-Vote", "nonlinear")}


def measured(request: Line) -> Line:
    """One form on one graph, in this process: milliseconds per ten edges, and a digest of the rows in the end."""
    import lftj
    from lftj.recursion import closure

    workload = f"closure:{request['graph']}"
    recursion.warm(workload)
    edges = recursion.loaded(workload)["e"].numpy()
    if request["workload"] == "turned":
        edges = np.ascontiguousarray(edges[:, ::-1])
    program = BASE + FORMS[request["engine"]]
    fact = np.full((1, 2), -1, np.int64)
    rng, none = np.random.default_rng(1), edges[:0]
    took: dict[str, list[float]] = {"erased": [], "inserted": []}
    with mock.patch.object(closure, "right_linear", return_value=None):
        db = lftj.Database(program)
        db.load("e", edges)
        if request["workload"] == "fact":
            db.load("t", fact)
        _, scratch = timed(db.evaluate)
        if request["workload"] == "asked":
            db.query("t(x, y)", order=("y", "x")).count()
        for _ in range(request["draws"]):
            some = edges[rng.choice(len(edges), EDGES, replace=False)]
            for name, batch in (("erased", Batch(some, none)), ("inserted", Batch(none, some))):
                _, one = timed(partial(maintained.apply, db, "e", batch))
                took[name].append(one.cpu * 1e3)
    ms = {name: statistics.median(each) for name, each in took.items()}
    digests = {"rows": str(maintained.digest(db["t"].numpy()))}
    return {"status": "ok", "scratch_ms": scratch.cpu * 1e3, "ms": ms, "digests": digests}


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for graph in GRAPHS:
        for workload in ("closure", "turned", "asked", "fact"):
            for form in FORMS if workload in ("closure", "turned") else ("right-linear",):
                if (graph, form) in LEFT_OUT or (quick and graph != "cal"):
                    continue
                what = {"workload": workload, "graph": graph, "mode": "forms", "engine": form, "quick": quick}
                yield {**what, "draws": 2 if quick else DRAWS}


def note(line: Line) -> str:
    """The figures in one line."""
    ms = line["ms"]
    return f"{ms['erased']:.1f} ms erased, {ms['inserted']:.1f} inserted, {line['scratch_ms']:.0f} from scratch"


BENCH = Bench("bench.forms", FORMS_RESULTS, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
