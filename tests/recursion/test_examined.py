"""How much maintenance looks at: suspects, and the derivations of each, by counts that no machine changes."""

from __future__ import annotations

from typing import Any

import lftj
from tests.conftest import JIT

REACH = """
.decl e(x:number, y:number)
.decl b(x:number)
r(x) :- b(x).
r(y) :- r(x), e(x, y).
"""
WIDE = 2_000 if JIT else 12


def erased(db: lftj.Database, row: tuple[int, int]) -> dict[str, Any]:
    """What the statistics say of `r` when an edge goes."""
    with db.transaction() as tx:
        tx.erase("e", [row])
    told: dict[str, Any] = tx.stats["heads"]["r"]
    return told


def test_what_supports_nothing_makes_no_suspect() -> None:
    """An edge back to a row that is older than where it comes from is not why that row is there."""
    db = lftj.Database(REACH)
    db.load("b", [(0,)])
    db.load("e", [(0, 1), (1, 2), (2, 3), (3, 1), (3, 0)])
    db.evaluate()
    for back in ((3, 1), (3, 0)):
        told = erased(db, back)
        assert (told["strategy"], told["examined"], told["returned"]) == ("rounds", 0, 0)
    assert sorted(db["r"]) == [(0,), (1,), (2,), (3,)]
    assert erased(db, (0, 1))["examined"] == 3
    assert sorted(db["r"]) == [(0,)]


def test_a_suspect_is_cleared_by_its_first_derivation() -> None:
    """A target of many edges is looked at through one or two of them, not through all."""
    db = lftj.Database(REACH)
    db.load("b", [(0,)])
    middle = range(1, WIDE + 1)
    db.load("e", [(0, x) for x in middle] + [(x, WIDE + 1) for x in middle])
    db.evaluate()
    told = erased(db, (WIDE // 2, WIDE + 1))
    assert (told["examined"], told["returned"]) == (1, 0)
    assert told["steps"] < 40
    assert len(db["r"]) == WIDE + 2
