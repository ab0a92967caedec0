"""Random programs with sums that leave the range of their type, for groups that are asked for or not.

Catches: an error where no rule asks for the group, none where one does, and all that differs after either.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.conftest import JIT, examples
from tests.engine import programs
from tests.mixed.asked import make_calls, make_program
from tests.mixed.twin import Twin

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")


@examples(100, 20)
@given(programs.seeds, st.sampled_from(("mixed", "trace", "delta", "triggers", "recompute", "auto")))
def test_sums_out_of_range(rng: Random, strategy: str) -> None:
    mixed = make_program(rng)
    note(f"{mixed.text}\nmaintain={mixed.maintain} granularity={mixed.granularity}")
    twin = Twin(mixed, strategy)
    for _ in range(8 if JIT else 5):
        calls = make_calls(rng, twin.facts)
        note(f"{calls}")
        twin.transact(calls, [not rng.randrange(4) for _ in calls])
