"""Following a head by the delta of its rules: every derivation that goes or comes is met once, whatever changed.

Catches: a derivation with several changed rows that is counted twice or by nobody; a prefix that stands although rows
below it went; a blocked derivation that comes back; a planner that takes deltas where traces were wished for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError
from lftj.maintain import clause_delta, delta
from lftj.maintain.cost import RebuildCost
from tests.conftest import examples
from tests.engine import programs

Rows = dict[str, set[tuple[int, ...]]]
ARITY = {"e": 2, "r": 2, "s": 2, "a": 1, "b": 1}
DECLARED = "\n".join(f".decl {name}({', '.join(f'c{i}:number' for i in range(n))})" for name, n in ARITY.items())


def pairs(rows: Rows, name: str) -> Any:
    return product(rows[name], rows[name])


#: A rule for p, and the heads of its derivations.
SHAPES: dict[str, tuple[str, Callable[[Rows], list[tuple[int, ...]]]]] = {
    "triangle": (
        "p(x, y, z) :- e(x, y), e(y, z), e(x, z).",
        lambda d: [(x, y, z) for (x, y), (v, z) in pairs(d, "e") if v == y and (x, z) in d["e"]],
    ),
    "corner of a triangle": (
        "p(x) :- e(x, y), e(y, z), e(x, z).",
        lambda d: [(x,) for (x, y), (v, z) in pairs(d, "e") if v == y and (x, z) in d["e"]],
    ),
    "no variable in the head": (
        "p(1) :- e(x, y), e(y, x).",
        lambda d: [(1,) for x, y in d["e"] if (y, x) in d["e"]],
    ),
    "one atom twice": ("p(x, y) :- e(x, y), e(x, y).", lambda d: [(x, y) for x, y in d["e"]]),
    "loop": ("p(x) :- e(x, x).", lambda d: [(x,) for x, y in d["e"] if x == y]),
    "constant": ("p(y) :- e(2, y), r(y, 1).", lambda d: [(y,) for x, y in d["e"] if x == 2 and (y, 1) in d["r"]]),
    "wildcard": (
        "p(x) :- a(x), e(x, _), r(_, x).",
        lambda d: [(x,) for (x,) in d["a"] if any(u == x for u, _ in d["e"]) and any(v == x for _, v in d["r"])],
    ),
    "open wedge": (
        "p(x, y, z) :- e(x, y), e(y, z), !e(x, z).",
        lambda d: [(x, y, z) for (x, y), (v, z) in pairs(d, "e") if v == y and (x, z) not in d["e"]],
    ),
    "two ways to be blocked": (
        "p(x) :- a(x), !e(x, 3), !e(x, _).",
        lambda d: [(x,) for (x,) in d["a"] if not any(u == x for u, _ in d["e"])],
    ),
    "difference": ("p(x) :- a(x), !b(x).", lambda d: [(x,) for (x,) in d["a"] if (x,) not in d["b"]]),
    "computed and blocked": (
        "p(x, z) :- r(x, y), z = x + y, !e(x, z), !b(z).",
        lambda d: [(x, x + y) for x, y in d["r"] if (x, x + y) not in d["e"] and (x + y,) not in d["b"]],
    ),
    "compared": (
        "p(x, w) :- r(x, y), s(z, w), y < z, w != x.",
        lambda d: [(x, w) for x, y in d["r"] for z, w in d["s"] if y < z and w != x],
    ),
    "head computed": ("p(x + y) :- r(x, y), s(y, x).", lambda d: [(x + y,) for x, y in d["r"] if (y, x) in d["s"]]),
    "product": ("p(x, y) :- a(x), b(y).", lambda d: [(x, y) for (x,) in d["a"] for (y,) in d["b"]]),
}


def make_rows(rng: Random, domain: int) -> Rows:
    return {
        name: {tuple(rng.randrange(domain) for _ in range(n)) for _ in range(rng.randint(0, 16))}
        for name, n in ARITY.items()
    }


def change(rng: Random, tx: Any, rows: Rows, domain: int) -> None:
    for _ in range(rng.choice((1, 1, 2, 5, 15))):
        name = rng.choice(sorted(ARITY))
        if rows[name] and rng.random() < 0.5:
            row = rng.choice(sorted(rows[name]))
            rows[name].discard(row)
            tx.erase(name, [row])
        else:
            row = tuple(rng.randrange(domain) for _ in range(ARITY[name]))
            rows[name].add(row)
            tx.insert(name, [row])


@examples(25, 3)
@given(programs.seeds, st.sampled_from((3, 5, 8)))
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str, rng: Random, domain: int) -> None:
    """Contents, deltas and the number of derivations after every transaction."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clause_delta, "LEAST_ROWS", rng.choice((1, 2, 5, 256)))  # room for few derivations at a time
        patch.setattr(clause_delta, "MOST_ROWS", rng.choice((1, 1 << 14)))
        follow_shape(shape, rng, domain)


