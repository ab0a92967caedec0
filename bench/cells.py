"""The cells that `bench.pairs --cells` compares strategies on: shapes of rules, sizes, skews, and numbers of changes.

A `Shape` is a program with the head `h`, the relations it reads, which of them changes, and the strategies that fit.
Its relations are random, of so many rows: uniform, or with hubs, which are keys in many rows. A `Ground` is a shape
with a size and a skew, over which changes of several sizes are measured: each is a cell.
"""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, permutations
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from bench.graphs import Rows
from bench.latency import cpu_of
from bench.maintained import apply
from bench.updates import Batch

Maker = Callable[[np.random.Generator, int, bool], Rows]

#: Rows per key of a relation, on average; the part of all keys in a small relation, and the keys in a tiny one.
PER_KEY, PART, HANDFUL = 5, 1 / 10, 8
#: A commit of one row, the first one after a load.
LOADED = 0
CHANGES = (1, 100, 10_000)
#: Strategies that users can ask for.
FORCED = ("delta", "trace", "recompute")
CHOICE = "auto"
#: Transactions before those that are measured: they evaluate, prepare, and are followed for the first time.
BEFORE = 4
#: How many are measured, by the rows of a change: over up to 10,000 rows, and over more.
SMALL, LARGE = {LOADED: 12, 1: 60, 100: 30, 10_000: 5}, {LOADED: 4, 1: 30, 100: 12, 10_000: 5}
#: What a transaction may take of the time of the best strategy; and how many times as many are measured where it seems
#: to take more, to tell whether that is noise.
WORST_RATIO, LONGER = 1.2, 4
#: Seconds after which a cell is over, if it has three measurements.
ENOUGH = 8.0


