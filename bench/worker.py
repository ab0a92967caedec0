"""One measurement in a process of its own: a JSON request as argument, a JSON answer as the last line of stdout.

    python -m bench.worker '{"engine": "csr", "workload": "triangle", "graph": "pl1m", "mode": "count", "repeats": 5}'

The answer is {"status": "ok", ...measurement...}, or {"status": S, "reason": ...} where S is "refused" (does not take
part), "memory" (ran out of what it may use) or "error". Memory and compile times of one engine cannot touch those of
another, and the runner can end a measurement that takes too long.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from bench.measure import Engine, measure
from bench.workloads import by_name

#: name -> module and class. Imported on use: no engine pays for another's imports.
ENGINES = {
    "lftj": ("bench.engines.lftj", "Lftj"),
    "csr": ("bench.rivals.csr", "Csr"),
    "csr-mark": ("bench.rivals.csr", "CsrMark"),
    "duckdb": ("bench.rivals.duckdb", "DuckDB"),
    "kuzu": ("bench.rivals.kuzu", "Kuzu"),
}


def engine_class(name: str) -> type[Engine]:
    """The class of the engine called `name`."""
    module, cls = ENGINES[name]
    found: type[Engine] = getattr(importlib.import_module(module), cls)
    return found


def engine(name: str) -> Engine:
    """A fresh session of the engine called `name`."""
    return engine_class(name)()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The measurement that `request` asks for."""
    workload = by_name(request["workload"])
    case = workload.case(request["graph"])
    pattern = workload.pattern(case)
    subject = engine_class(request["engine"])
    if reason := subject.refuses(pattern, request["mode"]):
        return {"status": "refused", "reason": reason}
    datasets = workload.relations(case)
    relations = {name: d.rows for name, d in datasets.items()}
    tiny = {name: d.rows for name, d in workload.relations(workload.tiny).items()}
    result = measure(subject(), pattern, relations, tiny, request["mode"], request["repeats"])
    return {
        "status": "ok",
        "data": {name: {"dataset": d.name, "source": d.source, "rows": len(d.rows)} for name, d in datasets.items()},
        **result.as_dict(),
    }


def main() -> int:
    """Answer the request in argv."""
    try:
        reply = answer(json.loads(sys.argv[1]))
    except Exception as error:  # whatever an engine raises becomes a row that says so
        status = "memory" if isinstance(error, MemoryError) or "memory" in str(error).lower() else "error"
        reply = {"status": status, "reason": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(reply) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
