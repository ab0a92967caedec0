"""Plans: the same for the same data, filters early, wildcards free, orders shared, estimates finite, soon made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import lftj
from lftj.language.checker import check_query
from lftj.plan import keyorder
from lftj.plan.body import body_of
from tests.conftest import examples
from tests.engine import programs

EDGES = [(i, j) for i in range(8) for j in range(8) if i < j and (i * j) % 3 != 1]
DECLARATIONS = ".decl e(src:number, dst:number)\n.decl t(a:number, b:number, c:number)\n"

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


def database(text: str = "", **options: Any) -> lftj.Database:
    db = lftj.Database._sized(DECLARATIONS + text, page_rows=4, directory_rows=4, **options)
    db.load("e", EDGES)
    db.load("t", [(i % 3, i % 5, i % 7) for i in range(40)])
    return db


def depths(query: lftj.Query) -> dict[str, dict[str, Any]]:
    return {d["variable"]: d for d in query.explain().data["query"]["depths"]}


QUERIES = [
    "e(x, y), e(y, z), e(x, z)",
    "t(a, b, c), e(a, b), e(c, b), a < c",
    "t(a, _, c), e(c, d), t(d, 1, _)",
    "e(x, x2), e(y, y2), x2 = y + 1",
]


@pytest.mark.parametrize("text", QUERIES)
def test_plans_are_deterministic(text: str) -> None:
    plans = {database().query(text).explain().json() for _ in range(3)}
    assert len(plans) == 1


@given(programs.cases())
@examples(25, 8)
def test_estimates_are_finite(case: programs.Case) -> None:
    db = lftj.Database._sized("\n".join(case.parts), **case.sizes)
    for name, rows in case.loads:
        db.load(name, rows)
    db.evaluate()
    for head in db._strata.order:
        for clause in db._strata.of(head):
            for part in db._state.evaluations[clause].parts():
                figures = [part.plan.cost, *(d.rows for d in part.plan.depths)]
                assert all(math.isfinite(f) and f >= 0 for f in figures), figures


def test_secondary_orders_are_built_once_and_shared() -> None:
    """Two rules that read `e` backwards use one secondary order; the planner prefers one that exists."""
    db = database("back(y, x) :- e(x, y), y > 3.\nagain(y, x) :- e(x, y), t(y, _, _).")
    db.rules("one(y, x) :- e(x, y).", key_orders={"one": ("y", "x")})
    db.rules("two(y, x) :- e(x, y), y > 5.", key_orders={"two": ["y", "x"]})
    db.evaluate()
    assert set(db.memory()["e"]) == {"src, dst", "dst, src"}
    secondary = db._relations["e"].order((1, 0))
    db.query("e(x, y), y = 5", order=("y", "x")).count()
    assert db._relations["e"].order((1, 0)) is secondary
    assert set(db["one"]) == {(y, x) for x, y in EDGES}


def test_an_order_whose_prefix_fits_is_used() -> None:
    db = database()
    db.query("t(a, b, c)", order=("c", "a", "b")).count()
    db.query("t(_, _, c), e(c, d)", order=("c", "d")).count()
    db.query("t(a, _, c), e(c, d)", order=("c", "a", "d")).count()
    assert set(db.memory()["t"]) == {"a, b, c", "c, a, b"}


def test_wildcards_need_no_level() -> None:
    db = database()
    plan = db.query("t(a, _, _), e(_, _)").explain().data["query"]
    assert [d["participants"] for d in plan["depths"]] == [["t[0,1,2](a)"]]
    assert plan["guards"] == ["e"]


def test_conditions_stand_where_their_last_variable_is_bound() -> None:
    found = depths(
        database().query("e(x, y), e(y, z), e(z, w), x < 5, y != x, z > x + 1, w = z + 1", order=("x", "y", "z", "w"))
    )
    assert {v: d["conditions"] for v, d in found.items()} == {
        "x": ["x < 5"],
        "y": ["y != x"],
        "z": ["z > x + 1"],
        "w": [],
    }
    assert found["w"]["how"] == "= z + 1"
    assert found["y"]["how"] == "leapfrog"


def test_constants_and_repeated_variables_are_computed_candidates() -> None:
    db = database()
    db.load("e", [(3, 3)])
    query = db.query("e(x, x), t(x, 4, y)")
    hows = {d["variable"]: d["how"] for d in query.explain().data["query"]["depths"]}
    assert sum(how.startswith("= ") for how in hows.values()) == 2
    assert list(query) == []


def test_a_forced_order_is_taken_and_shown() -> None:
    query = database().query("e(x, y), e(y, z)", order=("z", "y", "x"))
    assert query.explain().data["query"]["key_order"] == ["z", "y", "x"]
    assert "key order z, y, x  (forced)" in str(query.explain())
    assert query.stats == {}
    query.count()
    assert query.stats["key_order"] == ["z", "y", "x"]


def test_a_forced_order_may_name_a_computed_variable_first() -> None:
    """It waits for what it is computed from. A depth without candidates was made of it, and the walk never ended."""
    db = database()
    query = db.query("e(x, y), z = x + y", order=("z", "x", "y"))
    assert query.explain().data["query"]["key_order"] == ["x", "y", "z"]
    assert set(query) == {(x, y, x + y) for x, y in EDGES}


def test_a_forced_order_does_not_name_arguments_that_are_expressions() -> None:
    """The variable that stands for `x + 1` has no name the user could know; it was asked for."""
    db = database()
    expected = {(x, y, z) for x, y in EDGES for w, z in EDGES if w == x + 1}
    assert set(db.query("e(x, y), e(x + 1, z)", order=("z", "x", "y"))) == expected
    assert set(db.query("e(x, y), e(x + 1, z)", order=("x", "y", "z"))) == expected


def test_a_forced_order_that_does_not_fit() -> None:
    with pytest.raises(lftj.DataError) as caught:
        database().query("e(x, y), e(y, z)", order=("x", "y"))
    assert str(caught.value) == (
        "<query>:1:1: the key order (x, y) does not name each variable of the rule once\n"
        "  why: the variables of `e(x, y), e(y, z)` are x, y, z\n"
        "  do: list all of them, outermost first"
    )


def test_a_forced_order_for_a_head_that_is_not_there() -> None:
    with pytest.raises(lftj.Error) as caught:
        database().rules("p(x) :- e(x, _).", key_orders={"q": ("x",)})
    assert str(caught.value) == (
        "a key order is given for `q`, which no rule of this program derives\n"
        "  why: it holds for rules of the program it is given with\n"
        "  do: name the head of a rule of the same program"
    )


@pytest.mark.parametrize("count", [10, 14])
def test_many_variables_are_planned_quickly(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search looks at `BEAM` beginnings per depth, whatever the number of orders; counted, since clocks err."""
    db = database()
    path = ", ".join(f"e(v{i}, v{i + 1})" for i in range(count))
    bind, looked = keyorder.OrderSearch.bind, []

    def counted(search: Any, partial: Any, v: str) -> Any:
        looked.append(v)
        return bind(search, partial, v)

    monkeypatch.setattr(keyorder.OrderSearch, "bind", counted)
    _, plan = db._evaluator.plan(check_query(path, db._schemas()))
    assert len(plan.order) == count + 1
    assert 0 < len(looked) <= 2 * keyorder.BEAM * (count + 1) ** 2


