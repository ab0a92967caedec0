"""Filling maps: the order of relations that walks least, what a changed row is measured to take, and stops on the way.

Catches: a join that is enumerated to count it (4,000 documents of one role and 4,000 of its members took 16 million
steps); time limits that nobody looks at where few events take long.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.maintain import body_maps, triggers
from lftj.maintain.kept_triggers import KeptTriggers
from lftj.triggers import maps
from lftj.triggers.algebra import EVENT, INSERTION, MapRead, Statement
from lftj.triggers.compilation import compiled
from lftj.triggers.derived_relations import ChangedRows
from lftj.triggers.fill_order import fill_order
from lftj.triggers.formulas import binds, relations_of
from tests.conftest import JIT, examples
from tests.triggers.random_queries import SCHEMA, SETS, queries

N = 300
# What counts all is small where kernels are interpreted.
OF_HUB = N if JIT else N // 6
HUBS = {
    "read later": ("t[d] = count : { r(d, x), s(_, x) }.", ("r", "s")),
    "read first": ("t[d] = count : { s(_, x), r(d, x) }.", ("r", "s")),
    "by the middle": ("t[x] = count : { r(_, x), s(_, x) }.", ("r", "s")),
    "two away": ("t[d] = sum a : { r(d, x), s(y, x), u(a, y) }.", ("r", "s", "u")),
    "in two ways": ("t[d] = count : { r(d, x), s(_, x), u(_, x) }.", ("r", "s", "u")),
    "with itself": ("t[d] = count : { r(d, x), r(_, x) }.", ("r",)),
}
DECLARED = ".decl r(a:number, b:number)  .decl s(a:number, b:number)  .decl u(a:number, b:number)\n"


@examples(100)
@given(queries(atoms=4), st.lists(st.sampled_from([0.0, 1.0, 10.0, 1e3, 1e6]), min_size=8, max_size=8))
def test_no_order_of_filling_costs_less(query: Any, sizes: list[float]) -> None:
    program = compiled({"q": query}, {**SCHEMA, **SETS})
    rows = dict(zip(program.relations, sizes, strict=False))
    read = {name: set(relations_of(made.body)) for name, made in program.maps.items()}

    def visits(statement: Statement, there: set[str]) -> float:
        count, total = 1.0, 1.0
        known = {name for factor in statement.factors for name in binds(factor) if name.startswith(EVENT)}
        for factor in statement.factors:
            if isinstance(factor, MapRead):
                if not read[factor.name] <= there:
                    return total + count
                estimate = program.estimates.get(factor.name)
                found = 1.0 if estimate is None else estimate.visits(factor, known)
                total += count * max(1.0, found)
                count *= found
            known |= binds(factor)
        return total

    def cost(order: list[str]) -> float:
        return sum(
            rows[name] * visits(statement, {*order[: at + 1]})
            for at, name in enumerate(order)
            for statement in program.statements.get((INSERTION, name), ())
        )

    found = fill_order(program, rows)
    assert sorted(found) == sorted(program.relations)
    best = min(cost([*order]) for order in permutations(program.relations))
    assert cost(found) == pytest.approx(best, rel=1e-12)


def kept(db: lftj.Database) -> KeptTriggers:
    (found,) = [held for held in db._kept.heads.values() if isinstance(held, KeptTriggers)]
    return found


def entries(held: KeptTriggers) -> int:
    """Of all maps: each is made, too."""
    return sum(len(held.body.maps.entries(name)[1]) for name in held.body.maps.program.maps)


def hub(rule: str, names: tuple[str, ...], n: int = N) -> lftj.Database:
    """All rows meet in one value."""
    db = lftj.Database(DECLARED)
    db.rules(rule, maintain={"t": "triggers"})
    for name in names:
        db.load(name, [(i, 0) for i in range(n)])
    return db


@pytest.mark.parametrize("name", HUBS)
def test_filling_takes_a_few_steps_for_a_row(name: str) -> None:
    rule, names = HUBS[name]
    few, many = hub(rule, names, OF_HUB), hub(rule, names, 2 * OF_HUB)
    assert list(few["t"]) == list(anew(rule, names, OF_HUB)["t"])
    assert list(many["t"]) == list(anew(rule, names, 2 * OF_HUB)["t"])
    steps = [kept(db).body.filling for db in (few, many)]
    # The rows that are left to the end are a share of all, and meet the others.
    ends = [kept(db).body.steps_per_event * len(names) * n / 8 for db, n in ((few, OF_HUB), (many, 2 * OF_HUB))]
    for taken, last, n in zip(steps, ends, (OF_HUB, 2 * OF_HUB), strict=True):
        assert taken - last <= 24 * (len(names) * n + entries(kept(few if n == OF_HUB else many)))


def anew(rule: str, names: tuple[str, ...], n: int) -> lftj.Database:
    db = lftj.Database(DECLARED)
    db.rules(rule, maintain={"t": "recompute"})
    for name in names:
        db.load(name, [(i, 0) for i in range(n)])
    return db


WIDE = """
.decl w(a:number, s:symbol, b:number, d:date, c:number)
t[s] = sum b * (100 - c) : { w(_, s, b, d, c), c <= 50, d < @2020-01-03 }.
v[a] = count : { w(a, s, b, _, c), w(b, s, _, _, c), b < c }.
"""


@examples(25)
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 2, st.sampled_from("xyz"), *[st.integers(0, 90)] * 2)), st.data())
def test_all_rows_become_the_events_that_they_become_as_changes(rows: list[Any], data: Any) -> None:
    """Some marked ones after the others, whichever columns are read of how many."""
    db = lftj.Database()
    db.rules(WIDE, maintain={"t": "triggers", "v": "triggers"})
    facts = {(a, s, b, date(2020, 1, d + 1), c) for a, d, s, b, c in rows} | {(1, "x", 1, date(2020, 1, 1), 2)}
    db.load("w", sorted(facts))
    assert len(db["t"]) <= 3
    list(db["v"])
    version = db["w"]._version
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(facts), max_size=len(facts))))
    bodies = {held.body for held in db._kept.heads.values() if isinstance(held, KeptTriggers)}
    assert len(bodies) == 2
    for body in bodies:
        for made in body.events.by_predicate["w"]:
            first, last = body.events.of_all(made, version, marked, db._symbols)
            for found, here in ((first, ~marked), (last, marked)):
                columns = version.columns()[:, here]
                n = columns.shape[1]
                block = ChangedRows("w", columns, np.ones(n, np.int8), np.zeros(n, np.int64))
                for one, other in zip(found, body.events.of_one(made, block, db._symbols), strict=True):
                    assert one.tolist() == other.tolist()


def test_a_changed_row_is_measured_among_all_others() -> None:
    """Whatever order they were filled in: a row of `s` changes all documents, one of `r` is looked up."""
    db = hub(*HUBS["read later"])
    list(db["t"])
    assert N / 4 <= kept(db).body.steps_per_event <= 4 * N
    assert 2 * kept(db).body.steps_per_event * N / 8 >= N * N / 16


def test_limits_are_looked_at_after_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, real = 0, Limits.look

    def look(self: Limits, rows: int) -> None:
        nonlocal looks
        looks += 1
        real(self, rows)

    monkeypatch.setattr(maps, "MOST_STEPS", 100)
    monkeypatch.setattr(Limits, "look", look)
    db = hub(*HUBS["read later"])
    list(db["t"])
    assert looks >= N / 10  # each row of `s` that is left to the end runs through all documents


@pytest.mark.parametrize("bounds", [{"ENTRIES": 500}, {"STEPS": 1_000, "STEPS_PER_ROW": 4.0, "OF_DELTAS": 0.0}])
def test_maps_that_are_too_large_or_take_too_long_are_given_up(
    bounds: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `y < z` a part of the join has a pair for each two rows: 16 million for 12,000 rows, 25 seconds."""
    monkeypatch.setattr(maps, "MOST_STEPS", 100)
    for name, bound in bounds.items():
        monkeypatch.setattr(body_maps, name, bound)
    monkeypatch.setattr(triggers, "FAR_TOO_MANY_BINDINGS", 0.0)
    rule = "t[g] = count : { r(x, y), s(x, z), y < z, u(y, g) }."
    rows = {"r": {(0, i) for i in range(60)}, "s": {(0, i) for i in range(60)}, "u": {(i, i % 3) for i in range(60)}}
    made = lftj.Database(DECLARED), lftj.Database(DECLARED)
    made[0].rules(rule)
    made[1].rules(rule, maintain={"t": "triggers"})
    for db in made:
        for name, held in rows.items():
            db.load(name, sorted(held))
    for i in range(5):
        groups = [g for _, y in rows["r"] for _, z in rows["s"] if y < z for v, g in rows["u"] if v == y]
        for db in made:
            assert dict(db["t"]) == {g: groups.count(g) for g in groups}
            with db.transaction() as tx:
                tx.insert("s", [(0, 60 + i)])
                tx.erase("r", [(0, 7 * i)])
        rows["s"].add((0, 60 + i))
        rows["r"].discard((0, 7 * i))
    assert not any(isinstance(held, KeptTriggers) for held in made[0]._kept.heads.values())
    assert entries(kept(made[1])) > 500  # who asks for them has them


