"""What is to be written: the rows of a relation as columns of codes, and how text is to hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable

CHUNK_ROWS = 1 << 16


class Content(NamedTuple):
    """Rows to write, `columns` int64[arity][rows], to what messages call `target`.

    `delimiter`, `quoting` and `headers` (a first line of column names) are of text only.
    """

    schema: Schema
    columns: Sequence[NDArray[np.int64]]
    symbols: SymbolTable
    rows: int
    target: str
    delimiter: str = "\t"
    quoting: bool = False
    headers: bool = False

    def chunk(self, lo: int, hi: int) -> list[NDArray[np.int64]]:
        """The columns of the rows in [lo, hi)."""
        return [codes[lo:hi] for codes in self.columns]
