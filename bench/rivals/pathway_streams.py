"""Pathway on Nexmark: run as a process of its own, in an environment of its own, since it wants other versions.

    python -m bench.rivals.pathway_streams QUERY EVENTS [ANSWER.parquet]

The events are in Pathway's tables before its engine starts, with 10,000 of them to a time, so that no connector is
measured; what is measured is `pw.run` with one thread and a sink that drops what it is given. Prints the CPU seconds of
that as JSON. With a third argument it writes the final answer there instead, for DuckDB to compare.

Pathway has no operator for the first rows of a group: q6 and q19 gather all rows of a group into a sorted tuple, which
is made anew where the group changes. A session of Pathway's ends where a gap is at least, not above, its limit.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

BATCH = 10_000
DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000
Tables = dict[str, Any]


def _q1(pw: Any, t: Tables) -> Any:
    bid = t["bid"]
    return bid.select(bid.auction, bid.bidder, euros=bid.price * 0.908, date_time=bid.date_time, extra=bid.extra)


def _q2(pw: Any, t: Tables) -> Any:
    return t["bid"].filter(pw.this.auction % 123 == 0).select(pw.this.auction, pw.this.price)


def _q3(pw: Any, t: Tables) -> Any:
    auction = t["auction"].filter(pw.this.category == 10)
    state = pw.this.state
    person = t["person"].filter((state == "OR") | (state == "ID") | (state == "CA"))
    return auction.join(person, auction.seller == person.key).select(
        person.name, person.city, person.state, auction.key
    )


def _in_time(pw: Any, t: Tables) -> Any:
    bid, auction = t["bid"], t["auction"]
    joined = bid.join(auction, bid.auction == auction.key).select(
        bid.auction,
        auction.category,
        auction.seller,
        auction.expires,
        bid.bidder,
        bid.price,
        bid.date_time,
        opened=auction.date_time,
    )
    return joined.filter((pw.this.date_time >= pw.this.opened) & (pw.this.date_time <= pw.this.expires))


def _q4(pw: Any, t: Tables) -> Any:
    rows = _in_time(pw, t)
    highest = rows.groupby(rows.auction, rows.category).reduce(rows.category, price=pw.reducers.max(rows.price))
    return highest.groupby(highest.category).reduce(highest.category, average=pw.reducers.avg(highest.price))


def _q5(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(pw.this.auction, pw.this.date_time)
    counts = bid.windowby(
        bid.date_time, window=pw.temporal.sliding(hop=2_000, duration=10_000), instance=bid.auction
    ).reduce(auction=pw.this._pw_instance, w=pw.this._pw_window_start, c=pw.reducers.count())
    most = counts.groupby(counts.w).reduce(counts.w, c=pw.reducers.max(counts.c))
    return counts.join(most, counts.w == most.w, counts.c == most.c).select(counts.w, counts.auction, counts.c)


def _q6(pw: Any, t: Tables) -> Any:
    best = _q9(pw, t)
    closed = best.groupby(best.seller).reduce(
        best.seller, closed=pw.reducers.sorted_tuple(pw.make_tuple(-best.expires, -best.auction, best.price))
    )
    return closed.select(closed.seller, average=pw.apply_with_type(_mean_of_ten, float, closed.closed))


def _mean_of_ten(closed: tuple[tuple[int, int, int], ...]) -> float:
    """The mean price of the first ten of (-expires, -auction, price)."""
    last = [price for _, _, price in closed[:10]]
    return sum(last) / len(last)


def _q7(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(
        pw.this.auction, pw.this.bidder, pw.this.price, w=pw.this.date_time - pw.this.date_time % 10_000
    )
    most = bid.groupby(bid.w).reduce(bid.w, price=pw.reducers.max(bid.price))
    return bid.join(most, bid.w == most.w, bid.price == most.price).select(bid.auction, bid.bidder, bid.price, bid.w)


def _q8(pw: Any, t: Tables) -> Any:
    person = t["person"].select(pw.this.key, pw.this.name, w=pw.this.date_time - pw.this.date_time % 10_000)
    seller = t["auction"].select(pw.this.seller, w=pw.this.date_time - pw.this.date_time % 10_000)
    seller = seller.groupby(seller.seller, seller.w).reduce(seller.seller, seller.w)
    return person.join(seller, person.key == seller.seller, person.w == seller.w).select(
        person.key, person.name, person.w
    )


def _q9(pw: Any, t: Tables) -> Any:
    rows = _in_time(pw, t)
    # Highest price, then earliest, then least bidder: a tuple in this order.
    best = rows.groupby(rows.auction, rows.seller, rows.category, rows.expires).reduce(
        rows.auction,
        rows.seller,
        rows.category,
        rows.expires,
        best=pw.reducers.max(pw.make_tuple(rows.price, -rows.date_time, -rows.bidder)),
    )
    return best.select(
        best.auction,
        best.seller,
        best.category,
        best.expires,
        bidder=-best.best[2],
        price=best.best[0],
        date_time=-best.best[1],
    )


def _q11(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(pw.this.bidder, pw.this.date_time)
    session = pw.temporal.session(max_gap=10_001)
    return bid.windowby(bid.date_time, window=session, instance=bid.bidder).reduce(
        bidder=pw.this._pw_instance,
        bids=pw.reducers.count(),
        first=pw.reducers.min(pw.this.date_time),
        last=pw.reducers.max(pw.this.date_time),
    )


def _q12(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(pw.this.bidder, w=pw.this.arrived // 10)
    return bid.groupby(bid.bidder, bid.w).reduce(bid.bidder, bid.w, bids=pw.reducers.count())


def _q13(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(
        pw.this.auction, pw.this.bidder, pw.this.price, pw.this.date_time, key=pw.this.auction % 10_000
    )
    side = t["side"]
    return bid.join(side, bid.key == side.key).select(bid.auction, bid.bidder, bid.price, bid.date_time, side.value)


def _q14(pw: Any, t: Tables) -> Any:
    bid = t["bid"]
    euros = bid.select(
        bid.auction,
        bid.bidder,
        bid.date_time,
        bid.extra,
        euros=bid.price * 0.908,
        hour=bid.date_time // HOUR % 24,
    )
    wanted = euros.filter((pw.this.euros > 1_000_000.0) & (pw.this.euros < 50_000_000.0))
    hour = wanted.hour
    return wanted.select(
        wanted.auction,
        wanted.bidder,
        wanted.euros,
        wanted.date_time,
        wanted.extra,
        time_type=pw.if_else(
            (hour >= 8) & (hour <= 18), "dayTime", pw.if_else((hour <= 6) | (hour >= 20), "nightTime", "otherTime")
        ),
        letters=wanted.extra.str.count("c"),
    )


def _q15(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(
        pw.this.auction,
        pw.this.bidder,
        day=pw.this.date_time // DAY,
        rank=pw.if_else(pw.this.price < 10_000, 1, pw.if_else(pw.this.price < 1_000_000, 2, 3)),
    )
    return _per_rank(pw, bid, ["day"])


def _per_rank(pw: Any, bid: Any, keys: list[str], **more: Any) -> Any:
    """Bids, bidders and auctions of each group, in all and by rank: sets first, then counts."""
    group = [bid[name] for name in keys]
    sums = {f"bids{rank}": pw.reducers.sum(pw.cast(int, bid.rank == rank)) for rank in (1, 2, 3)}
    made = bid.groupby(*group).reduce(*group, bids=pw.reducers.count(), **sums, **more)
    names = [*more, "bids", *sums]
    for column in ("bidder", "auction"):
        each = bid.groupby(*group, bid[column]).reduce(
            *group, **{f"r{rank}": pw.reducers.max(pw.cast(int, bid.rank == rank)) for rank in (1, 2, 3)}
        )
        found = each.groupby(*(each[name] for name in keys)).reduce(
            *(each[name] for name in keys),
            **{f"{column}s": pw.reducers.count()},
            **{f"{column}s{rank}": pw.reducers.sum(each[f"r{rank}"]) for rank in (1, 2, 3)},
        )
        counts = [f"{column}s", *(f"{column}s{rank}" for rank in (1, 2, 3))]
        made = made.join(found, *(made[name] == found[name] for name in keys)).select(
            *(made[name] for name in [*keys, *names]), *(found[name] for name in counts)
        )
        names += counts
    return made


def _q16(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(
        pw.this.channel,
        pw.this.auction,
        pw.this.bidder,
        day=pw.this.date_time // DAY,
        minute=pw.this.date_time % DAY // MINUTE,
        rank=pw.if_else(pw.this.price < 10_000, 1, pw.if_else(pw.this.price < 1_000_000, 2, 3)),
    )
    return _per_rank(pw, bid, ["channel", "day"], minute=pw.reducers.max(bid.minute))


def _q17(pw: Any, t: Tables) -> Any:
    bid = t["bid"].select(
        pw.this.auction,
        pw.this.price,
        day=pw.this.date_time // DAY,
        one=pw.cast(int, pw.this.price < 10_000),
        two=pw.cast(int, (pw.this.price >= 10_000) & (pw.this.price < 1_000_000)),
        three=pw.cast(int, pw.this.price >= 1_000_000),
    )
    r = pw.reducers
    return bid.groupby(bid.auction, bid.day).reduce(
        bid.auction,
        bid.day,
        bids=r.count(),
        bids1=r.sum(bid.one),
        bids2=r.sum(bid.two),
        bids3=r.sum(bid.three),
        least=r.min(bid.price),
        greatest=r.max(bid.price),
        average=r.avg(bid.price),
        total=r.sum(bid.price),
    )


def _q18(pw: Any, t: Tables) -> Any:
    bid = t["bid"]
    last = bid.groupby(bid.auction, bid.bidder).reduce(
        bid.auction, bid.bidder, last=pw.reducers.max(pw.make_tuple(bid.date_time, bid.price))
    )
    return last.select(last.auction, last.bidder, price=last.last[1], date_time=last.last[0])


def _q19(pw: Any, t: Tables) -> Any:
    bid = t["bid"]
    ranked = bid.groupby(bid.auction).reduce(
        bid.auction, rows=pw.reducers.sorted_tuple(pw.make_tuple(-bid.price, bid.date_time, bid.bidder))
    )
    row = tuple[int, int, int]
    first = ranked.select(
        ranked.auction, row=pw.apply_with_type(lambda rows: rows[:10], tuple[row, ...], ranked.rows)
    ).flatten(pw.this.row)
    return first.select(first.auction, bidder=first.row[2], price=-first.row[0], date_time=first.row[1])


def _q20(pw: Any, t: Tables) -> Any:
    bid, a = t["bid"], t["auction"].filter(pw.this.category == 10)
    return bid.join(a, bid.auction == a.key).select(
        *(bid[c] for c in ("auction", "bidder", "price", "channel", "url", "date_time", "extra")),
        *(a[c] for c in ("item", "description", "initial_bid", "reserve")),
        opened=a.date_time,
        expires=a.expires,
        seller=a.seller,
        category=a.category,
        a_extra=a.extra,
    )


def _q21(pw: Any, t: Tables) -> Any:
    named = {"Apple": "0", "Google": "1", "Facebook": "2", "Baidu": "3"}
    pattern = re.compile(r"channel_id=(\d+)")

    def channel_id(channel: str, url: str) -> str:
        """The id of a channel; "" if it has none."""
        found = None if channel in named else pattern.search(url)
        return named.get(channel) or (found[1] if found else "")

    bid = t["bid"]
    ids = bid.select(
        bid.auction,
        bid.bidder,
        bid.price,
        bid.channel,
        channel_id=pw.apply_with_type(channel_id, str, bid.channel, bid.url),
    )
    return ids.filter(ids.channel_id != "")


def _q22(pw: Any, t: Tables) -> Any:
    split = t["bid"].select(
        pw.this.auction,
        pw.this.bidder,
        pw.this.price,
        pw.this.channel,
        parts=pw.apply_with_type(lambda url: tuple(url.split("/", 6)), tuple[str, ...], pw.this.url),
    )
    return split.select(
        split.auction,
        split.bidder,
        split.price,
        split.channel,
        dir1=split.parts[3],
        dir2=split.parts[4],
        dir3=split.parts[5],
    )


QUERIES: dict[str, tuple[tuple[str, ...], Callable[[Any, Tables], Any]]] = {
    "q0": (("bid",), lambda pw, t: t["bid"]),
    "q1": (("bid",), _q1),
    "q2": (("bid",), _q2),
    "q3": (("auction", "person"), _q3),
    "q4": (("bid", "auction"), _q4),
    "q5": (("bid",), _q5),
    "q6": (("bid", "auction"), _q6),
    "q7": (("bid",), _q7),
    "q8": (("auction", "person"), _q8),
    "q9": (("bid", "auction"), _q9),
    "q11": (("bid",), _q11),
    "q12": (("bid",), _q12),
    "q13": (("bid", "side"), _q13),
    "q14": (("bid",), _q14),
    "q15": (("bid",), _q15),
    "q16": (("bid",), _q16),
    "q17": (("bid",), _q17),
    "q18": (("bid",), _q18),
    "q19": (("bid",), _q19),
    "q20": (("bid", "auction"), _q20),
    "q21": (("bid",), _q21),
    "q22": (("bid",), _q22),
}


def main(arguments: list[str]) -> int:
    """Run one query; the CPU seconds go to stdout as JSON."""
    os.environ["PATHWAY_THREADS"] = "1"
    import pandas as pd
    import pathway as pw

    from bench.nexmark import Events

    name, count = arguments[0], int(arguments[1])
    reads, make = QUERIES[name]
    events = Events()
    frames: dict[str, list[Any]] = {stream: [] for stream in reads}
    for first in range(0, count, BATCH):
        batches = events.batch(first, min(BATCH, count - first))
        for stream in reads:
            if stream != "side":
                frame = batches[stream].to_pandas()
                if name == "q12":
                    frame["arrived"] = first // BATCH
                # `id` is a name of Pathway's own.
                frames[stream].append(frame.rename(columns={"id": "key"}).assign(__time__=2 * (first // BATCH) + 2))
    tables = {
        stream: pw.debug.table_from_pandas(pd.concat(parts, ignore_index=True))
        for stream, parts in frames.items()
        if stream != "side"
    }
    if "side" in reads:
        rows = pd.DataFrame({"key": range(10_000), "value": [f"side {i}" for i in range(10_000)], "__time__": 2})
        tables["side"] = pw.debug.table_from_pandas(rows)
    answer = make(pw, tables)
    if len(arguments) > 2:
        pw.debug.table_to_pandas(answer, include_id=False).to_parquet(arguments[2])
        return 0
    pw.io.null.write(answer)
    began = time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    sys.stdout.write(json.dumps({"cpu": time.process_time() - began}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
