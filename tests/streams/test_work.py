"""Work per step follows the change, not the data (DBSP, section 4.2), by counters of rows touched."""

from __future__ import annotations

import numpy as np
import pytest

from bench.steps import growth
from bench.streams import CHANGES, SLOPE, work

pytestmark = pytest.mark.jit_only


@pytest.mark.parametrize("name", ["join", "group-by"])
def test_rows_touched_per_change_do_not_grow_with_the_data(name):
    sizes = (10_000, 100_000, 1_000_000)
    touched = [work(name, size)[0] / CHANGES for size in sizes]
    assert growth(sizes, touched) <= SLOPE
    assert min(touched) >= 1, "each changed row is at least written"


def test_a_join_that_meets_more_rows_touches_more():
    from lftj import streams

    circuit = streams.Circuit()
    left, right = circuit.input("left", key=int, value=int), circuit.input("right", key=int, other=int)
    circuit.output("out", left.join(right, on="key"))
    changes = circuit.incremental()
    changes.step({"right": np.stack([np.zeros(500, np.int64), np.arange(500)], axis=1)})
    few = changes.step({"left": [(1, 1)]}) and changes.rows_touched
    many = changes.step({"left": [(0, 1)]}) and changes.rows_touched
    assert many >= few + 500


@pytest.mark.parametrize("changes", [False, True])
def test_a_chain_of_joins_joins_a_row_once_however_often_it_is_there(changes):
    """A projection leaves equal rows beside one another, which joins multiplied: 8**7 rows at the fifth."""
    from lftj import streams

    circuit = streams.Circuit()
    edge = circuit.input("edge", a=int, b=int)
    path = edge
    for _ in range(5):
        path = path.rename(b="via").join(edge.rename(a="via"), on="via").select("a", "b")
    circuit.output("path", path)
    circuit = circuit.incremental() if changes else circuit
    made = circuit.step({"edge": [(a, b) for a in range(8) for b in range(8)]})["path"]
    assert set(made.weights.tolist()) == {8**5}
    assert max(rows for rows, _ in circuit._graph.seen.values()) == 8**3
