"""Benchmarks of whole rules on tiny data: the same answers from every engine, and steps within their bounds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from bench import (
    asked,
    complement,
    extremes,
    floatsums,
    graphs,
    grouped,
    plots_rules,
    ratings,
    report_rules,
    report_upkeep,
    results,
    updates,
)
from bench.cases import Bench, compact, disagreements
from bench.rivals.recompute import Recomputed
from bench.updates import Batch

ALL = (grouped, floatsums, extremes, complement, ratings, asked)
RUN = {"date": "2026-01-02T03:04:05Z", "commit": "abc", "dirty": False}
MACHINE = {"cpu": "a CPU", "cores": 2, "python": "3.11.7", "versions": {"numba": "1.0"}}


def quick(bench: Bench, **wanted: str) -> list[dict[str, Any]]:
    """The quick cases of a benchmark, measured in this process."""
    chosen = [r for r in bench.requests(True) if all(r[key] == value for key, value in wanted.items())]
    return [{**request, **bench.measured(request)} for request in chosen]


# Engines agree ----------------------------------------------------------------------------------------------


@pytest.mark.jit_only
@pytest.mark.parametrize("workload", grouped.WORKLOADS)
def test_folds_are_those_of_the_rival_after_every_transaction(workload: str) -> None:
    (line,) = quick(grouped.BENCH, workload=workload)
    assert list(line["engines"]) == list(grouped.ENGINES)
    for figures_of in line["engines"].values():
        assert [(m["size"], m["transactions"]) for m in figures_of["sizes"]] == [
            (size, n - (i == 0))
            for i, (size, n) in enumerate(grouped.QUICK)  # the first one records
        ]
    ours, anew, _ = line["engines"].values()
    assert ours["sizes"][0]["steps"] < anew["sizes"][0]["steps"]


@pytest.mark.jit_only
def test_questions_in_sql_have_the_answers_of_the_rival() -> None:
    pytest.importorskip("sqlglot")
    for line in quick(asked.BENCH):
        assert line["rows"] > 0
        assert all(times_of["first_ms"] > 0 for times_of in line["engines"].values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(asked.PATHS, "paths counted", "select count(*) as n from e")
        patch.setattr(asked.Views, "answer", lambda views, sql: [(0,)])
        with pytest.raises(AssertionError, match="paths counted"):
            quick(asked.BENCH, workload="paths counted")


@pytest.mark.jit_only
def test_sums_are_exact_and_cheaper_than_all_values() -> None:
    for line in quick(floatsums.BENCH):
        assert line["erased"] == 1 + sum(size * n for size, n in floatsums.QUICK_SIZES)
        assert line["bytes_per_group"] > 0
        assert line["plain_wrong"] > 0
        for m in line["sizes"]:
            assert m["steps"] <= 10 * m["size"] * m["transactions"]


def test_values_are_mixed_and_cancel() -> None:
    groups, values = floatsums.mixed(3_000, 7, seed=1)
    sizes = np.abs(values)
    assert sizes.min() < 1e-290
    assert sizes.max() > 1e290
    pairs = set(zip(groups.tolist(), values.tolist(), strict=True))
    assert sum((g, -v) in pairs for g, v in pairs) >= 2_000
    left = floatsums.Survivors(groups, values)
    left.left[groups == 3] = False
    expected = {g: math.fsum(values[groups == g].tolist()) for g in range(7) if g != 3}
    assert left.sums() == expected
    floatsums.same(dict(expected), expected)
    with pytest.raises(AssertionError, match="sums differ"):
        floatsums.same({**expected, 2: math.nextafter(expected[2], math.inf)}, expected)
    with pytest.raises(AssertionError, match="groups"):
        floatsums.same({}, expected)


@pytest.mark.jit_only
@pytest.mark.parametrize("mode", extremes.MODES)
def test_the_next_extreme_takes_steps_that_do_not_grow_with_the_group(mode: str) -> None:
    lines = quick(extremes.BENCH, mode=mode)
    assert disagreements(lines) == []
    ours = next(line for line in lines if line["engine"] == "lftj")
    assert [m["size"] for m in ours["sizes"]] == list(extremes.QUICK)
    assert extremes.growth(ours) <= extremes.PER_DOUBLING
    assert max(m["steps_max"] for m in ours["sizes"]) < 120


@pytest.mark.jit_only
def test_a_complement_costs_what_is_missing() -> None:
    lines = quick(complement.BENCH)
    assert disagreements(lines) == []
    n = complement.QUICK_VERTICES
    for line in lines:
        if line["engine"] == "lftj":
            assert line["steps"] <= complement.STEPS * (n + line["missing"])
            assert line["pair"]["steps_max"] <= complement.PAIR_STEPS
            assert line["vertex"]["steps_max"] <= complement.STEPS * 2 * (n + 1)


def test_pairs_go_and_come_back() -> None:
    rows = complement.pairs(9, 5)
    assert len(rows) == 81 - 5
    assert updates.changed(rows, list(complement.changes(rows, 8))).tolist() == rows.tolist()


@pytest.mark.jit_only
@pytest.mark.parametrize("engine", ratings.ENGINES)
def test_a_stream_of_ratings(engine: str) -> None:
    (line,) = quick(ratings.BENCH, engine=engine)
    assert line["arrivals"]["transactions"] >= 5
    assert line["again"]["transactions"] >= 5
    assert line["graph"].endswith("(stand-in)")


def test_ratings_in_plain_python() -> None:
    events = np.array([[1, 2, 5], [2, 1, 1], [2, 3, 2], [3, 2, 9], [1, 3, 1], [3, 1, -4], [4, 1, 7], [3, 1, 3]])
    found = ratings.plain(events)
    assert found == {
        "mean_rating": {(1, 11 / 3), (2, 7.0), (3, 1.5)},
        "top_rating": {(1, 7), (2, 9), (3, 2)},
        "never_rated": {(4,)},
        "trust": {(1, 2, 3)},
    }
    assert ratings.plain(events[:-1])["trust"] == set()
    assert ratings.compare(found, events)["trust"] == 1
    with pytest.raises(AssertionError, match="trust"):
        ratings.compare({**found, "trust": set()}, events)


def test_rated_again_by_other_stars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ratings, "SHARED", tmp_path)
    events, source = ratings.stream()
    assert (len(events), source) == (35_592, "generated")
    assert (events[:, 0] != events[:, 1]).all()
    again = ratings.rated_again(events, 300)
    pairs = {tuple(event) for event in events.tolist()}
    assert all(-10 <= stars <= 10 for stars in again[:, 2].tolist())
    assert {(u, v) for u, v, _ in again.tolist()} <= {(u, v) for u, v, _ in pairs}


def test_the_published_stream(shared_data: Path) -> None:
    events, source = ratings.stream()
    assert (len(events), source) == (35_592, "shared")
    assert len({(u, v) for u, v, _ in events.tolist()}) == len(events)


def test_rival_follows_changes() -> None:
    subject = Recomputed(grouped.WORKLOADS["degree histogram"].sql)
    subject.load("e", np.array([[1, 2], [1, 3], [2, 3]]))
    subject.evaluate()
    assert subject.rows("hist") == [(1, 1), (2, 1)]
    subject.apply("e", Batch(np.array([[1, 2]]), np.array([[5, 5], [6, 5]])))
    assert subject.rows("deg") == [(1, 1), (2, 1), (5, 1), (6, 1)]
    assert subject.rows("hist") == [(1, 4)]


# What is told -----------------------------------------------------------------------------------------------


def test_disagreements_and_digests() -> None:
    what = {"workload": "w", "graph": "g", "mode": "m"}
    one = {**what, "engine": "a", "digests": {"x": "1", "y": "2"}}
    other = {**what, "engine": "b", "digests": {"x": "1", "y": "3", "z": "4"}}
    assert disagreements([one, {**what, "engine": "c"}, one]) == []
    assert disagreements([one, other]) == ["('w', 'g', 'm', 'y'): a 2, b 3"]
    assert "digests" not in compact(one)
    assert compact(one)["digest"] != compact(other)["digest"]
    assert compact(what) == what


@pytest.mark.jit_only
def test_a_benchmark_records_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.jsonl"
    assert extremes.main(["--quick", "-e", "heap", "-o", str(path)]) == 0
    told = list(results.read(path))
    assert [results.key(line) for line in told] == [("extreme", "permutations", m, "heap") for m in extremes.MODES]
    assert all(line["quick"] and line["status"] == "ok" and "digest" in line for line in told)
    assert "1,000" in capsys.readouterr().err


# Tables -----------------------------------------------------------------------------------------------------


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Result files of one's own."""
    for module in ALL:
        name = module.__name__.split(".")[-1].upper()
        monkeypatch.setattr(module, name, tmp_path / f"{name}.jsonl")

    def write(path: Path, *lines: dict[str, Any]) -> None:
        told = ({"status": "ok", **line, "run": RUN, "machine": MACHINE} for line in lines)
        path.write_text("".join(json.dumps(line) + "\n" for line in told), encoding="utf-8")

    return write


