"""Random programs under random updates, with threads: contents, deltas and statistics are those of one thread.

Catches: a changed row that two shares join, or none; derivations that are dropped or kept at the seam of two shares; a
failed commit that leaves something behind or somebody at work.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import lftj
from lftj.join.run import Limits
from lftj.maintain import clause_delta
from scantree.check import check_arena
from scantree.crew import Shift
from tests.conftest import JIT, examples
from tests.engine.histories import check_stored
from tests.engine.programs import seeds
from tests.injected import fails_at
from tests.mixed.programs import make_program
from tests.mixed.twin import Twin, history

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*occurs only once"),
    pytest.mark.usefixtures("forced"),
]
RANDOM = examples(
    30,
    4,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
ROUNDS, MOST = (6, 12) if JIT else (2, 4)

PROGRAM = """
.decl e(x:number, y:number)
.decl f(x:number, y:number)
tri(x, y, z) :- e(x, y), e(y, z), e(x, z).
p(x) :- e(x, _).
q(x, z) :- e(x, y), f(y, z), x > 3, x < 10.
n(x, y) :- e(x, y), !f(y, x).
m(x, z) :- e(x, y), z = x + y, x != 5.
c(x, k) :- e(x, _), k = count : { e(x, _) }.
r(x, y) :- e(x, y).
r(x, z) :- r(x, y), f(y, z).
"""
DELTAS = ("tri", "p", "q", "n", "m")


@RANDOM
@given(seeds, st.sampled_from(("mixed", "delta", "auto")), st.sampled_from((2, 3)))
def test_mixed_programs_equal_their_reference(rng: Random, strategy: str, threads: int) -> None:
    mixed = make_program(rng)
    mixed.sizes["threads"] = threads
    history(rng, Twin(mixed, strategy), ROUNDS, MOST)


def followed(threads: int, seed: int, rounds: int) -> list[Any]:
    """What happens to a database in a history."""
    rng = Random(seed)
    db = lftj.Database._sized(
        threads=threads, page_rows=rng.choice((2, 4)), directory_rows=2, buffer_rows=rng.choice((1, 5))
    )
    # What is chosen by lftj depends on what was measured.
    db.rules(PROGRAM, maintain=dict.fromkeys((*DELTAS, "c"), "delta"))

    def rows(n: int) -> list[tuple[int, int]]:
        return [(rng.randrange(12), rng.randrange(12)) for _ in range(n)]

    db.load("e", rows(40))
    db.load("f", rows(40))
    db.evaluate()
    told: list[Any] = []
    for _ in range(rounds):
        with db.transaction() as tx:
            for name in ("e", "f"):
                tx.erase(name, rows(rng.choice((1, 15))))
                tx.insert(name, rows(rng.choice((1, 15))))
        heads = tx.stats["heads"]
        # Steps may differ where atoms meet at the variable that is cut (lftj/join/ranges.py), and where what is negated
        # is passed over page by page: pages may end elsewhere (scantree/parts.py). What prepares is an evaluation.
        told.append(
            {
                h: (s["strategy"], s["removed"], s["added"], "declared so" in s["why"] and s["steps"])
                for h, s in heads.items()
            }
        )
        told.append([(r["head"], r["surgeries"], r["removed"], r["added"]) for r in tx.stats["rules"]])
        told.append({name: (list(delta.inserted), list(delta.erased)) for name, delta in tx.delta.items()})
        told.append({name: list(db[name]) for name in db})
    for relation in db._relations.values():
        check_stored(relation)
    return told


@RANDOM
@given(st.integers(0, 2**32))
def test_deltas_and_statistics_are_those_of_one_thread(seed: int) -> None:
    rounds = 4 if JIT else 2
    assert followed(2, seed, rounds) == followed(3, seed, rounds) == followed(1, seed, rounds)


def test_changed_rows_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[Any] = []
    join = clause_delta._Arrays.join

    def seen(self: Any, *args: Any) -> Any:
        shares.append(args[4])
        return join(self, *args)

    monkeypatch.setattr(clause_delta._Arrays, "join", seen)
    db = lftj.Database(threads=2)
    db.rules(PROGRAM, maintain={"tri": "delta"})
    db.load("e", [(x, y) for x in range(20) for y in range(20) if x != y])
    db.evaluate("tri")
    with db.transaction() as tx:
        tx.erase("e", [(x, x + 1) for x in range(19)])
    assert sorted(set(shares)) == [(i, 12) for i in range(12)]
    assert tx.stats["heads"]["tri"]["strategy"] == "delta"


@pytest.mark.jit_only  # it is made of what Python does between kernels
@pytest.mark.parametrize("number", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("owner", "name"), [(Limits, "look"), (Shift, "wait"), (Shift, "look")])
def test_a_commit_that_is_stopped_leaves_the_database_as_it_was(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    def made(threads: int) -> lftj.Database:
        db = lftj.Database._sized(threads=threads, page_rows=4, directory_rows=4)
        db.rules(PROGRAM, maintain=dict.fromkeys(DELTAS, "delta"))
        db.load("e", [(x, y) for x in range(12) for y in range(12) if (x + 2 * y) % 3])
        db.load("f", [(x, x + 1) for x in range(12)])
        db.evaluate()
        with db.transaction() as tx:
            tx.insert("e", [(0, 0)])
        return db

    def change(db: lftj.Database) -> None:
        with db.transaction() as tx:
            tx.erase("e", [(x, y) for x in range(0, 12, 2) for y in range(12)])
            tx.insert("e", [(x, x) for x in range(12)])

    db, model = made(2), made(1)
    before = {name: list(db[name]) for name in db}
    with monkeypatch.context() as patch:
        fails_at(patch, owner, name, number, KeyboardInterrupt(), after=False)
        try:
            change(db)
            stopped = False
        except KeyboardInterrupt:
            stopped = True
    if stopped:
        assert {name: list(db[name]) for name in db} == before
        change(db)
    change(model)
    assert {name: list(db[name]) for name in db} == {name: list(model[name]) for name in model}
    for relation in db._relations.values():
        check_stored(relation)


def test_large_updates_keep_the_arena_in_order() -> None:
    db = lftj.Database._sized(".decl e(x:number, y:number)", threads=2, page_rows=4, directory_rows=4)
    rng = Random(5)
    for _ in range(6):
        with db.transaction() as tx:
            tx.erase("e", [(rng.randrange(30), rng.randrange(30)) for _ in range(60)])
            tx.insert("e", [(rng.randrange(30), rng.randrange(30)) for _ in range(80)])
        del tx
    relation = db._relations["e"]
    relation.content.check()
    check_arena(db._arena, [relation.content])
