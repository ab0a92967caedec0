"""A change feed of orders, as a database's log writes it, into five views that are right after every batch.

    python examples/jobs/change_feed.py [number of events]

An order is new, then paid, then sent; some are cancelled, and old ones are deleted. Each step is two events: the row
as it was goes, and the row as it is comes. Prints:

    20,000 rows in 20 commits; go on with start=20000
    140 cancelled, 981 new, 743 paid, 604 sent
    books 19,520.01, games 9,022.94, garden 7,096.83, kitchen 7,297.71, music 8,505.60, toys 6,123.67
    358 of 776 customers spent more than 300
"""

import sys

import numpy as np
import pyarrow as pa

import lftj

RULES = """
    .decl orders(id:number, customer:number, product:number, cents:number, status:symbol)
    .decl category(product:number, name:symbol)

    by_status[s] = count : { orders(_, _, _, _, s) }.
    spent[c]     = sum m : { orders(_, c, _, m, s), s != "cancelled" }.
    good(c)      :- spent[c] > 30000.
    sold[n]      = sum m : { orders(_, _, p, m, "sent"), category(p, n) }.
    dearest[p]   = max m : { orders(_, _, p, m, s), s != "cancelled" }.
"""
VIEWS = ("by_status", "spent", "good", "sold", "dearest")
STATUSES = np.array(["new", "paid", "sent", "cancelled"])
CATEGORIES = np.array(["books", "games", "garden", "kitchen", "music", "toys"])


def make(events, seed=1):
    """The table `category`, and the feed: columns op ("I", "D") and those of `orders`."""
    rng = np.random.default_rng(seed)
    orders = events // 3 + 10
    columns = {
        "id": np.arange(orders),
        "customer": rng.integers(0, orders // 8 + 1, orders),
        "product": (rng.random(orders) ** 3 * (orders // 50 + 3)).astype(np.int64),
        "cents": rng.integers(100, 20_000, orders),
    }
    cancelled, goes_on, time = rng.random(orders) < 0.1, np.full(orders, True), np.arange(orders) * 1.0
    found, status = (
        [(columns["id"], np.zeros(orders, np.int64), np.full(orders, "I"), time)],
        np.zeros(orders, np.int64),
    )
    for step in (1, 2, 3):  # paid or cancelled, sent, deleted
        goes_on &= rng.random(orders) < 0.85
        time = time + rng.exponential(orders / 20, orders) + 1
        some = np.flatnonzero(goes_on & ~(cancelled & (step == 2)))
        found.append((some, status[some], np.full(len(some), "D"), time[some]))
        status[some] = np.where(cancelled[some], 3, step)
        if step < 3:
            found.append((some, status[some], np.full(len(some), "I"), time[some]))
    id, status, op, time = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort([op == "I", time])[:events]
    products = np.arange(columns["product"].max() + 1)
    return {
        "category": pa.table({"product": products, "name": CATEGORIES[products % len(CATEGORIES)]}),
        "feed": pa.table(
            {
                "op": op[order],
                **{name: column[id[order]] for name, column in columns.items()},
                "status": STATUSES[status[order]],
            }
        ),
    }


def load(tables):
    """The database, in which nothing was ordered yet."""
    db = lftj.Database(RULES)
    db.load("category", tables["category"])
    return db


def follow(db, feed, batch_rows=1_000, on_commit=None):
    """Take the feed in, in commits of so many events; what was done, as a report."""
    return db.load_changes("orders", feed, op="op", batch_rows=batch_rows, on_commit=on_commit)


def main(events=20_000):
    """A feed, and the views at its end."""
    tables = make(events)
    db = load(tables)
    report = follow(db, tables["feed"])
    print(report)
    print(", ".join(f"{n:,} {status}" for status, n in db["by_status"]))
    print(", ".join(f"{name} {cents / 100:,.2f}" for name, cents in db["sold"]))
    print(f"{len(db['good'])} of {len(db['spent'])} customers spent more than 300")
    return db


if __name__ == "__main__":
    db = main(*map(int, sys.argv[1:]))
