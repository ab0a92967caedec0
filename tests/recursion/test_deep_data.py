"""Recursion along acyclic data of many levels, such as a running balance: a kernel goes from key to key.

Catches: a level that costs what a whole commit does (20,000 links: 16 s to evaluate, 35 s to follow one row), a walk
that cannot be interrupted, or that goes on wrongly after a slice, an error or a cycle that is only seen level by level.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

import lftj
from lftj.errors import CycleError, EvaluationError
from lftj.join.run import Limits
from lftj.recursion import key_graph, key_tables
from lftj.recursion.key_by_key import KeyByKey
from tests.conftest import examples
from tests.engine import programs
from tests.recursion.test_key_by_key import ACYCLIC, run

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

BALANCE = """.decl next(a:number, b:number)
.decl amount(a:number) -> n:number
.decl balance(a:number) -> n:number
balance[a] = amount[a] + sum balance[b] : { next(a, b) }.
"""


def chain(length: int) -> lftj.Database:
    """A running balance from `length` down to 0."""
    db = lftj.Database(BALANCE)
    db.load("next", [(i + 1, i) for i in range(length)])
    db.load("amount", [(i, 1) for i in range(length + 1)])
    return db


@pytest.mark.parametrize("name", ACYCLIC)
@examples(6, 1)
@given(programs.seeds)
def test_histories(name: str, rng: Random) -> None:
    """Whatever is more than one level is deep, and slices are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_graph, "DEEP", rng.choice((0, 1, 2)))
        patch.setattr(key_graph, "THIN", 1000)
        patch.setattr(key_tables, "MOST", 0)
        patch.setattr(key_tables, "ROOM", 4)
        patch.setattr(key_tables, "SLICE", rng.choice((1, 2, 5)))
        run(rng, name, facts=rng.choice((False, True)))


@pytest.mark.jit_only
def test_a_long_chain_has_no_columns_of_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    length, columns, looks = 20_000, [0], [0]
    compute, look = KeyByKey._compute, Limits.look

    def computed(self: KeyByKey, head: str, keys: key_graph.Rows) -> key_graph.Rows:
        columns[0] += 1
        return compute(self, head, keys)

    def looked(self: Limits, rows: int) -> None:
        looks[0] += 1
        look(self, rows)

    monkeypatch.setattr(KeyByKey, "_compute", computed)
    monkeypatch.setattr(Limits, "look", looked)
    monkeypatch.setattr(key_tables, "SLICE", 100)
    db = chain(length)
    assert list(db["balance"]) == [(i, i + 1) for i in range(length + 1)]
    assert columns == [0]
    assert looks[0] > length // 100
    with db.transaction() as tx:
        tx.upsert("amount", [(0, 3)])
    assert tx.stats["heads"]["balance"]["strategy"] == "levels"
    assert list(tx.delta["balance"].erased) == [(i, i + 1) for i in range(length + 1)]
    assert list(tx.delta["balance"].inserted) == [(i, i + 3) for i in range(length + 1)]
    assert columns == [0]
    with db.transaction() as tx:
        tx.erase("next", [(length // 2, length // 2 - 1)])
    assert db["balance"][length] == length // 2 + 1
    assert columns == [0]


@pytest.mark.jit_only
def test_what_has_no_value_at_the_end_of_a_long_chain_is_refused() -> None:
    length = 1000
    db = chain(length)
    before = list(db["balance"])
    with pytest.raises(CycleError) as caught, db.transaction() as tx:
        tx.insert("next", [(0, length)])
    assert len(caught.value.cycle) == length + 2
    with db.transaction() as tx:
        tx.insert("next", [(2, 0)])
    assert db["balance"][length] == length + 2
    with pytest.raises(EvaluationError, match="sum"), db.transaction() as tx:
        tx.upsert("amount", [(0, 2**62)])
    with db.transaction() as tx:
        tx.erase("next", [(2, 0)])
    assert list(db["balance"]) == before
