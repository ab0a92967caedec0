"""The README and every page of docs/ are programs: their Python blocks and commands run, and print what they say.

A page runs from top to bottom, in a folder of its own. Its Python blocks share one namespace; a `text` block after one
is what it prints. The commands of its `console` blocks run in bash, `lftj` as a forked process but where a page asks
about the machine; what a block shows after a command is its output, and of a command that shows none only success is
asked. `$ cat FILE` of a file that is not there yet shows the reader its content, and makes the file. Times are written
as zeros.

`python -m tests.test_docs` writes the outputs into the pages (then read the diff).
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lftj.maintain.choose import STRATEGIES
from tests.forked import forks

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```\n(?:```text\n(?P<output>.*?)```)?|```console\n(?P<console>.*?)```", re.DOTALL
)
COMMAND = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
# What this suite does not run: what sets a machine up, what takes minutes, and what needs Spark (tests/spark does
# that).
SETS_UP = ("pip ", "git ", "cd ", "code ", "make ")
LEFT_OUT = (*SETS_UP, "python -m bench.", "JOB=", "spark-submit ", "lftj demo", "lftj bench")
TIME = re.compile(r"\d+\.\d{3} (s|ms)\b")


def without_times(output: str) -> str:
    """The output with zeros for seconds and milliseconds."""
    return TIME.sub(r"0.000 \1", output)


class Page:
    """A page while it runs: the namespace of its Python blocks, and the folder (the current one) of its files."""

    def __init__(self, name: str, tools: Path) -> None:
        self.name, self.namespace = name, {"__name__": "__main__"}
        real = shlex.quote(sys.executable)
        lines = {
            "lftj": f'[ "$1" = doctor ] && exec {real} -m lftj "$@"\nexec {shlex.join(forks().lftj)} "$@"\n',
            "python": f'[ "$1" = -m ] && exec {shlex.join(forks().python)} "$@"\nexec {real} "$@"\n',
        }
        for tool, text in lines.items():
            script = tools / tool
            script.write_text(f"#!/bin/sh\n{text}")
            script.chmod(0o755)
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}

    def ran(self, text: str) -> str:
        """`text` with the outputs that its blocks have."""
        return BLOCK.sub(self._block, text)

    def _block(self, block: re.Match[str]) -> str:
        if block["console"] is not None:
            return f"```console\n{COMMAND.sub(self._command, block['console'])}```"
        printed = self._printed(block["code"])
        if block["output"] is None:
            assert printed == "", f"{self.name} does not show what a block prints:\n{block['code']}{printed}"
            return block[0]
        return f"```python\n{block['code']}```\n```text\n{printed}```"

    def _printed(self, code: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, self.name, "exec"), self.namespace)
        return without_times(printed.getvalue())

    def _command(self, shown: re.Match[str]) -> str:
        words = shlex.split(shown["command"], comments=True)
        if not words or shown["command"].startswith(LEFT_OUT):
            return shown[0]
        if words[0] == "cat" and len(words) == 2 and not Path(words[1]).exists():
            Path(words[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(words[1]).write_text(shown["output"], encoding="utf-8")
            return shown[0]
        command = ("bash", "-c", shown["command"])
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300)
        if not shown["output"]:
            assert done.returncode == 0, f"{self.name}: {shown['command']}\n{done.stderr}"
            return shown[0]
        # A command that succeeds may say on stderr that it compiles.
        output = done.stdout + done.stderr if done.returncode else done.stdout
        return f"$ {shown['command']}\n{without_times(output)}"


def ran(page: Path, folder: Path) -> str:
    """The text of a page with the outputs that its blocks have; runs in `folder`, which is empty."""
    tools, work = folder / "bin", folder / "work"
    tools.mkdir()
    work.mkdir()
    with contextlib.chdir(work):
        return Page(page.name, tools).ran(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    assert ran(page, tmp_path) == page.read_text(encoding="utf-8")


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\nprint(x)\n```\n```text\n2\n```\n"
        "```console\n$ cat p.dl\n.decl e(x:number)\n$ wc -l < p.dl\nwrong\n$ grep -c decl p.dl\n7\n```\n",
        encoding="utf-8",
    )
    assert ran(page, tmp_path) == (
        "```python\nx = 1\nprint(x)\n```\n```text\n1\n```\n"
        "```console\n$ cat p.dl\n.decl e(x:number)\n$ wc -l < p.dl\n1\n$ grep -c decl p.dl\n1\n```\n"
    )


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = LINK.findall(prose)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_is_short() -> None:
    text = README.read_text(encoding="utf-8")
    first = next(block["code"] for block in BLOCK.finditer(text) if block["code"])
    assert len(first.strip().splitlines()) <= 12
    assert len(text.splitlines()) <= 250


TITLE = re.compile(r"\[(?P<title>[^]]+)\]\((?:docs/)?(?P<page>[a-z-]+\.md)\)")


def contents(text: str, line: str) -> list[tuple[str, str]]:
    """(title, page) of the lines of a table of contents, which begin with `line`."""
    found = [TITLE.match(each.removeprefix(line)) for each in text.splitlines() if each.startswith(f"{line}[")]
    return [(entry["title"], entry["page"]) for entry in found if entry is not None]


def test_tables_of_contents_are_one() -> None:
    """The README lacked a page, and it, the first page and the site had three orders."""
    site = re.findall(r"^  - (.+): ([a-z-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert site[0] == ("Overview", "index.md")
    assert {page for _, page in site} == {page.name for page in PAGES if page != README}
    assert contents(README.read_text(encoding="utf-8"), "| ") == site[1:]
    assert contents((ROOT / "docs" / "index.md").read_text(encoding="utf-8"), "- ") == site[1:]


def variables_read(path: Path) -> Iterator[str]:
    """The environment variables that a file reads or sets: keys of what is called an environment."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        key: ast.expr | None = None
        if (
            isinstance(node, ast.Call)
            and node.args
            and re.search(r"environ(ment)?\.\w+$|getenv$", ast.unparse(node.func))
        ):
            key = node.args[0]
        elif isinstance(node, ast.Subscript) and re.search(r"environ(ment)?$", ast.unparse(node.value)):
            key = node.slice
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "os.environ":
            key = node.left
        name = (
            key.value if isinstance(key, ast.Constant) else constants.get(key.id) if isinstance(key, ast.Name) else None
        )
        if isinstance(name, str):
            yield name


