"""What stands before the tables: every figure is of the results, and leads to the section that has its table."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bench import report, report_summary, report_upkeep, results, start
from bench.graphs import ROOT
from tests.bench.test_report import line

PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
COMMITTED = results.latest(results.read(results.JOINS))


def of(engine: str, seconds: float, **more: Any) -> dict[str, Any]:
    return line(engine, seconds, graph="pl1m", **more)


def test_a_figure_stands_beside_the_others_with_how_many_times_as_fast_it_is() -> None:
    found = results.latest(
        [of("csr", 0.02), of("lftj", 0.04), of("duckdb", 3.0), of("kuzu", 0, status="timeout", limit=9)]
    )
    row = report_summary.summary_table(found).splitlines()[2]
    assert row == (
        "| [count the triangles of a graph of a million edges](#evaluation) "
        "| a kernel by hand 20.0 ms, DuckDB 3.00 s | **40.0 ms** | 0.50 |"
    )


def test_the_summary_is_on_one_screen_and_shows_losses() -> None:
    head = PAGE[: PAGE.index("## ")]
    rows = [row for row in head.splitlines() if row.startswith("| [")]
    assert 8 <= len(rows) <= 15
    assert len(head.splitlines()) <= 30
    ratios = [float(row.split(" | ")[-1].rstrip(" |").replace(",", "")) for row in rows]
    assert min(ratios) < 1 < max(ratios)


def test_every_line_of_the_summary_leads_to_its_section() -> None:
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([\w-]+)\)", report_summary.summary_table(COMMITTED)))
    assert links
    assert links <= headings


def test_plots_are_on_the_page() -> None:
    """The page said that plots are written, and showed none."""
    shown = re.findall(r"!\[[^]]+\]\((plots/\w+\.svg)\)", PAGE)
    assert len(shown) >= 3
    assert all((ROOT / "docs" / name).is_file() for name in shown)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/performance.md"])
def test_a_first_run_is_told_where_a_newcomer_looks(page: str) -> None:
    last = json.loads(start.START.read_text(encoding="utf-8").splitlines()[-1])
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"{last['example, first, wall']:.1f} s on its first run" in text
    assert f"some {last['background_cpu_seconds']:.0f} s of CPU time" in text
    assert all(words in text for words in ("LFTJ_BACKGROUND=0", "LFTJ_CACHE_DIR", "lftj warmup --updates", "600 s"))


@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_what_may_be_compared_is_told_below_the_table(page: str) -> None:
    """One kernel had two times in two tables, and rivals were measured elsewhere, unsaid."""
    text = (ROOT / page).read_text(encoding="utf-8")
    below = text[text.index("<!-- bench:targets -->") :].split("<!-- /bench -->")[1]
    assert below.strip().startswith("<!-- bench:footing -->")
    assert "within one table only" in below
    assert "was not run beside lftj" in below


def test_machines_of_both_tables_are_named() -> None:
    told = report.footing(COMMITTED)
    for graph, by_engine in report_upkeep.streams().items():
        alone, ours = COMMITTED["triangle", graph, "count", "csr"], by_engine["lftj"]
        assert f"{report.milliseconds(alone)} ms on {graph}" in told
        assert f"{ours['kernel_ms']:,.0f} ms" in told
        assert alone["machine"]["cpu"] in told
        assert ours["machine"]["cpu"] in told
