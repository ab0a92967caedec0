"""Rows: any iterable of tuples or lists, generators included, read in chunks.

A chunk of rows that all have the right length is turned into columns at once and converted in bulk; only a chunk with a
misshapen row is walked row by row. A row is a tuple, a list or any other sequence but text: ("ab") is not the row ("a",
"b"), and a relation of one column takes (1,), not 1. Rows count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from lftj.io.convert import list_part
from lftj.io.pick import Columns
from lftj.io.staging import Finding, Staging
from lftj.values.faults import Fault, shown

CHUNK_ROWS = 65_536


def read_rows(rows: Iterable[Any], staging: Staging, columns: Columns | None, source: str) -> None:
    """Read an iterable of rows."""
    iterator = iter(rows)
    relation = staging.schema
    width, positions = relation.arity, list(range(relation.arity))
    start = 0
    while chunk := list(islice(iterator, CHUNK_ROWS)):
        if start == 0 and columns is not None and _is_row(chunk[0]):
            width = len(chunk[0])
            positions = staging.pick(columns, None, width, source)
        places: Sequence[int] = range(start, start + len(chunk))
        start += len(chunk)
        misshapen: list[tuple[int, Finding]] = []
        if not (set(map(type, chunk)) <= {tuple, list} and set(map(len, chunk)) == {width}):
            fit = []
            for place, row in zip(places, chunk, strict=True):
                if fault := _row_fault(row, width, relation.name):
                    misshapen.append((place, Finding(shown(row), shown(row), fault)))
                else:
                    fit.append((place, row))
            places, chunk = [place for place, _ in fit], [row for _, row in fit]
        turned = list(zip(*chunk, strict=True)) if chunk else [()] * width
        parts = [list_part(turned[p], c.type) for p, c in zip(positions, relation.columns, strict=True)]
        staging.add(source, parts, places, misshapen=misshapen)


def _is_row(row: Any) -> bool:
    if isinstance(row, str | bytes):
        return False
    return isinstance(row, Sequence) or (hasattr(row, "__len__") and getattr(row, "ndim", 0) == 1)


def _row_fault(row: Any, width: int, relation: str) -> Fault | None:
    if not _is_row(row):
        kind = type(row).__name__
        remedy = "give rows as tuples or lists, (1,) for one column"
        return Fault("is no row", f"it is of type {kind}", remedy)
    if len(row) != width:
        values = "1 value" if len(row) == 1 else f"{len(row)} values"
        return Fault(
            f"has {values} where {width} are due",
            f"`{relation}` takes rows of {width}",
            "give every row all its values",
        )
    return None
