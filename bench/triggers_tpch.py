"""TPC-H's queries as views over a stream of rows, beside DuckDB, which computes each anew. One query a process.

    measured({"query": "q3", "scale": 0.1})

Rows of the tables that the query reads are streamed (bench.tpch_stream), and no others. One database takes the inserts
by calls of `db.apply`, from nothing, as the planner chooses. In another triggers are asked for, so that the view is
exact after every event: it takes the same, and then the stream with deletes. A third is loaded with the same rows and
takes the stream with deletes: a third by such calls, some more with every event a block of its own, a third in
transactions of 1,000 rows, and some of one row. Answers are compared with DuckDB's over the same rows. A phase ends
when it has had its CPU seconds; its figures are of the `events` it took in.

A fourth database has the tables and no view. What a batch takes there is the least that a batch can take with any view:
DuckDB's time over it bounds from above by how much following can be faster than computing anew.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.rivals.duckdb_views import Views
from bench.tpch_data import source, tables
from bench.tpch_made import made
from bench.tpch_queries import QUERIES, TABLES, Query
from bench.tpch_stream import Stream
from bench.triggers_run import Batch, Block, derived_bytes, differ, followed, transacted

BATCH, FINE, ONES, SAMPLES = 1_000, 20_000, 300, 5
BUDGET = 20.0


def reads(query: Query) -> list[str]:
    """The tables that a query reads."""
    return [name for name in TABLES if re.search(rf"\b{name}\b", query.body.replace("as nation", ""))]


def database(query: Query, maintain: str | None = None) -> Any:
    """A database with the tables that a query reads and its view, empty. `maintain`: the view's strategy."""
    db = without_view(query)
    db.sql(query.view(), maintain=None if maintain is None else {query.name: maintain})
    return db


def without_view(query: Query) -> Any:
    """A database with the tables that a query reads, empty."""
    import lftj

    db = lftj.Database()
    db.sql(";\n".join(TABLES[name] for name in reads(query)))
    return db


def load(db: Any, contents: dict[str, Any]) -> None:
    """All rows at once."""
    for name, table in contents.items():
        db.load(name, table.combine_chunks())


def as_tuples(batch: Batch) -> list[Block]:
    """The same rows as tuples of Python: what a program has that makes events one by one."""
    return [(name, sign, list(zip(*rows.to_pydict().values(), strict=True))) for name, sign, rows in batch]


def warm(query: Query) -> None:
    """Compile all that following the query's view needs: what the least tables need, and what larger ones do."""
    stream = Stream(made(0.001)).of(reads(query))
    db = database(query)
    db.prepare()
    followed(db, stream.batches("inserts", BATCH), BUDGET)
    transacted(db, stream.batches("deletes", 200), BUDGET)
    transacted(db, map(as_tuples, stream.batches("inserts", 1, 3)), BUDGET)
    followed(db, map(as_tuples, stream.after(stream.inserts // 2, 1, 200)), BUDGET)
    len(db[query.name])


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """The figures of a query at a scale. `made`: over tables of bench.tpch_made."""
    query, scale, budget = QUERIES[request["query"]], request["scale"], request.get("budget", BUDGET)
    stream = Stream(made(scale) if request.get("made") else tables(scale)).of(reads(query))
    warm(query)
    wrong: list[str] = []

    def check(what: str, db: Any, events: int) -> Views:
        rival = Views(stream.contents(events))
        if difference := differ(db.sql(f"select * from {query.name}"), rival.answer(query.body)):
            wrong.append(f"{what}: {difference}")
        return rival

    db = database(query)
    inserts = followed(db, stream.batches("inserts", BATCH), budget)
    found: dict[str, Any] = {
        "data": "made" if request.get("made") else source(scale),
        "reads": reads(query),
        "inserts": {**inserts.figures(), "of": stream.inserts},
        "bytes": derived_bytes(db, TABLES),
    }
    check("after inserts", db, inserts.events)
    found["declared"] = _declared(query, stream, budget, check)

    # What reads neither orders nor lines sees no row go: it takes the last tenth of the inserts once more.
    behind = stream.inserts if len(stream) > stream.inserts else stream.inserts * 9 // 10
    third = (len(stream) - behind) // 3
    db = database(query)
    began = time.process_time()
    load(db, stream.contents(behind))
    len(db[query.name])
    found["load_seconds"] = time.process_time() - began
    deletes = followed(db, stream.after(behind, BATCH, third), budget)
    behind += deletes.events
    check("after deletes", db, behind)
    fine = followed(db, map(as_tuples, stream.after(behind, 1, min(FINE, third))), budget)
    behind += fine.events
    batches, found["strategies"] = transacted(db, stream.after(behind, BATCH, third), budget)
    alone = without_view(query)
    load(alone, stream.contents(behind))
    stored, _ = transacted(alone, stream.after(behind, BATCH, batches.events), budget)
    behind += batches.events
    ones, _ = transacted(db, map(as_tuples, stream.after(behind, 1, ONES)), budget)
    behind += ones.events
    phases = {"deletes": deletes, "fine": fine, "batches": batches, "stored": stored, "ones": ones}
    found |= {name: {**done.figures(), "of": third} for name, done in phases.items() if done.events}
    rival = check("in the end", db, behind)
    found["rows"] = len(db[query.name])
    found["duckdb"] = _recomputed(rival, query, stream, behind)
    if batches.events:
        anew = found["duckdb"]["recompute_ms"]
        found["ratio"], found["bound"] = anew / found["batches"]["median_ms"], anew / found["stored"]["median_ms"]
    return {"status": "error", "reason": "; ".join(wrong), **found} if wrong else {"status": "ok", **found}


def _declared(query: Query, stream: Stream, budget: float, check: Callable[[str, Any, int], Views]) -> dict[str, Any]:
    """Figures of a stream that triggers follow event by event; nothing where they cannot keep the view."""
    import lftj

    try:
        db = database(query, "triggers")
    except lftj.Error:
        return {}
    inserts = followed(db, stream.batches("inserts", BATCH), budget)
    check("event by event", db, inserts.events)
    found = {"inserts": inserts.figures()}
    if inserts.events == stream.inserts < len(stream):
        deletes = followed(db, stream.batches("deletes", BATCH), budget)
        check("event by event, with deletes", db, inserts.events + deletes.events)
        found["deletes"] = deletes.figures()
    return found


def _recomputed(rival: Views, query: Query, stream: Stream, behind: int) -> dict[str, float]:
    """DuckDB: milliseconds to take a batch in, and to compute the query anew; medians."""
    took: list[float] = []
    anew: list[float] = []
    rival.recompute(query.body)
    for batch in stream.after(min(behind, len(stream) - BATCH), BATCH, SAMPLES * BATCH):
        began = time.process_time()
        rival.apply(batch)
        middle = time.process_time()
        rival.recompute(query.body)
        took.append(middle - began)
        anew.append(time.process_time() - middle)
    return {"take_in_ms": statistics.median(took) * 1e3, "recompute_ms": statistics.median(anew) * 1e3}
