"""Typed sources: Arrow streams, DataFrames, numpy arrays, dicts of columns. Columns have types before values are read.

Each is first *described* (source name, column names if it has any), its columns are picked, the kind of every picked
column is checked, and only then are values read, batch by batch where the source comes in batches. Nothing but the
picked columns is converted.

pandas is read column by column rather than through its Arrow stream: the stream of a frame whose index is not the
default one carries the index as one more column, and refuses object columns that a look at the values accepts. A
frame's index is not data here; `reset_index()` makes it so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.errors import DataError
from lftj.io.convert import ColumnTypeError, arrow_fault, arrow_part, list_part, numpy_fault, numpy_part
from lftj.io.pandas_missing import whole_numbers_fault, with_nulls
from lftj.io.pick import Columns, ColumnsError, listed
from lftj.io.staging import ColumnPart, Staging
from lftj.values import faults
from lftj.values.arrow_arrays import joins_wrongly
from lftj.values.schema import Column, Schema
from lftj.values.type_table import type_of

if TYPE_CHECKING:
    import pyarrow as pa


class ShapeError(DataError):
    """An in-memory source whose shape is that of no relation."""


def read_batches(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], staging: Staging, positions: Sequence[int], source: str
) -> None:
    """Read record batches of one Arrow schema; where its names are distinct they may lack unpicked columns."""
    for i, field in enumerate(map(schema.field, positions)):
        given = partial(check_arrow, field.type, staging=staging, name=f"`{field.name}`", source=source)
        staging.check(i, given)
    distinct = len(set(schema.names)) == len(schema)
    keys = [schema.names[position] for position in positions] if distinct else positions
    start = 0
    for batch in batches:
        parts = [
            staging.part(i, partial(_arrow_part, batch.column(key), read=staging.reads(i)))
            for i, key in enumerate(keys)
        ]
        staging.add(source, parts, range(start, start + batch.num_rows))
        start += batch.num_rows


def _arrow_part(array: pa.Array, column: Column, *, read: bool) -> ColumnPart:
    return arrow_part(array, column.type, read=read)


def read_stream(stream: Any, staging: Staging, columns: Columns | None, source: str) -> None:
    """Read any object with `__arrow_c_stream__` or `__arrow_c_array__`: pyarrow, polars, relations of DuckDB."""
    import pyarrow as pa

    if isinstance(stream, pa.Array | pa.ChunkedArray):
        stream = pa.table({staging.schema.names[0] if staging.schema.arity == 1 else "values": stream})
    elif hasattr(stream, "to_frame"):  # a polars Series
        stream = stream.to_frame()
    elif not hasattr(stream, "__arrow_c_stream__"):
        stream = pa.record_batch(stream)
    if isinstance(stream, pa.RecordBatch):  # pyarrow streams no batch without columns
        names = stream.schema.names
        read_batches(stream.schema, [stream], staging, staging.pick(columns, names, len(names), source), source)
        return
    of_polars = type(stream).__module__.partition(".")[0] == "polars"
    if of_polars and "Object" in map(str, stream.schema.values()):
        raise ShapeError(
            "a column is of polars' type Object",
            where=source,
            why="polars gives addresses of such values out, and not the values",
            remedy="cast it to another type, or give the rows as tuples, `frame.rows()`",
        )
    try:
        reader = reader_of(stream)
    except pa.ArrowInvalid as error:
        if of_polars:  # a column is of a type that Arrow has not, such as Int128
            read_dict({column.name: column for column in stream.get_columns()}, staging, columns, source)
            return
        raise ShapeError(
            f"the source is not a stream of rows: {error}",
            where=source,
            why="rows are read from an Arrow stream of record batches",
            remedy="give a table with one column per column of the relation",
        ) from error
    names = reader.schema.names
    read_batches(reader.schema, reader, staging, staging.pick(columns, names, len(names), source), source)


def reader_of(stream: Any) -> pa.RecordBatchReader:
    """The record batches of any object with `__arrow_c_stream__`. Raises `pyarrow.ArrowInvalid` if it has none.

    Those of a table are not sent through a stream: before pyarrow 25 that ends the process where short texts are views.
    """
    import pyarrow as pa

    return stream.to_reader() if isinstance(stream, pa.Table) else pa.RecordBatchReader.from_stream(stream)


def read_pandas(frame: Any, staging: Staging, columns: Columns | None, source: str) -> None:
    """Read a pandas DataFrame (or Series, as one column)."""
    if not hasattr(frame, "columns"):
        frame = frame.to_frame()
    names = [str(label) for label in frame.columns]
    held = [frame.iloc[:, i] for i in range(len(names))]
    if columns is None:
        _refuse_left_out(frame, names, staging.schema, source)
    try:
        _read_columns(held, names, len(frame), staging, columns, source)
    except ColumnsError as error:
        if not (levels := _wanted_levels(frame, staging, columns)):
            raise
        raise ColumnsError(
            error.what,
            where=error.where,
            why=f"the index of a frame is not read, and this one's has {listed(levels)}",
            remedy="give its `.reset_index()`, which makes columns of the index",
        ) from error


def _refuse_left_out(frame: Any, names: Sequence[str], schema: Schema, source: str) -> None:
    """Refuse a frame that position would match, while its index has the name of a declared column."""
    levels = [str(level) for level in frame.index.names if level in schema.names]
    if levels and schema.declared and len(names) == schema.arity and not set(names) & set(schema.names):
        raise ColumnsError(
            f"{listed(levels)} of {schema} {'is' if len(levels) == 1 else 'are'} in the index, "
            f"and the columns are {listed(names)}",
            where=source,
            why="the index of a frame is not read, and position would match the columns, none of which has such a name",
            remedy="give its `.reset_index()`, which makes columns of the index, "
            "or `.reset_index(drop=True)`, which leaves it out",
        )


def _wanted_levels(frame: Any, staging: Staging, columns: Columns | None) -> list[str]:
    """The names of the index that the relation or `columns=` asks for, or that make up for the columns it lacks."""
    levels = [str(level) for level in frame.index.names if level is not None]
    if columns is None and len(levels) + len(frame.columns) == staging.schema.arity:
        return levels
    wanted = staging.schema.names if columns is None else columns.values()
    return [level for level in levels if level in wanted]


def read_dict(mapping: Mapping[Any, Any], staging: Staging, columns: Columns | None, source: str) -> None:
    """Read a dict of columns: lists, numpy arrays, Arrow arrays, Series."""
    names = [str(name) for name in mapping]
    held = [_as_column(values, name, source) for name, values in zip(names, mapping.values(), strict=True)]
    lengths = {len(values) for values in held}
    if len(lengths) > 1:
        listed = ", ".join(f"`{name}` {len(values)}" for name, values in zip(names, held, strict=True))
        raise ShapeError(
            f"the columns differ in length: {listed}",
            where=source,
            why="a row has a value in every column",
            remedy="give columns of one length",
        )
    _read_columns(held, names, lengths.pop() if lengths else 0, staging, columns, source)


def _refuse_masked(array: NDArray[Any], where: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise ShapeError(
            "a masked array may hold masked values",
            where=where,
            why="it would have to be null, which no numpy array holds",
            remedy="give array.compressed() or array.filled(value)",
        )


def read_numpy(array: NDArray[Any], staging: Staging, columns: Columns | None, source: str) -> None:
    """Read a numpy array: (n, k), structured, or 1-D for one column."""
    _refuse_masked(array, source)
    array = np.asarray(array)  # a column of a matrix would be a matrix
    if array.dtype.names is not None and array.ndim == 1:
        names = list(array.dtype.names)
        if nested := [name for name in names if array[name].ndim != 1 or array[name].dtype.names is not None]:
            raise ShapeError(
                f"the field `{nested[0]}` holds more than one value per row",
                where=source,
                why="a relation holds one plain value per column",
                remedy="give plain fields",
            )
        _read_columns([array[name] for name in names], names, len(array), staging, columns, source)
    elif array.ndim == 2:
        _read_columns([array[:, i] for i in range(array.shape[1])], None, len(array), staging, columns, source)
    elif array.ndim == 1 and (staging.schema.arity == 1 or array.size):
        _read_columns([array], None, len(array), staging, columns, source)
    elif array.ndim == 1:  # np.array([]): no rows, and nothing to tell their width
        _read_columns([array] * staging.schema.arity, None, 0, staging, None, source)
    else:
        raise ShapeError(
            f"an array of {array.ndim} dimensions is no relation",
            where=source,
            why="a relation is rows of columns: two dimensions",
            remedy="give an array of shape (rows, columns)",
        )


def _read_columns(
    held: Sequence[Any], names: Sequence[str] | None, rows: int, staging: Staging, columns: Columns | None, source: str
) -> None:
    """Read columns that are all at hand."""
    positions = staging.pick(columns, names, len(held), source)
    parts = [
        staging.part(
            i,
            partial(
                _part,
                held[position],
                staging=staging,
                given=f"`{names[position]}`" if names is not None else str(position),
                source=source,
                rows=rows,
            ),
        )
        for i, position in enumerate(positions)
    ]
    staging.add(source, parts, range(rows))


def _part(values: Any, column: Column, staging: Staging, given: str, source: str, rows: int) -> ColumnPart:
    if of_pandas(values):
        plain = isinstance(values.dtype, np.dtype)
        values = (_plain if plain else _extension)(values, column, staging, given, source)
    if isinstance(values, np.ndarray):
        if rows and (fault_found := numpy_fault(values.dtype, column.type)):
            raise ColumnTypeError(column, staging.schema.name, given, fault_found, source)
        if values.dtype.kind not in "OT" and not rows:
            values = []
        return numpy_part(values, column.type) if isinstance(values, np.ndarray) else list_part(values, column.type)
    import pyarrow as pa  # here, since numbers in arrays need none of it

    if isinstance(values, pa.ChunkedArray):
        values = _one_chunk(values)
    if isinstance(values, pa.Array):
        check_arrow(values.type, column, staging, given, source)
        return arrow_part(values, column.type)
    return list_part(values, column.type)


def _one_chunk(values: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if joins_wrongly(values.type):
        return values.cast(values.type.value_type).combine_chunks()
    try:
        return values.combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # too many values for the indices, or none but null
        return values.cast(values.type.value_type).combine_chunks()


def _plain(series: Any, column: Column, staging: Staging, given: str, source: str) -> NDArray[Any] | pa.Array:
    """The values of a pandas column of a numpy dtype, null where they are missing."""
    fault = numpy_fault(series.dtype, column.type)
    if fault and not series.isna().all():  # of a column without values every row is null, whatever pandas made it
        fault = whole_numbers_fault(series.to_numpy(), column.type) or fault
        raise ColumnTypeError(column, staging.schema.name, given, fault, source)
    return with_nulls(series)


def _extension(series: Any, column: Column, staging: Staging, given: str, source: str) -> pa.Array:
    """A pandas column of an extension type as an Arrow array that fits; messages name the type as pandas does."""
    import pyarrow as pa

    fault = faults.wrong_kind(type_of(column.type), str(series.dtype))
    misfit = ColumnTypeError(column, staging.schema.name, given, fault, source)
    if not len(getattr(series.dtype, "categories", ".")):  # every row is null, whatever pandas made the categories
        return pa.nulls(len(series))
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise misfit from error
    if arrow_fault(array.type, column.type):
        raise misfit
    return array


def of_pandas(values: Any) -> bool:
    """Whether something is of pandas, or of a class that was made of one of its own."""
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(values).__mro__)


def check_arrow(given: pa.DataType, column: Column, staging: Staging, name: str, source: str) -> None:
    """Refuse an Arrow column of a kind that the relation's column does not take."""
    if fault := arrow_fault(given, column.type):
        raise ColumnTypeError(column, staging.schema.name, name, fault, source)


def _as_column(values: Any, name: str, source: str) -> Any:
    """A column as something `_part` reads."""
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        _refuse_masked(values, f"column `{name}`")
        if values.ndim == 1 and values.dtype.names is None:
            return values
    elif isinstance(values, pa.Array | pa.ChunkedArray | list | tuple | range):
        return values
    elif of_pandas(values):
        if hasattr(values, "__len__") and getattr(values, "ndim", 1) == 1:
            return values
    elif hasattr(values, "to_arrow"):  # a polars Series
        if str(getattr(values, "dtype", "")) != "Object":  # of which polars gives Arrow the addresses
            with contextlib.suppress(pa.ArrowInvalid):  # of a type that Arrow has not
                return values.to_arrow()
        return values.to_list()
    elif isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        return list(values)
    raise ShapeError(
        f"column `{name}` is {faults.with_article(type(values).__name__)}, not a column",
        where=source,
        why="a column holds one value per row",
        remedy="give a list or a one-dimensional array",
    )
