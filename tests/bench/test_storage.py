"""The storage benchmark measures what it says: its compiled loop makes the same versions as `Version.update`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import results, storage
from scantree.memory import Arena
from scantree.version import Store


def test_one_by_one_is_what_update_does() -> None:
    store = Store(Arena(), keys=2, page_rows=4, dir_rows=4)
    start = store.build([np.arange(0, 60, 3), np.zeros(20, np.int64)])
    rows = storage.random_rows(150, 60, 3)
    ops = np.where(np.arange(150) % 3, 1, -1).astype(np.int8)
    after, seconds = storage.changed_one_by_one(start, rows, ops)
    expected = start
    for row, op in zip(rows, ops, strict=True):
        expected, _ = expected.update(row[:, None], np.array([op]))
    assert np.array_equal(after.columns(), expected.columns())
    assert len(start) == 20
    assert seconds >= 0
    after.check()
    start.check()


def test_no_effective_change_is_the_same_version() -> None:
    store = Store(Arena(), keys=2)
    start = store.build([np.arange(5), np.arange(5)])
    after, _ = storage.changed_one_by_one(start, np.array([[2, 2]]), np.ones(1, np.int8))
    assert after is start


@pytest.mark.jit_only
def test_prints_and_records_all_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(storage, "STORAGE", tmp_path / "storage.jsonl")
    monkeypatch.setattr(storage, "INSERTS", 5)
    storage.main(["4_000"])
    (line,) = results.read(tmp_path / "storage.jsonl")
    printed = capsys.readouterr().out
    for figure in ("build_seconds", "insert_us_median", "bytes_per_row_built", "bytes_per_row_churned", "fill_churned"):
        assert line[figure] > 0
        assert figure in printed