def follow_shape(shape: str, rng: Random, domain: int) -> None:
    text, derived = SHAPES[shape]
    rows = make_rows(rng, domain)
    note(f"{rows}")
    db = lftj.Database._sized(page_rows=2, directory_rows=2)
    db._evaluator.buffer_rows = rng.choice((1, 64))
    db.rules(f"{DECLARED}\n{text}", maintain={"p": "delta"})
    for name in ARITY:
        db.load(name, sorted(rows[name]))
    for _ in range(5):
        before = set(derived(rows))
        with db.transaction() as tx:
            change(rng, tx, rows, domain)
        after = Counter(derived(rows))
        assert set(db["p"]) == set(after)
        assert set(tx.delta["p"].inserted) == set(after) - before
        assert set(tx.delta["p"].erased) == before - set(after)
        told = tx.stats["heads"].get("p")
        if told is not None:
            assert told["strategy"] == "delta"
            assert told["removed"] == told["added"] == 0
        held = db._kept.heads.get("p")
        if held is not None and held.support is not None:
            assert {tuple(row[:-1]): row[-1] for row in held.support.columns().T.tolist()} == dict(after)


@examples(25, 3)
@given(programs.seeds)
def test_aggregates(rng: Random) -> None:
    rows = make_rows(rng, 5)
    db = lftj.Database._sized(page_rows=2, directory_rows=2)
    db.rules(
        f"{DECLARED}\nn[x] = count : {{ e(x, y), r(y, _), !b(y) }}.\nt[x] = sum z : {{ e(x, y), r(y, z) }}.",
        maintain={"n": "delta", "t": "delta"},
    )
    for name in ARITY:
        db.load(name, sorted(rows[name]))
    for _ in range(5):
        with db.transaction() as tx:
            change(rng, tx, rows, 5)
        joined = [(x, y, z) for x, y in rows["e"] for v, z in rows["r"] if v == y]
        assert set(db["n"]) == set(Counter(x for x, y, _ in joined if (y,) not in rows["b"]).items())
        sums = Counter[int]()
        for x, _, z in joined:
            sums[x] += z
        assert set(db["t"]) == {(x, sums[x]) for x, _, _ in joined}


def database(text: str, **options: str) -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=2)
    db.rules(".decl e(x:number, y:number)\n.decl a(x:number)\n" + text, maintain=options)
    return db


def told(tx: Any, head: str = "p") -> tuple[str, str]:
    stats = tx.stats["heads"][head]
    return stats["strategy"], stats["why"].partition("; ")[2]


def test_the_first_change_is_followed_already() -> None:
    """Where every row has one derivation there is nothing to count, so nothing is evaluated a second time."""
    db = database("p(x, y, z) :- e(x, y), e(y, z), e(x, z).", p="delta")
    db.load("e", [(i, j) for i in range(9) for j in range(i)])
    assert len(db["p"]) == 84
    with db.transaction() as tx:
        tx.erase("e", [(8, 0)])
    assert told(tx) == ("delta", "its rules are declared so")
    assert len(tx.delta["p"].erased) == 7
    assert not [key for key in db.memory()["p"] if key.startswith("trace")]


def test_derivations_are_counted_before_they_are_followed() -> None:
    db = database("p(x, z) :- e(x, y), e(y, z).", p="delta")
    db.load("e", [(0, 1), (1, 2), (0, 3), (3, 2)])
    with db.transaction() as tx:
        tx.erase("e", [(0, 1)])
    assert told(tx) == ("delta", "its derivations are not counted yet")
    with db.transaction() as tx:
        tx.insert("e", [(0, 1)])
    assert told(tx)[0] == "delta"
    assert "p" not in tx.delta
    with db.transaction() as tx:
        tx.erase("e", [(0, 1), (3, 2)])
    assert set(tx.delta["p"].erased) == {(0, 2)}
    assert db.memory()["p"]["trace: support and filters"] > 0


