"""Views of a shop: engines come to the same answers at size tiny, and a difference is found."""

from __future__ import annotations

import pytest

from bench import views

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")


@pytest.mark.jit_only
def test_views_are_what_duckdb_computes(capsys: pytest.CaptureFixture[str]) -> None:
    assert views.main(["--quick"]) == 0
    assert capsys.readouterr().out.startswith("orders 3,000")


@pytest.mark.jit_only
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(views, "insert", lambda db, rows: None)
    assert views.main(["--quick"]) == 1
    assert "engines disagree: revenue" in capsys.readouterr().err
