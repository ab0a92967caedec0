"""Results and what is made of them: tables of the pages equal the committed results, losses are shown and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import pytest

from bench import plots, report, results
from bench.report import PAGES, TABLES, filled, lost_to, unexplained

COMMITTED = results.latest(results.read(results.JOINS))
RUN = {"date": "2026-01-02T03:04:05Z", "commit": "abc", "dirty": False}
MACHINE = {"cpu": "a CPU", "cores": 2, "system": "Linux", "python": "3.11.7", "versions": {"numba": "1.0"}}


def line(engine: str, seconds: float, mode: str = "count", **more: Any) -> dict[str, Any]:
    figures = {
        "status": "ok",
        "count": 7,
        "min": seconds,
        "compile_seconds": 0.5,
        "index_seconds": 0.25,
        "peak_mb": 12.3,
    }
    what = {"workload": "triangle", "graph": "wiki-Vote", "mode": mode, "engine": engine}
    return {**what, **figures, "run": RUN, "machine": MACHINE, **more}


def latest(*lines: dict[str, Any]) -> report.Results:
    return results.latest(lines)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_tables_are_those_of_the_committed_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- bench:" in text
    assert filled(text, COMMITTED) == text, "run python -m bench.report"


def test_check_says_which_page_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = tmp_path / "right.md", tmp_path / "wrong.md"
    right.write_text(filled("<!-- bench:triangle -->\n<!-- /bench -->\n", COMMITTED), encoding="utf-8")
    wrong.write_text("<!-- bench:triangle -->\n<!-- /bench -->\n", encoding="utf-8")
    assert report.main(["--check"], [right]) == 0
    assert report.main(["--check"], [right, wrong]) == 1
    assert capsys.readouterr().err == "wrong.md differs from bench/results; run python -m bench.report\n"


def test_every_lost_row_is_explained() -> None:
    assert unexplained(COMMITTED) == []


def test_committed_counts_agree() -> None:
    counts: dict[tuple[str, str], set[int]] = {}
    for (workload, graph, _, _), each in COMMITTED.items():
        if "count" in each:
            counts.setdefault((workload, graph), set()).add(each["count"])
    assert {what: found for what, found in counts.items() if len(found) > 1} == {}


def test_triangle_table() -> None:
    table = report.triangle_table(latest(line("csr", 0.02), line("lftj", 0.03), line("duckdb", 0.1), line("kuzu", 0.2)))
    assert table.splitlines()[2] == "| wiki-Vote | 7 | 20.0 | **30.0** | 1.50 | 100 | 200 | – | 250 | 12 |  |"


def test_a_loss_is_shown_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = latest(line("lftj", 0.3), line("duckdb", 0.1), line("kuzu", 0.4))
    assert lost_to(found, "triangle", "wiki-Vote", "count") == ["DuckDB"]
    assert unexplained(found) == [("triangle", "wiki-Vote", "count")]
    monkeypatch.setitem(report.WHY, ("triangle", "*", "count"), "it is a test.")
    assert unexplained(found) == []
    assert "loses to DuckDB: it is a test." in report.triangle_table(found)


def test_time_outs_and_failures() -> None:
    found = latest(line("lftj", 0.3), line("duckdb", 0, status="timeout", limit=60.0), line("kuzu", 0, status="error"))
    assert lost_to(found, "triangle", "wiki-Vote", "count") == []
    row = report.triangle_table(found).splitlines()[2]
    assert "| > 60,000 | failed |" in row
    found = latest(line("lftj", 0.3), line("kuzu", 0, status="memory"))
    assert lost_to(found, "triangle", "wiki-Vote", "count") == []
    assert "| – | out of memory |" in report.triangle_table(found)
    timed_out = latest(line("lftj", 0, status="timeout", limit=60.0), line("duckdb", 0.1))
    assert lost_to(timed_out, "triangle", "wiki-Vote", "count") == ["DuckDB"]


def test_the_last_line_counts() -> None:
    found = latest(line("duckdb", 9.0), line("duckdb", 0.1))
    assert found["triangle", "wiki-Vote", "count", "duckdb"]["min"] == 0.1


def test_blocks_are_replaced_and_the_rest_is_left_alone() -> None:
    found = latest(line("lftj", 0.3), line("duckdb", 0.1))
    machine = "<!-- bench:machine -->\nold\n<!-- /bench -->\n"
    text = f"before\n{machine}between\n<!-- bench:triangle -->\n<!-- /bench -->\nafter\n"
    once = filled(text, found)
    assert once.startswith("before\n<!-- bench:machine -->\nCPU milliseconds, one thread")
    assert "old" not in once
    assert once.endswith("\n<!-- /bench -->\nafter\n")
    assert filled(once, found) == once
    with pytest.raises(KeyError, match="nonsense"):
        filled("<!-- bench:nonsense -->\n<!-- /bench -->", found)


def test_all_tables_can_be_made_of_one_line() -> None:
    for make in TABLES.values():
        assert make(latest(line("lftj", 0.3)))


def test_results_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "joins.jsonl"
    assert list(results.read(path)) == []
    results.append(path, {"workload": "w", "graph": "g", "mode": "count", "engine": "x", "status": "ok", "min": 1.5})
    results.append(path, {"workload": "w", "graph": "g", "mode": "count", "engine": "x", "status": "error"})
    (only,) = results.latest(results.read(path)).values()
    assert only["status"] == "error"
    assert only["machine"]["cores"] >= 1
    assert set(only["run"]) == {"date", "commit", "dirty"}


def test_plots_are_drawn_and_repeat_themselves(tmp_path: Path) -> None:
    found = latest(line("csr", 0.02), line("lftj", 0.03), line("duckdb", 0.1, "materialise"))
    first = {path.name: path.read_bytes() for path in plots.draw(found, tmp_path)}
    assert set(first) == {"triangle.svg", "materialise.svg"}
    # Every legend has its place: looking for one that is free, matplotlib warns when that takes a second.
    with matplotlib.rc_context({"legend.loc": "center"}):
        assert first == {path.name: path.read_bytes() for path in plots.draw(found, tmp_path)}
