"""Key orders that lag behind the content: what they hold when they are asked for, whoever asks, and when.

Catches: a change that is missed or made twice, a word on a row that is not the last, a reader that moves another's key
order, a lag without a bound, a database that does not recover from a lack of memory.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import MemoryLimitError
from lftj.store import stored
from lftj.store.stored import LaggingOrder
from scantree.memory import ArenaFullError
from scantree.version import Version
from tests.engine.histories import check_stored

ORDERS = ((0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0))


def database() -> lftj.Database:
    db = lftj.Database._sized(".decl e(x:number, y:number, z:number)", page_rows=4, directory_rows=4)
    db.load("e", [(i, i * 7 % 11, i % 3) for i in range(20)])
    return db


def lag(relation: Any, order: tuple[int, ...]) -> int:
    """How many changes the key order is behind."""
    held = relation._orders[order]
    return len(held.changes) if isinstance(held, LaggingOrder) else 0


@given(st.randoms(use_true_random=False))
def test_at_any_time_a_key_order_holds_the_content(rng: Random) -> None:
    db = database()
    rows, readers = set(db["e"]), list[tuple[Any, set[Any]]]()
    for _ in range(12):
        match rng.choice(("change", "change", "change", "ask", "read", "look")):
            case "change":
                fresh = range(rng.choice((0, 1, 3)))
                insert = [(rng.randrange(25), rng.randrange(11), rng.randrange(3)) for _ in fresh]
                erase = rng.sample(sorted(rows), min(len(rows), rng.choice((0, 1, 2))))
                with db.transaction() as tx:
                    tx.erase("e", erase)
                    tx.insert("e", insert)
                rows = (rows - set(erase)) | set(insert)
            case "ask":
                order = rng.choice(ORDERS)
                asked = db._relations["e"].order(order).columns()
                assert asked.T.tolist() == sorted([row[c] for c in order] for row in rows)
            case "read":
                readers.append((db.snapshot(), set(rows)))
            case _:
                reader, held = rng.choice(readers) if readers else (db, rows)
                check_stored(reader._state.relations["e"])
                assert set(reader["e"]) == held
        assert all(lag(db._relations["e"], order) <= stored.MOST_BEHIND for order in db._relations["e"].orders)


def test_a_transaction_leaves_behind_what_it_does_not_ask_for() -> None:
    db = database()
    db._relations["e"].order((1, 0, 2))
    for n in range(stored.MOST_BEHIND):
        db.load("e", [(100 + n, 0, 0)])
        assert lag(db._relations["e"], (1, 0, 2)) == n + 1
    db.load("e", [(200, 0, 0)])
    assert lag(db._relations["e"], (1, 0, 2)) == 0
    check_stored(db._relations["e"])


def test_the_last_word_on_a_row_counts() -> None:
    db = database()
    db._relations["e"].order((2, 1, 0))
    db.load("e", [(7, 7, 7)])
    with db.transaction() as tx:
        tx.erase("e", [(7, 7, 7)])
    assert lag(db._relations["e"], (2, 1, 0)) == 2
    assert [7, 7, 7] not in db._relations["e"].order((2, 1, 0)).columns().T.tolist()


def test_without_memory_it_stays_behind_and_follows_later(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    assert db.query("e(x, y, z), z = 1", order=("z", "y", "x")).count() == 7
    db.load("e", [(100, 0, 1)])

    def full(self: Version, *_: Any, **__: Any) -> Any:
        raise ArenaFullError(2, 1)

    query = db.query("e(x, y, z), z = 1", order=("z", "y", "x"))
    with monkeypatch.context() as patch:
        patch.setattr(Version, "update", full)
        with pytest.raises(MemoryLimitError):
            query.count()
    assert set(db.memory()["e"]) == {"x, y, z", "z, y, x"}
    assert lag(db._relations["e"], (2, 1, 0)) == 1
    assert db.query("e(x, y, z), z = 1", order=("z", "y", "x")).count() == 8
    check_stored(db._relations["e"])


def test_a_change_of_a_large_part_is_followed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "BEHIND_PART", 1 / 16)
    db = database()
    db._relations["e"].order((1, 0, 2))
    db.load("e", np.array([[50, 1, 1]]))
    assert lag(db._relations["e"], (1, 0, 2)) == 1
    db.load("e", np.array([[60, 1, 1]]))
    assert lag(db._relations["e"], (1, 0, 2)) == 0
