"""Where keys go: every pair to one partition, every row to all that may need it, work evenly."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.values.schema import Column, Schema
from spark_bridge.bridge_errors import PlanError
from spark_bridge.keys import Keyed, hash_column
from spark_bridge.placement import Placement, choose_share, key_work, loads, place
from spark_bridge.plan import ALL, Pattern
from spark_bridge.planner import make_plan
from tests.engine import programs
from tests.spark.twin import PLACEMENTS, placed

TRIANGLE = ".decl e(a:number, b:number) t(x, y, z) :- e(x, y), e(y, z), e(x, z)."
TEXT_A = 3405396810240292928
X, XY, Y = Pattern("x", (0,)), Pattern("xy", (0, 1)), Pattern("y", (1,))


def rows(pairs: np.ndarray) -> Keyed:
    schema = Schema("e", (Column("a", "number"), Column("b", "number")))
    return Keyed(pa.table({"a": pairs[:, 0].copy(), "b": pairs[:, 1].copy()}), schema)


@given(programs.seeds, st.sampled_from((1, 2, 4, 7, 12)), st.sampled_from(PLACEMENTS))
def test_every_pair_has_one_place(rng: Random, partitions: int, kind: str) -> None:
    plan, second = make_plan(TRIANGLE), make_plan(TRIANGLE, second=True)
    keyed = rows(np.array([(rng.randrange(9), rng.randrange(9)) for _ in range(60)]))
    placement = placed(kind, partitions, rng)(plan, second, {"e": keyed})
    placement = Placement.from_json(placement.json())
    hits = {p: np.stack([placement.hits(i, p, keyed) for i in range(partitions)]) for p in (X, XY, Y, ALL)}
    assert (hits[XY].sum(axis=0) == 1).all()
    assert hits[ALL].all()
    place_of = hits[XY].argmax(axis=0)
    for pattern in (X, XY, Y, ALL):
        owners = placement.owners(pattern, keyed)
        assert hits[pattern][owners, np.arange(len(keyed))].all()
        # Whoever owns a pair is hit by every row that shares a key with it.
        column = {X: 0, Y: 1}.get(pattern)
        for i in range(len(keyed)):
            same = np.arange(len(keyed)) == i if column is None else keyed.hashes(column) == keyed.hashes(column)[i]
            assert hits[pattern][place_of[i], same].all()
    if not placement.split:
        assert (hits[X] == hits[XY]).all()


def test_hashes_are_of_values_and_nothing_else() -> None:
    assert hash_column(pa.array([0.0, -0.0]), "float").tolist() == hash_column(pa.array([0.0, 0.0]), "float").tolist()
    texts = hash_column(pa.chunked_array([["a", "b"], ["a"]]), "symbol")
    assert texts[0] == texts[2] != texts[1]
    assert texts.tolist() == hash_column(pa.array(["a", "b", "a"]), "symbol").tolist()
    # Files of one run are read by others: the hash must not change.
    assert hash_column(pa.array([1]), "number").tolist() == [10451216379200822465]
    assert texts.tolist()[0] == TEXT_A


def test_work_counts_what_a_leapfrog_takes() -> None:
    keyed = rows(np.array([(1, 2), (1, 3), (2, 3), (2, 4), (2, 5), (3, 1)]))
    keys, work = key_work(make_plan(TRIANGLE), {"e": keyed})
    by_key = dict(zip(keys.tolist(), work.tolist(), strict=True))
    hashed = dict(zip((1, 2, 3), hash_column(pa.array([1, 2, 3]), "number").tolist(), strict=True))
    # Held; e(x, y): a row each, min(2, 3) + min(2, 1) by e(y, z); e(x, z): a row each, min(2, 1) + min(2, 2).
    assert by_key[hashed[1]] == 2 + (2 + 2 + 1) + (2 + 1 + 2)
    assert by_key[hashed[3]] == 1 + (1 + 1) + (1 + 1)


@pytest.mark.parametrize("split", [False, True])
def test_skew(split: bool) -> None:
    rng = np.random.default_rng(0)
    keys = np.sort(rng.integers(0, 1 << 63, 5000).astype(np.uint64))
    work = rng.pareto(2.0, 5000) + 1
    work[7] = work.sum() * (0.3 if split else 0.02)
    placement = place(keys, work, 32, split=split)
    load = loads(placement, keys, work)
    assert load.max() / load.mean() < 1.3
    assert placement.split == split
    assert np.isclose(load.sum(), work.sum())


def test_memory_decides_between_replicating_and_sharing() -> None:
    plan, second = make_plan(TRIANGLE), make_plan(TRIANGLE, second=True)
    size = {"e": 1_000_000}
    assert choose_share([plan], second, size, 16, None) == 1
    assert choose_share([plan], second, size, 16, 60_000_000) == 1
    assert choose_share([plan], second, size, 16, 25_000_000) == 4
    with pytest.raises(PlanError, match="replicating takes 42,500,000; shares of 8 x 2 take"):
        choose_share([plan], second, size, 16, 15_000_000)
    with pytest.raises(PlanError, match="sharing is not possible"):
        choose_share([plan], None, size, 16, 15_000_000)