def test_one_event_does_not_tell_what_all_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row of `s` runs through 40 of `r`, the others through one each."""
    monkeypatch.setattr(maps, "MOST_STEPS", 20)
    monkeypatch.setattr(body_maps, "STEPS", 100)
    monkeypatch.setattr(body_maps, "OF_DELTAS", 0.0)
    monkeypatch.setattr(body_maps, "fill_order", lambda program, rows: sorted(program.relations))
    monkeypatch.setattr(triggers, "FAR_TOO_MANY_BINDINGS", 0.0)
    db = lftj.Database(DECLARED)
    db.rules("t[d] = count : { r(d, x), s(_, x) }.")
    db.load("r", [(i, max(0, i - 40)) for i in range(N + 40)])
    db.load("s", [(i, i) for i in range(N)])
    assert dict(db["t"]) == dict.fromkeys(range(N + 40), 1)
    assert kept(db).body.filling > 100


def _by_a_commit(db: lftj.Database) -> int:
    with db.transaction() as tx:
        tx.insert("r", [(0, -1)])
        tx.erase("r", [(0, -1)])
        tx.insert("s", [(0, -1)])
    return next(iter(db["t"]))[0]


def _by_a_query(db: lftj.Database) -> int:
    return next(iter(db.sql("select count(*) from r, s where r.b > s.b")))[0]


def _by_a_query_of_the_transaction(db: lftj.Database) -> int:
    with db.transaction() as tx:
        tx.insert("s", [(0, -1)])
        found = tx.sql("select * from t")
        assert found is not None
        return next(iter(found))[0]


def _by_a_failed_commit_first(db: lftj.Database) -> int:
    def divide_by_zero() -> None:
        with db.transaction() as tx:
            tx.insert("r", [(1, 0)])
            tx.insert("u", [(1, 0)])

    with pytest.raises(EvaluationError):
        divide_by_zero()
    return _by_a_commit(db)


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("ask", "more"),
    [(_by_a_commit, 1), (_by_a_query, 0), (_by_a_query_of_the_transaction, 1), (_by_a_failed_commit_first, 1)],
)
def test_whoever_evaluates_a_count_first_enumerates_no_pairs(
    ask: Callable[[lftj.Database], int], more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit before anybody read it, a query of SQL, and one within a transaction walked 8 million pairs."""
    rows, walk = 0, Evaluator.walk

    def counted(self: Evaluator, clause: Clause, limits: Limits, emit: Callable[[Any], None], **more: Any) -> Any:
        def emitted(chunk: Any) -> None:
            nonlocal rows
            rows += chunk.shape[1]
            emit(chunk)

        return walk(self, clause, limits, emitted, **more)

    monkeypatch.setattr(Evaluator, "walk", counted)
    n = 4_000
    db = lftj.Database(DECLARED + "t[] = count : { r(_, b), s(_, c), b > c }.  q(10 / y) :- u(_, y).")
    for name in ("r", "s"):
        db.load(name, [(i, i) for i in range(n)])
    assert ask(db) == n * (n - 1) // 2 + more * n
    assert rows < 10 * n
