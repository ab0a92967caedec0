"""Windows and recursion kept up to date: engines come to the same answers at size tiny, and a difference is found."""

from __future__ import annotations

import pytest

from bench import windows

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")


@pytest.mark.jit_only
def test_views_are_what_duckdb_computes(capsys: pytest.CaptureFixture[str]) -> None:
    assert windows.main(["--quick"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["windows", "rolling", "tree", "chain"]


@pytest.mark.jit_only
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(windows, "apply", lambda db, text: None)
    assert windows.main(["--quick"]) == 1
    assert "engines disagree: running" in capsys.readouterr().err
