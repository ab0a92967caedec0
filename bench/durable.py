"""A database in a file: what commits, loads, checkpoints and opening cost, beside SQLite and beside memory.

    python -m bench.durable [--quick] [--only commits load open kept checkpoint history]

    commits      one-row commits a second with each `sync`, beside sqlite3 inserting the same row with the same one, by
                 turns, and beside a database in memory; what they would take if nothing but that commit in memory and
                 sqlite3's writing of the entry were done (`least`)
    load         10 million rows from Parquet, into a file and into memory; bytes a row of pl1m and of its triangles
    open         10 million rows with GALEN evaluated: opening, a one-row change then; a million logged rows replayed
    kept         pl1m with triangles by a trace and two-step paths counted by triggers, with and without `traces=True`:
                 opening, a one-row change then, and a checkpoint after a change of 1,000 rows
    checkpoint   after a change of 1,000 rows; commits while one is made, beside commits without
    history      the rows that `changes(since)` returns, and what it reads for them

Each line goes to `bench/results/durable.jsonl`. Wall time, since disks are waited for.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lftj
from bench import results
from bench.graphs import ROOT
from lftj.durable.entry import LogEntry
from lftj.store.change import INSERTED, Change

DURABLE = results.RESULTS / "durable.jsonl"
SHARED = ROOT.parent / "shared" / "data"
EDGES = ".decl edge(a:number, b:number)"
TRIANGLES = EDGES + " tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z)."
GALEN = """
.decl p(a:number, b:number) .decl q(a:number, b:number, c:number) .decl r(a:number, b:number, c:number)
.decl c(a:number, b:number, c:number) .decl u(a:number, b:number, c:number) .decl s(a:number, b:number)
p(x, z)    :- p(x, y), p(y, z).
q(x, r, z) :- p(x, y), q(y, r, z).
p(x, z)    :- p(y, w), u(w, r, z), q(x, r, y).
p(x, z)    :- c(y, w, z), p(x, w), p(x, y).
q(x, o, z) :- q(x, r, z), s(r, o).
q(x, e, o) :- q(x, y, z), r(y, u, e), q(z, u, o).
"""

# One row of each of its relations, the one that many derived rows hang on last.
GALEN_ROWS = {**dict.fromkeys("rucq", (7, 8, 9)), "p": (7, 8), "s": (1, 2)}
FOLLOWED = TRIANGLES + " paths[x] = count : { edge(x, y), edge(y, _) }."


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk that the checkout is on: /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir=ROOT) as name:
        yield Path(name)


def size_of(path: Path) -> int:
    """Bytes of a database's file, and of what SQLite keeps beside it."""
    return sum(beside.stat().st_size for beside in path.parent.glob(f"{path.name}*"))


def timed(work: Callable[[], Any]) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def note(part: str, **figures: Any) -> None:
    """Keep figures, and print them."""
    results.append(DURABLE, {"part": part, **figures})
    shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
    print(part, shown, flush=True)


# -- commits -----------------------------------------------------------------------------------------------------------


def _commits(db: lftj.Database, start: int, n: int) -> float:
    began = time.perf_counter()
    for i in range(start, start + n):
        with db.transaction() as tx:
            tx.insert("edge", [(i, i)])
    return time.perf_counter() - began


def _sqlite(connection: sqlite3.Connection, start: int, n: int) -> float:
    began = time.perf_counter()
    for i in range(start, start + n):
        connection.execute("insert into edge values (?, ?)", (i, i))  # a transaction of its own
    return time.perf_counter() - began


def _entries(db: lftj.Database, connection: sqlite3.Connection, entry: bytes, start: int, n: int) -> float:
    """Commit in memory, and insert an entry like those of the log, by turns.

    By turns, since a processor that has waited for a disk finds its caches cold: both together take longer than each.
    """
    began = time.perf_counter()
    for i in range(start, start + n):
        with db.transaction() as tx:
            tx.insert("edge", [(i, i)])
        connection.execute("insert into log values (?, ?, ?, ?)", (i, began, entry, entry[:16]))
    return time.perf_counter() - began


def commits(quick: bool) -> None:
    """One-row commits, in turns of a few hundred."""
    turns, each = (3, 100) if quick else (15, 400)
    entry = LogEntry(changes={"edge": Change(np.array([[1], [1]]), np.array([INSERTED], np.int8))}).encoded()
    for sync in ("full", "normal", "off"):
        with folder() as where:
            db = lftj.Database(EDGES, path=where / "shop.lftj", sync=sync)
            memory, bound = lftj.Database(EDGES), lftj.Database(EDGES)
            other = sqlite3.connect(where / "other.db", isolation_level=None)
            other.execute("pragma journal_mode = wal")
            other.execute(f"pragma synchronous = {sync}")
            other.execute("create table edge(a integer, b integer, primary key (a, b)) without rowid")
            least = sqlite3.connect(where / "least.db", isolation_level=None)
            least.execute("pragma journal_mode = wal")
            least.execute(f"pragma synchronous = {sync}")
            least.execute("create table log(seq integer primary key, time real, entry blob, hash blob)")
            times: dict[str, list[float]] = {"lftj": [], "sqlite": [], "memory": [], "least": []}
            for turn in range(turns + 1):
                taken = {
                    "lftj": _commits(db, turn * each, each),
                    "sqlite": _sqlite(other, turn * each, each),
                    "memory": _commits(memory, turn * each, each),
                    "least": _entries(bound, least, entry, turn * each, each),
                }
                if turn:  # the first one is warm-up
                    for name, seconds in taken.items():
                        times[name].append(seconds / each)
            medians = {name: statistics.median(taken) for name, taken in times.items()}
            note(
                "commits",
                sync=sync,
                **{f"{name}_us": median * 1e6 for name, median in medians.items()},
                rate_of_sqlite=medians["sqlite"] / medians["lftj"],
                most_of_sqlite=medians["sqlite"] / medians["least"],
                time_of_memory=medians["lftj"] / medians["memory"],
            )
            least.close()
            other.close()
            db.close()


