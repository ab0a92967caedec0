"""Outputs of circuits attached to a database whose names were used before, by circuits that were taken away.

Catches: a name that is taken for ever, rules above it that are not followed, an output that is derived from itself, a
circuit that gives nothing.
"""

from __future__ import annotations

import pytest

import lftj
from lftj import streams


def test_the_name_of_an_output_can_be_used_again() -> None:
    """It was taken for ever, and rules that read it had to be written anew for another circuit."""

    def dearest(n: int) -> streams.Circuit:
        c = streams.Circuit("best")
        c.output("best", c.input("price", item=int, cents=int).group_by("item").top(n, "-cents"))
        return c

    db = lftj.Database(".decl price(item:number, cents:number)")
    db.load("price", [(1, 10), (1, 20), (1, 30), (2, 5)])
    db.attach(dearest(1))
    db.rules("seen(i) :- best(i, c), c > 15.  twice(i + 1) :- seen(i).")
    assert (list(db["best"]), list(db["twice"])) == ([(1, 30), (2, 5)], [(2,)])
    with pytest.raises(lftj.DataError, match="a relation of its own, and this one has rows or rules"):
        db.attach(dearest(2))
    with db.transaction() as tx:
        tx.remove_rules("best")
    assert list(db["twice"]) == []
    db.attach(dearest(2))
    assert (list(db["best"]), list(db["twice"])) == ([(1, 20), (1, 30), (2, 5)], [(2,)])
    with db.transaction() as tx:
        tx.insert("price", [(2, 50)])
    assert (list(tx.delta["best"].inserted), list(tx.delta["twice"].inserted)) == ([(2, 50)], [(3,)])
    with db.transaction() as tx:
        tx.remove_rules("best")
        tx.rules("price(i, 1) :- twice(i).")
    before = db._state
    with pytest.raises(lftj.DataError, match="rules derive `price` from `best`"):
        db.attach(dearest(2))
    assert db._state is before


def test_a_circuit_of_rules_gives_what_it_is_told_to() -> None:
    """What is there it reads: attached a second time it gave nothing, and said nothing."""
    rules = ".decl e(a:number, b:number)  p(x, y) :- e(x, y).  p(x, z) :- p(x, y), e(y, z)."
    db = lftj.Database(".decl e(a:number, b:number)")
    db.load("e", [(1, 2), (2, 3)])
    db.attach(streams.from_rules(rules))
    with db.transaction() as tx:
        tx.remove_rules("p")
    with pytest.raises(lftj.DataError, match=r'would give nothing(.|\n)*`outputs=\{"p": "p"\}`'):
        db.attach(streams.from_rules(rules))
    db.attach(streams.from_rules(rules), outputs={"p": "p"})
    assert list(db["p"]) == [(1, 2), (1, 3), (2, 3)]
