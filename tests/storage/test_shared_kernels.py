"""Shared kernels: one copy of their machine code, which other kernels call in every process.

Catches: machine code that is called by a name of the process that made it, which is another one's, or nobody's, in the
next; an entry that is loaded without the shared one it calls.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
