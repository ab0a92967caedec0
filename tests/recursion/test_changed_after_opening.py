"""A small change of a component whose content came from a file, which has no key orders but the declared ones.

Catches: joins that run with every commit and walk all rows in an order that is there, where building the one that they
need is paid for within a few commits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lftj

RULES = """
.decl q(x: number, y: number, z: number)
.decl r(y: number, u: number, e: number)
.decl s(z: number, o: number)
q(x, e, o) :- q(x, y, z), r(y, u, e), q(z, u, o).
q(x, o, z) :- q(x, y, z), s(y, o).
"""
XS, ROWS = 300, 300_000  # enough rows that an order of them looks dearer to build than one walk along the declared one


@pytest.mark.jit_only
def test_steps_do_not_follow_the_relation(tmp_path: Path) -> None:
    """A row of GALEN's `r` took 507,000 steps and 57 ms in every commit, where 19 do with the order built."""
    path = tmp_path / "q.lftj"
    with lftj.Database(RULES, path=path) as db:
        db.load("q", np.random.default_rng(1).integers((0, 0, 1000), (XS, 40, 40_000), (ROWS, 3)))
        db.load("r", [(100 + i, i, 7) for i in range(40)])
        db.load("s", [(90, 91)])
        db.evaluate()
    with lftj.Database(path=path) as db:
        for e in (100, 101, 102):
            with db.transaction() as tx:
                tx.insert("r", [(7, 8, e)])
        assert tx.stats["heads"]["q"]["strategy"] == "rounds"
        assert tx.stats["heads"]["q"]["steps"] < XS
