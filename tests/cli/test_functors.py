"""`lftj functors`: everything the checker knows is told, on stdout, without the engine."""

from __future__ import annotations

import json

import pytest

from lftj.cli import main
from lftj.language.functors import CONSTRAINTS, FUNCTORS


def test_every_functor_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functors"]) == 0
    out, err = capsys.readouterr()
    assert not err
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == [*FUNCTORS, *CONSTRAINTS]
    assert max(map(len, out.splitlines())) <= 120
    assert (
        "substr       symbol, number, number -> symbol\n"
        '             Characters from an index (from 0), of a length (negative: the rest); "" out of range.\n'
        '             substr("Hello", 1, 3) = "ell"\n'
    ) in out
    assert "%            T, T -> T  (T: number, unsigned)\n" in out
    assert "cat          symbol, ... -> symbol\n" in out


def test_functors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functors", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == {*FUNCTORS, *CONSTRAINTS}
    (found,) = (row for row in rows if row["name"] == "match")
    assert found == {
        "name": "match",
        "types": "symbol, symbol",
        "also": [],
        "T": None,
        "does": "The regular expression matches the whole text.",
        "example": 'match("[A-Z][a-z]*", "Hello")',
    }
