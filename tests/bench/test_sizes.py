"""Cases at doubled sizes: each is measured, its growth is told, and one that takes too long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import sizes

pytest.importorskip("sqlglot")


@pytest.mark.jit_only
@pytest.mark.parametrize("name", sizes.CASES)
def test_each_case_can_be_measured(name: str) -> None:
    case = sizes.CASES[name]
    assert case.measured(case.sizes[0] // 10) > 0
    assert all(after == 2 * before for before, after in zip(case.sizes, case.sizes[1:], strict=False))


def test_growth_is_the_exponent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures: dict[int, dict[str, Any]] = {
        30: {"status": "ok", "figure": 0.5, "mb": 90},
        60: {"status": "ok", "figure": 2.0, "mb": 91},
        120: {"status": "timeout"},
    }
    monkeypatch.setattr(sizes, "SIZES", tmp_path / "sizes.jsonl")
    monkeypatch.setattr(sizes, "measured", lambda name, size: figures[size])
    assert sizes.main(["-c", "wide"]) == 1  # one took too long
    lines = [json.loads(line) for line in (tmp_path / "sizes.jsonl").read_text().splitlines()]
    assert [line.get("growth") for line in lines] == [None, 2.0, None]
    assert "timeout" in capsys.readouterr().out
    assert sizes.main(["-c", "wide", "--quick"]) == 0
