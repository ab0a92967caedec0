"""Rows for a transaction: whatever a load reads (a few tuples have a shorter way, `lftj.store.change.few_rows`).

Rows to erase intern nothing: a text that the symbol table does not know is in no row. Such rows are told apart, with
their texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lftj.io.read_options import ReadOptions
from lftj.io.sources import read
from lftj.values.schema import Schema
from lftj.values.symbols import NULL, UNKNOWN, SymbolTable
from lftj.values.type_table import from_stored, in_dictionary

if TYPE_CHECKING:
    import pyarrow as pa

    from lftj.io.rejects import Rejects

Rows = NDArray[np.int64]


class Given(NamedTuple):
    """Rows int64[arity, size] in the order of the source, the rejected ones, and a row no relation can hold.

    `note`: as of `Loaded`.
    """

    rows: Rows
    size: int
    rejects: Rejects | None = None
    absent: tuple[object, ...] | None = None
    note: str = ""


def rows_to_insert(
    source: Any, schema: Schema, symbols: SymbolTable, options: ReadOptions, *, apart: bool = True
) -> Given:
    """The rows of any source that `load` takes, with the same options. Texts are interned when all rows are good.

    `apart`: bad rows may be kept apart, if the user asks for it.
    """
    loaded = read(source, schema, symbols, options, apart=apart)
    rows = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
    return Given(rows, loaded.rows, loaded.rejects, note=loaded.note)


def rows_to_erase(source: Any, schema: Schema, symbols: SymbolTable, options: ReadOptions) -> Given:
    """The same for rows to erase; interns nothing. Rows with unknown texts are left out; `absent` is the first."""
    known = _Known(symbols)
    loaded = read(source, schema, known, options)  # type: ignore[arg-type]
    rows = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
    if not known.others:
        return Given(rows, loaded.rows, loaded.rejects, note=loaded.note)
    texts = np.array([in_dictionary(t) for t in schema.types])
    possible = ((rows[texts] >= 0) | (rows[texts] == NULL)).all(axis=0)
    first = rows[:, int(np.argmin(possible))]
    absent = tuple(
        from_stored(known.text(c) if in_dictionary(t) and c != NULL else c, t)
        for c, t in zip(first.tolist(), schema.types, strict=True)
    )
    rows = np.compress(possible, rows, axis=1)
    return Given(rows, rows.shape[1], loaded.rejects, None if possible.all() else absent, loaded.note)


class _Known:
    """A symbol table to read with that interns nothing: a text without a code gets -1, -2, ... for the time being."""

    def __init__(self, symbols: SymbolTable) -> None:
        self._symbols = symbols
        self.others: list[str] = []
        self._numbers: dict[str, int] = {}

    def intern_array(self, texts: pa.Array) -> Rows:
        codes = self._symbols.lookup_array(texts)
        for place in np.flatnonzero(codes == UNKNOWN).tolist():
            text = texts[place].as_py()
            codes[place] = self._numbers.setdefault(text, -1 - len(self._numbers))
        self.others = list(self._numbers)
        return codes

    def text(self, code: int) -> str:
        return self._symbols.text(code) if code >= 0 else self.others[-1 - int(code)]
