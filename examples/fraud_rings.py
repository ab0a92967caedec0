"""Fraud rings: money that comes back within three days, through accounts that share a device.

Payments come as a data frame (of pandas if it is there, else a dict of columns does), and so do those of the next day.
What they make suspect comes out as the exact change. Prints:

    6 payments, 1 ring
      + suspect: ann -> bo -> cy
      + ann paid 900.00
      + bo paid 895.00
      + cy paid 860.00

    the next day: 8 payments, 2 rings

    eve uses phone 2 as well; that gus used phone 1 was a mistake
      - suspect: ann -> bo -> cy
      + suspect: dee -> eve -> fay
      - ann paid 900.00
      - bo paid 895.00
      - cy paid 860.00
      + dee paid 500.00
      + eve paid 497.00
      + fay paid 480.00
"""

import lftj

try:
    from pandas import DataFrame as frame
except ImportError:
    frame = dict  # a dict of columns is loaded just as well, and so are polars and Arrow

RULES = """
    .decl payment(id:number, payer:symbol, payee:symbol, cents:number, day:number)
    .decl login(account:symbol, device:symbol)

    // Accounts in one hand: they share a device, or both share one with a third.
    linked(a, b) :- login(a, d), login(b, d).
    linked(a, c) :- linked(a, b), linked(b, c).

    // Payment i goes on as payment j: within three days, and at least nine tenths of it.
    passed(i, j) :- payment(i, _, b, m, d), payment(j, b, _, n, e),
                    d <= e, e <= d + 3, n <= m, n * 10 >= m * 9, i != j.
    ring(a, b, c) :- passed(i, j), passed(j, k),
                     payment(i, a, b, _, d), payment(j, b, c, _, _), payment(k, c, a, _, e),
                     a != b, b != c, a != c, e <= d + 3.

    suspect(a, b, c) :- ring(a, b, c), (linked(a, b) ; linked(b, c) ; linked(a, c)).
    involved(x)      :- suspect(a, b, c), (x = a ; x = b ; x = c).
    paid[x] = sum m  : { involved(x), payment(_, x, _, m, _) }.
"""
PAYMENTS = {
    "id": [1, 2, 3, 4, 5, 6],
    "payer": ["ann", "bo", "cy", "dee", "eve", "bo"],
    "payee": ["bo", "cy", "ann", "eve", "fay", "dee"],
    "cents": [90_000, 88_000, 86_000, 50_000, 49_000, 1_500],
    "day": [1, 2, 3, 3, 3, 4],
}
NEXT_DAY = {"id": [7, 8], "payer": ["fay", "eve"], "payee": ["dee", "ann"], "cents": [48_000, 700], "day": [5, 5]}
LOGINS = {
    "account": ["ann", "gus", "gus", "cy", "dee", "eve"],
    "device": ["phone 1", "phone 1", "laptop", "laptop", "phone 2", "phone 3"],
}


def show(tx):
    """What the transaction changed of the rings that are suspect, and of what their members paid."""
    for sign, rows in (("-", tx.delta["suspect"].erased), ("+", tx.delta["suspect"].inserted)):
        for ring in rows:
            print(f"  {sign} suspect: {' -> '.join(ring)}")
    for sign, rows in (("-", tx.delta["paid"].erased), ("+", tx.delta["paid"].inserted)):
        for account, cents in rows:
            print(f"  {sign} {account} paid {cents / 100:,.2f}")


db = lftj.Database(RULES)
with db.transaction() as tx:
    tx.insert("payment", frame(PAYMENTS))
    tx.insert("login", frame(LOGINS))
print(f"{len(db['payment'])} payments, {len(db['ring'])} ring")
show(tx)

with db.transaction() as tx:
    tx.insert("payment", frame(NEXT_DAY))
print(f"\nthe next day: {len(db['payment'])} payments, {len(db['ring'])} rings")
show(tx)

with db.transaction() as tx:
    tx.insert("login", frame({"account": ["eve"], "device": ["phone 2"]}))
    tx.erase("login", frame({"account": ["gus"], "device": ["phone 1"]}))
print("\neve uses phone 2 as well; that gus used phone 1 was a mistake")
show(tx)
