"""The types of time: `date`, `timestamp` and `duration`.

A date is a day of the Gregorian calendar, from 0001-01-01 to 9999-12-31, coded as days since 1970-01-01. A timestamp is
an instant in microseconds since then, in UTC; `timestamp("Europe/Berlin")` has the same codes and shows them on the
clocks there. A duration is any number of microseconds that int64 holds but the least, which is null.

Instants without a zone, in Python, Arrow or text, are read on the clocks of the column: in UTC, if it names no zone.
What the clocks show twice (in autumn) is the first of the two, and what they never show (in spring) is as if they had
not moved yet, as in Python's datetime. Values finer than a microsecond are refused, and so is a timestamp with a time
of day where a date is due.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lftj.values import faults
from lftj.values.codes import is_missing
from lftj.values.value_type import Misfit, Read, ValueType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

DAY = 86_400_000_000  # in microseconds
SECOND = 1_000_000
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAIVE_EPOCH = dt.datetime(1970, 1, 1)
_ENDS = dt.datetime.min, dt.datetime.max
FIRST_DAY, LAST_DAY = dt.date.min.toordinal() - _EPOCH_DAY, dt.date.max.toordinal() - _EPOCH_DAY
_UNITS = {"s": SECOND, "ms": 1000, "us": 1}
# Units of numpy in microseconds; those that have no length, and how many years before and after 1970 are read of them,
# which is more than the calendar has.
_OF_NUMPY = {"W": Fraction(7 * DAY), "D": Fraction(DAY), "h": Fraction(3600 * SECOND), "m": Fraction(60 * SECOND)}
_OF_NUMPY |= {unit: Fraction(SECOND, 1000**i) for i, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))}
_OF_CALENDAR, _YEARS = ("Y", "M"), 100_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)([T ](?P<hour>\d\d):(?P<minute>\d\d)(:(?P<second>\d\d)([.,](?P<part>\d{1,9}))?)?"
    r"\s?(?P<zone>Z|[+-]\d\d(:?\d\d){0,2})?)?",
    re.ASCII,
)
_N = r"\d{1,19}"  # as many digits as microseconds of 64 bits have
_DURATION = re.compile(
    rf"(?P<sign>[-+]?)((?P<w>{_N})w)?((?P<d>{_N})d)?((?P<h>{_N})h)?((?P<m>{_N})m(?!s))?"
    rf"((?P<s>{_N})(\.(?P<part>\d{{1,6}}))?s)?((?P<ms>{_N})ms)?((?P<us>{_N})us)?",
    re.ASCII,
)
_ISO = re.compile(
    rf"(?P<sign>[-+]?)P((?P<w>{_N})W)?((?P<d>{_N})D)?(T((?P<h>{_N})H)?((?P<m>{_N})M)?"
    rf"((?P<s>{_N})(\.(?P<part>\d{{1,9}}))?S)?)?",
    re.ASCII,
)
# As Python and SQL write it: the days have a sign of their own, and -1 day, 23:00:00 is an hour before.
_CLOCK = re.compile(
    rf"((?P<days>[-+]?{_N}) days?,? )?(?P<sign>[-+]?)(?P<h>{_N}):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(\.(?P<part>\d{{1,9}}))?",
    re.ASCII,
)
# As SQL writes it in words: each part has a sign of its own.
_WORDS = re.compile(
    rf"([-+]?{_N}(?:\.\d{{1,9}})?) ?(week|day|hour|minute|second|millisecond|microsecond)s?(?: (?=[-+\d])|$)",
    re.ASCII | re.IGNORECASE,
)
_WORDED = {"week": "w", "day": "d", "hour": "h", "minute": "m", "second": "s", "millisecond": "ms", "microsecond": "us"}
_LENGTHS = {
    "w": 7 * DAY,
    "d": DAY,
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": 1000,
    "us": 1,
}


def _finer() -> faults.Fault:
    return faults.Fault(
        "is finer than a microsecond", "times are kept in microseconds", 'round it first, as `t.floor("us")` does'
    )


def _int64(array: pa.Array) -> NDArray[np.int64]:
    """The int64 that an Arrow array of times is made of, without a copy."""
    import pyarrow as pa

    values: NDArray[np.int64] = array.view(pa.int64()).to_numpy()
    return values


def _micros(values: NDArray[np.int64], unit: str) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Microseconds of counts of a unit, and those that are no whole number of them or too many."""
    import numpy as np

    if unit == "us":
        return values, None
    if unit == "ns":
        micros = values // 1000
        return micros, micros * 1000 != values
    with np.errstate(over="ignore"):
        micros = values * _UNITS[unit]
    return micros, micros // _UNITS[unit] != values


