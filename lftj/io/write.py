r"""Writing: columns of codes to files that Souffle, other tools and `lftj.io.sources.read` read back to the same rows.

A file is written *beside* its target under a temporary name, chunk by chunk, and *renamed* over it when it is complete:
whoever reads the target sees the old file or the new one. A target that is no regular file (a pipe, /dev/stdout) is
written straight. The extension tells the format (`formats.py`); anything with `write(bytes)` takes text.

`delimiter=None` takes the extension's (comma for .csv, else tab); Souffle's own files are tab separated whatever their
name, so its command line passes "\t". `headers=True` puts the column names on the first line. `rfc4180=None` quotes
where the delimiter is a comma.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lftj.arguments import file_name
from lftj.errors import DataError
from lftj.io.content import Content
from lftj.io.file import COMPRESSIONS, FormatError
from lftj.io.formats import FORMATS, TEXT, format_of, known_extensions, known_formats
from lftj.values.faults import with_article
from lftj.values.schema import Schema
from lftj.values.symbols import SymbolTable


class UnwritableFileError(DataError, OSError):
    """A target that cannot be written: no such folder, no permission, no space."""

    __str__ = DataError.__str__


def write(
    schema: Schema,
    columns: Sequence[NDArray[np.int64]],
    symbols: SymbolTable,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    delimiter: str | None = None,
    headers: bool = False,
    rfc4180: bool | None = None,
    compress: bool = False,
    format: str | None = None,
    rows: int | None = None,
) -> None:
    """Write a relation to a path, in the format its extension tells, or to a binary stream (which stays open).

    `format`, a key of `FORMATS`, overrides the extension; a stream takes text without it. `compress=True` gzips text
    whatever the name. `rows` is needed for arity 0.
    """
    count = len(columns[0]) if columns else rows
    assert count is not None, "with arity 0 the number of rows has to be said"
    quoting = delimiter == "," if rfc4180 is None else rfc4180
    content = Content(schema, columns, symbols, count, "the stream", quoting=quoting, headers=headers)
    if not isinstance(target, str | os.PathLike):
        stated = FORMATS[format or TEXT]
        if not stated.text:
            _check_no_text(schema, "the stream", stated.name, delimiter, headers, rfc4180, compress)
        stated.write(content if delimiter is None else content._replace(delimiter=delimiter), _binary(target))
        return
    path = Path(os.path.expanduser(file_name(target)))
    check_name(path)
    kind = format_of(path)
    chosen = FORMATS.get(format) if format else kind.format
    if chosen is None and not format and delimiter is not None:
        chosen = FORMATS[TEXT]
    if chosen is None:
        raise FormatError(
            f"format={format!r} is unknown" if format else f"the name {path.name!r} tells no format",
            where=str(path),
            why=f"formats are {known_formats()}" if format else f"known are {known_extensions()}",
            remedy="give another format=" if format else "rename the target, or give format= or delimiter=",
        )
    if not chosen.text:
        if kind.compression is not None and not chosen.packed:
            raise FormatError(
                f"{with_article(chosen.name)} file is not compressed as a whole",
                where=str(path),
                why=f"the name ends in {path.suffix!r}, and {with_article(chosen.name)} file is written in one form",
                remedy=f"give a name without {path.suffix!r}",
            )
        _check_no_text(schema, path, chosen.name, delimiter, headers, rfc4180, compress and not chosen.packed)
    delimiter = delimiter if delimiter is not None else (kind.delimiter or content.delimiter)
    quoting = delimiter == "," if rfc4180 is None else rfc4180
    content = content._replace(target=str(path), delimiter=delimiter, quoting=quoting)
    codec = "gzip" if compress else kind.compression
    with _replacing(path) as stream, _compressing(stream, codec if chosen.packed else None) as sink:
        chosen.write(content, sink)


def write_csv(
    schema: Schema,
    columns: Sequence[NDArray[np.int64]],
    symbols: SymbolTable,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    delimiter: str | None,
    header: bool,
    quoting: bool | None,
    rows: int,
) -> None:
    """Write a relation as text, whatever the name of `target`: comma separated unless that, or `delimiter`, says else.

    Of a name that tells a compression the text is compressed.
    """
    if delimiter is None:
        named = format_of(Path(target)).delimiter if isinstance(target, str | os.PathLike) else ""
        delimiter = named or ","
    write(
        schema, columns, symbols, target, delimiter=delimiter, headers=header, rfc4180=quoting, format=TEXT, rows=rows
    )


def _binary(target: Any) -> IO[bytes]:
    """A stream that takes bytes; a text stream is refused."""
    if isinstance(target, io.TextIOBase) or not callable(getattr(target, "write", None)):
        raise FormatError(
            f"rows cannot be written to {with_article(type(target).__name__)}",
            why="files are written as bytes",
            remedy='give a path, or a binary stream such as `open(name, "wb")` or `sys.stdout.buffer`',
        )
    stream: IO[bytes] = target
    return stream


def _check_no_text(
    schema: Schema,
    path: Path | str,
    format: str,
    delimiter: str | None,
    headers: bool,
    rfc4180: bool | None,
    compress: bool,
) -> None:
    """Refuse options of text for a format that says itself what its columns are, and rows without columns."""
    given = {
        "delimiter": delimiter is not None,
        "headers": headers,
        "rfc4180": rfc4180 is not None,
        "compress": compress,
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise FormatError(
            f"{option}= does not apply to {with_article(format)} file",
            where=str(path),
            why=f"{with_article(format)} file is written in one form",
            remedy=f"leave {option}= out",
        )
    if not schema.arity and not FORMATS[format].packed:
        raise FormatError(
            f"{with_article(format)} file holds no rows without columns",
            where=str(path),
            why="its rows are the values of its columns",
            remedy="write a relation of arity 0 as text",
        )


# --- files ------------------------------------------------------------------------------------------------------------


def check_name(path: Path) -> None:
    """Refuse a name that no file or folder has."""
    if "\0" in str(path):
        raise UnwritableFileError(
            "no file or folder has such a name",
            where=str(path),
            why="the character NUL ends names",
            remedy="give a name without it",
        )


def check_can_be_written(path: Path) -> None:
    """Raise what `write` would raise for a path, as far as that shows beforehand."""
    path = Path(os.path.expanduser(path)).resolve()
    if os.path.isdir(path):
        raise _unwritable(path, os.strerror(errno.EISDIR))
    straight = os.path.exists(path) and not os.path.isfile(path)
    if not os.path.isdir(path.parent) or not (straight or os.access(path.parent, os.W_OK | os.X_OK)):
        raise _unwritable(path, os.strerror(errno.EACCES))


def _unwritable(path: Path, why: str) -> UnwritableFileError:
    try:
        if not path.parent.is_dir():
            why = f"the folder {str(path.parent)!r} does not exist"
    except OSError as error:
        why = error.strerror or str(error)
    return UnwritableFileError(
        "the file cannot be written", where=str(path), why=why, remedy="check the folder and its permissions"
    )


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes that of `path` when the block ends well, and vanishes otherwise."""
    path = path.resolve()
    direct = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    beside = path if direct else path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as stream:
            yield stream
        if not direct:
            os.replace(beside, path)
    except OSError as error:
        if isinstance(error, DataError):
            raise
        raise _unwritable(path, error.strerror or str(error)) from error
    finally:
        if not direct:
            with suppress(OSError):  # where it could not be made, it may be that it cannot be looked for
                beside.unlink()


@contextmanager
def _compressing(stream: IO[bytes], compression: str | None) -> Iterator[Any]:
    import pyarrow as pa

    assert compression is None or compression in [known.codec for known in COMPRESSIONS.values()]
    if compression is None:
        yield stream
        return
    with pa.CompressedOutputStream(pa.PythonFile(stream, mode="w"), compression) as sink:
        yield sink
        sink.flush()
