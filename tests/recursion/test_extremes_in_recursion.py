"""Minimum and maximum in recursion: contents, deltas and rounds after every transaction of random histories.

Catches: values that hold each other up round a cycle of zero weights or equal labels, a value that stays though a
better one came, a worse one that does not come back when the best has gone, a delta that tells of what came and went.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, note

import lftj
from lftj.errors import EvaluationError, ProgramError, TimeoutExpired
from lftj.join.run import Limits
from lftj.recursion import min_max_fixpoint
from lftj.recursion.min_max_fixpoint import MinMaxFixpoint
from scantree.version import Version
from tests.conftest import JIT, examples
from tests.engine.programs import make_sizes, seeds
from tests.injected import Sweep
from tests.recursion.extremes import (
    DIST,
    EDGE,
    ONE_RULE,
    PROGRAMS,
    Extremes,
    Proposed,
    Relations,
    Twin,
    Values,
    full,
    node,
    some_calls,
    weighted,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


def history(rng: Random, twin: Twin, wide: int, count: int, most: int) -> None:
    for at in range(count):
        calls = full(rng, twin, wide, most) if at == 0 else some_calls(rng, twin, wide, rng.choice((1, 2, most)))
        if at and not rng.randrange(12):
            calls = [("erase", name, sorted(rows)) for name, rows in twin.facts.items() if rows]
        note(str(calls))
        twin.transact(calls)


@pytest.mark.parametrize("name", PROGRAMS)
@examples(25, 3)
@given(seeds)
def test_histories(name: str, rng: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Where there are few rows, none waits for its turn otherwise, and doubtful rows are not looked through.
        patch.setattr(min_max_fixpoint, "MANY", rng.choice((0, 2, 1024)))
        patch.setattr(min_max_fixpoint, "PART", rng.choice((2, 16)))
        patch.setattr(min_max_fixpoint, "WAITING", rng.choice((0, 1 << 16)))
        patch.setattr(min_max_fixpoint, "BULK_ROWS", rng.choice((4, 1000, 1000)))
        twin = Twin(PROGRAMS[name], make_sizes(rng))
        history(rng, twin, rng.choice((3, 4, 6)), 8 if JIT else 4, 10 if JIT else 6)
    assert twin.strategies <= {"rounds", "recompute"}


CHANGED = [name for name, program in PROGRAMS.items() if not program.functional]


@examples(30, 3)
@given(seeds)
def test_batches_may_be_split_and_merged_and_undone(rng: Random) -> None:
    program = PROGRAMS[rng.choice(CHANGED)]
    note(program.text)
    twins = [Twin(program, make_sizes(rng)) for _ in range(3)]
    start = full(rng, twins[0], 4, 8 if JIT else 5)
    for twin in twins:
        twin.transact(start)
    before = twins[0].contents()
    made: dict[tuple[str, Any], str] = {}
    for _ in range(rng.choice((2, 4, 8)) if JIT else 2):
        name = rng.choice(sorted(program.base))
        known, new = sorted(twins[0].facts[name]), program.base[name](rng, 4)
        if known and rng.random() < 0.5:
            made[name, rng.choice(known)] = "erase"
        elif new not in twins[0].facts[name]:
            made[name, new] = "insert"
    calls = [(verb, name, [row]) for (name, row), verb in made.items()]
    note(f"{start}, then {calls}")
    at = rng.randint(0, len(calls))
    for twin, parts in zip(twins, ([calls], [[one] for one in calls], [calls[at:], calls[:at]]), strict=True):
        for part in parts:
            twin.transact(part)
    assert twins[0].contents() == twins[1].contents() == twins[2].contents()
    inverse = {"insert": "erase", "erase": "insert"}
    twins[0].transact([(inverse[verb], name, rows) for verb, name, rows in reversed(calls)])
    assert twins[0].contents() == before


PATHS = PROGRAMS["shortest paths"].text


def paths(edges: list[tuple[int, int, int]], text: str = PATHS) -> lftj.Database:
    db = lftj.Database._sized(text, page_rows=4, directory_rows=4)
    db.load("source", [(1,)])
    db.load("edge", edges)
    db.evaluate()
    return db


def contents(db: lftj.Database) -> dict[str, list[Any]]:
    return {name: list(db[name]) for name in db}


def test_the_way_round_a_cycle_without_weight_holds_nothing_up() -> None:
    db = paths([(1, 2, 3), (2, 3, 0), (3, 2, 0), (3, 4, 1)])
    assert list(db["dist"]) == [(1, 0), (2, 3), (3, 3), (4, 4)]
    with db.transaction() as tx:
        tx.erase("edge", [(1, 2, 3)])
    assert list(db["dist"]) == [(1, 0)]
    assert list(tx.delta["dist"].erased) == [(2, 3), (3, 3), (4, 4)]
    assert tx.stats["heads"]["dist"]["strategy"] == "rounds"
    with db.transaction() as tx:
        tx.insert("edge", [(1, 3, 2), (1, 2, 9)])
    assert list(db["dist"]) == [(1, 0), (2, 2), (3, 2), (4, 3)]


def test_what_went_and_came_again_is_no_change() -> None:
    db = paths([(1, 2, 3), (2, 3, 4), (1, 4, 1), (4, 3, 6)])
    with db.transaction() as tx:
        tx.erase("edge", [(2, 3, 4)])
    assert not len(tx.delta["dist"].inserted) + len(tx.delta["dist"].erased)
    assert tx.stats["heads"]["dist"]["examined"] == 1
    assert tx.stats["heads"]["dist"]["returned"] in (0, 1)
    assert list(db["dist"]) == [(1, 0), (2, 3), (3, 7), (4, 1)]


def test_what_others_stand_in_for_has_not_returned() -> None:
    """Better values took the place of three rows, and one lost its support: none of these four came again."""
    db = paths([(1, 2, 3), (2, 3, 4), (3, 4, 4), (1, 5, 9)])
    with db.transaction() as tx:
        tx.erase("edge", [(1, 5, 9)])
        tx.insert("edge", [(1, 2, 1)])
    assert list(tx.delta["dist"].erased) == [(2, 3), (3, 7), (4, 11), (5, 9)]
    assert tx.stats["heads"]["dist"]["returned"] == 0


def test_readers_and_what_is_told() -> None:
    db = paths([(1, 2, 3), (2, 3, 4)])
    held = db.snapshot()
    with db.transaction() as tx:
        tx.insert("edge", [(1, 3, 1)])
        assert list(tx.preview()["dist"].inserted) == [(3, 1)]
    assert list(held["dist"]) == [(1, 0), (2, 3), (3, 7)]
    assert list(db.query("dist(x, d), d < 2")) == [(1, 0), (3, 1)]
    assert "follows changes by rounds" in str(db.explain("dist"))
    assert sum(db.memory()["dist"].values()) > 0
    assert tx.stats["heads"]["dist"]["rounds"] >= 1


def test_rules_may_come_and_go() -> None:
    """The rules of a recursion that a database has take more candidates, and other predicates may join and leave."""
    db = paths([(1, 2, 3), (2, 3, 4), (5, 6, 1)], EDGE + DIST + ONE_RULE)
    db.rules(".decl also(x:number, d:number)\ndist[x] = min d : { also(x, d) }.\nalso(5, 2).")
    assert list(db["dist"]) == [(1, 0), (2, 3), (3, 7), (5, 2), (6, 3)]
    db.rules(
        ".decl back(x:number) -> d:number\nback[x] = min dist[y] : { edge(x, y, _) ; x = y, dist(y, _) }.\n"
        "dist[1] = back[2] - 5 :- edge(9, 9, 9)."
    )
    assert list(db["back"]) == [(1, 0), (2, 3), (3, 7), (5, 2), (6, 3)]
    with db.transaction() as tx:
        tx.remove_rules("dist")
    assert list(db["dist"]) == []
    assert list(db["back"]) == []
    with db.transaction() as tx:
        tx.insert("dist", [(3, 8), (2, 9)])
    assert list(db["back"]) == [(1, 9), (2, 8), (3, 8)]


def test_a_program_that_closes_a_cycle_later_is_told_so() -> None:
    db = lftj.Database(EDGE + DIST + "start(x, 0) :- source(x).\ndist[y] = min d : { start(y, d) }.")
    with pytest.raises(ProgramError, match=r"recursive minimum \(`start` -> `dist` -> `start`\)"):
        db.rules("start(y, c + w) :- edge(x, y, w), dist[x] = c.")
    db = paths([(1, 2, 3)])
    with pytest.raises(ProgramError, match=r"`step` within a recursive minimum \(`step` -> `dist` -> `step`\)"):
        db.rules("step(y, c) :- dist[y] = c.\ndist[y] = c :- step(y, c).")
    with pytest.raises(ProgramError, match="minimum and maximum in one recursion"):
        db.rules("dist[y] = max d : { edge(_, y, d) }.")
    assert list(db["dist"]) == [(1, 0), (2, 3)]


def test_keys_that_are_constants_and_keys_that_repeat() -> None:
    text = (
        ".decl edge(x:number, y:number, w:number)\n.decl a(x:number) -> d:number\n"
        ".decl b(x:number, y:number) -> d:number\n"
        "a[0] = min d : { edge(9, 9, d) ; d = a[1] + 1 ; d = 7 }.\na[y] = min a[x] + w : { edge(x, y, w) }.\n"
        "b[x, x] = min 0 : { edge(x, _, _) ; edge(_, x, _) }.\nb[x, z] = min b[x, y] + w : { edge(y, z, w) }."
    )
    db = lftj.Database._sized(text, page_rows=4, directory_rows=4)
    around = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 2, 0), (2, 0, 0), (2, 2, 0)]
    with db.transaction() as tx:
        tx.insert("edge", [(0, 1, 2), (1, 2, 0), (2, 0, 0), (9, 9, 3)])
    assert list(db["a"]) == [(0, 3), (1, 5), (2, 5)]
    assert list(db["b"]) == sorted([*around, (0, 1, 2), (0, 2, 2), (2, 1, 2), (9, 9, 0)])
    with db.transaction() as tx:
        tx.erase("edge", [(9, 9, 3)])
    assert list(db["a"]) == [(0, 7), (1, 9), (2, 9)]
    with db.transaction() as tx:
        tx.erase("edge", [(0, 1, 2)])
    assert list(db["a"]) == [(0, 7)]
    assert list(db["b"]) == around


def test_rules_that_are_not_monotone_are_told_or_give_what_stands() -> None:
    text = EDGE + DIST + "dist[y] = min d : { source(y), d = 0 ; edge(x, y, w), d = w - dist[x] }."
    db = paths([(1, 2, 9), (2, 3, 20)], text)
    assert list(db["dist"]) == [(1, 0), (2, 9), (3, 11)]
    before = contents(db)
    with db.transaction() as tx:  # 2 gets better, so what it gave to 3 is gone
        tx.insert("edge", [(1, 2, 8)])
    assert list(db["dist"]) == [(1, 0), (2, 8), (3, 12)]
    assert tx.stats["heads"]["dist"]["strategy"] == "recompute"
    with db.transaction() as tx:
        tx.erase("edge", [(1, 2, 8)])
    assert contents(db) == before
    with pytest.raises(EvaluationError, match="does not settle") as caught, db.transaction() as tx:
        tx.insert("edge", [(3, 2, 11), (2, 2, 9)])
    assert "dist[y] = min d" in str(caught.value)
    assert contents(db) == before


def _turned(facts: Relations, values: Values) -> Proposed:
    """What gets better makes others worse, or takes their ground away."""
    dist = values["dist"]
    yield from (("dist", source, 0) for source in facts["source"])
    for x, y, w in facts["edge"]:
        if (x,) in dist:
            yield "dist", (y,), w - dist[x,]
            if dist[x,] > 1:
                yield "dist", (y,), dist[x,] - 1


TURNED = Extremes(
    "min",
    EDGE + DIST + "dist[y] = min d : { source(y), d = 0 ; edge(x, y, w), d = w - dist[x] }.\n"
    "dist[y] = min dist[x] - 1 : { edge(x, y, _), dist[x] > 1 }.",
    {"source": node, "edge": weighted},
    _turned,
    ("dist",),
)


class Turned(Twin):
    """Rules that are not monotone: what stands is supported, and nothing that stands gives better values."""

    def verify(self) -> Relations:
        contents = self.contents()
        assert {name: contents[name] for name in self.facts} == self.facts
        values = {head: {row[:-1]: row[-1] for row in contents[head]} for head in self.program.heads}
        for head, key, value in self.program.rules(self.facts, values):
            assert values[head][key] <= value
        self.check_rounds()
        return contents


@examples(40, 5)
@given(seeds)
def test_what_rules_that_are_not_monotone_come_to_stands(rng: Random) -> None:
    twin = Turned(TURNED, make_sizes(rng))
    for at in range(10 if JIT else 4):
        calls = full(rng, twin, 4, 6) if at == 0 else some_calls(rng, twin, 4, 2)
        note(str(calls))
        before, facts = twin.contents(), {name: set(rows) for name, rows in twin.facts.items()}
        told = ""
        try:
            twin.transact(calls)
        except EvaluationError as error:
            told = str(error)
        assert not told or "does not settle" in told
        assert not told or (twin.contents() == before and twin.facts == facts)


def test_a_value_that_improves_itself_round_a_cycle_is_refused() -> None:
    text = EDGE + DIST + "dist[y] = max d : { source(y), d = 0 ; edge(x, y, w), d = min(dist[x] + w, 9) }."
    db = paths([(1, 2, 3), (2, 3, 3)], text)
    assert list(db["dist"]) == [(1, 0), (2, 3), (3, 6)]
    with pytest.raises(EvaluationError, match="does not settle"), db.transaction() as tx:
        tx.insert("edge", [(3, 2, 1)])
    assert list(db["dist"]) == [(1, 0), (2, 3), (3, 6)]


def test_a_cycle_below_zero_is_stopped_by_a_time_limit() -> None:
    edges = [(1, 2, 3), (2, 3, 4)]
    db = paths(edges)
    with db.transaction() as tx:  # what is compiled for a change
        tx.insert("edge", [(3, 2, 0), (1, 3, 1)])
    before, state = contents(db), db._state
    with pytest.raises(TimeoutExpired) as caught, db.transaction(timeout=0.3) as tx:
        tx.insert("edge", [(3, 2, -9)])
    assert "dist[y] = min d" in str(caught.value)
    assert "round" in str(caught.value)
    assert db._state is state
    assert contents(db) == before
    fresh = lftj.Database(PATHS)
    fresh.load("source", [(1,)])
    fresh.load("edge", [*edges, (3, 2, -9)])
    with pytest.raises(TimeoutExpired, match="round"):
        fresh.evaluate(timeout=0.3)


def test_a_term_without_a_value_is_an_error_over_what_stands() -> None:
    text = EDGE + DIST + "dist[y] = min d : { source(y), d = 0 ; edge(x, y, w), d = dist[x] + 12 / (9 - dist[x]) + w }."
    db = paths([(1, 2, 3)], text)
    assert list(db["dist"]) == [(1, 0), (2, 4)]
    before = contents(db)
    with pytest.raises(EvaluationError, match="division by zero"), db.transaction() as tx:
        tx.insert("edge", [(1, 3, 8), (3, 4, 1)])
    assert contents(db) == before
    with db.transaction() as tx:  # only the first way to 3 divides by zero, and it does not stand
        tx.insert("edge", [(1, 3, 8), (3, 4, 1), (2, 3, 0)])
    assert list(db["dist"]) == [(1, 0), (2, 4), (3, 6), (4, 11)]


STEPS: list[tuple[Any, str]] = [
    (Version, "update"),
    (Limits, "look"),
    (MinMaxFixpoint, "run"),
    (MinMaxFixpoint, "grow"),
]


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_stop_at_every_step_of_maintenance(
    owner: Any, name: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = [(i, i + 1, 1) for i in range(1, 9)] + [(3, 8, 9), (9, 2, 0)]

    def change(tx: Any) -> None:
        tx.erase("edge", [(4, 5, 1)])
        tx.insert("edge", [(1, 3, 1), (7, 6, 2)])

    db, number = paths(edges), 0
    before, state = contents(db), db._state
    sweep = Sweep(owner, name, after=late)
    while True:
        number += 1
        with monkeypatch.context() as patch:
            sweep.inject(patch, KeyboardInterrupt())
            try:
                with db.transaction() as tx:
                    change(tx)
            except KeyboardInterrupt as stop:
                stop.__traceback__ = None
            else:
                break
        assert db._state is state
        assert contents(db) == before
    assert number > 1
    fresh = paths([*(edge for edge in edges if edge != (4, 5, 1)), (1, 3, 1), (7, 6, 2)])
    assert contents(db) == contents(fresh)


def test_built_in_python() -> None:
    p = lftj.Program()
    edge = p.input("edge", x=int, y=int, w=int)
    source = p.input("source", x=int)
    (dist,) = p.relations("dist")
    x, y, w, d = lftj.variables("x y w d")
    p.rule(dist[y] == lftj.agg.min(d, source(y), d == 0))
    p.rule(dist[y] == lftj.agg.min(dist[x] + w, edge(x, y, w)))
    db = lftj.Database(p)
    db.load("source", [(1,)])
    db.load("edge", [(1, 2, 4), (2, 1, 0)])
    assert list(db["dist"]) == [(1, 0), (2, 4)]


def test_alternatives_may_have_variables_of_their_own_outside_of_recursion_too() -> None:
    text = (
        ".decl e(x:number, y:number, w:number)\n.decl f(x:number, w:number)\n.decl least(x:number) -> w:number\n"
        "least[x] = min w : { e(x, y, w), y != w ; f(x, w) ; e(_, x, v), w = v + 1 }."
    )
    db = lftj.Database._sized(text, page_rows=4, directory_rows=4)
    with db.transaction() as tx:
        tx.insert("e", [(1, 2, 2), (1, 3, 5), (2, 1, 7)])
    assert list(db["least"]) == [(1, 5), (2, 3), (3, 6)]
    with db.transaction() as tx:
        tx.insert("f", [(1, 4), (3, 9)])
        tx.erase("e", [(1, 3, 5)])
    assert list(db["least"]) == [(1, 4), (2, 3), (3, 9)]
