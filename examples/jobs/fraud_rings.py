"""Fraud rings: money that comes back within three days, through accounts that share a device.

    python examples/jobs/fraud_rings.py [number of payments]

Amounts are decimals and times are timestamps. Payments arrive in batches; a commit reports the rings that they close,
and a login the rings that it makes suspect. Prints:

    2,500 payments, 16 rings, 8 suspect
    625 more payments: 0 more suspect rings
    625 more payments: 0 more suspect rings
    625 more payments: 1 more suspect rings
    625 more payments: 4 more suspect rings
    account 787 moved the most of those in suspect rings: 5,696.09
    56 and 532 share a device: 1 more suspect rings
"""

import sys

import numpy as np
import pyarrow as pa

import lftj

RULES = """
    .decl payment(id:number, payer:number, payee:number, amount:decimal(12,2), at:timestamp)
    .decl login(account:number, device:number)

    // Payment i goes on as payment j: within three days, and at least nine tenths of it.
    passed(i, j)  :- payment(i, _, b, m, t), payment(j, b, _, n, u), t < u, u <= t + @3d, n <= m, n * 10 >= m * 9.
    ring(i, j, k) :- passed(i, j), passed(j, k), payment(i, a, _, _, t), payment(k, _, a, _, u), u <= t + @3d.

    // Accounts in one hand: they share a device, or both share one with a third.
    linked(a, b)  :- login(a, d), login(b, d).
    linked(a, c)  :- linked(a, b), linked(b, c).

    suspect(i, j, k) :- ring(i, j, k), payment(i, a, b, _, _), payment(j, b, c, _, _), a != c,
                        (linked(a, b) ; linked(b, c) ; linked(a, c)).
    strangers(a, b)  :- ring(i, j, k), !suspect(i, j, k), payment(i, a, b, _, _).
    member(x)     :- suspect(i, j, k), (p = i ; p = j ; p = k), payment(p, x, _, _, _).
    moved[x]      = sum m : { member(x), payment(_, x, _, m, _) }.
"""
START, DAYS = np.datetime64("2024-01-01", "us"), 365


def make(payments, seed=1):
    """The tables `payment` and `login` of a year: five payments of an account; one of 200 is the first of a ring."""
    rng = np.random.default_rng(seed)
    accounts = max(payments // 5, 10)
    payer, payee = rng.integers(0, accounts, (2, payments))
    payee[payee == payer] += 1
    cents = np.round(rng.lognormal(9, 1.5, payments)).astype(np.int64) + 100
    at = rng.integers(0, DAYS * 86_400_000_000, payments)
    # A ring is three payments in a row, through accounts a, b and c: each some hours later and a little less.
    first = np.arange(payments // 200) * 200
    a, b, c = rng.integers(0, accounts, (3, len(first)))
    later = np.zeros(len(first), np.int64)
    for step, (x, y) in enumerate(((a, b), (b, c), (c, a))):
        payer[first + step], payee[first + step] = x, y
        cents[first + step] = cents[first] * (100 - 3 * step) // 100
        at[first + step] = at[first] + later
        later += 3_600_000_000 * rng.integers(1, 24, len(first))
    order = np.argsort(at, kind="stable")
    account = np.r_[np.arange(accounts), b[::2]]
    device = np.r_[np.arange(accounts), a[::2]]  # half of the rings are in one hand
    return {
        "payment": pa.table(
            {
                "id": np.arange(payments),
                "payer": payer[order],
                "payee": payee[order],
                "amount": decimals(cents[order]),
                "at": START + at[order].astype("timedelta64[us]"),
            }
        ),
        "login": pa.table({"account": account, "device": device}).group_by(["account", "device"]).aggregate([]),
    }


def decimals(cents):
    """Amounts of money as an Arrow array."""
    both = np.stack([cents, cents >> 63], axis=1)  # 128 bits, the low half first
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(both)])


def load(tables):
    """The database."""
    db = lftj.Database(RULES)
    for name, table in tables.items():
        db.load(name, table)
    return db


def arrive(db, name, rows):
    """Insert rows that come together; the rings that become suspect."""
    with db.transaction() as tx:
        tx.insert(name, rows)
    return tx.delta["suspect"].inserted


def main(payments=5_000):
    """A year of payments, of which the second half comes in four batches, and a login."""
    tables = make(payments)
    table = tables["payment"]
    last = payments // 2
    db = load({**tables, "payment": table.slice(0, payments - last)})
    print(f"{len(db['payment']):,} payments, {len(db['ring'])} rings, {len(db['suspect'])} suspect")
    for lo in range(0, last, -(-last // 4)):
        batch = table.slice(payments - last + lo, -(-last // 4))
        print(f"{len(batch)} more payments: {len(arrive(db, 'payment', batch))} more suspect rings")
    x, moved = max(db["moved"], key=lambda row: row[1])
    print(f"account {x} moved the most of those in suspect rings: {moved:,}")
    a, b = next(iter(db["strangers"]))
    print(f"{a} and {b} share a device: {len(arrive(db, 'login', [(a, -1), (b, -1)]))} more suspect rings")
    return db


if __name__ == "__main__":
    db = main(*map(int, sys.argv[1:]))
