"""Reading: from any source of rows to columns of codes.

A source is a path (or glob, or list of paths), an object with an Arrow stream, a DataFrame, a numpy array, a dict of
columns, or an iterable of rows. `read` tells which, hands it to its reader, and commits: every reader fills the same
`Staging`, and only when all of it is known to be good are the texts interned and the columns given out. Nothing is half
loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lftj import arguments
from lftj.errors import DataError
from lftj.io.pick import Columns, check_columns
from lftj.io.staging import Loaded, Staging
from lftj.values.codes import Schema
from lftj.values.faults import with_article
from lftj.values.symbols import SymbolTable

ON_ERROR = ("raise", "quarantine")
EXTRA = ("note", "error")


class SourceError(DataError, TypeError):
    """A source of a kind that rows cannot be read from, or an option that does not apply to it."""

    __str__ = DataError.__str__


def read(
    source: Any,
    schema: Schema,
    symbols: SymbolTable,
    *,
    columns: Columns | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    on_error: str = "raise",
    extra: str = "note",
    only: frozenset[int] | None = None,
) -> Loaded:
    """Read all rows of `source` as rows of `schema`.

    `columns` picks the source's columns by position (from 0) or name. `delimiter`, `header` and `quoting` are for text
    files only; None decides from the file (see `lftj.io.text`). `on_error="raise"` refuses the source if it has a bad
    row, "quarantine" loads the others and keeps the bad ones in `Loaded.rejects`. `extra`: columns beyond those of the
    relation, where all of these are there by name, are passed over ("note": `Loaded.note` says which) or refused
    ("error"). `only`: the columns whose texts somebody reads; those of others are checked, but not interned, and their
    codes mean nothing. When this raises, `symbols` is as it was.
    """
    arguments.one_of("on_error", on_error, ON_ERROR, "a source with bad rows is refused, or they are kept apart")
    header, quoting = arguments.flag("header", header), arguments.flag("quoting", quoting)
    if delimiter is not None:
        arguments.text(
            "delimiter", delimiter, "it is what stands between two fields", 'give a text such as `delimiter=";"`'
        )
    arguments.one_of("extra", extra, EXTRA, "columns that the relation does not have are passed over, or refused")
    check_columns(schema, columns)
    staging = Staging(schema, quarantine=on_error == "quarantine", extra=extra)
    from lftj.io import files

    if files.is_paths(source):
        _read_files(files.find(source, delimiter), staging, columns, header, quoting)
    else:
        for option, value in (("delimiter", delimiter), ("header", header), ("quoting", quoting)):
            if value is not None:
                raise SourceError(
                    f"{option}= is for text files; the source is {_kind(source)}",
                    why="it says how text is cut into fields, and here there is no text",
                    remedy=f"leave {option}= out",
                )
        _read_object(source, staging, columns)
        staging.end_of_source()
    return staging.finish(symbols, only)


def _read_files(
    found: Iterable[Any], staging: Staging, columns: Columns | None, header: bool | None, quoting: bool | None
) -> None:
    for file in found:
        if file.format == "text":
            from lftj.io.text import read_text

            read_text(file, staging, columns, header, quoting)
        else:
            for option, value in (("header", header), ("quoting", quoting)):
                if value is not None:
                    raise SourceError(
                        f"{option}= does not apply to {with_article(file.format)} file",
                        where=file.name,
                        why=f"{with_article(file.format)} file says itself what its columns are",
                        remedy=f"leave {option}= out",
                    )
            from lftj.io.binary import read_arrow, read_parquet

            (read_parquet if file.format == "parquet" else read_arrow)(file, staging, columns)
        staging.end_of_source()


def _read_object(source: Any, staging: Staging, columns: Columns | None) -> None:
    import numpy as np

    from lftj.io import rows, typed

    name = type(source).__name__
    package = type(source).__module__.partition(".")[0]
    if isinstance(source, np.ndarray):
        typed.read_numpy(source, staging, columns, "numpy array")
    elif package == "pandas" and hasattr(source, "to_frame" if name == "Series" else "iloc"):
        typed.read_pandas(source, staging, columns, name)
    elif isinstance(source, Mapping):
        typed.read_dict(source, staging, columns, name)
    elif package == "polars" and name == "LazyFrame":
        raise SourceError(
            "a LazyFrame holds no rows yet",
            why="it is a plan whose rows are computed when it is collected",
            remedy="call collect() on it first",
        )
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        typed.read_stream(source, staging, columns, name)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | memoryview):
        rows.read_rows(source, staging, columns, name)
    else:
        raise SourceError(
            f"rows cannot be read from {_kind(source)}",
            why="it is neither a file nor something with rows or columns",
            remedy="give a path, a DataFrame, an Arrow stream, a numpy array, a dict of columns or rows as tuples",
        )


def _kind(source: Any) -> str:
    return "None" if source is None else with_article(type(source).__name__)
