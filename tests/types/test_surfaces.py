"""What else reads values: explanations, deltas, snapshots, circuits, prepared scans and the partitions of Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import lftj
from lftj import streams

RULES = """.decl t(id:number, at:timestamp("Europe/Berlin"), d:date?, p:decimal(10,2)?)
.decl r(d:date?)
later(x, y) :- t(x, a, d, p), t(y, b, d, q), a < b, p * 2 > q.
total[d] = sum p : { t(_, _, d, p) }.
last[d] = max a : { t(_, a, d, _) }.
open(x) :- t(x, _, d, _), !r(d).
years(x, year(d)) :- t(x, _, d, _).
lost(x, to_string(a)) :- t(x, a, d, _), is_null(d).
"""
HEADS = ("later", "total", "last", "open", "years", "lost")
NOON = dt.datetime(2024, 5, 1, 12)
DAY = dt.date(2024, 5, 1)
FIRST: dict[str, list[Any]] = {
    "t": [(1, NOON, DAY, Decimal(1)), (2, NOON + dt.timedelta(hours=1), DAY, Decimal("1.50")), (3, NOON, None, None)],
    "r": [(None,)],
}
SECOND: dict[str, list[Any]] = {"t": [(4, NOON, None, Decimal(5)), (5, NOON, dt.date(2023, 1, 1), None)], "r": [(DAY,)]}


def test_circuits_say_what_the_engine_says() -> None:
    db, circuit = lftj.Database(RULES), streams.from_rules(RULES)
    for rows in (FIRST, SECOND):
        with db.transaction() as tx:
            for name in rows:
                tx.insert(name, rows[name])
        told = circuit.step(rows)
        for name in HEADS:
            inserted = set(tx.delta[name].inserted) if name in tx.delta else set()
            erased = set(tx.delta[name].erased) if name in tx.delta else set()
            assert (set(told[name].inserted), set(told[name].erased)) == (inserted, erased), name


def test_explanations_deltas_and_snapshots() -> None:
    db = lftj.Database(RULES)
    for name, rows in FIRST.items():
        db.load(name, rows)
    before = db.snapshot()
    text = str(db.explain("later"))
    assert "d > null" in text
    assert "q < p * 2" in text
    with db.transaction() as tx:
        tx.insert("t", SECOND["t"])
    assert list(tx.delta["total"].inserted) == [(None, Decimal("5.00"))]
    assert list(before["total"]) == [(DAY, Decimal("2.50"))]
    assert tx.delta["total"].inserted.arrow().to_pylist() == [{"d": None, "c1": Decimal("5.00")}]
    shown = repr(db["t"])
    assert "None" in shown
    assert "2024-05-01" in shown


def test_circuits_take_columns_of_every_type() -> None:
    circuit = streams.Circuit("sales")
    sale = circuit.input("sale", day=dt.date, amount="decimal(10,2)", at="timestamp?")
    circuit.output(
        "total",
        sale.group_by("day").aggregate(
            total=streams.sum("amount"), last=streams.max("coalesce(at, @1970-01-01T00:00:00)")
        ),
    )
    running = circuit.incremental()
    told = running.step({"sale": [(DAY, Decimal("1.50"), NOON), (DAY, Decimal("0.25"), None)]})
    assert list(told["total"].inserted) == [(DAY, Decimal("1.75"), NOON)]
