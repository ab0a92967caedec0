"""Branch filters: never a "no" for a branch that is there, and seldom a "perhaps" for one that is not."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scantree import filter as filters
from scantree.filter import SEED, BranchFilter
from scantree.memory import Arena
from scantree.version import Store
from tests.conftest import JIT

kernels: Any = filters

MIN, MAX = -(2**63), 2**63 - 1
# The share of absent branches that a filter may not know of, for 16 bits a branch. The filter of a blocked word of 64
# bits with two bits a branch lets through about (2 * 4 / 64)^2 = 1.6 % at its fullest; unevenness adds to that.
SHARE = 0.04
KEYS = st.one_of(st.integers(-4, 4), st.sampled_from((MIN, MIN + 1, MAX - 1, MAX, 1 << 32)), st.integers(MIN, MAX))


def perhaps(held: BranchFilter, branch: tuple[int, ...]) -> bool:
    """Whether the filter lets the branch through: the question as maintenance asks it."""
    prefix = np.int64(SEED)
    with np.errstate(over="ignore"):
        for key in branch[:-1]:
            prefix = kernels.mix(prefix, np.int64(key))
        last = np.int64(branch[-1])
        window = kernels.window_of(last)
        return bool(kernels.may_hold(held.arena.space.mem, held.page, held.mask, prefix, last, window))


def columns(rows: list[tuple[int, ...]], arity: int) -> Any:
    return np.array(rows, np.int64).reshape(len(rows), arity).T


@given(
    st.integers(1, 3).flatmap(
        lambda arity: st.tuples(
            st.lists(st.tuples(*[KEYS] * arity), max_size=40), st.lists(st.tuples(*[KEYS] * arity), max_size=40)
        )
    )
)
def test_what_is_there_is_never_denied(case: tuple[list[tuple[int, ...]], list[tuple[int, ...]]]) -> None:
    """At every level, of the version it was made from, and of what was added since."""
    first, later = case
    arity = len((first + later + [(0,)])[0])
    version = Store(Arena(), arity, page_rows=2, dir_rows=2).build(list(columns(first, arity)))
    for levels in range(1, arity + 1):
        held = BranchFilter(version, levels)
        assert all(perhaps(held, row[:levels]) for row in first)
        held.add(columns(later, arity))
        assert all(perhaps(held, row[:levels]) for row in first + later)


def test_what_is_not_there_is_mostly_denied() -> None:
    """Of a fixed set of absent branches, full to the capacity the filter was made for."""
    rng = Random(20_13)
    n, domain = (20_000, 3_000) if JIT else (500, 200)
    rows = list({(rng.randrange(domain), rng.randrange(domain)) for _ in range(n)})
    version = Store(Arena(), 2).build(list(columns(rows, 2)))
    held = BranchFilter(version, 2)
    more = list({(rng.randrange(domain), rng.randrange(domain)) for _ in range(held.capacity - len(rows))} - {*rows})
    held.add(columns(more, 2))
    present = {*rows, *more}
    absent = {(rng.randrange(domain), rng.randrange(domain)) for _ in range(n)} - present
    passed = sum(perhaps(held, branch) for branch in absent)
    assert 0 < passed <= SHARE * len(absent)
    assert not held.stale


def test_a_filter_that_took_too_much_is_stale() -> None:
    version = Store(Arena(), 1).build([np.arange(10)])
    held = BranchFilter(version, 1)
    assert held.memory() == 8 * (held.mask + 1)
    held.add(columns([(i,) for i in range(2 * held.capacity - 10)], 1))
    assert not held.stale
    held.add(columns([(7,)], 1))
    assert held.stale


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_its_page_goes_with_it(rows: int) -> None:
    store = Store(Arena(), 1)
    version = store.build([np.arange(rows)])
    used = store.arena.used
    held = BranchFilter(version, 1)
    assert store.arena.used > used
    assert not perhaps(held, (rows,)) or rows == 300
    del held
    store.arena.collect()
    assert store.arena.used == used
