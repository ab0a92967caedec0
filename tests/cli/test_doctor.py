"""`lftj doctor`: what lftj stands on."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from lftj import __version__
from lftj.cli import doctor_command
from lftj.cli.doctor_command import EXTRAS, NEEDED, PYTHON
from lftj.sql.running import LEAST
from tests.cli.conftest import Shell

ROOT = Path(__file__).resolve().parent.parent.parent


def parts(shell: Shell) -> dict[str, dict[str, str]]:
    done = shell("doctor", "--json")
    assert done.err == ""
    return {found["part"]: found for found in json.loads(done.out)}


def test_every_part_is_shown_with_its_state(shell: Shell) -> None:
    found = parts(shell)
    assert {*NEEDED, "lftj", "Python", "cache", "kernels", "CPU", "threads", "memory", "Java"} <= set(found)
    assert {f"lftj[{extra}]" for extra in EXTRAS} <= set(found)
    assert found["lftj"]["found"].startswith(f"{__version__} in ")
    assert found["numba"]["status"] == "ok"
    assert found["cache"]["found"].startswith(os.environ["LFTJ_CACHE_DIR"])
    assert re.fullmatch(r"\d+\.\d [kMG]B free of \d+\.\d [kMG]B", found["memory"]["found"])
    for part in found.values():
        assert part["status"] in ("ok", "note", "problem")
        assert part["found"]
        assert bool(part["remedy"]) == (part["status"] != "ok"), part


def test_the_table_says_the_same(shell: Shell) -> None:
    done = shell("doctor")
    assert (done.code, done.err) == (0, "")
    found = [line.split()[:2] for line in done.out.splitlines() if not line.startswith(" ")]
    assert ["ok", "lftj"] in found
    assert ["ok", "numba"] in found


def test_a_cache_that_cannot_be_written_is_a_problem(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write({"file": ""})
    monkeypatch.setenv("LFTJ_CACHE_DIR", str(shell.folder / "file"))
    assert parts(shell)["cache"]["status"] == "problem"
    assert "set LFTJ_CACHE_DIR" in parts(shell)["cache"]["remedy"]
    assert shell("doctor").code == 1
    monkeypatch.setenv("LFTJ_CACHE_DIR", str(shell.folder / "new" / "cache"))
    assert parts(shell)["cache"]["status"] == "ok"
    assert shell.names() == ["file"]


def test_a_broken_package_is_a_problem(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(doctor_command, "version", lambda name: "0.5" if name == "lark" else "99")
    found = parts(shell)
    assert found["pyarrow"]["status"] == "problem"
    assert (found["lark"]["status"], found["lark"]["found"]) == ("problem", "0.5 is too old")
    assert found["lark"]["remedy"] == f"pip install 'lark>={NEEDED['lark']}'"
    assert shell("doctor").code == 1


def test_without_java_and_extras_there_are_notes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(shell.folder))
    monkeypatch.setitem(EXTRAS, "lsp", {"no-such-package": "1"})
    monkeypatch.setitem(EXTRAS, "docs", {"numpy": "99"})
    found = parts(shell)
    assert (found["Java"]["status"], found["Java"]["found"]) == ("note", "none")
    assert found["lftj[lsp]"]["found"] == "without no-such-package"
    assert found["lftj[lsp]"]["remedy"] == "pip install 'lftj[lsp]', if you need it"
    assert found["lftj[docs]"]["found"] == f"numpy {np.__version__} is too old"
    assert shell("doctor").code == 0


def test_it_goes_by_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def named(requirements: list[str]) -> dict[str, str]:
        return dict(requirement.partition(",")[0].split(">=") for requirement in requirements)

    assert named(project["dependencies"]) == NEEDED
    extras = {name: named(of) for name, of in project["optional-dependencies"].items() if name != "dev"}
    assert extras == EXTRAS
    assert EXTRAS["sql"]["sqlglot"] == ".".join(map(str, LEAST))
    assert project["requires-python"] == f">={'.'.join(map(str, PYTHON))}"