def keys_of(size: int) -> int:
    """How many keys the relations of so many rows are over."""
    return max(16, size // PER_KEY)


def drawn(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """`size` random keys; with hubs, small ones are frequent: the first is in a share of keys^-1/2."""
    found = rng.random(size)
    return (keys_of(size) * (found * found if hubs else found)).astype(np.int64)


def distinct(*columns: Rows) -> Rows:
    """The distinct rows int64[n, k], in a random order that is the same each time."""
    rows = np.unique(np.stack(columns, axis=1), axis=0)
    return rows[np.random.default_rng(len(rows)).permutation(len(rows))]


def edges(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(x, y): hubs among both."""
    return distinct(drawn(rng, size, hubs), drawn(rng, size, hubs))


def into(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(x, y): hubs among the second."""
    return distinct(drawn(rng, size, False), drawn(rng, size, hubs))


def out_of(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(x, y): hubs among the first."""
    return into(rng, size, hubs)[:, ::-1].copy()


def spread(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(x, y) without hubs."""
    return into(rng, size, False)


def some(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(y): a part of the keys."""
    return rng.permutation(keys_of(size))[: max(2, int(keys_of(size) * PART))].astype(np.int64)[:, None]


def few(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(y): a handful of keys."""
    return rng.permutation(keys_of(size))[:HANDFUL].astype(np.int64)[:, None]


def numbered(rng: np.random.Generator, size: int, hubs: bool) -> Rows:
    """(x, number of a text), for every key."""
    return np.stack([np.arange(keys_of(size)), rng.permutation(keys_of(size)) % 997], axis=1)


class Shape(NamedTuple):
    """`rules` of `h` · `relations`: how each is made · `changed`: one of them · `forced`: strategies that fit."""

    rules: str
    relations: Mapping[str, Maker]
    changed: str = "e"
    forced: Sequence[str] = FORCED


E, F, G = (f".decl {name}(a:number, b:number)  " for name in "efg")
T, NAMES = ".decl t(a:number)  ", ".decl named(x:number, s:symbol)  "

SHAPES = {
    "join": Shape(f"{E}{F}h(x, y, z) :- e(x, y), f(y, z).", {"e": into, "f": spread}),
    "join, projected": Shape(f"{E}{F}h(x, z) :- e(x, y), f(y, z).", {"e": into, "f": spread}),
    "triangle": Shape(f"{E}h(x, y, z) :- e(x, y), e(y, z), e(x, z).", {"e": edges}),
    "diamond": Shape(f"{E}h(a, d) :- e(a, b), e(b, d), e(a, c), e(c, d), b < c.", {"e": spread}),
    "exists": Shape(f"{E}{T}h(x) :- e(x, y), t(y).", {"e": into, "t": some}),
    "exists, `t` changes": Shape(f"{E}{T}h(x) :- e(x, y), t(y).", {"e": into, "t": some}, "t"),
    "witness": Shape(f"{E}{F}h(x) :- e(x, y), f(y, _).", {"e": into, "f": spread}),
    "witness, `f` changes": Shape(f"{E}{F}h(x) :- e(x, y), f(y, _).", {"e": into, "f": out_of}, "f"),
    "few results": Shape(
        f"{E}{F}{G}{T}h(x, w) :- e(x, y), f(y, z), g(z, w), t(w).", {"e": into, "f": into, "g": into, "t": few}
    ),
    "negation": Shape(f"{E}{T}h(x, y) :- e(x, y), !t(y).", {"e": into, "t": some}),
    "negated pairs": Shape(f"{E}{F}h(x, z) :- e(x, y), f(y, z), !e(x, z).", {"e": into, "f": spread}),
    "count": Shape(f"{E}h[x] = count : {{ e(x, _) }}.", {"e": into}),
    "count, joined": Shape(f"{E}{T}h[y] = count : {{ e(x, y), t(x) }}.", {"e": into, "t": some}),
    "count, paths": Shape(f"{E}{F}h[z] = count : {{ e(x, y), f(y, z) }}.", {"e": into, "f": into}),
    "sum": Shape(f"{E}{F}h[x] = sum z : {{ e(x, y), f(y, z) }}.", {"e": into, "f": spread}),
    "min": Shape(f"{E}h[y] = min x : {{ e(x, y) }}.", {"e": into}, "e", ("recompute",)),
    "above the mean": Shape(f"{E}h(x, y) :- e(x, y), t = mean v : {{ e(_, v) }}, itof(y) > t.", {"e": into}),
    "texts compared": Shape(
        f"{E}{NAMES}h(x, y) :- e(x, y), named(x, s), named(y, u), s < u.", {"e": into, "named": numbered}
    ),
    "texts made": Shape(
        f'{E}{NAMES}h(x, cat(s, "!")) :- e(x, y), named(y, s).',
        {"e": into, "named": numbered},
        "e",
        ("trace", "recompute"),
    ),
}


class Ground(NamedTuple):
    """A shape over relations of `size` rows; `changes`: the rows that change, cell by cell."""

    shape: str
    size: int
    hubs: bool
    changes: tuple[int, ...]


def _grounds() -> Iterator[Ground]:
    for shape in SHAPES:
        yield Ground(shape, 1_000, False, (LOADED, 1, 100))
        yield Ground(shape, 10_000, True, (1, 100))
        yield Ground(shape, 100_000, shape in ("exists", "witness", "few results"), (LOADED, *CHANGES))
    for shape in ("triangle", "exists"):
        yield Ground(shape, 1_000_000, True, CHANGES)


GROUNDS = tuple(_grounds())


def relations_of(ground: Ground) -> dict[str, Rows]:
    """The relations of a ground, int64[n, k] each, the same in every process."""
    makers = SHAPES[ground.shape].relations
    return {
        name: make(np.random.default_rng(zlib.crc32(name.encode()) + ground.size), ground.size, ground.hubs)
        for name, make in makers.items()
    }


def made(ground: Ground, relations: Mapping[str, Rows], how: str) -> Any:
    """A database of the ground, evaluated, whose head is maintained so."""
    import lftj

    db = lftj.Database()
    db.rules(SHAPES[ground.shape].rules, maintain=None if how == CHOICE else {"h": how})
    for name, rows in relations.items():
        db.load(name, [(x, f"name {n:03}") for x, n in rows.tolist()] if name == "named" else rows)
    db.evaluate()
    return db


class Stream:
    """Batches that erase rows of a relation and insert others of the kind, each row once: half of each, or by turns."""

    def __init__(self, rows: Rows, others: Rows) -> None:
        held = set(map(tuple, rows.tolist()))
        self.rows = rows
        self.fresh = np.array([row for row in others.tolist() if tuple(row) not in held], np.int64)
        self._at, self._erases = 0, cycle((True, False))

    def batch(self, size: int) -> Batch | None:
        """The next one; None if there are not enough rows."""
        half, at = max(1, size // 2), self._at
        if at + half > min(len(self.rows), len(self.fresh)):
            return None
        self._at += half
        gone, come = self.rows[at : at + half], self.fresh[at : at + half]
        if size == 1:
            gone, come = (gone, come[:0]) if next(self._erases) else (gone[:0], come)
        return Batch(gone, come)


def stream_of(ground: Ground, relations: Mapping[str, Rows]) -> Stream:
    """The stream of a ground: other rows are drawn as the first were, or are keys that a small relation lacks."""
    shape, rng = SHAPES[ground.shape], np.random.default_rng(5)
    rows = relations[shape.changed]
    if shape.changed == "t":
        return Stream(rows, rng.permutation(keys_of(ground.size))[:, None])
    return Stream(rows, shape.relations[shape.changed](rng, ground.size, ground.hubs))


def strategies_of(tx: Any) -> str:
    """How the last transaction was followed, parts included."""
    found: dict[str, None] = {}
    for head in tx.stats["heads"].values():
        for told in (*head.get("parts", {}).values(), head):
            found[told["strategy"]] = None
    found.pop("none", None)
    return ", ".join(found)


def measured(ground: Ground) -> dict[str, Any]:
    """The cells of a ground: what the transactions took by each strategy, in milliseconds, by turns in one process."""
    shape, relations = SHAPES[ground.shape], relations_of(ground)
    hows = (CHOICE, *shape.forced)
    databases = [made(ground, relations, how) for how in hows]
    stream, turns = stream_of(ground, relations), cycle(permutations(range(len(hows))))
    counts = SMALL if ground.size <= 10_000 else LARGE
    cells = []
    for size in ground.changes:
        took: dict[str, list[float]] = {how: [] for how in hows}
        chosen, began = "", perf_counter()
        for i in range(BEFORE + LONGER * counts[size]):
            if i >= BEFORE + counts[size] and ratio({"ms": took}) <= WORST_RATIO:
                break
            if (batch := stream.batch(max(1, size))) is None:
                break
            if size == LOADED:
                loaded = stream.fresh[-1 - i :][:1]
                for db in databases:
                    db.load(shape.changed, loaded)
                    db.evaluate()
            for k in next(turns):
                done: list[Any] = []
                ms = cpu_of(lambda k=k: done.append(apply(databases[k], shape.changed, batch))) * 1e3  # noqa: B023
                if i >= BEFORE:
                    took[hows[k]].append(ms)
                if k == 0:
                    chosen = strategies_of(done[0]) or chosen
            if perf_counter() - began > ENOUGH and i >= BEFORE + 2:
                break
        if took[CHOICE]:
            cells.append({"changes": size, "strategy": chosen, "ms": took})
    answers = [db["h"].arrow() for db in databases]
    right = all(answer.equals(answers[0]) for answer in answers)
    return {"status": "ok" if right else "wrong", "count": len(answers[0]), "cells": cells}


def ratio(cell: Mapping[str, Any]) -> float:
    """The median by lftj's choice, by the least of the others."""
    medians = {how: statistics.median(ms) for how, ms in cell["ms"].items()}
    return float(medians.pop(CHOICE) / min(medians.values()))
