"""Rows: any iterable of them, generators included, read in chunks.

A row is a tuple, a list or any other sequence but text: ("ab") is not the row ("a", "b"), and a relation of one column
takes (1,), not 1. Dicts, dataclasses and named tuples are read by name (`lftj/io/row_forms.py`). Rows count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from lftj.io.pick import Columns
from lftj.io.row_forms import RowReader
from lftj.io.staging import Staging

CHUNK_ROWS = 65_536


def read_rows(rows: Iterable[Any], staging: Staging, columns: Columns | None, source: str) -> None:
    """Read an iterable of rows."""
    reader, iterator, start = RowReader(staging, columns, source), iter(rows), 0
    while chunk := list(islice(iterator, CHUNK_ROWS)):
        reader.add(range(start, start + len(chunk)), chunk)
        start += len(chunk)
