"""Strata from which heads were taken, beside those made of the clauses that are left.

Catches: a head that is read by what is gone; one that stays recursive, or is evaluated before what it reads.
"""

from __future__ import annotations

from random import Random

import pytest

import lftj
from lftj.program.strata import Strata

HEADS = 12


def program(rng: Random) -> str:
    """Heads that read one base relation and some heads, mostly earlier ones."""
    rules = [".decl e(x:number)"]
    for at in range(HEADS):
        for _ in range(rng.randint(1, 2)):
            reads = [
                f"p{rng.randrange(HEADS if rng.random() < 0.2 else at)}(x)" for _ in range(at and rng.randint(0, 2))
            ]
            rules.append(f"p{at}(x) :- {', '.join(['e(x)', *reads])}.")
        if rng.random() < 0.3:
            rules.append(f"c{at}(n) :- n = count : {{ p{at}(x), e(x) }}.")
    return "\n".join(rules)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_they_are_those_of_what_is_left(seed: int) -> None:
    rng = Random(seed)
    strata = lftj.Database(program(rng))._strata
    while strata.order:
        gone = set(rng.sample(strata.order, min(len(strata.order), rng.randint(1, 3))))
        strata = strata.without(gone)
        assert gone.isdisjoint(strata.order)
        again = Strata(strata.clauses, strata.order)
        for name in Strata.__slots__:
            if name != "affected":
                assert getattr(strata, name) == getattr(again, name), name
        place = {head: at for at, head in enumerate(strata.order)}
        for head in strata.order:
            beside = strata.recursive.get(head, ())
            below = [name for name in strata.reads(head) if name in place and name not in beside]
            assert all(place[name] < place[head] for name in below)
        some = rng.choice(["e", *strata.order])
        assert strata.above([some]) == again.above([some])


def test_relations_are_dropped_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the others is ordered again."""
    db = lftj.Database()
    db.sql("create table t(g int, v int)")
    views = ("a", "b", "c")
    for name in views:
        db.sql(f"create view {name} as select g, sum(v) as s, count(*) as n from t group by g")
    monkeypatch.setattr(Strata, "_heads", None)
    for name in views:
        db.sql(f"drop view {name}")
    assert list(db._state.relations) == ["t"]
