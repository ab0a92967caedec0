"""Random circuits, as recipes: each step says what it means (reference.py) and how a user writes it down.

All streams have the columns `a`, a number, and `b`, of the kind of the step. Steps act tick by tick but for the delay,
I, D and the loops, which look at the history; a nested circuit is a recipe of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lftj import streams
from tests.streams import reference as plain
from tests.streams.reference import Z

KINDS = ("number", "number", "float", "symbol")
DATA: dict[str, tuple[Any, ...]] = {"number": (0, 1, 2), "float": (0.5, -1.5, 2.0), "symbol": ("a", "", "é")}
# Ticks after which the nested circuits here have come to rest.
INNER = 14


@dataclass
class Step:
    """One stream. `inputs`: the steps it reads · `means` the value of a tick, `writes` the stream of the library."""

    name: str
    inputs: tuple[int, ...]
    kind: str
    means: Callable[..., Z] = dict
    writes: Callable[..., Any] = lambda: None
    inner: Recipe | None = None


@dataclass
class Recipe:
    """Steps, each after those it reads but for loops; `loops`: step -> the step it comes back from, `outputs`: steps.

    Of a nested recipe the first steps are what comes in, one for each step outside of `entered`.
    """

    steps: list[Step] = field(default_factory=list)
    loops: dict[int, int] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = []
        for i, step in enumerate(self.steps):
            back = f" <- s{self.loops[i]}" if i in self.loops else ""
            lines.append(f"s{i}:{step.kind} = {step.name}({', '.join(f's{j}' for j in step.inputs)}){back}")
            if step.inner is not None:
                lines += [f"    {line}" for line in repr(step.inner).splitlines()]
        return "\n".join([*lines, f"outputs {self.outputs}"])

    @property
    def inputs(self) -> dict[str, str]:
        return {f"i{i}": step.kind for i, step in enumerate(self.steps) if step.name == "input"}


# What a recipe means ----------------------------------------------------------------------------------------------


class TooLarge(Exception):
    """Weights of a case went where sums of them may be beyond int64."""


def run(recipe: Recipe, given: dict[str, list[Z]], ticks: int, entered: tuple[Z, ...] = ()) -> list[list[Z]]:
    """The streams of the outputs."""
    history: list[list[Z]] = [[] for _ in recipe.steps]
    for tick in range(ticks):
        for i, step in enumerate(recipe.steps):
            values = [history[j][tick] for j in step.inputs]
            history[i].append(value_of(recipe, i, step, values, history, given, entered))
            if not plain.is_small(history[i][-1]):
                raise TooLarge
    return [history[i] for i in recipe.outputs]


def value_of(
    recipe: Recipe, i: int, step: Step, values: list[Z], history: Any, given: Any, entered: tuple[Z, ...]
) -> Z:
    tick = len(history[i])
    if step.name == "input":
        return given[f"i{i}"][tick]
    if step.name == "enter":
        return entered[i]
    if step.name == "delta0":
        return entered[i] if tick == 0 else {}
    if step.name == "loop":
        return history[recipe.loops[i]][tick - 1] if tick else {}
    if step.name == "delay":
        return history[step.inputs[0]][tick - 1] if tick else {}
    if step.name == "I":
        return plain.add(*history[step.inputs[0]])
    if step.name == "D":
        return plain.minus(values[0], history[step.inputs[0]][tick - 1] if tick else {})
    if step.inner is not None:
        settled = [stream[-2:] for stream in run(step.inner, {}, INNER, tuple(values))]
        assert all(last == before for before, last in settled), "a nested circuit needs more ticks"
        return settled[int(step.name.removeprefix("leave "))][-1]
    return step.means(*values)


# How it is written down -------------------------------------------------------------------------------------------


def write(recipe: Recipe, circuit: Any, entered: tuple[Any, ...] = ()) -> list[Any]:
    """The streams of the outputs, in a circuit or a nested one."""
    made: list[Any] = []
    placeholders: dict[int, Any] = {}
    nested: dict[int, list[Any]] = {}
    for i, step in enumerate(recipe.steps):
        reads = [made[j] for j in step.inputs]
        if step.name == "input":
            made.append(circuit.input(f"i{i}", a=int, b=step.kind))
        elif step.name == "enter":
            made.append(circuit.enter(entered[i]))
        elif step.name == "delta0":
            made.append(circuit.delta0(entered[i]))
        elif step.name == "loop":
            placeholders[i] = circuit.placeholder(f"p{i}", a=int, b=step.kind)
            made.append(placeholders[i].delay())
        elif step.inner is not None:
            if id(step.inner) not in nested:
                with circuit.nested(f"n{i}") as inner:
                    nested[id(step.inner)] = [inner.leave(s) for s in write(step.inner, inner, tuple(reads))]
            made.append(nested[id(step.inner)][int(step.name.removeprefix("leave "))])
        else:
            method = {"delay": "delay", "I": "integrate", "D": "differentiate"}.get(step.name)
            made.append(getattr(reads[0], method)() if method else step.writes(*reads))
    for i, target in recipe.loops.items():
        circuit.connect(placeholders[i], made[target])
    return [made[i] for i in recipe.outputs]


def circuit_of(recipe: Recipe, rng: Random) -> streams.Circuit:
    """The circuit, with outputs o0, o1, ..."""
    circuit = streams.Circuit()._sized(*rng.choice(((2, 2), (4, 2), (256, 64))))
    for i, stream in enumerate(write(recipe, circuit)):
        circuit.output(f"o{i}", stream)
    return circuit


# Steps of one tick ------------------------------------------------------------------------------------------------


def ab(stream: Any, second: str, first: str = "a") -> Any:
    """Two columns, under the names that all have."""
    return stream.select(*dict.fromkeys((first, second))).map(a=first, b=second)


def unary(rng: Random, kind: str) -> tuple[str, str, Callable[[Z], Z], Callable[[Any], Any]]:
    """(name, kind of the result, what it means, how it is written)."""
    number = rng.choice(DATA["number"])
    numbers = kind == "number"
    filters: list[Any] = [
        (f"a > {number}", lambda row: row[0] > number),
        (f"a != {number}, a < 3", lambda row: row[0] != number and row[0] < 3),
    ]
    maps: list[Any] = [
        ("a + 1, b", kind, lambda row: (row[0] + 1, row[1]), lambda s: s.map(a="a + 1", b="b")),
        ("a, 7", "number", lambda row: (row[0], 7), lambda s: s.map("a", b="7")),
        ("1, b", kind, lambda row: (1, row[1]), lambda s: s.map(a="1", b="b")),
        ("a, itof", "float", lambda row: (row[0], row[0] / 2), lambda s: s.map("a", b="itof(a) / 2.0")),
        ("a, text", "symbol", lambda row: (row[0], f"{row[0]}x"), lambda s: s.map("a", b='cat(to_string(a), "x")')),
    ]
    if numbers:
        filters.append(("b >= a", lambda row: row[1] >= row[0]))
        maps.append(
            ("b, a", kind, lambda row: row[::-1], lambda s: s.select("b", "a").rename(b="a", a="b")),
        )
    if kind == "symbol":
        filters.append(('contains("a", b)', lambda row: "a" in row[1]))
    choice = rng.choice(
        ("filter", "filter", "map", "map", "neg", "distinct", "distinct", "group", "top", "first", "lag")
    )
    if choice == "filter":
        text, condition = rng.choice(filters)
        return f"filter {text}", kind, lambda z: plain.kept(z, condition), lambda s: s.filter(text)
    if choice == "map":
        text, result, function, writes = rng.choice(maps)
        return f"map {text}", result, lambda z: plain.mapped(z, function), writes
    if choice == "neg":
        return "-", kind, plain.negated, lambda s: -s
    if choice == "distinct":
        return "distinct", kind, plain.distinct, lambda s: s.distinct()
    return {"group": group, "top": ranked, "first": first, "lag": lagged}[choice](rng, kind)


def group(rng: Random, kind: str) -> Any:
    """Several aggregates, of which one is kept."""
    usable = ["count", "min", "max", "count_distinct", "quantile_disc"]
    usable += [*plain.SPREAD, "sum", "mean", "quantile_cont"] if kind != "symbol" else []
    ops = [rng.choice(usable) for _ in range(rng.choice((1, 1, 2, 3)))]
    at = rng.randrange(len(ops))
    results = {"count": "number", "count_distinct": "number"}
    results |= dict.fromkeys(("mean", "quantile_cont", *plain.SPREAD), "float")
    result = results.get(ops[at], kind)
    fractions = [(rng.choice((0, 0.25, 0.5, 1)),) if op.startswith("quantile") else () for op in ops]
    named = {
        f"x{i}": streams.count() if op == "count" else getattr(streams, op)("b", *fraction)
        for i, (op, fraction) in enumerate(zip(ops, fractions, strict=True))
    }
    pairs = [(op, 1, *fraction) for op, fraction in zip(ops, fractions, strict=True)]
    if rng.randrange(4):
        return (
            f"by a: {ops} at {at}",
            result,
            lambda z: plain.mapped(plain.aggregated(z, (0,), pairs), lambda row: (row[0], row[1 + at])),
            lambda s: ab(s.group_by("a").aggregate(**named), f"x{at}"),
        )
    return (
        f"all: {ops} at {at}",
        result,
        lambda z: plain.mapped(plain.aggregated(z, (), pairs), lambda row: (0, row[at])),
        lambda s: s.group_by().aggregate(**named).map(a="0", b=f"x{at}"),
    )


def some_order(rng: Random, kind: str) -> tuple[Any, list[tuple[int, bool]]]:
    """An order as it is written, and as (column, descending). Texts that it does not name come as they first came."""
    orders: list[Any] = [
        ("b", [(1, False)]),
        ("-b", [(1, True)]),
        (("a", "-b"), [(0, False), (1, True)]),
        (("-b", "a"), [(1, True), (0, False)]),
    ]
    return rng.choice(orders if kind == "symbol" else [*orders, (["-a"], [(0, True)])])


def ranked(rng: Random, kind: str) -> Any:
    (by, order), key, k = some_order(rng, kind), rng.choice(((), ("a",))), rng.choice((1, 2, 3))
    places = tuple(range(len(key)))
    if rng.randrange(3):
        means = lambda z: plain.top(z, places, order, k)  # noqa: E731
        return f"top {k} by {by} of {key}", kind, means, lambda s: s.group_by(*key).top(k, by)
    return (
        f"top {k} by {by} of {key}, numbered",
        "number",
        lambda z: plain.mapped(plain.top(z, places, order, k, numbered=True), lambda row: (row[0], row[2])),
        lambda s: ab(s.group_by(*key).top(k, by, number="n"), "n"),
    )


def first(rng: Random, kind: str) -> Any:
    (by, order), key = some_order(rng, kind), rng.choice(((), ("a",)))
    places = tuple(range(len(key)))
    means = lambda z: plain.once(z, places, order)  # noqa: E731
    return f"first by {by} of {key}", kind, means, lambda s: s.group_by(*key).first(by)


def lagged(rng: Random, kind: str) -> Any:
    (by, order), key, offset = some_order(rng, kind), rng.choice(((), ("a",))), rng.choice((1, 1, 2))
    places, verb = tuple(range(len(key))), rng.choice(("lag", "lead"))
    column, fill = rng.choice((("a", 9), ("b", DATA[kind][0])))
    at = "ab".index(column)
    return (
        f"{verb} {offset} {column} by {by} of {key}",
        "number" if column == "a" else kind,
        lambda z: plain.mapped(
            plain.neighbour(z, places, order, at, offset if verb == "lag" else -offset, fill),
            lambda row: (row[0], row[2]),
        ),
        lambda s: ab(getattr(s.group_by(*key), verb)(column, by, fill=fill, offset=offset, name="n"), "n"),
    )


ON_A, ON_BOTH, PATH = [(0, 0)], [(0, 0), (1, 1)], [(1, 0)]


def binary(rng: Random, one: str, two: str) -> tuple[str, str, Callable[[Z, Z], Z], Callable[[Any, Any], Any]]:
    """(name, kind of the result, what it means, how it is written)."""
    options: list[Any] = [
        (
            "join on a",
            two,
            lambda z, y: plain.mapped(plain.join(z, y, ON_A), lambda row: (row[0], row[2])),
            lambda s, t: ab(s.join(t.rename(b="c"), on="a"), "c"),
        ),
        (
            "×",
            two,
            lambda z, y: plain.mapped(plain.join(z, y, []), lambda row: (row[0], row[3])),
            lambda s, t: ab(s.join(t.rename(a="c", b="d"), on=[]), "d"),
        ),
        ("semijoin", one, lambda z, y: plain.semijoin(z, y, ON_A), lambda s, t: s.semijoin(t, on="a")),
        ("antijoin", one, lambda z, y: plain.antijoin(z, y, ON_A), lambda s, t: s.antijoin(t, on=["a"])),
    ]
    fill, other, at = DATA[two][1], DATA[one][1], rng.choice((1, 2))
    options += [
        (
            f"left join at {at}",
            (one, two)[at - 1],
            lambda z, y: plain.mapped(plain.left_join(z, y, ON_A, (fill,)), lambda row: (row[0], row[at])),
            lambda s, t: ab(s.left_join(t.rename(b="c"), on="a", fill={"c": fill}), "bc"[at - 1]),
        ),
        (
            f"full join at {at}",
            (one, two)[at - 1],
            lambda z, y: plain.mapped(
                plain.full_join(z, y, ON_A, (fill,), (None, other)), lambda row: (row[0], row[at])
            ),
            lambda s, t: ab(s.full_join(t.rename(b="c"), on="a", fill={"b": other, "c": fill}), "bc"[at - 1]),
        ),
    ]
    if one == "number":
        options += [
            ("path", two, path, write_path),
            ("semipath", one, lambda z, y: plain.semijoin(z, y, PATH), lambda s, t: s.semijoin(t, on={"b": "a"})),
        ] * 2
    if one == two:
        options += [
            ("+", one, plain.add, lambda s, t: s + t),
            ("-", one, plain.minus, lambda s, t: s - t),
            ("union", one, lambda z, y: plain.distinct(plain.add(z, y)), lambda s, t: s.union(t)),
            ("difference", one, difference, lambda s, t: s.difference(t)),
            ("intersect", one, intersect, lambda s, t: s.intersect(t)),
            ("not in", one, lambda z, y: plain.antijoin(z, y, ON_BOTH), lambda s, t: s.antijoin(t, on=["a", "b"])),
        ]
    return rng.choice(options)


def difference(one: Z, two: Z) -> Z:
    return plain.distinct(plain.minus(plain.distinct(one), plain.distinct(two)))


def intersect(one: Z, two: Z) -> Z:
    return plain.join(plain.distinct(one), plain.distinct(two), ON_BOTH)


# Random recipes ---------------------------------------------------------------------------------------------------


def grow(rng: Random, recipe: Recipe, count: int, *, time: bool, nested: int, sets: bool = False) -> None:
    """Add steps. `time`: those that look at the history, too; `nested`: nested circuits, that deep within one another.

    `sets`: many of them made sets.
    """
    for _ in range(count):
        if sets and rng.randrange(2):
            last = rng.randrange(len(recipe.steps))
            recipe.steps.append(
                Step("distinct", (last,), recipe.steps[last].kind, plain.distinct, lambda s: s.distinct())
            )
        reads = rng.choices(range(len(recipe.steps)), weights=range(1, len(recipe.steps) + 1), k=2)
        one, two = (recipe.steps[i].kind for i in reads)
        choice = rng.randrange(20)
        if time and choice < 3:
            name = rng.choice(("delay", "delay", "I", "D"))
            recipe.steps.append(Step(name, (reads[0],), one))
        elif nested and choice < 6:
            add_nested(rng, recipe, nested - 1)
        elif choice < 12:
            recipe.steps.append(Step(*_ordered(unary(rng, one), (reads[0],))))
        else:
            recipe.steps.append(Step(*_ordered(binary(rng, one, two), tuple(reads))))


def _ordered(made: tuple[str, str, Any, Any], reads: tuple[int, ...]) -> Any:
    name, kind, means, writes = made
    return name, reads, kind, means, writes


def add_loops(rng: Random, recipe: Recipe, kinds: list[str]) -> list[int]:
    """Steps that read what is made later."""
    first = len(recipe.steps)
    recipe.steps += [Step("loop", (), kind) for kind in kinds]
    return list(range(first, len(recipe.steps)))


def close_loops(rng: Random, recipe: Recipe, loops: list[int]) -> None:
    """Each loop comes back from a set of its kind."""
    for loop in loops:
        kind = recipe.steps[loop].kind
        fitting = [i for i, step in enumerate(recipe.steps) if step.kind == kind]
        recipe.steps.append(Step("distinct", (rng.choice(fitting[-3:]),), kind, plain.distinct, lambda s: s.distinct()))
        recipe.loops[loop] = len(recipe.steps) - 1


def closure() -> Recipe:
    """Of the paths of one edge stream after another: those whose ends go on by the second as often as they like."""
    inner = Recipe([Step("enter", (), "number"), Step("enter", (), "number"), Step("loop", (), "number")])
    inner.steps += [
        Step("path", (2, 1), "number", path, write_path),
        Step("+", (3, 0), "number", plain.add, lambda s, t: s + t),
        Step("distinct", (4,), "number", plain.distinct, lambda s: s.distinct()),
    ]
    inner.loops, inner.outputs = {2: 5}, [5]
    return inner


def path(one: Z, two: Z) -> Z:
    return plain.mapped(plain.join(one, two, PATH), lambda row: (row[0], row[2]))


def write_path(one: Any, two: Any) -> Any:
    return ab(one.join(two.rename(a="b", b="c"), on="b"), "c")


def add_nested(rng: Random, recipe: Recipe, deeper: int = 0) -> None:
    """A fixpoint over some steps: loops of numbers that only grow, in random surroundings.

    `deeper`: how many levels of nested circuits are within it, in its loops and beside them.
    """
    inner = Recipe()
    entered = [rng.randrange(len(recipe.steps)) for _ in range(rng.choice((1, 1, 2, 3)))]
    for i in entered:
        inner.steps.append(Step(rng.choice(("enter", "enter", "enter", "delta0")), (), recipe.steps[i].kind))
    grow(rng, inner, rng.choice((0, 1, 2)), time=False, nested=deeper)
    # A loop grows, and rests, over sets that do not change.
    steady: list[int] = []
    for i, step in enumerate(inner.steps):
        if step.name != "delta0" and set(step.inputs) <= set(steady):
            steady.append(i)
    numbers = [i for i in steady if inner.steps[i].kind == "number"]
    if numbers:
        for i in numbers:
            inner.steps.append(Step("distinct", (i,), "number", plain.distinct, lambda s: s.distinct()))
        numbers = list(range(len(inner.steps) - len(numbers), len(inner.steps)))
        loops = add_loops(rng, inner, ["number"] * rng.choice((1, 1, 2)))
        for loop in loops:
            base, other, mine = rng.choice(numbers), rng.choice(numbers), rng.choice(loops)
            left, right = rng.choice(((mine, other), (other, mine), (mine, rng.choice(loops))))
            steps = len(inner.steps)
            inner.steps += [
                Step("leave 0", (left, right), "number", inner=closure())
                if deeper and rng.randrange(2)
                else Step("path", (left, right), "number", path, write_path),
                Step("+", (steps, base), "number", plain.add, lambda s, t: s + t),
            ]
            if rng.randrange(2):
                # The other loop, with the columns the other way round.
                inner.steps += [
                    Step(
                        "swap",
                        (rng.choice(loops),),
                        "number",
                        lambda z: plain.mapped(z, lambda row: row[::-1]),
                        lambda s: s.select("b", "a").rename(b="a", a="b"),
                    ),
                    Step("+", (steps + 1, steps + 2), "number", plain.add, lambda s, t: s + t),
                ]
            last = len(inner.steps) - 1
            inner.steps.append(Step("distinct", (last,), "number", plain.distinct, lambda s: s.distinct()))
            inner.loops[loop] = last + 1
        grow(rng, inner, rng.choice((0, 1, 2, 3)), time=False, nested=deeper)
        if not rng.randrange(3):
            name, read = rng.choice(("delay", "D")), rng.randrange(len(inner.steps))
            inner.steps.append(Step(name, (read,), inner.steps[read].kind))
    inner.outputs = [rng.randrange(len(inner.steps)), len(inner.steps) - 1][: rng.choice((1, 2))]
    for which, output in enumerate(inner.outputs):
        recipe.steps.append(Step(f"leave {which}", tuple(entered), inner.steps[output].kind, inner=inner))


def make(rng: Random, *, size: int, time: bool = True, nested: int = 0, sets: bool = False) -> Recipe:
    """A recipe over one to three inputs, with about `size` steps; `nested`: how deep circuits are in one another."""
    recipe = Recipe()
    for _ in range(rng.choice((1, 2, 2, 3))):
        recipe.steps.append(Step("input", (), rng.choice(KINDS)))
    loops = add_loops(rng, recipe, [rng.choice(KINDS)]) if time and not rng.randrange(3) else []
    grow(rng, recipe, rng.randrange(1, size + 1), time=time, nested=nested, sets=sets)
    if nested:
        add_nested(rng, recipe, nested - 1)
    close_loops(rng, recipe, loops)
    recipe.outputs = sorted({len(recipe.steps) - 1, rng.randrange(len(recipe.steps))})
    return recipe


def some_changes(rng: Random, kind: str, *, positive: dict[Any, int] | None = None) -> Z:
    """Rows of tiny domains with small weights of either sign."""
    rows = [(rng.choice(DATA["number"]), rng.choice(DATA[kind])) for _ in range(rng.choice((0, 1, 1, 2, 4)))]
    return plain.made((row, rng.choice((1, 1, 1, 2, -1, -1))) for row in rows)


def some_streams(rng: Random, recipe: Recipe, ticks: int) -> dict[str, list[Z]]:
    """A stream for each input."""
    return {name: [some_changes(rng, kind) for _ in range(ticks)] for name, kind in recipe.inputs.items()}


def given_at(recipe: Recipe, given: dict[str, list[Z]], tick: int) -> dict[str, streams.WeightedRows]:
    """What a step takes."""
    return {name: weighted(stream[tick], recipe.inputs[name]) for name, stream in given.items()}


def weighted(zset: Z, kind: str) -> streams.WeightedRows:
    """A plain Z-set as one of the library."""
    return streams.zset(list(zset), list(zset.values()), columns={"a": "number", "b": kind})


def stepped(circuit: streams.Circuit, recipe: Recipe, given: dict[str, list[Z]], ticks: int) -> list[list[Z]]:
    """The streams of the outputs of a circuit."""
    outs = [circuit.step(given_at(recipe, given, tick)) for tick in range(ticks)]
    return [[dict(out[name]) for out in outs] for name in circuit.outputs]


def integrals(circuit: streams.Circuit, changes: Iterator[dict[str, streams.WeightedRows]]) -> list[Z]:
    """The sum of each output over steps."""
    totals: list[Z] = [{} for _ in circuit.outputs]
    for change in changes:
        totals = [plain.add(one, dict(made)) for one, made in zip(totals, circuit.step(change).values(), strict=True)]
    return totals
