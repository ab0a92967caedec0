"""The VS Code extension: its code runs in node, in a host that stands in for the editor, against `lftj lsp`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs" / "editors" / "vscode"
HOST = Path(__file__).with_name("vscode_host.js")
PROGRAM = ".decl edge(a:number, b:number)\ntri(x, z) :- edge(x, y),edge(y, z).\n"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def hosted(folder: Path, *command: str) -> dict[str, Any]:
    """What the extension gave in the host."""
    arguments = (str(FOLDER), str(folder), PROGRAM, json.dumps(command))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(["node", str(HOST), *arguments], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@needs_node
@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.js")), ids=lambda path: path.name)
def test_scripts_parse(script: Path) -> None:
    subprocess.run(["node", "--check", str(script)], check=True)


@needs_node
def test_the_extension_passes_on_what_the_server_says(tmp_path: Path) -> None:
    answers = hosted(tmp_path, sys.executable, "-m", "lftj")

    def starts(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
        return [(one["range"]["start"]["line"], one["range"]["start"]["character"]) for one in found]

    assert answers["warnings"] == []
    assert answers["diagnostics"] == []
    arity, single = answers["changed"]
    assert (arity["message"].split("\n")[0], arity["severity"], arity["source"]) == (
        "`tri` has 2 columns, and 1 argument is given",
        0,
        "lftj",
    )
    assert [related["message"] for related in arity["relatedInformation"]] == ["first used here"]
    assert (single["severity"], starts([single])) == (1, [(2, 15)])
    assert "edge(a:number, b:number)" in answers["hover"]["contents"]["value"]
    assert starts(answers["definition"]) == [(0, 6)]
    assert starts(answers["references"]) == [(0, 6), (1, 13), (1, 24)]
    assert answers["prepared"]["start"] == {"line": 1, "character": 13}
    assert [(c["place"]["start"]["character"], c["newText"]) for c in answers["renamed"]["changes"]] == [
        (6, "arc"),
        (13, "arc"),
        (24, "arc"),
    ]
    assert answers["refused"].startswith("`1` is no name")
    edge = next(item for item in answers["completed"] if item["label"] == "edge")
    assert (edge["kind"], edge["detail"], edge["insertText"]) == (6, "edge(a:number, b:number)", "edge")
    assert [(symbol["name"], symbol["kind"]) for symbol in answers["symbols"]] == [("edge", 4), ("tri(x, z)", 11)]
    assert [edit["newText"] for edit in answers["formatted"]] == [PROGRAM.replace(",edge", ", edge")]
    assert answers["restarted"] == []


@needs_node
@pytest.mark.parametrize("command", [("no-such-program",), (sys.executable, "-c", "raise SystemExit('broken')", "x")])
def test_without_a_server_it_says_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    (warning,) = hosted(tmp_path, *command)["warnings"]
    assert warning.startswith(f"lftj: no language server ({' '.join(command)} lsp): ")
    assert warning.endswith(("ENOENT", "broken"))


def test_the_description_names_files_that_are_there(tmp_path: Path) -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    contributes = package["contributes"]
    named = [package["main"], *(grammar["path"] for grammar in contributes["grammars"])]
    named += [language["configuration"] for language in contributes["languages"]]
    for name in named:
        assert (FOLDER / name).is_file()
    json.loads((FOLDER / "language-configuration.json").read_text(encoding="utf-8"))
    subprocess.run([sys.executable, str(FOLDER / "pack.py"), str(tmp_path / "lftj.vsix")], check=True)
    with zipfile.ZipFile(tmp_path / "lftj.vsix") as archive:
        packed = set(archive.namelist())
        assert b'Id="lftj"' in archive.read("extension.vsixmanifest")
    assert {f"extension/{Path(name)}" for name in named} <= packed
    assert {f"extension/{path.name}" for path in FOLDER.glob("*.js")} <= packed
