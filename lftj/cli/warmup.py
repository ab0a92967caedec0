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


def compile_updates() -> int:
    """Compile what a transaction needs that follows changes by traces, and nothing that only evaluation needs."""
    from lftj.database import Database

    facts = Database(".decl e(x:number, y:number)")
    facts.load("e", [(i, i + 1) for i in range(9)])
    with facts.transaction() as tx:
        tx.insert("e", [(1, 3)])
    # Rules that come with a transaction are not evaluated before it: their traces are recorded, and then maintained.
    rules = Database(".decl e(x:number, y:number)")
    for i in range(4):
        with rules.transaction() as tx:
            tx.insert("e", [(i, i + 1), (i, i + 2)])
            tx.erase("e", [(i - 1, i)])
            if not i:
                tx.rules("t(x, y, z) :- e(x, y), e(y, z), e(x, z).", maintain={"t": "trace"}, granularity={"t": "node"})
                tx.rules("p(x, z) :- e(x, y), e(y, z).", maintain={"p": "trace"}, granularity={"p": "interval"})
    return Code.DONE
