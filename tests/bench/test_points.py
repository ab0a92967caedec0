"""The point queries: engines agree at size tiny, every question is measured, and the table shows what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import points, report, results

pytest.importorskip("duckdb")


@pytest.mark.jit_only
def test_every_question_is_answered_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert points.main(["--quick"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in shown] == [question.name for question in points.QUESTIONS]


@pytest.mark.jit_only
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = points.engines

    def wrong(question: points.Question, rows: Any) -> dict[str, Any]:
        ask = real(question, rows)
        return ask | {"sqlite": lambda key: [*ask["sqlite"](key), (-1,)]}

    monkeypatch.setattr(points, "engines", wrong)
    assert points.main(["--quick"]) == 1
    assert "rows of a number" in capsys.readouterr().err


def test_the_table_shows_the_last_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    micros = {"lftj": 9.0, "lftj, decoded": 14.0, "sqlite": 3.0, "duckdb": 400.0}
    line = {"question": "q", "query": "e($x, y)", "rows": 10, "answers": 4.96}
    for first in (99.0, 9.0):
        results.append(tmp_path / "points.jsonl", {**line, "micros": {**micros, "lftj": first}})
    assert report.points_table().splitlines()[2] == "| q: `e($x, y)` | 5.0 | **9.0** | 14.0 | 3.0 | 400 | 20 µs |"
