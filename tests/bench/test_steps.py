"""The triangle join's steps against its two bounds, on graphs small enough for a test."""

from __future__ import annotations

import pytest

from bench import graphs, steps


def test_min_degree_sum() -> None:
    part = 5  # arcs A->B have outdegrees 2p and p; those into C have a second outdegree of 0
    assert steps.min_degree_sum(graphs.tripartite(part)) == part**3
    assert steps.min_degree_sum(graphs.load("ego-Facebook").rows) == 2_414_539
    assert steps.min_degree_sum(graphs.tripartite(1)[:0]) == 0


def test_growth() -> None:
    assert steps.growth([10, 100, 1000], [10**3, 10**6, 10**9]) == pytest.approx(3.0)
    assert steps.growth([10, 100], [50, 500]) == pytest.approx(1.0)


@pytest.mark.jit_only
@pytest.mark.parametrize("name", ["ego-Facebook", "pl200k"])
def test_steps_are_at_most_twice_the_min_degree_sum(name: str) -> None:
    rows = graphs.load(name).rows
    _, counters = steps.triangle_steps(rows)
    assert 0 < counters["steps"] <= steps.BOUND * steps.min_degree_sum(rows)


@pytest.mark.jit_only
def test_steps_grow_with_the_agm_bound() -> None:
    """On complete tripartite graphs, where the answer itself grows with the exponent 1.5."""
    parts = (8, 16, 32, 64)
    taken = []
    for part in parts:
        count, counters = steps.triangle_steps(graphs.tripartite(part))
        assert count == part**3
        taken.append(counters["steps"])
    assert steps.growth([3 * part**2 for part in parts], taken) <= steps.EXPONENT
