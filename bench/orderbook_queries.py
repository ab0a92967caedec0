"""The queries of DBToaster's finance benchmark over a book of bids and asks, as rules.

vwap            the sum of price * volume of the bids of the best quarter of the volume
axfinder        by broker: the volume of asks minus that of bids, of pairs whose prices differ by more than 1,000
broker_spread   by broker: the sum over all pairs of the price of the ask minus that of the bid
price_spread    the same over all pairs of orders that have more than a 10,000th of the volume of their side
missed_trades   the value of the asks minus that of the bids, of those of the best quarter of each side
"""

from __future__ import annotations

TABLES = """
.decl bids(t:number, id:number, broker_id:number, volume:number, price:number)
.decl asks(t:number, id:number, broker_id:number, volume:number, price:number)
"""
_PAIR = "bids(_, _, b, bv, bp), asks(_, _, b, av, ap)"
_TOTALS = "tb = sum v : { bids(_, _, _, v, _) }, ta = sum v : { asks(_, _, _, v, _) }"

PROGRAMS = {
    "vwap": f"""{TABLES}
        vwap[] = sum p * v : {{ bids(_, _, _, v, p), t = sum w : {{ bids(_, _, _, w, _) }},
            above = sum w : {{ bids(_, _, _, w, q), q > p }}, t > 4 * above }}.
    """,
    "axfinder": f"""{TABLES}
        far_above[b] = sum av - bv : {{ {_PAIR}, ap - bp > 1000 }}.
        far_below[b] = sum av - bv : {{ {_PAIR}, bp - ap > 1000 }}.
        axfinder[b] = s + t :- far_above(b, s), far_below(b, t).
        axfinder[b] = s :- far_above(b, s), !far_below(b, _).
        axfinder[b] = s :- far_below(b, s), !far_above(b, _).
    """,
    "broker_spread": f"{TABLES} broker_spread[b] = sum ap - bp : {{ {_PAIR} }}.",
    "price_spread": f"""{TABLES}
        price_spread[] = sum ap - bp : {{ bids(_, _, _, bv, bp), asks(_, _, _, av, ap), {_TOTALS},
            bv * 10000 > tb, av * 10000 > ta }}.
    """,
    "missed_trades": f"""{TABLES}
        missed_trades[] = sum ap * av - bp * bv : {{ bids(_, _, _, bv, bp), asks(_, _, _, av, ap), {_TOTALS},
            ra = sum v : {{ asks(_, _, _, v, p), p > ap }}, rb = sum v : {{ bids(_, _, _, v, p), p > bp }},
            ta > 4 * ra, tb > 4 * rb }}.
    """,
}
