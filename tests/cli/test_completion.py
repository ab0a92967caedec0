"""Completion at TAB: the scripts, parsed and run by the shells that are there, and what they are offered."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.conftest import TRIANGLES, Shell
from tests.forked import forks

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH with an `lftj`, and a home of its own.

    What looks for the shell that it was started by (`--show-completion`) is a real process.
    """
    folder = tmp_path / "tools"
    folder.mkdir()
    real = shlex.join([sys.executable, "-m", "lftj"])
    (folder / "lftj").write_text(
        f'#!/bin/sh\ncase "$1" in --*-completion) exec {real} "$@";; esac\nexec {shlex.join(forks().lftj)} "$@"\n'
    )
    (folder / "lftj").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def run(shell: str, script: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_is_parsed_by_its_shell(name: str, tools: Path) -> None:
    script = script_of(name)
    assert "_LFTJ_COMPLETE=complete_" + name in script
    path = tools / "script"
    path.write_text(script)
    done = subprocess.run([name, "-n", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_is_installed_where_its_shell_reads_it(name: str, tools: Path, tmp_path: Path) -> None:
    run(name, "lftj --install-completion; true")
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tools]
    assert any("complete_" + name in path.read_text() for path in written)


@cache
def script_of(shell: str) -> str:
    """The script of a shell; asked with `tools` in place, and the same for all of them."""
    return run(shell, "lftj --show-completion; true")  # `true`, or the shell would become lftj


def offered(tools: Path, folder: Path, line: str) -> list[str]:
    """What bash offers at the end of a line, by the script."""
    script = script_of("bash")
    words = line.split(" ")
    quoted = " ".join(shlex.quote(word) for word in words)
    asked = f"cd {shlex.quote(str(folder))}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _lftj_completion lftj"
    return run("bash", f'{script}\n{asked}\nprintf "%s\\n" "${{COMPREPLY[@]}}"').split()


def test_commands_and_options_in_bash(tools: Path, shell: Shell) -> None:
    assert offered(tools, shell.folder, "lftj w") == ["watch", "warmup"]
    assert offered(tools, shell.folder, "lftj fmt --d") == ["--diff"]


def test_relations_and_words_in_bash(tools: Path, triangles: Shell) -> None:
    assert offered(tools, triangles.folder, "lftj explain tri.dl ") == ["edge", "tri"]
    assert offered(tools, triangles.folder, "lftj explain tri.dl t") == ["tri"]
    assert offered(tools, triangles.folder, "lftj run tri.dl --key-order ") == ["tri="]
    assert offered(tools, triangles.folder, "lftj run tri.dl --granularity tri=n") == ["tri=node"]
    assert offered(tools, triangles.folder, "lftj run tri.dl --on-error ") == ["raise", "quarantine"]
    assert offered(tools, triangles.folder, "lftj query tri(x) tri.dl --format j") == ["json"]


def test_nothing_is_offered_where_files_are_due(tools: Path, triangles: Shell) -> None:
    assert offered(tools, triangles.folder, "lftj check t") == []
    assert offered(tools, triangles.folder, "lftj explain nowhere.dl ") == []


def test_in_fish(tools: Path, triangles: Shell) -> None:
    script = script_of("fish")
    found = run("fish", f"cd {triangles.folder}\n{script}\ncomplete -C 'lftj explain tri.dl '")
    assert found.split() == ["edge", "tri"]


def test_in_zsh(triangles: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LFTJ_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "lftj explain tri.dl ")
    assert triangles() == (0, '_arguments \'*: :(("edge"\n"tri"))\'\n', "")


def test_a_program_that_does_not_parse_offers_what_it_can(triangles: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    triangles.write({"tri.dl": TRIANGLES + "broken(\n"})
    monkeypatch.setenv("_LFTJ_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "lftj explain tri.dl ")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert triangles() == (0, "edge\ntri\n", "")