def figures(median: float, most: float | None = None, **more: Any) -> dict[str, Any]:
    return {"transactions": 9, "median_ms": median, "p99_ms": 2 * median, "max_ms": most or 2 * median, **more}


def test_every_lost_row_is_explained() -> None:
    assert report_rules.unexplained() == []


def test_committed_results_keep_their_bounds() -> None:
    for key, line in report_upkeep.lines(extremes.EXTREMES).items():
        assert key[3] != "lftj" or extremes.growth(line) <= extremes.PER_DOUBLING
    for key, line in report_upkeep.lines(complement.COMPLEMENT).items():
        if key[3] == "lftj":
            assert line["steps"] <= complement.STEPS * (line["vertices"] + line["missing"])
            assert line["pair"]["steps_max"] <= complement.PAIR_STEPS


def test_tables_without_results(written: Any, tmp_path: Path) -> None:
    for make in report_rules.TABLES.values():
        assert make()
    assert plots_rules.draw(tmp_path) == []


def test_a_loss_is_shown_with_its_reason(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    what = {"workload": "degree histogram", "graph": "tiny", "mode": "grouped", "engine": "lftj"}
    engines = {
        "lftj": {"sizes": [figures(2.0, size=1), figures(9.0, 15.0, size=100)]},
        "lftj-recompute": {"sizes": [figures(8.0, size=1), figures(10.0, size=100)]},
        "duckdb": {"sizes": [figures(4.0, size=1), figures(6.0, size=100)]},
    }
    written(grouped.GROUPED, {**what, "engines": engines})
    monkeypatch.setattr(report_rules, "WHY", {("duckdb", "*", 100): "reason D"})
    assert [(loss.rival, loss.size) for loss in report_rules.unexplained()] == [("recompute", 100)]
    monkeypatch.setitem(report_rules.WHY, ("recompute", "degree histogram", 0), "reason R")
    assert report_rules.unexplained() == []
    first, second = report_rules.grouped_table().splitlines()[2:]
    assert first == "| degree histogram | tiny | 1 | **2.00** | 4.00 | 8.00 | 0.250 | 4.00 | 0.500 |  |"
    assert second.endswith("| up to 1.50 × recompute: reason R; loses to DuckDB: reason D |")


def test_plots_repeat_themselves(written: Any, tmp_path: Path) -> None:
    extreme = {"workload": "extreme", "graph": "g", "mode": "max"}
    written(
        extremes.EXTREMES,
        {**extreme, "engine": "lftj", "sizes": [figures(0.5, size=1_000, steps_max=66)]},
        {**extreme, "engine": "heap", "sizes": [figures(0.02, size=1_000)]},
    )
    missing = {"workload": "missing pairs", "graph": "g", "mode": "complement", "engine": "lftj", "missing": 10}
    change = figures(0.2, steps_max=3)
    both = {"pair": change, "vertex": change, "evaluate_ms": 2.0, "steps": 50, "lookups": 10_000}
    written(complement.COMPLEMENT, {**missing, **both})
    (path,) = plots_rules.draw(tmp_path)
    first = path.read_bytes()
    with matplotlib.rc_context({"legend.loc": "center"}):
        plots_rules.draw(tmp_path)
    assert path.read_bytes() == first
    assert "loses to the heap" in report_rules.extremes_table()


def test_graphs_of_the_quick_cases_are_generated() -> None:
    assert {r["graph"] for r in grouped.BENCH.requests(True)} == {"tiny"}
    assert graphs.load("tiny").source == "generated"
