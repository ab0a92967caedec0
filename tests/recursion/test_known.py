"""Answers worked out by hand: the plain reference gives them, and lftj gives them."""

from __future__ import annotations

from typing import Any

import pytest

import lftj
from lftj.recursion.fixpoint import Fixpoint
from tests.plain.evaluate import evaluate, parse
from tests.recursion.programs import WRITTEN

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

Rows = set[tuple[Any, ...]]
CHAIN = [(1, 2), (2, 3), (3, 4)]
RING = [(1, 2), (2, 3), (3, 1), (3, 4)]
AHEAD = {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}
ROUND = {(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 4)}
# A family: 0 has the children 1 and 2, these have 3, and 4 and 5.
TREE = [(0, 1), (0, 2), (1, 3), (2, 4), (2, 5)]
COUSINS = {(x, y) for x in (1, 2) for y in (1, 2)} | {(x, y) for x in (3, 4, 5) for y in (3, 4, 5)}

KNOWN: list[tuple[str, dict[str, list[tuple[Any, ...]]], dict[str, Rows]]] = [
    *((f"closure, {kind}", {"e": CHAIN}, {"t": AHEAD}) for kind in ("right", "left", "nonlinear", "three ways")),
    *((f"closure, {kind}", {"e": RING}, {"t": ROUND}) for kind in ("right", "left", "nonlinear", "three ways")),
    ("closure, left", {}, {"t": set()}),
    (
        "closure of texts",
        {"e": [("a", "b"), ("b", "a"), ("b", "")]},
        {"t": {("a", "b"), ("b", "a"), ("b", ""), ("a", "")}},
    ),
    ("closure of floats", {"e": [(0.5, 2.0), (2.0, 0.5)]}, {"t": {(x, y) for x in (0.5, 2.0) for y in (0.5, 2.0)}}),
    ("symmetric", {"e": [(1, 2), (3, 2)]}, {"t": {(x, y) for x in (1, 2, 3) for y in (1, 2, 3)}}),
    ("same generation", {"e": TREE}, {"s": COUSINS}),
    # Without 1-1 and 2-2 to begin with, 4 and 5 are no relatives by their parent's being its own.
    ("same generation, apart", {"e": TREE}, {"s": {(x, y) for x, y in COUSINS if x != y}}),
    ("mutual", {"e": [(1, 2), (3, 4)], "f": [(2, 3)]}, {"a": {(1, 2), (3, 4), (1, 4)}, "c": {(1, 3)}}),
    ("guarded", {"e": CHAIN, "f": [(1, 3)]}, {"t": {*CHAIN, (1, 3)}}),
    ("guarded", {"e": CHAIN, "f": [(1, 3), (1, 4)]}, {"t": {*CHAIN, (1, 3), (1, 4)}}),
    ("reachable", {"b": [(2,), (9,)], "e": RING}, {"r": {(1,), (2,), (3,), (4,), (9,)}}),
    (
        "even and odd",
        {"e": [(i, i + 1) for i in range(6)]},
        {"even": {(0,), (2,), (4,), (6,)}, "odd": {(1,), (3,), (5,)}},
    ),
    ("even and odd", {"e": [(0, 1), (1, 2), (2, 0)]}, {"even": {(0,), (1,), (2,)}, "odd": {(0,), (1,), (2,)}}),
    ("labelled", {"e": [(1, 7, 2), (2, 7, 3), (3, 8, 1)]}, {"w": {(1, 2, 7), (2, 3, 7), (1, 3, 7), (3, 1, 8)}}),
    ("switches", {"b": [(1,), (2,)]}, {"on": {()}, "off": {()}, "r": {(1,), (2,), (3,)}}),
    ("switches", {"b": [(1,)]}, {"on": {()}, "off": set(), "r": {(1,)}}),
    ("switches", {"b": [], "off": [()]}, {"on": {()}, "off": {()}, "r": {(3,)}}),
    ("cross product within", {"b": [(1,)], "e": [(5, 0), (6, 0)]}, {"t": {(1, 5), (1, 6)}}),
    ("facts only", {"t": [(1, 2)], "b": [(2,)], "e": [(1, 3)]}, {"t": {(1, 2), (2, 1), (2, 3)}}),
    ("facts in the text", {"e": [(2, 0)]}, {"t": {(x, y) for x in (0, 1) for y in (0, 1, 2)} - {(1, 0)} | {(1, 0)}}),
    (
        "filters",
        {"e": [(1, 2), (2, 3), (2, 4), (4, 5), (3, 6), (5, 0)]},
        {"t": {(1, 2), (2, 3), (2, 4), (4, 5), (3, 6), (5, 0), (1, 3), (1, 4), (2, 5), (1, 5)}},
    ),
    ("counter", {"b": [(3,), (9,), (-2,)]}, {"n": {(3,), (4,), (5,), (6,), (9,), (-2,)}}),
    ("remainders", {"b": [(1,)]}, {"m": {(1,), (4,), (6,), (5,), (2,), (0,)}}),
    ("steps", {"b": [(1,)], "e": [(1, 2), (2, 1)]}, {"d": {(1, 0), (2, 1), (1, 2), (2, 3), (1, 4)}}),
    ("sum of two", {"b": [(4,), (1,)]}, {"s": {(i,) for i in range(1, 10)}}),
    ("sum of two", {"b": [(4,), (5,)]}, {"s": {(4,), (5,), (8,), (9,)}}),
    ("negation below", {"e": CHAIN, "f": [(1, 3)]}, {"t": {*CHAIN, (2, 4)}}),
    ("count below", {"e": CHAIN, "f": [(1, 0), (1, 1)]}, {"t": {*CHAIN, (2, 4)}}),
    ("lookups below", {"g": [(1, 2), (2, 3)], "e": []}, {"t": {(1, 2), (2, 3), (1, 3)}}),
    (
        "minimum above",
        {"b": [(1,)], "e": [*CHAIN, (1, 3)]},
        {"far": {(1, 0), (2, 1), (3, 1), (4, 2)}, "r": {(2,), (3,), (4,)}},
    ),
    (
        "a tower",
        {"e": RING},
        {
            "a": ROUND,
            "b": {(x, y) for x in (1, 2, 3) for y in (1, 2, 3)},
            "c": {(1, 4), (2, 4), (3, 4)},
            "top": {(1,), (2,), (3,)},
        },
    ),
    (
        "points to",
        {"new": [(1, 10), (2, 20)], "assign": [(3, 1)], "store": [(3, 0, 2)], "load": [(4, 1, 0)]},
        {"v": {(1, 10), (2, 20), (3, 10), (4, 20)}, "h": {(10, 0, 20)}},
    ),
    (
        "galen",
        {"p": [(1, 2), (2, 3)], "q": [(3, 5, 1)], "u": [(3, 5, 1)], "s": [(5, 6)], "c": [], "r": []},
        {
            # q(2,5,1) and q(1,5,1) by p; then p(y, w) = (2, 3) and (1, 3) with u(3, 5, 1), q(x, 5, y).
            "q": {(x, r, 1) for x in (1, 2, 3) for r in (5, 6)},
            "p": {(1, 2), (2, 3), (1, 3), (1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (2, 2)},
        },
    ),
]


@pytest.mark.parametrize("engine", ["reference", "lftj"])
@pytest.mark.parametrize(("name", "data", "expected"), KNOWN, ids=[f"{i} {known[0]}" for i, known in enumerate(KNOWN)])
def test_known(name: str, data: dict[str, Any], expected: dict[str, Rows], engine: str) -> None:
    mixed = WRITTEN[name].mixed()
    if engine == "reference":
        found = evaluate(parse(mixed.text), data)
        assert {head: found[head] for head in expected} == expected
        return
    db = lftj.Database._sized(mixed.text, page_rows=4, directory_rows=4)
    for relation, rows in data.items():
        db.load(relation, rows)
    assert {head: set(db[head]) for head in expected} == expected
    with db.transaction() as tx:
        for relation, rows in data.items():
            tx.erase(relation, rows)
    given = parse(mixed.text).facts
    nothing = evaluate(parse(mixed.text))
    assert given or {head: set(db[head]) for head in expected} == {head: nothing[head] for head in expected}
    with db.transaction() as tx:
        for relation, rows in data.items():
            tx.insert(relation, rows) if relation != "g" else tx.upsert(relation, rows)
    assert given or {head: set(db[head]) for head in expected} == expected


def test_changed_rows_become_a_relation_only_for_who_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """An erased edge was once made a relation for negated atoms as well, of which there were none."""
    made: list[object] = []
    read: list[object] = []
    changed, run = Fixpoint.changed, Fixpoint.run

    def watched(self: Fixpoint, *arguments: Any, **options: Any) -> Any:
        made.append(changed(self, *arguments, **options))
        return made[-1]

    def watching(self: Fixpoint, join: Any, over: Any, delta: Any = None, *more: Any, **options: Any) -> Any:
        read.append(delta)
        return run(self, join, over, delta, *more, **options)

    db = lftj.Database(".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).")
    db.load("e", RING)
    db.evaluate()
    monkeypatch.setattr(Fixpoint, "changed", watched)
    monkeypatch.setattr(Fixpoint, "run", watching)
    for change in (lambda tx: tx.erase("e", [(2, 3)]), lambda tx: tx.insert("e", [(2, 3)])):
        with db.transaction() as tx:
            change(tx)
    assert made
    assert all(any(delta is one for one in read) for delta in made)
    assert set(db["t"]) == ROUND
