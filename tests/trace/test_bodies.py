"""The laws of exact trace maintenance for bodies with negated atoms and existential suffixes.

After every change rows and records equal those of two recordings from scratch, the engine's and the plain one; a change
and its inverse cancel; what is discarded was never there; work is bounded by the distance of the traces.

Catches: a look into a negated atom that is not recorded, or recorded once too often; a match that stays blocked, or
free, when a row goes or comes; a witness that is lost while another one is there; a unit redone for one site and again
for another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from lftj.maintain.derivations import derives_once
from tests.conftest import FULL, JIT, examples
from tests.trace import cases
from tests.trace.bodies import NEGATED, SHAPES, BodyTraced, some_body
from tests.trace.cases import KEY_MAX, KEY_MIN, Domain, changed
from tests.trace.reference import distance
from tests.trace.test_laws import sorted_rows
from tests.trace.traced import GRANULARITIES, Data, rows_of

seeds = st.integers(0, 2**48)
few = examples(150, 12)
ROUNDS = 5 if JIT else 2
# As in test_laws.py, for queries without an existential suffix: those are redone as a whole. One surgery may be looked
# into for two negated atoms of a relation, at two depths: five steps, and no more in 15,000 of these bodies.
CONSTANT = 5.0


def show(traced: BodyTraced) -> None:
    kept = f"{traced.granularity} {traced.suffix} {traced.sizes}"
    note(f"{traced.text}  in order {traced.choice.order}  {kept}\n{traced.data}")


@few
@given(seeds)
def test_a_maintained_trace_is_a_recorded_one(seed: int) -> None:
    rng = Random(seed)
    traced, domain = some_body(rng, most=30 if JIT else 8)
    show(traced)
    traced.verify()
    for _ in range(ROUNDS):
        traced.apply(changed(rng, traced.data, domain))
        traced.verify()


@pytest.mark.parametrize("suffix", ["kept", "counted"])
@pytest.mark.parametrize("granularity", ["node", "interval"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape(shape: str, granularity: str, suffix: str) -> None:
    """In a few key orders: from nothing, over some data, to nothing."""
    if not FULL and sorted(SHAPES).index(shape) % 4 != 2 * (granularity == "node") + (suffix == "kept"):
        pytest.skip("a quarter of the shapes is enough in the slower modes")
    rng = Random(f"{shape} {granularity} {suffix}")
    for _ in range(4 if FULL else 1):
        traced, domain = some_body(rng, shapes={shape: SHAPES[shape]}, granularity=granularity, suffix=suffix, most=0)
        full = cases.some_data(rng, traced.text, domain, 25 if JIT else 8)
        steps = [full, changed(rng, full, domain)]
        steps += [changed(rng, steps[-1], domain, most=2), {name: set() for name in full}]
        for data in steps:
            traced.apply(data)
            traced.verify()


@few
@given(seeds)
def test_one_row_at_a_time(seed: int) -> None:
    rng = Random(seed)
    traced, domain = some_body(rng, most=12 if JIT else 5)
    show(traced)
    for _ in range(2 * ROUNDS):
        name = rng.choice(traced.names)
        row = domain.row(rng, name)
        if traced.data[name] and rng.random() < 0.5:
            row = rng.choice(sorted(traced.data[name]))
        traced.apply({**traced.data, name: traced.data[name] ^ {row}})
        traced.verify()


@few
@given(seeds)
def test_a_change_and_its_inverse(seed: int) -> None:
    """Rows and records return to what they were, and the second change is the first one backwards."""
    rng = Random(seed)
    traced, domain = some_body(rng, most=30 if JIT else 8)
    show(traced)
    for _ in range(ROUNDS):
        data, rows, records = traced.data, dict(traced.rows), traced.records()
        there = traced.apply(changed(rng, data, domain))
        back = traced.apply(data)
        if there is None or back is None:
            continue
        assert dict(traced.rows) == rows
        assert traced.records() == records
        assert sorted_rows(there.erased) == sorted_rows(back.inserted)
        assert sorted_rows(there.inserted) == sorted_rows(back.erased)
        assert (there.removed, there.added) == (back.added, back.removed)


@few
@given(seeds)
def test_a_unit_is_redone_once(seed: int) -> None:
    """The row of an existential suffix leaves once and comes once; the two cancel where it has another witness."""
    rng = Random(seed)
    traced, domain = some_body(rng, suffix="kept", most=30 if JIT else 8)
    show(traced)
    for _ in range(ROUNDS):
        before = set(traced.rows)
        result = traced.apply(changed(rng, traced.data, domain))
        kept = replace(traced.plan, until=traced.trace_plan.until)
        if result is not None and kept.until < len(kept.depths) and derives_once(kept):
            erased, inserted = (Counter(rows_of(chunks)) for chunks in (result.erased, result.inserted))
            assert max([*erased.values(), *inserted.values()], default=1) == 1
            assert set(erased - inserted) == before - set(traced.rows)
            assert set(inserted - erased) == set(traced.rows) - before


@few
@given(seeds)
def test_what_is_discarded_was_never_there(seed: int) -> None:
    rng = Random(seed)
    traced, domain = some_body(rng, most=20 if JIT else 8)
    show(traced)
    for _ in range(ROUNDS):
        records = traced.records()
        for _ in range(rng.choice((1, 1, 3))):
            staged = traced.stage(changed(rng, traced.data, rng.choice((domain, Domain(1000, 5)))))
            if staged is not None:
                traced.trace.discard(staged[0])
            assert traced.records() == records
        traced.apply(changed(rng, traced.data, domain))
        traced.verify()


@few
@given(seeds, st.sampled_from((1 << 8, 1 << 40, 1 << 62)))
def test_keys_beyond_the_recorded_ranges(seed: int, far: int) -> None:
    """Keys that the records were not packed for come and go, at the ends of int64 too."""
    rng = Random(seed)
    traced, domain = some_body(rng, domain=Domain(0, 5), most=20 if JIT else 6)
    show(traced)
    homes = [domain, Domain(far, 5), Domain(-far, 5), Domain(KEY_MIN, 4), Domain(KEY_MAX - 3, 4)]
    for _ in range(ROUNDS):
        following: Data = {name: set(rows) for name, rows in traced.data.items()}
        for _ in range(rng.choice((1, 3, 10))):
            name = rng.choice(traced.names)
            following[name] ^= {tuple(rng.choice(homes).key(rng) for _ in range(cases.ARITY[name]))}
        traced.apply(following)
        traced.verify()


@examples(100, 10)
@given(seeds)
@example(251387)  # 5 steps for one surgery
def test_steps_are_bounded_by_the_distance_of_the_traces(seed: int) -> None:
    """The paper's promise holds with negated atoms; a look into one is a step of the trace."""
    rng = Random(seed)
    traced, domain = some_body(rng, shapes=NEGATED, granularity="interval", suffix="counted", most=30 if JIT else 8)
    show(traced)
    before = traced.recording()
    for _ in range(ROUNDS):
        result = traced.apply(changed(rng, traced.data, domain))
        after = traced.verify()
        if result is not None:
            assert result.steps <= CONSTANT * max(1, distance(before, after) + result.surgeries)
        before = after


def test_all_shapes_take_part() -> None:
    """The planner offers key orders that end at the first witness, for every shape that has a suffix."""
    kept = 0
    for shape in SHAPES:
        rng = Random(shape)
        found = [some_body(rng, shapes={shape: SHAPES[shape]}, suffix="kept", most=5)[0] for _ in range(6)]
        kept += any(traced.trace_plan.until < len(traced.plan.depths) for traced in found)
    assert kept >= 15
    assert {traced.granularity for traced in found} <= set(GRANULARITIES)
