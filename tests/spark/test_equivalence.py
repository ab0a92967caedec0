"""Random programs over random partitions: contents and deltas equal those of the plain reference after every batch.

Catches: a row that no partition derives, or two do; a placement that sends the rows of a key to different places; a
change that does not reach a partition that reads it; a state that is not what the files say. The executor is in this
process, so many cases fit; what Spark adds is in test_spark.py.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from spark_bridge.driver import Partitioned
from spark_bridge.local import InProcess
from spark_bridge.planner import make_plan
from tests.conftest import IN_CI, JIT, examples
from tests.engine import programs
from tests.mixed.programs import Mixed, make_program, make_rows
from tests.spark.twin import FAILURES, PLACEMENTS, Twin, partitionable, placed, rows_of, some_changes, table

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


def run(rng: Random, partitions: int, kind: str, batches: int) -> Twin:
    mixed = make_program(rng, keyed=False)
    note(f"{mixed.text}\n{partitions} partitions, {kind}")
    replicate = partitionable(mixed.text, rng)
    assume(replicate is not None)
    facts = {name: set(make_rows(rng, mixed.known[name], 12)) for name in mixed.base}
    for name in mixed.functional & set(mixed.base):
        facts[name] = set({row[:-1]: row for row in facts[name]}.values())
    folder, executor = Path(tempfile.mkdtemp()), InProcess()
    try:
        twin = Twin(
            mixed,
            facts,
            executor,
            folder / "q",
            rng,
            partitions=partitions,
            replicate=replicate,
            placement=placed(kind, partitions, rng),
        )
    except FAILURES:
        assume(False)
    try:
        for _ in range(batches):
            twin.apply(some_changes(rng, twin, 6))
            step = rng.randrange(12)
            if step == 0:
                executor.worker.forget()
            elif step == 1:
                twin.query.compact()
            elif step == 2:
                again = rng.choice((1, 2, 3))
                twin.query.rescale(again, placement=placed(kind, again, rng))
            twin.verify()
        assert twin.query.verify()["ok"]
    finally:
        shutil.rmtree(folder)
    return twin


@examples(25, 4)
@given(programs.seeds, st.sampled_from((1, 2, 4, 7)), st.sampled_from(PLACEMENTS))
def test_histories(rng: Random, partitions: int, kind: str) -> None:
    run(rng, partitions, kind, 4 if JIT else 2)


JOINS = (
    "t(x, y, z) :- r0(x, y), r0(y, z), r0(x, z).",
    "t(x, y, z) :- r0(x, y), r0(y, z), !r0(x, z).  u[x, y] = count : { t(x, y, _) }.",
    "t(x, y, z, w) :- r0(x, y), r0(y, z), r0(x, z), r0(x, w), r0(y, w).",
    "t(x, y) :- r0(x, y), r1(y), !r0(y, x).  u(x, y, n) :- t(x, y), n = sum z : { r0(x, z), r0(z, y) }.",
)


@pytest.mark.parametrize("partitions", [2, 7] if IN_CI else [1, 2, 4, 7])
@pytest.mark.parametrize("kind", PLACEMENTS)
@pytest.mark.parametrize("text", JOINS)
def test_joins_that_pairs_can_be_told_apart_in(text: str, kind: str, partitions: int, tmp_path: Path) -> None:
    """Split keys and shares are for these."""
    rng, text = Random(partitions), ".decl r0(a:number, b:number) .decl r1(a:number) " + text
    mixed = Mixed(lines=[text], known={"r0": ("number", "number"), "r1": ("number",)}, base=["r0", "r1"])
    facts = {"r0": {(rng.randrange(6), rng.randrange(6)) for _ in range(20)}, "r1": {(1,), (2,), (5,)}}
    placement = placed(kind, partitions, rng)
    twin = Twin(mixed, facts, InProcess(), tmp_path / "q", rng, partitions=partitions, placement=placement)
    if kind == "share" and text.endswith(JOINS[0]):
        assert twin.query.state.layout(0).placement.split == (partitions > 1)
    for _ in range(2):
        twin.apply(some_changes(rng, twin, 6))
    assert twin.query.verify()["ok"]


def test_a_group_without_a_result_is_an_error_even_where_no_rule_asks_for_it(tmp_path: Path) -> None:
    """It was found at random, as a refusal that the reference did not expect."""
    text = """
        .decl r0(a:number, b:number)
        .decl p0(a:number)
        .decl p2(a:number, b:number)
        p2(x, s) :- p0(x), s = sum y + z : { r0(x, y), r0(y, z) }.
    """
    mixed = Mixed(lines=[text], known={"r0": ("number", "number"), "p0": ("number",)}, base=["r0", "p0"])
    facts = {"r0": {(1, 8), (8, 9), (0, 5)}, "p0": {(1,)}}
    twin = Twin(mixed, facts, InProcess(), tmp_path / "q", Random(0), partitions=2)
    twin.apply({"r0": ([], [(5, 2**62), (5, 2**62 + 1), (5, 2**62 + 2)])})
    assert twin.refused == 1
    twin.apply({"r0": ([], [(5, 2)])})
    assert twin.refused == 1


RECURSIVE = (
    "t(x, y) :- r0(x, y). t(x, z) :- t(x, y), r0(y, z).",
    "t(x, y) :- r0(x, y). t(x, z) :- u(x, y), r0(y, z). u(x, z) :- t(x, y), r0(y, z), !r1(z).",
    "t(x, y) :- r0(x, y). t(x, z) :- t(x, y), r0(y, z). n[x] = count : { t(x, _) }. u(x) :- n(x, c), c > 2, !t(x, x).",
    "t(y, x) :- r0(x, y). t(z, x) :- r0(y, z), t(y, x), z < 5.",
)


@pytest.mark.parametrize("partitions", [2, 7] if IN_CI else [1, 2, 4, 7])
@pytest.mark.parametrize("kind", [kind for kind in PLACEMENTS if kind != "share"])
@pytest.mark.parametrize("text", RECURSIVE)
def test_recursion_inside_a_partition(text: str, kind: str, partitions: int, tmp_path: Path) -> None:
    rng, text = Random(partitions), ".decl r0(a:number, b:number) .decl r1(a:number) " + text
    mixed = Mixed(lines=[text], known={"r0": ("number", "number"), "r1": ("number",)}, base=["r0", "r1"])
    facts = {"r0": {(rng.randrange(7), rng.randrange(7)) for _ in range(12)}, "r1": {(1,), (2,), (5,)}}
    placement = placed(kind, partitions, rng)
    twin = Twin(mixed, facts, InProcess(), tmp_path / "q", rng, partitions=partitions, placement=placement)
    for _ in range(4):
        twin.apply(some_changes(rng, twin, 5))
        twin.verify()
    assert twin.query.verify()["ok"]


@pytest.mark.parametrize("partitions", [1, 4])
def test_best_values_inside_a_partition(partitions: int, tmp_path: Path) -> None:
    """Distances, against a breadth-first search per source."""

    def distances(edges: set[tuple[int, int]]) -> set[tuple[int, int, int]]:
        found = dict.fromkeys(edges, 1)
        step = found
        while step:
            nexts = {(x, z): n + 1 for (x, y), n in step.items() for v, z in edges if v == y and (x, z) not in found}
            found |= nexts
            step = nexts
        return {(x, y, n) for (x, y), n in found.items()}

    rng = Random(partitions)
    text = """
        .decl e(a:number, b:number)
        .decl d(a:number, b:number) -> n:number
        d[x, y] = min n : { e(x, y), n = 1 ; d[x, z] = m, e(z, y), n = m + 1 }.
    """
    schema = make_plan(text).schemas["e"]
    edges = {(rng.randrange(9), rng.randrange(9)) for _ in range(14)}
    query = Partitioned.create(
        InProcess(), text, {"e": table(schema, sorted(edges))}, checkpoint=tmp_path / "q", partitions=partitions
    )
    for batch in range(5):
        assert set(rows_of(query.table("d"))) == distances(edges)
        gone = set(rng.sample(sorted(edges), 3))
        come = {(rng.randrange(9), rng.randrange(9)) for _ in range(3)} - edges
        edges = (edges - gone) | come
        ops = [-1] * len(gone) + [1] * len(come)
        query.apply({"e": table(schema, [*gone, *come], ops)}, batch_id=f"b{batch}")
    assert query.verify()["ok"]
