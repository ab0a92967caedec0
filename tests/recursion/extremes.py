"""Recursive minimum and maximum beside their plain meaning: loops over dictionaries until nothing changes.

A program here is its text, and the same rules as a Python function that yields, over given relations, what they
propose: (predicate, key, value). The value of a key is the best that is proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import lftj
from lftj.values import gate

Row = tuple[Any, ...]
Relations = dict[str, set[Row]]
Values = dict[str, dict[Row, Any]]
Proposed = Iterator[tuple[str, Row, Any]]
Call = tuple[str, str, list[Row]]


@dataclass(frozen=True)
class Extremes:
    """`op` of the recursive `heads`; `rules` over base relations and values; `above`: heads of other strata.

    `base`: relation -> a random row of it. `functional` ones are changed by upserts. `apart`: each head is a recursion
    of its own.
    """

    op: str
    text: str
    base: dict[str, Callable[[Random, int], Row]]
    rules: Callable[[Relations, Values], Proposed]
    heads: tuple[str, ...]
    functional: tuple[str, ...] = ()
    apart: bool = False
    above: Callable[[Relations, Values], Relations] = field(default=lambda facts, values: {})

    def best(self, values: list[Any]) -> Any:
        return (min if self.op == "min" else max)(values)

    def solve(self, facts: Relations) -> Values:
        """The least solution: what all rules propose, over and over, from nothing."""
        values: Values = {head: {} for head in self.heads}
        while True:
            proposed: dict[str, dict[Row, list[Any]]] = {head: {} for head in self.heads}
            for head in self.heads:
                for row in facts.get(head, ()):
                    proposed[head].setdefault(row[:-1], []).append(row[-1])
            for head, key, value in self.rules(facts, values):
                proposed[head].setdefault(key, []).append(value)
            after = {head: {key: self.best(many) for key, many in found.items()} for head, found in proposed.items()}
            if after == values:
                return values
            values = after


def rows_of(values: Values) -> Relations:
    return {head: {(*key, value) for key, value in found.items()} for head, found in values.items()}


class Twin:
    """A database, its facts as sets, and the plain meaning: compared after every transaction."""

    def __init__(self, program: Extremes, sizes: dict[str, int]) -> None:
        self.program = program
        self.db = lftj.Database._sized(program.text, **sizes)
        self.facts: Relations = {name: set() for name in program.base}
        self.strategies: set[str] = set()
        self.verify()

    def expected(self) -> Relations:
        values = self.program.solve(self.facts)
        return {**self.facts, **rows_of(values), **self.program.above(self.facts, values)}

    def contents(self) -> Relations:
        return {name: set(self.db[name]) for name in self.db}

    def transact(self, calls: list[Call]) -> None:
        """Insert, erase, upsert; the deltas are the differences."""
        before = self.contents()
        with self.db.transaction() as tx:
            for verb, name, rows in calls:
                getattr(tx, verb)(name, rows)
        for verb, name, rows in calls:
            for row in rows:
                if verb == "upsert":
                    self.facts[name] = {other for other in self.facts[name] if other[:-1] != row[:-1]}
                (self.facts[name].discard if verb == "erase" else self.facts[name].add)(row)
        after = self.verify()
        for name in after:
            told = tx.delta[name]
            assert set(told.inserted) == after[name] - before[name], name
            assert set(told.erased) == before[name] - after[name], name
        heads = tx.stats["heads"]
        self.strategies |= {heads[head]["strategy"] for head in self.program.heads if head in heads}

    def verify(self) -> Relations:
        expected, contents = self.expected(), self.contents()
        for name, rows in expected.items():
            assert contents[name] == rows, f"{name}: {contents[name] ^ rows}"
        self.check_rounds()
        return contents

    def rounds(self, name: str) -> dict[Row, int]:
        relation = self.db._evaluator.relations[name]
        codes = relation.content.columns()
        rows = gate.to_rows(relation.schema, list(codes), self.db._symbols, rows=codes.shape[1])
        values = relation.content.values_of(np.ascontiguousarray(codes))[0]
        return dict(zip(rows, values.tolist(), strict=True))

    def check_rounds(self) -> None:
        """Every row that is no fact is derived, with its very value, from rows of smaller rounds."""
        heads = self.program.heads
        for component in [(head,) for head in heads] if self.program.apart else [heads]:
            self._check_component(component)

    def _check_component(self, component: tuple[str, ...]) -> None:
        rounds = {head: self.rounds(head) for head in component}
        values = {head: {row[:-1]: row[-1] for row in self.db[head]} for head in self.program.heads}
        for number in sorted({n for found in rounds.values() for n in found.values()}):
            older = dict(values)
            for head, found in rounds.items():
                older[head] = {row[:-1]: row[-1] for row, n in found.items() if n < number}
            proposed = {(head, *key, value) for head, key, value in self.program.rules(self.facts, older)}
            for head, found in rounds.items():
                for row in (row for row, n in found.items() if n == number):
                    given = row in self.facts.get(head, ())
                    assert (number == 0) == given, (head, row, number)
                    assert given or (head, *row) in proposed, (head, row, number)


def some_calls(rng: Random, twin: Twin, wide: int, most: int) -> list[Call]:
    """Calls of one transaction, half of them about rows that are there."""
    calls: list[Call] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(twin.program.base))
        rows = [twin.program.base[name](rng, wide) for _ in range(rng.randint(1, most))]
        known = sorted(twin.facts[name])
        if known and rng.random() < 0.6:
            calls.append(("erase", name, rng.sample(known, min(len(known), rng.randint(1, most)))))
        if rng.random() < 0.6:
            calls.append(("upsert" if name in twin.program.functional else "insert", name, rows))
    return calls


def full(rng: Random, twin: Twin, wide: int, most: int) -> list[Call]:
    """Facts to begin with."""
    calls: list[Call] = []
    for name, make in twin.program.base.items():
        verb = "upsert" if name in twin.program.functional else "insert"
        many = most if len(make(rng, wide)) > 2 else rng.choice((1, 2))
        calls.append((verb, name, [make(rng, wide) for _ in range(many)]))
    return calls


def node(rng: Random, n: int) -> Row:
    return (rng.randrange(n),)


def pair(rng: Random, n: int) -> Row:
    return rng.randrange(n), rng.randrange(n)


def weighted(rng: Random, n: int) -> Row:
    return *pair(rng, n), rng.choice((0, 0, 1, 1, 2, 5))


def ahead(rng: Random, n: int) -> Row:
    """An edge of a graph without cycles; of weights below zero too."""
    x, y = sorted(rng.sample(range(n + 1), 2))
    return x, y, rng.choice((-3, -1, 0, 1, 2, 4))


def level(rng: Random, n: int) -> Row:
    return rng.randrange(n), rng.choice((0, 1, 2, 3, 7))


TOP = 2**64 - 1
EDGE = ".decl edge(x:number, y:number, w:number)\n.decl source(x:number)\n"
WEIGHT = ".decl edge(x:number, y:number) -> w:number\n.decl source(x:number)\n"
DIST = ".decl dist(x:number) -> d:number\n"


def _paths(facts: Relations, values: Values) -> Proposed:
    yield from (("dist", source, 0) for source in facts["source"])
    dist = values["dist"]
    yield from (("dist", (y,), dist[x,] + w) for x, y, w in facts["edge"] if (x,) in dist)


def _far(facts: Relations, values: Values) -> Relations:
    dist = values["dist"]
    return {
        "far": {key for key, d in dist.items() if d > 2},
        "lost": {(x,) for x, y, _ in facts["edge"] if (x,) not in dist},
        "many": {(d, sum(other == d for other in dist.values())) for d in dist.values()},
    }


def _shortest(text: str, functional: tuple[str, ...] = ()) -> Extremes:
    above = (
        "far(x) :- dist[x] > 2.\nlost(x) :- edge(x, _, _), !dist(x, _).\n"
        ".decl many(d:number) -> n:number\nmany[d] = count : { dist(_, d) }.\n"
    )
    return Extremes("min", text + above, {"source": node, "edge": weighted}, _paths, ("dist",), functional, _far)


ONE_RULE = "dist[y] = min d : { source(y), d = 0 ; dist[x] = c, edge(x, y, w), d = c + w }.\n"
TWO_RULES = "dist[y] = min d : { source(y), d = 0 }.\ndist[y] = min dist[x] + w : { edge(x, y, w) }.\n"
PLAIN_START = "dist[y] = 0 :- source(y).\ndist[y] = min d : { d = dist[x] + edge[x, y] }.\n"


def _labels(facts: Relations, values: Values) -> Proposed:
    label = values["label"]
    for (x,) in facts["node"]:
        yield "label", (x,), x
    for x, y in facts["edge"]:
        yield from (("label", (b,), label[a,]) for a, b in ((x, y), (y, x)) if (a,) in label)


def _seeds(facts: Relations, values: Values) -> Proposed:
    """Names that spread along edges."""
    label = values["label"]
    yield from (("label", (x,), name) for x, name in facts["seed"])
    yield from (("label", (y,), label[x,]) for x, y in facts["edge"] if (x,) in label)


def _made(facts: Relations, values: Values) -> Proposed:
    """Names that are computed before they spread."""
    seeds = {(x, name + "Z") for x, name in facts["seed"]}
    yield from _seeds({**facts, "seed": seeds}, values)


def _seed_row(rng: Random, n: int) -> Row:
    return rng.randrange(n), rng.choice(("b", "é", "", "ab", "Z", "a"))


def _pairs(facts: Relations, values: Values) -> Proposed:
    d = values["d"]
    yield from (("d", (x, y), w) for x, y, w in facts["edge"])
    yield from (("d", (x, z), a + b) for (x, y), a in d.items() for (other, z), b in d.items() if y == other)


def _widths(facts: Relations, values: Values) -> Proposed:
    width = values["width"]
    yield from (("width", source, 9) for source in facts["source"])
    yield from (("width", (y,), min(width[x,], w)) for x, y, w in facts["edge"] if (x,) in width)


def _heights(facts: Relations, values: Values) -> Proposed:
    height = values["height"]
    yield from (("height", source, 0) for source in facts["source"])
    for x, y, w in facts["edge"]:
        if (x,) in height and (y,) not in facts["closed"] and height[x,] < 5:
            yield "height", (y,), max(height[x,], w)


def _parity(facts: Relations, values: Values) -> Proposed:
    even, odd = values["even"], values["odd"]
    yield from (("even", source, 0) for source in facts["source"])
    for x, y, w in facts["edge"]:
        if (x,) in even:
            yield "odd", (y,), even[x,] + w
        if (x,) in odd:
            yield "even", (y,), odd[x,] + w


def _stories(facts: Relations, values: Values) -> Proposed:
    """The nearest of what is reachable from each node at least as cheaply: a recursion over the result of another."""
    dist, near = values["dist"], values["near"]
    yield from _paths(facts, values)
    yield from (("near", key, d) for key, d in dist.items())
    yield from (("near", (x,), near[y,]) for x, y, _ in facts["edge"] if (y,) in near)


def _given(facts: Relations, values: Values) -> Proposed:
    """Facts of the predicate itself, and of one without keys."""
    level, top = values["level"], values["top"]
    yield from (("level", (y,), level[x,]) for x, y in facts["edge"] if (x,) in level)
    yield from (("top", (), d) for d in level.values())
    if () in top:
        yield from (("level", (x,), top[()]) for (x,) in facts["node"])


def _floats(facts: Relations, values: Values) -> Proposed:
    """How likely the likeliest path is."""
    p = values["p"]
    yield from (("p", source, 1.0) for source in facts["source"])
    yield from (("p", (y,), p[x,] * w) for x, y, w in facts["edge"] if (x,) in p)


def _counted(facts: Relations, values: Values) -> Proposed:
    """Roads that are open are edges, and a step costs as many as lead on from where it begins."""
    dist = values["dist"]
    edges = {(x, y) for x, y, _ in facts["road"] if (x,) not in facts["closed"]}
    yield from (("dist", source, 0) for source in facts["source"])
    yield from (("dist", (y,), dist[x,] + sum(a == x for a, _ in edges)) for x, y in edges if (x,) in dist)


def _unsigned(facts: Relations, values: Values) -> Proposed:
    width = values["width"]
    yield from (("width", source, TOP) for source in facts["source"])
    yield from (("width", (y,), min(width[x,], w)) for x, y, w in facts["edge"] if (x,) in width)


def _wide(rng: Random, n: int) -> Row:
    return *pair(rng, n), rng.choice((0, 1, 2**63 - 1, 2**63, TOP))


def _likely(rng: Random, n: int) -> Row:
    return *pair(rng, n), rng.choice((0.0, 0.25, 0.5, 1.0))


PROGRAMS = {
    "over what is derived and counted": Extremes(
        "min",
        ".decl road(x:number, y:number, w:number)\n.decl closed(x:number)\n.decl source(x:number)\n"
        + DIST
        + "edge(x, y)"
        " :- road(x, y, _), !closed(x).\n"
        "dist[y] = min d : { source(y), d = 0 ; edge(x, y), n = count : { edge(x, _) }, d = dist[x] + n }.",
        {"source": node, "road": weighted, "closed": node},
        _counted,
        ("dist",),
    ),
    "widest paths, unsigned": Extremes(
        "max",
        ".decl edge(x:number, y:number, w:unsigned)\n.decl source(x:number)\n.decl width(x:number) -> w:unsigned\n"
        f"width[y] = max d : {{ source(y), d = {TOP}u ; edge(x, y, w), d = min(width[x], w) }}.",
        {"source": node, "edge": _wide},
        _unsigned,
        ("width",),
    ),
    "shortest paths": _shortest(EDGE + DIST + ONE_RULE),
    "shortest paths, two rules": _shortest(EDGE + DIST + TWO_RULES),
    "shortest paths, upserts": _shortest(WEIGHT + DIST + PLAIN_START, ("edge",)),
    "component labels": Extremes(
        "min",
        ".decl node(x:number)\n.decl edge(x:number, y:number)\n.decl label(x:number) -> l:number\n"
        "label[x] = min l : { node(x), l = x ; label[y] = l, (edge(x, y) ; edge(y, x)) }.\n"
        "one(l) :- label(_, l).",
        {"node": node, "edge": pair},
        _labels,
        ("label",),
        above=lambda facts, values: {"one": {(value,) for value in values["label"].values()}},
    ),
    "least names": Extremes(
        "min",
        ".decl seed(x:number, t:symbol)\n.decl edge(x:number, y:number)\n.decl label(x:number) -> t:symbol\n"
        "label[x] = min t : { seed(x, t) ; edge(y, x), t = label[y] }.",
        {"seed": _seed_row, "edge": pair},
        _seeds,
        ("label",),
    ),
    "least names made": Extremes(
        "min",
        ".decl seed(x:number, t:symbol)\n.decl edge(x:number, y:number)\n.decl label(x:number) -> t:symbol\n"
        'label[x] = min t : { seed(x, s), t = cat(s, "Z") ; edge(y, x), t = label[y] }.',
        {"seed": _seed_row, "edge": pair},
        _made,
        ("label",),
    ),
    "greatest names": Extremes(
        "max",
        ".decl seed(x:number, t:symbol)\n.decl edge(x:number, y:number)\n.decl label(x:number) -> t:symbol\n"
        "label[x] = max t : { seed(x, t) ; edge(y, x), t = label[y] }.",
        {"seed": _seed_row, "edge": pair},
        _seeds,
        ("label",),
    ),
    "all pairs": Extremes(
        "min",
        EDGE.replace(".decl source(x:number)\n", "") + ".decl d(x:number, y:number) -> d:number\n"
        "d[x, y] = min v : { edge(x, y, v) ; v = d[x, z] + d[z, y] }.",
        {"edge": weighted},
        _pairs,
        ("d",),
    ),
    "widest paths": Extremes(
        "max",
        EDGE + ".decl width(x:number) -> w:number\n"
        "width[y] = max d : { source(y), d = 9 ; edge(x, y, w), d = min(width[x], w) }.",
        {"source": node, "edge": weighted},
        _widths,
        ("width",),
    ),
    "lowest passes, with bounds": Extremes(
        "min",
        EDGE + ".decl closed(x:number)\n.decl height(x:number) -> w:number\n"
        "height[y] = min 0 : { source(y) }.\n"
        "height[y] = min d : { edge(x, y, w), c = height[x], c < 5, d = max(c, w), !closed(y) }.",
        {"source": node, "edge": weighted, "closed": node},
        _heights,
        ("height",),
    ),
    "longest paths without cycles": Extremes(
        "max",
        EDGE + DIST + "dist[y] = max d : { source(y), d = 0 ; dist[x] = c, edge(x, y, w), d = c + w }.",
        {"source": node, "edge": ahead},
        _paths,
        ("dist",),
    ),
    "shortest paths, weights below zero": Extremes(
        "min", EDGE + DIST + ONE_RULE, {"source": node, "edge": ahead}, _paths, ("dist",)
    ),
    "two predicates": Extremes(
        "min",
        EDGE + ".decl even(x:number) -> d:number\n.decl odd(x:number) -> d:number\n"
        "even[y] = min d : { source(y), d = 0 ; edge(x, y, w), d = odd[x] + w }.\n"
        "odd[y] = min even[x] + w : { edge(x, y, w) }.",
        {"source": node, "edge": weighted},
        _parity,
        ("even", "odd"),
    ),
    "over another": Extremes(
        "min",
        EDGE + DIST + ONE_RULE + ".decl near(x:number) -> d:number\n"
        "near[x] = min d : { dist[x] = d ; edge(x, y, _), near[y] = d }.",
        {"source": node, "edge": weighted},
        _stories,
        ("dist", "near"),
        apart=True,
    ),
    "facts, and no key": Extremes(
        "max",
        ".decl node(x:number)\n.decl edge(x:number, y:number)\n.decl level(x:number) -> d:number\n"
        ".decl top() -> d:number\n"
        "level[y] = max d : { edge(x, y), level[x] = d }.\nlevel[x] = top[] :- node(x).\n"
        "top[] = max d : { level(_, d) }.",
        {"node": node, "edge": pair, "level": level},
        _given,
        ("level", "top"),
        ("level",),
    ),
    "likely paths": Extremes(
        "max",
        ".decl edge(x:number, y:number, w:float)\n.decl source(x:number)\n.decl p(x:number) -> w:float\n"
        "p[y] = max d : { source(y), d = 1.0 ; edge(x, y, w), d = p[x] * w }.",
        {"source": node, "edge": _likely},
        _floats,
        ("p",),
    ),
}
