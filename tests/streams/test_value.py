"""Outputs that a circuit keeps whole, read while it steps."""

from __future__ import annotations

import threading
from random import Random

import pytest

import lftj
from lftj import streams


def circuit() -> streams.Circuit:
    made = streams.Circuit("graph")
    edge = made.input("edge", a=int, b=str)
    made.output("degree", edge.group_by("a").aggregate(n=streams.count()), whole=True)
    made.output("edges", edge)
    return made.incremental()


def test_a_value_is_the_sum_of_the_changes() -> None:
    made, random, rows = circuit()._sized(4, 4), Random(1), dict[tuple[int, str], int]()
    assert made.value("degree") == {}
    for _ in range(30):
        delta = {(random.randrange(5), random.choice("abc")): random.choice([1, 1, -1]) for _ in range(3)}
        for row, weight in delta.items():
            rows[row] = rows.get(row, 0) + weight
        made.step({"edge": streams.zset(list(delta), list(delta.values()))})
        degree: dict[int, int] = {}
        for (a, _), weight in rows.items():
            degree[a] = degree.get(a, 0) + weight
        assert made.value("degree") == {(a, n): 1 for a, n in degree.items() if n}


def test_a_value_is_of_one_step_while_another_thread_steps() -> None:
    made, seen, done = circuit(), list[int](), threading.Event()

    def read() -> None:
        while not done.is_set():
            counts = [n for (_, n), _ in made.value("degree")]
            assert len(set(counts)) <= 1  # each step gives every node one more edge
            seen.append(sum(counts))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(40):
        made.step({"edge": [(a, str(i)) for a in range(20)]})
    done.set()
    for reader in readers:
        reader.join()
    assert seen
    assert made.value("degree") == {(a, 40): 1 for a in range(20)}


def test_a_failed_step_changes_no_value() -> None:
    made = streams.Circuit("quotients")
    made.output("q", made.input("e", a=int, b=int).map("a", q="a / b"), whole=True)
    changes = made.incremental()
    changes.step({"e": [(6, 2)]})
    with pytest.raises(lftj.Error, match="has no value"):
        changes.step({"e": [(6, 3), (1, 0)]})
    assert changes.value("q") == {(6, 3): 1}


def test_others_are_refused() -> None:
    with pytest.raises(lftj.DataError) as caught:
        circuit().value("edges")
    assert str(caught.value) == (
        "the circuit keeps no output 'edges' whole\n"
        "  why: it keeps degree; of others each step gives the change only\n"
        "  do: say so before it is made incremental: `circuit.output(name, stream, whole=True)`"
    )


def test_an_output_that_is_refused_is_none() -> None:
    made = streams.Circuit("graph")
    edge = made.input("edge", a=int, b=str)
    with pytest.raises(lftj.Error, match="`whole` cannot be"):
        made.output("edges", edge, whole="yes")  # type: ignore[arg-type]
    assert made.outputs == {}
    made.output("edges", edge, whole=True)
