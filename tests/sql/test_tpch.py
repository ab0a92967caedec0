"""TPC-H's 22 queries as views over a stream of its tables: what DuckDB computes anew, after every batch.

Catches: a query that is translated to another one, a strategy that loses rows of its view, an answer from no rows at
all. Each view is kept as lftj chooses, and once more by triggers wherever they fit.
"""

from __future__ import annotations

import pytest

from bench.rivals.duckdb_views import Views
from bench.tpch_made import made
from bench.tpch_queries import QUERIES, Query
from bench.tpch_stream import Part, Stream
from bench.triggers_run import differ
from bench.triggers_tpch import database, reads
from tests.conftest import IN_CI, JIT

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

pytestmark = pytest.mark.skipif(not JIT, reason="interpreted kernels take minutes for it")

#: Events of the stream that are taken in, from the end of its inserts on.
BATCHES, SIZE = 3, 400


@pytest.fixture(scope="module")
def whole() -> Stream:
    return Stream(made(0.001))


# In CI triggers are asked for of events alone.
@pytest.mark.parametrize("maintain", [None] if IN_CI else [None, "triggers"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: query.name)
def test_views_follow_transactions(whole: Stream, query: Query, maintain: str | None) -> None:
    stream = whole.of(reads(query))
    behind = stream.inserts - SIZE
    db, rival = database(query, maintain), Views(stream.contents(behind))
    for name, table in stream.contents(behind).items():
        db.load(name, table)
    expected = rival.answer(query.body)
    assert any(None not in row for row in expected), "the data has no answer"
    assert differ(db.sql(f"select * from {query.name}"), expected) == ""
    for batch in stream.after(behind, SIZE, BATCHES * SIZE):
        with db.transaction() as tx:
            for name, sign, rows in batch:
                (tx.insert if sign > 0 else tx.erase)(name, rows)
        rival.apply(batch)
        assert differ(db.sql(f"select * from {query.name}"), rival.answer(query.body)) == ""


@pytest.mark.parametrize("maintain", [None, "triggers"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: query.name)
def test_views_follow_events(whole: Stream, query: Query, maintain: str | None) -> None:
    stream = whole.of(reads(query))
    db, events = database(query, maintain), 0
    parts: tuple[Part, ...] = ("inserts", "deletes")
    for part in parts:
        blocks = [block for batch in stream.batches(part, SIZE, 8_000) for block in batch]
        db.apply(blocks)
        events += sum(len(rows) for _, _, rows in blocks)
        if part == "inserts" and events < stream.inserts:
            break
    rival = Views(stream.contents(events))
    assert differ(db.sql(f"select * from {query.name}"), rival.answer(query.body)) == ""
    assert differ(db.sql(query.text), rival.answer(query.text)) == ""
