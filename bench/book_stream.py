"""A limit order book as DBToaster's finance queries have it, generated: bids and asks that come and are cancelled.

    bids(t, id, broker_id, volume, price)      asks(t, id, broker_id, volume, price)

    Book(live, events, seed=32)      `live` orders to begin with; then orders come and go by turns, so many stay
    .start()                         the first orders: [("bids", 1, rows), ("asks", 1, rows)], rows int64[n, 5]
    .batches(1_000, fine=True)       the events: lists of blocks (relation, +1 or -1, rows)
    .contents(n)                     the orders that live after n events, by relation

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
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
#: (relation, +1 or -1, rows): int64[n, 5], or tuples of Python.
Block = tuple[str, int, Any]
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
        self.event = np.empty(events, np.int64)
        self.event[0::2], self.event[1::2] = np.arange(live, orders), gone
        self.sign = np.where(np.arange(events) % 2 == 0, 1, -1)

    def start(self) -> list[Block]:
        """The orders before the first event."""
        return [(name, 1, self.rows[: self.live][self.side[: self.live] == i]) for i, name in enumerate(SIDES)]

    def batches(self, size: int, *, fine: bool) -> Iterator[list[Block]]:
        """The events, by `size` of them, as blocks.

        With `fine` in the order in which they happen, an event or a few of a kind a block, as tuples. Without it,
        of every batch what comes is before what goes, and bids before asks each: as many events in four blocks.
        """
        side = self.side[self.event]
        for begin in range(0, len(side), size):
            here = slice(begin, begin + size)
            yield list((self._in_order if fine else self._by_kind)(side[here], self.sign[here], self.event[here]))

    def _in_order(self, side: Rows, sign: Rows, event: Rows) -> Iterator[Block]:
        cuts = np.flatnonzero((np.diff(side) != 0) | (np.diff(sign) != 0)) + 1
        for begin, end in pairwise([0, *cuts.tolist(), len(side)]):
            yield SIDES[side[begin]], int(sign[begin]), [tuple(row) for row in self.rows[event[begin:end]].tolist()]

    def _by_kind(self, side: Rows, sign: Rows, event: Rows) -> Iterator[Block]:
        for way in (1, -1):
            for i, name in enumerate(SIDES):
                of = event[(sign == way) & (side == i)]
                if len(of):
                    yield name, way, self.rows[of]

    def contents(self, events: int | None = None) -> dict[str, Rows]:
        """The orders that live after the first `events`, or after all."""
        count = np.zeros(len(self.rows), np.int64)
        count[: self.live] = 1
        np.add.at(count, self.event[:events], self.sign[:events])
        left = np.flatnonzero(count)
        return {name: self.rows[left[self.side[left] == i]] for i, name in enumerate(SIDES)}