# -- load --------------------------------------------------------------------------------------------------------------


def load(quick: bool) -> None:
    """A load into a file beside one into memory, and how large files are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 200_000 if quick else 10_000_000
    with folder() as where:
        rng = np.random.default_rng(1)
        table = pa.table({name: rng.integers(0, 1_000_000, rows) for name in ("a", "b")})
        pq.write_table(table, where / "edge.parquet")
        taken: dict[str, list[float]] = {"file": [], "memory": []}
        for turn in range(4):
            path = where / f"{turn}.lftj"
            for name, db in (("memory", lftj.Database(EDGES)), ("file", lftj.Database(EDGES, path=path))):
                taken[name].append(timed(partial(db.load, "edge", where / "edge.parquet")))
                if name == "file":
                    db.close()
            size = size_of(path)
            path.unlink()
        best = {name: min(seconds) for name, seconds in taken.items()}
        note("load", rows=rows, **best, ratio=best["file"] / best["memory"], bytes_a_row=size / rows)
    graph = SHARED / "power_law" / "pl1m.tsv.zst"
    if graph.exists() and not quick:
        with folder() as where:
            path = where / "pl1m.lftj"
            with lftj.Database(EDGES, path=path) as db:
                db.load("edge", graph)
                n = len(db["edge"])
            alone = size_of(path)
            with lftj.Database(path=path) as db:
                db.rules("tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).")
                triangles = len(db["tri"])
            more = size_of(path) - alone
            note("size", rows=n, bytes_a_row=alone / n, triangles=triangles, bytes_a_triangle=more / triangles)


# -- opening -----------------------------------------------------------------------------------------------------------


def opening(quick: bool) -> None:
    """Opening what is large, a change then, and the replay of a log."""
    rows = 200_000 if quick else 10_000_000
    rng = np.random.default_rng(1)
    with folder() as where:
        path = where / "large.lftj"
        with_galen = (SHARED / "galen").exists() and not quick
        db = lftj.Database(EDGES + (GALEN if with_galen else ""), path=path)
        db.load("edge", rng.integers(0, 1_000_000, (rows, 2)))
        if with_galen:
            for name in "pqrcus":
                (source,) = (SHARED / "galen").glob(f"{name}.tsv*")
                db.load(name, source)
            db.evaluate()
        db.close()
        changed = {"edge": (1, 1), **(GALEN_ROWS if with_galen else {})}
        for traces in (False, True):
            if traces:
                with lftj.Database(path=path) as db:
                    for name, row in changed.items():
                        _insert(db, name, (*row[:-1], row[-1] + 10))  # the key orders are built
                    db.checkpoint(traces=True)
            _open_and_change(path, rows, traces, changed)
    with folder() as where:
        path = where / "log.lftj"
        db = lftj.Database(EDGES, path=path, sync="normal")
        batches, each = (10, 1_000) if quick else (100, 10_000)
        for _ in range(batches):
            with db.transaction() as tx:
                tx.insert("edge", rng.integers(0, 1_000_000, (each, 2)))
        assert db._file is not None
        db._file._finalizer()  # as a process that ends without closing
        began = time.perf_counter()
        again = lftj.Database(path=path)
        seconds = time.perf_counter() - began
        note("replay", rows=batches * each, seconds=seconds, rows_a_second=batches * each / seconds)
        again.close()


def _open_and_change(path: Path, rows: int, traces: bool, changed: dict[str, tuple[int, ...]]) -> None:
    """Open a file, and change some of its relations row by row. `traces`: whether its checkpoint has them."""
    began = time.perf_counter()
    db = lftj.Database(path=path)
    seconds = time.perf_counter() - began
    changes: dict[str, list[float]] = {}
    for name, row in changed.items():
        for i in range(4):
            insert = partial(_insert, db, name, (*row[:-1], row[-1] + i + 20 * traces))
            changes.setdefault(name, []).append(timed(insert))
    note(
        "open",
        rows=rows,
        traces=traces,
        derived=sum(len(db[name]) for name in "pq" if name in db),
        seconds=seconds,
        file_mb=size_of(path) / 1e6,
        **{f"first_{name}_ms": taken[0] * 1e3 for name, taken in changes.items()},
        **{f"later_{name}_ms": statistics.median(taken[1:]) * 1e3 for name, taken in changes.items()},
    )
    db.close()


def _insert(db: lftj.Database, name: str, row: tuple[int, ...]) -> None:
    with db.transaction() as tx:
        tx.insert(name, [row])


# -- what rules are followed by ----------------------------------------------------------------------------------------


def kept(quick: bool) -> None:
    """What `checkpoint(traces=True)` costs and saves."""
    graph = SHARED / "power_law" / "pl1m.tsv.zst"
    for traces in (False, True):
        rng = np.random.default_rng(1)
        rows = rng.integers(0, 300, (5_000, 2)) if quick or not graph.exists() else graph
        with folder() as where:
            path = where / "pl1m.lftj"
            with lftj.Database(path=path) as db:
                db.rules(FOLLOWED, maintain={"tri": "trace", "paths": "triggers"})
                db.load("edge", rows)
                db.evaluate()
                for i in range(2):  # what follows changes is made
                    _insert(db, "edge", (1, 2_000_000 + i))
                db.checkpoint(traces=traces)
                with db.transaction() as tx:
                    tx.insert("edge", rng.integers(0, 1_000_000, (1000, 2)))
                after = timed(db.checkpoint)
            began = time.perf_counter()
            with lftj.Database(path=path) as db:
                seconds = time.perf_counter() - began
                first = timed(partial(_insert, db, "edge", (2, 2_000_000)))
                figures = {"rows": len(db["edge"]), "paths": len(db["paths"]), "triangles": len(db["tri"])}
            size = size_of(path) / 1e6
            note(
                "kept",
                traces=traces,
                **figures,
                seconds=seconds,
                first_ms=first * 1e3,
                after_1000_ms=after * 1e3,
                file_mb=size,
            )


# -- checkpoints -------------------------------------------------------------------------------------------------------


def checkpoint(quick: bool) -> None:
    """A checkpoint after a change of 1,000 rows, and commits while one is made."""
    rows = 200_000 if quick else 10_000_000
    rng = np.random.default_rng(1)
    with folder() as where:
        db = lftj.Database(EDGES, path=where / "large.lftj")
        db.load("edge", rng.integers(0, 1_000_000, (rows, 2)))
        db.checkpoint()
        taken = []
        for _ in range(5):
            with db.transaction() as tx:
                tx.insert("edge", rng.integers(0, 1_000_000, (1000, 2)))
            taken.append(timed(db.checkpoint))
        alone = _latencies(db, 200 if quick else 1000)
        with db.transaction() as tx:
            tx.insert("edge", rng.integers(0, 1_000_000, (rows // 10, 2)))
        beside = threading.Thread(target=db.checkpoint)
        beside.start()
        during = _latencies(db, 200 if quick else 1000, beside)
        beside.join()
        note(
            "checkpoint",
            rows=rows,
            after_1000_ms=statistics.median(taken) * 1e3,
            first_ms=taken[0] * 1e3,
            commit_p99_ms=float(np.percentile(alone, 99)) * 1e3,
            during_p99_ms=float(np.percentile(during, 99)) * 1e3,
            ratio=float(np.percentile(during, 99) / np.percentile(alone, 99)),
            commits_during=len(during),
        )
        db.close()


def _latencies(db: lftj.Database, n: int, while_: threading.Thread | None = None) -> list[float]:
    """Seconds of one-row commits: `n` of them, or as long as a thread runs."""
    taken: list[float] = []
    while len(taken) < n and (while_ is None or while_.is_alive()):
        i = 2_000_000 + len(taken)
        taken.append(timed(partial(_insert, db, "edge", (i, i))))
    return taken


# -- history -----------------------------------------------------------------------------------------------------------


def history(quick: bool) -> None:
    """What `changes(since)` reads of 1,000 commits, counted in rows."""
    n = 100 if quick else 1000
    rng = np.random.default_rng(1)
    with folder() as where:
        db = lftj.Database(TRIANGLES, path=where / "shop.lftj", sync="normal", retain=None)
        db.load("edge", rng.integers(0, 300, (20_000, 2)))
        db.evaluate()
        begin = db.seq
        for _ in range(n):
            with db.transaction() as tx:
                tx.insert("edge", rng.integers(0, 300, (5, 2)))
        found: list[Any] = []
        seconds = timed(lambda: found.extend(db.changes("tri", since=begin)))
        rows = sum(len(changed.delta.inserted) + len(changed.delta.erased) for changed in found)
        assert db._file is not None
        sql = "select sum(length(delta)) from deltas where relation = 'tri' and seq > ?"
        read = db._file.container.connection.execute(sql, (begin,)).fetchone()[0]
        note("history", commits=n, rows=rows, seconds=seconds, bytes_read=read, bytes_a_row=read / rows)
        db.close()


PARTS = {"commits": commits, "load": load, "open": opening, "kept": kept, "checkpoint": checkpoint, "history": history}


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small inputs, to see that it works")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    asked = parser.parse_args(arguments)
    os.environ.setdefault("LFTJ_QUIET", "1")
    for part in asked.only:
        PARTS[part](asked.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
