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
    from lftj.streams.graph import ordered

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
                list(ordered([node]))
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


@pytest.mark.parametrize("shape", ["watermarks one after another", "groups one after another", "joins with one stream"])
def test_what_is_forgotten_is_found_without_a_look_at_the_whole_circuit(shape):
    """Each integral that forgets went through all that it is made of, so that a circuit of many took the square."""
    from lftj import streams
    from lftj.streams import forget, topological

    def calls(count):
        circuit, found = streams.Circuit(), [0]
        files = {graph.__file__, forget.__file__, topological.__file__}
        stream = circuit.input("x", t=int, key=int).watermark("t", 5)
        for number in range(count):
            if shape == "groups one after another":
                stream = stream.group_by("t", "key").aggregate(n=streams.count()).select("t", "key")
            elif shape == "joins with one stream":
                joined = stream.join(circuit.input(f"y{number}", t=int, key=int), on=["t", "key"])
                circuit.output(f"o{number}", joined)
            else:
                stream = stream.watermark("t", 5).distinct()
        circuit.output("o", stream)

        def profile(frame, event, _):
            found[0] += event == "call" and frame.f_code.co_filename in files

        sys.setprofile(profile)
        try:
            made = circuit.incremental()
        finally:
            sys.setprofile(None)
        assert sum("forgetting" in node.operator.label for node in made._graph.order()) >= count
        return found[0]

    assert calls(160) < 5 * calls(40)


def test_a_kept_order_admits_what_closes_no_cycle():
    """As a search of all nodes tells, and what is refused leaves it as it was."""
    from lftj.streams.graph import Graph, ordered
    from lftj.streams.operators import Delay, Plus
    from lftj.streams.topological import TopologicalOrder

    answers = []
    for seed in range(60):
        rng, made = Random(seed), Graph()
        nodes = [made.add(Plus(), [], ()) for _ in range(4)]
        for _ in range(20):
            operator = Delay(0) if rng.random() < 0.2 else Plus()
            nodes.append(made.add(operator, rng.choices(nodes, k=rng.randint(1, 2)), ()))
        order = TopologicalOrder(list(ordered(nodes)))
        for _ in range(40):
            node, more = rng.choice(nodes), rng.choices(nodes, k=rng.randint(1, 3))
            if node.operator.strict:
                continue
            before, node.inputs = node.inputs, [*node.inputs, *more]
            try:
                list(ordered([node]))
                expected = True
            except ProgramError:
                expected, node.inputs = False, before
            assert order.admit(node, more) is expected
            answers.append(expected)
            for one in nodes:
                if not one.operator.strict:
                    assert all(order._places[read.number] < order._places[one.number] for read in one.inputs)
                    assert order._reads[one.number] == {read.number for read in one.inputs}
    assert answers.count(True) > 300
    assert answers.count(False) > 300
