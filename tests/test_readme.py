"""The README's Python blocks run, in order, in one namespace, and print what the block after them says.

`python -m tests.test_readme` writes the outputs into README.md (then read the diff).
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import EDGES, TRIANGLES, Shell, shell

__all__ = ["shell"]  # a fixture
README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:```text\n(?P<output>.*?)```)?", re.DOTALL)


def outputs(text: str) -> list[tuple[str, str]]:
    """(expected, printed) of every block that has an output."""
    namespace: dict[str, object] = {}
    found = []
    for match in BLOCK.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], "README.md", "exec"), namespace)
        if match["output"] is not None:
            found.append((match["output"], re.sub(r"\d+\.\d{3} s", "0.000 s", printed.getvalue())))
    return found


def test_readme_examples_print_what_the_readme_says() -> None:
    pytest.importorskip("pandas")
    blocks = outputs(README.read_text(encoding="utf-8"))
    assert len(blocks) >= 6
    for expected, printed in blocks:
        assert printed == expected


def test_readme_pipe_prints_what_the_readme_says(shell: Shell) -> None:
    text = README.read_text(encoding="utf-8")
    found = re.search(r"\$ printf -- '(.*)' \| lftj (run tri\.dl .*)\n((?:.*\n)*?)```", text)
    assert found is not None
    shell.write({"tri.dl": TRIANGLES.replace(".printsize tri\n", ""), "facts/edge.facts": EDGES})
    assert shell(*found[2].split(), stdin=found[1].replace("\\n", "\n")) == (0, found[3], "")


def test_readme_first_example_is_short() -> None:
    first = BLOCK.search(README.read_text(encoding="utf-8"))
    assert first is not None
    assert len(first["code"].strip().splitlines()) <= 12


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    printed = iter(p for _, p in outputs(text))

    def filled(match: re.Match[str]) -> str:
        return match[0] if match["output"] is None else f"```python\n{match['code']}```\n```text\n{next(printed)}```"

    README.write_text(BLOCK.sub(filled, text), encoding="utf-8")
    sys.exit(0)
