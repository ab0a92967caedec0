"""Every type with values of it in order, extremes included, and a map of small integers to it that keeps the order."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

BERLIN = ZoneInfo("Europe/Berlin")
UTC = dt.UTC


class Case(NamedTuple):
    """`values`: in order · `of`: the value of a small integer · `bad`: what the type does not hold, and why not."""

    values: list[Any]
    of: Callable[[int], Any]
    bad: list[tuple[Any, str]]


CASES: dict[str, Case] = {
    "number": Case(
        [-(2**63), -1, 0, 2**63 - 1], lambda n: n, [(2**63, "does not fit into number"), (1.0, "is a float")]
    ),
    "unsigned": Case([0, 1, 2**63, 2**64 - 1], lambda n: n + 2**63, [(-1, "does not fit into unsigned")]),
    "float": Case([-float("inf"), -1.5, 0.0, 5e-324, float("inf")], lambda n: n / 2, [(float("nan"), "is not a key")]),
    "symbol": Case(["", "\x00", "A", "a", "é", "😀"], lambda n: f"{n:04}", [(b"a", "is bytes, not a symbol")]),
    "bool": Case(
        [False, True], lambda n: bool(n % 2), [(1, "is an int, not a bool"), ("true", "is a str, not a bool")]
    ),
    "date": Case(
        [dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date.max],
        lambda n: dt.date(2024, 2, 27) + dt.timedelta(n),
        [
            (dt.datetime(2024, 1, 1, 12), "has a time of day"),
            ("2024-01-01", "is a str, not a date"),
            (dt.datetime(2024, 1, 1, tzinfo=UTC), "is a datetime, not a date"),
        ],
    ),
    "timestamp": Case(
        [dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime.max],
        lambda n: dt.datetime(2024, 3, 31, 0, 30) + dt.timedelta(hours=n),
        [(dt.date(2024, 1, 1), "is a date, not a timestamp"), (0, "is an int, not a timestamp")],
    ),
    'timestamp("Europe/Berlin")': Case(
        [
            dt.datetime(1, 1, 1, 0, 53, 28, tzinfo=BERLIN),
            dt.datetime(2024, 3, 31, 1, 59, tzinfo=BERLIN),
            dt.datetime(2024, 3, 31, 3, 0, tzinfo=BERLIN),
            dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
            dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
            dt.datetime.max.replace(tzinfo=BERLIN),
        ],
        lambda n: (dt.datetime(2024, 3, 30, 23, 30, tzinfo=UTC) + dt.timedelta(hours=n)).astimezone(BERLIN),
        [
            (dt.datetime.min, 'does not fit into timestamp("Europe/Berlin")'),
            (dt.datetime(9999, 12, 31, 23, 30, tzinfo=UTC), 'does not fit into timestamp("Europe/Berlin")'),
        ],
    ),
    "duration": Case(
        [dt.timedelta(microseconds=-(2**63) + 1), dt.timedelta(0), dt.timedelta(microseconds=2**63 - 1)],
        lambda n: dt.timedelta(minutes=n - 3),
        [(dt.timedelta.max, "does not fit into duration"), (1, "is an int, not a duration")],
    ),
    "decimal(10,2)": Case(
        [Decimal("-99999999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("0.10"), Decimal("99999999.99")],
        lambda n: Decimal(n - 3) / 4,
        [
            (Decimal("0.001"), "has more than 2 digits behind the point"),
            (Decimal("100000000"), "does not fit into decimal(10,2)"),
            (0.5, "is a float, not a decimal(10,2)"),
            (Decimal("NaN"), "is not a key"),
        ],
    ),
    "decimal(18,18)": Case(
        [Decimal("-0.999999999999999999"), Decimal("0.000000000000000001"), Decimal("0.999999999999999999")],
        lambda n: Decimal(n).scaleb(-18),
        [(1, "does not fit into decimal(18,18)")],
    ),
    "uuid": Case(
        [uuid.UUID(int=0), uuid.UUID(int=2**127 - 1), uuid.UUID(int=2**127), uuid.UUID(int=2**128 - 1)],
        lambda n: uuid.UUID(int=n << 100),
        [("x", "is not a uuid"), (b"short", "is bytes, not a uuid")],
    ),
    "bytes": Case(
        [b"", b"\x00", b"\x00\x00", b"a", b"\x7f", b"\x80", b"\xff\xfe", b"\xff\xff"],
        lambda n: bytes([n, 255 - n]),
        [("a", "is a str, not bytes")],
    ),
}
TYPES = sorted(CASES)
