"""What is computed of typed values: against Python's own calendar and decimals, and where there is no value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.errors import EvaluationError
from tests.conftest import JIT
from tests.types.cases import BERLIN, UTC

EDGES = [dt.date.min, dt.date(1, 12, 31), dt.date(1600, 2, 29), dt.date(1899, 12, 31), dt.date(1900, 3, 1), dt.date.max]
SOME = [dt.date(2000, 1, 1) + dt.timedelta(days) for days in range(-800, 800, 1 if JIT else 37)]
TIMES = [
    dt.datetime.min,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789),
    dt.datetime(2024, 12, 31, 23, 59),
    dt.datetime.max,
]


def computed(declared: str, rows: list[tuple[Any, ...]], names: str, term: str) -> dict[tuple[Any, ...], Any]:
    """The value of a term for each row, by a join; and by the step of texts, which must say the same."""
    db = lftj.Database(
        f".decl v({declared})\np({names}, {term}) :- v({names}).\n"
        f'q({names}, r) :- v({names}), r = {term}, _t = cat("a", to_string(1)).'
    )
    db.load("v", rows)
    found = {row[:-1]: row[-1] for row in db["p"]}
    assert found == {row[:-1]: row[-1] for row in db["q"]}
    return found


@pytest.mark.parametrize(
    ("term", "of"),
    [
        ("year(d)", lambda d: d.year),
        ("month(d)", lambda d: d.month),
        ("day(d)", lambda d: d.day),
        ("weekday(d)", lambda d: d.isoweekday()),
        ("month_start(d)", lambda d: d.replace(day=1)),
        ("year_start(d)", lambda d: d.replace(month=1, day=1)),
        ("to_string(d)", str),
        ("to_number(d)", lambda d: d.toordinal() - 719163),
        ("to_timestamp(d)", lambda d: dt.datetime.combine(d, dt.time())),
        ("to_date(to_string(d))", lambda d: d),
        ("d - @2000-01-01", lambda d: d - dt.date(2000, 1, 1)),
    ],
)
def test_of_dates(term: str, of: Any) -> None:
    days = EDGES + SOME
    assert computed("d:date", [(d,) for d in days], "d", term) == {(d,): of(d) for d in days}


@pytest.mark.parametrize(
    ("term", "of"),
    [
        ("year(t)", lambda t: t.year),
        ("month(t)", lambda t: t.month),
        ("weekday(t)", lambda t: t.isoweekday()),
        ("hour(t)", lambda t: t.hour),
        ("minute(t)", lambda t: t.minute),
        ("second(t)", lambda t: t.second),
        ("date_of(t)", lambda t: t.date()),
        ("time_of(t)", lambda t: t - dt.datetime.combine(t.date(), dt.time(), t.tzinfo)),
        ("month_start(t)", lambda t: t.date().replace(day=1)),
        ("year_start(t)", lambda t: t.date().replace(month=1, day=1)),
        ("to_string(t)", lambda t: t.isoformat()),
    ],
)
@pytest.mark.parametrize("zone", [None, BERLIN])
def test_of_timestamps(term: str, of: Any, zone: Any) -> None:
    times = (
        TIMES
        if zone is None
        else [
            dt.datetime(2024, 3, 30, 23, 30, tzinfo=UTC).astimezone(zone) + dt.timedelta(hours=0),
            dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC).astimezone(zone),
            dt.datetime(2023, 12, 31, 23, 15, tzinfo=UTC).astimezone(zone),
        ]
    )
    type = "timestamp" if zone is None else f'timestamp("{zone.key}")'
    if zone is not None and term.startswith("time_of"):
        of = lambda t: dt.timedelta(hours=t.hour, minutes=t.minute)  # noqa: E731
    assert computed(f"t:{type}", [(t,) for t in times], "t", term) == {(t,): of(t) for t in times}


def test_operators_on_times() -> None:
    t, w = dt.datetime(2024, 2, 28, 23, 0), dt.timedelta(hours=25, microseconds=1)
    rows = computed("t:timestamp, w:duration", [(t, w), (t, -w)], "t, w", "t + w - @1h - w * 2 + w / 3")
    third = {w: dt.timedelta(microseconds=30_000_000_000), -w: -dt.timedelta(microseconds=30_000_000_000)}
    assert rows == {(t, x): t + x - dt.timedelta(hours=1) - 2 * x + third[x] for x in (w, -w)}
    days = computed("d:date, w:duration", [(t.date(), w), (t.date(), -w)], "d, w", "d + w - w")
    assert days == {(t.date(), x): t.date() + x - x for x in (w, -w)}
    assert computed("a:timestamp, b:timestamp", [(t, t + w)], "a, b", "a - b") == {(t, t + w): -w}


def test_operators_on_decimals() -> None:
    some = [Decimal(s) for s in ("-3.50", "0.00", "0.01", "2.25")]
    rows = list(product(some, some))
    declared = "a:decimal(6,2), b:decimal(8,2)"
    assert computed(declared, rows, "a, b", "a * b + 0.0001d - 1") == {
        (a, b): a * b + Decimal("0.0001") - 1 for a, b in rows
    }
    assert computed(declared, rows, "a, b", "-(a - b) * 3") == {(a, b): -(a - b) * 3 for a, b in rows}
    assert computed(declared, rows, "a, b", "max(a, b)") == {(a, b): max(a, b) for a, b in rows}
    assert computed(declared, rows, "a, b", "to_float(a)") == {(a, b): float(a) for a, b in rows}
    assert computed(declared, rows, "a, b", "to_decimal(a, 1)") == {(a, b): round(a, 1) for a, b in rows}
    assert computed(declared, rows, "a, b", "to_number(a)") == {(a, b): int(a) for a, b in rows}


def later(day: Any, months: int) -> Any:
    """The same day of another month, day by day backwards from where that is none."""
    count = 12 * day.year + day.month - 1 + months
    for number in range(day.day, 27, -1):
        try:
            return day.replace(count // 12, count % 12 + 1, number)
        except ValueError:
            continue
    return day.replace(count // 12, count % 12 + 1)


@pytest.mark.parametrize("months", [0, 1, -1, 11, 12, -25])
def test_months_later(months: int) -> None:
    days = [*SOME, dt.date(1899, 12, 31), dt.date(1900, 3, 31)]
    assert computed("d:date", [(d,) for d in days], "d", f"add_months(d, {months})") == {
        (d,): later(d, months) for d in days
    }
    times = [t for t in TIMES if 2 < t.year < 9990]
    assert computed("t:timestamp", [(t,) for t in times], "t", f"add_months(t, {months})") == {
        (t,): later(t, months) for t in times
    }
    rows = [(d, d.day - 15) for d in days]
    assert computed("d:date, n:number", rows, "d, n", "add_months(d, n)") == {(d, n): later(d, n) for d, n in rows}


def test_months_are_counted_on_the_clocks_of_a_zone() -> None:
    before = dt.datetime(2024, 2, 29, 12, tzinfo=BERLIN)
    assert computed('t:timestamp("Europe/Berlin")', [(before,)], "t", "add_months(t, 4)") == {
        (before,): dt.datetime(2024, 6, 29, 12, tzinfo=BERLIN)
    }


def test_rounding_of_decimals() -> None:
    some = [Decimal(i) / 1000 for i in (*range(-2600, 2600, 1 if JIT else 90), 10**17 - 1, 1 - 10**17, 1234567890123)]
    rows = [(x,) for x in some]
    for digits in (-1, 0, 1, 2, 3, 7):
        unit = Decimal(1).scaleb(-min(digits, 3))
        found = computed("x:decimal(18,3)", rows, "x", f"round(x, {digits})")
        assert found == {(x,): x.quantize(unit, ROUND_HALF_UP) for x in some}
        found = computed("x:decimal(18,3)", rows, "x", f"trunc(x, {digits})")
        assert found == {(x,): x.quantize(unit, ROUND_DOWN) for x in some}
    assert computed("x:decimal(18,3)", rows, "x", "floor(x)") == {(x,): math.floor(x) for x in some}
    assert computed("x:decimal(18,3)", rows, "x", "ceil(x)") == {(x,): math.ceil(x) for x in some}
    assert computed("x:decimal(18,3)", rows, "x", "to_float(x)") == {(x,): float(x) for x in some}
    assert computed("x:decimal(18,3)", rows, "x", "to_number(x)") == {(x,): int(x) for x in some}


def test_rounding_of_floats() -> None:
    inf = float("inf")
    some = [-2.5, -0.5, 0.0, 0.1 + 0.2, 2.345, 2.5, 1e300, inf]
    for term, expected in (
        ("round(x, 2)", [-2.5, -0.5, 0.0, 0.3, 2.35, 2.5, 1e300, inf]),
        ("round(x, 0)", [-3, -1, 0, 0, 2, 3, 1e300, inf]),
        ("trunc(x, 2)", [-2.5, -0.5, 0.0, 0.3, 2.34, 2.5, 1e300, inf]),
        ("trunc(x, -1)", [0, 0, 0, 0, 0, 0, 1e300, inf]),
        ("floor(x)", [-3, -1, 0, 0, 2, 2, 1e300, inf]),
        ("ceil(x)", [-2, 0, 0, 1, 3, 3, 1e300, inf]),
    ):
        found = computed("x:float", [(x,) for x in some], "x", term)
        assert found == {(x,): value for x, value in zip(some, expected, strict=True)}


def test_the_digits_of_what_is_computed_first() -> None:
    """What `round` gives depends on a variable whose type another clause tells."""
    db = lftj.Database("""
        .decl v(x:decimal(6,3))
        p(round(y, 1)) :- q(y).
        q(x * 2) :- v(x).
        p(z) :- q(y), y = w, z = floor(w) * 0.1d.
    """)
    db.load("v", [(Decimal("1.234"),)])
    assert list(db["p"]) == [(Decimal("0.2"),), (Decimal("2.5"),)]


@pytest.mark.parametrize(
    ("op", "of"), [("sqrt", math.sqrt), ("exp", math.exp), ("ln", math.log), ("log10", math.log10)]
)
@pytest.mark.parametrize("columns", [True, False])
def test_functors_of_floats(op: str, of: Any, columns: bool) -> None:
    some = [5e-324, 1e-300, 0.1, 1.0, 2.25, 100.0, 709.0, 709.782712893384, 1e300, math.inf]
    db = lftj.Database._sized(
        f".decl v(x:float)\np(x, {op}(x)) :- v(x).\ns(t) :- t = sum {op}(x) : {{ v(x), x < 700.0 }}.",
        columns_from=0 if columns else 1 << 60,
    )
    db.load("v", [(x,) for x in some])
    found = {x: of(x) if op != "exp" or x < 710 else math.inf for x in some}
    assert dict(db["p"]) == found
    ((total,),) = db["s"]
    assert total == math.fsum(y for x, y in found.items() if x < 700.0)
    if op == "exp":
        assert dict(db.query("x = -1e300, y = exp(x)")) == {-1e300: 0.0}


@pytest.mark.parametrize(
    ("term", "of"),
    [
        ("lower(t)", str.lower),
        ("upper(t)", str.upper),
        ("trim(t)", lambda t: t.strip(" ")),
        ('replace(t, "a", "ou")', lambda t: t.replace("a", "ou")),
        ('replace(t, "", "x")', lambda t: t),
        ('strpos(t, "a")', lambda t: t.find("a")),
        ("reverse(t)", lambda t: t[::-1]),
        ("repeat(t, 2)", lambda t: t + t),
        ("repeat(t, -1)", lambda t: ""),
        ('ltrim(t, "Ba ")', lambda t: t.lstrip("Ba ")),
        ('rtrim(t, "A \\t")', lambda t: t.rstrip("A \t")),
        ('ltrim(t, "")', lambda t: t),
        ('lpad(t, 5, "xy")', lambda t: ("xyxyx"[: max(5 - len(t), 0)] + t)[:5]),
        ('rpad(t, 5, "xy")', lambda t: (t + "xyxyx")[:5]),
        ('lpad(t, -1, "")', lambda t: ""),
        ("left(t, 2)", lambda t: t[:2]),
        ("left(t, -2)", lambda t: t[:-2]),
        ("right(t, 2)", lambda t: t[-2:]),
        ("right(t, -2)", lambda t: t[2:]),
        ("right(t, 0)", lambda t: ""),
        ("right(t, -9223372036854775808)", lambda t: ""),
        ("substring(t, 2, 3)", lambda t: t[1:4]),
        ("substring(t, 0, 3)", lambda t: t[:2]),
        ("substring(t, -3, 2)", lambda t: t[max(len(t) - 3, 0) : max(len(t) - 1, 0)]),
        ("substring(t, 4, -2)", lambda t: t[1:3]),
        ("substring(t, 9223372036854775807, 9223372036854775807)", lambda t: ""),
        ('split(t, "a", 1)', lambda t: dict(enumerate(t.split("a"))).get(1, "")),
        ('split(t, "a", -2)', lambda t: ["", *t.split("a")][-2]),
        ('split(t, "x", 0)', lambda t: t),
        ('split(t, "", 2)', lambda t: t[2:3]),
        ('split(t, "a", 9223372036854775807)', lambda t: ""),
    ],
)
def test_texts_of_texts(term: str, of: Any) -> None:
    texts = ["", "a", "Käse", " b a\t ", "BANANA", "Straße", "İ", "  "]
    assert computed("t:symbol", [(t,) for t in texts], "t", term) == {(t,): of(t) for t in texts}


@pytest.mark.parametrize(
    ("declared", "row", "term", "what"),
    [
        ("x:date", (dt.date.max,), "x + @1d", "not in the range of its type"),
        ("x:timestamp", (dt.datetime.min,), "x - @1us", "not in the range of its type"),
        ("x:duration", (dt.timedelta(microseconds=2**63 - 1),), "x + @1us", "not in the range of its type"),
        ("x:duration", (dt.timedelta(microseconds=2**62),), "x * 2", "not in the range of its type"),
        ("x:duration", (dt.timedelta(1),), "x / 0", "division by zero"),
        ("x:decimal(18,0)", (Decimal(10**18 - 1),), "x + 1", "not in the range of its type"),
        ("x:decimal(18,0)", (Decimal(10**9),), "x * x", "not in the range of its type"),
        ("x:timestamp, w:duration", (dt.datetime(2024, 1, 1), dt.timedelta(0)), "bucket(x, w)", "range of its type"),
        ("x:date, w:duration", (dt.date(2024, 1, 1), dt.timedelta(hours=1)), "bucket(x, w)", "range of its type"),
        ("x:symbol", ("2024-02-30",), "to_date(x)", "is not a day of the calendar"),
        *(
            ("x:symbol", (text,), "to_decimal(x, 2)", "is not a decimal")
            for text in ("x", "", "1_0", " 1", "1\n", "１", "inf", "nan", "0x1", "1e400", "1e99999999999999999999")
        ),
        ("x:float", (float("inf"),), "to_decimal(x, 2)", "is not a decimal"),
        *(
            (
                ("x:float", (x,), f"{op}(x)", "not a number")
                for op, x in (("sqrt", -5e-324), ("ln", 0.0), ("log10", -1.0))
            )
        ),
        ("x:date", (dt.date.max,), "add_months(x, 1)", "not in the range of its type"),
        ("x:date", (dt.date.max,), "add_months(x, 9223372036854775807)", "not in the range of its type"),
        ("x:timestamp", (dt.datetime.min,), "add_months(x, -1)", "not in the range of its type"),
        ("x:symbol", ("a",), 'lpad(x, 2, "")', "nothing to be filled with"),
        ("x:symbol", ("a",), 'rpad(x, 9223372036854775807, "b")', "it would have 9,223,372,036,854,775,807 characters"),
        ("x:decimal(5,2)", (Decimal(0),), "1.0 / to_float(x)", "division by zero"),
        ("x:decimal(18,0)", (Decimal(10**18 - 1),), "round(x, -1)", "out of the range of its type"),
    ],
)
def test_where_there_is_no_value(declared: str, row: tuple[Any, ...], term: str, what: str) -> None:
    names = ", ".join(part.split(":")[0] for part in declared.split(", "))
    db = lftj.Database(f".decl v({declared})\np({term}) :- v({names}).")
    db.load("v", [row])
    with pytest.raises(EvaluationError) as caught:
        list(db["p"])
    assert what in str(caught.value)
    assert "x = " in str(caught.value)


def test_buckets_are_duckdbs() -> None:
    import duckdb

    con = duckdb.connect()
    times = [dt.datetime(2024, 2, 29, 12, 34, 56), dt.datetime(1999, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 9)]
    for width in ("1h", "15m", "7d", "90s", "1w"):
        found = computed("t:timestamp", [(t,) for t in times], "t", f'bucket(t, "{width}")')
        length = width.replace("h", " hours").replace("15m", "15 minutes").replace("90s", "90 seconds")
        length = length.replace("1w", "7 days").replace("7d", "7 days")
        for t in times:
            (expected,) = con.execute(f"select time_bucket(interval '{length}', ?::timestamp)", [t]).fetchone()
            assert found[(t,)] == expected
    days = computed("d:date", [(dt.date(2024, 2, 29),)], "d", 'bucket(d, "7d")')
    assert days == {(dt.date(2024, 2, 29),): dt.date(2024, 2, 26)}


def test_bools_and_coalesce() -> None:
    rows = list(product((False, True), repeat=2))
    assert computed("a:bool, b:bool", rows, "a, b", "a land lnot b") == {(a, b): a and not b for a, b in rows}
    found = computed("a:unsigned?, b:symbol?", [(None, None), (0, "x")], "a, b", 'cat(coalesce(b, "-"), "!")')
    assert found == {(None, None): "-!", (0, "x"): "x!"}
    assert computed("a:unsigned?", [(None,), (0,)], "a", "coalesce(a, 7)") == {(None,): 7, (0,): 0}


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("p(x + y) :- d(x), d(y).", "`+` has no meaning for date and date"),
        ("p(x) :- d(x), x < 1.", "type conflict"),
        ("p(x) :- d(x), t(x).", "type conflict"),
        ("p(x) :- m(x), n(x).", "`x` is decimal(10,3) here, as column `x` of `n`, and decimal(10,2) elsewhere"),
        ("p(x * y * z) :- h(x), h(y), h(z).", "27 digits behind the point"),
        ("p(year(x)) :- i(x).", "`year` takes date or timestamp, and `x` is number"),
        ('p(bucket(x, "1x")) :- d(x).', 'the constant `"1x"` is not a duration'),
        ("p(to_decimal(x, x)) :- i(x).", "the digits behind the point are a constant from 0 to 18"),
        ("p(round(1.5, x)) :- i(x).", "the digits behind the point are a constant from -18 to 18"),
        ("p(x) :- m(x), x = 1.555d.", "the constant `1.555d` has more than 2 digits behind the point"),
        (".decl q(x:decimal(5,2)) q(x) :- m(x).", "column `x` of `q` is decimal(5,2), and `x` is decimal(10,2)"),
        ("p(@2024-02-30).", "is not a day of the calendar"),
        ("p(s) :- s = sum x : { d(x) }.", "`sum` takes number, unsigned, float, duration or decimal, and `x` is date"),
    ],
)
def test_what_makes_no_sense(program: str, what: str) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        lftj.Database(
            ".decl d(x:date) .decl t(x:timestamp) .decl m(x:decimal(10,2)) .decl n(x:decimal(10,3)) .decl i(x:number)\n"
            f".decl h(x:decimal(18,9))\n{program}"
        )
    assert what in str(caught.value), str(caught.value)
    assert "\n  why: " in str(caught.value)
    assert "\n  do: " in str(caught.value)


def test_aggregates() -> None:
    db = lftj.Database(
        ".decl v(k:bool, m:decimal(4,2), w:duration, d:date?)\n"
        "sm[k] = sum m : { v(k, m, _, _) }. am[k] = mean m : { v(k, m, _, _) }.\n"
        "sw[k] = sum w : { v(k, _, w, _) }. aw[k] = mean w : { v(k, _, w, _) }.\n"
        "lo[k] = min d : { v(k, _, _, d) }. hi[k] = max d : { v(k, _, _, d) }.\n"
    )
    day = dt.date(2024, 1, 1)
    rows = [
        (n % 2 == 0, Decimal(n) / 8 // Decimal("0.01") / 100, dt.timedelta(microseconds=n), day + dt.timedelta(n))
        for n in range(20)
    ]
    db.load("v", [*rows, (True, Decimal("0.50"), dt.timedelta(0), None)])
    rows.append((True, Decimal("0.50"), dt.timedelta(0), None))
    for key in (False, True):
        mine = [row for row in rows if row[0] == key]
        assert db["sm"][key] == sum(row[1] for row in mine)
        assert db["am"][key] == float(Fraction(sum(row[1] for row in mine)) / len(mine))
        total = sum((row[2] for row in mine), dt.timedelta(0))
        assert db["sw"][key] == total
        assert db["aw"][key] == dt.timedelta(microseconds=round(total / dt.timedelta(microseconds=1) / len(mine)))
        days = [row[3] for row in mine if row[3] is not None]
        assert (db["lo"][key], db["hi"][key]) == (min(days), max(days))
    v = db["v"]
    assert v.scan("sum", "m") == sum(row[1] for row in rows)
    assert v.scan("mean", "w") == dt.timedelta(
        microseconds=round(sum(r[2] / dt.timedelta(microseconds=1) for r in rows) / len(rows))
    )
    assert v.scan("max", "d") == day + dt.timedelta(19)
    assert str(db["sm"].arrow().schema.types[1]) == "decimal128(18, 2)"


def test_sums_of_decimals_beyond_the_digits() -> None:
    db = lftj.Database(".decl v(i:number, m:decimal(18,0))\nt(s) :- s = sum m : { v(_, m) }.")
    db.load("v", [(1, Decimal(10**18 - 1)), (2, Decimal(1))])
    with pytest.raises(EvaluationError, match="out of the range of decimal"):
        list(db["t"])
    with db.transaction() as tx:
        tx.erase("v", [(2, Decimal(1))])
    assert list(db["t"]) == [(Decimal(10**18 - 1),)]


def test_numpy_dtypes() -> None:
    db = lftj.Database(".decl v(d:date, t:timestamp, w:duration, b:bool, n:number?)")
    db.load("v", [(dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), dt.timedelta(1), True, None)])
    array = db["v"].numpy()
    assert [array.dtype[i] for i in range(5)] == [
        np.dtype("M8[D]"),
        np.dtype("M8[us]"),
        np.dtype("m8[us]"),
        np.dtype(bool),
        np.dtype(object),
    ]
