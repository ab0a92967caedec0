"""Sources on one machine: anything that `lftj.Database.load` takes, as a table.

An Arrow table stays what it is. The rest goes through lftj's readers, which check every value: paths, data frames,
Arrow streams, numpy arrays, dicts of columns, rows. Changes have one column more, `_op`, the last where columns have
no names.

A query takes no options that say how a source is read. What the readers propose to be said by one (`header=`) is said
to `lftj.Database.load`, and the relation that it fills is a source.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.errors import DataError
from lftj.io.convert import ColumnTypeError
from lftj.io.feed_staging import FeedStaging
from lftj.io.pick import ColumnsError
from lftj.io.read_options import ReadOptions
from lftj.io.rejects import BadRowsError
from lftj.io.sources import fill
from lftj.values.gate import to_arrow
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable
from spark_bridge.bridge_errors import BatchError
from spark_bridge.keys import OP, UNIT, wrong_op

_OPTION = re.compile(rf"\b({'|'.join(ReadOptions._fields)})=")


def arrow_of(source: Any, schema: Schema, *, changes: bool = False) -> pa.Table:
    """The rows of a source. Errors are those of lftj's readers; types are checked when the rows are staged."""
    if isinstance(source, pa.Table):
        return source
    columns = (*schema.columns, Column(OP, "number")) if changes else schema.columns
    expected = replace(schema, columns=columns, functional=False)
    symbols, staging = SymbolTable(), FeedStaging(expected, {}, extra="error")
    try:
        fill(staging, source, ReadOptions(extra="error"))
    except DataError as error:
        raise _said(error, expected) from None
    loaded = staging.finish(symbols)
    if changes and (wrong := ~np.isin(loaded.columns[-1], (1, -1))).any():
        row = int(np.argmax(wrong))
        raise wrong_op(schema, str(loaded.columns[-1][row]), staging.where(row))
    if not columns:
        return pa.table({UNIT: [True] * loaded.rows})
    return to_arrow(expected, loaded.columns, symbols, rows=loaded.rows)


def _said(error: DataError, schema: Schema) -> DataError:
    """An error of lftj's readers in the words of a query, which has no options for them, and whose `_op` is its own."""
    if isinstance(error, ColumnsError):
        why = error.why.replace('extra="error" refuses others', "others are refused")
        remedy = f"give the columns {', '.join(schema.names)}, by these names or in this order without any"
        return BatchError(error.what, where=error.where, why=why, remedy=remedy)
    if isinstance(error, BadRowsError) and error.rejects[0].column == OP:
        return wrong_op(schema, error.rejects[0].text, error.where)
    if isinstance(error, ColumnTypeError) and error.column == OP:
        given = error.what.partition("the source's column ")[2].partition(", not ")[0]
        return wrong_op(schema, f"a column that {given.partition(' ')[2]}", error.where)
    if _OPTION.search(error.remedy):
        remedy = f"{error.remedy}; a query takes no options, so say it to `lftj.Database.load`, and give that relation"
        return BatchError(error.what, where=error.where, why=error.why, remedy=remedy)
    return error
