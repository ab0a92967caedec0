"""The generated order book: what is cancelled is there, as many orders stay, the same events whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from bench.book_stream import Book


@pytest.mark.parametrize("fine", [True, False])
@pytest.mark.parametrize(("live", "events"), [(40, 301), (0, 20), (10, 0)])
def test_orders_come_once_and_go_when_they_are_there(live: int, events: int, fine: bool) -> None:
    book = Book(live, events)
    there: dict[str, set[tuple[int, ...]]] = {"bids": set(), "asks": set()}
    counted = -live
    for blocks in [book.start(), *book.batches(50, fine=fine)]:
        for name, sign, rows in blocks:
            for row in map(tuple, np.asarray(rows).tolist()):
                assert (row in there[name]) == (sign < 0)
                (there[name].add if sign > 0 else there[name].remove)(row)
                counted += 1
        now = book.contents(counted)
        assert {name: set(map(tuple, rows.tolist())) for name, rows in now.items()} == there
    assert counted == events
    assert sum(map(len, there.values())) == live + events % 2
    assert all(np.array_equal(rows, book.contents(events)[name]) for name, rows in book.contents().items())


def test_bids_are_below_the_middle_and_asks_above() -> None:
    book = Book(1_000, 100)
    left = book.contents()
    assert 0 < left["bids"][:, 4].min() < left["bids"][:, 4].max() < left["asks"][:, 4].min()
    assert len(np.unique(left["bids"][:, 4])) > 400


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = Book(50, 100), Book(50, 100), Book(50, 100, seed=33)
    assert np.array_equal(first.rows, again.rows)
    assert np.array_equal(first.event, again.event)
    assert not np.array_equal(first.rows, other.rows)
