"""Recursive programs under random updates: contents, deltas, previews and rounds after every transaction.

Catches: a row that keeps itself alive round a cycle, a row that goes though it has another derivation, a change that
does not flow through a component, or on into the next, rounds that support nothing, a delta that tells of what came and
went again within the transaction.
"""

from __future__ import annotations

from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from lftj.join import first_key_index
from lftj.maintain import rounds as following
from lftj.recursion import closure, fixpoint, retraction, round_column, variant_plans
from lftj.store import stored
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.mixed.programs import Mixed
from tests.recursion.programs import WRITTEN, make_program, recursive_programs
from tests.recursion.twin import Twin, history

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

ROUNDS, MOST = (7, 12) if JIT else (2, 4)


def run(draw: Any, mixed: Mixed, count: int = ROUNDS, most: int = MOST, strategy: str = "mixed") -> Twin:
    note(f"{mixed.text}\nmaintain={mixed.maintain} {mixed.sizes}")
    twin = Twin(mixed, strategy)
    transact = twin.transact

    def noted(calls: Any, previews: Any) -> None:
        note(f"{calls} previews {previews}")
        transact(calls, previews)

    twin.transact = noted  # type: ignore[method-assign]
    # How many suspects are examined together must not matter, nor whether rows are merged or inserted, nor which runs
    # are large ones and which of these leave it to the storing to find the rows that are there, nor how the rows are
    # found that support others.
    at_once, part = programs.pick(draw, ((1, 0.0), (2, 0.5), (retraction.AT_ONCE, retraction.PART)))
    merged = programs.pick(draw, (0.0, round_column.LARGE_PART, 1e9))
    large, mostly = programs.pick(draw, ((variant_plans.LARGE, fixpoint.MOSTLY), (1, 2.0), (2, -1.0)))
    looked = programs.pick(draw, (variant_plans.LOOKED, 0.0, 1e9))
    # Closures may be run as they are written.
    closed = programs.pick(draw, (closure.right_linear, closure.right_linear, lambda clauses: None))
    with (
        mock.patch.multiple(retraction, AT_ONCE=at_once, PART=part),
        mock.patch.object(round_column, "LARGE_PART", merged),
        mock.patch.object(closure, "right_linear", closed),
        mock.patch.multiple(variant_plans, LARGE=large, LOOKED=looked),
        mock.patch.object(first_key_index, "LEAST", min(first_key_index.LEAST, large)),
        mock.patch.multiple(fixpoint, LARGE=large, MOSTLY=mostly, ROUND_PART=1e9),
    ):
        history(draw, twin, count, most)
    return twin


@pytest.mark.parametrize("name", WRITTEN)
@examples(8, 2)
@given(programs.seeds, st.booleans())
def test_written(name: str, rng: Random, facts_in_heads: bool) -> None:
    """Programs by hand; `facts_in_heads`: their heads hold facts too."""
    run(rng, WRITTEN[name].mixed(sizes=programs.make_sizes(rng), facts_in_heads=facts_in_heads))


@pytest.mark.jit_only
@examples(1)
@given(st.just(9502812))
def test_an_amended_version_has_another_jump_table(seed: int) -> None:
    """A history that never ended: a walk by the jump table of a version that had been amended since."""
    rng = Random(seed)
    with mock.patch.multiple(stored, MOST_BEHIND=3, BEHIND_PART=1e9):
        name = rng.choice(list(WRITTEN)[:46])  # those that there were
        run(rng, WRITTEN[name].mixed(sizes=programs.make_sizes(rng), facts_in_heads=rng.random() < 0.5))


@examples(80, 8)
@given(programs.seeds)
def test_random(rng: Random) -> None:
    run(rng, make_program(rng))


@examples(20, 3)
@given(programs.seeds)
def test_random_where_much_goes(rng: Random) -> None:
    """What loses much of its support is evaluated anew, in between maintained."""
    with mock.patch.multiple(following, LOST_ROWS=2, LOST_PART=rng.choice((0.0, 0.2))):
        run(rng, make_program(rng))


@examples(30, 4)
@given(recursive_programs(), st.data())
def test_random_that_shrink(mixed: Mixed, data: st.DataObject) -> None:
    run(data.draw, mixed, ROUNDS - 2, 6 if JIT else 3)


@examples(15, 1)
@given(programs.seeds)
def test_long(rng: Random) -> None:
    """Many transactions on one database, a few rows each."""
    run(rng, make_program(rng), 40 if JIT else 4, 4)


MODEL = ("closure, right", "closure, nonlinear", "same generation", "mutual", "guarded")


@examples(40, 5)
@given(st.integers(0, 2**48))
def test_cases_of_the_model(seed: int) -> None:
    """The programs, sizes and updates of the first executable model of rounds."""
    rng = Random(seed)
    mixed = WRITTEN[rng.choice(MODEL)].mixed(sizes=programs.make_sizes(rng), facts_in_heads=False)
    twin, n = Twin(mixed), rng.choice([3, 4, 6])

    def row() -> tuple[int, int]:
        return rng.randrange(n), rng.randrange(n)

    start = [("insert", name, [row() for _ in range(rng.randint(0, 10))]) for name in mixed.base]
    twin.transact(start, [False] * len(start))
    for _ in range(6 if JIT else 2):
        inserted, erased = set(), set()
        for _ in range(rng.choice([1, 1, 3])):
            name = rng.choice(mixed.base)
            if twin.facts[name] and rng.random() < 0.55:
                erased.add((name, rng.choice(sorted(twin.facts[name]))))
            else:
                inserted.add((name, row()))
        calls = [("insert", name, [new]) for name, new in sorted(inserted - erased)]
        calls += [("erase", name, [old]) for name, old in sorted(erased)]
        note(str(calls))
        twin.transact(calls, [False] * len(calls))


@examples(12, 1)
@given(programs.seeds)
def test_larger_graphs(rng: Random) -> None:
    """Closures of some hundred rows, so that pages split, empty and are shared between versions."""
    name = rng.choice(("closure, left", "closure, nonlinear", "same generation", "reachable", "mutual"))
    mixed = WRITTEN[name].mixed(sizes=programs.make_sizes(rng), facts_in_heads=False)
    twin, n = Twin(mixed), 14 if JIT else 5
    columns = {base: len(twin.program.kinds[base]) for base in mixed.base}

    def rows(count: int, base: str) -> list[tuple[int, ...]]:
        return [tuple(rng.randrange(n) for _ in range(columns[base])) for _ in range(count)]

    start = [("insert", base, rows(2 * n, base)) for base in mixed.base]
    twin.transact(start, [False] * len(start))
    for _ in range(8 if JIT else 2):
        base = rng.choice(mixed.base)
        known = sorted(twin.facts[base])
        erased = rng.sample(known, min(len(known), rng.choice((1, 1, 2, 8))))
        calls = [("insert", base, rows(rng.choice((1, 2, 8)), base)), ("erase", base, erased)]
        twin.transact(calls, [rng.random() < 0.3, rng.random() < 0.3])
