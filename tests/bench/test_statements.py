"""Statements of one row: engines come to the same tables at size tiny, and a difference is found."""

from __future__ import annotations

import pytest

from bench import statements

pytest.importorskip("sqlglot")


@pytest.mark.jit_only
def test_every_case_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert statements.main(["--quick"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(": sqlite")[0] for line in shown] == [case.name for case in statements.CASES]


@pytest.mark.jit_only
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = statements.engines

    def wrong(case: statements.Case, n: int) -> object:
        carry_out, held = real(case, n)
        return carry_out | {"sqlite": lambda i: carry_out["sqlite"](i + 1)}, held

    monkeypatch.setattr(statements, "engines", wrong)
    assert statements.main(["--quick"]) == 1
    assert "engines disagree: insert" in capsys.readouterr().err
