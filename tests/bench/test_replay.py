"""The replayed streams at tiny size: answers as computed by hand, the lines as committed, and any checkout's code."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import lftj
from bench import replay, results
from bench.graphs import ROOT
from tests.conftest import JIT

MANY = 60 if JIT else 25


@pytest.mark.parametrize("workload", replay.STREAMS)
def test_every_head_is_as_computed_by_hand(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "BEFORE", 5)
    found = replay.replayed({"workload": workload, "changes": MANY, "tiny": True})
    assert found["status"] == "ok", found
    assert found["transactions"] == MANY
    assert found["strategies"]["delta"] > 0


def test_a_wrong_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "BEFORE", 1)
    stream = replay.STREAMS["book"]
    wrong = stream._replace(expected=lambda now: stream.expected(now) | {"traded": {(0,)}})
    monkeypatch.setitem(replay.STREAMS, "book", wrong)
    found = replay.replayed({"workload": "book", "changes": 2, "tiny": True})
    assert (found["status"], found["reason"]) == ("error", "other rows than expected in traded")


@pytest.mark.parametrize("workload", replay.STREAMS)
def test_streams_are_deterministic_and_change_what_is_there(workload: str) -> None:
    stream = replay.STREAMS[workload]
    facts = stream.facts(True)
    events = list(islice(stream.events(facts, replay.SEED), 300))
    assert events == list(islice(stream.events(facts, replay.SEED), 300))
    now: dict[str, set[Any]] = {name: set(rows) for name, rows in facts.items()}
    for sign, name, row in (change for changes in events for change in changes):
        assert (row in now[name]) == (sign < 0)
        (now[name].add if sign > 0 else now[name].remove)(row)
    assert set(stream.expected(now)) == {head for head in lftj.Database(stream.program) if head not in facts}


def test_lines_say_whose_code_was_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def answer(module: str, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        asked.append((module, request["workload"], request["code"]))
        figures = {"per_second": 1.0, "median_ms": 1.0, "p99_ms": 1.0, "transactions": 1}
        return {"status": "ok", **figures}

    monkeypatch.setattr(replay, "answer_of", answer)
    output = tmp_path / "replay.jsonl"
    assert replay.main(["-o", str(output)]) == 0
    assert replay.main(["-o", str(output), "-w", "book", "--code", str(tmp_path)]) == 0
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(line["workload"], line["engine"]) for line in lines] == [
        ("book", "lftj"),
        ("tpch", "lftj"),
        ("book", "before"),
    ]
    assert [code for _, _, code in asked] == [str(ROOT), str(ROOT), str(tmp_path)]
    assert len(results.latest(lines)) == 3
