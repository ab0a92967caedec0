"""What windows, watermarks and joins in time refuse, in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lftj
from lftj import streams
from lftj.streams.stream import Stream

LENGTH = "it is a length of time in the unit of the column, an integer from {} to 2**62"
SECONDS = "give `{}=10_000` for ten seconds in milliseconds, say"
TIMES = "times are integers, which have an order and exact differences: milliseconds since 1970, say"

BAD: list[tuple[Callable[[Stream, Stream], object], str]] = [
    (
        lambda s, t: s.watermark("when"),
        "the stream has no column 'when'\n  why: its columns are key, time, text, price\n  do: give one of these names",
    ),
    (
        lambda s, t: s.watermark("text"),
        f"`text` is no column of times: it is of type symbol\n  why: {TIMES}\n"
        '  do: make a number of it by `map`, or declare the input with `text="number"`',
    ),
    (
        lambda s, t: s.tumbling("price", 10),
        f"`price` is no column of times: it is of type float\n  why: {TIMES}\n"
        '  do: make a number of it by `map`, or declare the input with `price="number"`',
    ),
    (
        lambda s, t: s.watermark("time", -1),
        f"`lateness` cannot be -1\n  why: {LENGTH.format(0)}\n  do: {SECONDS.format('lateness')}",
    ),
    (
        lambda s, t: s.watermark("time", 1.5),  # type: ignore[arg-type]
        f"`lateness` cannot be 1.5\n  why: {LENGTH.format(0)}\n  do: {SECONDS.format('lateness')}",
    ),
    (
        lambda s, t: s.tumbling("time", 0),
        f"`size` cannot be 0\n  why: {LENGTH.format(1)}\n  do: {SECONDS.format('size')}",
    ),
    (
        lambda s, t: s.hopping("time", 10, True),
        f"`every` cannot be True\n  why: {LENGTH.format(1)}\n  do: {SECONDS.format('every')}",
    ),
    (
        lambda s, t: s.hopping("time", 1 << 63, 10),
        f"`size` cannot be 9223372036854775808\n  why: {LENGTH.format(1)}\n  do: {SECONDS.format('size')}",
    ),
    (
        lambda s, t: s.hopping("time", 86_400_000, 1),
        "`every` cannot be 1\n"
        "  why: a row would be in 86,400,000 windows of length 86,400,000, each a row of its own\n"
        "  do: give at least 864; `range_window` moves with every row",
    ),
    (
        lambda s, t: s.tumbling("time", 10, offset="noon"),  # type: ignore[arg-type]
        "`offset` cannot be 'noon'\n"
        "  why: it is a time at which a window begins, an integer\n"
        "  do: give `offset=0`, say",
    ),
    (
        lambda s, t: s.tumbling("time", 10, start="key"),
        "the stream would have two columns `key`\n"
        "  why: columns are known by their names\n"
        "  do: give other names for the new ones: `start=` and `end=`",
    ),
    (
        lambda s, t: s.group_by("key").sessions("time", gap=5, start="x", end="x"),
        "the stream would have two columns `x`\n"
        "  why: columns are known by their names\n"
        "  do: give other names for the new ones: `start=` and `end=`",
    ),
    (
        lambda s, t: s.group_by("time").sessions("time", gap=5),
        "`time` is a column of the group\n"
        "  why: all rows of a group would have one time\n"
        "  do: group by what the sessions are of: a user, say",
    ),
    (
        lambda s, t: s.group_by("key").sessions("time", gap=-5),
        f"`gap` cannot be -5\n  why: {LENGTH.format(0)}\n  do: {SECONDS.format('gap')}",
    ),
    (
        lambda s, t: s.range_window("time", 10, now=t),
        "`now` has the columns id:number, then:number\n"
        "  why: it is a stream of times: of one column, a number, whose greatest value so far is the time\n"
        "  do: give `now=stream.select(...)` of that column",
    ),
    (
        lambda s, t: s.range_window("time", -1),
        f"`size` cannot be -1\n  why: {LENGTH.format(0)}\n  do: {SECONDS.format('size')}",
    ),
    (
        lambda s, t: s.interval_join(t, {"key": "id"}, time="time", within=(0, 5)),  # type: ignore[arg-type]
        "`time` cannot be 'time'\n"
        "  why: it names a column of this stream and one of the other\n"
        '  do: give `time=("opened", "closed")`',
    ),
    (
        lambda s, t: s.interval_join(t, {"key": "id"}, time=("time", "then"), within=5),  # type: ignore[arg-type]
        "`within` cannot be 5\n"
        "  why: it is the least and the greatest difference, the other's time less this one's: two integers\n"
        "  do: give `within=(0, 10_000)` for what comes up to ten seconds later, say",
    ),
    (
        lambda s, t: s.interval_join(t, {"key": "id"}, time=("time", "then"), within=(5, 0)),
        "`within` cannot be (5, 0)\n"
        "  why: no difference of times is at least the first and at most the second, or they are beyond 2**62\n"
        "  do: give the lesser one first",
    ),
    (
        lambda s, t: s.interval_join(t, {"key": "id"}, time=("price", "then"), within=(0, 5)),
        f"`price` is no column of times: it is of type float\n  why: {TIMES}\n"
        '  do: make a number of it by `map`, or declare the input with `price="number"`',
    ),
    (
        lambda s, t: s.interval_join(t.rename(then="time"), {"key": "id"}, time=("time", "time"), within=(0, 5)),
        "both streams have a column `time` that is no key\n"
        "  why: columns of a joined row are known by their names\n"
        '  do: rename one before the join: `.rename(time="...")`, or select without it',
    ),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case: int) -> None:
    make, message = BAD[case]
    c = streams.Circuit()
    s, t = c.input("s", key=int, time=int, text=str, price=float), c.input("t", id=int, then=int)
    with pytest.raises(lftj.Error) as refused:
        make(s, t)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("watermark", lambda s: s.watermark("time")),
        ("range_window", lambda s: s.range_window("time", 5)),
        ("lookup", lambda s: s.lookup(s, "time")),
    ],
)
def test_clocks_stay_outside_of_nested_circuits(name: str, make: Callable[[Stream], object]) -> None:
    c = streams.Circuit()
    s = c.input("s", time=int)
    with c.nested() as inner, pytest.raises(lftj.DataError) as refused:
        make(inner.enter(s))
    assert str(refused.value) == (
        f"`{name}` is of no use in a nested circuit\n"
        "  why: what came before is forgotten there at each tick of the circuit around it\n"
        f"  do: use `{name}` outside, and `enter` what it makes"
    )


def test_windows_of_other_circuits_streams() -> None:
    one, two = streams.Circuit(), streams.Circuit()
    s, t = one.input("s", time=int), two.input("t", time=int)
    with pytest.raises(lftj.DataError, match="of different circuits"):
        s.range_window("time", 5, now=t)
    with pytest.raises(lftj.DataError, match="of different circuits"):
        s.interval_join(t, [], time=("time", "time"), within=(0, 1))


def test_a_column_called_name() -> None:
    c = streams.Circuit()
    person = c.input("person", name=str, time=int)
    c.output("kept", person.watermark("time"))
    assert dict(c.incremental().step({"person": [("ann", 1)]})["kept"]) == {("ann", 1): 1}
