"""Update streams: every row of every batch changes the relation, and sizes are those asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import graphs, updates
from bench.updates import Batch, Events

Row = tuple[int, ...]


def rows_of(part: graphs.Rows) -> set[Row]:
    return {tuple(row) for row in part.tolist()}


def follow(rows: graphs.Rows, batches: list[Batch]) -> set[Row]:
    """The relation after the batches; each of their rows must change it."""
    there = rows_of(rows)
    for batch in batches:
        erase, insert = rows_of(batch.erase), rows_of(batch.insert)
        assert len(erase) + len(insert) == batch.size
        assert erase <= there
        assert not insert & there
        there -= erase
        there |= insert
    return there


@pytest.mark.parametrize("name", ["tiny", "tiny-ternary"])
def test_generated_batches_change_what_they_say(name: str) -> None:
    rows = graphs.load(name).rows
    batches = list(updates.generated(rows, [(1, 8), (7, 4), (40, 2)], seed=1))
    assert [b.size for b in batches] == [1] * 8 + [7] * 4 + [40] * 2
    assert sum(len(b.erase) for b in batches[:8]) == 4
    assert all(len(set(row)) > 1 for b in batches for row in b.insert.tolist())
    after = follow(rows, batches)
    assert rows_of(updates.changed(rows, batches)) == after


def test_changed_keeps_the_last_word() -> None:
    rows = np.array([[0, 1], [2, 3]])
    none = np.empty((0, 2), np.int64)
    there_and_back = [Batch(rows[:1], none), Batch(none, rows[:1]), Batch(none, np.array([[9, 1]]))]
    assert updates.changed(rows, there_and_back).tolist() == [[0, 1], [2, 3], [9, 1]]
    assert updates.changed(rows, []) is rows


def test_a_stream_without_a_file_is_generated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(updates, "SHARED", tmp_path)
    rows = graphs.power_law(300, 20_000, 0.1, 0.1, 1)
    batches = list(updates.stream("pl1m", rows))
    assert [(b.size) for b in batches] == [size for size, n in updates.PUBLISHED for _ in range(n)]
    follow(rows, batches[:340])


def test_published_streams_change_what_they_say() -> None:
    if not (updates.SHARED / "power_law").exists():
        pytest.skip("needs ../shared/data")
    rows = graphs.load("pl1m").rows
    batches = list(updates.stream("pl1m", rows))
    assert [b.size for b in batches] == [size for size, n in updates.PUBLISHED for _ in range(n)]
    follow(rows, batches)


def test_a_window_of_time() -> None:
    edges = np.array([[1, 2], [1, 3], [1, 2], [2, 3], [4, 5], [4, 5]])
    events = Events(edges, np.array([0, 5, 8, 12, 30, 31]), "test")
    batches = list(updates.edges_in_time(events, 10))
    changes = [(b.erase.tolist(), b.insert.tolist()) for b in batches]
    # 1-2 is renewed at 8, so it outlives 10; the last event changes nothing.
    assert changes == [
        ([], [[1, 2]]),
        ([], [[1, 3]]),
        ([], [[2, 3]]),
        ([[1, 3], [1, 2], [2, 3]], [[4, 5]]),
    ]
    assert len(list(updates.edges_in_time(events, None))) == 4


def test_temporal_graphs_have_stand_ins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(updates, "SHARED", tmp_path)
    events = updates.temporal("soc-bitcoin-otc")
    assert events.source == "generated"
    assert (events.edges[:, 0] < events.edges[:, 1]).all()
    assert (np.diff(events.times) >= 0).all()
