"""Shared kernels: one copy of their machine code, which other kernels call in every process; and kernels that are made.

Catches: machine code that is called by a name of the process that made it, which is another one's, or nobody's, in the
next; an entry that is loaded without the shared one it calls; Ctrl-C that leaves the compiler in the middle of one;
kernels that cannot be used, or are kept beside the source, where the cache cannot be written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scantree._compile import Kernel
from scantree._jit import kernel
from tests.cli.test_process import env

KERNELS = '''
import numpy as np
from scantree._jit import kernel, shared

@kernel
def unlike(a):
    """Makes the numbers that numba gives to functions differ from process to process."""
    return a[0]

@shared
def total(a):
    s = 0
    for i in range(len(a)):
        s += a[i]
    return s

@kernel
def twice(a):
    return 2 * total(a)

@kernel
def thrice(a):
    return 3 * total(a)
'''


@pytest.mark.jit_only
def test_they_are_called_where_another_process_left_them(tmp_path: Path) -> None:
    (tmp_path / "kernels_of_test.py").write_text(KERNELS)
    names = ("twice", "thrice"), ("unlike", "thrice", "total"), ("thrice", "twice", "unlike")
    expected = {"twice": 20, "thrice": 30, "total": 10, "unlike": 1}
    for called in (names[0][:1], *names):
        code = f"import kernels_of_test as k\nprint(*(getattr(k, n)(k.np.arange(1, 5)) for n in {called}))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=env(LFTJ_CACHE_DIR=str(tmp_path / "cache")),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [str(expected[name]) for name in called]
    assert len(list(tmp_path.glob("cache/**/*.total-*.nbc"))) == 1


@pytest.mark.jit_only
def test_they_are_compiled_where_the_cache_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "kernels_of_test.py").write_text(KERNELS)
    (tmp_path / "file").touch()
    code = (
        "import kernels_of_test as k\nfrom scantree._compiling import compiling\n"
        "print(k.twice(k.np.arange(1, 5)), compiling.text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env(LFTJ_CACHE_DIR=str(tmp_path / "file" / "cache")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("20 compiling kernels, in each process (`lftj doctor` says why): 2 so far")
    assert list(tmp_path.glob("**/*.nbi")) == []


@pytest.mark.jit_only
def test_an_interrupt_stops_who_waits_for_a_kernel_and_not_its_making(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def doubled(n: int) -> int:
        return n + n

    entry, made = Kernel._entry, []

    def interrupted(self: Any, part: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        made.append(entry(self, part))
        return made[0]

    monkeypatch.setattr(Kernel, "_entry", interrupted)
    monkeypatch.setattr(doubled._cache, "load_overload", lambda sig, context: None)
    with pytest.raises(KeyboardInterrupt):
        doubled(2)
    assert doubled(3) == 6
    assert len(made) == 1


@pytest.mark.jit_only
def test_what_goes_wrong_with_a_kernel_is_told_where_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def doubled(n: int) -> int:
        return n + n

    def fails(sig: Any, context: Any) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(doubled._cache, "load_overload", fails)
        with pytest.raises(OSError, match="no room"):
            doubled(2)
    assert doubled(3) == 6