def _either(one: NDArray[np.bool_] | None, two: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    return two if one is None else one if two is None else one | two


class _Time(ValueType):
    """Bulk forms that the three have in common."""

    kind: str = "M"  # of numpy's dtype

    def outside(self, codes: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """The codes that are none of the type; None if there are none."""
        if not len(codes) or (int(codes.min()) >= self.low and int(codes.max()) <= self.high):
            return None
        found: NDArray[np.bool_] = (codes < self.low) | (codes > self.high)
        return found

    def fits_numpy(self, given: np.dtype[Any]) -> bool:
        return given.kind == self.kind

    def _of_numpy(self, value: Any) -> Any:
        """A numpy scalar of times as a value of Python; `Misfit` of one that Python has no value for."""
        found = _of_numpy(value)
        if type(found).__module__ == "numpy" and found.dtype.kind == self.kind:
            raise self.out_of_range()
        return found

    def out_of_range(self) -> Misfit:
        """The misfit of a value that the type does not reach."""
        return Misfit(faults.Fault(f"does not fit into {self.plain}", self.takes, "correct the value"))


class Date(_Time):
    """Days of the calendar."""

    family, dtype = "date", "datetime64[D]"
    takes = "a date is a day from 0001-01-01 to 9999-12-31"
    spelled = "a date is written like 2024-05-31"
    article, python = "a date", "datetime.date"
    low, high = FIRST_DAY, LAST_DAY

    def read(self, value: object) -> int:
        value = self._of_numpy(value)
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise Misfit(faults.of_kind(self, value))
            if value.time() != dt.time() or getattr(value, "nanosecond", False):
                raise Misfit(_has_a_time())
        elif not isinstance(value, dt.date):
            raise Misfit(faults.of_kind(self, value))
        return value.toordinal() - _EPOCH_DAY

    def shown(self, stored: int) -> dt.date:
        return dt.date.fromordinal(stored + _EPOCH_DAY)

    def parse(self, text: str) -> int:
        if _DATE.fullmatch(text):
            try:
                return dt.date.fromisoformat(text).toordinal() - _EPOCH_DAY
            except ValueError:
                raise Misfit(faults.Fault("is not a day of the calendar", self.takes, "correct the value")) from None
        raise Misfit(faults.not_spelled(self))

    def literal(self, value: Any) -> str:
        return f"@{value}"

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.date32()

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_date(given) or (kinds.is_timestamp(given) and given.tz is None))

    def from_arrow(self, array: pa.Array) -> Read:
        import numpy as np
        import pyarrow as pa
        import pyarrow.types as kinds

        if kinds.is_date32(array.type):
            days = array.view(pa.int32()).to_numpy().astype(np.int64)
            return Read(days, self.outside(days))
        micros, misfits = _micros(_int64(array), "ms" if kinds.is_date64(array.type) else array.type.unit)
        return self._of_micros(micros, misfits)

    def _of_micros(self, micros: NDArray[np.int64], misfits: NDArray[np.bool_] | None) -> Read:
        days = micros // DAY
        return Read(days, _either(_either(misfits, self.outside(days)), days * DAY != micros))

    def to_arrow(self, stored: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        from lftj.values.arrow_arrays import numbers

        return numbers(stored.astype(np.int32), mask).view(pa.date32())

    def from_numpy(self, values: NDArray[Any]) -> Read:
        import numpy as np

        if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D"):
            days, misfits = _numpy_times(values, "D")
            return Read(days, _either(self.outside(days), misfits))
        micros, misfits = _numpy_micros(values)
        return self._of_micros(micros, misfits)

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return codes.astype("M8[D]")


class Timestamp(_Time):
    """Instants, shown on the clocks of a zone."""

    family, python = "timestamp", "datetime.datetime"
    dtype = "datetime64[us]"
    article = "a timestamp"
    takes = "a timestamp is an instant of the years 1 to 9999, in microseconds"
    spelled = "a timestamp is written like 2024-05-31T12:30:00, with fractions and an offset (Z, +02:00) if needed"
    low, high = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1

    def __init__(self, zone: str = "") -> None:
        self.zone = zone
        if zone:  # whose clocks must not leave the calendar; numpy's times have none
            clocks = zone_of(zone)
            assert clocks is not None
            ahead_first, ahead_last = (clocks.utcoffset(end) or dt.timedelta() for end in _ENDS)
            self.low, self.high = self.low + max(0, -_count(ahead_first)), self.high - max(0, _count(ahead_last))
            self.takes = f"{self.plain} holds instants of the years 1 to 9999, in UTC and on its clocks"
            self.dtype = "object"

    @classmethod
    def of(cls, parameters: tuple[str, ...]) -> Timestamp:
        if not parameters:
            return cls()
        (zone,) = parameters if len(parameters) == 1 else ("",)
        if not (zone.startswith('"') and zone.endswith('"')):
            raise ValueError('it takes the name of a time zone in quotes, as in timestamp("Europe/Berlin")')
        zone = zone[1:-1]
        if zone_of(zone) is None:
            raise ValueError(f"the time zone {zone!r} is not known here (the package tzdata has all of them)")
        return cls(zone)

    @property
    def plain(self) -> str:
        return f'timestamp("{self.zone}")' if self.zone else "timestamp"

    def read(self, value: object) -> int:
        value = self._of_numpy(value)
        if not isinstance(value, dt.datetime):
            raise Misfit(faults.of_kind(self, value))
        if getattr(value, "nanosecond", False):
            raise Misfit(_finer())
        try:
            if value.tzinfo is None and not self.zone:
                code = _count(value - _NAIVE_EPOCH)
            else:
                aware = value if value.tzinfo is not None else value.replace(tzinfo=zone_of(self.zone))
                code = _count(aware - _EPOCH)
        except OverflowError:
            raise self.out_of_range() from None
        if not self.low <= code <= self.high:
            raise self.out_of_range()
        return code

    def shown(self, stored: int) -> dt.datetime:
        naive = _NAIVE_EPOCH + dt.timedelta(microseconds=stored)
        if not self.zone:
            return naive
        aware = naive.replace(tzinfo=dt.UTC)
        try:
            return aware.astimezone(zone_of(self.zone))
        except OverflowError:  # the clocks of the zone leave the calendar there: the same instant, in UTC
            return aware

    def parse(self, text: str) -> int:
        found = _TIMESTAMP.fullmatch(text)
        if found is None:
            raise Misfit(faults.not_spelled(self))
        part = (found["part"] or "").ljust(6, "0")
        if part[6:].strip("0"):
            raise Misfit(_finer())
        try:
            value = dt.datetime.combine(
                dt.date.fromisoformat(found["date"]),
                dt.time(int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0), int(part[:6])),
            )
            if found["zone"]:
                value = value.replace(tzinfo=dt.timezone(_offset(found["zone"])))
        except ValueError:
            raise Misfit(faults.Fault("is no time of the calendar", self.takes, "correct the value")) from None
        return self.read(value)

    def text(self, value: dt.datetime) -> str:
        return value.isoformat()

    def literal(self, value: dt.datetime) -> str:
        return f"@{(value if value.tzinfo is None else value.astimezone(dt.UTC)).isoformat()}"

    def constant(self, value: object) -> dt.datetime:
        # One with an offset is an instant whatever it is compared with; one without is read on the clocks of that.
        stored = self.read(value)
        aware = isinstance(value, dt.datetime) and value.tzinfo is not None
        return self.shown(stored).replace(tzinfo=dt.UTC if aware else None)

    def constant_of(self, text: str) -> dt.datetime:
        stored, found = self.parse(text), _TIMESTAMP.fullmatch(text)
        return self.shown(stored).replace(tzinfo=dt.UTC if found and found["zone"] else None)

    def known(self, stored: int) -> dt.datetime:
        # Python compares times of one zone by what its clocks show, which in autumn is the same at two instants.
        naive = _NAIVE_EPOCH + dt.timedelta(microseconds=stored)
        return naive.replace(tzinfo=dt.UTC) if self.zone else naive

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.timestamp("us", re.sub(r"^([+-]\d\d)(\d\d)$", r"\1:\2", self.zone) or None)

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_timestamp(given))

    def from_arrow(self, array: pa.Array) -> Read:
        micros, misfits = _micros(_int64(array), array.type.unit)
        if self.zone and array.type.tz is None:
            return self._on_clocks(micros, misfits)
        return Read(micros, _either(misfits, self.outside(micros)))

    def to_arrow(self, stored: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> pa.Array:
        from lftj.values.arrow_arrays import numbers

        return numbers(stored, mask).view(self.arrow_type())

    def from_numpy(self, values: NDArray[Any]) -> Read:
        micros, misfits = _numpy_micros(values)
        if self.zone:
            return self._on_clocks(micros, misfits)
        return Read(micros, _either(misfits, self.outside(micros)))

    def _on_clocks(self, micros: NDArray[np.int64], misfits: NDArray[np.bool_] | None) -> Read:
        """Instants from what the clocks of the zone show."""
        import numpy as np

        naive = Timestamp()
        odd = _either(misfits, naive.outside(micros))
        kept = micros if odd is None else np.where(odd, 0, micros)
        distinct, places = np.unique(kept, return_inverse=True)
        codes = np.zeros(len(distinct), np.int64)
        outside = np.zeros(len(distinct), bool)
        for i, local in enumerate(distinct.tolist()):
            try:
                codes[i] = self.read(naive.shown(local))
            except Misfit:
                outside[i] = True
        return Read(codes[places], _either(odd, outside[places]))

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return super().to_numpy(codes) if self.zone else codes.astype("M8[us]")


class Duration(_Time):
    """Lengths of time, of either sign."""

    family, dtype, kind = "duration", "timedelta64[us]", "m"
    takes = "a duration is a number of microseconds of 64 bits"
    spelled = "a duration is written like 1h30m, 2d, -1.5s, PT1H30M or 1 day 2 hours"
    article, python = "a duration", "datetime.timedelta"
    low = -(2**63) + 1

    def read(self, value: object) -> int:
        value = self._of_numpy(value)
        if hasattr(value, "months") and hasattr(value, "nanoseconds"):  # an interval of Arrow, as DuckDB has them
            return self._of_interval(value)
        if not isinstance(value, dt.timedelta):
            raise Misfit(faults.of_kind(self, value))
        if getattr(value, "nanoseconds", 0) % 1000:
            raise Misfit(_finer())
        return self._checked(_count(value))

    def _of_interval(self, value: Any) -> int:
        if value.months:
            raise Misfit(faults.Fault("has months", "a month is no length of time", "give it in days or less"))
        if value.nanoseconds % 1000:
            raise Misfit(_finer())
        return self._checked(value.days * DAY + value.nanoseconds // 1000)

    def _checked(self, code: int) -> int:
        if not self.low <= code <= self.high:
            raise self.out_of_range()
        return code

    def shown(self, stored: int) -> dt.timedelta:
        return dt.timedelta(microseconds=stored)

    def parse(self, text: str) -> int:
        found = None
        if any(c.isdigit() for c in text):
            found = _DURATION.fullmatch(text) or _ISO.fullmatch(text) or _CLOCK.fullmatch(text)
        if found is None:
            return self._checked(self._in_words(text))
        parts = found.groupdict()
        part = (parts.pop("part") or "").ljust(6, "0")
        if part[6:].strip("0"):
            raise Misfit(_finer())
        sign, days = -1 if parts.pop("sign") == "-" else 1, int(parts.pop("days", None) or 0)
        total = int(part[:6]) + sum(_LENGTHS[unit] * int(count) for unit, count in parts.items() if count)
        return self._checked(days * DAY + sign * total)

    def _in_words(self, text: str) -> int:
        total, at = Fraction(), 0
        while found := _WORDS.match(text, at):
            total, at = total + Fraction(found[1]) * _LENGTHS[_WORDED[found[2].lower()]], found.end()
        if not text or at < len(text):
            raise Misfit(faults.not_spelled(self))
        if total.denominator > 1:
            raise Misfit(_finer())
        return int(total)

    def text(self, value: dt.timedelta) -> str:
        count = _count(value)
        rest, shown = abs(count), "-" if count < 0 else ""
        for unit in ("d", "h", "m"):
            whole, rest = divmod(rest, _LENGTHS[unit])
            shown += f"{whole}{unit}" if whole else ""
        seconds, part = divmod(rest, SECOND)
        if seconds or part or not count:
            shown += str(seconds) + (f".{part:06}".rstrip("0") if part else "") + "s"
        return shown

    def literal(self, value: dt.timedelta) -> str:
        return f"@{self.text(value)}"

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.duration("us")

    def fits_arrow(self, given: pa.DataType) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_duration(given) or kinds.is_interval(given))

    def from_arrow(self, array: pa.Array) -> Read:
        import numpy as np
        import pyarrow.types as kinds

        if kinds.is_interval(array.type):  # DuckDB's: months, which are no length, days and nanoseconds
            parts = np.frombuffer(array.buffers()[1], "i4,i4,i8")[array.offset : array.offset + len(array)]
            days, nanos = parts["f1"].astype(np.int64), parts["f2"]
            beyond = np.abs(days) > self.high // DAY
            whole, rest = np.where(beyond, 0, days) * DAY, nanos // 1000
            total = whole + rest
            beyond |= ((whole ^ total) & (rest ^ total) < 0) | (total < self.low)
            return Read(total, beyond | (parts["f0"] != 0) | (nanos % 1000 != 0))
        micros, misfits = _micros(_int64(array), array.type.unit)
        return Read(micros, _either(misfits, self.outside(micros)))

    def to_arrow(self, stored: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> pa.Array:
        import pyarrow as pa

        from lftj.values.arrow_arrays import numbers

        return numbers(stored, mask).view(pa.duration("us"))

    def from_numpy(self, values: NDArray[Any]) -> Read:
        micros, misfits = _numpy_micros(values)
        return Read(micros, _either(misfits, self.outside(micros)))

    def to_numpy(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return codes.astype("m8[us]")

    def summed(self, total: int) -> dt.timedelta:
        return dt.timedelta(microseconds=total)

    def averaged(self, total: int, count: int) -> dt.timedelta:
        return dt.timedelta(microseconds=round(Fraction(total, count)))


@lru_cache(maxsize=64)
def zone_of(name: str) -> dt.tzinfo | None:
    """The zone of a name, an offset such as +02:00 too; None if there is none."""
    import zoneinfo

    if re.fullmatch(r"[+-]\d\d:?\d\d", name):
        return dt.timezone(_offset(name))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _offset(text: str) -> dt.timedelta:
    if text == "Z":
        return dt.timedelta()
    digits = text[1:].replace(":", "").ljust(6, "0")
    length = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:]))
    return -length if text[0] == "-" else length


