"""Consolidation of `distinct` (propositions 4.5 and 4.6): what goes must not be missed, and what may go, goes.

Catches: a `distinct` taken away where weights may be negative, before an output or a total that counts, in a loop that
it brings to rest, or two that are each taken away because of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import assume, given, note

from lftj import streams
from lftj.streams.distinct import Distinct
from lftj.streams.fewer_distincts import consolidated
from lftj.streams.graph import Graph
from lftj.streams.stream import Stream
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.engine.test_one_by_one import calls_of
from tests.streams import recipes
from tests.streams import reference as plain
from tests.streams.recipes import TooLarge, ab, circuit_of, some_streams, stepped
from tests.streams.test_laws import one_input, outputs, two_inputs

TICKS, SIZE = (4, 10) if JIT else (2, 3)


def positive(rng: Random) -> plain.Stream:
    """Z-sets without negative weights."""
    return [{row: abs(w) for row, w in recipes.some_changes(rng, "number").items()} for _ in range(TICKS)]


Write = Callable[[Stream, Stream], Stream]
# The operators of both propositions, then those of 4.6 alone.
KEEP_ROWS: tuple[Write, ...] = (
    lambda i, j: i.filter("a > 0"),
    lambda i, j: i.join(j, on=["a", "b"]),
    lambda i, j: i.join(j.rename(a="c", b="d"), on=[]),
)
MERGE_ROWS: tuple[Write, ...] = (
    lambda i, j: i.select("a"),
    lambda i, j: i.map(a="a band 1", b="b"),
    lambda i, j: i + j,
    lambda i, j: i.join(j.rename(b="c"), on="a").select("c"),
)


@given(seeds)
@examples(40, 4)
def test_4_5_distinct_may_be_delayed(rng: Random) -> None:
    """Q(distinct(i)) = distinct(Q(i)) for a positive i, Q of filters, joins and products."""
    write = rng.choice(KEEP_ROWS)
    i, j = positive(rng), positive(rng)
    early = two_inputs(lambda i, j: write(i.distinct(), j.distinct()))
    assert outputs(early, i, j) == outputs(two_inputs(lambda i, j: write(i, j).distinct()), i, j)


@given(seeds)
@examples(40, 4)
def test_4_6_an_inner_distinct_is_covered(rng: Random) -> None:
    """distinct(Q(distinct(i))) = distinct(Q(i)) for a positive i."""
    write = rng.choice(KEEP_ROWS + MERGE_ROWS)
    i, j = positive(rng), positive(rng)
    both = two_inputs(lambda i, j: write(i.distinct(), j.distinct()).distinct())
    assert outputs(both, i, j) == outputs(two_inputs(lambda i, j: write(i, j).distinct()), i, j)


@given(seeds)
@examples(150, 6)
def test_a_consolidated_circuit_is_the_same_function(rng: Random) -> None:
    """Of whole values, positive or not, and of changes."""
    recipe = recipes.make(rng, size=SIZE, nested=not rng.randrange(3), sets=True)
    given = some_streams(rng, recipe, TICKS)
    note(f"{recipe}\n{given}")
    try:
        expected = recipes.run(recipe, given, TICKS)
        summed = {name: plain.integrated(stream) for name, stream in given.items()}
        changes = [plain.differentiated(stream) for stream in recipes.run(recipe, summed, TICKS)]
    except TooLarge:
        assume(False)
    circuit = circuit_of(recipe, rng)
    incremental = circuit.incremental()
    circuit._graph = consolidated(circuit._graph)
    assert stepped(circuit, recipe, given, TICKS) == expected
    assert stepped(incremental, recipe, given, TICKS) == changes


def left(graph: Graph) -> list[str]:
    """What `distinct` is over, and why, for each that is left."""
    nodes = [node for node in graph.order() if isinstance(node.operator, Distinct)]
    return [f"{node.inputs[0].operator.label} {node.why}".strip() for node in nodes]


def loop(s: Stream, circuit: streams.Circuit) -> Stream:
    back = circuit.placeholder("back", a=int, b=int)
    made = (s.distinct() + back.delay()).distinct()
    circuit.connect(back, made)
    return made


GOES: dict[str, tuple[Write, list[str]]] = {
    "a filter goes first": (lambda i, j: i.distinct().filter("a > 1"), ["σ a > 1 consolidation (4.5)"]),
    "twice is once": (lambda i, j: i.distinct().distinct(), ["input i0"]),
    "with a filter between, too": (
        lambda i, j: i.distinct().filter("a > 1").distinct(),
        ["σ a > 1 consolidation (4.5)"],
    ),
    "a union under a projection": (
        lambda i, j: i.distinct().union(j.distinct()).select("a").distinct(),
        ["input i0", "input i1", "π consolidation (4.6)"],
    ),
    "unions of unions": (
        lambda i, j: i.distinct().union(j.distinct()).union(i.distinct().union(j.distinct())),
        [*["input i0", "input i1"] * 2, "+ consolidation (4.6)"],
    ),
    "a union that is joined": (
        lambda i, j: ab(i.distinct().union(j.distinct()).join(j.distinct().rename(b="c"), on="a"), "c").distinct(),
        ["input i0", "input i1", "input i1", "map a = a, b = c consolidation (4.6)"],
    ),
    "a join of sets is a set": (
        lambda i, j: i.distinct().join(j.distinct().rename(b="c"), on="a").distinct(),
        ["input i0", "input i1"],
    ),
    "a group is a set": (lambda i, j: i.group_by("a").aggregate(n=streams.count()).distinct(), []),
}


@pytest.mark.parametrize("name", GOES)
def test_what_may_go_goes(name: str) -> None:
    write, expected = GOES[name]
    assert sorted(left(consolidated(two_inputs(write)._graph))) == sorted(expected)


STAYS: dict[str, Write] = {
    "an input may have any weights": lambda i, j: (i.distinct() + j.distinct()).distinct(),
    "a difference may be negative": lambda i, j: (i.distinct() - j.distinct()).distinct().select("a").distinct(),
    "an output has weights": lambda i, j: i.distinct().select("a"),
    "a count counts": lambda i, j: i.distinct().union(j.distinct()).group_by("a").aggregate(n=streams.count()),
    "a sum of a set and a bag": lambda i, j: (i.distinct().select("a").distinct() + j.select("a")).distinct(),
    "a projection that is joined": lambda i, j: ab(
        j.distinct().join(ab(i.distinct().select("a", "b"), "a", "a").distinct().rename(b="c"), on="a"), "c"
    ).distinct(),
    "a filter without a value for some row": lambda i, j: i.distinct().filter("1 / a = 1"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_must_stay_stays(name: str) -> None:
    graph = two_inputs(STAYS[name])._graph
    assert left(consolidated(graph)) == left(graph)


def test_a_loop_comes_to_rest() -> None:
    circuit = streams.Circuit()
    circuit.output("o0", loop(circuit.input("i0", a=int, b=int), circuit))
    s: plain.Stream = [{(1, 1): 1}, {(1, 1): 2, (2, 2): -1}, {}]
    assert outputs(circuit.incremental(), s) == [{(1, 1): 1}, {}, {}]
    assert [str(node.why) for node in circuit._graph.nodes] == [""] * len(circuit._graph.nodes)


def test_the_rewritten_circuit_says_why() -> None:
    circuit = one_input(lambda i: i.distinct().filter("a > 1"))
    assert "distinct (4.7), consolidation (4.5)" in {node.why for node in circuit.incremental()._graph.nodes}


def chain(length: int) -> Graph:
    circuit = streams.Circuit()
    s = circuit.input("i0", a=int, b=int)
    for i in range(length):
        s = s.distinct().filter(f"a != {i}")
    circuit.output("o0", s)
    return circuit._graph


def test_a_chain_of_sets_and_filters_takes_as_many_calls_for_each() -> None:
    """Every `distinct` of the chain went down by itself, past all filters after it, and each time from anew."""
    assert left(consolidated(chain(20))) == ["σ a != 19 consolidation (4.5)"]
    few, many = (calls_of(partial(consolidated, chain(n))) for n in (10, 40))
    assert many <= 4 * few


def recursion(heads: int) -> streams.Circuit:
    rules = [f"p{i}(x, y) :- e(x, y).  p{i}(x, z) :- p{(i + 1) % heads}(x, y), e(y, z)." for i in range(heads)]
    return streams.circuit_of(f".decl e(a:number, b:number)  {'  '.join(rules)}")


def test_all_that_leaves_a_nested_circuit_takes_as_many_calls_for_each() -> None:
    """What is known of the streams within was found anew for each that leaves."""
    few, many = (calls_of(partial(consolidated, recursion(n)._graph)) for n in (5, 20))
    assert many <= 5 * few


def loops(length: int) -> Graph:
    circuit = streams.Circuit()
    s = circuit.input("i0", a=int, b=int)
    for i in range(length):
        back = circuit.placeholder(f"back {i}", a=int, b=int)
        circuit.connect(back, s + back.delay())
        s = back
    circuit.output("o0", s.distinct())
    return circuit._graph


def test_a_chain_of_loops_takes_as_many_calls_for_each() -> None:
    """What was known of one was found anew for all with each that comes before it: a loop is made before what it is."""
    few, many = (calls_of(partial(consolidated, loops(n))) for n in (10, 40))
    assert many <= 5 * few
