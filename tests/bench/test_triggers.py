"""The benchmark of triggers at tiny sizes: answers are compared and differences told, and figures become tables."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bench import report_triggers, triggers, triggers_join, triggers_tpch, triggers_ways
from bench.tpch_queries import QUERIES
from bench.triggers_run import differ

pytest.importorskip("duckdb")


# -- answers are compared ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([(1, "a"), (2, None)], [(2, None), (1, "a")]),
        ([(Decimal("1.50"),)], [(Decimal("1.5"),)]),
        ([(3,)], [(Decimal("3.0000"),)]),
        ([("a", 0.1 + 0.2), ("a", 7.0)], [("a", 7.0), ("a", 0.3)]),
        ([("a", Decimal("0.3"))], [("a", 0.1 + 0.2)]),
        ([(None,), (1.0,)], [(1.0,), (None,)]),
        ([], []),
    ],
)
def test_the_same_rows_do_not_differ(found: list[Any], expected: list[Any]) -> None:
    assert differ(found, expected) == ""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([(1,)], []),
        ([(1, "a")], [(1, "b")]),
        ([(Decimal("1.50"),)], [(Decimal("1.51"),)]),
        ([(0.3,)], [(0.300001,)]),
        ([(None,)], [(0,)]),
        ([(0.0,)], [(None,)]),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)]),
        ([(datetime.date(2020, 1, 1),)], [(datetime.date(2020, 1, 2),)]),
    ],
)
def test_other_rows_are_told(found: list[Any], expected: list[Any]) -> None:
    assert differ(found, expected) != ""


# -- parts -------------------------------------------------------------------------------------------------------------


def test_every_part_asks_for_what_it_measures() -> None:
    asked = list(triggers.requests(tuple(triggers.PARTS), [], triggers.SCALES, quick=False))
    lines = [(one["workload"], one["graph"], one["mode"]) for one in asked]
    assert len(set(lines)) == len(lines)
    assert {part for part, _, _ in lines} == set(triggers.PARTS)
    assert {mode for part, graph, mode in lines if part == "tpch" and graph == "0.1"} == set(QUERIES)
    some = triggers.requests(["tpch"], ["q3", "q6"], [0.01], quick=False)
    assert [(one["graph"], one["mode"]) for one in some] == [("0.01", "q3"), ("0.01", "q6")]


def test_a_query_reads_the_tables_it_names() -> None:
    assert triggers_tpch.reads(QUERIES["q1"]) == ["lineitem"]
    assert triggers_tpch.reads(QUERIES["q9"]) == ["nation", "supplier", "part", "partsupp", "orders", "lineitem"]
    assert triggers_tpch.reads(QUERIES["q22"]) == ["customer", "orders"]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("name", triggers_ways.CASES)
def test_strategies_agree(name: str, size: int) -> None:
    found = triggers_ways.measured({"case": name, "size": size, "tiny": True, "turns": 3})
    assert found["status"] == "ok", found
    assert set(found["ms"]) >= {"planner", "delta", "recompute"}
    assert found["ratio"] > 0


def test_changes_take_what_is_there_and_bring_what_is_not() -> None:
    case = triggers_ways.CASES["q3"]
    churn = triggers_ways.Churn(case.facts(True), case.changing)
    now = {name: set(rows) for name, rows in churn.now().items()}
    for size in (1, 10, 1, 1_000):
        for name, sign, rows in churn.change(size):
            for row in rows:
                assert (row in now[name]) == (sign < 0)
                (now[name].add if sign > 0 else now[name].remove)(row)
    assert {name: set(rows) for name, rows in churn.now().items()} == now


@pytest.mark.parametrize("run", [1, 7])
def test_answers_of_the_join_are_those_of_its_pairs(run: int) -> None:
    pair = triggers_join.Pair(200, 80)
    held = {name: list(map(tuple, rows.tolist())) for name, rows in pair.start().items()}
    for name, sign, rows in pair.blocks(run):
        for row in map(tuple, rows):
            (held[name].append if sign > 0 else held[name].remove)(row)
    totals: dict[int, int] = {}
    for a, b in held["r"]:
        for other, c in held["s"]:
            if b == other:
                totals[b] = totals.get(b, 0) + a * c
    assert pair.answer(20) == sorted(totals.items())


def test_what_is_raised_is_a_line() -> None:
    found = triggers.measured("tpch", {"query": "q99", "scale": 1.0})
    assert found == {"status": "error", "reason": "KeyError: 'q99'"}


# -- tables ------------------------------------------------------------------------------------------------------------


def test_figures_become_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answer(module: str, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        asked = request["asked"]
        if asked.get("query") == "q2":
            return {"status": "error", "reason": "no | such query"}
        phase = {"events": 90, "of": 100, "per_second": 1234.0, "median_ms": 2.0, "p99_ms": 3.0}
        phases = dict.fromkeys(("inserts", "deletes", "fine", "batches", "ones", "single", "runs"), phase)
        return {
            "status": "ok", **phases, "rows": 7, "bytes": 2**20, "strategies": {"q": "triggers"}, "ratio": 3.5,
            "duckdb": {"recompute_ms": 7.0, "take_in_ms": 1.0}, "event_us": 1.5, "ms": {"planner": 2.0, "delta": 1.0},
            "chosen": {"delta": 3}, "best": "delta", "one_row_us": 41.0, "one_row_cpu_us": 40.0, "one_row_p99_us": 50.0,
            "stream_us": 0.5, "fine_us": 0.75, "sizes": [10, 100], "event_us_": 0, "bound": 9.5,
            "declared": {"inserts": {**phase, "per_second": 4321.0}} if asked.get("query") != "q4" else {},
            **({"event_us": [1.0, 2.0], "bytes": [1, 2], "slope": 0.3} if "sizes" in asked else {}),
        }  # fmt: skip

    output = tmp_path / "triggers.jsonl"
    monkeypatch.setattr(triggers, "answer_of", answer)
    monkeypatch.setattr(triggers, "TRIGGERS", output)
    assert triggers.main(["-o", str(output)]) == 1
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(lines) == len(list(triggers.requests(tuple(triggers.PARTS), [], triggers.SCALES, quick=False)))
    assert {line["engine"] for line in lines} == {"lftj"}
    tables = {name: make() for name, make in report_triggers.TABLES.items()}
    assert "| q1 | triggers | 7 | **4,321** | – | 1,234 |" in tables["triggers-tpch"]
    assert "| q4 | triggers | 7 | – | – | 1,234 |" in tables["triggers-tpch"]
    assert "| 3.50 | 9.50 |" in tables["triggers-tpch"]
    assert "below 500,000; below 100 times; 90% of the inserts" in tables["triggers-tpch"]
    assert "no / such query" in tables["triggers-tpch-small"]
    assert "41.0, 50.0 µs" in tables["triggers-join"]
    assert "0.300" in tables["triggers-join"]
    assert "above 1.2" in tables["triggers-ways"]
    assert "**1,234**" in tables["triggers-books"]
    assert "tpch:" in tables["triggers-machine"]
