"""The event kernel alone, without a database: events per CPU second, one call with one event, growth with the data.

    python -m bench.trigger_kernel [--rows 10000,100000,1000000]

Programs are compiled from sums as rules give them, whose filters and terms of one row became columns beforehand:

q6      one sum of a column                        q1     eight sums and a count by two keys of few values
join    sum and count over r(a, b), s(b, c) by b   q3     a sum over customers, orders and items by three columns
pairs   a count over r(a, b), s(b, c) where a < c: an order is walked down

Each starts with `--rows` rows and takes at most `EVENTS` events, half of them rows that go and half rows that come
again; all is taken back at the end, which has to leave no entry. Best of `TURNS` turns, in CPU time. A join key has ten
rows of both tables together.

Measured at 10^6 rows (32 MB of L3), millions of events a second: q6 14.5, q1 5.2, join 5.4, q3 1.7, pairs 0.9; a call
with one event takes 4.3 us. From 10^4 to 10^7 rows the join's event grows with an exponent of 0.04, and q3's of 0.21.
Why was not measured; q3 reads slices, lists through a table whose entries are not asked for ahead.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.steps import growth
from lftj.language.clause import Apply, Term, Value, Var
from lftj.triggers.algebra import DELETION, INSERTION, Cmp, Formula, Mul, Rel, Val
from lftj.triggers.compilation import compiled
from lftj.triggers.maps import Maps

Ints = npt.NDArray[np.int64]
Definition = tuple[tuple[Var, ...], Formula]
EVENTS, TURNS, ONES = 200_000, 3, 5_000
PER_KEY = 10
SIZES = (10_000, 100_000, 1_000_000)


class KernelCase(NamedTuple):
    """Maps to keep, the columns of each relation, and rows of each: of so many rows in all, from a generator."""

    definitions: dict[str, Definition]
    relations: dict[str, int]
    made: Callable[[int, np.random.Generator], dict[str, Ints]]


def _variables(names: str) -> tuple[Var, ...]:
    return tuple(Var(name, "number") for name in names)


def _atom(name: str, columns: str) -> Rel:
    return Rel(name, _variables(columns))


def _cases() -> dict[str, KernelCase]:
    a, b, c, k, d, x = _variables("abckdx")
    item = _atom("item", "fsqpdt")
    f, s, q, p, t = _variables("fsqpt")
    less = Apply("-", (Value(100, "number"), d), "number")
    net = Apply("*", (p, less), "number")
    terms: list[Term] = [
        q,
        p,
        net,
        Apply("*", (net, t), "number"),
        d,
        t,
        Apply("*", (q, d), "number"),
        Apply("*", (q, t), "number"),
    ]
    join, order = Mul((_atom("r", "ab"), _atom("s", "bc"))), Mul((_atom("c", "c"), _atom("o", "kcd"), _atom("i", "kx")))
    pair = {"r": 2, "s": 2}
    return {
        "q6": KernelCase(
            {"q": ((), Mul((_atom("i", "x"), Val(x))))}, {"i": 1}, lambda n, rng: _uniform(n, rng, i=[100])
        ),
        "q1": KernelCase(
            {
                "n": ((f, s), item),
                **{f"q{i}": ((f, s), Mul((item, Val(term)))) for i, term in enumerate(terms)},
            },
            {"item": 6},
            lambda n, rng: _uniform(n, rng, item=[3, 2, 50, 10_000, 10, 8]),
        ),
        "join": KernelCase(
            {"q": ((b,), Mul((*join.parts, Val(a), Val(c)))), "n": ((b,), join)},
            pair,
            lambda n, rng: _uniform(n, rng, r=[1000, n // PER_KEY], s=[n // PER_KEY, 1000]),
        ),
        "q3": KernelCase(
            {"q": ((k, d), Mul((*order.parts, Val(x))))},
            {"c": 1, "o": 3, "i": 2},
            _orders,
        ),
        "pairs": KernelCase(
            {"n": ((), Mul((*join.parts, Cmp("<", a, c))))},
            pair,
            lambda n, rng: _uniform(n, rng, r=[n, n // PER_KEY], s=[n // PER_KEY, n]),
        ),
    }


def _uniform(rows: int, rng: np.random.Generator, **relations: Sequence[int]) -> dict[str, Ints]:
    """Random rows, as many of each relation; of each column, how many values it has."""
    n = rows // len(relations)
    return {
        name: np.stack([rng.integers(1, max(2, most + 1), n) for most in columns], axis=1)
        for name, columns in relations.items()
    }


def _orders(rows: int, rng: np.random.Generator) -> dict[str, Ints]:
    """Of ten rows, seven items, two orders and a customer; half the customers are of the segment."""
    customers, orders = max(1, rows // 10), max(1, rows // 5)
    keys, items = np.arange(orders), rows - customers - orders
    return {
        "c": np.arange(0, customers, 2).reshape(-1, 1),
        "o": np.stack([keys, rng.integers(0, customers, orders), rng.integers(0, 2_000, orders)], axis=1),
        "i": np.stack([rng.integers(0, orders, items), rng.integers(1, 10_000, items)], axis=1),
    }


class KernelStream(NamedTuple):
    """Events as the kernel takes them: `kinds` int64[n], `rows` int64[n, columns]."""

    kinds: Ints
    rows: Ints

    def part(self, start: int, stop: int) -> KernelStream:
        """Some of them."""
        return KernelStream(self.kinds[start:stop], self.rows[start:stop])


def _stream(maps: Maps, parts: Sequence[tuple[int, str, Ints]]) -> KernelStream:
    """Rows that come or go, one block after the other."""
    n = sum(len(rows) for *_, rows in parts)
    kinds, columns, at = np.empty(n, np.int64), np.zeros((n, maps.lowered.width), np.int64), 0
    for sign, name, rows in parts:
        kinds[at : at + len(rows)] = maps.kinds[sign, name]
        columns[at : at + len(rows), : rows.shape[1]] = rows
        at += len(rows)
    return KernelStream(kinds, columns)


class KernelFigures(NamedTuple):
    """Nanoseconds of an event that is logged, instructions of one, bytes, and microseconds of a call with one event."""

    event_ns: float
    steps: float
    bytes: int
    call_us: float


def measured(case: KernelCase, rows: int) -> KernelFigures:
    """Load `rows` rows, then follow events that leave as many; take all back in the end."""
    schemas = {name: ("number",) * columns for name, columns in case.relations.items()}
    maps, rng = Maps(compiled(case.definitions, schemas)), np.random.default_rng(5)
    made = case.made(rows, rng)
    start = _stream(maps, [(INSERTION, name, part) for name, part in made.items()])
    maps.run(*start, fills=True)
    # Rows of every relation in proportion go, and come again half of them later: they are in no cache then.
    chosen = {name: part[rng.permutation(len(part))[: EVENTS * len(part) // rows // 2]] for name, part in made.items()}
    goes = _stream(maps, [(DELETION, name, part) for name, part in chosen.items()])
    order = rng.permutation(len(goes.kinds))
    goes = KernelStream(goes.kinds[order], goes.rows[order])
    comes, half = KernelStream(goes.kinds ^ 1, goes.rows), len(order) // 2
    halves = [part.part(at, at + half) for at in (0, half) for part in (goes, comes)]
    stream = KernelStream(
        np.concatenate([part.kinds for part in halves]), np.concatenate([part.rows for part in halves])
    )
    taken = []
    for _ in range(TURNS):
        began = time.process_time()
        maps.run(*stream)
        taken.append((time.process_time() - began) / len(stream.kinds))
    steps, calls = maps.steps / len(stream.kinds), []
    for i in range(min(ONES, half)):
        for one in (goes.part(i, i + 1), comes.part(i, i + 1)):
            began = time.perf_counter()
            maps.run(*one)
            calls.append(time.perf_counter() - began)
    held = maps.memory()
    maps.undo(*start)
    assert len(maps) == 0, "events that are taken back leave nothing"
    return KernelFigures(min(taken) * 1e9, steps, held, float(np.median(calls)) * 1e6)


def main() -> None:
    """Measure, and print one line for each program and size."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--rows", default=",".join(map(str, SIZES)), help="sizes, between commas")
    sizes = [int(size) for size in parser.parse_args().rows.split(",")]
    print("program       rows   events/s   ns/event  instructions  bytes/row  one call (us)")
    for name, case in _cases().items():
        measured(case, 1_000)
        nanoseconds = []
        for rows in sizes:
            found = measured(case, rows)
            nanoseconds.append(found.event_ns)
            print(
                f"{name:8} {rows:>10,} {1e9 / found.event_ns:>10,.0f} {found.event_ns:>10,.0f}"
                f" {found.steps:>13.1f} {found.bytes / rows:>10,.0f} {found.call_us:>14.1f}",
                flush=True,
            )
        if len(sizes) > 1:
            print(f"{name:8} slope {growth(sizes, nanoseconds):.3f}", flush=True)


if __name__ == "__main__":
    main()
