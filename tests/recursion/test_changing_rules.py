"""Random histories in which rules come and go, of recursive components too, under every strategy.

Catches: what was kept of a head (its content with rounds, the plans and traces of its rules) and outlives how the head
was derived: after rules closed, merged, shrank or broke up a component, were removed and added again, or left a head
with nothing but facts.
"""

from __future__ import annotations

from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.maintain.choose import STRATEGIES
from tests.conftest import FULL, JIT, examples
from tests.engine import programs
from tests.recursion import changing
from tests.recursion.changing import Twin, history

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once", "ignore:.*is the same as")

# Histories that have every strategy.
HISTORIES = 60
ROUNDS, MOST = (8, 6) if JIT else (3, 3)


@examples(25, 1)
@given(programs.seeds)
def test_random(rng: Random) -> None:
    history(rng, ROUNDS, MOST)


@pytest.mark.skipif(not FULL, reason="as many histories as it takes for all to occur")
@examples(1)
@given(st.just(range(HISTORIES)))
def test_every_strategy_occurs(seeds: range) -> None:
    """Without being asked for; the histories are the same each time."""
    Twin.strategies.clear()
    with mock.patch.object(changing, "WISHES", ("auto",)):
        for seed in seeds:
            history(Random(seed), ROUNDS, MOST)
    own = {strategy.name for strategy in STRATEGIES if type(strategy).__module__.startswith("lftj.maintain.")}
    assert Twin.strategies == {"none", *own} - {
        "first",
        "window",
    }  # of SQL alone (tests/sql/test_limits.py, test_windows.py)


# What such histories found -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("maintain", [{"q": "delta"}, {}])
def test_a_head_that_leaves_a_recursion_follows_by_its_delta(maintain: dict[str, str]) -> None:
    """Its content had rounds still, which were not expected: every later commit raised `ValueError`."""
    db = lftj.Database()
    db.rules(".decl k(x:number)\nq(x) :- p(x), k(x).\np(x) :- q(x).", maintain=maintain)
    db.load("k", [(1,)])
    assert len(db["q"]) == 0
    with db.transaction() as tx:
        tx.remove_rules("p")
    assert tx.stats["heads"]["q"]["why"].startswith("the rules of its recursion changed; ")
    for name, row in (("q", (-1,)), ("p", (1,))):
        with db.transaction() as tx:
            tx.insert(name, [row])
        assert not maintain or tx.stats["heads"]["q"]["strategy"] == "delta"
        assert set(tx.delta["q"].inserted) == {row}
    assert list(db["q"]) == [(-1,), (1,)]


def test_a_rule_that_leaves_a_recursion_is_planned_anew() -> None:
    """A plan over the changed rows of a round was taken for the plan of the rule: `KeyError: '@Δ'`."""
    db = lftj.Database()
    rules = "p(x, y) :- e(x, y), fl(x).\np(x, z) :- p(x, y), q(y, z).\nq(x, y) :- fl(x), p(x, y)."
    db.rules(f".decl e(x:number, y:number)\n.decl fl(x:number)\n{rules}", maintain={"q": "delta"})
    db.load("e", [(1, 2), (2, 3)])
    db.load("fl", [(1,), (2,)])
    assert list(db["q"]) == [(1, 2), (1, 3), (2, 3)]
    with db.transaction() as tx:
        tx.remove_rules("p")
        tx.insert("p", [(1, 2), (3, 3)])
    assert set(tx.delta["q"].erased) == {(1, 3), (2, 3)}
    with db.transaction() as tx:
        tx.insert("p", [(2, 2)])
    assert tx.stats["heads"]["q"]["strategy"] == "delta"
    assert list(db["q"]) == [(1, 2), (2, 2)]
    assert db.explain("q")


def test_what_is_left_of_a_component_keeps_its_rounds() -> None:
    """Three heads, of which one loses its rules: the others are recursive as before, and are maintained."""
    db = lftj.Database(".decl e(x:number, y:number)")
    db.rules(
        "a(x, y) :- e(x, y).\na(x, z) :- c(x, y), e(y, z).\nc(x, y) :- a(x, y).\nd(x) :- a(x, x).\nc(x, x) :- d(x)."
    )
    db.load("e", [(1, 2), (2, 1)])
    assert list(db["d"]) == [(1,), (2,)]
    with db.transaction() as tx:
        tx.remove_rules("d")
    assert {tx.stats["heads"][head]["strategy"] for head in "ac"} == {"rounds"}
    assert list(db["c"]) == [(x, y) for x in (1, 2) for y in (1, 2)]


