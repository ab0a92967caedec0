"""Last depths of large rounds that tell heads that were met by stamps, and are walked two at a time where they can.

Catches: a head that is written twice, or not at all, because of a buffer that is full, a run that goes over pages, a
run of the head's own that is stamped late or beyond the table; a key of a new epoch that is taken for one of the last;
a head that is there already and is found nevertheless.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lftj
from lftj.join import first_key_index
from lftj.join import join_state as cells
from lftj.recursion import component_joins, fixpoint, variant_plans
from tests.conftest import JIT

CLOSURES = {
    "left": "t(x, z) :- t(x, y), e(y, z).",
    "right": "t(x, z) :- e(x, y), t(y, z).",
    "nonlinear": "t(x, z) :- t(x, y), t(y, z).",
}
TAGGED = """
.decl p(x:number, y:number)
.decl q(x:number, r:number, z:number)
p(x, z) :- p(x, y), p(y, z).
q(x, r, z) :- p(x, y), q(y, r, z).
"""
# The runs of the head's own rows are up to so long: beyond what is stamped at once where kernels are compiled.
NODES = 90 if JIT else 8


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """All runs are large ones, and all relations may have jump tables; whether each run had two depths in one."""
    monkeypatch.setattr(variant_plans, "LARGE", 1)
    monkeypatch.setattr(fixpoint, "LARGE", 1)
    monkeypatch.setattr(first_key_index, "LEAST", 1)
    told = list[bool]()
    heads = component_joins.DeltaJoin._heads

    def watching(self: Any, evaluator: Any, walk: cells.Walk, *rest: Any) -> Any:
        depths, control = walk.depths, walk.control
        found = bool(control[cells.STAMP]) and bool((depths[:, cells.FUSED] == cells.STAMPED).any())
        told.append(found and control[cells.EPOCH_DEPTH] < len(depths) - 2)
        return heads(self, evaluator, walk, *rest)

    monkeypatch.setattr(component_joins.DeltaJoin, "_heads", watching)
    return told


def reached(edges: np.ndarray) -> np.ndarray:
    """The closure of bool[n, n]."""
    found = edges.copy()
    while True:
        more = found | (found.astype(np.float32) @ found.astype(np.float32) > 0)
        if (more == found).all():
            return found
        found = more


def rows_of(table: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in np.argwhere(table).tolist()}


def random_edges(rng: np.random.Generator, degree: float) -> np.ndarray:
    return rng.random((NODES, NODES)) < degree / NODES


@pytest.mark.usefixtures("as_written")
@pytest.mark.parametrize("mostly", [2.0, -1.0], ids=["looked for", "left to the storing"])
@pytest.mark.parametrize("buffer_rows", [1, 7, 1 << 16])
@pytest.mark.parametrize("page_rows", [4, 256])
@pytest.mark.parametrize("rule", CLOSURES)
def test_closures(
    rule: str, page_rows: int, buffer_rows: int, mostly: float, fused: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixpoint, "MOSTLY", mostly)
    monkeypatch.setattr(fixpoint, "ROUND_PART", 1e9)
    there = list[int]()
    with_rows = fixpoint.with_rows

    def watching(relation: Any, rows: Any, *rest: Any) -> Any:
        following, new = with_rows(relation, rows, *rest)
        there.append(rows.shape[1] - new.shape[1])
        return following, new

    monkeypatch.setattr(fixpoint, "with_rows", watching)
    rng = np.random.default_rng([page_rows, buffer_rows, len(rule)])
    for degree in (1.1, 4.0):
        edges = random_edges(rng, degree)
        text = f".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\n{CLOSURES[rule]}"
        db = lftj.Database._sized(text, page_rows=page_rows, directory_rows=4, buffer_rows=buffer_rows)
        db.load("e", np.argwhere(edges) - 50)
        t = db["t"].numpy()
        assert len(t) == len(np.unique(t, axis=0))
        assert {tuple(row) for row in (t + 50).tolist()} == rows_of(reached(edges))
    assert any(fused)
    # Those that are there are passed over by the join, or left to the storing.
    assert any(there) == (mostly < 0)


@pytest.mark.parametrize("buffer_rows", [5, 1 << 16])
@pytest.mark.parametrize("page_rows", [4, 256])
def test_heads_of_three_columns(page_rows: int, buffer_rows: int, fused: list[bool]) -> None:
    """The key of the last depth is one of two columns that differ within an epoch, and own runs go beyond the table."""
    rng = np.random.default_rng(page_rows)
    p, tags = random_edges(rng, 1.5), 3
    q = np.stack([random_edges(rng, 0.7) for _ in range(tags)], axis=1)
    db = lftj.Database._sized(TAGGED, page_rows=page_rows, directory_rows=4, buffer_rows=buffer_rows)
    db.load("p", np.argwhere(p) + 20)
    # Heads of nodes that no `p` leads from.
    beyond = np.stack([np.arange(20), np.arange(20) % tags, np.full(20, 20)], axis=1)
    db.load("q", np.vstack([np.argwhere(q) + np.array([20, 0, 20]), beyond]))
    paths = reached(p)
    full = q | (np.tensordot(paths.astype(np.float32), q.astype(np.float32), axes=(1, 0)) > 0)
    expected = {(x + 20, r, z + 20) for x, r, z in rows_of(full)}
    found = db["q"].numpy()
    assert len(found) == len(expected) + len(beyond)
    assert {tuple(row) for row in found.tolist()} == expected | {tuple(row) for row in beyond.tolist()}
    assert any(fused)
    assert rows_of(paths) == {(x - 20, z - 20) for x, z in db["p"]}


@pytest.mark.usefixtures("as_written")
def test_changes_of_many_rows(fused: list[bool]) -> None:
    """Inserted and erased in turn: rows that return are met beside those that stayed."""
    rng = np.random.default_rng(3)
    edges = random_edges(rng, 1.5)
    db = lftj.Database._sized(f".decl e(x:number, y:number)\nt(x, y) :- e(x, y).\n{CLOSURES['nonlinear']}", page_rows=8)
    db.load("e", np.argwhere(edges))
    db.evaluate()
    for _ in range(6):
        flipped = random_edges(rng, 0.2)
        with db.transaction() as tx:
            tx.erase("e", np.argwhere(flipped & edges))
            tx.insert("e", np.argwhere(flipped & ~edges))
        edges ^= flipped
        assert set(db["t"]) == rows_of(reached(edges))
    assert any(fused)