def test_the_body_without_constants() -> None:
    """The worked example of lftj/plan/body.py."""
    db = lftj.Database(".decl r(a:number, b:number, c:number, d:number)")
    body = body_of(check_query("r(x, 5, x, _)", db._schemas()))
    assert [atom.columns for atom in body.atoms] == [("x", "#1", "#2", None)]
    assert body.shown == {"#1": "5", "#2": "x"}


def test_counting_cuts_the_walk_into_blocks() -> None:
    db = database()
    query = db.query("e(x, y), e(x, z), e(u, _)")
    out = [sum(a == x for a, _ in EDGES) for x in range(8)]
    assert query.count() == sum(n * n for n in out) * sum(n > 0 for n in out)
    assert [d["counted_apart"] for d in query.explain().data["query"]["depths"]].count(True) == 4
    assert query.stats["steps"] < 4 * len(EDGES)


def test_a_head_that_is_computed_from_another_part_of_the_body_is_planned() -> None:
    """The search bound all of one part, then only looked at `v3`, which nothing could bind yet: IndexError."""
    db = lftj.Database._sized(
        """
        .decl r(a:number, b:number, c:number) .decl s(a:number) .decl p(a:number, b:number, c:number)
        p(a, b, c) :- r(a, b, c).
        p(v3, v4, v3) :- p(_, v0, v1), s(v2), v3 = v2 - 1, v2 > 0, v2 < 6, v4 = v1 - 1, v1 > 0, v1 < 6.
        """,
        page_rows=4,
        directory_rows=4,
    )
    db.load("r", [(1, 2, 3), (2, 2, 2)])
    db.load("s", [(1,), (3,), (4,)])
    assert len(db["p"]) == 7
    with db.transaction() as tx:
        tx.erase("s", [(1,)])
    assert sorted(db["p"]) == [(1, 2, 3), (2, 1, 2), (2, 2, 2), (3, 1, 3), (3, 2, 3)]


def test_a_query_is_planned_for_the_values_of_its_parameters() -> None:
    """Not as if half of the rows met each bound: joins of SQL, asked again with open literals, took four times as long.

    And what was planned for few rows is not kept for many.
    """
    edges = np.unique(np.random.default_rng(3).integers(0, 1_000, (20_000, 2)), axis=0)
    db = lftj.Database(".decl e(x:number, y:number)  .decl f(x:number, y:number)")
    db.load("e", edges)
    db.load("f", edges)
    open_query = check_query("e(x, y), f(y, z), x < $low, $high <= z", db._schemas(), parameters=True)
    orders = []
    for low, high in ((5, 500), (500, 995), (6, 510), (999, 999), (5, 500)):
        _, plan = db._evaluator.giving({"low": low, "high": high}).plan(open_query)
        query = check_query(f"e(x, y), f(y, z), x < {low}, {high} <= z", db._schemas())
        assert plan.order == db._evaluator.plan(query)[1].order
        orders.append(plan.order)
    assert orders[0] != orders[1]
