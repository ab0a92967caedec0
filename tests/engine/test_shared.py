"""Heads that are another relation under a new name (lftj/maintain/alias.py), through facts, rules and key orders."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError
from tests.conftest import examples

PROGRAM = """
.decl e(x:number, y:number)
.decl deg(x:number) -> n:number
.decl again(x:number, n:number)
.decl by(n:number, x:number)
deg[x] = count : { e(x, _) }.
again(x, n) :- deg(x, n).
by(n, x) :- again(x, n), n > 1.
"""


def database(program: str = PROGRAM, **options: Any) -> lftj.Database:
    db = lftj.Database._sized(page_rows=2, directory_rows=2)
    db.rules(program, **options)
    return db


def strategies(tx: Any) -> dict[str, str]:
    return {head: told["strategy"] for head, told in tx.stats["heads"].items()}


def change(db: lftj.Database, insert: Any = (), erase: Any = (), name: str = "e") -> Any:
    with db.transaction() as tx:
        tx.erase(name, list(erase))
        tx.insert(name, list(insert))
    return tx


def degrees(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(x, sum(a == x for a, _ in edges)) for x, _ in edges}


edges = st.tuples(st.integers(0, 3), st.integers(0, 3))
steps = st.tuples(st.sampled_from(("e", "again")), st.booleans(), edges)


@examples(30)
@given(st.sets(edges), st.lists(st.one_of(steps, st.just("evaluate"), st.just("rule"), st.just("remove")), max_size=8))
def test_sharing_comes_and_goes_with_facts_and_rules(first: set[tuple[int, int]], history: list[Any]) -> None:
    db = database()
    db.load("e", list(first))
    held, facts, copies = set(first), set[tuple[int, int]](), 1
    for step in history:
        before = degrees(held) if copies else set()
        was = before | facts | ({(x, 9) for x, _ in held} if copies == 2 else set())
        if step == "evaluate":
            db.evaluate()
            continue
        with db.transaction() as tx:
            if step == "rule":
                if copies == 1:
                    tx.rules("again(x, 9) :- e(x, _).")
                    copies = 2
                elif copies == 0:
                    tx.rules("again(x, n) :- deg(x, n).")
                    copies = 1
            elif step == "remove":
                if copies:
                    tx.remove_rules("again")
                copies = 0
            else:
                name, erase, row = step
                rows = held if name == "e" else facts
                (tx.erase if erase else tx.insert)(name, [row])
                (rows.discard if erase else rows.add)(row)
        expected = facts | (degrees(held) if copies else set()) | ({(x, 9) for x, _ in held} if copies == 2 else set())
        delta = tx.delta["again"]
        assert (set(delta.inserted), set(delta.erased)) == (expected - was, was - expected)
        assert set(db["again"]) == expected
        assert set(db["deg"]) == degrees(held)
        assert set(db["by"]) == {(n, x) for x, n in expected if n > 1}
        for relation in db._state.relations.values():
            for columns in [*relation.orders]:
                version = relation.order(columns)
                version.check()
                rows = {tuple(row) for row in relation.content.columns()[list(columns)].T}
                assert {tuple(row) for row in version.columns().T} == rows


def test_a_shared_head_has_the_same_version_and_no_pages() -> None:
    db = database()
    db.load("e", [(1, 2), (1, 3), (2, 3)])
    db.evaluate()
    tx = change(db, insert=[(2, 4)])
    assert {head: how for head, how in strategies(tx).items() if head != "by"} == {"deg": "alias", "again": "alias"}
    relations = db._state.relations
    assert relations["again"].content is relations["deg"].content is relations["@deg.1"].content
    assert db.memory()["again"]["x, n"] == 0 < db.memory()["deg"]["@deg.1: x, count"]
    tx = change(db, erase=[(1, 2)])
    assert {head: how for head, how in strategies(tx).items() if head != "by"} == {"deg": "alias", "again": "alias"}
    assert set(tx.delta["again"].erased) == {(1, 2)}
    assert set(tx.delta["again"].inserted) == {(1, 1)}
    assert "the rows of `@deg.1`" in db.explain()


def test_facts_end_the_sharing_and_the_change_stays_exact() -> None:
    db = database()
    db.load("e", [(1, 2), (1, 3), (2, 3)])
    change(db, insert=[(2, 4)])
    tx = change(db, insert=[(7, 7), (1, 2)], name="again")
    assert strategies(tx)["again"] != "alias"
    assert set(tx.delta["again"].inserted) == {(7, 7)}
    assert not len(tx.delta["again"].erased)
    assert strategies(change(db, insert=[(3, 4)]))["again"] != "alias"
    tx = change(db, erase=[(7, 7), (1, 2)], name="again")
    assert set(tx.delta["again"].erased) == {(7, 7)}


def test_a_commit_that_fails_leaves_the_sharing_as_it_was() -> None:
    db = database(PROGRAM + ".decl bad(x:number)\nbad(10 / (n - 3)) :- again(_, n).")
    db.load("e", [(1, 2), (2, 3)])
    change(db, insert=[(1, 3)])
    content = db._state.relations["again"].content
    with pytest.raises(EvaluationError):
        change(db, insert=[(1, 4)])
    assert db._state.relations["again"].content is content
    assert set(db["again"]) == {(1, 2), (2, 1)}


def test_repeated_variables_constants_and_options_are_not_shared() -> None:
    program = """
    .decl e(x:number, y:number)
    .decl f(x:number, y:number)
    .decl g(x:number, y:number)
    .decl h(x:number, y:number)
    .decl w(x:number, y:number)
    f(y, x) :- e(x, y).
    g(x, x) :- e(x, x).
    h(x, 1) :- e(x, 1).
    w(x, y) :- e(x, y).
    """
    db = database(program, maintain={"w": "recompute"})
    db.load("e", [(1, 1), (1, 2)])
    db.evaluate()
    assert "alias" not in strategies(change(db, insert=[(2, 1)])).values()
    assert set(db["w"]) == {(1, 1), (1, 2), (2, 1)}


def test_a_snapshot_keeps_what_a_shared_head_held() -> None:
    db = database()
    db.load("e", [(1, 2)])
    change(db, insert=[(1, 3)])
    before = db.snapshot()
    change(db, insert=[(1, 4)])
    assert set(before["again"]) == {(1, 2)}
    assert set(db["again"]) == {(1, 3)}
