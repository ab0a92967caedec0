"""The programs in `examples/jobs/` print what their docstrings say, at the size that they have by default.

That they are right is for tests/bench/test_jobs.py: their functions beside DuckDB and pandas, on the same data.
`python -m tests.examples.test_jobs` writes the outputs into the docstrings (then read the diff).
"""

from __future__ import annotations

import runpy
import sys
import textwrap

import pytest

from tests.examples.test_examples import EXAMPLES, OUTPUT, in_docstring, promised, run

NAMES = sorted(f"jobs/{path.stem}" for path in (EXAMPLES / "jobs").glob("*.py"))
SIZES = {"access_rights": 40, "bill_of_materials": 30, "change_feed": 200, "fraud_rings": 6_000, "time_buckets": 100}


@pytest.mark.jit_only
@pytest.mark.parametrize("name", NAMES)
def test_a_job_prints_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    printed, _ = run(name)
    assert in_docstring(printed) == textwrap.indent(promised(name), "    ")


@pytest.mark.parametrize("name", NAMES)
def test_the_size_is_an_argument(name: str) -> None:
    job = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    db = job["main"](SIZES[name.removeprefix("jobs/")])
    assert any(len(db[relation]) for relation in db)


def test_jobs_are_short() -> None:
    lengths = {name: len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in NAMES}
    assert len(lengths) == len(SIZES)
    assert {name: lines for name, lines in lengths.items() if not 60 <= lines <= 150} == {}


if __name__ == "__main__":
    for name in NAMES:
        path, (printed, _) = EXAMPLES / f"{name}.py", run(name)
        text = path.read_text(encoding="utf-8")
        path.write_text(OUTPUT.sub(lambda _, printed=printed: in_docstring(printed), text, count=1), encoding="utf-8")
