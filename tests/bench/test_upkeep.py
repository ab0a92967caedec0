"""The other benchmarks of maintenance on tiny data: the promise, recording, endurance, stabbing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import endurance, graphs, maintained, promise, recording, results, stabbing
from scantree.memory import Arena
from scantree.version import Store
from sensitivity import records


@pytest.fixture(autouse=True)
def unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled that the test does not need."""
    monkeypatch.setattr(maintained, "warm", lambda: None)


@pytest.mark.parametrize("kind", promise.KINDS)
@pytest.mark.parametrize("arity", [2, 3])
def test_relations_are_of_the_size_asked_for(kind: str, arity: int) -> None:
    rows = promise.relation(arity, kind, 600)
    assert rows.shape == (600, arity)
    assert np.array_equal(graphs.distinct(rows), rows)
    if arity == 2:
        assert (rows[:, 0] != rows[:, 1]).all()
        largest = int(np.bincount(rows[:, 0]).max())
        assert largest > 60 if kind == "hubs" else largest < 60


def test_batches_go_up_to_half_the_data() -> None:
    assert [size for size, _ in promise.sizes(10_000)] == [1, 10, 100, 1_000, 5_000]
    assert [size for size, _ in promise.sizes(100)] == [1, 10, 50]


@pytest.mark.jit_only
@pytest.mark.parametrize("shape", promise.SHAPES)
def test_the_promise_is_kept(shape: str) -> None:
    points = promise.measured(promise.SHAPES[shape], "power law", 200)
    assert [p["batch"] for p in points] == [size for size, n in promise.sizes(200) for _ in range(n)]
    figures = promise.summary(points)
    assert 0 < figures["ratio_median"] <= figures["ratio_max"] < 10
    assert 0.8 < figures["slope"] < 1.2


def test_slope_and_ratio() -> None:
    points = [dict(zip(promise.COLUMNS, (1, 3 * d, d, 0, 0), strict=True)) for d in (1, 10, 100)]
    assert promise.summary(points) == {"ratio_max": 3, "ratio_median": 3, "slope": pytest.approx(1.0)}


@pytest.mark.jit_only
def test_promise_records_every_transaction(tmp_path: Path) -> None:
    path = tmp_path / "promise.jsonl"
    promise.main(["-s", "triangle", "-g", "hubs", "--rows", "80", "-o", str(path)])
    (line,) = results.read(path)
    assert results.key(line) == ("triangle", "hubs", "promise", "lftj-interval")
    assert all(len(point) == len(promise.COLUMNS) for point in line["points"])


@pytest.mark.jit_only
@pytest.mark.parametrize("engine", recording.ENGINES)
def test_recording_finds_the_same_rows(engine: str) -> None:
    line = recording.measured({"graph": "tiny", "engine": engine, "repeats": 2})
    assert len(line["evaluated"]) == len(line["recorded"]) == 2
    assert line["records"] == sum(site["records"] for site in line["sites"].values())
    assert line["records"] > 0 or engine == "lftj"  # which may follow the rule by delta
    assert line["ratio"] > 0


def test_single_edges_change_the_graph_by_turns() -> None:
    rows = graphs.load("tiny").rows
    there = {tuple(row) for row in rows.tolist()}
    for i, batch in enumerate(endurance.single_edges(rows, 24, 400, seed=1)):
        (edge,) = {tuple(row) for row in (batch.erase if i % 2 else batch.insert).tolist()}
        assert batch.size == 1
        assert (edge in there) == bool(i % 2)
        there ^= {edge}
    assert len(there) == len(rows)


@pytest.mark.jit_only
def test_endurance_reports_ten_tenths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "endurance.jsonl"
    endurance.main(["-n", "60", "--edges", "200", "-o", str(path)])
    (line,) = results.read(path)
    assert len(line["deciles"]) == 10
    assert line["transactions"] == 60
    assert "last tenth / first tenth" in capsys.readouterr().out


def test_key_before() -> None:
    store = Store(Arena(), keys=2, page_rows=4, dir_rows=2)
    rows = np.array([(a, b) for a in range(0, 8, 2) for b in range(0, 20, 2)])
    version = store.build(list(rows.T))
    mem, shape = store.arena.space.mem, store.shape
    for a in range(9):
        for b in range(-1, 22):
            below = [int(y) for x, y in rows if x == a and y < b]
            found = stabbing.key_before(mem, version.root, shape, np.array([a, b]))
            assert found == max(below, default=records.KEY_MIN)


def test_ends_are_the_least_keys_from_the_starts_on() -> None:
    keys = np.array([[1, 1, 3, 3], [5, 9, 2, 7]])
    found = np.array([[1, 1, 1, 2, 3, 3], [records.KEY_MIN, 6, 10, 0, 3, 8]])
    assert stabbing.ends(found, keys).tolist() == [5, 9, records.KEY_MAX, records.KEY_MAX, 7, records.KEY_MAX]


@pytest.mark.jit_only
def test_ranges_and_stabbing_agree() -> None:
    figures = stabbing.compared(graphs.power_law(60, 900, 0.4, 0.4, 2), 400, repeats=1)
    assert figures["records_per_lookup"] > 0.5
    assert figures["lookups"] == 400
    assert figures["ranges_bytes_per_record"] < figures["intervals_bytes_per_record"]
