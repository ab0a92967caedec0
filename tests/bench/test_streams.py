"""The benchmark of streams: every query is written for both sides, and its figures are told as they are recorded."""

from __future__ import annotations

from dataclasses import replace

from bench import report_streams, streams
from bench.nexmark_queries import QUERIES
from bench.rivals import pathway_streams


def test_pathway_says_every_query() -> None:
    assert pathway_streams.QUERIES.keys() == QUERIES.keys() == report_streams.ASKS.keys()
    for name, (reads, _) in pathway_streams.QUERIES.items():
        assert set(reads) == set(QUERIES[name].reads)


def test_a_query_that_is_wrong_is_told(monkeypatch) -> None:
    recorded = []
    monkeypatch.setattr(streams, "_record", lambda *what, **figures: recorded.append((what, figures)))
    assert streams._nexmark(QUERIES["q2"], 30_000, "") == 0
    assert [what[1:] for what, _ in recorded] == [("q2", "lftj"), ("q2", "duckdb")]
    assert recorded[0][1]["rows"] > 0
    wrong = replace(QUERIES["q2"], sql="select auction, price from bid where auction % 123 = 1")
    assert streams._nexmark(wrong, 30_000, "") > 0
