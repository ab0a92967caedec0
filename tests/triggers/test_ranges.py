"""Sums over ranges: orders against sorted dicts, and statements that add up an interval instead of looping over it."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from lftj.language.clause import Apply, Value, Var
from lftj.triggers import event_kernel as k
from lftj.triggers import order_kernel as o
from lftj.triggers.algebra import Cmp, Mul, Rel, Val
from lftj.triggers.compilation import compiled
from lftj.triggers.maps import Maps, SumOverflow
from tests.conftest import JIT
from tests.triggers.test_event_kernel import check, contents, events_of


class Order:
    """An order beside a dict."""

    def __init__(self, values: int) -> None:
        self.values, self.there = values, {}
        heap = np.zeros(o.FREE + values + 1, np.int64)
        heap[o.TOP] = 1
        self.trees = o.Trees(np.zeros(1 << 18, np.int64), heap, np.zeros((2, o.LEVELS), np.int64))
        self.root = o.new_node(self.trees, values, 1)

    def add(self, key: int, amounts: tuple[int, ...]) -> None:
        given = np.array(amounts, np.int64)
        assert o.has_nodes(self.trees, self.values)
        self.root = o.add_under(self.trees, self.values, self.root, key, given, 0)
        new = tuple(a + b for a, b in zip(self.there.pop(key, (0,) * self.values), amounts, strict=True))
        if any(new):
            self.there[key] = new

    def check(self, rng: Random, most: int) -> None:
        nodes, key = self.trees.nodes, rng.randrange(-1, most + 1)
        for v in range(self.values):
            assert o.sum_of(nodes, self.root, v) == sum(row[v] for row in self.there.values())
            for inclusive in (False, True):
                below = [row[v] for at, row in self.there.items() if at < key or (inclusive and at == key)]
                assert o.sum_below(nodes, self.root, v, key, inclusive) == sum(below)
        bound, total, expected = rng.randrange(most), 0, None
        for at in sorted(self.there):
            total += self.there[at][0]
            if total > bound:
                expected = at
                break
        found, there = o.first_above(nodes, self.root, 0, bound)
        assert (found if there else None) == expected


@pytest.mark.parametrize("most", [10, 300, 5000])
@pytest.mark.parametrize("seed", range(3))
def test_orders_are_sorted_dicts(most, seed):
    rng = Random(seed)
    order = Order(2)
    for step in range(2000 if JIT else 200):
        key = rng.randrange(most)
        if key in order.there and rng.random() < 0.6:
            order.add(key, tuple(-v for v in order.there[key]))
        else:
            order.add(key, (rng.randrange(3), 1))
        if step % 10 == 0:
            order.check(rng, most)
    used = order.trees.heap[o.TOP]
    for key in list(order.there):
        order.add(key, tuple(-v for v in order.there[key]))
    assert order.trees.nodes[order.root + o.ENTRIES] == 0
    for i in range(min(most, 50)):  # nodes that went are used again
        order.add(i, (1, 1))
    assert order.trees.heap[o.TOP] == used


a, b, p, q, v, w = (Var(name, "number") for name in "abpqvw")
BOOK = {"A": ("number", "number", "number"), "B": ("number", "number", "number")}


def arithmetic(op, left, right):
    return Apply(op, (left, right), "number")


AXFINDER = [
    Cmp(">", arithmetic("-", p, q), Value(10, "number")),
    Cmp(">", arithmetic("-", q, p), Value(10, "number")),
]
CONDITIONS = [
    *([condition] for condition in AXFINDER),
    [Cmp("<", p, q)],
    [Cmp(">=", arithmetic("+", p, v), arithmetic("-", q, Value(3, "number")))],
    [Cmp("<", p, q), Cmp("<", q, arithmetic("+", p, Value(5, "number")))],
    [Cmp("<=", Apply("neg", (q,), "number"), p)],
    [Cmp("<", p, q), Cmp("<", p, Value(9, "number"))],
    [Cmp("!=", p, q), Cmp("<", p, q)],
    # Of equal bounds that are both open nothing is between them: the entry there was taken off.
    [Cmp("<", v, q), Cmp("<", q, p)],
    [Cmp("<", p, q), Cmp("<", q, p)],
    [Cmp("<=", v, q), Cmp("<", q, p)],
    [Cmp("<", v, q), Cmp("<=", q, p)],
]


@pytest.mark.parametrize(
    "conditions", CONDITIONS, ids=lambda found: " and ".join(f"{c.left}{c.op}{c.right}" for c in found)
)
@pytest.mark.parametrize("keys", [(), (a,)])
def test_intervals_are_what_loops_add_up(conditions, keys):
    query = (keys, Mul((Rel("A", (a, p, v)), Rel("B", (a, q, w)), *conditions, Val(v))))
    maps, rng = Maps(compiled({"q": query, "n": (keys, Mul(query[1].parts[:-1]))}, BOOK)), Random(1)
    rows, stream = {"A": Counter(), "B": Counter()}, []
    for _ in range(300 if JIT else 40):
        name = rng.choice("AB")
        live = sorted(rows[name].elements())
        row = (
            rng.choice(live)
            if live and rng.random() < 0.4
            else (rng.randrange(2), rng.randrange(25), rng.randrange(-2, 4))
        )
        sign = -1 if row in rows[name] and rng.random() < 0.7 else 1
        stream.append((sign, name, row))
        rows[name][row] += sign
        if not rows[name][row]:
            del rows[name][row]
    half = len(stream) // 2
    maps.run(*events_of(maps, stream[:half]))
    before = contents(maps)
    maps.run(*events_of(maps, stream[half:]))
    maps.undo(*events_of(maps, stream[half:]))
    assert contents(maps) == before
    maps.run(*events_of(maps, stream[half:]))
    check(maps, rows)


def test_statements_walk_down_an_order_where_they_would_loop():
    query = ((a,), Mul((Rel("A", (a, p, v)), Rel("B", (a, q, w)), AXFINDER[0], Val(v))))
    maps = Maps(compiled({"q": query}, BOOK))
    ops = maps.lowered.code.code[:, k.OP].tolist()
    assert k.RANGE in ops
    assert k.SLICE not in ops
    assert k.ALL not in ops
    taken = []
    for n in (10, 1000 if JIT else 50):
        maps.run(*events_of(maps, [(1, "AB"[i % 2], (1, 7 * i, 1)) for i in range(n)]))
        maps.run(*events_of(maps, [(1, "A", (1, 5, 1))]))
        taken.append(maps.steps)
    assert taken[0] == taken[1]


def test_a_sum_over_an_interval_that_no_integer_holds_is_refused():
    """All entries add up to 0 whatever comes, but those of an interval to 10**19."""
    query = ((), Mul((Rel("A", (a, p, v)), Rel("B", (b, q, w)), Cmp("<=", q, p), Cmp("<=", p, w), Val(v))))
    maps, half = Maps(compiled({"q": query}, BOOK)), 5 * 10**18
    assert k.RANGE in maps.lowered.code.code[:, k.OP]
    entries = [(1, "A", (1, i, value)) for i, value in enumerate([-half, half, half, -half])]
    with pytest.raises(SumOverflow):
        maps.run(*events_of(maps, [*entries, (1, "B", (1, 1, 2))]))
    assert len(maps) == 0


def test_a_sum_in_an_order_that_no_integer_holds_leaves_all_as_it_was():
    query = ((a,), Mul((Rel("A", (a, p, v)), Rel("B", (a, q, w)), Cmp("<", p, q), Val(v), Val(w))))
    maps = Maps(compiled({"q": query}, BOOK))
    maps.run(*events_of(maps, [(1, "A", (1, i, 2**61)) for i in range(3)]))
    before = contents(maps)
    with pytest.raises(SumOverflow):
        maps.run(*events_of(maps, [(1, "A", (1, 8, 1)), (1, "A", (1, 9, 2**61)), (1, "A", (1, 7, 2**61))]))
    assert contents(maps) == before
    maps.run(*events_of(maps, [(1, "B", (1, 1, 1))]))
    with pytest.raises(SumOverflow):
        maps.run(*events_of(maps, [(1, "B", (1, 5, 2))]))
