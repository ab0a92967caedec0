"""One changed row that triggers follow in one call: the head is what evaluating gives, whatever disturbs the call.

Catches: a row of the head that is missed, doubled or out of order; events of a self-join in the wrong order; maps that
keep what an interrupted or a refused row did; room that is made in the middle of a row; a value that statements cannot
compute with and that nobody looked at.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.triggers import maps
from tests.conftest import JIT, THOROUGH

TWO = ".decl r(a:number, b:number)  .decl s(b:number, c:number)\n"
EDGES = ".decl e(x:number, y:number)\n"
RULES = {
    "sum": TWO + "t[b] = sum a * c : { r(a, b), s(b, c) }.",
    "sum of all": TWO + "t[] = sum a * c : { r(a, b), s(b, c) }.",
    "count by two keys": TWO + "t[b, c] = count : { r(_, b), s(b, c) }.",
    "group by another side": TWO + "t[a] = sum c : { r(a, b), s(b, c) }.",
    "self-join": EDGES + "t[x] = count : { e(x, y), e(y, _) }.",
    "sum of a self-join": EDGES + "t[x] = sum z : { e(x, y), e(y, z) }.",
    "mean": TWO + "t[b] = mean c : { r(_, b), s(b, c) }.",
    "sum of a cycle": EDGES + "t[x] = count : { e(x, y), e(y, z), e(z, x) }.",
}
LARGE = 2**62


def followed(rules: str) -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(rules, maintain={"t": "triggers"})
    db.evaluate()
    return db


def insert(db: lftj.Database, name: str, row: tuple[int, int]) -> lftj.Transaction:
    with db.transaction() as tx:
        tx.insert(name, [row])
    return tx


def anew(rules: str, facts: dict[str, set[tuple[int, int]]]) -> list[Any]:
    db = lftj.Database()
    db.rules(rules, maintain={"t": "recompute"})
    for name, rows in facts.items():
        db.load(name, sorted(rows))
    return list(db["t"])


@pytest.mark.parametrize("name", RULES)
def test_row_by_row_it_is_what_evaluating_gives(name: str) -> None:
    rng = random.Random(name)
    names = ("r", "s") if RULES[name].startswith(TWO) else ("e",)
    for _ in range(40 if THOROUGH else 4 if JIT else 1):
        db, facts = followed(RULES[name]), {relation: set[tuple[int, int]]() for relation in names}
        for _ in range(40 if JIT else 12):
            relation = rng.choice(names)
            row = rng.randrange(-3, 4), rng.randrange(-3, 4)
            before = set(db["t"])
            with db.transaction() as tx:
                (tx.erase if row in facts[relation] else tx.insert)(relation, [row])
            facts[relation] ^= {row}
            expected = anew(RULES[name], facts)
            assert list(db["t"]) == expected
            assert set(tx.delta["t"].inserted) == set(expected) - before
            assert set(tx.delta["t"].erased) == before - set(expected)


@pytest.mark.parametrize("partners", [3, 200])
def test_a_row_that_changes_few_groups_or_many(partners: int) -> None:
    rules = RULES["group by another side"]
    db, r = followed(rules), {(a, 0) for a in range(partners)}
    db.load("r", sorted(r))
    db.evaluate()
    for row in [(0, 5), (0, 7), (0, -5), (1, 3)]:
        with db.transaction() as tx:
            tx.insert("s", [row])
    assert list(db["t"]) == [(a, 7) for a in range(partners)]
    with db.transaction() as tx:
        tx.erase("s", [(0, 5)])
    assert list(tx.delta["t"].inserted) == [(a, 2) for a in range(partners)]


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_row_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    db = followed(RULES["sum"])
    facts = {"r": {(1, 0), (2, 0)}, "s": {(0, 3), (0, 4)}}
    for name, rows in facts.items():
        db.load(name, sorted(rows))
    insert(db, "r", (3, 1))
    facts["r"].add((3, 1))
    follow = maps.follow_row

    def interrupted(*args: Any) -> Any:
        if after:
            follow(*args)
        raise KeyboardInterrupt

    for a in (7, 8):
        before = list(db["t"])
        with monkeypatch.context() as patch:
            patch.setattr(maps, "follow_row", interrupted)
            with pytest.raises(KeyboardInterrupt):
                insert(db, "r", (a, 0))
        assert list(db["t"]) == before
        insert(db, "r", (10 * a, 0))
        facts["r"].add((10 * a, 0))
        assert list(db["t"]) == anew(RULES["sum"], facts)


def test_a_sum_that_leaves_its_type_is_an_error_and_changes_nothing() -> None:
    db = followed(TWO + "t[b] = sum a : { r(a, b), s(b, _) }.")
    for relation, row in [("s", (0, 1)), ("r", (LARGE, 0)), ("r", (LARGE - 1, 0))]:
        with db.transaction() as tx:
            tx.insert(relation, [row])
    assert list(db["t"]) == [(0, 2 * LARGE - 1)]
    for _ in range(2):
        with pytest.raises(EvaluationError):
            insert(db, "r", (1, 0))
        assert list(db["t"]) == [(0, 2 * LARGE - 1)]
    with db.transaction() as tx:
        tx.insert("r", [(-5, 0)])
    assert list(db["t"]) == [(0, 2 * LARGE - 6)]


def test_values_that_statements_cannot_multiply_are_evaluated() -> None:
    rules = RULES["sum"]
    db, facts = followed(rules), {"r": set[tuple[int, int]](), "s": set[tuple[int, int]]()}
    steps = [("r", (3, 0)), ("s", (0, 4)), ("r", (LARGE, 1)), ("s", (1, 1)), ("r", (-(2**63), 2)), ("s", (0, 2))]
    for relation, row in steps:
        with db.transaction() as tx:
            tx.insert(relation, [row])
        facts[relation].add(row)
        assert list(db["t"]) == anew(rules, facts)


def test_a_preview_of_a_row_is_taken_back_by_another() -> None:
    db = followed(RULES["sum"])
    db.load("s", [(0, 10)])
    db.evaluate()
    for a in range(3):
        with db.transaction() as tx:
            tx.insert("r", [(a, 0)])
            previewed = list(tx.preview()["t"].inserted)
            tx.insert("r", [(100 + a, 0)])
        assert previewed != list(tx.delta["t"].inserted)
    assert list(db["t"]) == [(0, 10 * (0 + 1 + 2 + 100 + 101 + 102))]
