"""Nexmark's queries as circuits, and as SQL over all events so far.

q10, a sink to files, is left out. Where the published SQL of Beam or Flink and these differ:

- Columns hold numbers, floats and texts: times are integer milliseconds, a minute is one of the day, days are numbers.
- q1, q14: the price in euros is the float `price * 0.908`, not a decimal.
- q4, q6, q9: the winning bid is the highest, then the earliest, then that of the least bidder. q6 takes, for each
  seller, the 10 auctions with a bid that end last, whether or not their end is past.
- q5, q7, q8: windows are of event time, closed by watermarks 4 s behind; the events that are given come no later.
- q12: processing time is the number of the step, 10 steps to a window: `bid` has it as a column, `arrived`.
- q13: the side table has the rows (i, "side i") for i below 10,000.
- q9, q18, q19 give the numbers of a bid, not its texts, by which ties cannot be ordered.
- q21: texts are compared as they are; a bid without a channel id has no row.
- q22: folders 1 to 3 of the path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.nexmark import COLUMNS
from lftj import streams
from lftj.streams.group_aggregates import GroupAggregate
from lftj.streams.group_by import Groups

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000
RATE = 0.908
LATENESS = 4_000
SIDE_ROWS = 10_000
Streams = dict[str, "streams.Stream"]


@dataclass(frozen=True)
class Query:
    """A query: its circuit (from the streams by name, among them "side"), and its SQL over tables of their names.

    `kind`: "stateless", "join" (one), "group" (one), or "" for others · `reads`: the streams that it reads.
    """

    name: str
    kind: str
    reads: tuple[str, ...]
    circuit: Callable[[Streams], streams.Stream]
    sql: str

    def make(self) -> streams.Circuit:
        """The incremental circuit, with one output, `out`."""
        circuit = streams.Circuit(self.name)
        given: Streams = {}
        for name in self.reads:
            columns = {"key": int, "value": str} if name == "side" else dict(COLUMNS[name])
            if name == "bid" and self.name == "q12":
                columns["arrived"] = int
            given[name] = circuit.input(name, **columns)
        circuit.output("out", self.circuit(given))
        return circuit.incremental()


QUERIES: dict[str, Query] = {}


def _query(name: str, kind: str, sql: str, *reads: str) -> Callable[..., Any]:
    def keep(circuit: Callable[[Streams], streams.Stream]) -> Callable[[Streams], streams.Stream]:
        QUERIES[name] = Query(name, kind, reads or ("bid",), circuit, sql)
        return circuit

    return keep


# -- bids, one by one --------------------------------------------------------------------------------------------------


@_query("q0", "stateless", "select * from bid")
def _q0(s: Streams) -> streams.Stream:
    return s["bid"]


@_query("q1", "stateless", "select auction, bidder, price::double * 0.908::double, date_time, extra from bid")
def _q1(s: Streams) -> streams.Stream:
    return s["bid"].map("auction", "bidder", euros="to_float(price) * 0.908", date_time="date_time", extra="extra")


@_query("q2", "stateless", "select auction, price from bid where auction % 123 = 0")
def _q2(s: Streams) -> streams.Stream:
    return s["bid"].filter("auction % 123 = 0").select("auction", "price")


def _time_of_day(times: Any, extra: Any) -> tuple[Any, Any]:
    """Night, day or other, by the hour; and the letters "c"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    hour = pa.array(times.to_numpy() // HOUR % 24)
    day = pc.and_(pc.greater_equal(hour, 8), pc.less_equal(hour, 18))
    night = pc.or_(pc.less_equal(hour, 6), pc.greater_equal(hour, 20))
    return pc.if_else(day, "dayTime", pc.if_else(night, "nightTime", "otherTime")), pc.count_substring(extra, "c")


@_query(
    "q14",
    "stateless",
    f"""select auction, bidder, price::double * 0.908::double, date_time, extra,
    case when date_time // {HOUR} % 24 between 8 and 18 then 'dayTime'
    when date_time // {HOUR} % 24 <= 6 or date_time // {HOUR} % 24 >= 20 then 'nightTime' else 'otherTime' end,
    length(extra) - length(replace(extra, 'c', ''))
    from bid where price::double * 0.908::double > 1000000 and price::double * 0.908::double < 50000000""",
)
def _q14(s: Streams) -> streams.Stream:
    euros = s["bid"].map("auction", "bidder", "date_time", "extra", euros="to_float(price) * 0.908")
    wanted = euros.filter("euros > 1000000.0, euros < 50000000.0")
    timed = wanted.apply(_time_of_day, "date_time", "extra", time_type=str, letters=int)
    return timed.select("auction", "bidder", "euros", "date_time", "extra", "time_type", "letters")


def _channel_ids(channel: Any, url: Any) -> tuple[Any, Any]:
    """The id of each channel that has one, behind which rows these are."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    named = pc.index_in(channel, value_set=pa.array(["Apple", "Google", "Facebook", "Baidu"]))
    found = pc.struct_field(pc.extract_regex(url, r"channel_id=(?P<id>\d+)"), "id")
    ids = pc.coalesce(pc.cast(named, pa.string()), found)
    return np.flatnonzero(pc.is_valid(ids).to_numpy(zero_copy_only=False)), pc.drop_null(ids)


@_query(
    "q21",
    "stateless",
    """select * from (select auction, bidder, price, channel, case channel when 'Apple' then '0' when 'Google' then '1'
    when 'Facebook' then '2' when 'Baidu' then '3' else nullif(regexp_extract(url, 'channel_id=(\\d+)', 1), '') end c
    from bid) where c is not null""",
)
def _q21(s: Streams) -> streams.Stream:
    ids = s["bid"].apply(_channel_ids, "channel", "url", flat=True, channel_id=str)
    return ids.select("auction", "bidder", "price", "channel", "channel_id")


def _folders(url: Any) -> tuple[Any, ...]:
    """The first three folders of the path."""
    import pyarrow.compute as pc

    parts = pc.split_pattern(url, "/", max_splits=6)
    return tuple(pc.list_element(parts, i) for i in (3, 4, 5))


@_query(
    "q22",
    "stateless",
    """select auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6)
    from bid""",
)
def _q22(s: Streams) -> streams.Stream:
    folders = s["bid"].apply(_folders, "url", dir1=str, dir2=str, dir3=str)
    return folders.select("auction", "bidder", "price", "channel", "dir1", "dir2", "dir3")


# -- joins -------------------------------------------------------------------------------------------------------------


@_query(
    "q3",
    "join",
    """select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id
    where a.category = 10 and p.state in ('OR', 'ID', 'CA')""",
    "auction",
    "person",
)
def _q3(s: Streams) -> streams.Stream:
    auction = s["auction"].filter("category = 10").select("id", "seller")
    person = s["person"].filter('match("OR|ID|CA", state)').select("id", "name", "city", "state").rename(id="seller")
    return auction.join(person, on="seller").select("name", "city", "state", "id")


@_query(
    "q8",
    "join",
    """select distinct p.id, p.name, p.date_time - p.date_time % 10000 w from person p join auction a
    on p.id = a.seller and p.date_time - p.date_time % 10000 = a.date_time - a.date_time % 10000""",
    "auction",
    "person",
)
def _q8(s: Streams) -> streams.Stream:
    person = s["person"].select("id", "name", "date_time").watermark("date_time", LATENESS)
    auction = s["auction"].select("seller", "date_time").rename(seller="id").watermark("date_time", LATENESS)
    opened = auction.tumbling("date_time", 10_000, start="w").select("id", "w").distinct()
    return person.tumbling("date_time", 10_000, start="w").join(opened, on=["id", "w"]).select("id", "name", "w")


@_query(
    "q13",
    "join",
    "select auction, bidder, price, date_time, value from bid join side on auction % 10000 = key",
    "bid",
    "side",
)
def _q13(s: Streams) -> streams.Stream:
    bid = s["bid"].map("auction", "bidder", "price", "date_time", key="auction % 10000")
    return bid.join(s["side"], on="key").select("auction", "bidder", "price", "date_time", "value")


@_query(
    "q20",
    "join",
    """select auction, bidder, price, channel, url, b.date_time, b.extra, item, description, initial_bid, reserve,
    a.date_time, expires, seller, category, a.extra from bid b join auction a on auction = id where category = 10""",
    "bid",
    "auction",
)
def _q20(s: Streams) -> streams.Stream:
    auction = s["auction"].filter("category = 10").rename(date_time="opened", extra="a_extra")
    return s["bid"].join(auction, on={"auction": "id"})


# -- winning bids ------------------------------------------------------------------------------------------------------

_WINNERS = """(select * from (select a.id, a.seller, a.category, a.expires, b.bidder, b.price, b.date_time,
    row_number() over (partition by a.id order by b.price desc, b.date_time, b.bidder) n from auction a join bid b
    on a.id = b.auction and b.date_time between a.date_time and a.expires) where n = 1)"""


def _bids_in_time(s: Streams) -> streams.Stream:
    """Bids with their auctions, while these are open."""
    auction = s["auction"].map("seller", "category", "expires", auction="id", opened="date_time")
    bid = s["bid"].select("auction", "bidder", "price", "date_time")
    return bid.join(auction, on="auction").filter("date_time >= opened, date_time <= expires")


def _winners(s: Streams) -> streams.Stream:
    """The winning bid of each auction."""
    rows = _bids_in_time(s).select("auction", "seller", "category", "expires", "bidder", "price", "date_time")
    return rows.group_by("auction").first(("-price", "date_time", "bidder"))


@_query("q4", "", f"select category, avg(price) from {_WINNERS} group by category", "bid", "auction")
def _q4(s: Streams) -> streams.Stream:
    highest = _bids_in_time(s).group_by("auction", "category").aggregate(price=streams.max("price"))
    return highest.group_by("category").aggregate(average=streams.mean("price"))


@_query(
    "q6",
    "",
    f"""select seller, avg(price) from (select seller, price, row_number() over (partition by seller order by expires
    desc, id desc) n from {_WINNERS}) where n <= 10 group by seller""",
    "bid",
    "auction",
)
def _q6(s: Streams) -> streams.Stream:
    last = _winners(s).group_by("seller").top(10, by=("-expires", "-auction"))
    return last.group_by("seller").aggregate(average=streams.mean("price"))


@_query("q9", "", f"select id, seller, category, expires, bidder, price, date_time from {_WINNERS}", "bid", "auction")
def _q9(s: Streams) -> streams.Stream:
    return _winners(s)


# -- windows -----------------------------------------------------------------------------------------------------------


@_query(
    "q5",
    "",
    """with n as (select w - 2000 * k w, auction, count(*) c from (select auction, date_time - date_time % 2000 w
    from bid), range(5) r(k) group by all) select w, auction, c from n where c = (select max(c) from n m
    where m.w = n.w)""",
)
def _q5(s: Streams) -> streams.Stream:
    bid = s["bid"].select("auction", "date_time").watermark("date_time", LATENESS)
    # Bids are counted by pieces of two seconds, of which each window has five.
    pieces = bid.tumbling("date_time", 2_000, start="piece")
    counts = pieces.group_by("auction", "piece").aggregate(n=streams.count())
    windows = counts.hopping("piece", 10_000, 2_000, start="w")
    bids = windows.group_by("w", "auction").aggregate(c=streams.sum("n"))
    return bids.join(bids.group_by("w").aggregate(c=streams.max("c")), on=["w", "c"])


@_query(
    "q7",
    "",
    """with w as (select auction, bidder, price, date_time - date_time % 10000 w from bid)
    select * from w where price = (select max(price) from w m where m.w = w.w)""",
)
def _q7(s: Streams) -> streams.Stream:
    bid = s["bid"].select("auction", "bidder", "price", "date_time").watermark("date_time", LATENESS)
    window = bid.tumbling("date_time", 10_000, start="w").select("auction", "bidder", "price", "w")
    return window.join(window.group_by("w").aggregate(price=streams.max("price")), on=["w", "price"])


@_query(
    "q11",
    "",
    """select bidder, count(*), min(date_time), max(date_time) from (select bidder, date_time,
    sum(opens) over (partition by bidder order by date_time rows unbounded preceding) as session from (select bidder,
    date_time, case when date_time - lag(date_time) over (partition by bidder order by date_time) <= 10000 then 0 else 1
    end opens from bid)) group by bidder, session""",
)
def _q11(s: Streams) -> streams.Stream:
    sessions = s["bid"].select("bidder", "date_time").group_by("bidder").sessions("date_time", gap=10_000)
    counted = sessions.group_by("bidder", "session_start", "session_end").aggregate(bids=streams.count())
    return counted.select("bidder", "bids", "session_start", "session_end")


@_query("q12", "group", "select bidder, arrived // 10, count(*) from bid group by all")
def _q12(s: Streams) -> streams.Stream:
    return s["bid"].map("bidder", w="arrived / 10").group_by("bidder", "w").aggregate(bids=streams.count())


# -- groups ------------------------------------------------------------------------------------------------------------

_RANKS = {"1": "price < 10000", "2": "price >= 10000, price < 1000000", "3": "price >= 1000000"}
_SQL_RANKS = [text.replace(",", " and") for text in _RANKS.values()]
_PER_RANK = ", ".join(
    [
        "count(*)",
        *(f"count(*) filter ({rank})" for rank in _SQL_RANKS),
        *(
            f"count(distinct {column}) filter ({rank})"
            for column in ("bidder", "auction")
            for rank in ("true", *_SQL_RANKS)
        ),
    ]
)


def _per_rank() -> dict[str, GroupAggregate]:
    """Bids, bidders and auctions, in all and by rank of their price."""
    made = {"bids": streams.count()}
    made |= {f"bids{rank}": streams.count(where=where) for rank, where in _RANKS.items()}
    for column in ("bidder", "auction"):
        made[f"{column}s"] = streams.count_distinct(column)
        made |= {f"{column}s{rank}": streams.count_distinct(column, where=where) for rank, where in _RANKS.items()}
    return made


@_query("q15", "", f"select date_time // {DAY} d, {_PER_RANK} from bid group by d")
def _q15(s: Streams) -> streams.Stream:
    bid = s["bid"].map("auction", "bidder", "price", day=f"date_time / {DAY}")
    return bid.group_by("day").aggregate(**_per_rank())


@_query(
    "q16",
    "",
    f"""select channel, date_time // {DAY} d, max(date_time % {DAY} // {MINUTE}), {_PER_RANK} from bid
    group by channel, d""",
)
def _q16(s: Streams) -> streams.Stream:
    bid = s["bid"].map(
        "channel", "auction", "bidder", "price", day=f"date_time / {DAY}", minute=f"date_time % {DAY} / {MINUTE}"
    )
    return bid.group_by("channel", "day").aggregate(minute=streams.max("minute"), **_per_rank())


@_query(
    "q17",
    "group",
    f"""select auction, date_time // {DAY} d, count(*), {", ".join(f"count(*) filter ({r})" for r in _SQL_RANKS)},
    min(price), max(price), avg(price), sum(price)::bigint from bid group by auction, d""",
)
def _q17(s: Streams) -> streams.Stream:
    bid = s["bid"].map("auction", "price", day=f"date_time / {DAY}")
    return bid.group_by("auction", "day").aggregate(
        bids=streams.count(),
        **{f"bids{rank}": streams.count(where=where) for rank, where in _RANKS.items()},
        least=streams.min("price"),
        greatest=streams.max("price"),
        average=streams.mean("price"),
        total=streams.sum("price"),
    )


@_query(
    "q18",
    "group",
    """select auction, bidder, price, date_time from (select *, row_number() over (partition by bidder, auction
    order by date_time desc, price desc) n from bid) where n = 1""",
)
def _q18(s: Streams) -> streams.Stream:
    bid = s["bid"].select("auction", "bidder", "price", "date_time")
    return bid.group_by("bidder", "auction").first(("-date_time", "-price"))


@_query(
    "q19",
    "group",
    """select auction, bidder, price, date_time from (select *, row_number() over (partition by auction
    order by price desc, date_time, bidder) n from bid) where n <= 10""",
)
def _q19(s: Streams) -> streams.Stream:
    bid = s["bid"].select("auction", "bidder", "price", "date_time")
    return bid.group_by("auction").top(10, by=("-price", "date_time", "bidder"))


if not hasattr(Groups, "sessions"):  # session windows are on their way
    del QUERIES["q11"]


def side_table() -> Any:
    """The side table of q13."""
    import pyarrow as pa

    return pa.table({"key": range(SIDE_ROWS), "value": [f"side {i}" for i in range(SIDE_ROWS)]})
