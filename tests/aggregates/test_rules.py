"""Aggregates as users write them, through the life of their rules: transactions, previews, snapshots, removal."""

from __future__ import annotations

import lftj

RULES = """
d(x, n) :- e(x, _), n = count : { e(x, _) }.
m(x, n) :- e(x, _), n = max y : { e(x, y) }.
"""


def strategies(tx: lftj.Transaction) -> dict[str, str]:
    parts = [part for told in tx.stats["heads"].values() for part in told.get("parts", {}).items()]
    return {name: told["strategy"] for name, told in parts if name in ("@d.1", "@m.1")}


def test_rules_come_and_go_with_transactions() -> None:
    db = lftj.Database(".decl e(x:number, y:number)")
    db.load("e", [(1, 2), (1, 3)])
    used = db.memory()
    tx = db.transaction()
    try:
        with tx:
            tx.rules(RULES)
            tx.insert("e", [(2, 2)])
            assert list(tx.preview()["d"].inserted) == [(1, 2), (2, 1)]
            raise KeyError
    except KeyError:
        assert db.memory() == used
    with db.transaction() as tx:
        tx.rules(RULES)
        tx.insert("e", [(2, 2)])
    assert (list(db["d"]), list(db["m"])) == ([(1, 2), (2, 1)], [(1, 3), (2, 2)])
    assert strategies(tx) == {"@d.1": "recompute", "@m.1": "recompute"}
    with db.transaction() as tx:
        tx.insert("e", [(2, 7)])
    assert strategies(tx) == {"@d.1": "delta", "@m.1": "scan"}
    held = db.snapshot()
    db.load("e", [(2, 9)])  # what was kept is outdated
    assert (list(db["d"]), list(db["m"])) == ([(1, 2), (2, 3)], [(1, 3), (2, 9)])
    with db.transaction() as tx:
        tx.erase("e", [(2, 9)])
    assert strategies(tx) == {"@d.1": "recompute", "@m.1": "scan"}
    assert list(db["m"]) == list(held["m"]) == [(1, 3), (2, 7)]
    with db.transaction() as tx:
        tx.remove_rules("m")
    with db.transaction() as tx:
        tx.insert("e", [(5, 5)])
    assert strategies(tx) == {"@d.1": "delta"}
    assert list(db["d"]) == [(1, 2), (2, 2), (5, 1)]
