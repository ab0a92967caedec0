"""Key orders of projections: what is searched for a first witness is charged what it walks through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from bench import plans
from lftj.evaluate import overdue
from lftj.evaluate.evaluator import Evaluator
from lftj.join.ranges import CutRun
from lftj.join.run import Limits, Overdue
from lftj.plan import cuts

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


def chain(atoms: int) -> str:
    return ", ".join(f"e(y{i}, y{i + 1})" for i in range(atoms))


def evaluated(rule: str, rows: Any) -> tuple[lftj.Database, Any]:
    db = lftj.Database(f".decl e(a:number, b:number)\n{rule}")
    db.load("e", rows)
    db.evaluate()
    return db, db._state.evaluations[db._strata.of("r")[0]]


def test_a_projected_chain_is_followed_along_a_path() -> None:
    """It bound y0, y2, y4, ... and took 1,202,851,994 steps: a product without a witness was taken to cost nothing."""
    db, evaluation = evaluated(f"r(y0) :- {chain(11)}.", [(i, i + 1) for i in range(60)])
    assert set(db["r"]) == {(i,) for i in range(50)}
    assert evaluation.plan.order == tuple(f"y{i}" for i in range(11))
    assert evaluation.counters.steps < 1000


@pytest.mark.jit_only
def test_a_projected_chain_over_a_random_graph() -> None:
    """It took 2,056,179 steps where 6,853 do."""
    edges = np.unique(np.random.default_rng(1).integers(0, 750, (1500, 2)), axis=0)
    _, evaluation = evaluated(f"r(y0) :- {chain(6)}.", edges)
    assert evaluation.counters.steps < 20_000


@pytest.mark.parametrize("head", ["y0", "y10", "y5", "y0, y10", "y3, y7"])
def test_the_witness_is_sought_behind_the_last_variable_of_any_head(head: str) -> None:
    """Variables before it that the head does not hold make no difference to where the search ends."""
    db, evaluation = evaluated(f"r({head}) :- {chain(10)}.", [(i, i + 1) for i in range(30)])
    names = head.split(", ")
    assert set(db["r"]) == {tuple(i + int(v[1:]) for v in names) for i in range(21)}
    last = max(evaluation.plan.order.index(v) for v in names)
    assert evaluation.plan.until == last + 1
    assert evaluation.counters.steps < 2000


@pytest.mark.parametrize("atoms", [30, 50])
def test_long_bodies_are_planned_with_few_looks(atoms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is connected is bound next, and few orders of the same variables are kept."""
    from lftj.plan import keyorder

    bind, looked = keyorder.OrderSearch.bind, []

    def counted(search: Any, partial: Any, v: str) -> Any:
        looked.append(v)
        return bind(search, partial, v)

    monkeypatch.setattr(keyorder.OrderSearch, "bind", counted)
    _, evaluation = evaluated(f"r(y0) :- {chain(atoms)}.", [(i, i + 1) for i in range(60)])
    assert set(evaluation.plan.order) == {f"y{i}" for i in range(atoms)}
    assert evaluation.counters.steps < 100 * atoms
    assert len(looked) < 2 * atoms**2


@pytest.mark.jit_only
@pytest.mark.parametrize("number", [n for n in range(120) if plans.group_of(plans.case_of(n)) == "plain"])
def test_chosen_orders_take_at_most_twice_the_steps_of_the_best(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of bench.plans, with fewer orders tried."""
    monkeypatch.setattr(plans, "SAMPLED", 16)
    monkeypatch.setattr(plans, "MOST", 300_000)
    outcome = plans.measure(plans.case_of(number))
    assert outcome.tried > 0
    assert outcome.ratio <= plans.BOUND, outcome


# Orders that are abandoned -----------------------------------------------------------------------------------

TRIANGLE = "r(x, y, z) :- e(x, y), e(y, z), e(x, z)."
RULES = [
    TRIANGLE,
    "r(x) :- e(x, y), e(y, z), e(z, w).",
    "r(z) :- e(x, y), e(y, z), e(z, _), x < z.",
    "r(n) :- n = count : { e(x, y), e(y, z) }.",
    "r(x, n) :- e(x, _), n = sum z : { e(x, y), e(y, z) }.",
    "r(x, w) :- e(x, y), e(y, z), !e(z, x), w = x + z.",
]
EDGES = [(i, j) for i in range(14) for j in range(14) if (i * 5 + j * 3) % 4 == 0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("strategy", "threads"), [("auto", 1), ("trace", 1), ("delta", 1), ("auto", 2)])
def test_whatever_is_abandoned_the_answer_is_the_same(
    rule: str, strategy: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of an abandoned walk are dropped, those of one that goes on are not; before and after a change."""
    monkeypatch.setattr(cuts, "LEAST_STEPS", 1.0)

    def answers() -> list[set[Any]]:
        db = lftj.Database(".decl e(a:number, b:number)", threads=threads)
        db.rules(rule, maintain={"r": strategy})
        db.load("e", EDGES)
        before = set(db["r"])
        with db.transaction() as tx:
            tx.insert("e", [(3, 3), (5, 20)])
            tx.erase("e", EDGES[:5])
        return [before, set(db["r"]), {db.query("e(x, y), e(y, z)").count()}]

    expected = answers()
    monkeypatch.setattr(overdue, "LATE", 0.02)
    monkeypatch.setattr(overdue, "FLOOR", 4)
    assert answers() == expected


@pytest.mark.parametrize("counting", [False, True])
def test_a_walk_of_several_threads_is_given_up_and_goes_on_where_it_was(
    counting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever has been taken of it until then is not found again."""
    monkeypatch.setattr(cuts, "LEAST_STEPS", 1.0)
    db = lftj.Database(f".decl e(a:number, b:number)\n{TRIANGLE}", threads=2)
    db.load("e", EDGES)
    expected = {(x, y, z) for x, y in EDGES for u, z in EDGES if u == y and (x, z) in EDGES}
    clause, found, stops = db._strata.of("r")[0], list[Any](), 0
    body, plan = db._evaluator.plan(clause, counting=counting)
    run = db._evaluator._run(clause, body, plan, Limits(), {})
    assert isinstance(run, CutRun)
    run.most = 4
    while True:
        try:
            if counting:
                assert run.count() == len(expected)
            else:
                for chunk in run.chunks():
                    found += chunk.T.tolist()
            break
        except Overdue:
            stops += 1
            assert run.steps > run.most
            run.most *= 4
    assert stops > 1
    assert run.counters.ranges > 1
    assert counting or sorted(map(tuple, found)) == sorted(expected)


def test_a_walk_of_several_threads_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LEAST_STEPS", 1.0)
    monkeypatch.setattr(overdue, "LATE", 0.02)
    monkeypatch.setattr(overdue, "FLOOR", 4)
    again = list[str]()
    plan = Evaluator.plan

    def planned(evaluator: Evaluator, clause: Any, **options: Any) -> Any:
        again.extend(" ".join(late.order) for late in options.get("abandoned", ()))
        return plan(evaluator, clause, **options)

    monkeypatch.setattr(Evaluator, "plan", planned)
    db = lftj.Database(f".decl e(a:number, b:number)\n{TRIANGLE}", threads=2)
    db.load("e", EDGES)
    assert len(db["r"]) > 0
    assert again
