"""Every type through every format and library and back, with null and without: the same values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lftj
from lftj.values.type_table import in_dictionary
from tests.types.cases import BERLIN, CASES, TYPES, UTC

DECLARED = ", ".join(f"c{i}:{type}" for i, type in enumerate(TYPES))
NULLABLE = ", ".join(f"c{i}:{type}?" for i, type in enumerate(TYPES))


def filled(declared: str, *, nulls: bool) -> lftj.Database:
    """A database with one relation of all types; in a row of nulls and values both."""
    db = lftj.Database(f".decl t(n:number, {declared})")
    n = max(len(CASES[type].values) for type in TYPES)
    rows = [[i, *(CASES[t].values[i % len(CASES[t].values)] for t in TYPES)] for i in range(n)]
    if nulls:
        for i, row in enumerate(rows):
            for c, type in enumerate(TYPES):
                lost = {"number": -(2**63), "unsigned": 2**64 - 1}.get(type)
                if (i + c) % 3 == 0 or row[c + 1] == lost:
                    row[c + 1] = None
        rows.append([n, *[None] * len(TYPES)])
    db.load("t", rows)
    assert {tuple(row) for row in rows} == set(db["t"])
    return db


def by_file(name: str) -> Callable[[lftj.Database, Path], Any]:
    def written(db: lftj.Database, folder: Path) -> Any:
        from lftj.io.write import write

        stored, path = db._relations["t"], folder / name
        text = (
            {} if name.endswith((".parquet", ".arrow", ".json", ".ndjson.gz")) else {"headers": True, "rfc4180": True}
        )
        write(stored.schema, list(stored.content.columns()), db._symbols, path, **text)
        return path

    return written


FORMS: dict[str, Callable[[lftj.Database, Path], Any]] = {
    "rows": lambda db, _: list(db["t"]),
    "dicts": lambda db, _: {n: [row[i] for row in db["t"]] for i, n in enumerate(db._relations["t"].schema.names)},
    "arrow": lambda db, _: db["t"].arrow(),
    "pandas": lambda db, _: db["t"].df(),
    "polars": lambda db, _: db["t"].pl(),
    "numpy": lambda db, _: db["t"].numpy(),
    "parquet": by_file("t.parquet"),
    "arrow file": by_file("t.arrow"),
    "csv": by_file("t.csv"),
    "gzip": by_file("t.tsv.gz"),
    "json": by_file("t.json"),
    "ndjson": by_file("t.ndjson.gz"),
}


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_there_and_back(form: str, nulls: bool, tmp_path: Path) -> None:
    declared = NULLABLE if nulls else DECLARED
    text = form in ("csv", "gzip")
    types = [t for t in TYPES if not (text and nulls and in_dictionary(t))]
    if text:  # a file of lines holds no NUL here, and an empty field is null
        declared = ", ".join(f"c{i}:{t}{'?' * nulls}" for i, t in enumerate(TYPES))
    db = filled(declared, nulls=nulls)
    if text and nulls:
        keep = [0, *(i + 1 for i, t in enumerate(TYPES) if t in types)]
        rows = [tuple(row[i] for i in keep) for row in db["t"]]
        declared = ", ".join(f"c{i}:{t}?" for i, t in enumerate(types))
        db = lftj.Database(f".decl t(n:number, {declared})")
        db.load("t", rows)
    source = FORMS[form](db, tmp_path)
    again = lftj.Database(f".decl t(n:number, {declared})")
    again.load("t", source)
    assert list(again["t"]) == list(db["t"])
    assert [list(map(type, row)) for row in again["t"]] == [list(map(type, row)) for row in db["t"]]


def test_arrow_types_are_those_of_the_table() -> None:
    schema = filled(DECLARED, nulls=False)["t"].arrow().schema
    expected = {
        "number": pa.int64(),
        "unsigned": pa.uint64(),
        "float": pa.float64(),
        "symbol": pa.string(),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        'timestamp("Europe/Berlin")': pa.timestamp("us", "Europe/Berlin"),
        "duration": pa.duration("us"),
        "decimal(10,2)": pa.decimal128(10, 2),
        "decimal(18,18)": pa.decimal128(18, 18),
        "uuid": pa.uuid(),
        "bytes": pa.binary(),
    }
    assert dict(zip(TYPES, schema.types[1:], strict=True)) == expected


def test_duckdb_reads_what_is_given_and_gives_it_back() -> None:
    db = filled(NULLABLE, nulls=True)
    at = TYPES.index("duration") + 1  # whose extremes are too long for DuckDB's way to Arrow
    rows = [(*row[:at], row[at] and dt.timedelta(days=-3, microseconds=1), *row[at + 1 :]) for row in db["t"]]
    db = lftj.Database(f".decl t(n:number, {NULLABLE})")
    db.load("t", rows)
    given = db["t"].arrow()  # noqa: F841
    again = lftj.Database(f".decl t(n:number, {NULLABLE})")
    connection = duckdb.connect()  # before 1.5 its relations go with it
    again.load("t", connection.sql("from given"))
    assert list(again["t"]) == list(db["t"])


D, T = dt.date(2024, 5, 31), dt.datetime(2024, 5, 31, 12, 30)


@pytest.mark.parametrize(
    ("source", "type", "value"),
    [
        (pa.array([D], pa.date64()), "date", D),
        (pa.array([dt.datetime(2024, 5, 31)], pa.timestamp("ns")), "date", D),
        (pa.array([T], pa.timestamp("s")), "timestamp", T),
        (pa.array([T], pa.timestamp("ms")), "timestamp", T),
        (pa.array([T], pa.timestamp("ns", "UTC")), "timestamp", T),
        (pa.array([T], pa.timestamp("us")), 'timestamp("Europe/Berlin")', T.replace(tzinfo=BERLIN)),
        (pa.array([T], pa.timestamp("us", "UTC")), 'timestamp("Europe/Berlin")', T.replace(tzinfo=UTC)),
        (pa.array([dt.timedelta(hours=1)], pa.duration("s")), "duration", dt.timedelta(hours=1)),
        (pa.array([dt.timedelta(hours=1)], pa.duration("ns")), "duration", dt.timedelta(hours=1)),
        (pa.array([Decimal("1.5")], pa.decimal256(40, 1)), "decimal(10,2)", Decimal("1.50")),
        (pa.array([Decimal("1.500")], pa.decimal128(38, 3)), "decimal(10,2)", Decimal("1.50")),
        (pa.array([7], pa.int16()), "decimal(10,2)", Decimal(7)),
        (pa.array([b"ab"], pa.binary(2)), "bytes", b"ab"),
        (pa.array([b"ab"], pa.large_binary()), "bytes", b"ab"),
        (pa.array(["x", None]).dictionary_encode(), "symbol?", "x"),
        (pa.array([None, None], pa.null()), "date?", None),
        (pa.array([None], pa.null()), "uuid?", None),
        (np.array(["2024-05-31"], "M8[D]"), "date", D),
        (np.array(["2024-05-31T12:30"], "M8[ns]"), "timestamp", T),
        (np.array(["NaT"], "M8[ns]"), "timestamp?", None),
        (np.array([90], "m8[m]"), "duration", dt.timedelta(hours=1.5)),
        (np.array([True]), "bool", True),
        (pd.Series([pd.Timestamp("2024-05-31"), pd.NaT]), "date?", D),
        (pd.Series([pd.Timestamp(T), pd.NaT]), "timestamp?", T),
        (
            pd.Series([pd.Timestamp(T, tz="Asia/Tokyo")]),
            'timestamp("Europe/Berlin")',
            T.replace(tzinfo=UTC) - dt.timedelta(hours=9),
        ),
        (pd.Series([pd.Timedelta(hours=1), pd.NaT]), "duration?", dt.timedelta(hours=1)),
        (pd.Series([1, None], dtype="Int64"), "number?", 1),
        (pd.Series([True, None], dtype="boolean"), "bool?", True),
        (pd.Series(["a", None]), "symbol?", "a"),
        (pd.Series(["a", None]).astype("category"), "symbol?", "a"),
        (pd.Series([D, None]), "date?", D),
        (pl.Series([D, None]), "date?", D),
        (pl.Series([T]).dt.replace_time_zone("Europe/Berlin"), 'timestamp("Europe/Berlin")', T.replace(tzinfo=BERLIN)),
        (pl.Series([Decimal("1.5")]), "decimal(10,2)", Decimal("1.50")),
        (pl.Series(["a", None], dtype=pl.Categorical), "symbol?", "a"),
        (pl.Series([dt.timedelta(days=1)]), "duration", dt.timedelta(days=1)),
        (pl.Series([b"a"]), "bytes", b"a"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_columns_as_people_have_them(source: Any, type: str, value: Any) -> None:
    db = lftj.Database(f".decl t(x:{type})")
    db.load("t", {"x": source})
    assert (value,) in set(db["t"])
    assert all(v is None or v == value for (v,) in db["t"])


@pytest.mark.parametrize(
    "given", [pa.decimal256(76, -3), pa.decimal256(75, -2), pa.decimal256(76, 2), pa.decimal128(38, -3)], ids=str
)
def test_wide_decimals_with_nulls(given: pa.DataType) -> None:
    """Arrow fills no null of a negative scale in the widest decimals."""
    column = pa.array([None, Decimal(1000), None, Decimal(10**12)], given)
    db = lftj.Database(".decl p(i:number, x:decimal(10,2)?)")
    source = {"i": [0, 1, 2], "x": column[:3]}
    db.load("p", pa.table(source))
    assert list(db["p"]) == [(0, None), (1, Decimal("1000.00")), (2, None)]
    with pytest.raises(lftj.DataError, match="does not fit into"):
        db.load("p", pa.table({"i": [3, 4], "x": column[2:]}))


def test_a_date64_with_a_time_of_day_is_no_date() -> None:
    db = lftj.Database(".decl t(x:date)")
    with pytest.raises(lftj.errors.DataError, match="has a time of day"):
        db.load("t", {"x": pa.array([0, 1], pa.int64()).cast(pa.date64())})


@pytest.mark.parametrize(
    ("source", "type", "row", "why"),
    [
        (pa.array([T, T.replace(microsecond=1)], pa.timestamp("us")), "date", 0, "has a time of day"),
        (pa.array([0, 1], pa.timestamp("ns")), "timestamp", 1, "is finer than a microsecond"),
        (pa.array([0, 2**62], pa.timestamp("s")), "timestamp", 1, "does not fit into timestamp"),
        (pa.array([0, 2**62], pa.duration("s")), "duration", 1, "does not fit into duration"),
        (pa.array([0, -(10**8)], pa.int32()).cast(pa.date32()), "date", 1, "does not fit into date"),
        (pa.array([Decimal("1.00"), Decimal("1.23")]), "decimal(4,1)", 1, "has more than 1 digits"),
        (pa.array([Decimal(10) ** 30]), "decimal(10,2)", 0, "does not fit into decimal(10,2)"),
        (np.array(["2024-05-31", "NaT"], "M8[D]"), "date", 1, "is not a value"),
        (pd.Series([pd.Timestamp(T), pd.NaT]), "timestamp", 1, "is not a value"),
        (pa.array(["123e4567-e89b-12d3-a456-426614174000", "x"]), "uuid", 1, "is not a uuid"),
        (pa.array([1, None]), "number", 1, "is not a value"),
        (pa.array([1, -(2**63)]), "number?", 1, "its code is null's there"),
        (pa.array([2**64 - 1], pa.uint64()), "unsigned?", 0, "its code is null's there"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_a_bad_value_names_its_row(source: Any, type: str, row: int, why: str) -> None:
    db = lftj.Database(f".decl t(x:{type})")
    with pytest.raises(lftj.DataError) as caught:
        db.load("t", {"x": source})
    assert f"row {row} (from 0)" in str(caught.value)
    assert why in str(caught.value)
    assert "\n  do: " in str(caught.value)
    assert len(db["t"]) == 0


def test_an_empty_text_of_a_column_with_null_is_not_written_to_lines(tmp_path: Path) -> None:
    db = lftj.Database('.decl t(x:symbol?)\n.output t(filename="t.csv")')
    db.load("t", [("",), (None,)])
    with pytest.raises(lftj.DataError, match="an empty value cannot be told from null"):
        db.write_outputs(tmp_path)
