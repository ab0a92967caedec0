"""Out of the gate in every form and back; rows in; arity 0."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from lftj.values import gate
from lftj.values.faults import ValueMisfitError
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable

MIXED = Schema("r", (Column("a", "number"), Column("b", "unsigned"), Column("c", "float"), Column("d", "symbol")))
ROWS = [(-(2**63), 0, -0.5, ""), (2**63 - 1, 2**64 - 1, float("inf"), "naïve\n"), (0, 2**63, 5e-324, "\U0001f600")]
UNIT = Schema("flag", ())


@pytest.fixture
def symbols() -> SymbolTable:
    return SymbolTable()


def columns_of(rows, schema, symbols):
    codes = [gate.encode_row(row, schema, symbols) for row in rows]
    return [np.array([row[i] for row in codes], np.int64) for i in range(schema.arity)]


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_rows(monkeypatch, symbols, chunk_rows):
    monkeypatch.setattr(gate, "CHUNK_ROWS", chunk_rows)
    columns = columns_of(ROWS, MIXED, symbols)
    rows = list(gate.to_rows(MIXED, columns, symbols))
    assert rows == ROWS
    assert [type(value) for value in rows[0]] == [int, int, float, str]
    assert [gate.decode_row([int(c[i]) for c in columns], MIXED, symbols) for i in range(3)] == ROWS


def test_arrow(symbols):
    table = gate.to_arrow(MIXED, columns_of(ROWS, MIXED, symbols), symbols)
    assert table.schema == pa.schema({"a": pa.int64(), "b": pa.uint64(), "c": pa.float64(), "d": pa.string()})
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS


def test_pandas(symbols):
    frame = gate.to_pandas(MIXED, columns_of(ROWS, MIXED, symbols), symbols)
    assert [str(frame[name].dtype) for name in "abc"] == ["int64", "uint64", "float64"]
    assert list(frame.itertuples(index=False, name=None)) == ROWS


def test_polars(symbols):
    frame = gate.to_polars(MIXED, columns_of(ROWS, MIXED, symbols), symbols)
    assert frame.schema == {"a": pl.Int64, "b": pl.UInt64, "c": pl.Float64, "d": pl.String}
    assert frame.rows() == ROWS


def test_numpy_structured_where_types_differ(symbols):
    array = gate.to_numpy(MIXED, columns_of(ROWS, MIXED, symbols), symbols)
    assert array.dtype == np.dtype([("a", "i8"), ("b", "u8"), ("c", "f8"), ("d", "O")])
    assert array.tolist() == ROWS


@pytest.mark.parametrize(
    ("type", "dtype", "rows"),
    [
        ("number", np.int64, [(1, -2), (3, 4)]),
        ("unsigned", np.uint64, [(1, 2**64 - 1), (3, 4)]),
        ("float", np.float64, [(1.5, -2.0), (3.0, 4.0)]),
        ("symbol", object, [("a", "b"), ("b", "")]),
    ],
)
def test_numpy_one_array_where_all_share_a_type(symbols, type, dtype, rows):
    schema = Schema("e", (Column("x", type), Column("y", type)))
    array = gate.to_numpy(schema, columns_of(rows, schema, symbols), symbols)
    assert (array.shape, array.dtype) == ((2, 2), np.dtype(dtype))
    assert [tuple(row) for row in array.tolist()] == rows


def test_empty(symbols):
    columns = columns_of([], MIXED, symbols)
    assert list(gate.to_rows(MIXED, columns, symbols)) == []
    assert gate.to_arrow(MIXED, columns, symbols).num_rows == 0
    assert gate.to_pandas(MIXED, columns, symbols).shape == (0, 4)
    assert gate.to_polars(MIXED, columns, symbols).shape == (0, 4)
    assert gate.to_numpy(MIXED, columns, symbols).shape == (0,)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_arity_zero(symbols, rows):
    assert list(gate.to_rows(UNIT, [], symbols, rows=rows)) == [()] * rows
    assert gate.to_arrow(UNIT, [], symbols, rows=rows).num_rows == rows
    assert gate.to_pandas(UNIT, [], symbols, rows=rows).shape == (rows, 0)
    assert gate.to_numpy(UNIT, [], symbols, rows=rows).shape == (rows, 0)


def test_lookup_interns_nothing(symbols):
    row = gate.encode_row(ROWS[1], MIXED, symbols)
    assert gate.lookup_row(ROWS[1], MIXED, symbols) == row
    assert gate.lookup_row(list(ROWS[1]), MIXED, symbols) == row
    assert gate.lookup_row((1, 2, 3.0, "unknown"), MIXED, symbols) is None
    assert len(symbols) == 1


def test_a_code_of_minus_one_is_not_unknown(symbols):
    schema = Schema("e", (Column("x", "number"),))
    assert gate.lookup_row((-1,), schema, symbols) == (-1,)


def test_a_row_that_does_not_fit_interns_nothing(symbols):
    schema = Schema("e", (Column("name", "symbol"), Column("age", "number")))
    with pytest.raises(ValueMisfitError) as caught:
        gate.encode_row(("new", 2**63), schema, symbols)
    assert str(caught.value) == (
        "column `age` of `e`: 9223372036854775808 does not fit into number\n"
        "  why: a number is an integer from -9223372036854775808 to 9223372036854775807\n"
        "  do: declare the column `unsigned`"
    )
    assert (caught.value.value, caught.value.column, caught.value.relation) == (2**63, "age", "e")
    assert isinstance(caught.value, TypeError)
    assert len(symbols) == 0


WHY = "  why: a row has a value for every column, in order\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1,), f"the row (1,) has 1 value, e(x:number, y:number) takes 2\n{WHY}  do: give every row all its values"),
        (
            (1, 2, 3),
            f"the row (1, 2, 3) has 3 values, e(x:number, y:number) takes 2\n{WHY}  do: give every row all its values",
        ),
        (
            "ab",
            f"'ab' is not a row of e(x:number, y:number)\n{WHY}  do: give rows as tuples or lists, (1,) for one column",
        ),
        (7, f"7 is not a row of e(x:number, y:number)\n{WHY}  do: give rows as tuples or lists, (1,) for one column"),
    ],
)
def test_a_misshapen_row(symbols, row, message):
    schema = Schema("e", (Column("x", "number"), Column("y", "number")))
    for function in (gate.encode_row, gate.lookup_row):
        with pytest.raises(gate.RowShapeError) as caught:
            function(row, schema, symbols)
        assert str(caught.value) == message
