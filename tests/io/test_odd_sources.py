"""Sources and values that were read as something else, or ended in an error that is none of ours."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import io
import os
import sys
import zoneinfo
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lftj
from lftj.errors import DataError
from lftj.io.write import write


def loaded(declaration: str, source: Any, **options: Any) -> list[tuple[Any, ...]]:
    db = lftj.Database(f".decl r({declaration})")
    db.load("r", source, **options)
    return list(db["r"])


def applied(declaration: str, *blocks: tuple[Any, Any, Any]) -> list[tuple[Any, ...]]:
    db = lftj.Database(f".decl r({declaration})")
    db.apply(blocks)
    return list(db["r"])


class Color(str, enum.Enum):  # noqa: UP042 - a StrEnum shows itself as its value
    RED = "red"


class Frame(pd.DataFrame):
    pass


class Swapped(collections.namedtuple("Swapped", "b a")):
    pass


DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)


@pytest.mark.parametrize("rows", [[[1, 2]], [[1, 2], [3, 4]]])
def test_a_matrix_is_an_array(rows: list[list[int]]) -> None:
    """Its columns are matrices, too: one row of it wrote beyond an array."""
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(rows)
    assert loaded("a:number, b:number", matrix) == [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-1 day, 23:00:00", -HOUR),
        ("-1 days 01:00:00", HOUR - DAY),
        ("2 days -01:00:00", 2 * DAY - HOUR),
        ("-01:00:00", -HOUR),
        ("1 day, 0:00:01.5", DAY + dt.timedelta(seconds=1.5)),
        (str(dt.timedelta(days=-3, microseconds=1)), dt.timedelta(days=-3, microseconds=1)),
    ],
)
def test_the_days_of_a_duration_have_a_sign_of_their_own(text: str, value: dt.timedelta) -> None:
    assert loaded("v:duration", io.StringIO(f'"{text}"\n'), format="csv") == [(value,)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 day", DAY),
        ("2 days -3 hours", 2 * DAY - 3 * HOUR),
        ("-1.5 Hours", -1.5 * HOUR),
        ("1 week 1 minute 2.25 seconds", 7 * DAY + dt.timedelta(minutes=1, seconds=2.25)),
        ("20 milliseconds 1 microsecond", dt.timedelta(microseconds=20_001)),
    ],
)
def test_a_duration_in_words(text: str, value: dt.timedelta) -> None:
    """As SQL writes it: `insert into t values ('1 day')` was refused."""
    assert loaded("v:duration", io.StringIO(f'"{text}"\n'), format="csv") == [(value,)]
    db = lftj.Database()
    db.sql("create table t (i interval)")
    db.sql(f"insert into t values ('{text}')")
    assert list(db.sql(f"select i from t where i = '{text}' and i = cast('{text}' as interval)")) == [(value,)]


@pytest.mark.parametrize("text", ["1 month", "1 day  2 hours", "1 day, 2 hours", "day", "1 days ", "0.5 microseconds"])
def test_what_is_no_duration_in_words(text: str) -> None:
    with pytest.raises(DataError, match=r"is not a duration|finer than a microsecond"):
        loaded("v:duration", io.StringIO(f'"{text}"\n'), format="csv")


@pytest.mark.parametrize("text", ["1:99:99", "1:60:00", "٣s", "9" * 5000 + "s", "0x123e4567e89b12d3a4564266141740"])
@pytest.mark.parametrize("type", ["duration", "uuid", "timestamp"])
def test_texts_that_only_look_like_a_value(type: str, text: str) -> None:
    with pytest.raises(DataError, match="is not"):
        loaded(f"v:{type}", io.StringIO(f"{text}\n"), format="csv")


def test_blocks_of_other_forms_are_read_as_they_are_alone() -> None:
    """The first row of two blocks decided for both: by position, or by names."""
    columns = "a:number, b:number"
    assert applied(columns, ("r", "+1", [(5, 6)]), ("r", "+1", [Swapped(b=1, a=2)])) == [(2, 1), (5, 6)]
    named = [("r", "+1", [{"a": 3, "b": 4}]), ("r", 1, [{"b": 5, "a": 3}]), ("r", "-1", [])]
    assert applied(columns, ("r", "+1", [(1, 2)]), *named) == [(1, 2), (3, 4), (3, 5)]


def test_a_block_may_name_files(tmp_path: Path) -> None:
    """Files were counted as rows: what came with the second went with the third block."""
    (tmp_path / "two.csv").write_text("1,2\n3,4\n")
    (tmp_path / "none.csv").write_text("")
    blocks = [("r", "+1", [str(tmp_path / "two.csv")]), ("r", "-1", [str(tmp_path / "none.csv")])]
    assert applied("a:number, b:number", *blocks) == [(1, 2), (3, 4)]
    assert applied("a:number, b:number", blocks[0]) == [(1, 2), (3, 4)]


def test_texts_of_enumerations_are_their_values() -> None:
    assert loaded("s:symbol", [(Color.RED,)]) == loaded("s:symbol", {"s": [Color.RED]}) == [("red",)]
    db = lftj.Database(".decl r(s:symbol)")
    db.load("r", [("red",)])
    assert (Color.RED,) in db["r"]


def test_frames_of_other_classes_are_frames() -> None:
    frame = Frame({"x": [10, 20]}, index=[7, 8])
    assert loaded("x:number", frame) == [(10,), (20,)]
    with pytest.raises(DataError, match="1 column"):
        loaded("a:number, b:number", frame)


@pytest.mark.parametrize(
    ("value", "stored"),
    [("1." + "0" * 130, "1.00"), ("0E+50", "0.00"), ("1.00" + "0" * 100 + "1", None), ("1E-200", None)],
)
def test_decimals_of_many_digits(value: str, stored: str | None) -> None:
    if stored is not None:
        assert loaded("d:decimal(10, 2)", [(Decimal(value),)]) == [(Decimal(stored),)]
        return
    with pytest.raises(DataError, match="behind the point"):
        loaded("d:decimal(10, 2)", [(Decimal(value),)])


def test_a_day_with_a_nanosecond_is_no_date() -> None:
    for source in ([(pd.Timestamp(1),)], pa.table({"d": pa.array([1], pa.timestamp("ns"))})):
        with pytest.raises(DataError, match="has a time of day"):
            loaded("d:date", source)


def test_intervals_of_arrow() -> None:
    fits = pa.array([pa.MonthDayNano([0, 106_751_991, 0]), pa.MonthDayNano([0, -1, 5000])])
    found = [(-DAY + dt.timedelta(microseconds=5),), (106_751_991 * DAY,)]
    assert (
        loaded("v:duration", pa.table({"v": fits})) == loaded("v:duration", [(x,) for x in fits.to_pylist()]) == found
    )
    for parts in ([0, 200_000_000, 0], [0, 106_751_991, 15_000 * 10**12], [1, 0, 0], [0, 0, 1]):
        for source in (pa.table({"v": pa.array([pa.MonthDayNano(parts)])}), [(pa.MonthDayNano(parts),)]):
            with pytest.raises(DataError):
                loaded("v:duration", source)


def test_lines_that_are_a_row_only_together_are_none() -> None:
    text = '{"v":2},{"v":3}\n{"v":4,"z":[{}\n{"c":1}]}\n'
    with pytest.raises(DataError, match="3 bad rows"):
        loaded("v:number", io.StringIO(text), format="ndjson")


@pytest.mark.parametrize(
    "content", [b'["a]\n["], ["b"]\n', b'{"a": "x}\n{"}, {"a": "y"}\n', b'["a"\n]\n', b'["a"], ["b"]\n["c"]\n']
)
def test_lines_that_are_rows_only_together_are_bad_rows(content: bytes) -> None:
    """A text that was open at the end of a line went on in the next one."""
    db = lftj.Database(".decl e(a:symbol)")
    with pytest.raises(DataError, match="is not JSON"):
        db.load("e", io.BytesIO(content), format="ndjson")
    rejects = db.load("e", io.BytesIO(content + b'["good"]\n'), format="ndjson", on_error="quarantine")
    assert rejects is not None
    assert "good" in {a for (a,) in db["e"]} <= {"good", "c"}


def test_dictionaries_of_more_values_than_their_indices_number() -> None:
    texts = [[f"{k}{i}" for i in range(100)] for k in "abc"]
    frames = [pd.DataFrame({"s": pd.Categorical(some)}) for some in texts]
    tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]
    wanted = sorted((text,) for some in texts for text in some)
    assert applied("s:symbol", *(("r", "+1", table) for table in tables)) == wanted
    chunks = pa.chunked_array([table["s"].combine_chunks() for table in tables])
    assert loaded("s:symbol", {"s": chunks}) == wanted
    views = pa.array([b"x", None, b"y"], pa.binary_view()).dictionary_encode()
    assert loaded("s:bytes?", pa.table({"s": views})) == [(None,), (b"x",), (b"y",)]


def test_half_floats_each_with_its_dictionary() -> None:
    """Arrow joins such dictionaries to one of the numbers that their bits spell."""
    encoded = [pa.array(some, pa.float16()).dictionary_encode() for some in ([1.5, -2.25], [-2.25, 7.0])]
    wanted = [(-2.25,), (1.5,), (7.0,)]
    assert loaded("x:float", {"x": pa.chunked_array(encoded)}) == wanted
    assert applied("x:float", *(("r", "+1", pa.table({"x": some})) for some in encoded)) == wanted


@pytest.mark.parametrize(("kind", "type"), [(pa.timestamp("ns"), "timestamp"), (pa.duration("ns"), "duration")])
def test_the_least_number_of_nanoseconds_is_not_null(kind: pa.DataType, type: str) -> None:
    """pandas takes it for NaT, so that nothing was found wrong with a bad row."""
    times = pa.array([-(2**63), 1000], pa.int64()).view(kind)
    db = lftj.Database(f".decl r(v:{type}?)")
    (reject,) = db.load("r", pa.table({"v": times}), on_error="quarantine")
    assert reject.reason == f"column `v` of `r`: {-(2**63)} ({kind}) does not fit into {type}"
    assert len(db["r"]) == 1


def test_chunks_of_dictionaries_of_nulls() -> None:
    one, none = (pa.nulls(n).dictionary_encode() for n in (1, 0))
    assert loaded("v:number?", {"v": pa.chunked_array([one, none])}) == [(None,)]


def test_columns_of_python_objects_in_polars() -> None:
    """Polars gives Arrow the addresses of such objects, as texts of eight bytes."""
    objects = pl.Series([b"x", None, b"yz"], dtype=pl.Object)
    wanted = [(None,), (b"x",), (b"yz",)]
    assert loaded("s:bytes?", {"s": objects}) == wanted
    assert applied("s:bytes?", ("r", "+1", {"s": objects})) == wanted


def test_wide_integers_of_polars() -> None:
    """Arrow has no type for them; a frame of them was said to be no stream of rows, though its columns were read."""
    wide = pl.DataFrame({"v": pl.Series([2**63 - 1, None, -5], dtype=pl.Int128)})
    wanted = [(None,), (-5,), (2**63 - 1,)]
    assert loaded("v:number?", wide) == loaded("v:number?", {"v": wide["v"]}) == wanted
    assert applied("v:number?", ("r", "+1", wide)) == wanted
    with pytest.raises(DataError, match=f"row 1 .*: {2**63} does not fit into number"):
        loaded("v:number", pl.DataFrame({"v": pl.Series([1, 2**63], dtype=pl.Int128)}))


def test_categories_of_which_there_is_none() -> None:
    """Pandas makes floats of them, or objects, and no row has one."""
    for missing in (None, np.nan):
        frame = pd.DataFrame({"s": pd.Series([missing, missing]).astype("category")})
        for type in ("symbol?", "timestamp?", "number?"):
            assert loaded(f"s:{type}", frame) == [(None,)]
        with pytest.raises(DataError, match="null is not a value"):
            loaded("s:symbol", frame)


@pytest.mark.parametrize("column", [pd.NA, pd.Timestamp(0), pd.Interval(0, 1), pd.DataFrame({"a": [1]})])
def test_what_is_no_column_is_refused(column: Any) -> None:
    with pytest.raises(DataError, match="not a column"):
        loaded("s:number", {"s": column})


@pytest.mark.parametrize(
    ("block", "told"),
    [(([], "+1", [(1,)]), "begins with the name"), (("r", [1, None], [(1,), (2,)]), "no operation")],
)
def test_blocks_of_events_that_are_none(block: Any, told: str) -> None:
    with pytest.raises((DataError, lftj.errors.ArgumentError), match=told):
        applied("a:number", block)


@pytest.mark.parametrize(
    ("zone", "clocks"),
    [
        *((name, zoneinfo.ZoneInfo(name)) for name in ("UTC", "America/New_York", "Asia/Tokyo", "Africa/Monrovia")),
        ("+14:00", dt.timezone(dt.timedelta(hours=14))),
        ("-1130", dt.timezone(-dt.timedelta(hours=11, minutes=30))),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["list", "arrow", "text"])
def test_the_first_and_the_last_instant_that_clocks_show(
    zone: str, clocks: dt.tzinfo, form: str, tmp_path: Path
) -> None:
    """What lay within a day of the ends of the calendar was refused."""
    epoch, tick = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(microseconds=1)
    ends = dt.datetime.min, dt.datetime.max
    first = max(ends[0].replace(tzinfo=tz) - epoch for tz in (clocks, dt.UTC))
    last = min(ends[1].replace(tzinfo=tz) - epoch for tz in (clocks, dt.UTC))
    codes, db = [first // tick, last // tick], lftj.Database(f'.decl r(t:timestamp("{zone}"))')

    def source(codes: list[int]) -> Any:
        if form == "arrow":
            return pa.table({"t": pa.array(codes, pa.timestamp("us", "UTC"))})
        values = [(epoch + code * tick).replace(tzinfo=None) for code in codes]
        if form == "list":
            return [(value.replace(tzinfo=dt.UTC),) for value in values]
        path = tmp_path / "t.csv"
        path.write_text("t\n" + "".join(f"{value.isoformat()}Z\n" for value in values))
        return path

    db.load("r", source(codes))
    assert [(value - epoch) // tick for (value,) in db["r"]] == codes
    assert {value.utcoffset() for (value,) in db["r"]} == {clocks.utcoffset(end) for end in ends}
    assert db["r"].to_arrow()["t"].cast(pa.int64()).to_pylist() == codes
    # As numbers: pandas 2.2.2 ends the process where it makes times of its own of such ones.
    assert db["r"].to_pandas()["t"].astype("int64").tolist() == codes
    calendar = [(end - dt.datetime(1970, 1, 1)) // tick for end in ends]
    for code in {codes[0] - 1, codes[1] + 1}:
        if calendar[0] <= code <= calendar[1]:
            with pytest.raises(DataError, match="in UTC and on its clocks"):
                db.load("r", source([code]))


def test_times_at_the_ends_of_the_calendar_and_of_offsets() -> None:
    late = dt.datetime(9999, 12, 31, 23)
    db = lftj.Database('.decl r(t:timestamp)  h(in_zone(t, "Asia/Tokyo")) :- r(t).')
    db.load("r", [(late,)])
    assert list(db["h"]) == [(late.replace(tzinfo=dt.UTC),)]  # no clock there shows it
    db = lftj.Database('.decl r(t:timestamp("-0330"))')
    db.load("r", [(dt.datetime(2024, 1, 1),)])
    utc = dt.datetime(2024, 1, 1, 3, 30, tzinfo=dt.UTC)
    assert db["r"].to_pandas()["t"][0] == utc
    assert db["r"].to_polars()["t"][0] == utc


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
@pytest.mark.parametrize("extension", [".csv", ".tsv.gz", ".json", ".ndjson.zst", ".parquet", ".arrow"])
def test_names_of_files_that_are_no_utf8(tmp_path: Path, extension: str) -> None:
    folder = tmp_path / os.fsdecode(b"M\xfcnchen")
    folder.mkdir()
    db = lftj.Database(".decl r(x:number, t:symbol)")
    db.load("r", [(1, "a"), (2, "käse")])
    named = folder / (os.fsdecode(b"r\xff") + extension)
    write(*db["r"]._held()[:3], named)
    again = lftj.Database(".decl r(x:number, t:symbol)")
    again.load("r", named)
    assert list(again["r"]) == list(db["r"])
    named.write_bytes(b"\x00")
    with pytest.raises(DataError):
        again.load("r", named)
