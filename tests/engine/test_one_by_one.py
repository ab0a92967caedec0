"""Rules and views that are added one by one: each takes about as long, however many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import lftj
from lftj.errors import ProgramError

FEW, MANY = 30, 150
ADDED: dict[str, Callable[[lftj.Database, int], Any]] = {
    "rule": lambda db, i: db.rules(f"p{i}(x) :- e(x, y), y > {i}."),
    "recursion": lambda db, i: db.rules(f"r{i}(y) :- e({i}, y).  r{i}(y) :- r{i}(x), e(x, y)."),
    "negation": lambda db, i: db.rules(f"n{i}(x) :- e(x, y), !e(y, {i})."),
    "aggregate": lambda db, i: db.rules(f"a{i}[x] = sum y : {{ e(x, y), y > {i} }}."),
    "rule above": lambda db, i: db.rules(f"q{i}(x) :- q{i - 1}(x), x > 0." if i else "q0(x) :- e(x, _)."),
    "view": lambda db, i: db.sql(f"create view v{i} as select a, count(*) as n from t where b > {i} group by a"),
}


def calls_of(work: Callable[[], Any]) -> int:
    """The Python calls in lftj that something takes."""
    found = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal found
        found += event == "call" and "/lftj/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("kind", ADDED)
def test_adding_the_next_takes_as_many_calls(kind: str) -> None:
    pytest.importorskip("sqlglot")
    db = lftj.Database(".decl e(a:number, b:number)")
    db.sql("create table t (a int not null, b int)")
    db.load("e", [(i, i + 1) for i in range(9)])
    add, taken = ADDED[kind], []
    for i in range(MANY):
        taken.append(calls_of(lambda i=i: add(db, i)))  # type: ignore[misc]
    few, many = (sorted(taken[n - 9 : n])[4] for n in (FEW, MANY))
    assert many <= few + 25 * (MANY - FEW), (few, many)  # some names are looked through each time


def test_what_is_wrong_is_told_with_all_that_is_there() -> None:
    db = lftj.Database(".decl edge(a:number, b:number)  .decl person(a:number)")
    db.rules("p(x) :- edge(x, _).")
    with pytest.raises(ProgramError, match="did you mean `person`"):
        db.rules("q(x) :- persn(x).")
    with pytest.raises(ProgramError, match="has 2 columns, and 1 argument"):
        db.rules("q(x) :- edge(x).")


def test_what_others_read_is_checked_with_them() -> None:
    """`a` is read before it has rules; what they read closes a cycle through a negation."""
    db = lftj.Database(".decl a(x:number)  .decl e(x:number)")
    db.rules("b(x) :- e(x), !a(x).")
    with pytest.raises(ProgramError):
        db.rules("a(x) :- b(x).")
    db.rules("a(x) :- e(x), x > 1.  c(x) :- b(x), d(x).  d(x) :- e(x).")
    db.load("e", [(1,), (2,)])
    assert list(db["b"]) == [(1,)]
    assert list(db["c"]) == [(1,)]
    db.rules("a(x) :- e(x), x < 2.")
    assert list(db["b"]) == list(db["c"]) == []


def test_parts_have_names_of_their_own() -> None:
    """What rules are taken apart into is numbered on, and shared where it is the same."""
    db = lftj.Database(".decl e(a:number, b:number?)")
    for i in range(4):
        db.rules(f"n{i}(x) :- e(x, _), !(e(x, y), y > {i}).  s{i}[x] = sum y : {{ e(x, y), y > {i} }}.")
        db.rules(f"m{i}[x] = max y : {{ e(x, y) }}.")
    db.load("e", [(1, 1), (1, 3), (2, None), (3, 2)])
    for i in range(4):
        rows = {(1, 1), (1, 3), (3, 2)}
        assert {x for (x,) in db[f"n{i}"]} == {1, 2, 3} - {x for x, y in rows if y > i}
        assert dict(db[f"s{i}"]) == {x: sum(y for z, y in rows if z == x and y > i) for x, y in rows if y > i}
        assert dict(db[f"m{i}"]) == {1: 3, 3: 2}


@pytest.mark.parametrize("terms", [700, 1_000])
def test_a_deep_term_is_refused_as_by_the_checker(terms: int) -> None:
    """What rules name is looked for before they are checked, which ended in a RecursionError from 700 terms on."""
    with pytest.raises(ProgramError, match="nested too deeply"):
        lftj.Database(f".decl e(a:number)  h(x) :- e(a), x = a{'+1' * terms}.")


def test_names_of_types_are_known_to_later_texts() -> None:
    db = lftj.Database(".type Id <: number\n.decl edge(a:Id, b:Id?)")
    db.rules(".type Ids = Id  .decl node(a:Ids)  node(a) :- edge(a, _).")
    with db.transaction() as tx:
        tx.rules(".type Price = decimal(10, 2)")
        tx.rules(".decl price(a:Id, p:Price?)")
    assert str(db["price"]._schema) == "price(a:number, p:decimal(10,2)?)"
    with pytest.raises(lftj.DataError), db.transaction() as tx:  # noqa: PT012
        tx.rules(".type Gone = number")
        tx.insert("edge", [("a", 1)])
    with pytest.raises(lftj.ProgramError, match="unknown type `Gone`"):
        db.rules(".decl other(a:Gone)")
    db.rules(".type Id = symbol  .decl name(a:Id)")  # as every text could say before
    db.branch().rules(".decl more(a:Id, b:Ids)  more(a, 1) :- name(a).")
    assert [str(db[name]._schema) for name in ("edge", "name")] == ["edge(a:number, b:number?)", "name(a:symbol)"]
