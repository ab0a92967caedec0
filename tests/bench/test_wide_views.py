"""Views over many columns that may be null: rules grow with the columns, and a view of too many is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import wide_views

pytest.importorskip("sqlglot")


@pytest.mark.jit_only
def test_rules_grow_with_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wide_views, "WIDE", tmp_path / "wide_views.jsonl")
    forms = ["arithmetic", "case", "coalesced sum"]
    assert wide_views.main(["-k", "8,16", "-f", ",".join(forms)]) == 0
    rules = [int(line.split()[-4]) for line in capsys.readouterr().out.splitlines()]
    assert len(rules) == 2 * len(forms)
    assert all(sixteen < 2.2 * eight for eight, sixteen in zip(rules[::2], rules[1::2], strict=True))


@pytest.mark.jit_only
def test_a_view_of_too_many_rules_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_views, "WIDE", tmp_path / "wide_views.jsonl")
    monkeypatch.setattr(wide_views, "MOST", 1)
    assert wide_views.main(["-k", "6", "-f", "case"]) == 1
