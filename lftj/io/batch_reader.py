"""Reading record batches one after the other: what depends on their Arrow schema alone is found out once.

A stream is given many small batches of one schema, of which few columns are read. Which column of a batch is which, and
whether its type fits, takes longer than to read a few hundred values. So a `BatchReader` keeps that from the batch
before; values are looked at as ever. It reads plain batches whose values all fit: for whatever else there is
`lftj.io.sources.read`, which says what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.io.convert import not_unicode
from lftj.io.pick import pick
from lftj.values.codes import encode_float, encode_unsigned
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable, coded, stage

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader:
    """Reads rows of `schema`. `only`: the columns whose texts somebody reads; the codes of others mean nothing."""

    def __init__(self, schema: Schema, symbols: SymbolTable, only: frozenset[int]) -> None:
        self.schema, self.only, self._symbols = schema, only, symbols
        self._known: pa.Schema | None = None
        self._places: list[int] | None = None  # of each column in batches of the schema `_known`; None: not plain

    def read(self, source: Any) -> NDArray[np.int64] | None:
        """The codes int64[arity, n] of a record batch, or None if it is no plain one; then no text is interned."""
        import pyarrow as pa

        if not isinstance(source, pa.RecordBatch):
            return None
        if self._known is None or not (source.schema is self._known or source.schema.equals(self._known)):
            self._known, self._places = source.schema, self._plain_places(source)
        if self._places is None:
            return None
        codes = np.empty((len(self._places), source.num_rows), np.int64)
        texts, rows = [], []
        for i, (column, place) in enumerate(zip(self.schema.columns, self._places, strict=True)):
            array = source.column(place)
            if array.null_count:
                return None
            if column.type == "symbol":
                if i in self.only:
                    if not_unicode(array) is not None:
                        return None
                    texts.append(array)
                    rows.append(i)
                else:
                    codes[i] = 0
                continue
            values = array.to_numpy()
            if column.type == "float":
                if np.isnan(values).any():
                    return None
                codes[i] = encode_float(values)
            else:
                codes[i] = values if column.type == "number" else encode_unsigned(values)
        for i, found in zip(rows, coded([stage(array) for array in texts], self._symbols.intern_array), strict=True):
            codes[i] = found
        return codes

    def _plain_places(self, batch: pa.RecordBatch) -> list[int] | None:
        """Where the columns are in a batch, if each has the very type of its values."""
        import pyarrow as pa

        names = batch.schema.names
        places = pick(self.schema, None, names, len(names), type(batch).__name__)
        plain = {
            "number": (pa.int64(),),
            "unsigned": (pa.uint64(),),
            "float": (pa.float64(),),
            "symbol": (pa.string(), pa.large_string()),
        }
        fits = all(
            batch.schema.field(place).type in plain.get(column.type, ())
            for column, place in zip(self.schema.columns, places, strict=True)
        )
        return places if fits else None
