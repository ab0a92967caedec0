"""A limit order book as DBToaster's finance queries have it, generated: bids and asks that come and are cancelled.

    bids(t, id, broker_id, volume, price)      asks(t, id, broker_id, volume, price)

    Book(live, events, seed=32)      `live` orders to begin with; then orders come and go by turns, so many stay
    .start()                         the first orders: [("bids", 1, rows), ("asks", 1, rows)], rows int64[n, 5]
    .blocks(run)                     the events as blocks (relation, +1 or -1, rows); see there
    .contents()                      the rows that are left, by relation

A new order is a bid or an ask by chance, the one that is cancelled any of those that live. `t` is the number of the
event, ids are numbers in that order. Prices are whole ticks: the distance from the middle (1,000,000) is exponential,
200,000 in the mean, so a book of a million orders has some hundred thousand prices, and one of ten thousand has hardly
two orders of one price: what loops over prices loops over the book. Volumes are whole and Pareto (the chance of more
than v is 1 / v), at most 100,000, so that in a book of any size some orders are more than a ten-thousandth of it.
Brokers are 0 to 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
#: (relation, +1 or -1, rows).
Block = tuple[str, int, Rows]
SIDES = ("bids", "asks")
COLUMNS = ("t", "id", "broker_id", "volume", "price")
MIDDLE, DISTANCE, LARGEST, BROKERS = 1_000_000, 200_000.0, 100_000, 10


class Book:
    """`rows` int64[n, 5] of every order that ever comes, `side` of each; `event`, `sign`: what happens, in order."""

    def __init__(self, live: int, events: int, seed: int = 32) -> None:
        rng = np.random.default_rng(seed)
        coming = events - events // 2
        orders = live + coming
        self.live, self.side = live, rng.integers(0, 2, orders)
        away = np.minimum(rng.exponential(DISTANCE, orders).astype(np.int64), MIDDLE - 2) + 1
        number = np.arange(orders)
        self.rows: Rows = np.stack(
            [
                np.where(number < live, number, live + 2 * (number - live)),
                number,
                rng.integers(0, BROKERS, orders),
                np.minimum(1 / (1 - rng.random(orders)), LARGEST).astype(np.int64),
                np.where(self.side == 0, MIDDLE - away, MIDDLE + away),
            ],
            axis=1,
        )
        there = list(range(live))
        gone = []
        for new, at in enumerate(rng.integers(0, live + 1, events // 2).tolist(), live):
            there.append(new)
            gone.append(there[at])
            there[at] = there[-1]
            there.pop()
        there.extend(range(live + events // 2, orders))
        self.left = np.array(sorted(there), np.int64)
        self.event = np.empty(events, np.int64)
        self.event[0::2], self.event[1::2] = np.arange(live, orders), gone
        self.sign = np.where(np.arange(events) % 2 == 0, 1, -1)

    def start(self) -> list[Block]:
        """The orders before the first event."""
        return [(name, 1, self.rows[: self.live][self.side[: self.live] == i]) for i, name in enumerate(SIDES)]

    def blocks(self, run: int = 1) -> Iterator[Block]:
        """The events. With `run` 1 in the order in which they happen, consecutive ones of a kind in one block.

        With more, of every `run` events those that bring come before those that take, bids before asks each: as many
        events, in an order of fewer blocks. Where an order is cancelled in the run that brings it, it comes first.
        """
        side = self.side[self.event]
        if run == 1:
            cuts = np.flatnonzero(np.diff(side) | np.diff(self.sign)) + 1
            ends = [0, *cuts.tolist(), len(side)]
            for begin, end in pairwise(ends):
                if begin < end:
                    yield SIDES[side[begin]], int(self.sign[begin]), self.rows[self.event[begin:end]]
            return
        for begin in range(0, len(side), run):
            sign, event = self.sign[begin : begin + run], self.event[begin : begin + run]
            for way in (1, -1):
                for i, name in enumerate(SIDES):
                    of = event[(sign == way) & (side[begin : begin + run] == i)]
                    if len(of):
                        yield name, way, self.rows[of]

    def contents(self) -> dict[str, Rows]:
        """The orders after the last event."""
        return {name: self.rows[self.left[self.side[self.left] == i]] for i, name in enumerate(SIDES)}
