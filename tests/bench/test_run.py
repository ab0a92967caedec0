"""The runner: what it measures, what it writes, and that it notices engines that disagree."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import results, run
from bench.workloads import Case, by_name


def test_measures_in_processes_of_their_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "joins.jsonl"
    chosen = ["-w", "triangle", "-g", "ego-Facebook", "-e", "duckdb,kuzu", "-m", "count", "-r", "1", "-o", str(output)]
    assert run.main(chosen) == 0
    lines = list(results.read(output))
    assert [(each["engine"], each["status"], each["count"]) for each in lines] == [
        ("duckdb", "ok", 1_612_010),
        ("kuzu", "ok", 1_612_010),
    ]
    for each in lines:
        assert each["data"] == {"e": {"dataset": "ego-Facebook", "source": "shipped", "rows": 88_234}}
        assert 0 < each["min"] <= each["median"] < 30
        assert each["peak_mb"] > 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("1,612,010") == 2

    assert run.main([*chosen, "--resume"]) == 0  # nothing left to do
    assert len(list(results.read(output))) == 2


@pytest.mark.parametrize(
    ("options", "recorded"),
    [((), True), (("--no-record",), False), (("--no-record", "--record"), True), (("--no-record", "-o", "own"), False)],
)
def test_what_is_recorded(
    options: tuple[str, ...],
    recorded: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`make bench` records; `lftj bench`, which passes --no-record, leaves files that are tracked alone."""
    monkeypatch.setattr(run, "measure_apart", lambda *_: {"status": "timeout", "limit": 1.0})
    monkeypatch.setattr(results, "JOINS", joins := tmp_path / "joins.jsonl")
    monkeypatch.chdir(tmp_path)
    assert run.main(["-w", "triangle", "-g", "wiki-Vote", "-e", "duckdb", "-m", "count", *options]) == 0
    assert joins.exists() is recorded
    assert (tmp_path / "own").exists() is ("own" in options)
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("1 case; what is measured is ")
    assert ("recorded in" in first) is (recorded or "own" in options)


def test_disagreement_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    triangle, case = by_name("triangle"), Case("ego-Facebook")
    assert run.disagreement(triangle, case, {"a": 1_612_010, "b": 1_612_010}) == 0
    assert run.disagreement(triangle, case, {"a": 5, "b": 6}) == 1
    assert run.disagreement(triangle, case, {"a": 5}) == 1  # not the published count
    assert run.disagreement(by_name("star"), case, {"a": 5}) == 0
    said = capsys.readouterr().err
    assert "COUNTS DISAGREE on triangle, ego-Facebook: {'a': 5, 'b': 6, 'published': 1612010}" in said


def test_an_engine_that_fails_is_a_line_and_an_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "measure_apart", lambda *_: {"status": "error", "reason": "no reason"})
    output = tmp_path / "joins.jsonl"
    assert run.main(["-w", "triangle", "-g", "wiki-Vote", "-e", "duckdb", "-m", "count", "-o", str(output)]) == 1
    assert [each["reason"] for each in results.read(output)] == ["no reason"]


def test_a_slow_engine_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def slow(request: dict[str, int], *_: object) -> dict[str, object]:
        asked.append(request["repeats"])
        return {"status": "ok", "first_seconds": 25.0, "count": 3, "compile_seconds": 1.0, "min": 25.0}

    monkeypatch.setattr(run, "measure_apart", slow)
    assert run.probe({}, run.Options(timeout=60.0), {})["status"] == "ok"
    assert asked == [0, 2]
    assert run.probe({}, run.Options(timeout=20.0), {}) == {"status": "timeout", "limit": 20.0, "count": 3}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["-w", "square"], "no workload 'square'; choose from triangle,"),
        (["-e", "oracle"], "no engine 'oracle'; choose from lftj, csr,"),
        (["-g", "moon"], "no graph 'moon'; choose from ego-Facebook,"),
        (["-m", "think"], "no mode 'think'; choose from count, materialise"),
    ],
)
def test_unknown_names_are_usage_errors(option: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run.parse(option)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_chosen_cases() -> None:
    chosen = list(run.cases(run.Options(workloads=("triangle",), graphs=("pl1m",))))
    assert [(w.name, c.graph, mode) for w, c, mode in chosen] == [
        ("triangle", "pl1m", "count"),
        ("triangle", "pl1m", "materialise"),
    ]
    everything = list(run.cases(run.Options()))
    assert all(case.materialise for _, case, mode in everything if mode == "materialise")