def _count(length: dt.timedelta) -> int:
    """The microseconds of a timedelta, exactly."""
    return (length.days * 86_400 + length.seconds) * SECOND + length.microseconds


def _has_a_time() -> faults.Fault:
    return faults.Fault(
        "has a time of day", "a date is a whole day", "declare the column `timestamp`, or drop the time of day"
    )


def _of_numpy(value: Any) -> Any:
    """A numpy scalar of times as a value of Python, where there is one; None of a NaT."""
    if is_missing(value):  # pandas' is a datetime to Python
        return None
    if type(value).__module__ != "numpy" or type(value).__name__ not in ("datetime64", "timedelta64"):
        return value
    import numpy as np

    micros, misfits = _numpy_micros(value.reshape(1))
    if np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as"):
        if misfits is not None:
            raise Misfit(_finer())
        value = micros.view(f"{value.dtype.kind}8[us]")[0]
    elif misfits is not None:
        return value  # and no other one, which `item` makes of what is too far
    return value.item() if not isinstance(value.item(), int) else value


def _numpy_micros(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Microseconds of an array of times, and the misfits: NaT, what is finer, what is too far or has no length."""
    import numpy as np

    if np.datetime_data(values.dtype)[0] in (*(_OF_CALENDAR if values.dtype.kind == "m" else ()), "generic"):
        return np.zeros(len(values), np.int64), np.ones(len(values), np.bool_)
    return _numpy_times(values, "us")


def _numpy_times(values: NDArray[Any], unit: str) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """An array of times in a unit, and the misfits: NaT, what is finer, what is too far.

    By integers: numpy converts what is too far to anything, and refuses the whole array since 2.5.
    """
    import numpy as np

    given, count = np.datetime_data(values.dtype)
    missing, numbers = np.isnat(values), values.astype(np.int64)
    if given in _OF_CALENDAR:
        misfits = missing | (np.abs(numbers) > _YEARS * (12 if given == "M" else 1) // count)
        near = np.where(misfits, 0, numbers).astype(f"M8[{count}{given}]")
        made = near.astype(f"M8[{unit}]").astype(np.int64)
    else:
        ratio = _OF_NUMPY[given] * count / _OF_NUMPY[unit]
        parts, rest = np.divmod(numbers, ratio.denominator)
        misfits = missing | (rest != 0) | (np.abs(parts) > np.iinfo(np.int64).max // ratio.numerator)
        made = np.where(misfits, 0, parts) * ratio.numerator
    return made, misfits if misfits.any() else None
