"""The propositions of the paper (DBSP), each as a law over random Z-sets, streams or circuits.

Catches: a rewriting that is right for one operator and wrong for what is around it, an integral that is kept in another
order than somebody seeks in, a nested circuit that is given the values of another input, a page that splits wrongly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import numpy as np
from hypothesis import assume, given, note
from hypothesis import strategies as st

from lftj import streams
from lftj.streams.distinct import Distinct
from lftj.streams.idle import passes_on
from lftj.streams.incremental import within
from lftj.streams.join import Join
from lftj.streams.nested import Nested
from lftj.streams.operators import Tick
from lftj.streams.timed import TimedChange, TimedJoin
from lftj.streams.totals import Total, Totals
from lftj.streams.zsets import ZSet
from lftj.values.schema import Column
from tests.conftest import JIT, examples
from tests.engine.programs import seeds
from tests.streams import recipes
from tests.streams import reference as plain
from tests.streams.recipes import PATH, TooLarge, ab, circuit_of, some_streams, stepped, weighted
from tests.streams.reference import Z

TICKS = 4 if JIT else 2
SIZE = 8 if JIT else 3

rows = st.tuples(st.integers(0, 2), st.integers(0, 2))
zsets = st.dictionaries(rows, st.integers(-3, 3).filter(bool), max_size=5)
some = examples(60, 5)


# Z-sets (4.1) -------------------------------------------------------------------------------------------------------


def z(plain_zset: Z) -> streams.WeightedRows:
    return weighted(plain_zset, "number")


@given(zsets, zsets, zsets)
@some
def test_4_1_z_sets_are_a_commutative_group(a: Z, b: Z, c: Z) -> None:
    assert z(a) + z(b) == plain.add(a, b)
    assert z(a) + z(b) == z(b) + z(a)
    assert (z(a) + z(b)) + z(c) == z(a) + (z(b) + z(c))
    assert z(a) + z({}) == z(a) == -(negated := -z(a))
    assert negated == plain.negated(a)
    assert z(a) - z(a) == {}
    assert not z(a) - z(a)
    assert z(a) - z(b) == plain.minus(a, b)


@given(zsets)
@some
def test_4_1_distinct_makes_the_set_of_the_positive_rows(a: Z) -> None:
    assert z(a).distinct() == plain.distinct(a)
    assert z(a).distinct().distinct() == z(a).distinct()
    assert z(a).distinct().is_set()
    assert z(a).distinct().is_positive()
    assert (z(a).is_set(), z(a).is_positive()) == (plain.is_set(a), plain.is_positive(a))
    assert not z(a).is_set() or z(a).distinct() == z(a)
    assert set(z(a).inserted) == {row for row, weight in a.items() if weight > 0}
    assert set(z(a).erased) == {row for row, weight in a.items() if weight < 0}


@given(st.lists(st.tuples(rows, st.integers(-3, 3)), max_size=8))
@some
def test_4_1_weights_of_rows_given_several_times_add_up(pairs: list[tuple[plain.Row, int]]) -> None:
    given = streams.zset([row for row, _ in pairs], [w for _, w in pairs], columns={"a": int, "b": int})
    assert given == plain.made(pairs)
    assert dict(zip(given.rows, given.weights.tolist(), strict=True)) == plain.made(pairs)


# Operators (2, 3) ---------------------------------------------------------------------------------------------------


def one_input(write: object, kind: str = "number") -> streams.Circuit:
    """The circuit of a function of one stream."""
    circuit = streams.Circuit()._sized(2, 2)
    circuit.output("o0", write(circuit.input("i0", a=int, b=kind)))  # type: ignore[operator]
    return circuit


def outputs(circuit: streams.Circuit, *inputs: plain.Stream) -> plain.Stream:
    """The stream of the only output; all streams are of two numbers."""
    named = {f"i{i}": stream for i, stream in enumerate(inputs)}
    return [
        dict(circuit.step({name: z(stream[tick]) for name, stream in named.items()})["o0"])
        for tick in range(len(inputs[0]))
    ]


@st.composite
def plain_streams(draw: st.DrawFn, count: int = 1) -> list[plain.Stream]:
    ticks = draw(st.integers(1, TICKS))
    return [draw(st.lists(zsets, min_size=ticks, max_size=ticks)) for _ in range(count)]


@given(plain_streams())
@some
def test_2_22_integration_and_differentiation_are_inverse(given: list[plain.Stream]) -> None:
    (s,) = given
    assert plain.integrated(plain.differentiated(s)) == s == plain.differentiated(plain.integrated(s))
    assert outputs(one_input(lambda x: x.integrate()), s) == plain.integrated(s)
    assert outputs(one_input(lambda x: x.differentiate()), s) == plain.differentiated(s)
    assert outputs(one_input(lambda x: x.integrate().differentiate()), s) == s
    assert outputs(one_input(lambda x: x.differentiate().integrate()), s) == s


@given(plain_streams())
@some
def test_3_2_delay_integration_and_differentiation_are_their_own_incremental_version(given: list[plain.Stream]) -> None:
    for write in (lambda x: x.delay(), lambda x: x.integrate(), lambda x: x.differentiate()):
        assert outputs(one_input(write), *given) == outputs(one_input(write).incremental(), *given)


@given(seeds)
@some
def test_3_2_chain(rng: Random) -> None:
    """The incremental version of one circuit after another is that of both together."""
    (_, kind, _, first), (_, last, _, second) = recipes.unary(rng, "number"), recipes.unary(rng, "number")
    assume(kind == "number" and last == "number")
    s = [recipes.some_changes(rng, "number") for _ in range(TICKS)]
    both = one_input(lambda x: second(first(x))).incremental()
    assert outputs(both, s) == outputs(one_input(second).incremental(), outputs(one_input(first).incremental(), s))


@given(seeds)
@some
def test_3_2_add(rng: Random) -> None:
    """The incremental version of a sum is the sum of the incremental versions."""
    (_, kind, _, first), (_, other, _, second) = recipes.unary(rng, "number"), recipes.unary(rng, "number")
    assume(kind == "number" and other == "number")
    s = [recipes.some_changes(rng, "number") for _ in range(TICKS)]
    sums = outputs(one_input(lambda x: first(x) + second(x)).incremental(), s)
    parts = (outputs(one_input(f).incremental(), s) for f in (first, second))
    assert sums == plain.plus(*parts)


@given(seeds)
@some
def test_3_2_cycle(rng: Random) -> None:
    """What `s = Q(i + z^-1 s)` changes by is the cycle of the changes; here Q makes a set of what it gives."""
    (_, kind, means, writes) = recipes.unary(rng, "number")
    assume(kind == "number")
    s = [recipes.some_changes(rng, "number") for _ in range(TICKS)]

    def cyclic(x: streams.Stream) -> streams.Stream:
        back = circuit.placeholder("back", a=int, b=int)
        made = writes(x + back.delay()).distinct()
        circuit.connect(back, made)
        return made

    def cyclic_plain(s: plain.Stream) -> plain.Stream:
        found: plain.Stream = []
        for value in s:
            found.append(plain.distinct(means(plain.add(value, found[-1]) if found else value)))
        return found

    circuit = streams.Circuit()
    circuit.output("o0", cyclic(circuit.input("i0", a=int, b=int)))
    assert outputs(circuit.incremental(), s) == plain.incremental(cyclic_plain)(s)
    assert outputs(circuit, s) == cyclic_plain(s)


LINEAR = (
    lambda x: x.filter("a > 0"),
    lambda x: x.map(a="b", b="a + b"),
    lambda x: ab(x, "a"),
    lambda x: -x,
    lambda x: x + x,
    lambda x: x - x.filter("a != b"),
)


@given(plain_streams(), st.sampled_from(LINEAR))
@some
def test_3_3_a_linear_operator_is_its_own_incremental_version(given: list[plain.Stream], write: object) -> None:
    assert outputs(one_input(write), *given) == outputs(one_input(write).incremental(), *given)


def joined(s: streams.Stream, t: streams.Stream) -> streams.Stream:
    return ab(s.join(t.rename(a="b", b="c"), on="b"), "c")


def path(one: Z, two: Z) -> Z:
    return plain.mapped(plain.join(one, two, PATH), lambda row: (row[0], row[2]))


def two_inputs(write: object) -> streams.Circuit:
    circuit = streams.Circuit()._sized(2, 2)
    a, b = (circuit.input(f"i{i}", a=int, b=int) for i in range(2))
    circuit.output("o0", write(a, b))  # type: ignore[operator]
    return circuit


@given(plain_streams(2))
@some
def test_3_4_a_bilinear_operator(given: list[plain.Stream]) -> None:
    """a x b + z^-1 I(a) x b + a x z^-1 I(b), written down as a circuit: joins of integrals in an order of their own."""
    by_hand = two_inputs(
        lambda a, b: joined(a, b) + joined(a.integrate().delay(), b) + joined(a, b.integrate().delay())
    )
    expected = plain.incremental(plain.lifted(path))(*given)
    assert outputs(by_hand, *given) == expected
    assert outputs(two_inputs(joined).incremental(), *given) == expected


@given(plain_streams())
@some
def test_4_7_distinct(given: list[plain.Stream]) -> None:
    expected = plain.incremental(plain.lifted(plain.distinct))(*given)
    assert outputs(one_input(lambda x: x.distinct()).incremental(), *given) == expected
    assert outputs(one_input(lambda x: x.integrate().distinct().differentiate()), *given) == expected


# Algorithm 4.8 ------------------------------------------------------------------------------------------------------


def check(recipe: recipes.Recipe, rng: Random) -> None:
    """The circuit is its meaning at every tick, its incremental version the changes of that."""
    given = some_streams(rng, recipe, TICKS)
    note(f"{recipe}\n{given}")
    summed = {name: plain.integrated(stream) for name, stream in given.items()}
    try:
        expected = recipes.run(recipe, given, TICKS)
        changes = [plain.differentiated(stream) for stream in recipes.run(recipe, summed, TICKS)]
    except TooLarge:
        assume(False)
    circuit = circuit_of(recipe, rng)
    incremental = circuit.incremental()
    assert stepped(circuit, recipe, given, TICKS) == expected
    assert stepped(incremental, recipe, given, TICKS) == changes


@given(seeds)
@examples(75, 6)
def test_4_8_algorithm_on_random_circuits(rng: Random) -> None:
    check(recipes.make(rng, size=SIZE), rng)


@given(seeds)
@examples(50, 4)
def test_6_nested_circuits_in_random_surroundings(rng: Random) -> None:
    """Recursion, several streams in and out, between random operators: incremental over both clocks (6.1, 6.2)."""
    check(recipes.make(rng, size=SIZE // 2, nested=1), rng)


@given(seeds, st.integers(2, 3))
@examples(50, 4)
def test_6_circuits_nested_in_one_another(rng: Random, depth: int) -> None:
    """Recursion in the loops of recursion and beside them: incremental over three clocks, and over four."""
    check(recipes.make(rng, size=2 if depth == 3 else SIZE // 2, nested=depth), rng)


@given(seeds, st.booleans())
@examples(30, 3)
def test_steps_may_be_split_and_merged(rng: Random, nested: bool) -> None:
    """Changes in one step or in many, in any order: the outputs sum up to the same."""
    recipe = recipes.make(rng, size=SIZE, time=False, nested=nested)
    given = some_streams(rng, recipe, TICKS)
    note(f"{recipe}\n{given}")
    merged = {name: [plain.add(*stream)] for name, stream in given.items()}
    apart = {
        name: [z_ for value in stream for z_ in ({row: w} for row, w in value.items())]
        for name, stream in given.items()
    }
    longest = max(map(len, apart.values()), default=0)
    for stream in apart.values():
        rng.shuffle(stream)
        stream += [{}] * (longest - len(stream))
    try:
        expected = [value for (value,) in recipes.run(recipe, merged, 1)]
        for tick in range(longest):
            partial = {name: [plain.add(*stream[: tick + 1])] for name, stream in apart.items()}
            recipes.run(recipe, partial, 1)
    except TooLarge:
        assume(False)
    circuit = circuit_of(recipe, rng)
    for changes, ticks in ((merged, 1), (given, TICKS), (apart, longest)):
        made = stepped(circuit.incremental(), recipe, changes, ticks)
        assert [plain.add(*stream) for stream in made] == expected


@given(seeds, st.booleans())
@examples(80, 4)
def test_a_circuit_that_passes_on_does_nothing_without_changes(rng: Random, time: bool) -> None:
    """Ticks at which nothing changes may be left out, if idle.py says so."""
    recipe = recipes.make(rng, size=SIZE // 2, time=time, nested=int(not rng.randrange(3)))
    made = circuit_of(recipe, rng).incremental()
    assume(passes_on(made._graph))
    given = some_streams(rng, recipe, TICKS)
    note(f"{recipe}\n{given}")
    try:
        recipes.run(recipe, {name: plain.integrated(stream) for name, stream in given.items()}, TICKS)
    except TooLarge:
        assume(False)
    beside = circuit_of(recipe, rng).incremental()
    for tick in range(TICKS):
        now = recipes.given_at(recipe, given, tick)
        assert {name: dict(out) for name, out in made.step(now).items()} == {
            name: dict(out) for name, out in beside.step(now).items()
        }
        for _ in range(rng.randrange(3)):
            assert not any(made.step().values())


def test_which_circuits_pass_on() -> None:
    def passing(write: Callable[[streams.Stream], streams.Stream]) -> bool:
        return passes_on(one_input(write).incremental()._graph)

    assert passing(lambda x: x.group_by("a").aggregate(n=streams.count()).rename(n="b"))
    assert passing(lambda x: joined(x, x).distinct())
    assert passing(lambda x: x.watermark("a", 3).range_window("a", 10).group_by("b").top(1, "a"))
    assert passing(lambda x: x.integrate().differentiate())
    assert not passing(lambda x: x.delay())
    assert not passing(lambda x: x.integrate())
    assert not passing(lambda x: joined(x, x.integrate().delay().delay()))
    assert not passing(lambda x: x.differentiate())


# Recursion (5, 6) ---------------------------------------------------------------------------------------------------


@given(seeds)
@examples(60, 3)
def test_5_naive_and_semi_naive_agree(rng: Random) -> None:
    """A nested circuit and the same one run by its own changes (5.1)."""
    recipe = recipes.make(rng, size=SIZE // 2, nested=rng.choice((1, 1, 2)))
    given = some_streams(rng, recipe, TICKS)
    note(f"{recipe}\n{given}")
    try:
        expected = recipes.run(recipe, given, TICKS)
    except TooLarge:
        assume(False)
    circuit = circuit_of(recipe, rng)
    for node in circuit._graph.nodes:
        if isinstance(node.operator, Nested):
            node.operator = Nested(within(node.operator.graph, 1), node.operator.name, node.operator.limit)
    assert stepped(circuit, recipe, given, TICKS) == expected


def closure(edges: Z) -> Z:
    found = dict.fromkeys((row for row, weight in edges.items() if weight > 0), 1)
    while True:
        more = plain.distinct(plain.add(found, path(found, found)))
        if more == found:
            return found
        found = more


def reach(circuit: streams.Circuit, edge: streams.Stream, *, linear: bool) -> streams.Stream:
    with circuit.nested("reach") as inner:
        e = inner.enter(edge)
        r = inner.placeholder("r", a=int, b=int)
        made = (e + joined(r.delay(), e if linear else r.delay())).distinct()
        inner.connect(r, made)
        return inner.leave(made)


@given(seeds, st.booleans())
@examples(60, 3)
def test_6_1_closure_under_inserts_and_erases(rng: Random, linear: bool) -> None:
    """Edges come and go, cycles too; what is derived through one that was taken away goes."""
    circuit = streams.Circuit()._sized(2, 2)
    circuit.output("o0", reach(circuit, circuit.input("i0", a=int, b=int), linear=linear))
    changes, edges = [], dict[plain.Row, int]()
    for _ in range(TICKS + 2):
        flipped = {(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randrange(4))}
        changes.append({edge: -1 if edge in edges else 1 for edge in flipped})
        edges = plain.add(edges, changes[-1])
    expected = plain.lifted(closure)(plain.integrated(changes))
    assert outputs(circuit, plain.integrated(changes)) == expected
    assert outputs(circuit.incremental(), changes) == plain.differentiated(expected)


# Columns are whatever an operator of two numbers has; a code is its number.
OF_SEVERAL_CLOCKS: dict[str, tuple[Any, Callable[..., Z]]] = {
    "distinct": (lambda inner: TimedChange(Distinct(2), 2, "distinct", inner), plain.distinct),
    "count": (
        lambda inner: TimedChange(
            Totals((0,), (Column("a", "number"),), (Total("n", "count", -1, "", -1),)), 2, "count", inner
        ),
        lambda z: plain.aggregated(z, (0,), [("count", 1)]),
    ),
    "join": (lambda inner: TimedJoin(Join(((1,), (0,)), ((0, 0), (1, 1)), (2, 2)), inner), path),
}


@given(seeds, st.sampled_from(sorted(OF_SEVERAL_CLOCKS)), st.integers(1, 3))
@examples(120, 8)
def test_6_2_an_operator_over_several_clocks(rng: Random, name: str, inner: int) -> None:
    """D . f . I on each clock, of changes that come at ticks far apart: what several ticks reach together, too."""
    (make, means), steps, side = OF_SEVERAL_CLOCKS[name], 3, 3 if JIT else 2
    count = 2 if name == "join" else 1
    domain = [(0, 0), (0, 1), (1, 0)] if name == "join" else [(0, 0), (0, 1)]
    times = list(product(range(side), repeat=inner))
    came: dict[tuple[int, ...], list[Z]] = {}
    for time in ((step, *ticks) for step in range(steps) for ticks in rng.sample(times, min(2, len(times)))):
        came[time] = [plain.made([(rng.choice(domain), rng.choice((1, 1, 2, -1)))]) for _ in range(count)]
    note(f"{name} over {inner} inner clocks: {came}")

    def upto(corner: tuple[int, ...]) -> Z:
        past = [zs for time, zs in came.items() if all(map(operator.le, time, corner))]
        return means(*(plain.add(*(zs[i] for zs in past)) for i in range(count)))

    def zset(rows: Z) -> ZSet:
        return ZSet(np.array(list(rows), np.int64).reshape(-1, 2).T.copy(), np.array(list(rows.values()), np.int64))

    room = streams.Circuit()._sized(2, 2)._room
    timed, made = make(inner), dict[tuple[int, ...], Z]()
    state = timed.start(room)
    for step in range(steps):
        for ticks in times:
            given_now = [zset(rows) for rows in came.get((step, *ticks), [{}] * count)]
            value, state = timed.step(state, given_now, Tick((step, *ticks), room))
            value = value.normal()
            made[step, *ticks] = dict(zip(map(tuple, value.rows.T.tolist()), value.weights.tolist(), strict=True))
        assert not timed.waiting(state, ())
        state = timed.lasting(state, room, over=True)
    for time, value in made.items():
        corners = product((0, 1), repeat=inner + 1)
        signs = [(upto(tuple(map(operator.sub, time, back))), sum(back) % 2) for back in corners]
        assert value == plain.add(*(plain.negated(z_) if odd else z_ for z_, odd in signs)), time


def test_6_1_a_loop_in_a_loop() -> None:
    """A loop in a loop: for each set of nodes that is blocked, in rounds, what is reached without it.

    Each round blocks the least node that was reached and is not blocked, so that rounds depend on the ones before.
    """
    circuit = streams.Circuit()._sized(2, 2)
    edge = circuit.input("i0", a=int, b=int)
    with circuit.nested("rounds") as outer:
        edges, blocked = outer.enter(edge), outer.placeholder("blocked", b=int)
        with outer.nested("reach") as inner:
            there = inner.enter(edges.antijoin(blocked.delay(), on="b").antijoin(blocked.delay(), on={"a": "b"}))
            r = inner.placeholder("r", a=int, b=int)
            made = (there + joined(r.delay(), there)).distinct()
            inner.connect(r, made)
            reached = inner.leave(made)
        least = reached.filter("a < b").group_by().aggregate(b=streams.min("b"))
        outer.connect(blocked, (blocked.delay() + least).distinct())
        out = outer.leave(blocked).map(a="b", b="b")
    circuit.output("o0", out)

    def rounds(edges: Z) -> Z:
        held: set[int] = set()
        while True:
            left = {row: w for row, w in edges.items() if not held & set(row)}
            further = [b for a, b in closure(left) if a < b]
            if not further:
                return {(node, node): 1 for node in held}
            held.add(min(further))

    rng, changes, edges = Random(3), [], dict[plain.Row, int]()
    for _ in range(8 * TICKS if JIT else TICKS):
        flipped = {(rng.randrange(6), rng.randrange(6)) for _ in range(rng.randrange(1, 5))}
        changes.append({edge: -1 if edge in edges else 1 for edge in flipped})
        edges = plain.add(edges, changes[-1])
    expected = plain.lifted(rounds)(plain.integrated(changes))
    assert sum(map(len, expected)) > len(changes) or not JIT
    assert outputs(circuit, plain.integrated(changes)) == expected
    assert outputs(circuit.incremental(), changes) == plain.differentiated(expected)


@given(plain_streams())
@examples(20, 2)
def test_5_2_the_definite_integral_of_delta0_is_the_stream(given: list[plain.Stream]) -> None:
    circuit = streams.Circuit()
    with circuit.nested() as inner:
        out = inner.definite_integral(inner.delta0(circuit.input("i0", a=int, b=int)))
    circuit.output("o0", out)
    assert outputs(circuit, *given) == given[0]
    assert outputs(circuit.incremental(), *given) == given[0]
