"""Sources on one machine: anything that `lftj.Database.load` takes, as a table.

An Arrow table stays what it is. The rest goes through lftj's readers, which check every value: paths, data frames,
Arrow streams, numpy arrays, dicts of columns, rows. Changes have one column more, `_op`, the last where columns have
no names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lftj.io.pick import ColumnsError
from lftj.io.read_options import ReadOptions
from lftj.io.sources import read
from lftj.values.gate import to_arrow
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable
from spark_bridge.bridge_errors import BatchError
from spark_bridge.keys import OP, UNIT


def arrow_of(source: Any, schema: Schema, *, changes: bool = False) -> pa.Table:
    """The rows of a source. Errors are those of lftj's readers; types are checked when the rows are staged."""
    if isinstance(source, pa.Table):
        return source
    columns = (*schema.columns, Column(OP, "number")) if changes else schema.columns
    expected = replace(schema, columns=columns, functional=False)
    symbols = SymbolTable()
    try:
        loaded = read(source, expected, symbols, ReadOptions(extra="error"))
    except ColumnsError as error:
        remedy = f"give the columns {', '.join(expected.names)}, by these names or in this order without any"
        raise BatchError(error.what, where=error.where, why=error.why, remedy=remedy) from None
    if not columns:
        return pa.table({UNIT: [True] * loaded.rows})
    return to_arrow(expected, loaded.columns, symbols, rows=loaded.rows)
