"""Point queries: prepared questions with few answers, over a relation of a million rows. CPU time of each.

    python -m bench.points [-n rows] [--quick]

Five questions are asked with random keys, of lftj (`db.prepare_query`, the answer alone and with its rows decoded), of
sqlite (in memory, every column order indexed, rows fetched) and of DuckDB (in memory, rows fetched), and the answers
compared. Keys are asked in batches that the engines take by turns; the figures are medians over the batches. Each line
goes to `bench/results/points.jsonl`. Exit code 1 if engines disagree.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import lftj
from bench import results

POINTS = results.RESULTS / "points.jsonl"
BATCH, BATCHES = 100, 101
#: Microseconds that a question may take, of the issue.
BOUND = 20.0


class Question(NamedTuple):
    """A query with parameters, the same in SQL, and which keys it is asked with: k nodes, t texts, b bounds."""

    name: str
    query: str
    sql: str
    keys: str


QUESTIONS = (
    Question("rows of a number", "e($x, y)", "SELECT b FROM e WHERE a = ?", "k"),
    Question("is the row there", "e($x, $y)", "SELECT 1 FROM e WHERE a = ? AND b = ?", "kk"),
    Question("rows of a text", "owns($who, y)", "SELECT b FROM owns WHERE who = ?", "t"),
    Question("rows of a number below a bound", "e($x, y), y < $b", "SELECT b FROM e WHERE a = ? AND b < ?", "kb"),
    Question(
        "two steps",
        "e($x, y), e(y, z)",
        "SELECT p.b, q.b FROM e p JOIN e q ON q.a = p.b WHERE p.a = ?",
        "k",
    ),
)


def keys_of(kinds: str, n: int, nodes: int, seed: int) -> list[tuple[Any, ...]]:
    """`n` keys of a question."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, nodes, n).tolist() for _ in kinds]
    return [
        tuple(f"name {v}" if kind == "t" else v for kind, v in zip(kinds, row, strict=True))
        for row in zip(*columns, strict=True)
    ]


def engines(question: Question, rows: np.ndarray[Any, Any]) -> dict[str, Callable[[tuple[Any, ...]], Any]]:
    """What answers a key, by engine; all but "lftj" give a list of rows."""
    import duckdb
    import pyarrow as pa

    texts = pa.array([f"name {a}" for a in rows[:, 0].tolist()])
    db = lftj.Database(".decl e(a:number, b:number)  .decl owns(who:symbol, b:number)")
    db.load("e", rows)
    db.load("owns", pa.table({"who": texts, "b": rows[:, 1]}))
    prepared = db.prepare_query(question.query)
    names = list(prepared.parameters)
    lite = sqlite3.connect(":memory:")
    duck = duckdb.connect()
    plain = pa.table({"a": rows[:, 0], "b": rows[:, 1]})
    named = pa.table({"who": texts, "b": rows[:, 1]})
    duck.execute("CREATE TABLE e AS SELECT DISTINCT * FROM plain ORDER BY a, b")
    duck.execute("CREATE TABLE owns AS SELECT DISTINCT * FROM named ORDER BY who, b")
    del plain, named
    lite.execute("CREATE TABLE e(a INTEGER, b INTEGER, PRIMARY KEY(a, b)) WITHOUT ROWID")
    lite.execute("CREATE TABLE owns(who TEXT, b INTEGER, PRIMARY KEY(who, b)) WITHOUT ROWID")
    lite.executemany("INSERT OR IGNORE INTO e VALUES (?, ?)", rows.tolist())
    lite.executemany(
        "INSERT OR IGNORE INTO owns VALUES (?, ?)", zip(texts.to_pylist(), rows[:, 1].tolist(), strict=True)
    )

    def ask(key: tuple[Any, ...]) -> Any:
        return prepared(**dict(zip(names, key, strict=True)))

    return {
        "lftj": ask,
        "lftj, decoded": lambda key: list(ask(key)),
        "sqlite": lambda key: lite.execute(question.sql, key).fetchall(),
        "duckdb": lambda key: duck.execute(question.sql, key).fetchall(),
    }


def measured(question: Question, rows: np.ndarray[Any, Any], batches: int) -> dict[str, Any]:
    """The medians over batches, in microseconds a question, and how many rows an answer has; raises if they differ."""
    nodes = int(rows.max()) + 1
    ask = engines(question, rows)
    answers = 0
    for key in keys_of(question.keys, 200, nodes, seed=1):
        found = {name: sorted(map(tuple, engine(key))) for name, engine in ask.items()}
        # A question without variables is answered by the empty row, which SQL has no word for.
        shapes = {name: len(got) if question.query == "e($x, $y)" else got for name, got in found.items()}
        assert all(shape == shapes["sqlite"] for shape in shapes.values()), (question, key, shapes)
        answers += len(found["sqlite"])
    took: dict[str, list[float]] = {name: [] for name in ask}
    for batch in range(batches):
        keys = keys_of(question.keys, BATCH, nodes, seed=batch + 2)
        for name, engine in ask.items():
            some = keys[: BATCH // 10] if name == "duckdb" else keys
            start = time.process_time()
            for key in some:
                engine(key)
            took[name].append((time.process_time() - start) / len(some) * 1e6)
    return {
        "question": question.name,
        "query": question.query,
        "rows": len(rows),
        "answers": answers / 200,
        "micros": {name: statistics.median(times) for name, times in took.items()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and record; 1 if engines disagree."""
    parser = argparse.ArgumentParser(prog="bench.points")
    parser.add_argument("-n", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="few rows and batches; nothing is recorded")
    given = parser.parse_args(arguments)
    n = 2_000 if given.quick else given.n
    rng = np.random.default_rng(7)
    rows = rng.integers(0, n // 5, (n, 2))
    for question in QUESTIONS:
        try:
            line = measured(question, rows, 3 if given.quick else BATCHES)
        except AssertionError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        shown = ", ".join(f"{name} {micros:.1f}" for name, micros in line["micros"].items())
        sys.stdout.write(f"{question.name}: {shown} µs\n")
        if not given.quick:
            results.append(POINTS, line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
