"""The answers of the five finance queries over a book, computed anew by numpy in O(n log n): what results are held to.

    answers({"bids": int64[n, 5], "asks": int64[m, 5]})      {"vwap": {(): value}, "axfinder": {(broker,): value}, ...}

Columns as in `bench.book_stream`. By the definitions of `bench.orderbook_queries`, sums over
integers; groups without a row are left out:

    vwap            sum of price * volume of bids, where a quarter of all volume exceeds the volume above the price
    axfinder        by broker, over bids and asks of the broker whose prices differ by more than 1,000: ask's volume -
                    bid's volume
    broker_spread   by broker, over its bids and asks: ask's price - bid's price
    price_spread    over bids and asks of more than a ten-thousandth of their side's volume: ask's price - bid's price
    missed_trades   over bids and asks that are each in the quarter of volume with the highest prices: ask's price *
                    volume - bid's
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.book_stream import BROKERS, Rows

Answer = dict[tuple[int, ...], int]
T, ID, BROKER, VOLUME, PRICE = range(5)
FAR, SHARE = 1_000, 10_000
QUERIES = ("vwap", "axfinder", "broker_spread", "price_spread", "missed_trades")


def answers(book: Mapping[str, Rows]) -> dict[str, Answer]:
    """All five."""
    bids, asks = book["bids"], book["asks"]
    return {
        "vwap": _whole(_top_quarter(bids), PRICE, VOLUME),
        "axfinder": axfinder(bids, asks),
        "broker_spread": broker_spread(bids, asks),
        "price_spread": price_spread(bids, asks),
        "missed_trades": missed_trades(bids, asks),
    }


def _whole(rows: Rows, *columns: int) -> Answer:
    return {(): int(np.prod(rows[:, columns], axis=1).sum())} if len(rows) else {}


def _top_quarter(rows: Rows) -> Rows:
    """The rows above whose price there is less than a quarter of all volume."""
    order = np.argsort(rows[:, PRICE])
    price, volume = rows[order, PRICE], rows[order, VOLUME]
    running = np.concatenate([[0], np.cumsum(volume)])
    above = running[-1] - running[np.searchsorted(price, rows[:, PRICE], side="right")]
    high: Rows = rows[running[-1] > 4 * above]
    return high


def axfinder(bids: Rows, asks: Rows) -> Answer:
    """By broker: how far the volumes of asks and bids at distant prices differ."""
    found: Answer = {}
    for broker in range(BROKERS):
        ours, theirs = (rows[rows[:, BROKER] == broker] for rows in (bids, asks))
        count, volume = _near(ours[:, PRICE], theirs)
        pairs = len(theirs) - count
        if pairs.sum():
            far = theirs[:, VOLUME].sum() - volume
            found[broker,] = int(far.sum() - (ours[:, VOLUME] * pairs).sum())
    return found


def _near(prices: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """For each price, number and volume of the rows whose price differs by no more than `FAR`."""
    order = np.argsort(rows[:, PRICE])
    price = rows[order, PRICE]
    running = np.concatenate([[0], np.cumsum(rows[order, VOLUME])])
    low, high = np.searchsorted(price, prices - FAR, side="left"), np.searchsorted(price, prices + FAR, side="right")
    return high - low, running[high] - running[low]


def broker_spread(bids: Rows, asks: Rows) -> Answer:
    """By broker: over pairs of its bids and asks, how far their prices are apart."""
    found: Answer = {}
    for broker in range(BROKERS):
        ours, theirs = (rows[rows[:, BROKER] == broker, PRICE] for rows in (bids, asks))
        if len(ours) and len(theirs):
            found[broker,] = int(theirs.sum()) * len(ours) - int(ours.sum()) * len(theirs)
    return found


def price_spread(bids: Rows, asks: Rows) -> Answer:
    """Over pairs of large bids and asks, how far their prices are apart."""
    large_bids, large_asks = (rows[SHARE * rows[:, VOLUME] > rows[:, VOLUME].sum(), PRICE] for rows in (bids, asks))
    if not len(large_bids) or not len(large_asks):
        return {}
    return {(): int(large_asks.sum()) * len(large_bids) - int(large_bids.sum()) * len(large_asks)}


def missed_trades(bids: Rows, asks: Rows) -> Answer:
    """Over pairs of bids and asks of the highest prices, how far their worths differ."""
    high_bids, high_asks = _top_quarter(bids), _top_quarter(asks)
    if not len(high_bids) or not len(high_asks):
        return {}
    ours, theirs = (int((rows[:, PRICE] * rows[:, VOLUME]).sum()) for rows in (high_bids, high_asks))
    return {(): theirs * len(high_bids) - ours * len(high_asks)}
