"""Arrow, pandas, polars, DuckDB, numpy, dicts of columns: what each type takes, by value and by kind."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lftj
from lftj.io.convert import ColumnTypeError
from lftj.io.rejects import BadRowsError
from lftj.io.typed import ShapeError

E2 = "src:number dst:number"
INF = float("inf")
# What to do with numbers that pandas has as floats.
DOUBLE = 'convert it to int first (`.astype("Int64")` of pandas keeps missing ones) or declare the column `float`'


def table(*arrays, names=("src", "dst")):
    return pa.table(dict(zip(names, arrays, strict=False)))


@pytest.mark.parametrize(
    ("array", "type", "values"),
    [
        (pa.array([-(2**63), 2**63 - 1]), "number", [-(2**63), 2**63 - 1]),
        (pa.array([-5, 5], pa.int8()), "number", [-5, 5]),
        (pa.array([2**63 - 1], pa.uint64()), "number", [2**63 - 1]),
        (pa.array([1, 2]).dictionary_encode(), "number", [1, 2]),
        (pa.array([0, 2**64 - 1], pa.uint64()), "unsigned", [0, 2**64 - 1]),
        (pa.array([0, 2**63 - 1]), "unsigned", [0, 2**63 - 1]),
        (pa.array([1.5, -INF]), "float", [1.5, -INF]),
        (pa.array([0.5], pa.float32()), "float", [0.5]),
        (pa.array([0.5], pa.float16()), "float", [0.5]),
        (pa.array([2**53, -(2**63)]), "float", [2.0**53, -(2.0**63)]),
        (pa.array([2**63], pa.uint64()), "float", [2.0**63]),
        (pa.array(["a", ""]), "symbol", ["a", ""]),
        (pa.array(["a"], pa.large_string()), "symbol", ["a"]),
        (pa.array(["a"], pa.string_view()), "symbol", ["a"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "symbol", ["a", "b", "a"]),
        (pc.run_end_encode(pa.array([7, 7, 5])), "number", [7, 7, 5]),
        (pc.run_end_encode(pa.array(["a", "a", None, "b"])), "symbol?", ["a", "a", None, "b"]),
        (pa.array([], pa.null()), "number", []),
        (pa.array([], pa.null()), "symbol", []),
    ],
)
def test_arrow(reader, array, type, values):
    expected = [(value,) for value in values]
    assert reader.rows(pa.table({"x": array}), f"x:{type}") == expected
    assert reader.rows(array, f"x:{type}") == expected
    assert reader.rows(pa.chunked_array([array.slice(0, 1), array.slice(1)]), f"x:{type}") == expected
    assert reader.rows({"x": array}, f"x:{type}") == expected


NUMBER = "a number is an integer from -9223372036854775808 to 9223372036854775807"


@pytest.mark.parametrize(
    ("array", "type", "kind", "remedy"),
    [
        (pa.array([1.0]), "number", "a double, not a number", DOUBLE),
        (pa.array([True]), "number", "a bool, not a number", "convert it to int first or declare the column `bool`"),
        (pa.array(["1"]), "number", "a string, not a number", "convert it to int first or declare the column `symbol`"),
        (
            pa.array(["1"]).dictionary_encode(),
            "number",
            "a string, not a number",
            "convert it to int first or declare the column `symbol`",
        ),
        (
            pa.array([decimal.Decimal(1)]),
            "number",
            "a decimal128(1, 0), not a number",
            "cast it to int64 (BIGINT) first or declare the column `decimal(18, 2)`",
        ),
        (
            pa.array([decimal.Decimal(1)]),
            "float",
            "a decimal128(1, 0), not a float",
            "cast it to float64 (DOUBLE) first or declare the column `decimal(18, 2)`",
        ),
        (
            pa.array([decimal.Decimal(1)]),
            "symbol",
            "a decimal128(1, 0), not a symbol",
            "cast it to text first or declare the column `decimal(18, 2)`",
        ),
        (
            pa.array([datetime.date(2020, 1, 1)]),
            "number",
            "a date32[day], not a number",
            "convert it to int first or declare the column `date`",
        ),
        (
            pa.array([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)]),
            "symbol",
            "a timestamp[us, tz=UTC], not a symbol",
            "convert it to str first or declare the column `timestamp`",
        ),
        (pa.array([1]), "symbol", "an int64, not a symbol", "convert it to str first or declare the column `number`"),
        (pa.array([b"x"]), "symbol", "a binary, not a symbol", "convert it to str first or declare the column `bytes`"),
        (pa.array([[1]]), "number", "a list<item: int64>, not a number", "convert it to int first"),
    ],
)
def test_arrow_columns_of_another_kind(reader, array, type, kind, remedy):
    why = {
        "number": NUMBER,
        "float": "a float is a 64-bit floating-point number; NaN is not a key",
        "symbol": "a symbol is text (str)",
    }[type]
    for on_error in ("raise", "quarantine"):  # the whole column is wrong: there are no good rows to keep
        assert reader.refusal(pa.table({"x": array}), f"src:{type}", on_error=on_error, error=ColumnTypeError) == (
            f"Table: column `src` of `edge`: the source's column `x` is {kind}\n  why: {why}\n  do: {remedy}"
        )


@pytest.mark.parametrize(
    ("array", "type", "row", "count", "said"),
    [
        (pa.array([1, None, None]), "number", 1, 2, "null is not a value"),
        (pa.array([None]), "float", 0, 1, "null is not a value"),
        (pa.array(["a", None]), "symbol", 1, 1, "null is not a value"),
        (pa.array([None], pa.null()), "symbol", 0, 1, "null is not a value"),
        (pa.array(["a", None]).dictionary_encode(), "symbol", 1, 1, "null is not a value"),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])),
            "symbol",
            1,
            1,
            "null is not a value",
        ),
        (pa.array([0, 2**63], pa.uint64()), "number", 1, 1, "9223372036854775808 does not fit into number"),
        (pa.array([0, -1], pa.int8()), "unsigned", 1, 1, "-1 does not fit into unsigned"),
        (pa.array([0.0, float("nan")]), "float", 1, 1, "nan is not a key"),
        (pa.array([0, 2**53 + 1, None]), "float", 1, 2, "9007199254740993 is not exact as a float"),
        (pa.array([2**64 - 1], pa.uint64()), "float", 0, 1, "18446744073709551615 is not exact as a float"),
    ],
)
def test_arrow_values_that_do_not_fit(reader, array, type, row, count, said):
    source = pa.table({"x": array})
    counted = "1 bad row" if count == 1 else f"{count} bad rows; the first"
    message = reader.refusal(source, f"src:{type}", error=BadRowsError)
    assert message.splitlines()[0] == f"Table, row {row} (from 0): {counted}: column `src` of `edge`: {said}"
    loaded = reader.load(source, f"src:{type}", on_error="quarantine")
    assert len(loaded.rejects) == count
    assert (loaded.rows, loaded.source_rows) == (len(array) - count, len(array))


def test_the_full_text_of_a_null(reader):
    assert reader.refusal(table(pa.array([1]), pa.array([None], pa.int64())), E2) == (
        "Table, row 0 (from 0): 1 bad row: column `dst` of `edge`: null is not a value\n"
        "  why: a column of type number holds no nulls\n"
        "  do: declare the column `number?`, drop the rows without a value or fill them in, "
        'or keep the good rows with on_error="quarantine"'
    )


def test_the_full_text_of_a_nan(reader):
    assert reader.refusal(np.array([np.nan]), "x:float") == (
        "numpy array, row 0 (from 0): 1 bad row: column `x` of `edge`: nan is not a key\n"
        "  why: NaN differs from itself, so no row could be found by it\n"
        '  do: drop or replace the NaN values, or keep the good rows with on_error="quarantine"'
    )


def test_streams(reader):
    data = table(pa.array([1, 3]), pa.array([2, 4]))
    for source in (
        data,
        data.to_batches()[0],
        data.to_reader(),
        pl.from_arrow(data),
        duckdb.sql("from data").arrow(),
        data.to_pandas(),
    ):
        assert reader.rows(source, E2) == [(1, 2), (3, 4)]
    assert reader.rows(duckdb.sql("from data order by src"), E2) == [(1, 2), (3, 4)]


def test_rows_count_on_over_batches(reader):
    batches = [pa.record_batch({"x": pa.array(values, pa.int64())}) for values in ([1, 2], [None, 3], [4, None])]
    source = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    assert [r.line for r in reader.load(source, "x:number", on_error="quarantine").rejects] == [2, 5]


def test_names_in_any_order_else_positions(reader):
    assert reader.rows(table([1], [2], names=("dst", "src")), E2) == [(2, 1)]
    assert reader.rows(table([1], [2], names=("from", "to")), E2) == [(1, 2)]
    assert reader.rows(pa.table({"w": [9], "src": [1], "dst": [2]}), E2, columns={"src": "src", "dst": 2}) == [(1, 2)]
    twice = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    assert reader.rows(twice, E2) == [(1, 2)]
    assert reader.rows(twice, "x:number", columns={"x": 1}) == [(2,)]


def test_pandas(reader):
    frame = pd.DataFrame({"src": [1, 2, 3], "dst": [4, 5, 6]})
    assert reader.rows(frame[frame.src > 1], E2) == [(2, 5), (3, 6)]  # the index is no column
    assert reader.rows(frame.set_index("src"), "dst:number") == [(4,), (5,), (6,)]
    assert reader.rows(frame.rename(columns={"src": 0, "dst": 1}), E2) == [(1, 4), (2, 5), (3, 6)]
    assert reader.rows(pd.Series([1, 2], name="x"), "src:number") == [(1,), (2,)]
    texts = pd.DataFrame(
        {"a": pd.Categorical(["u", "v"], categories=["w", "v", "u"]), "b": pd.Series(["x", "y"], dtype=object)}
    )
    assert reader.rows(texts, "a:symbol b:symbol") == [("u", "x"), ("v", "y")]
    assert "w" not in reader.symbols.texts().to_pylist()
    assert reader.rows(pd.DataFrame({"a": pd.array([1, 2], "Int64")}), "a:number") == [(1,), (2,)]
    assert reader.rows(pd.DataFrame({"a": pd.Series([1, 2**63 - 1], dtype=object)}), "a:number") == [(1,), (2**63 - 1,)]
    assert reader.rows(pd.DataFrame(index=range(2)), "") == [(), ()]
    assert reader.rows(pd.DataFrame({"src": [], "dst": []}), E2) == []


@pytest.mark.parametrize("missing", [None, pd.NA, pd.NaT])
def test_pandas_missing_values(reader, missing):
    for series in (
        pd.Series(["a", missing], dtype=object),
        pd.Series(["a", None], dtype="str"),
        pd.Series(pd.Categorical(["a", None])),
    ):
        rejects = reader.load(pd.DataFrame({"x": series}), "x:symbol", on_error="quarantine").rejects
        assert [str(r) for r in rejects] == ["DataFrame, row 1 (from 0): column `x` of `edge`: null is not a value"]


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (pd.Series([1.0]), "a float64, not a number"),
        (pd.Series([True]), "a bool, not a number"),
        (pd.Series([True, None], dtype="boolean"), "a boolean, not a number"),
        pytest.param(
            pd.Series(["a"], dtype="str"),
            "a str, not a number",
            marks=pytest.mark.skipif(pd.Series(["a"], dtype="str").dtype == object, reason="before pandas 3"),
        ),
        (pd.Series(pd.Categorical(["a"])), "a category, not a number"),
        (pd.Series(pd.to_datetime(["2020-01-01"]).as_unit("us")), "a datetime64[us], not a number"),
        (
            pd.Series(pd.to_datetime(["2020-01-01"]).as_unit("us").tz_localize("UTC")),
            "a datetime64[us, UTC], not a number",
        ),
        (pd.Series(pd.period_range("2020", periods=1, freq="D")), "a period[D], not a number"),
        (pd.Series(pd.arrays.SparseArray([0, 1])), "a Sparse[int64, 0], not a number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pandas_columns_of_another_kind(reader, series, kind):
    message = reader.refusal(pd.DataFrame({"x": series}), "src:number", error=ColumnTypeError)
    assert message.splitlines()[:2] == [
        f"DataFrame: column `src` of `edge`: the source's column `x` is {kind}",
        f"  why: {NUMBER}",
    ]


def test_polars(reader):
    frame = pl.DataFrame(
        {"a": pl.Series(["x", "y"], dtype=pl.Categorical), "b": pl.Series(["y", "x"], dtype=pl.Enum(["y", "x"]))}
    )
    assert reader.rows(frame, "a:symbol b:symbol") == [("x", "y"), ("y", "x")]
    assert reader.rows(pl.Series([1, 2]), "a:number") == [(1,), (2,)]
    assert (
        reader.refusal(frame.lazy(), "a:symbol b:symbol") == "a LazyFrame holds no rows yet\n"
        "  why: it is a plan whose rows are computed when it is collected\n"
        "  do: call collect() on it first"
    )


def test_duckdb_sum_is_a_decimal(reader):
    assert reader.refusal(duckdb.sql("select sum(1) as s"), "s:number") == (
        "DuckDBPyRelation: column `s` of `edge`: the source's column `s` is a decimal128(38, 0), not a number\n"
        f"  why: {NUMBER}\n  do: cast it to int64 (BIGINT) first or declare the column `decimal(18, 2)`"
    )


def test_rows_of_a_database_come_from_its_queries_not_from_its_connection(reader):
    with duckdb.connect() as connection, contextlib.closing(sqlite3.connect(":memory:")) as other:
        for source in (connection, connection.execute("select 1, 2"), duckdb, other):
            kind = type(source).__name__
            assert reader.refusal(source, E2) == (
                f"rows cannot be read from a {kind}\n"
                "  why: it is a connection to a database, and only what a query gives has rows\n"
                "  do: give what a query gives: `connection.sql(query)` of DuckDB, a cursor of other databases"
            )
        assert reader.rows(connection.cursor().sql("select 1, 2"), E2) == [(1, 2)]
        assert reader.rows(other.execute("select 1, 2"), E2) == [(1, 2)]


@pytest.mark.parametrize(
    ("array", "declared", "rows"),
    [
        (np.array([[1, 2], [3, 4]]), E2, [(1, 2), (3, 4)]),
        (np.asfortranarray([[1, 2], [3, 4]]), E2, [(1, 2), (3, 4)]),
        (np.array([[1, 9, 2]])[:, ::2], E2, [(1, 2)]),
        (np.array([[1, 2]], ">i4"), E2, [(1, 2)]),
        (np.array([1, 2], np.uint8), "x:number", [(1,), (2,)]),
        (np.array([2**64 - 1], np.uint64), "x:unsigned", [(2**64 - 1,)]),
        (np.array([1, 2], np.int8), "x:float", [(1.0,), (2.0,)]),
        (np.array([0.5], np.float32), "x:float", [(0.5,)]),
        (np.array([["a", "bc"]]), "x:symbol y:symbol", [("a", "bc")]),
        (np.array(["é"], ">U3"), "x:symbol", [("é",)]),
        (np.array(["é"], np.dtypes.StringDType()), "x:symbol", [("é",)]),
        (np.array([["a", 1]], object), "x:symbol y:number", [("a", 1)]),
        (np.array([("a", 1)], [("dst", "U3"), ("src", "u8")]), "src:number dst:symbol", [(1, "a")]),
        (np.array([]), E2, []),
        (np.empty((0, 2)), E2, []),
        (np.empty((3, 0)), "", [(), (), ()]),
    ],
)
def test_numpy(reader, array, declared, rows):
    assert reader.rows(array, declared) == rows


def test_codes_do_not_share_the_callers_memory(reader):
    array = np.array([[1, 2]])
    loaded = reader.load(array, E2)
    array[:] = 0
    assert [column.tolist() for column in loaded.columns] == [[1], [2]]
    array.flags.writeable = False
    reader.load(array, E2)


@pytest.mark.parametrize(
    ("array", "declared", "message"),
    [
        (
            np.array([[1.0, 2.0]]),
            E2,
            "numpy array: column `src` of `edge`: the source's column 0 is a float64, not a number\n"
            f"  why: {NUMBER}\n  do: convert it to int first or declare the column `float`",
        ),
        (
            np.array([b"a"]),
            "x:symbol",
            "numpy array: column `x` of `edge`: the source's column 0 is bytes, not a symbol\n"
            "  why: a symbol is text (str)\n  do: decode it to str first, or declare the column `bytes`",
        ),
        (
            np.array([1], "M8[s]"),
            "x:number",
            "numpy array: column `x` of `edge`: the source's column 0 is a datetime64[s], not a number\n"
            f"  why: {NUMBER}\n  do: convert it to int first or declare the column `timestamp`",
        ),
        (
            np.zeros((1, 1, 1)),
            E2,
            "numpy array: an array of 3 dimensions is no relation\n"
            "  why: a relation is rows of columns: two dimensions\n"
            "  do: give an array of shape (rows, columns)",
        ),
        (
            np.array(5),
            E2,
            "numpy array: an array of 0 dimensions is no relation\n"
            "  why: a relation is rows of columns: two dimensions\n"
            "  do: give an array of shape (rows, columns)",
        ),
        (
            np.ma.array([1]),
            "x:number",
            "numpy array: a masked array may hold masked values\n"
            "  why: it would have to be null, which no numpy array holds\n"
            "  do: give array.compressed() or array.filled(value)",
        ),
        (
            np.zeros(1, [("a", "i4"), ("b", "i4", 2)]),
            E2,
            "numpy array: the field `b` holds more than one value per row\n"
            "  why: a relation holds one plain value per column\n"
            "  do: give plain fields",
        ),
        (
            np.array([1, 2]),
            E2,
            "numpy array: the source has 1 column, edge(src:number, dst:number) takes 2\n"
            "  why: columns are matched by position where the names differ, so there must be as many\n"
            "  do: supply the missing columns or declare fewer",
        ),
        (
            np.array(["x\ud800"]),
            "x:symbol",
            "numpy array, row 0 (from 0): 1 bad row: column `x` of `edge`: 'x\\ud800' is not valid unicode\n"
            "  why: a symbol holds no lone surrogates\n"
            "  do: encode the text again, with errors='replace', or keep the good rows with on_error=\"quarantine\"",
        ),
    ],
)
def test_numpy_refusals(reader, array, declared, message):
    assert reader.refusal(array, declared) == message


def test_dict_of_columns(reader):
    for src in ([1], (1,), range(1, 2), np.array([1]), pa.array([1]), pd.Series([1]), pl.Series([1]), (i for i in [1])):
        assert reader.rows({"dst": [2], "src": src}, E2) == [(1, 2)]
    assert reader.rows({0: [1], 1: [2]}, E2) == [(1, 2)]
    assert reader.rows({"src": [], "dst": []}, E2) == []
    assert reader.rows({}, "") == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"src": [1], "dst": [2, 3]},
            "dict: the columns differ in length: `src` 1, `dst` 2\n"
            "  why: a row has a value in every column\n"
            "  do: give columns of one length",
        ),
        (
            {"src": [1], "dst": 5},
            "dict: column `dst` is an int, not a column\n"
            "  why: a column holds one value per row\n"
            "  do: give a list or a one-dimensional array",
        ),
        (
            {"src": [1], "dst": "ab"},
            "dict: column `dst` is a str, not a column\n"
            "  why: a column holds one value per row\n"
            "  do: give a list or a one-dimensional array",
        ),
        (
            {"src": [1], "dst": np.zeros((1, 2))},
            "dict: column `dst` is a ndarray, not a column\n"
            "  why: a column holds one value per row\n"
            "  do: give a list or a one-dimensional array",
        ),
    ],
)
def test_dict_refusals(reader, columns, message):
    assert reader.refusal(columns, E2) == message


@pytest.mark.parametrize("type", ["number", "symbol", "date", "bytes", "unsigned", "decimal(9, 2)"])
@pytest.mark.parametrize("mark", ["", "?"])
def test_an_empty_frame_has_no_types(type, mark):
    """pandas makes its columns float64, which was refused where a column may be null."""
    db = lftj.Database(f".decl s(a:{type}{mark})")
    db.load("s", pd.DataFrame({"a": []}))
    assert list(db["s"]) == []


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (np.array([2**45], "m8[s]"), "duration"),
        (np.array([2**60], "m8[s]"), "duration"),
        (np.array([2**40], "m8[W]"), "duration"),
        (np.array([3], "m8[Y]"), "duration"),
        (np.array([3], "m8[M]"), "duration"),
        (np.array([2**58], "M8[s]"), "timestamp"),
        (np.array([2**58], "M8[s]"), "date"),
        (np.array([2**50], "M8[D]"), "date"),
        (np.array([2**45], "M8[h]"), "timestamp"),
    ],
)
def test_times_of_numpy_that_do_not_fit(values, type):
    """They wrapped around, and were loaded as other times."""
    db = lftj.Database(f".decl r(a:{type})")
    for source in ({"a": values}, [(values[0],)]):
        with pytest.raises(BadRowsError, match=f"row 0 .* does not fit into {type}"):
            db.load("r", source)
    db.load("r", {"a": np.concatenate([values, np.array(["NaT"], values.dtype)])}, on_error="quarantine")
    assert len(db["r"]) == 0


def test_masked_columns_are_refused():
    """Their masked values were loaded."""
    db = lftj.Database(".decl r(a:number)")
    column = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    with pytest.raises(ShapeError, match=r"(?s)column `a`: a masked array.*array.filled"):
        db.load("r", {"a": column})
    with pytest.raises(ShapeError, match="a masked array"), db.transaction() as tx:
        tx.insert("r", {"a": column})
    assert len(db["r"]) == 0


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"])
def test_texts_of_arrow_that_are_no_utf8(layout, tmp_path):
    """A UnicodeDecodeError told of them, and nothing was put aside."""
    bodies = [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb")]
    texts = pa.Array.from_buffers(pa.string(), 3, bodies)
    texts = texts.dictionary_encode() if layout == "dictionary" else texts.cast(layout)
    db = lftj.Database(".decl r(a:symbol)")
    with pytest.raises(BadRowsError, match=r"row 1 .*'\\udcff' is not valid unicode"):
        db.load("r", pa.table({"a": texts}))
    db.load("r", pa.table({"a": texts}), on_error="quarantine")
    assert set(db["r"]) == {("a",), ("b",)}
