"""Random programs that mix all there is, under random updates: contents, deltas and previews equal the reference's.

Catches: everything that makes an answer wrong after a change: a group that keeps what has gone, an empty group that
stays or goes, a negation that a change of what it denies does not reach, a change that does not flow through the parts
a rule was taken apart into, a key with two values, a failed transaction that leaves something behind.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.conftest import JIT, examples
from tests.engine import programs
from tests.mixed.programs import Mixed, make_program, mixed_programs
from tests.mixed.twin import Twin, history

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

ROUNDS, MOST = (6, 12) if JIT else (2, 4)


def show(mixed: Mixed) -> None:
    note(f"{mixed.text}\nmaintain={mixed.maintain} granularity={mixed.granularity} {mixed.sizes}")


def run(mixed: Mixed, draw: Any, strategy: str) -> None:
    show(mixed)
    twin = Twin(mixed, strategy)
    transact = twin.transact

    def noted(calls: Any, previews: Any) -> None:
        note(f"{calls} previews {previews}")
        transact(calls, previews)

    twin.transact = noted  # type: ignore[method-assign]
    history(draw, twin, ROUNDS, MOST)


@examples(120, 8)
@given(programs.seeds, st.sampled_from(("mixed", "trace", "delta", "triggers", "recompute", "auto")))
def test_full_histories(rng: Random, strategy: str) -> None:
    run(make_program(rng), rng, strategy)


@examples(40, 5)
@given(mixed_programs(), st.data(), st.sampled_from(("mixed", "trace", "delta", "triggers", "recompute", "auto")))
def test_histories_that_shrink(mixed: Mixed, data: st.DataObject, strategy: str) -> None:
    run(mixed, data.draw, strategy)


@examples(20, 2)
@given(programs.seeds)
def test_large_batches(rng: Random) -> None:
    """Batches that are dearer to maintain than to recompute, and small ones in between."""
    mixed = make_program(rng)
    show(mixed)
    history(rng, Twin(mixed, "auto"), ROUNDS, 40 if JIT else 6)


@examples(40, 4)
@given(programs.seeds)
def test_strategies_agree(rng: Random) -> None:
    """One history under every strategy: equal contents and deltas, whichever maintains them."""
    mixed, seed = make_program(rng), rng.random()
    show(mixed)
    done = []
    for strategy in ("trace", "delta", "triggers", "recompute", "auto"):
        twin = Twin(mixed, strategy)
        history(Random(seed), twin, ROUNDS // 2, MOST)
        done.append((twin.contents, twin.failed, twin.committed))
    assert all(one == done[0] for one in done)
