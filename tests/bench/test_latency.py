"""The latency benchmark: engines agree on tiny streams, in the same shape of line that is committed."""

from __future__ import annotations

from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import graphs, latency, maintained, pairs, results, updates
from bench.maintained import WAYS
from bench.updates import Batch

TINY = ((1, 6), (10, 3), (30, 2))
NO_EDGES = np.empty((0, 2), np.int64)


def triangles(rows: graphs.Rows) -> set[tuple[int, int, int]]:
    edges = {tuple(row) for row in rows.tolist()}
    return {(x, y, z) for x, y in edges for v, z in edges if v == y and (x, z) in edges}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Small streams."""
    monkeypatch.setattr(updates, "SHARED", tmp_path)
    monkeypatch.setattr(updates, "PUBLISHED", TINY)
    monkeypatch.setattr(maintained, "warm", lambda: None)


@pytest.mark.jit_only
def test_engines_agree_on_every_batch(tiny: None) -> None:
    lines = []
    for engine in latency.ENGINES:
        request = {"graph": "tiny", "engine": engine, "mode": "stream", "large": [[45, 2]]}
        line = {**request, **latency.streamed(request)}
        assert line["count"] == len(triangles(graphs.load("tiny").rows))
        assert [m["size"] for m in line["sizes"]] == [1, 10, 30, 45]
        lines.append(line)
    assert latency.disagreements(lines) == []
    by_engine = {line["engine"]: line for line in lines}
    assert by_engine["lftj-interval"]["sizes"][0]["strategies"] == {"trace": 5}
    assert by_engine["lftj-recompute"]["sizes"][0]["strategies"] == {"recompute": 5}
    assert by_engine["lftj-interval"]["records"] > by_engine["lftj-node"]["records"] > 0
    assert by_engine["lftj-recompute"]["records"] == 0
    lines[0]["sizes"][1]["digests"][2] = "other"
    assert len(latency.disagreements(lines)) == len(latency.ENGINES) - 1


@pytest.mark.jit_only
def test_all_of_a_round_get_every_batch(tiny: None) -> None:
    found = pairs.paired("tiny", 3, (10, 45, 10_000))
    assert [(f["size"], [len(ms) for ms in f["ms"].values()]) for f in found["sizes"]] == [(10, [3] * 3), (45, [3] * 3)]
    rows = graphs.load("tiny").rows
    stream = groupby(updates.stream("tiny", rows), key=lambda batch: batch.size)
    rows = updates.changed(rows, [batch for _, group in stream for batch in list(group)[: pairs.BEFORE]])
    rows = updates.changed(rows, list(updates.generated(rows, [(10, 3), (45, 3)], seed=21)))
    assert found["count"] == len(triangles(rows))


@pytest.mark.jit_only
def test_the_choice_and_what_is_forced_get_every_batch(tiny: None) -> None:
    found = pairs.published("tiny", {1: 4, 10: 2})
    assert [(f["size"], {len(ms) for ms in f["ms"].values()}) for f in found["published"]] == [(1, {4}), (10, {2})]
    rows = graphs.load("tiny").rows
    batches = [batch for batch in updates.stream("tiny", rows) if batch.size in (1, 10)]
    assert found["count"] == len(triangles(updates.changed(rows, batches)))
    ms = {"lftj": [1.0, 9.0, 3.0], "lftj-delta": [2.0, 1.0, 8.0], "lftj-interval": [4.0, 4.0, 4.0]}
    assert pairs.choice_ratio({"ms": ms}) == 1.5


@pytest.mark.jit_only
def test_delta_queries_by_hand_are_right() -> None:
    from bench.rivals.deltas import TriangleDeltas

    rows = graphs.load("tiny").rows
    subject = TriangleDeltas()
    subject.load(rows)
    there = triangles(rows)
    assert subject.evaluate() == len(there)
    for batch in updates.generated(rows, TINY, seed=3):
        rows = updates.changed(rows, [batch])
        subject.apply(batch)
        gone, come = ({tuple(row) for row in part.tolist()} for part in subject.change())
        after = triangles(rows)
        assert (gone, come) == (there - after, after - there)
        there = after


@pytest.mark.jit_only
@pytest.mark.parametrize("mode", ["arrivals", "window"])
def test_edges_in_time_leave_the_triangles_there_are(mode: str, tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = np.array([pair for _ in range(3) for pair in combinations(range(9), 2)])
    events = updates.Events(edges[np.random.default_rng(4).permutation(len(edges))], np.arange(len(edges)), "test")
    monkeypatch.setattr(updates, "temporal", lambda name: events)
    monkeypatch.setitem(updates.TEMPORAL, "CollegeMsg", 30)
    request = {"graph": "CollegeMsg", "engine": "lftj", "mode": mode}
    answer = latency.replayed(request)
    left = updates.changed(NO_EDGES, list(updates.edges_in_time(events, 30 if mode == "window" else None)))
    assert answer["edges_left"] == len(left)
    assert answer["count"] == len(triangles(left))
    assert answer["median_ms"] > 0


def test_merged_batches() -> None:
    rows = graphs.load("tiny").rows
    batches = list(updates.generated(rows, [(10, 4)], seed=5))
    assert np.array_equal(updates.changed(rows, [latency.merged(rows, batches)]), updates.changed(rows, batches))


def test_percentile_is_one_of_the_values() -> None:
    assert maintained.percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert maintained.percentile([1.0, 2.0], 0.99) == 2.0
    assert maintained.percentile([float(i) for i in range(1, 201)], 0.99) == 198.0


def test_of_several_processes_the_middle_one_counts() -> None:
    def reply(kernel: float, *medians: float) -> dict[str, Any]:
        return {
            "status": "ok",
            "kernel_ms": kernel,
            "sizes": [{"size": i, "median_ms": m} for i, m in enumerate(medians)],
        }

    found = latency.middle([reply(5.0, 3.0, 1.0), reply(7.0, 1.0, 2.0), reply(6.0, 2.0, 9.0)])
    assert [f["median_ms"] for f in found["sizes"]] == [2.0, 2.0]
    assert (found["kernel_ms"], found["repeats"]) == (6.0, 3)
    failed = {"status": "timeout"}
    assert latency.middle([failed, reply(1.0)]) is failed


def test_digests_tell_sets_of_rows_apart() -> None:
    rows = np.array([[1, 2], [3, 4]])
    assert maintained.digest(rows) == maintained.digest(rows[::-1])
    assert maintained.digest(rows) != maintained.digest(rows[:, ::-1])
    assert maintained.digest(rows[:0]) == 0


def test_a_run_appends_one_line_per_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def answer(module: str, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        asked.append(request)
        return {"status": "timeout", "limit": timeout}

    monkeypatch.setattr(latency, "answer_of", answer)
    path = tmp_path / "latency.jsonl"
    assert latency.main(["-g", "tiny,CollegeMsg", "-e", "lftj,duckdb", "-o", str(path)]) == 0
    assert [(r["graph"], r["mode"], r["engine"]) for r in asked] == [
        ("tiny", "stream", "lftj"),
        ("tiny", "stream", "duckdb"),
        ("CollegeMsg", "arrivals", "lftj"),
        ("CollegeMsg", "window", "lftj"),
    ]
    assert len(list(results.read(path))) == 4
    assert set(WAYS) < set(latency.ENGINES)
    assert Batch(NO_EDGES, NO_EDGES).size == 0
