"""Reading: from any source of rows to columns of codes.

A source is a path (or glob, URL, open file, or list of these), an object with an Arrow stream, a DataFrame, a numpy
array, a dict of columns, or an iterable of rows: tuples, dicts, dataclasses. `read` tells which, hands it to its
reader, and commits: every reader fills the same `Staging`, and only when all of it is known to be good are the texts
interned and the columns given out. Nothing is half loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lftj.errors import DataError
from lftj.io.pick import Columns
from lftj.io.read_options import DEFAULTS, ReadOptions
from lftj.io.staging import Loaded, Staging
from lftj.values.faults import with_article
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable

if TYPE_CHECKING:
    from lftj.io.file import File


class SourceError(DataError, TypeError):
    """A source of a kind that rows cannot be read from, or an option that does not apply to it."""

    __str__ = DataError.__str__


def read(
    source: Any,
    schema: Schema,
    symbols: SymbolTable,
    options: ReadOptions = DEFAULTS,
    *,
    only: frozenset[int] | None = None,
    apart: bool = True,
) -> Loaded:
    """Read all rows of `source` as rows of `schema`.

    With `on_error="quarantine"` bad rows are in `Loaded.rejects`; of columns that are passed over `Loaded.note` tells.
    `only`: the columns whose texts somebody reads; those of others are checked, but not interned, and their codes mean
    nothing. `apart`: whether the user may ask for bad rows to be kept apart. When this raises, `symbols` is as it was.
    """
    quarantine = options.on_error == "quarantine"
    staging = Staging(schema, quarantine=quarantine, extra=options.extra, only=only, apart=apart)
    fill(staging, source, options)
    return staging.finish(symbols)


def fill(staging: Staging, source: Any, options: ReadOptions) -> None:
    """Read all rows of `source` into `staging`."""
    options = options.checked(staging.schema)
    from lftj.io import find_files

    if find_files.is_paths(source):
        _read_files(find_files.find(source, options.delimiter, options.format), staging, options)
    else:
        if option := options.given("delimiter", "header", "quoting", "format"):
            files, there = ("files", "file") if option == "format" else ("text files", "text")
            said = "what a file holds" if option == "format" else "how text is cut into fields"
            raise SourceError(
                f"{option}= is for {files}; the source is {_kind(source)}",
                why=f"it says {said}, and here there is no {there}",
                remedy=f"leave {option}= out",
            )
        _read_object(source, staging, options.columns)
        staging.end_of_source()


def _read_files(found: Iterable[File], staging: Staging, options: ReadOptions) -> None:
    from lftj.io.formats import FORMATS

    for file in found:
        format = FORMATS[file.format]
        if not format.text and (option := options.given("header", "quoting")):
            raise SourceError(
                f"{option}= does not apply to {with_article(format.name)} file",
                where=file.name,
                why=f"{with_article(format.name)} file says itself what its columns are",
                remedy=f"leave {option}= out",
            )
        format.read(file, staging, options)
        staging.end_of_source()


def _read_object(source: Any, staging: Staging, columns: Columns | None) -> None:
    import numpy as np

    from lftj.io import rows, typed

    name = type(source).__name__
    if isinstance(source, np.ndarray):
        typed.read_numpy(source, staging, columns, "numpy array")
    elif typed.of_pandas(source) and hasattr(source, "iloc"):
        typed.read_pandas(source, staging, columns, name)
    elif isinstance(source, Mapping):
        typed.read_dict(source, staging, columns, name)
    elif type(source).__module__.partition(".")[0] == "polars" and name == "LazyFrame":
        raise SourceError(
            "a LazyFrame holds no rows yet",
            why="it is a plan whose rows are computed when it is collected",
            remedy="call collect() on it first",
        )
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        typed.read_stream(source, staging, columns, name)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | memoryview):
        rows.read_rows(source, staging, columns, name)
    elif callable(getattr(source, "cursor", None)):
        raise SourceError(
            f"rows cannot be read from {_kind(source)}",
            why="it is a connection to a database, and only what a query gives has rows",
            remedy="give what a query gives: `connection.sql(query)` of DuckDB, a cursor of other databases",
        )
    else:
        raise SourceError(
            f"rows cannot be read from {_kind(source)}",
            why="it is neither a file nor something with rows or columns",
            remedy="give a path, an open file, a DataFrame, an Arrow stream, a numpy array, a dict of columns, or rows"
            " as tuples or dicts",
        )


def _kind(source: Any) -> str:
    return "None" if source is None else with_article(type(source).__name__)
