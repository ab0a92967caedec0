"""A limit order book, generated: resting orders of both sides, changed one at a time, and what rules derive of it.

    order(id, side, price, qty, owner)   a resting order; ids are texts, and every new one is a text that is new
    trade(seq, price, qty)               what was executed
    listed(name)                         names that nothing but the symbol table has to do with

An event adds an order, changes the quantity of one, cancels one, or executes a part of the best order of a side.
Prices are ticks around a middle that walks, so that both sides have some hundred levels with a few orders each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

Row = tuple[Any, ...]
#: The changes of one transaction: +1 for an insert, -1 for an erase, relation, row.
Changes = list[tuple[int, str, Row]]
Facts = dict[str, set[Row]]

PROGRAM = """
.decl order(id:symbol, side:symbol, price:number, qty:number, owner:symbol)
.decl trade(seq:number, price:number, qty:number)
.decl listed(name:symbol)
best_bid[] = max p : { order(_, "buy", p, _, _) }.
best_ask[] = min p : { order(_, "sell", p, _, _) }.
spread(a - b) :- best_ask(a), best_bid(b).
level[s, p] = sum q : { order(_, s, p, q, _) }.
queue[s, p] = count : { order(_, s, p, _, _) }.
exposure[o, s] = sum p * q : { order(_, s, p, q, o) }.
turnover[] = sum p * q : { trade(_, p, q) }.
traded[] = sum q : { trade(_, _, q) }.
vwap(t / q) :- turnover(t), traded(q), q > 0.
ahead(i, j) :- order(i, s, p, _, o), order(j, s, p, _, o), i < j.
"""
HEADS = ("best_bid", "best_ask", "spread", "level", "queue", "exposure", "turnover", "traded", "vwap", "ahead")
OWNERS, SPREAD, LEVELS, LOT = 40, 3, 60, 100
ADD, MODIFY, CANCEL = 0.45, 0.65, 0.85  # above: execute


def facts(seed: int, orders: int, names: int) -> Facts:
    """A book of so many `orders`, and so many `names` besides."""
    rng = random.Random(seed)
    return {
        "order": {_order(rng, i, 10_000) for i in range(orders)},
        "trade": {(0, 10_000, LOT)},
        "listed": {(f"name-{i:07}",) for i in range(names)},
    }


def _order(rng: random.Random, i: int, middle: int) -> Row:
    side = rng.choice(("buy", "sell"))
    away = SPREAD + min(int(rng.expovariate(0.08)), LEVELS)
    price = middle - away if side == "buy" else middle + away
    return f"order-{i:08}", side, price, LOT * rng.randint(1, 20), f"owner-{rng.randrange(OWNERS):02}"


def events(start: Mapping[str, set[Row]], seed: int) -> Iterator[Changes]:
    """What happens to the book `start`, for ever: one transaction after the other."""
    rng = random.Random(seed + 1)
    orders = sorted(start["order"])
    made, middle, seq = len(orders), 10_000, len(start["trade"])
    while True:
        dice = rng.random()
        middle += rng.choice((-1, 0, 0, 0, 1))
        if dice < ADD or len(orders) < 10:
            made += 1
            orders.append(_order(rng, made, middle))
            yield [(1, "order", orders[-1])]
            continue
        at = rng.randrange(len(orders))
        if dice >= CANCEL:
            side = rng.choice(("buy", "sell"))
            best = max if side == "buy" else min
            own = [i for i, order in enumerate(orders) if order[1] == side] or [at]
            at = best(own, key=lambda i: orders[i][2])
        old = orders[at]
        left = old[3]
        if dice < MODIFY:
            left = max(LOT, old[3] + LOT * rng.choice((-2, -1, 1, 2)))
        elif dice < CANCEL:
            left = 0
        else:
            left -= LOT * rng.randint(1, old[3] // LOT)
        changes: Changes = [(-1, "order", old)]
        if dice >= CANCEL:
            changes.append((1, "trade", (seq, old[2], old[3] - left)))
            seq += 1
        if left:
            orders[at] = (*old[:3], left, old[4])
            changes.append((1, "order", orders[at]))
        else:
            orders[at] = orders[-1]
            orders.pop()
        yield changes


def expected(now: Mapping[str, set[Row]]) -> dict[str, set[Row]]:
    """What the heads hold over the facts `now`, computed anew in plain Python."""
    bids = [p for _, side, p, _, _ in now["order"] if side == "buy"]
    asks = [p for _, side, p, _, _ in now["order"] if side == "sell"]
    level: dict[Row, int] = {}
    queue: dict[Row, int] = {}
    exposure: dict[Row, int] = {}
    own: dict[Row, list[str]] = {}
    for i, side, p, q, owner in now["order"]:
        level[side, p] = level.get((side, p), 0) + q
        queue[side, p] = queue.get((side, p), 0) + 1
        exposure[owner, side] = exposure.get((owner, side), 0) + p * q
        own.setdefault((side, p, owner), []).append(i)
    turnover, traded = sum(p * q for _, p, q in now["trade"]), sum(q for _, _, q in now["trade"])
    return {
        "best_bid": {(max(bids),)} if bids else set(),
        "best_ask": {(min(asks),)} if asks else set(),
        "spread": {(min(asks) - max(bids),)} if bids and asks else set(),
        "level": {(*key, value) for key, value in level.items()},
        "queue": {(*key, value) for key, value in queue.items()},
        "exposure": {(*key, value) for key, value in exposure.items()},
        "turnover": {(turnover,)},
        "traded": {(traded,)},
        "vwap": {(turnover // traded,)} if traded else set(),
        "ahead": {(i, j) for ids in own.values() for i in ids for j in ids if i < j},
    }
