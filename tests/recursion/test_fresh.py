"""Rounds whose rows are new as a rule leave it to the storing to find those that are not.

Catches: rounds that look for each row though few are there; ones that do not though most are; a row that is stored
again, with another round; a head that is passed over though it was blocked when it was met before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from lftj.recursion import fixpoint, variant_plans
from lftj.recursion.fixpoint import Fixpoint
from lftj.recursion.variants import CHANGED
from tests.conftest import JIT

pytestmark = pytest.mark.usefixtures("as_written")

CLOSURE = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z)."
N = 60 if JIT else 14


def closure(edges: list[tuple[int, int]]) -> set[tuple[int, int]]:
    found, new = set(edges), set(edges)
    while new:
        new = {(x, z) for x, y in new for a, z in edges if a == y} - found
        found |= new
    return found


CHAIN = [(i, i + 1) for i in range(N)] + [(i, i + 2) for i in range(0, N - 2, 7)]
DENSE = [(i, (i * j + 1) % N) for i in range(N) for j in range(1, 8)]


@pytest.mark.parametrize(("edges", "looked_for"), [(CHAIN, False), (DENSE, True)], ids=["chain", "dense"])
def test_rows_are_looked_for_where_many_are_there(
    edges: list[tuple[int, int]], looked_for: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variant_plans, "LARGE", 4)
    monkeypatch.setattr(fixpoint, "LARGE", 4)
    run, looks = Fixpoint.run, list[bool]()
    blocked = set[tuple[bool, ...]]()

    def watching(self: Fixpoint, join: Any, over: Any, delta: Any = None, *rest: Any, **options: Any) -> Any:
        looks.append(options.get("look", True))
        rows = run(self, join, over, delta, *rest, **options)
        if delta is not None and len(delta) >= variant_plans.LARGE:
            plans = [join.present, *(join.plan({**over, CHANGED: delta}, look=look) for look in (True, False, True))]
            blocked.add((looks[-1], *(any(depth.negated for depth in plan.depths) for plan in plans)))
        return rows

    monkeypatch.setattr(Fixpoint, "run", watching)
    db = lftj.Database._sized(CLOSURE, page_rows=4, directory_rows=4)
    db.load("e", edges)
    assert set(db["t"]) == closure(edges)
    assert all(looks) if looked_for else not all(looks)
    # What was asked of a run, and whether its plan looked for them, and others with, without and with.
    assert blocked <= {(look, look, True, False, True) for look in (True, False)}
    assert (looked_for, looked_for, True, False, True) in blocked
    rounds = db._state.relations["t"].content.columns()
    assert rounds.shape[1] == len(closure(edges))


def test_heads_that_are_there_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By looks, and where there are none by what was stored: both tell the same part."""
    monkeypatch.setattr(variant_plans, "LARGE", 1)
    monkeypatch.setattr(fixpoint, "LARGE", 1)
    found = []
    for mostly in (2.0, 0.0):
        monkeypatch.setattr(fixpoint, "MOSTLY", mostly)
        monkeypatch.setattr(fixpoint, "ROUND_PART", 1e9)
        told = list[float]()
        grow = Fixpoint.grow

        def noted(self: Fixpoint, rows: Any, grow: Any = grow, told: list[float] = told) -> Any:
            new = grow(self, rows)
            told.append(self.joins.fresh.get("t", -1.0))
            return new

        with monkeypatch.context() as patched:
            patched.setattr(Fixpoint, "grow", noted)
            db = lftj.Database(CLOSURE)
            db.load("e", CHAIN)
            db.evaluate()
        found.append(told)
    looked, stored = found
    assert looked == stored
    assert np.ptp(looked) > 0.1


def test_a_head_that_was_blocked_is_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows, heads were taken for met that an atom had blocked: what they supported stayed."""
    monkeypatch.setattr(variant_plans, "LARGE", 1)
    db = lftj.Database(
        ".decl r(x:number, w:number)  .decl s(y:number)  .decl n(x:number, y:number)  .decl e(y:number, z:number)\n"
        "h(y) :- r(x, x), s(y), !n(x, y).\nh(z) :- h(y), e(y, z)."
    )
    db.load("r", [(0, 0), (1, 1)])
    db.load("s", [(y,) for y in range(5, 25)])
    db.load("n", [(0, y) for y in range(5, 25)])
    db.load("e", [(5, 3)])
    assert len(db["h"]) == 21
    with db.transaction() as tx:
        tx.erase("r", [(0, 0), (1, 1)])
    assert tx.stats["heads"]["h"]["strategy"] == "rounds"
    assert list(db["h"]) == []
