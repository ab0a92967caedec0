"""What order book queries are held to is what their definitions say, pair by pair."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from bench.book_answers import answers
from bench.book_stream import Book


def by_pairs(bids: list[Any], asks: list[Any]) -> dict[str, dict[tuple[int, ...], int]]:
    """The five queries by their definitions, over rows (t, id, broker, volume, price)."""
    found: dict[str, dict[tuple[int, ...], int]] = {name: defaultdict(int) for name in ANSWERS}

    def high(rows: list[Any], price: int) -> bool:
        return 0.25 * sum(r[3] for r in rows) > sum(r[3] for r in rows if r[4] > price)

    for b in bids:
        if high(bids, b[4]):
            found["vwap"][()] += b[3] * b[4]
        for a in asks:
            if a[2] == b[2]:
                found["broker_spread"][b[2],] += a[4] - b[4]
            if a[2] == b[2] and (a[4] - b[4] > 1_000 or b[4] - a[4] > 1_000):
                found["axfinder"][b[2],] += a[3] - b[3]
            if b[3] * 10_000 > sum(r[3] for r in bids) and a[3] * 10_000 > sum(r[3] for r in asks):
                found["price_spread"][()] += a[4] - b[4]
            if high(bids, b[4]) and high(asks, a[4]):
                found["missed_trades"][()] += a[3] * a[4] - b[3] * b[4]
    return {name: dict(groups) for name, groups in found.items()}


ANSWERS = ("vwap", "axfinder", "broker_spread", "price_spread", "missed_trades")


@pytest.mark.parametrize("live", [0, 3, 120])
@pytest.mark.parametrize("near", [False, True])
def test_answers_are_those_of_the_definitions(live: int, near: bool) -> None:
    left = Book(live, 30).contents()
    if near:  # prices around one another, on both sides
        for rows in left.values():
            rows[:, 4] = rows[:, 4] % 4_000
    expected = by_pairs(*(rows.tolist() for rows in left.values()))
    assert answers(left) == expected
