"""`zset`: rows with weights, as users write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from lftj.arguments import mapping, refused
from lftj.errors import ArgumentError, DataError
from lftj.io.named_columns import readable_again
from lftj.io.sources import read
from lftj.language.types import of_class
from lftj.streams.expressions import check_names
from lftj.streams.graph import named_columns
from lftj.streams.weighted import WeightedRows, as_weights, no_weights
from lftj.streams.zsets import ZSet
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import of_arrow


def zset(
    rows: Any,
    weights: Sequence[int] | np.ndarray[Any, Any] | None = None,
    *,
    columns: Mapping[str, object] | None = None,
) -> WeightedRows:
    """Rows (an iterable of tuples, a frame, an Arrow table, ...) with their weights, 1 each if none are given.

    Rows given several times add up. `columns`: names and types; without it the types are those of the first row's
    values, none of which may be null. Raises `DataError` for rows of other shapes or types, and weights that are no
    int64.
    """
    if columns is not None:
        mapping("columns", columns, "it is types by name", 'give `columns={"id": int, "name": str}`')
        check_names(list(columns))
    if not hasattr(rows, "__iter__") and not hasattr(rows, "__arrow_c_stream__"):
        raise _no_rows(rows)
    if columns is None:
        if hasattr(rows, "__arrow_c_stream__"):
            rows = readable_again(rows)
        elif not hasattr(rows, "shape") and not isinstance(rows, str):
            rows = list(rows)
        columns = _columns_of(rows)
    schema = Schema("zset", named_columns(columns))
    symbols = SymbolTable()
    loaded = read(rows, schema, symbols, apart=False)
    codes = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
    return WeightedRows(schema, ZSet(codes, _weights(weights, loaded.rows)), symbols)


def _no_rows(rows: Any) -> ArgumentError:
    why = "they are tuples, a frame or an Arrow table; rows of other kinds need `columns=`, names and types"
    return refused("rows", rows, why, "give `[(1, 2), (3, 4)]`")


def _columns_of(rows: Any) -> dict[str, object]:
    """Names and types by the first row; of no rows, no columns."""
    if hasattr(rows, "__arrow_c_stream__"):
        import pyarrow as pa

        try:
            table = pa.table(rows)
        except pa.ArrowInvalid:  # a column
            raise _no_rows(rows) from None
        untold = pa.null() if table.num_rows else None
        return _told({field.name: None if field.type == untold else of_arrow(field.type) for field in table.schema})
    first = rows[0] if len(rows) else ()
    if isinstance(first, str | Mapping) or not hasattr(first, "__iter__"):
        raise _no_rows(rows)
    values = first.tolist() if hasattr(first, "tolist") else first
    return _told({f"c{i}": None if value is None else of_class(type(value)) for i, value in enumerate(values)})


def _told(types: Mapping[str, str | None]) -> dict[str, object]:
    """The types that were found; `DataError` if one cannot be told from null."""
    if null := [name for name, type in types.items() if type is None]:
        example = {name: "number?" if type is None else type or "symbol" for name, type in types.items()}
        raise DataError(
            f"the type of column `{null[0]}` of `zset` cannot be told from null",
            why="without `columns=` types are those of the first row's values, or of the columns of a frame",
            remedy=f"name the columns and their types, as in `columns={example}`",
        )
    return {name: type or "symbol" for name, type in types.items()}


def _weights(weights: Sequence[int] | np.ndarray[Any, Any] | None, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    if weights is None:
        return np.ones(n, np.int64)
    try:
        made = weights if isinstance(weights, np.ndarray) else np.array([*map(index, weights)], np.int64)
    except (OverflowError, TypeError) as error:
        raise no_weights(str(error)) from None
    if made.shape != (n,) or made.dtype.kind not in "iu":
        raise DataError(
            f"{n} rows, but weights of shape {made.shape} and type {made.dtype}",
            why="every row has a weight, an integer",
            remedy="give as many weights as rows",
        )
    return as_weights(made)
