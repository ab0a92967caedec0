"""Key orders that following a change needs and nobody has built: how often a relation is sorted for them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import lftj
from scantree.version import Store


@pytest.mark.parametrize("maintain", ["delta", "trace"])
def test_an_order_is_sorted_once_and_not_on_both_sides_of_a_change(
    maintain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TPC-H's q21 sorted its lines in seven orders, and in six of them again after the change."""
    columns = "(a:number, b:number, c:number, d:number)"
    db = lftj.Database(f".decl e{columns} .decl f{columns}")
    db.rules("r(x, z) :- e(_, x, y, _), f(_, _, y, z), !e(z, _, _, x).", maintain={"r": maintain})
    random, sorts, sort = Random(1), Counter[int](), Store.reorder

    def rows(count: int) -> list[tuple[int, ...]]:
        return [tuple(random.randrange(40) for _ in range(4)) for _ in range(count)]

    def counted(self: Store, *given: Any) -> Any:
        sorts[id(self)] += 1
        return sort(self, *given)

    for name in "ef":
        db.load(name, rows(900))
    assert len(db["r"]) > 0
    monkeypatch.setattr(Store, "reorder", counted)
    for _ in range(3):
        with db.transaction() as tx:
            tx.insert("e", rows(3))
            tx.erase("e", rows(1))
    assert sorts
    assert set(sorts.values()) == {1}
