"""Views of a shop, and quantiles: engines come to the same answers at size tiny, and a difference is found."""

from __future__ import annotations

import pytest

from bench import quantiles, views

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


@pytest.mark.jit_only
def test_quantiles_are_what_duckdb_computes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quantiles.main(["--quick"]) == 0
    monkeypatch.setattr(quantiles, "changed", lambda db, rows, *, gone: None)
    assert quantiles.main(["--quick"]) == 1
    assert "engines disagree" in capsys.readouterr().err
