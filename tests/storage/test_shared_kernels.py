"""Shared kernels: one copy of their machine code, which other kernels call in every process; and kernels that are made.

Catches: machine code that is called by a name of the process that made it, which is another one's, or nobody's, in the
next; an entry that is loaded without the shared one it calls; Ctrl-C that leaves the compiler in the middle of one;
kernels that cannot be used, or are kept beside the source, where the cache cannot be written; an index that counts from
the end, which kernels do not have, and that only numba would see.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
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
def test_elements_are_where_numpy_has_them() -> None:
    @kernel
    def picked(line: Any, table: Any, block: Any, at: Any) -> int:
        line[at[0]] += 1
        table[1, at[1]] += line[2]
        block[at[0], at[1], 1] = 7
        return line[at[0]] + table[at[0], at[1]] + block[1, at[1], at[0]]

    def arrays() -> tuple[Any, ...]:
        return np.arange(3), np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(12, dtype=np.int8).reshape(2, 3, 2)

    for kind in (np.int8, np.int64, np.uint32):
        made, expected = arrays(), arrays()
        at = np.array([1, 2], kind)
        assert picked(*made, at) == picked.py_func(*expected, at)  # type: ignore[attr-defined]
        for one, other in zip(made, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.jit_only
def test_an_index_counts_from_the_front_and_is_checked_to(tmp_path: Path) -> None:
    source = """
import numpy as np
from scantree._jit import kernel

@kernel
def line(a, i):
    return a[i]

@kernel
def table(a, i):
    a[0, i] = 1
    return 0

for kernel, array in ((line, np.zeros(3, np.int64)), (table, np.zeros((2, 3), np.int64))):
    for i in (-1, 0, 2, 3):
        try:
            kernel(array, i)
        except IndexError:
            print(i)
"""
    (tmp_path / "checked.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "checked.py"],
        cwd=tmp_path,
        env=env(LFTJ_CACHE_DIR=str(tmp_path / "cache"), NUMBA_BOUNDSCHECK="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["-1", "3"] * 2


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
