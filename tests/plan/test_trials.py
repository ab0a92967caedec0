"""Bodies of many variables, of which estimates say little: their key orders are raced before one is chosen."""

from __future__ import annotations

from typing import Any

import pytest

import lftj
from bench import plans
from lftj.plan.trials import Trials

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

# Cases of bench.plans by seed that were misjudged, and the steps of the best order found. Of the first seed case 107
# took 462,743 steps by estimate, case 285 more than two million; of the others all had been within five times before
# bodies of few variables were tried, or neighbours of the best order (moves.py).
BEST = {
    (1, 14): 741, (1, 22): 444, (1, 24): 147, (1, 46): 359, (1, 54): 37, (1, 64): 97_839, (1, 78): 497, (1, 106): 462,
    (1, 107): 1_274, (1, 137): 5_506, (1, 147): 180, (1, 162): 320, (1, 224): 28_088, (1, 234): 19, (1, 240): 92,
    (1, 254): 181, (1, 279): 565, (1, 282): 10_020, (1, 285): 34_399, (1, 286): 1_848, (1, 294): 61,
    (2, 49): 1_015, (2, 63): 2_504, (2, 75): 5_978, (2, 106): 5_159, (2, 132): 4_635, (2, 133): 200, (2, 164): 5_055,
    (2, 175): 2_534, (2, 285): 21_093, (3, 15): 206_601, (3, 16): 3_423, (3, 21): 68, (3, 26): 24_184, (3, 46): 10_084,
    (3, 54): 123, (3, 86): 39, (3, 110): 1_675, (3, 118): 6, (3, 135): 4_333, (3, 137): 1_290, (3, 139): 142,
    (3, 150): 8_859, (3, 152): 45_642, (3, 154): 26_202, (3, 224): 243, (3, 225): 23_736, (3, 284): 87_992,
    (3, 286): 12_945, (3, 295): 122, (4, 167): 11_271, (4, 282): 83_518,
}  # fmt: skip


@pytest.mark.jit_only
@pytest.mark.parametrize(("seed", "number"), BEST)
def test_misjudged_bodies_are_walked_in_about_the_best_order(seed: int, number: int) -> None:
    walks = plans.Walks(plans.case_of(number, seed))
    _, plan = walks.db._evaluator.plan(walks.clause)
    assert walks.steps(plan, plans.MOST) <= plans.BOUND * (BEST[seed, number] + plans.SLACK)


CHAIN = ", ".join(f"e(y{i}, y{i + 1})" for i in range(7))
EDGES = [(i % 40, i * 7 % 40) for i in range(80)]


def loaded(rule: str) -> lftj.Database:
    db = lftj.Database(f".decl e(a:number, b:number)\n{rule}")
    db.load("e", EDGES)
    return db


def test_key_orders_that_only_trials_needed_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    raced: list[int] = []
    forget = Trials._forget

    def counted(trials: Trials, tried: Any, best: Any) -> None:
        raced.append(len(tried))
        forget(trials, tried, best)

    monkeypatch.setattr(Trials, "_forget", counted)
    db = loaded(f"r(y0, y7) :- {CHAIN}.")
    clause = db._strata.of("r")[0]
    _, plan = db._evaluator.plan(clause)
    assert raced
    assert raced[0] > 4
    assert set(db._relations["e"].orders) <= {(0, 1), *(node.key_order for node in plan.nodes)}


@pytest.mark.parametrize(
    "rule",
    [
        "r(x, z) :- e(x, y), e(y, z), x = 3.",  # it ends at once
        "r(x, y) :- e(x, y), x != y.",  # most of the steps are those of the rows
    ],
)
def test_nothing_else_is_tried_where_it_could_not_be_much_better(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trials, "_race", None)
    assert len(loaded(rule)["r"]) > 0


@pytest.mark.parametrize("head", ["y0", "y7", "y3, y4", "y0, y7"])
@pytest.mark.parametrize("more", ["", ", !e(y2, y1)", ", y3 < y4", ", y0 = 3, z = y6 + y7, z != 30"])
def test_answers_do_not_depend_on_what_was_tried(head: str, more: str) -> None:
    """Against plain Python."""
    edges = set(EDGES)
    ways: list[tuple[int, ...]] = [(a,) for a in ([3] if "y0 = 3" in more else range(40))]
    for _ in range(7):
        ways = [(*way, b) for way in ways for a, b in edges if a == way[-1]]
    if "!e" in more:
        ways = [way for way in ways if (way[2], way[1]) not in edges]
    if "<" in more:
        ways = [way for way in ways if way[3] < way[4]]
    if "z =" in more:
        ways = [way for way in ways if way[6] + way[7] != 30]
    expected = {tuple(way[int(v[1:])] for v in head.split(", ")) for way in ways}
    assert set(loaded(f"r({head}) :- {CHAIN}{more}.")["r"]) == expected
