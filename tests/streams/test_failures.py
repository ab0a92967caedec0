"""A step that fails anywhere leaves the circuit as it was; what others read meanwhile stays as it is.

An error, Ctrl-C or the end of the memory comes at every operator of a step in turn, before or after its work. A circuit
that went through all of that gives what one gives that never failed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, note

import lftj
from lftj import streams
from lftj.errors import DataError, MemoryLimitError, TransactionError
from lftj.streams.graph import Graph
from lftj.streams.operators import Input
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.injected import fails_at
from tests.interrupt import InterruptedCall
from tests.streams import recipes
from tests.streams import reference as plain
from tests.streams.recipes import TooLarge, circuit_of, given_at, some_streams
from tests.streams.reference import Z

TICKS, SIZE = (3, 5) if JIT else (2, 2)


class Injected(Exception):
    """Made by a test."""


ERRORS = (Injected("an operator failed"), KeyboardInterrupt(), MemoryError())


def operators_of(graph: Graph) -> set[type]:
    """The classes of the operators that step, those of nested circuits too."""
    found = {type(node.operator) for node in graph.order() if not isinstance(node.operator, Input)}
    for node in graph.order():
        found |= operators_of(inner) if (inner := getattr(node.operator, "graph", None)) is not None else set()
    return found


def stepped_and_counted(circuit: streams.Circuit, change: Any) -> tuple[dict[str, Z], dict[type, int]]:
    """What a step gives, and how often the operators of each class stepped."""
    with pytest.MonkeyPatch.context() as patch:
        kinds = operators_of(circuit._graph)
        calls = {kind: fails_at(patch, kind, "step", 0, Injected(), after=False) for kind in kinds}
        made = circuit.step(change)
    return {name: dict(out) for name, out in made.items()}, {kind: number for kind, (number,) in calls.items()}


@given(seeds)
@examples(25, 2)
def test_a_failure_at_any_operator_leaves_the_circuit(rng: Random) -> None:
    recipe = recipes.make(rng, size=SIZE, nested=not rng.randrange(3))
    given = some_streams(rng, recipe, TICKS)
    note(f"{recipe}\n{given}")
    try:
        summed = {name: plain.integrated(stream) for name, stream in given.items()}
        recipes.run(recipe, given, TICKS)
        recipes.run(recipe, summed, TICKS)
    except TooLarge:
        assume(False)
    circuit, failures = circuit_of(recipe, rng), 0
    for failing, sound in ((circuit, circuit_of(recipe, rng)), (circuit.incremental(), circuit.incremental())):
        for tick in range(TICKS):
            change = given_at(recipe, given, tick)
            expected, calls = stepped_and_counted(sound, change)
            before = failing._states, failing._ticks
            for kind, count in calls.items():
                for number in {1, count, rng.randrange(count + 1)} - {0} if count else ():
                    error = rng.choice(ERRORS)
                    with pytest.MonkeyPatch.context() as patch:
                        fails_at(patch, kind, "step", number, error, after=rng.choice((True, False)))
                        with pytest.raises(type(error)):
                            failing.step(change)
                    failures += 1
                    assert (failing._states, failing._ticks) == before
            assert {name: dict(out) for name, out in failing.step(change).items()} == expected
    assume(failures)


def counting() -> tuple[streams.Circuit, streams.Circuit]:
    circuit = streams.Circuit(memory_limit=1 << 20)
    bid = circuit.input("bid", item=int, price=int)
    circuit.output("all", bid)
    circuit.output("by", bid.group_by("item").aggregate(n=streams.count(), most=streams.max("price")))
    return circuit, circuit.incremental()


@pytest.mark.jit_only
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", ["step", "run"])
def test_an_interrupted_step_gives_its_values_or_is_not_made(way: str) -> None:
    """After the last calls of a step it was made, and what it gave was lost."""
    circuit = streams.Circuit()
    circuit.output("sum", circuit.input("row", x=int).integrate())
    circuit.step({"row": [(1,)]})  # what comes at a first step alone is over
    place, count, there = 0, 1, True
    while there:
        made = None
        try:
            with InterruptedCall(place) as interrupt:
                if way == "step":
                    made = circuit.step({"row": [(1,)]})
                else:
                    for values in circuit.run({"row": [[(1,)]]}):
                        made = values
        except KeyboardInterrupt:
            pass
        if made is not None:
            count += 1
            assert made["sum"] == {(1,): count}, place
        place, there = place + 1, interrupt.done
    assert count > 1


@pytest.mark.jit_only
def test_the_memory_limit_ends_a_step_and_no_more() -> None:
    for circuit in counting():
        circuit.step({"bid": [(1, 1)]})
        with pytest.raises(MemoryLimitError, match="the limit is 1,048,576"):
            circuit.step({"bid": [(i, i) for i in range(60_000)]})
        made = circuit.step({"bid": [(5, 5)]})["by"]
        assert made == {(5, 1, 5): 1}


def test_bad_rows_end_a_step_and_no_more() -> None:
    _, circuit = counting()
    circuit.step({"bid": [(1, 1)]})
    with pytest.raises(DataError):
        circuit.step({"bid": [(1, 2), (1, "x")]})
    assert circuit.step({"bid": [(1, 3)]})["by"] == {(1, 1, 1): -1, (1, 2, 3): 1}


# Bags -----------------------------------------------------------------------------------------------------------------


@given(seeds)
@examples(40, 3)
def test_bags_are_counters(rng: Random) -> None:
    """Union adds multiplicities, a join multiplies them, a projection keeps them, `distinct` forgets them."""
    left, right = (Counter(dict(bag(rng))) for _ in range(2))
    circuit = streams.Circuit()._sized(2, 2)
    a, b = (circuit.input(name, x=int, y=int) for name in "ab")
    circuit.output("plus", a + b)
    circuit.output("first", a.select("x"))
    circuit.output("joined", a.join(b.rename(y="z"), on="x"))
    circuit.output("set", a.union(b))
    circuit.output("many", a.group_by().aggregate(n=streams.count()))
    projected = Counter[plain.Row]()
    for (x, _), n in left.items():
        projected[(x,)] += n
    product = Counter({(x, y, z): n * m for (x, y), n in left.items() for (other, z), m in right.items() if x == other})
    expected = {
        "plus": dict(left + right),
        "first": dict(projected),
        "joined": dict(product),
        "set": dict.fromkeys([*left, *right], 1),
        "many": {(left.total(),): 1} if left else {},
    }
    for one in (circuit, circuit.incremental()):
        made = one.step({"a": list(left.elements()), "b": list(right.elements())})
        assert {name: dict(out) for name, out in made.items()} == expected


def bag(rng: Random) -> Z:
    return {(rng.randrange(3), rng.randrange(3)): rng.randrange(1, 4) for _ in range(rng.randrange(5))}


# Threads --------------------------------------------------------------------------------------------------------------


def test_outputs_are_read_while_another_thread_steps() -> None:
    """An output, which shares pages with the integral that goes on, is what it was when it was given."""
    circuit = streams.Circuit()._sized(2, 2)
    row = circuit.input("row", x=int, y=int)
    circuit.output("all", row.integrate())
    rounds = 60 if JIT else 6
    rng = Random(1)
    steps = [[(rng.randrange(40), rng.randrange(3)) for _ in range(3)] for _ in range(rounds)]
    given, expected, wrong = list[Any](), list[Counter[Any]](), list[str]()
    total, done = Counter[Any](), threading.Event()

    def reads() -> None:
        while not done.is_set() or given:
            for out, content in list(zip(given, expected, strict=False))[-5:]:
                if dict(out) != dict(content):
                    wrong.append(f"{dict(out)} != {content}")
            if done.is_set():
                return

    readers = [threading.Thread(target=reads) for _ in range(2)]
    for reader in readers:
        reader.start()
    for rows in steps:
        total.update(rows)
        expected.append(Counter(total))
        given.append(circuit.step({"row": rows})["all"])
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert [dict(out) for out in given] == [dict(content) for content in expected]


def test_steps_of_several_threads_come_one_after_the_other() -> None:
    circuit = streams.Circuit()
    circuit.output("n", circuit.input("row", x=int).integrate().group_by().aggregate(n=streams.count()))
    found: list[Any] = []

    def steps() -> None:
        for _ in range(10 if JIT else 2):
            ((row, _),) = circuit.step({"row": [(1,)]})["n"]
            found.append(row[0])

    threads = [threading.Thread(target=steps) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, len(found) + 1))


def test_a_nested_circuit_without_an_end_leaves_the_circuit() -> None:
    circuit = streams.Circuit()
    n = circuit.input("n", x=int)
    with circuit.nested("up", limit=20) as inner:
        x = inner.placeholder("x", x=int)
        more = (inner.enter(n) + x.delay().map(x="x + 1")).distinct()
        inner.connect(x, more.filter("x < 30"))
        circuit.output("o", inner.leave(more))
    for one in (circuit, circuit.incremental()):
        one.step({"n": [(25,)]})
        with pytest.raises(lftj.Error, match="did not come to rest in 20 ticks"):
            one.step({"n": [(1,)]})
        made = one.step({"n": [(26,)]})["o"]
        assert set(made.inserted) == ({(x,) for x in range(26, 31)} if one is circuit else set())


def test_a_step_inside_another_is_refused() -> None:
    """It waited for itself."""
    circuit = streams.Circuit()
    circuit.output("all", circuit.input("row", x=int))

    def rows() -> Iterator[tuple[int]]:
        assert circuit.late == {}
        yield (1,)
        circuit.step({"row": [(2,)]})

    with pytest.raises(TransactionError, match="a step inside another"):
        circuit.step({"row": rows()})
    assert dict(circuit.step({"row": [(3,)]})["all"]) == {(3,): 1}
