"""The gate: rows of codes on one side, the values users see on the other.

Inside, a relation is a list of int64 code columns in schema order. On the way out the gate *decodes* whole columns
(numeric types by numpy, symbols by one Arrow take) and wraps them in what was asked for; on the way in it encodes
single rows, for membership and small inserts. (Whole sources come in through `lftj.io`.)

    out    to_arrow    columns of the Arrow types that `type_table.py` names; to_pandas and to_polars the same
           to_numpy    (n, k) of one dtype where all columns share a type, else structured; symbols are str objects
           to_rows     Python tuples of values, decoded in chunks
    in     encode_row  interns texts
           lookup_row  interns nothing; None if some text has no code: the row is in no relation then

The columns given to `to_arrow` are handed over: an Arrow column of numbers is the code array itself, not a copy.
Arity 0: a relation holds () or nothing. No column tells the number of rows then, so every function takes `rows`.
numpy's own string types are not used for symbols: fixed width cuts trailing NULs and costs 4 bytes per character of the
longest text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.errors import DataError
from lftj.values.arrow_arrays import numbers
from lftj.values.faults import ValueMisfitError, counted, shown
from lftj.values.schema import Column, Schema
from lftj.values.symbols import UNKNOWN, SymbolTable
from lftj.values.type_table import in_dictionary, null_rows, to_stored, type_of
from lftj.values.value_type import Misfit

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

Codes = NDArray[np.int64]
CHUNK_ROWS = 16_384
PANDAS_NULLABLE = {"int64": "Int64", "uint64": "UInt64", "bool": "boolean"}


class RowShapeError(DataError):
    """A row has another number of values than its relation has columns, or is not a row at all."""


# --- out --------------------------------------------------------------------------------------------------------------


def decode_column(codes: Codes, type: str, symbols: SymbolTable) -> NDArray[Any]:
    """The values of one column as an array of the type's dtype; null is NaT where there is such a value, else None."""
    made = type_of(type)
    mask = null_rows(codes, type)
    if made.in_dictionary or (mask is not None and made.dtype[:1] not in "dt"):
        if made.family == "symbol" and mask is None:
            texts: NDArray[Any] = symbols.decode(codes).to_numpy(zero_copy_only=False)
            return texts
        out = np.empty(len(codes), object)
        out[:] = symbols.values(codes, type)
        return out
    if mask is None:
        return made.to_numpy(codes)
    decoded = made.to_numpy(np.where(mask, 0, codes))
    decoded[mask] = np.array("NaT", decoded.dtype)
    return decoded


def to_arrow(schema: Schema, columns: Sequence[Codes], symbols: SymbolTable, *, rows: int | None = None) -> pa.Table:
    """A table with the column names and types of the schema."""
    import pyarrow as pa

    if not schema.arity:
        units = pa.array([{}] * _rows(columns, rows), pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(units)])
    arrays = [arrow_column(codes, column.type, symbols) for column, codes in zip(schema.columns, columns, strict=True)]
    # large_string inside, string outside where it fits: more readers know it.
    narrow = [a.cast(pa.string()) if pa.types.is_large_string(a.type) and a.nbytes < 1 << 31 else a for a in arrays]
    return pa.Table.from_arrays(narrow, names=list(schema.names))


def arrow_column(codes: Codes, type: str, symbols: SymbolTable) -> pa.Array:
    """One column of codes as an Arrow array of the type's Arrow type."""
    made, mask = type_of(type), null_rows(codes, type)
    if not made.in_dictionary:
        return made.to_arrow(codes, mask)
    if mask is None:
        return made.to_arrow(symbols.decode(codes), None)
    return made.to_arrow(symbols.texts().take(numbers(np.where(mask, 0, codes), mask)), mask)


def to_pandas(
    schema: Schema, columns: Sequence[Codes], symbols: SymbolTable, *, rows: int | None = None
) -> pandas.DataFrame:
    """A pandas DataFrame with the default index. Integers and bools with null are of pandas' own nullable types."""
    table = to_arrow(schema, columns, symbols, rows=rows)
    frame: pandas.DataFrame = table.to_pandas()
    for name, type in zip(schema.names, schema.types, strict=True):
        if type_of(type).nullable and type_of(type).dtype in PANDAS_NULLABLE:
            import pandas

            dtype = pandas.api.types.pandas_dtype(PANDAS_NULLABLE[type_of(type).dtype])
            frame[name] = dtype.__from_arrow__(table.column(name))
    return frame


def to_polars(
    schema: Schema, columns: Sequence[Codes], symbols: SymbolTable, *, rows: int | None = None
) -> polars.DataFrame:
    """A polars DataFrame. It knows no zones that are offsets: such times are in UTC there."""
    import polars
    import pyarrow as pa

    table = to_arrow(schema, columns, symbols, rows=rows)
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and (field.type.tz or "")[:1] in ("+", "-"):
            table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp("us", "UTC")))
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame), "a table becomes a frame"
    return frame


def to_numpy(
    schema: Schema, columns: Sequence[Codes], symbols: SymbolTable, *, rows: int | None = None
) -> NDArray[Any]:
    """An (n, k) array where all columns share a type (int64, uint64, float64, object), else a structured array."""
    n = _rows(columns, rows)
    if len(set(schema.types)) <= 1:
        result = np.empty((0, schema.arity), _dtype(schema.types[0]) if schema.arity else np.dtype(np.int64))
    else:
        result = np.empty(0, [(column.name, _dtype(column.type)) for column in schema.columns])
    # What is done with objects cannot be interrupted meanwhile: decoding texts, and making room for them, which
    # numpy fills. No view of the array outlives its slice.
    for lo in range(0, n, CHUNK_ROWS):
        hi = min(lo + CHUNK_ROWS, n)
        result.resize((hi, *result.shape[1:]), refcheck=False)
        for i, (codes, type) in enumerate(zip(columns, schema.types, strict=True)):
            values = decode_column(codes[lo:hi], type, symbols)
            if result.ndim == 1:
                result[schema.names[i]][lo:hi] = values
            else:
                result[lo:hi, i] = values
    return result


