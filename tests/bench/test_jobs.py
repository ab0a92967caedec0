"""The jobs of users: engines agree on small sizes, a difference is found, and the table shows what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bench import job_changes, jobs, report_jobs, results

pytest.importorskip("duckdb")
pytest.importorskip("pandas")

ENGINES = ("lftj", "duckdb", "pandas")


@pytest.mark.jit_only
@pytest.mark.parametrize("name", job_changes.JOBS)
def test_engines_agree_after_loads_and_changes(name: str) -> None:
    """Another seed than that of the benchmark; every head that is compared has rows."""
    job = job_changes.JOBS[name]
    found = [jobs.measured_once(job, engine, job.tiny, changes=12, seed=5) for engine in ENGINES]
    assert found[0]["digests"] == found[1]["digests"] == found[2]["digests"]
    assert found[0]["digests"][0] != found[0]["digests"][1], "the changes change nothing"
    assert all(rows > 0 for rows in found[0]["answers"].values())


@pytest.mark.jit_only
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = jobs.session

    def wrong(engine: str, job: job_changes.Job) -> Any:
        made = real(engine, job)
        if engine == "pandas":
            answers = made.answers
            monkeypatch.setattr(made, "answers", lambda: {name: table[1:] for name, table in answers().items()})
        return made

    monkeypatch.setattr(jobs, "session", wrong)
    assert jobs.main(["--quick", "bill_of_materials"]) == 1
    shown = capsys.readouterr()
    assert "pandas differs from lftj" in shown.err
    assert [line.split(":")[0] for line in shown.out.splitlines()] == [
        "bill_of_materials, lftj",
        "bill_of_materials, duckdb",
    ]


def test_a_digest_is_of_the_rows() -> None:
    one = pa.table({"a": [2, 1], "b": pa.array(["x", "y"])})
    other = pa.table({"c": pa.array([1, 2], pa.int32()), "d": pa.array(["y", "x"])})
    assert jobs.digest(one) == jobs.digest(other)
    assert jobs.digest(one) != jobs.digest(one.slice(0, 1))
    assert jobs.digest(one) != jobs.digest(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    cents = pa.array([150, 99]).cast(pa.decimal128(20, 0))
    amounts = pa.compute.multiply(cents, pa.scalar("0.01").cast(pa.decimal128(3, 2))).cast(pa.decimal128(18, 2))
    assert jobs.digest(pa.table({"a": amounts})) == jobs.digest(pa.table({"a": [150, 99]}))


def test_the_table_shows_the_last_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jobs, "RECORDED", tmp_path / "jobs.jsonl")
    line = {"workload": "change_feed", "graph": "1000000", "mode": "job", "load_s": 0.5, "first_s": 1.25, "p99_ms": 9.0}
    line |= {"max_ms": 12.0, "rows_per_s": 125_000.0, "peak_mb": 1234.5}
    for engine, median in (("lftj", 99.0), ("lftj", 8.0), ("pandas", 20.0)):
        results.append(jobs.RECORDED, {**line, "engine": engine, "median_ms": median})
    job = "change feed: 1M events, five views | 1,000 events"
    assert report_jobs.jobs_table().splitlines()[2:] == [
        f"| {job} | lftj | 0.50 | 1.25 | **8.00** |  | 9.00 | 12.0 | 1,234 |",
        "|  |  | pandas | 0.50 | 1.25 | 20.0 | 2.5 | – | – | 1,234 |",
    ]
    assert report_jobs.rates().endswith("125,000 by lftj, 125,000 by pandas.")
