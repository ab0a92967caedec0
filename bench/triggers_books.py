"""DBToaster's finance queries over an order book: events a second, and how their time grows with the book.

    measured({"query": "vwap", "live": 10_000, "events": 100_000})

A book of `live` orders is there; then orders come and go by turns (bench.book_stream), given to `db.apply` in the order
in which they happen, every event a block of its own, and again in blocks of up to 1,000 of a kind. The answers after
the last event are compared with numpy's over the orders that are left (bench.book_answers).
"""

from __future__ import annotations

import time
from typing import Any

from bench.book_answers import answers
from bench.book_stream import Book
from bench.triggers_run import derived_bytes, differ, followed, kept_by

LIVE = (10_000, 100_000, 1_000_000)
EVENTS, MANY, BUDGET = 100_000, 1_000_000, 60.0
RUN, CALL = 1_000, 10_000
SLOPE = 0.15
#: Queries whose growth is held to `SLOPE`.
HELD_TO = ("vwap", "axfinder")


def title(live: int, events: int) -> str:
    """What a book is called in the results."""
    return f"{live:,} live, {events:,} events"


def database(query: str) -> Any:
    """A database with the query's rules, empty."""
    import lftj
    from bench.orderbook_queries import PROGRAMS

    return lftj.Database(PROGRAMS[query])


def warm(query: str) -> None:
    """Compile all that the query needs."""
    book = Book(200, 400)
    db = database(query)
    for batch in [book.start(), *book.batches(100, fine=True)]:
        followed(db, [batch], BUDGET)
        list(db[query])


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """A query over a book of `live` orders, so many events; within the budget."""
    query, live, events = request["query"], request["live"], request["events"]
    warm(query)
    found: dict[str, Any] = {}
    wrong = ""
    for name, fine in (("runs", False), ("single", True)):
        book = Book(live, events)
        db = database(query)
        began = time.process_time()
        followed(db, [book.start()], 600.0)
        list(db[query])
        found["load_seconds"] = time.process_time() - began
        taken = followed(db, book.batches(RUN, fine=fine), request.get("budget", BUDGET), CALL)
        found[name] = taken.figures()
        expected = [(*key, value) for key, value in answers(book.contents(taken.events))[query].items()]
        if told := differ(db[query], expected):
            wrong = wrong or f"{name}: {told}"
    found["bytes"] = derived_bytes(db, ("bids", "asks"))
    with db.transaction() as tx:
        tx.insert("bids", [(0, -1, 0, 1, 1)])
    found["strategies"] = dict(kept_by(tx.stats))
    found["event_us"] = 1e6 / found["runs"]["per_second"]
    return {"status": "error", "reason": wrong, **found} if wrong else {"status": "ok", **found}
