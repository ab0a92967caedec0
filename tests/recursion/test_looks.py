"""Last depths whose matches are looked up are loops of their own: they find what the walk would, in as many steps.

Catches: a match that is written twice, or not at all, because the output is full, the steps of a slice are made or the
run goes over pages; a slice that does not end; keys that are passed over although they are not blocked, or one by one
although all are; a second witness where one is enough; a step more or less than the walk's, by which plans and bounds
are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from lftj.join import join_state as cells
from lftj.join import run as running
from lftj.join import triejoin
from lftj.plan import cuts, lowering
from tests.conftest import JIT

EDGES = ".decl e(x:number, y:number)\n"
BANS = EDGES + ".decl b(x:number, y:number)\n"
PROGRAMS = {
    "left": EDGES + "t(x, y) :- e(x, y). t(x, z) :- t(x, y), e(y, z).",
    "right": EDGES + "t(x, y) :- e(x, y). t(x, z) :- e(x, y), t(y, z).",
    "nonlinear": EDGES + "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z).",
    "negated": EDGES
    + ".decl b(x:number, y:number)\nt(x, y) :- e(x, y), !b(x, y). t(x, z) :- t(x, y), e(y, z), !b(x, z).",
    "bounded": BANS + "t(x, z) :- e(x, y), e(y, z), !b(x, z), z > x, z < 30.",
    "apart": BANS + "t(x, z) :- e(x, y), e(y, z), !b(x, z).",
}
MOST = 2**63 - 1
NODES, ROWS = (40, 3_000) if JIT else (7, 30)


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many depths each join that is lowered walks in such a loop; none while this begins with True."""
    told: list[int] = [False]
    shortcuts = lowering._shortcuts

    def watched(plan: Any, depths: Any, frames: Any) -> None:
        shortcuts(plan, depths, frames)
        looked = depths[:, cells.FUSED] == cells.LOOKED
        if told[0]:
            depths[looked, cells.FUSED] = 0
        else:
            told.append(int(looked.sum()))

    monkeypatch.setattr(lowering, "_shortcuts", watched)
    return told


def changed(db: lftj.Database, flips: dict[str, tuple[Any, Any]]) -> Any:
    """What a transaction tells and comes to."""
    with db.transaction() as tx:
        for name, (erased, inserted) in flips.items():
            tx.erase(name, erased)
            tx.insert(name, inserted)
    told = tx.stats["heads"].get("t", {})  # nothing, where no fact changed
    counts = [told.get(what) for what in ("strategy", "steps", "rounds", "examined", "returned")]
    return counts, sorted(tx.delta["t"].erased), sorted(tx.delta["t"].inserted)


def test_a_thread_keeps_to_its_range(loops: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of a range are set when a walk is cut, after its depths are marked; found by a random history."""
    monkeypatch.setattr(cuts, "LEAST_STEPS", 0.0)
    db = lftj.Database(".decl v(x:number)\n.decl w(x:number)\nt(x) :- v(x), !w(x).", threads=2)
    db.load("v", [(x,) for x in range(ROWS)])
    db.load("w", [(x,) for x in range(0, ROWS, 3)])
    assert db["t"].numpy()[:, 0].tolist() == [x for x in range(ROWS) if x % 3]
    assert any(loops[1:])


@pytest.mark.parametrize("body", ["v(x), !w(x)", "v(x), u(x), !w(x)"])
def test_a_loop_ends_with_its_slice(body: str, loops: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between slices Ctrl-C and limits are looked at: a loop over all keys of a node may not pass over them."""
    monkeypatch.setattr(running, "SLICE", 16 << 4)
    calls, kernel = [], triejoin.triejoin

    def counted(mem: Any, walk: cells.Walk, out: Any, budget: int) -> int:
        before = int(walk.control[cells.STEPS])
        status: int = kernel(mem, walk, out, budget)
        calls.append((int(walk.control[cells.STEPS]) - before, budget))
        return status

    monkeypatch.setattr(triejoin, "triejoin", counted)
    db = lftj.Database(f".decl u(x:number)\n.decl v(x:number)\n.decl w(x:number)\nt(x) :- {body}.")
    for name in "uv":
        db.load(name, [(x,) for x in range(2_000)])
    db.load("w", [(-1,)])
    assert len(db["t"]) == 2_000
    assert any(loops[1:])
    assert sum(steps for steps, _ in calls) >= 4_000
    assert all(steps <= budget + 3 for steps, budget in calls)  # a match and what it is looked up in


@pytest.mark.usefixtures("as_written")
@pytest.mark.parametrize(("page_rows", "buffer_rows"), [(4, 1), (4, 1 << 16), (256, 3), (256, 1 << 16)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_walk_would_find(
    name: str, page_rows: int, buffer_rows: int, loops: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if buffer_rows < 10:
        monkeypatch.setattr(running, "SLICE", 7 << 4)  # it is interrupted every few steps
    rng = np.random.default_rng([page_rows, buffer_rows, len(name)])
    # Dense in part, so that many keys in a row are blocked, and up to the greatest one.
    values = np.append(np.arange(NODES - 3), [MOST - 2, MOST - 1, MOST])
    tables = {"e": rng.random((NODES, NODES)) < 1.2 / NODES, "b": rng.random((NODES, NODES)) < 0.5}
    tables["b"][:, NODES // 2 :] = True
    read = [relation for relation in tables if f".decl {relation}(" in PROGRAMS[name]]
    sizes = {"page_rows": page_rows, "directory_rows": 4, "buffer_rows": buffer_rows}
    pair = [lftj.Database._sized(**sizes), lftj.Database._sized(**sizes)]
    for plain, db in enumerate(pair):
        loops[0] = plain
        db.rules(PROGRAMS[name], maintain={"t": "delta"})
        for relation in read:
            db.load(relation, values[np.argwhere(tables[relation])])
        db.evaluate()
    for _ in range(6):
        flips = {}
        for relation in read:
            table = tables[relation]
            flipped = rng.random(table.shape) < 0.4 / NODES
            flips[relation] = (values[np.argwhere(flipped & table)], values[np.argwhere(flipped & ~table)])
            table ^= flipped
        told = []
        for plain, db in enumerate(pair):
            loops[0] = plain
            told.append(changed(db, flips))
        assert told[0] == told[1]
    assert any(loops[1:])
    assert sorted(pair[0]["t"]) == sorted(pair[1]["t"])
