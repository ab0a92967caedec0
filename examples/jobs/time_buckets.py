"""Counts by the hour: requests of a web site, those that failed, and the hours in which too many did.

    python examples/jobs/time_buckets.py [number of requests]

Requests come in batches, a few of them late; a commit reports the hours whose counts differ. Prints:

    19,960 requests in 2,113 hours, 105 of them bad
    20 more requests: 5 counts differ
    20 more requests: 3 counts differ
"""

import sys

import numpy as np

import lftj

RULES = """
    .decl request(id:number, at:timestamp, status:number)

    hits[h]     = count : { request(_, at, _), h = bucket(at, "1h") }.
    failures[h] = count : { request(_, at, s), s >= 500, h = bucket(at, "1h") }.
    bad(h)      :- failures[h] * 50 > hits[h].
"""
START, DAYS = np.datetime64("2024-01-01", "us"), 90


def make(requests, seed=1):
    """The columns of `request`: more by day than by night, and some failures, of which there are more in some hours."""
    rng = np.random.default_rng(seed)
    hours = 1 + 0.8 * np.sin(np.arange(24 * DAYS) * np.pi / 12)
    hour = np.repeat(np.arange(24 * DAYS), rng.multinomial(requests, hours / hours.sum()))
    at = hour * 3_600_000_000 + rng.integers(0, 3_600_000_000, requests)
    late = rng.random(requests) < 0.01
    arrival = np.argsort(at + late * rng.integers(0, 6 * 3_600_000_000, requests), kind="stable")
    failing = np.where(rng.random(24 * DAYS) < 0.02, 0.05, 0.005)
    status = np.where(rng.random(requests) < failing[hour], 503, 200)
    return {
        "id": np.arange(requests),
        "at": START + at[arrival].astype("timedelta64[us]"),
        "status": status[arrival],
    }


def some(columns, lo, hi):
    """Rows lo to hi of columns."""
    return {name: column[lo:hi] for name, column in columns.items()}


def load(columns):
    """The database."""
    db = lftj.Database(RULES)
    db.load("request", columns)
    return db


def arrive(db, columns):
    """Insert requests that come together; what that changes of the counts, and of the bad hours."""
    with db.transaction() as tx:
        tx.insert("request", columns)
    return tx.delta["hits"].inserted, tx.delta["bad"]


def main(requests=20_000):
    """Requests, of which the last come in two batches."""
    columns, half = make(requests), max(requests // 1_000, 1)
    db = load(some(columns, 0, requests - 2 * half))
    print(f"{len(db['request']):,} requests in {len(db['hits']):,} hours, {len(db['bad'])} of them bad")
    for lo in (requests - 2 * half, requests - half):
        hits, bad = arrive(db, some(columns, lo, lo + half))
        print(f"{half} more requests: {len(hits)} counts differ")
        for (hour,) in bad.inserted:
            print(f"  bad: {hour:%a %d %b, %H:%M}")
    return db


if __name__ == "__main__":
    db = main(*map(int, sys.argv[1:]))