def test_facts_and_several_rules() -> None:
    db = database("p(x) :- e(x, _).\np(x) :- a(x), e(_, x).", p="delta")
    db.load("p", [(7,)])
    with db.transaction() as tx:
        tx.insert("e", [(1, 2), (7, 2)])
        tx.insert("a", [(2,)])
    with db.transaction() as tx:
        tx.erase("e", [(7, 2)])
    assert told(tx)[0] == "delta"
    assert "p" not in tx.delta
    with db.transaction() as tx:
        tx.erase("p", [(7,)])
        tx.erase("a", [(2,)])
    assert set(tx.delta["p"].erased) == {(7,), (2,)}


def test_a_failed_join_leaves_the_next_one_as_it_was() -> None:
    db = database("p(x, z) :- e(x, _), a(z), w = 10 / (x - z), w != 3.", p="delta")
    db.load("e", [(1, 1), (2, 2)])
    db.load("a", [(5,), (6,)])
    db.evaluate()
    before = set(db["p"])
    for _ in range(2):
        with pytest.raises(EvaluationError, match="division by zero"), db.transaction() as tx:  # noqa: PT012
            tx.insert("a", [(2,)])
            tx.erase("e", [(1, 1)])
        assert set(db["p"]) == before
    with db.transaction() as tx:
        tx.insert("a", [(2,)])
        tx.erase("e", [(2, 2)])
    assert set(db["p"]) == {(1, 5), (1, 6), (1, 2)}


def test_what_computes_texts_keeps_a_trace() -> None:
    db = lftj.Database()
    db.rules('.decl s(x:number, n:symbol)\np(x, cat(n, "!")) :- s(x, n).', maintain={"p": "delta"})
    for x in range(3):
        with db.transaction() as tx:
            tx.insert("s", [(x, "a")])
    assert told(tx)[0] == "trace"


# What the planner chooses ---------------------------------------------------------------------------------------------


TRIANGLE = "p(x, y, z) :- e(x, y), e(y, z), e(x, z)."
EDGES = [(i, j) for i in range(40) for j in range(40) if (3 * i + j) % 5 == 0 and i != j]


@pytest.mark.parametrize(
    ("maintain", "granularity", "expected", "why"),
    [
        (None, None, "delta", "about [\\d.]+ µs for a changed row, [\\d.]+ µs by a trace"),
        ("trace", None, "trace", "follows changes by its trace, as declared"),
        ("delta", "node", "delta", "follows changes by delta, as declared"),
        (None, "interval", "trace", "its rules say what records stand for"),
    ],
)
def test_joins_are_followed_by_delta(maintain: str | None, granularity: str | None, expected: str, why: str) -> None:
    db = lftj.Database()
    db.rules(
        ".decl e(x:number, y:number)\n" + TRIANGLE,
        maintain={"p": maintain} if maintain else None,
        granularity={"p": granularity} if granularity else None,
    )
    db.load("e", EDGES)
    db.evaluate()
    shown = str(db.explain("p"))
    assert ("follows changes by delta" in shown) == (expected == "delta")
    assert re.search(why, shown)
    assert json.loads(db.explain("p").json()) is not None
    for row in ((0, 1), (1, 3), (0, 3)):
        with db.transaction() as tx:
            tx.insert("e", [row])
    assert told(tx)[0] == expected
    shown = str(db.explain("p"))
    assert ("follows changes by delta" in shown) == (expected == "delta")
    assert f"last commit: {expected}" in shown
    assert re.search(why, shown)
    edges = set(db["e"])
    assert set(db["p"]) == {(x, y, z) for x, y in edges for v, z in edges if v == y and (x, z) in edges}


def test_a_change_that_is_dearer_than_evaluation_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "PLANNED", 0.0)  # however little evaluating takes, the first change is followed
    db = database(TRIANGLE)
    db.load("e", EDGES)
    db.evaluate()
    for seeks, row, kept in ((0, (0, 1), True), (-(10**6), (1, 3), False), (0, (0, 3), True), (10**12, (0, 6), True)):
        if seeks:
            db._kept.heads["p"].rebuild = RebuildCost(seeks=seeks)
        with db.transaction() as tx:
            tx.insert("e", [row])
        assert ("p" in db._kept.heads) == kept
        edges = set(db["e"])
        assert set(db["p"]) == {(x, y, z) for x, y in edges for v, z in edges if v == y and (x, z) in edges}