def to_rows(
    schema: Schema, columns: Sequence[Codes], symbols: SymbolTable, *, rows: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows as Python tuples, decoded `CHUNK_ROWS` at a time. The first is a `NamedRow`."""
    total = _rows(columns, rows)
    if not schema.arity:
        yield from [()] * total
    for lo in range(0, total if schema.arity else 0, CHUNK_ROWS):
        decoded = [
            symbols.values(codes[lo : lo + CHUNK_ROWS], type) for codes, type in zip(columns, schema.types, strict=True)
        ]
        rows_decoded = zip(*decoded, strict=True)
        if not lo:
            yield row_type(schema.names)(next(rows_decoded))
        yield from rows_decoded


class NamedRow(tuple[Any, ...]):
    """A row that knows the names of its columns, and is a tuple in every other way.

    pandas takes the names of a list of rows from its first one (`_fields`), and knows no other way to give them to
    `pd.DataFrame(relation)`.
    """

    __slots__ = ()
    _fields: tuple[str, ...]

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, ...]]]:
        return tuple, (tuple(self),)


@lru_cache(maxsize=256)
def row_type(names: tuple[str, ...]) -> type[NamedRow]:
    """The type of rows with these names."""
    return type("row", (NamedRow,), {"__slots__": (), "_fields": names})


def decode_row(row: Sequence[int], schema: Schema, symbols: SymbolTable) -> tuple[Any, ...]:
    """One row of codes as a Python tuple."""
    return tuple(symbols.value(code, type) for code, type in zip(row, schema.types, strict=True))


def _dtype(type: str) -> np.dtype[Any]:
    """The dtype of a column that `decode_column` gives; of a nullable one it may hold None."""
    made = type_of(type)
    return np.dtype(object if made.nullable and made.dtype[:1] not in "dt" else made.dtype)


# --- in ---------------------------------------------------------------------------------------------------------------


def encode_row(row: Sequence[object], schema: Schema, symbols: SymbolTable) -> tuple[int, ...]:
    """The codes of one row, interning its texts; nothing is interned if some value does not fit."""
    checked = _checked(row, schema)
    return tuple(symbols.intern_one(value) if isinstance(value, str) else value for value in checked)


def lookup_row(row: Sequence[object], schema: Schema, symbols: SymbolTable) -> tuple[int, ...] | None:
    """The codes of one row, interning nothing; None if some text has no code."""
    codes = tuple(symbols.code(value) if isinstance(value, str) else value for value in _checked(row, schema))
    unknown = any(code == UNKNOWN and in_dictionary(type) for code, type in zip(codes, schema.types, strict=True))
    return None if unknown else codes


def lookup_value(value: object, type: str, symbols: SymbolTable) -> int:
    """The code of one value, interning nothing; `UNKNOWN`, which no row holds, for a text without one. `Misfit`."""
    stored = to_stored(value, type)
    return symbols.code(stored) if isinstance(stored, str) else stored


def encode_value(value: object, type: str, symbols: SymbolTable) -> int:
    """The code of one value, interning a text; `Misfit`."""
    return symbols.intern_value(value, type)


def check_prefix(prefix: Any, columns: Sequence[Column], relation: str) -> list[int | str]:
    """The codes of the numeric values, and the texts, of the first values of a row with these columns."""
    if not isinstance(prefix, Sequence | np.ndarray) or isinstance(prefix, str | bytes):
        raise RowShapeError(
            f"{shown(prefix)} is not the beginning of a row of `{relation}`",
            why="an interval of keys is told by the first values of its rows",
            remedy="give the first values of a row as a tuple or list, (1,) for one",
        )
    if len(prefix) > len(columns):
        raise RowShapeError(
            f"{shown(prefix)} has {len(prefix)} values, a row of `{relation}` has {len(columns)}",
            why="an interval of keys is told by the first values of its rows",
            remedy="give at most one value per column",
        )
    return [_checked_value(value, column, relation) for value, column in zip(prefix, columns, strict=False)]


def _checked(row: Any, schema: Schema) -> list[int | str]:
    """The codes of the numeric values and the texts of the symbols of a row."""
    if not isinstance(row, Sequence | np.ndarray) or isinstance(row, str | bytes):
        raise RowShapeError(
            f"{shown(row)} is not a row of {schema}",
            why="a row has a value for every column, in order",
            remedy="give rows as tuples or lists, (1,) for one column",
        )
    if len(row) != schema.arity:
        raise RowShapeError(
            f"the row {shown(row)} has {counted(len(row), 'value')}, {schema} takes {schema.arity}",
            why="a row has a value for every column, in order",
            remedy="give every row all its values",
        )
    return [_checked_value(value, column, schema.name) for value, column in zip(row, schema.columns, strict=True)]


def _checked_value(value: object, column: Column, relation: str) -> int | str:
    try:
        return to_stored(value, column.type)
    except Misfit as misfit:
        raise ValueMisfitError(value, misfit.fault, column=column.name, relation=relation) from None


def _rows(columns: Sequence[Codes], rows: int | None) -> int:
    if columns:
        return len(columns[0])
    assert rows is not None, "with arity 0 the number of rows has to be said"
    return rows
