"""Wide tables and aggregates in the style of TPC-H: its customers, orders and line items, generated, and five queries.

All columns of the three tables are there (8, 9 and 16), since what a rule does not name is what is looked at here:
rules over wide tables must cost what the same rules over narrow ones do. Money is in cents, a discount in percent, a
day is a number. Q1, Q3, Q6, Q12 and Q14 are named after the queries that they are like.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from bench.orderbook import Changes, Facts, Row

PROGRAM = """
.decl customer(ckey:number, name:symbol, address:symbol, nation:number, phone:symbol, balance:number, segment:symbol,
    note:symbol)
.decl orders(okey:number, ckey:number, status:symbol, total:number, day:number, priority:symbol, clerk:symbol,
    ship_priority:number, note:symbol)
.decl lineitem(okey:number, part:number, supplier:number, line:number, quantity:number, price:number, discount:number,
    tax:number, returned:symbol, status:symbol, shipped:number, committed:number, received:number, instructions:symbol,
    mode:symbol, note:symbol)
q1_quantity[f, s] = sum q : { lineitem(_, _, _, _, q, _, _, _, f, s, d, _, _, _, _, _), d <= 2000 }.
q1_price[f, s] = sum p * (100 - x) : { lineitem(_, _, _, _, _, p, x, _, f, s, d, _, _, _, _, _), d <= 2000 }.
q1_count[f, s] = count : { lineitem(_, _, _, _, _, _, _, _, f, s, d, _, _, _, _, _), d <= 2000 }.
q3[o, d, sp] = sum p * (100 - x) : { customer(c, _, _, _, _, _, "building", _), orders(o, c, _, _, d, _, _, sp, _),
    lineitem(o, _, _, _, _, p, x, _, _, _, sd, _, _, _, _, _), d < 1200, sd > 1200 }.
q6[] = sum p * x : { lineitem(_, _, _, _, q, p, x, _, _, _, d, _, _, _, _, _), d >= 365, d < 730, x >= 5, x <= 7,
    q < 24 }.
q12[m, pr] = count : { orders(o, _, _, _, _, pr, _, _, _), lineitem(o, _, _, _, _, _, _, _, _, _, sd, cd, rd, _, m, _),
    cd < rd, sd < cd, rd >= 365, rd < 1095 }.
q14[n] = sum t : { customer(c, _, _, n, _, _, _, _), orders(_, c, _, t, _, _, _, _, _) }.
"""
HEADS = ("q1_quantity", "q1_price", "q1_count", "q3", "q6", "q12", "q14")
SEGMENTS = ("automobile", "building", "furniture", "household", "machinery")
PRIORITIES = ("1-urgent", "2-high", "3-medium", "4-not specified", "5-low")
MODES = ("air", "fob", "mail", "rail", "reg air", "ship", "truck")
DAYS = 2_400


def _customer(rng: random.Random, c: int) -> Row:
    segment = rng.choice(SEGMENTS)
    return (c, f"customer {c}", f"street {c % 97}", c % 25, f"{c % 100}-555", rng.randrange(100_000), segment, "none")


def _order(rng: random.Random, o: int, customers: int) -> Row:
    day, priority = rng.randrange(DAYS), rng.choice(PRIORITIES)
    clerk = f"clerk {rng.randrange(10)}"
    return (o, rng.randrange(customers), rng.choice("fop"), rng.randrange(1, 500_000), day, priority, clerk, 0, "none")


def _line(rng: random.Random, order: Row, line: int) -> Row:
    quantity, shipped = rng.randint(1, 50), order[4] + rng.randint(1, 120)
    committed, received = order[4] + rng.randint(30, 90), shipped + rng.randint(1, 30)
    price = quantity * rng.randint(900, 2_000)
    keys = (order[0], rng.randrange(2_000), rng.randrange(100), line)
    money = (quantity, price, rng.randint(0, 10), rng.randint(0, 8))
    return (
        *keys,
        *money,
        rng.choice("anr"),
        rng.choice("fo"),
        shipped,
        committed,
        received,
        "none",
        rng.choice(MODES),
        "-",
    )


def facts(seed: int, orders: int) -> Facts:
    """So many orders with 1 to 7 line items each, of a tenth as many customers."""
    rng = random.Random(seed)
    customers = max(1, orders // 10)
    placed = [_order(rng, o, customers) for o in range(orders)]
    return {
        "customer": {_customer(rng, c) for c in range(customers)},
        "orders": set(placed),
        "lineitem": {_line(rng, order, line) for order in placed for line in range(rng.randint(1, 7))},
    }


def events(start: Mapping[str, set[Row]], seed: int) -> Iterator[Changes]:
    """What happens to the tables `start`, for ever: a line or an order comes, goes or changes."""
    rng = random.Random(seed + 1)
    orders, lines = sorted(start["orders"]), sorted(start["lineitem"])
    customers, made = len(start["customer"]), len(orders)
    while True:
        dice = rng.random()
        if dice < 0.1:
            orders.append(_order(rng, made, customers))
            made += 1
            yield [(1, "orders", orders[-1])]
        elif dice < 0.2:
            at = rng.randrange(len(orders))
            old = orders[at]
            orders[at] = (*old[:5], rng.choice(PRIORITIES), *old[6:])
            yield [(-1, "orders", old), (1, "orders", orders[at])] if orders[at] != old else []
        elif dice < 0.6:
            lines.append(_line(rng, rng.choice(orders), made + len(lines)))
            yield [(1, "lineitem", lines[-1])]
        else:
            at = rng.randrange(len(lines))
            lines[at], gone = lines[-1], lines[at]
            lines.pop()
            yield [(-1, "lineitem", gone)]


def expected(now: Mapping[str, set[Row]]) -> dict[str, set[Row]]:
    """What the heads hold over the facts `now`, computed anew in plain Python."""
    found: dict[str, dict[Row, int]] = {head: {} for head in HEADS}

    def add(head: str, group: Row, value: int) -> None:
        found[head][group] = found[head].get(group, 0) + value

    customers = {customer[0]: customer for customer in now["customer"]}
    orders = {order[0]: order for order in now["orders"]}
    for line in now["lineitem"]:
        quantity, price, discount, shipped, committed, received = *line[4:7], *line[10:13]
        if shipped <= 2000:
            add("q1_quantity", line[8:10], quantity)
            add("q1_price", line[8:10], price * (100 - discount))
            add("q1_count", line[8:10], 1)
        if 365 <= shipped < 730 and 5 <= discount <= 7 and quantity < 24:
            add("q6", (), price * discount)
        order = orders[line[0]]
        if customers[order[1]][6] == "building" and order[4] < 1200 < shipped:
            add("q3", (order[0], order[4], order[7]), price * (100 - discount))
        if committed < received and shipped < committed and 365 <= received < 1095:
            add("q12", (line[14], order[5]), 1)
    for order in now["orders"]:
        add("q14", (customers[order[1]][3],), order[3])
    return {head: {(*group, value) for group, value in groups.items()} for head, groups in found.items()}