def test_environment_variables_are_named() -> None:
    """LFTJ_CACHE_DIR and LFTJ_QUIET were on no page."""
    files = [
        path
        for package in ("lftj", "scantree", "sensitivity", "spark_bridge")
        for path in (ROOT / package).rglob("*.py")
    ]
    read = {name for path in files for name in variables_read(path)}
    written = {name for path in files for name in re.findall(r"\bLFTJ_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
    section = page[page.index("## Environment variables") : page.index("## Log lines")]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {"LFTJ_CACHE_DIR", "LFTJ_SPARK_FAULTS", "JAVA_HOME", "PYSPARK_GATEWAY_PORT"} <= read
    assert read | written <= named
    assert {name for name in named if name.startswith("LFTJ_")} <= written


def test_the_architecture_lists_the_strategies_in_order() -> None:
    """The page lacked three of them, and had another order of preference than the code."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| strategy | file in") : page.index("Outputs of circuits")]
    rows = re.findall(r"^\| (\w+) \| `(\w+)\.py`", table, re.MULTILINE)
    homes = [(strategy.name, type(strategy).__module__.rpartition(".")) for strategy in STRATEGIES]
    # Whatever ran before may have registered more of them: circuits do.
    assert rows == [(name, file) for name, (room, _, file) in homes if room == "lftj.maintain"]


def test_differences_from_duckdb_are_in_one_list() -> None:
    """The page on SQL said twice how lftj differs, and not the same."""
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    assert len(re.findall(r"where lftj (?:differs from DuckDB|and DuckDB differ)", text, re.IGNORECASE)) == 1
    assert "](#where-lftj-differs-from-duckdb)" in text


def test_brackets_of_an_explained_relation_are_explained() -> None:
    """`edge[0,1](x)` stood in the tutorial's explanation, and no word about it."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\w+\[\d[\d,]*\]\(\w+\)", "".join(block[0] for block in BLOCK.finditer(text))))
    assert shown & set(re.findall(r"`(\w+\[\d[\d,]*\]\(\w+\))`", BLOCK.sub("", text)))


@pytest.mark.parametrize("page", ["index.md", "tutorial.md"])
def test_readers_are_told_that_times_are_zeros(page: str) -> None:
    """All times in outputs are zeros, since they differ, and no page said so."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert "zeros" in BLOCK.sub("", text)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_columns_of_logs_have_names(page: Path) -> None:
    """Logs of streams, in the README too, called a sum `c1`."""
    shown = [block["output"] or "" for block in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    assert not re.search(r"'c\d':", "".join(shown))


if __name__ == "__main__":
    for page in PAGES:
        with tempfile.TemporaryDirectory(prefix="lftj-docs-") as folder:
            page.write_text(ran(page, Path(folder)), encoding="utf-8")
    sys.exit(0)
