"""`lftj warmup`: compile everything now, for a machine or an image whose runs are not to wait for it."""

from __future__ import annotations

import time

from lftj.cli.outcome import Code, say
from lftj.errors import DataError


def compile_all() -> int:
    """Compile every kernel, or find it in the cache; say where it is kept."""
    from lftj.database import Database
    from scantree._compiling import compiling
    from scantree._jit import CACHE_DIR

    start = time.monotonic()
    Database().prepare()
    if not compiling.kept:
        raise DataError(
            f"the kernels are compiled, and cannot be kept in {CACHE_DIR}",
            why="the folder cannot be written, so that each process compiles them again",
            remedy="make it writable, or set LFTJ_CACHE_DIR to a folder that is",
        )
    say(f"all kernels are compiled ({time.monotonic() - start:.1f} s) and kept in {CACHE_DIR}")
    return Code.DONE


def compile_updates() -> int:
    """Compile what a transaction needs that follows changes, and nothing that only evaluation needs.

    First what most rules follow by, so that it is there soonest: deltas and triggers, then traces.
    """
    from lftj.database import Database

    facts = Database(".decl e(x:number, y:number)")
    facts.load("e", [(i, i + 1) for i in range(9)])
    with facts.transaction() as tx:
        tx.insert("e", [(1, 3)])
    triangle, pairs = "t(x, y, z) :- e(x, y), e(y, z), e(x, z).", "p(x, z) :- e(x, y), e(y, z)."
    sums = "s[y] = sum x : { e(x, y) }."
    for maintain in ("delta", "trace"):
        # Rules that come with a transaction are not evaluated before it: what follows them is made, and then goes on.
        rules = Database(".decl e(x:number, y:number)")
        for i in range(4):
            with rules.transaction() as tx:
                tx.insert("e", [(i, i + 1), (i, i + 2)])
                tx.erase("e", [(i - 1, i)])
                if not i:
                    tx.rules(triangle, maintain={"t": maintain}, granularity={"t": "node"})
                    tx.rules(pairs, maintain={"p": maintain}, granularity={"p": "interval"})
                    tx.rules(sums, maintain={"s": "triggers"})
        with rules.transaction() as tx:
            tx.insert("e", [(7, 7)])  # one row, which sums follow in one call
    return Code.DONE
