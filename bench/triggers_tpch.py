"""TPC-H's queries as views over a stream of rows, beside DuckDB, which computes each anew. One query a process.

    measured({"query": "q3", "scale": 0.1})

Rows of the tables that the query reads are streamed, and no others. Three databases would be one too many: the first
takes the inserts (bench.tpch_stream) by calls of `db.apply`, from nothing; the second is loaded with all of these
and takes half of the stream with deletes by such calls, some of it event by event as blocks of one row, then the other
half in transactions of 1,000 rows, and some of one row. Each time its answer is compared with DuckDB's over the same
rows. What goes beyond the budget of CPU seconds of a phase is left out, and so counted.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.rivals.duckdb_views import Views
from bench.tpch_data import source, tables
from bench.tpch_made import made
from bench.tpch_queries import QUERIES, TABLES, Query
from bench.tpch_stream import Stream
from bench.triggers_run import Batch, derived_bytes, differ, followed, rows_in, transacted

BATCH, FINE, ONES, SAMPLES = 1_000, 20_000, 300, 5
BUDGET = 20.0


def reads(query: Query) -> list[str]:
    """The tables that a query reads."""
    return [name for name in TABLES if re.search(rf"\b{name}\b", query.body.replace("as nation", ""))]


def database(query: Query) -> Any:
    """A database with the tables that a query reads and its view, empty."""
    import lftj

    db = lftj.Database()
    db.sql(";\n".join([*(TABLES[name] for name in reads(query)), query.view()]))
    return db


def load(db: Any, contents: dict[str, Any]) -> None:
    """All rows at once."""
    for name, table in contents.items():
        db.load(name, table.combine_chunks())


def rows_of(db: Any, query: Query) -> list[tuple[Any, ...]]:
    """The view's rows."""
    return [tuple(row) for row in db[query.name]]


def warm(query: Query) -> None:
    """Compile all that following the query's view needs."""
    stream = Stream(made(0.001)).of(reads(query))
    db = database(query)
    followed(db, stream.batches("inserts", BATCH), BUDGET)
    transacted(db, stream.batches("deletes", 200), BUDGET)
    transacted(db, stream.batches("inserts", 1, 3), BUDGET)
    rows_of(db, query)


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """The figures of a query at a scale."""
    query, scale, budget = QUERIES[request["query"]], request["scale"], request.get("budget", BUDGET)
    stream = Stream(made(scale) if request.get("made") else tables(scale)).of(reads(query))
    warm(query)
    found: dict[str, Any] = {"data": "made" if request.get("made") else source(scale), "reads": reads(query)}
    wrong: list[str] = []

    def check(what: str, db: Any, events: int) -> Views:
        rival = Views(stream.contents(events))
        difference = differ(rows_of(db, query), rival.answer(query.body))
        if difference:
            wrong.append(f"{what}: {difference}")
        return rival

    db = database(query)
    inserts = followed(db, list(stream.batches("inserts", BATCH)), budget)
    found["inserts"] = {**inserts.figures(), "of": stream.inserts}
    found["bytes"] = derived_bytes(db, TABLES)
    check("after inserts", db, inserts.events)

    db = database(query)
    began = time.process_time()
    load(db, stream.contents(stream.inserts))
    rows_of(db, query)
    found["load_seconds"] = time.process_time() - began
    behind = stream.inserts
    second = len(stream) - behind
    deletes = followed(db, list(stream.batches("deletes", BATCH, second // 2)), budget)
    found["deletes"] = {**deletes.figures(), "of": second // 2}
    behind += deletes.events
    check("after deletes", db, behind)

    for name, size, limit, how in (
        ("fine", 1, FINE, lambda batches: (followed(db, batches, budget), {})),
        ("batches", BATCH, second, lambda batches: transacted(db, batches, budget)),
        ("ones", 1, ONES, lambda batches: transacted(db, batches, budget)),
    ):
        done, told = how(list(stream.after(behind, size, limit if name != "batches" else second // 3)))
        if done.events:
            found[name] = done.figures()
        if name == "batches":
            found["strategies"] = told
        behind += done.events
    rival = check("in the end", db, behind)
    found["bytes_loaded"] = derived_bytes(db, TABLES)
    found["answer"] = len(rows_of(db, query))
    found["duckdb"] = _recomputed(rival, query, stream, behind)
    if "batches" in found:
        found["ratio"] = found["duckdb"]["recompute_ms"] / found["batches"]["median_ms"]
    return {"status": "error", "reason": "; ".join(wrong), **found} if wrong else {"status": "ok", **found}


def _recomputed(rival: Views, query: Query, stream: Stream, behind: int) -> dict[str, float]:
    """DuckDB: milliseconds to take a batch in, and to compute the query anew; medians."""
    took: list[float] = []
    anew: list[float] = []
    rival.recompute(query.body)
    batches: list[Batch] = list(stream.after(behind, BATCH, SAMPLES * BATCH))
    for batch in batches or [[]]:
        took.append(_cpu(lambda batch=batch: rival.apply(batch)))  # type: ignore[misc]
        anew.append(_cpu(lambda: rival.recompute(query.body)))
    assert not batches or rows_in(batches[0]) > 0
    return {"take_in_ms": statistics.median(took) * 1e3, "recompute_ms": float(np.median(anew)) * 1e3}


def _cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began
