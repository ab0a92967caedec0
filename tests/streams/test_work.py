"""Work per step follows the change, not the data (DBSP, section 4.2), by counters of rows touched."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest

from bench.steps import growth
from bench.streams import CHANGES, SLOPE, work
from lftj.errors import ProgramError
from lftj.streams import graph

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


@pytest.mark.parametrize("order", ["each by itself", "first to last", "last to first"])
def test_connecting_placeholders_does_not_look_at_the_whole_circuit(order):
    """It went through all that a placeholder is made of, so that a circuit of many took the square of them."""
    from lftj import streams

    def calls(count):
        circuit, found = streams.Circuit(), [0]

        def profile(frame, event, _):
            found[0] += event == "call" and frame.f_code.co_filename == graph.__file__

        def connect(placeholder, stream):
            sys.setprofile(profile)
            try:
                circuit.connect(placeholder, stream)
            finally:
                sys.setprofile(None)

        stream = circuit.input("x", a=int)
        placeholders = [circuit.placeholder(f"p{i}", a=int) for i in range(count)]
        made = []
        for placeholder in placeholders:
            stream = stream + placeholder.delay()
            made.append((placeholder, stream))
            if order == "each by itself":
                connect(*made.pop())
        for pair in made if order == "first to last" else reversed(made):
            connect(*pair)
        circuit.output("o", stream)
        return found[0]

    assert calls(160) < 5 * calls(40)


def test_a_cycle_without_a_delay_is_refused_wherever_it_closes():
    """As an order of all nodes tells."""
    outcomes = [outcome for seed in range(40) for outcome in connected_at_random(Random(seed))]
    assert outcomes.count(True) > 20
    assert outcomes.count(False) > 20


def connected_at_random(rng):
    """For each placeholder that was to be connected, whether it was refused."""
    from lftj import streams
    from lftj.streams.graph import _ordered

    circuit, open_ones = streams.Circuit(), []
    made = [circuit.input("x", a=int)]
    for number in range(60):
        choice = rng.randrange(5)
        if choice == 0:
            open_ones.append(circuit.placeholder(f"p{number}", a=int))
            made.append(open_ones[-1])
        elif choice < 4:
            one, other = rng.choices(made, k=2)
            made.append((one.delay(), one + other, one.distinct())[choice - 1])
        elif open_ones:
            placeholder, stream = rng.choice(open_ones), rng.choice(made)
            node = placeholder._node
            node.inputs[:] = [stream._node]
            try:
                list(_ordered([node]))
                refused = ""
            except ProgramError as error:
                refused = str(error)
            node.inputs.clear()
            yield bool(refused)
            if refused:
                with pytest.raises(ProgramError) as caught:
                    circuit.connect(placeholder, stream)
                assert str(caught.value) == refused
            else:
                circuit.connect(placeholder, stream)
                open_ones.remove(placeholder)
