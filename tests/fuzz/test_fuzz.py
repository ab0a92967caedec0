"""The fuzzer finds what is wrong, and says it with a small program."""

from __future__ import annotations

from random import Random

import pytest

from lftj.maintain.delta import Delta
from tests.conftest import JIT
from tests.fuzz.__main__ import main
from tests.fuzz.case import make_case, run
from tests.fuzz.rewrites import rewritten


def test_some_cases() -> None:
    for seed in range(20 if JIT else 2):
        run(make_case(seed))


def test_rewritings_change_the_text() -> None:
    text = ".decl e(a:number, b:number)\np(x, z) :- e(x, y), e(y, z), x != z.\n"
    assert len({rewritten(text, Random(seed))[0] for seed in range(50)}) > 20


@pytest.mark.jit_only
def test_a_wrong_answer_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = Delta.prepare

    def wrong(self, step, heads, why, limits):
        staged = prepared(self, step, heads, why, limits)
        relation = staged.relations[heads.name]
        if len(relation.content) > 1:
            less, _ = relation.content.update(relation.content.columns(limit=1), -1 * _one())
            return type(staged)(staged.strategy, why, {heads.name: relation.successor(less)}, staged.changes)
        return staged

    monkeypatch.setattr(Delta, "prepare", wrong)
    assert main(["--minutes", "0.05", "--seed", "100"]) == 1
    told = capsys.readouterr().out
    assert "FAILED" in told
    assert "db.rules(" in told


def test_the_last_line_tells_what_duckdb_saw(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    assert main(["--one", "--seed", "0"]) == 0
    assert capsys.readouterr().out.endswith("fuzz: of 1 cases DuckDB also evaluated 1\n")


def _one():
    import numpy as np

    return np.ones(1, np.int8)
