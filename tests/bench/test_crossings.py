"""What a one-row commit passes through stays as short as it is said to be. Counts, so that no machine is too slow."""

from __future__ import annotations

import pytest

from bench import crossings

# Files and Python calls at most; from Python 3.12 on comprehensions are no calls, so that there are fewer.
MOST = {
    "table": (8, 33),
    "triangle": (14, 88),
    "reachability": (20, 118),
    "aggregates": (15, 129),
    "sum of a join": (15, 82),
    "count": (15, 82),
    "negation": (15, 151),
}


@pytest.mark.jit_only
@pytest.mark.parametrize("name", crossings.PROGRAMS)
def test_a_one_row_commit_takes_few_calls(name: str) -> None:
    found = crossings.crossed(crossings.PROGRAMS[name])
    files, calls = MOST[name]
    assert found.files <= files
    assert found.calls <= calls, "\n".join(f"{'  ' * depth}{file}: {function}" for depth, file, function in found.path)


@pytest.mark.jit_only
def test_the_calls_are_printed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert crossings.main(["--calls", "table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    functions = [line.strip().partition(": ")[2] for line in lines]
    way = ["Transaction.insert", "Commit.run", "Commit._facts", "Version.update", "Commit.publish", "Commit.finish"]
    assert [name for name in functions if name in way] == way
    assert all(line.startswith(("  ", "lftj/", "scantree/")) for line in lines)
