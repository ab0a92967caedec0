"""Fraud alerts: cards that are used too often within ten minutes, for too much, from the stream of payments.

A circuit keeps the last ten minutes of payments and forgets the rest; the database steps it inside each commit, and a
rule joins what it gives with the owners of the cards. Payments that come more than two minutes late are dropped, and
counted. Prints:

    01:40  3 payments
    04:10  2 payments
           + ann: 1,050.00 in ten minutes
    05:00  2 payments
           - ann: 1,050.00 in ten minutes
           + ann: 1,250.00 in ten minutes
    11:00  2 payments
           - ann: 1,250.00 in ten minutes
    13:20  2 payments
    51:00  3 payments
           + bo: 1,100.00 in ten minutes
"""

import lftj
from lftj import streams

MINUTE = 60

circuit = streams.Circuit("recent payments")
payment = circuit.input("payment", id=int, card=int, cents=int, at=int)
recent = payment.watermark("at", 2 * MINUTE).range_window("at", 10 * MINUTE)
used = recent.group_by("card").aggregate(times=streams.count(), cents=streams.sum("cents"))
circuit.output("busy", used.filter("times >= 3, cents >= 100000"))

db = lftj.Database(
    """
    .decl payment(id:number, card:number, cents:number, at:number)
    .decl owner(card:number, name:symbol)
    """
)
db.load("owner", [(1, "ann"), (2, "bo"), (3, "cy")])
db.attach(circuit)
db.rules("alert(name, cents) :- busy(card, _, cents), owner(card, name).")


def pay(*rows):
    """Payments (id, card, cents, at) that come together, and the alerts that begin and end."""
    with db.transaction() as tx:
        tx.insert("payment", rows)
    clock = max(at for *_, at in rows)
    print(f"{clock // MINUTE:02}:{clock % MINUTE:02}  {len(rows)} payments")
    for sign, changed in (("-", tx.delta["alert"].erased), ("+", tx.delta["alert"].inserted)):
        for name, cents in changed:
            print(f"       {sign} {name}: {cents / 100:,.2f} in ten minutes")


pay((1, 1, 40_000, 0), (2, 2, 500, 15), (3, 1, 35_000, 100))
pay((4, 1, 30_000, 240), (5, 3, 99_000, 250))
pay((6, 1, 20_000, 290), (7, 2, 700, 300))
pay((8, 3, 100, 650), (9, 2, 900, 660))
pay((10, 3, 50, 800), (11, 3, 60, 400))
pay((12, 2, 60_000, 3_000), (13, 2, 30_000, 3_030), (14, 2, 20_000, 3_060))
