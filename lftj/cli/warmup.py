"""`lftj warmup`: compile everything now, for a machine or an image whose runs are not to wait for it."""

from __future__ import annotations

import time

from lftj.cli.outcome import Code, say


def compile_all() -> int:
    """Compile every kernel, or find it in the cache; say where it is kept."""
    from lftj.database import Database
    from scantree._jit import CACHE_DIR

    start = time.monotonic()
    Database().prepare()
    say(f"all kernels are compiled ({time.monotonic() - start:.1f} s) and kept in {CACHE_DIR}")
    return Code.DONE