def test_a_head_in_a_recursion_keeps_no_traces() -> None:
    """Nor what it ran by then, once it has left."""
    db = lftj.Database()
    program = ".decl e(x:number, y:number)\nt(x, y) :- e(x, y), e(y, _).\nu(x, y) :- t(x, y), e(y, _)."
    db.rules(program, maintain={"t": "trace", "u": "trace"})
    kept = db._kept
    for step, (held, ran) in enumerate((({"t", "u"}, set()), (set(), {"t", "u"}), ({"t"}, set()))):
        with db.transaction() as tx:
            tx.insert("e", [(step, step + 1), (step + 1, step)])
            if step == 1:
                tx.rules("t(x, z) :- u(x, y), e(y, z).")
            if step == 2:
                tx.remove_rules("u")
                assert tx.preview()["u"].erased
        assert kept.heads.keys() == held
        assert kept.join_stats.keys() == ran


def test_rules_with_braces_are_exchanged_in_one_transaction() -> None:
    """What the braces of the old rule derived was taken for what those of the new one do: `IndexError`."""
    db = lftj.Database(".decl e(x:number, y:symbol, z:number)\ns(n) :- n = sum z : { e(_, _, z) }, n > 1.")
    db.load("e", [(1, "a", 2), (1, "b", 3), (2, "a", 3)])
    assert list(db["s"]) == [(8,)]
    with db.transaction() as tx:
        tx.remove_rules("s")
        tx.rules('s(n) :- e(x, _, n), m = max y : { e(x, y, _) }, m != "b".')
    assert (set(tx.delta["s"].erased), set(tx.delta["s"].inserted)) == ({(8,)}, {(3,)})
    with db.transaction() as tx:
        tx.insert("e", [(3, "a", 9)])
    assert list(db["s"]) == [(3,), (9,)]


def test_a_rule_that_comes_back_is_maintained_as_it_asks_for() -> None:
    """The same rule, removed and added with another strategy, was followed by the traces it had before."""
    db = lftj.Database(".decl e(x:number, y:number)")
    rule = "t(x, z) :- e(x, y), e(y, z)."
    db.rules(rule, maintain={"t": "trace"})
    for node, strategy in enumerate(("trace", "delta"), 3):
        with db.transaction() as tx:
            tx.insert("e", [(1, 2)])
        with db.transaction() as tx:
            tx.remove_rules("t")
            tx.rules(rule, maintain={"t": strategy})
        with db.transaction() as tx:
            tx.insert("e", [(2, node)])
        assert tx.stats["heads"]["t"]["strategy"] == strategy
    assert list(db["t"]) == [(1, 3), (1, 4)]


def test_rules_with_braces_come_and_go_in_one_transaction() -> None:
    """The commit looked for what the braces had derived: `KeyError: '@s.1'`."""
    db = lftj.Database(".decl e(x:number, z:number)\n.decl s(n:number)")
    with db.transaction() as tx:
        tx.rules("s(n) :- n = sum z : { e(_, z) }, n > 1.")
        tx.insert("e", [(1, 2)])
        assert list(tx.preview()["s"].inserted) == [(2,)]
        tx.remove_rules("s")
    assert set(tx.delta) == {"e"}
    assert len(db["s"]) == 0


@pytest.mark.parametrize("maintain", ["auto", "recompute", "delta", "trace"])
def test_heads_that_a_recursion_falls_into_stand_bottom_up(maintain: str) -> None:
    """Without `c`, `a` reads `b`, which stood behind it still: `a` was followed first, and missed what `b` derived."""
    rules = """
        .decl r(x:number)
        .decl a(x:number, y:number)
        .decl b(x:number, y:number)
        .decl c()
        a(x, 0) :- b(x, y), !r(y).
        a(x, x) :- a(x, _), c().
        b(0, 0) :- c().
        c() :- a(_, y), r(y).
    """
    db = lftj.Database()
    db.rules(rules, maintain=dict.fromkeys("ab", maintain))
    db.load("r", [(1,)])
    with db.transaction() as tx:
        tx.insert("a", [(5, 2)])
    with db.transaction() as tx:
        tx.remove_rules("c")
        tx.insert("b", [(2, 7), (3, 1)])
    assert list(tx.delta["a"].inserted) == [(2, 0)]
    assert list(db["a"]) == [(2, 0), (5, 2)]
    with db.transaction() as tx:
        tx.insert("c", [()])
        tx.erase("r", [(1,)])
    assert list(db["a"]) == [(0, 0), (2, 0), (2, 2), (3, 0), (3, 3), (5, 2), (5, 5)]
