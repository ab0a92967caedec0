"""The start-up benchmark's parts that need no engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import graphs, start


def test_the_readme_example_is_its_first_python_block(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# x\n```sh\nls\n```\n```python\nimport lftj\n```\n```python\nsecond\n```\n", encoding="utf-8")
    assert start.readme_example(readme) == "import lftj\n"
    readme.write_text("# x\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no Python block"):
        start.readme_example(readme)


def test_a_fresh_process_is_timed() -> None:
    out, cpu, wall = start.in_fresh_process("import sys; sys.stdout.write(sys.argv[1])", "hello")
    assert out == "hello"
    assert 0 < cpu < 5
    assert 0 < wall < 30


def test_written_files_read_back(tmp_path: Path) -> None:
    rows = graphs.load("tiny").rows
    path = start.write_tsv(str(tmp_path), "tiny.tsv", rows)
    assert np.array_equal(graphs.read_rows(Path(path), 2), rows)
