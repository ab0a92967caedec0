"""Tables and plots of maintenance: made of the committed results, lost rows explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from bench import endurance, latency, pairs, plots_upkeep, promise, recording, report_upkeep, stabbing
from bench.report import PAGES, TABLES

RUN = {"date": "2026-01-02T03:04:05Z", "commit": "abc", "dirty": False}
MACHINE = {"cpu": "a CPU", "cores": 2, "python": "3.11.7", "versions": {"numba": "1.0"}}


def size(rows: int, median: float, most: float | None = None) -> dict[str, Any]:
    return {"size": rows, "median_ms": median, "p99_ms": 2 * median, "max_ms": most or 2 * median, "read_ms": 0.01}


def line(engine: str, *sizes: dict[str, Any], **more: Any) -> dict[str, Any]:
    what = {"workload": "triangle", "graph": "pl1m", "mode": "stream", "engine": engine, "status": "ok"}
    return {**what, "sizes": list(sizes), "run": RUN, "machine": MACHINE, **more}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Result files of one's own."""
    for module, name in (
        (latency, "LATENCY"),
        (pairs, "PAIRS"),
        (recording, "RECORDING"),
        (promise, "PROMISE"),
        (endurance, "ENDURANCE"),
        (stabbing, "STABBING"),
    ):
        monkeypatch.setattr(module, name, tmp_path / f"{name.lower()}.jsonl")

    def write(path: Path, *lines: dict[str, Any]) -> None:
        path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")

    return write


def test_every_lost_row_is_explained() -> None:
    assert report_upkeep.unexplained() == []


def test_every_table_is_on_the_page_about_performance() -> None:
    (text,) = (page.read_text(encoding="utf-8") for page in PAGES if page.stem == "performance")
    assert [name for name in TABLES if f"<!-- bench:{name} -->" not in text] == []


def test_tables_without_results(written: Any, tmp_path: Path) -> None:
    for make in report_upkeep.TABLES.values():
        assert make()
    assert plots_upkeep.draw(tmp_path) == []


def test_targets_and_rivals(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written(
        latency.LATENCY,
        line("lftj", size(1, 0.05), size(10, 9.0), kernel_ms=230.0),
        line("lftj-recompute", size(1, 100.0), size(10, 12.0)),
        line("duckdb", size(1, 8.0), size(10, 3.0)),
        line("duckdb", size(1, 0.001), size(10, 0.001), quick=True),
    )
    monkeypatch.setattr(report_upkeep, "WHY", {("target", "*", 0): "reason T", ("duckdb", "pl1m", 10): "reason D"})
    assert report_upkeep.unexplained() == [("recompute", "pl1m", 10)]
    monkeypatch.setitem(report_upkeep.WHY, ("recompute", "*", 10), "reason R")
    assert report_upkeep.unexplained() == []
    first, second = report_upkeep.targets_table().splitlines()[2:4]
    assert first == "| pl1m | 1 | 0.10 | **0.050** | 0.10 | 230 | 0.27 |  |"
    assert second == "| pl1m | 10 | 0.40 | **9.00** | 18.0 | 230 | 0.39 | misses 0.40 ms: reason T |"
    rows = report_upkeep.latency_table().splitlines()[2:]
    assert rows[0] == "| pl1m | 1 | **0.050** | 0.10 | – | – | 100 | 0.001 | 8.00 | 0.010 |  |"
    assert rows[1].endswith("| up to 1.50 × recompute: reason R; loses to DuckDB: reason D |")


def test_plots_repeat_themselves(written: Any, tmp_path: Path) -> None:
    written(latency.LATENCY, line("lftj", size(1, 0.05), size(10, 0.3)), line("duckdb", size(1, 8.0)))
    point = {"workload": "star", "graph": "hubs", "mode": "promise", "engine": "lftj-interval"}
    written(promise.PROMISE, {**point, "points": [[1, 30, 5, 5, 5]], "run": RUN, "machine": MACHINE})
    tenth = {"median_ms": 0.2, "p99_ms": 0.5, "pages_bytes": 1 << 20, "resident_mb": 100.0}
    long = {"workload": "triangle", "graph": "g", "mode": "endurance", "engine": "lftj"}
    written(endurance.ENDURANCE, {**long, "transactions": 20, "deciles": [tenth] * 10, "run": RUN, "machine": MACHINE})
    first = {path.name: path.read_bytes() for path in plots_upkeep.draw(tmp_path)}
    assert set(first) == {"latency.svg", "promise.svg", "endurance.svg"}
    with matplotlib.rc_context({"legend.loc": "center"}):
        assert first == {path.name: path.read_bytes() for path in plots_upkeep.draw(tmp_path)}
