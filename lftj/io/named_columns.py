"""Whether a source names a column, which is known before its rows are read.

A bag's differences name its last column, how often each row is there; what a circuit gives out names `_weight`. Whoever
reads such a source counts by it, and another one row by row. So a source is looked at first, and read after that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from lftj.errors import DataError
from lftj.io.file import File
from lftj.io.find_files import find, is_paths
from lftj.io.formats import FORMATS
from lftj.io.read_options import DEFAULTS, ReadOptions
from lftj.io.sources import read
from lftj.io.staging import Loaded, Staging
from lftj.io.typed import of_pandas
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable


def readable_again(source: Any, options: ReadOptions = DEFAULTS) -> Any:
    """The source as something that can be read twice: to see its columns, and again for its rows.

    An Arrow stream is read into a table, and an iterator of rows that have names into a list; so is what only gives an
    iterator, which may be the same one each time.
    """
    if is_paths(source):
        return find(source, options.delimiter, options.format)
    if hasattr(source, "__arrow_c_stream__") and not _is_frame(source):
        import pyarrow as pa

        if not isinstance(source, pa.Table | pa.RecordBatch | pa.ChunkedArray):
            with suppress(pa.ArrowInvalid):  # no stream of rows, which whoever reads them tells
                return pa.table(source)
    elif hasattr(source, "__next__"):
        first = list(islice(source, 1))
        return chain(first, source) if first and type(first[0]) in (tuple, list) else [*first, *source]
    elif isinstance(source, Iterable) and not isinstance(source, Collection) and not _is_frame(source):
        return list(source)
    return source


def names_column(
    source: Any, column: str, schema: Schema, options: ReadOptions = DEFAULTS, *, positions: bool = False
) -> bool:
    """Whether a source that is `readable_again`, of rows of `schema`, has names for its columns, and this among them.

    `positions`: so has a file without names that is as wide as `schema`, whose last column it is.
    """
    if is_paths(source):
        found = (_columns_of(file, schema, options) for file in source)
        return any(positions and width == schema.arity if names is None else column in names for names, width in found)
    if isinstance(source, Mapping):
        return column in source
    if isinstance(source, np.ndarray):
        return column in (source.dtype.names or ())
    if _is_frame(source):
        return type(source).__name__ != "LazyFrame" and column in getattr(source, "columns", ())
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return column in getattr(getattr(source, "schema", None), "names", ())
    if not isinstance(source, Iterable) or hasattr(source, "__next__"):
        return False
    first = next(iter(source), None)
    if isinstance(first, Mapping):
        return any(column in row for row in source if isinstance(row, Mapping))
    return column in getattr(first, "_fields", getattr(first, "__dataclass_fields__", ()))


def _is_frame(source: Any) -> bool:
    """Whether a source is of pandas or polars, whose columns can be read one by one and again."""
    return of_pandas(source) or type(source).__module__.partition(".")[0] == "polars"


def names_copies(source: Any, schema: Schema, options: ReadOptions, beside: Iterable[str] = ()) -> bool:
    """Whether a source for a bag says by name how many copies of each row there are; it is `readable_again`.

    `beside`: the names of the columns that it has beside those of the bag.
    """
    copies = schema.names[-1]
    if copies in beside:
        return False
    if options.columns is not None:
        return copies in options.columns
    columns = (*schema.given.columns, *(Column(name, "symbol") for name in beside))
    return names_column(source, copies, replace(schema.given, columns=columns), options)


def read_facts(source: Any, schema: Schema, symbols: SymbolTable, options: ReadOptions) -> Loaded:
    """Read all rows of a source as facts of a relation: of a bag with their numbers of copies, where it names these."""
    if schema.bag:
        source = readable_again(source, options)
        schema = without_bag(schema) if names_copies(source, schema, options) else schema.given
    return read(source, schema, symbols, options)


def without_bag(schema: Schema) -> Schema:
    """The rows of a bag with their numbers of copies, as they are read."""
    return Schema(schema.name, schema.columns, declared=schema.declared)


class _Seen(Exception):
    """What a reader knows of a source before it reads any values: the names of its columns (None: none), how many."""


class _Look(Staging):
    """Ends a reader as soon as it knows the columns of a file."""

    def pick(self, columns: Any, names: Any, width: int, source: str, *, by_name: bool = False) -> list[int]:
        raise _Seen(names, width)

    def add(self, source: str, parts: Any, places: Any, *, in_text: bool = False, misshapen: Any = ()) -> None:
        odd = [place for place, _ in misshapen]
        raise _Seen(None, self.schema.arity if len(places) and (not odd or places[0] < odd[0]) else 0)


def _columns_of(file: File, schema: Schema, options: ReadOptions) -> tuple[Sequence[str] | None, int]:
    """The names of the columns of a file, if it has any, and how many these are; (None, 0) where it is no such file."""
    try:
        FORMATS[file.format].read(file, _Look(schema, quarantine=False), options)
    except _Seen as seen:
        return seen.args[0], seen.args[1]
    except DataError:  # whoever reads the rows tells it
        pass
    return None, 0
