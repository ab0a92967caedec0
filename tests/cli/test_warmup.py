"""`lftj warmup`, and what a first run says while kernels compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from lftj.cli import main
from lftj.join import trace_update, triejoin
from scantree import _jit, update
from sensitivity import index


def test_warmup_says_where_the_code_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("all kernels are compiled (")
    assert err.endswith(f" s) and kept in {_jit.CACHE_DIR}\n")


def test_a_long_compilation_is_told_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_jit, "CACHE_DIR", tmp_path)
    _jit._Announcer._say("update")
    for kernel in _jit.LONG:
        (tmp_path / f"file.{kernel}-1.py311.nbi").touch()
    _jit._Announcer._say("update")
    assert capsys.readouterr().err == (
        "lftj: compiling update, once on this machine; at most 5 more like it are still to be compiled ...\n"
        "lftj: compiling update, once on this machine ...\n"
    )


def test_long_kernels_are_there() -> None:
    homes = (triejoin, trace_update, update, index)
    assert [name for name in _jit.LONG if not any(hasattr(home, name) for home in homes)] == []
