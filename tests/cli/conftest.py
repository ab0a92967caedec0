"""Commands of lftj run in a folder of their own, in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from lftj.cli import main

TRIANGLES = """\
.decl edge(a:number, b:number)
.input edge
.decl tri(x:number, y:number, z:number)
.output tri
.printsize tri
tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).
"""
EDGES = "2\t3\n1\t2\n1\t3\n3\t4\n2\t4\n"


class Outcome(NamedTuple):
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str


class Shell:
    """A folder, and commands run in it, in this process."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._capture, self._monkeypatch = folder, capture, monkeypatch

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def names(self, name: str = ".") -> list[str]:
        return sorted(path.name for path in (self.folder / name).iterdir())

    def __call__(self, *arguments: str, stdin: str = "") -> Outcome:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self._capture.readouterr()
        code = main(arguments)
        out, err = self._capture.readouterr()
        return Outcome(int(code), out.decode(), err.decode())


@pytest.fixture
def shell(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsysbinary, monkeypatch)


@pytest.fixture
def triangles(shell: Shell) -> Shell:
    """A folder with a program and its facts."""
    shell.write({"tri.dl": TRIANGLES, "facts/edge.facts": EDGES})
    return shell
