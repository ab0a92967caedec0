"""What a step is given for an input, as rows and weights.

A source may name one more column than the input has, `_weight`: how often each row is there, as in what a circuit gives
out. It counts in every kind of source, since a retraction that is taken for an insert is an error that nobody sees. A
text file without a header may have it as its last field, as sources of `Circuit.run` do (text_rows.py).

Other columns are passed over, with a note as `Database.load` has it; once for each, since there are many steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.errors import DataError
from lftj.io.batch_reader import BatchReader
from lftj.io.named_columns import names_column, readable_again
from lftj.io.sources import read
from lftj.streams.weighted import WEIGHT, WeightedRows, as_weights
from lftj.streams.zsets import ZSet
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable


class StepRows:
    """Reads what steps are given for an input. `only`: the columns whose texts somebody reads.

    `note`: what the last step passed over, in words; "" if nothing, or if it is among the notes that were `told`.
    Batches with the same columns have the same ones passed over: once these are known, they are read quickly.
    """

    def __init__(self, schema: Schema, symbols: SymbolTable, only: frozenset[int]) -> None:
        self.schema, self._symbols, self._only = schema, symbols, only
        self._names = schema.names
        self._batches = BatchReader(schema, symbols, only)
        self._weighted = replace(schema, columns=(*schema.columns, Column(WEIGHT, "number")))
        self._known: dict[tuple[str, ...], str] = {(): ""}  # what was passed over, by the names of a batch's columns
        self.told: set[str] = set()
        self.note = ""

    def coded(self, rows: Any) -> ZSet:
        """The rows of anything that `Database.load` reads, with their weights."""
        kind = type(rows)
        if isinstance(rows, WeightedRows):
            return rows.coded(self.schema, self._symbols)
        if kind is list and rows and type(rows[0]) in (tuple, list):
            return self._read(rows, None)  # rows have no names; many steps are given a few
        of_arrow = kind.__module__.partition(".")[0] == "pyarrow"
        if not (of_arrow and hasattr(rows, "num_columns")):
            rows = readable_again(rows)
        if WEIGHT in self._names:  # a column of the user's own
            return self._read(rows, None)
        if of_arrow:
            return self._read(*weights_of(rows))
        if names_column(rows, WEIGHT, self._weighted, positions=True):
            return self._read_weighted(rows)
        return self._read(rows, None)

    def _read(self, rows: Any, weights: npt.NDArray[np.int64] | None) -> ZSet:
        names: tuple[str, ...] = ()
        if hasattr(rows, "num_columns") and rows.num_columns > self.schema.arity:
            names = tuple(rows.schema.names)
        codes = self._batches.read(rows) if names in self._known else None
        if codes is not None:
            self._note(self._known[names])
        else:
            loaded = read(rows, self.schema, self._symbols, only=self._only, apart=False)
            self._note(loaded.note)
            if names:
                self._known[names] = loaded.note
            codes = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
        return ZSet.of_rows(codes) if weights is None else ZSet(codes, weights)

    def _read_weighted(self, rows: Any) -> ZSet:
        loaded = read(rows, self._weighted, self._symbols, only=self._only, apart=False)
        self._note(loaded.note)
        *columns, weights = loaded.columns
        return ZSet(np.stack(columns) if columns else np.empty((0, loaded.rows), np.int64), weights)

    def _note(self, note: str) -> None:
        if note:
            # Loads are told to pick columns, and circuits have no way to.
            found = note.rpartition("\n  do: ")[0]
            shown = f"{found}\n  do: leave these columns out, or give the input columns of their names"
            self.note = "" if shown in self.told else shown


def weights_of(table: Any) -> tuple[Any, npt.NDArray[np.int64] | None]:
    """(what pyarrow holds without its column `_weight`, the weights); as it is, and None, if it has none.

    `DataError` if a weight is no integer.
    """
    import pyarrow as pa

    if not isinstance(table, pa.Table | pa.RecordBatch) or WEIGHT not in table.schema.names:
        return table, None
    column = table.column(WEIGHT)
    if column.null_count or not pa.types.is_integer(column.type):
        raise DataError(
            f"the column `{WEIGHT}` is of type {column.type}" + (", with nulls" if column.null_count else ""),
            why="it says how often each row is there",
            remedy="give an integer for every row, or leave the column out",
        )
    return table.drop_columns([WEIGHT]), as_weights(column.to_numpy(zero_copy_only=False))
